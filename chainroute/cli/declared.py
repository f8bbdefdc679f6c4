"""Verbs made from declarations that know nothing of typer (`chainroute.options.declare`)."""

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer

from chainroute.cli import show
from chainroute.errors import ChainRouteError
from chainroute.options.declare import Argument, Option, Parameter, grouped, on_command_line, parameters
from chainroute.runtime.shell import OUR_FAULT, Command, Output


def add(app: typer.Typer, command: Command) -> None:
    """The command as a verb of the app, under its own name; it shows its output and returns the exit code."""

    @functools.wraps(command)
    def run(**given: Any) -> int:
        return _tell(command(**given), bool(given.get("as_json")))

    app.command()(show.guarded(translated(run)))


def translated(verb: Callable[..., int]) -> Callable[..., int]:
    """The verb with typer's annotations for ours, also where it has both; its faults name its options."""

    @functools.wraps(verb)
    def run(**given: Any) -> int:
        try:
            return verb(**grouped(verb, given))
        except ChainRouteError as error:
            raise on_command_line(error, verb) from None

    declared = [_declared(parameter) for parameter in parameters(verb)]
    run.__signature__ = inspect.Signature(declared)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in declared}
    return run


def _declared(parameter: Parameter) -> inspect.Parameter:
    about: Any = parameter.about
    kind: Any = parameter.kind
    if isinstance(about, Argument | Option):
        kind = list[parameter.single] if parameter.many else parameter.single  # type: ignore[name-defined]
        kind = kind | None if parameter.optional else kind
    if isinstance(about, Argument):
        about = typer.Argument(help=about.help)
    elif isinstance(about, Option):
        both = parameter.single is bool and parameter.optional
        names = [f"{name}/--no-{name[2:]}" if both else name for name in parameter.names]
        about = typer.Option(*names, help=about.help)
    return inspect.Parameter(
        parameter.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=parameter.default,
        annotation=Annotated[kind, about],
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
    return OUR_FAULT if output.alarms else 0
