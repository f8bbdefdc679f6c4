"""Verbs made from commands that are declared without typer (`chainroute.commands`)."""

import functools
import inspect
import sys
from typing import Annotated, Any

import typer

from chainroute.cli import show
from chainroute.commands.declare import Argument, Command, Output, Parameter, parameters


def add(app: typer.Typer, command: Command) -> None:
    """The command as a verb of the app, under its own name."""
    app.command()(show.guarded(_for_typer(command)))


def _for_typer(command: Command) -> Any:
    """The command with typer's annotations; it shows its output and returns the exit code."""

    @functools.wraps(command)
    def run(**given: Any) -> int:
        return _tell(command(**given), bool(given.get("as_json")))

    declared = [_declared(parameter) for parameter in parameters(command)]
    run.__signature__ = inspect.Signature(declared)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in declared}
    return run


def _declared(parameter: Parameter) -> inspect.Parameter:
    about = parameter.about
    if isinstance(about, Argument):
        info = typer.Argument(help=about.help)
    else:
        info = typer.Option(*parameter.names, help=about.help)
    kind: Any = Annotated[parameter.kind, info]
    return inspect.Parameter(
        parameter.name, inspect.Parameter.KEYWORD_ONLY, default=parameter.default, annotation=kind
    )


def _tell(output: Output, as_json: bool) -> int:
    if as_json:
        for document in output.as_dicts():
            show.line(document)
    else:
        for table in output.tables:
            print(table.title)
            show.table(table.columns, table.texts(), numbers=table.columns[1:])
            print(*table.notes, sep="\n", end="\n\n")
        print(*output.lines, sep="\n", end="\n" * bool(output.lines))
    print(*output.alarms, sep="\n", end="\n" * bool(output.alarms), file=sys.stderr)
    return show.OUR_FAULT if output.alarms else 0
