"""The verb `evaluate`, which has commands of its own."""

import typer

from chainroute.cli import declared
from chainroute.cli.app import app
from chainroute.research.evaluate.command import COMMANDS

group = typer.Typer(rich_markup_mode=None)
app.add_typer(group, name="evaluate")

for command in COMMANDS.values():
    declared.add(group, command)


@group.callback(invoke_without_command=True)
def evaluate(context: typer.Context) -> None:
    """Solve the benchmark, and show, compare and report results beside the paper's."""
    if context.invoked_subcommand is None:
        print(context.get_help())
