"""Commands by the standard library alone: what they print, and a parser for what they declare."""

from __future__ import annotations

import argparse
import inspect
import json
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from chainroute.errors import ChainRouteError
from chainroute.options.declare import Argument, Option, grouped, on_command_line, parameters
from chainroute.runtime.signals import Interrupt, interrupting

if TYPE_CHECKING:
    from chainroute.runtime.table import Table

# Exit codes of every command; to the last the number of the signal is added.
INFEASIBLE, BAD_INPUT, NO_PLAN, OUR_FAULT, BROKEN_PIPE, STOPPED = 1, 2, 3, 70, 141, 128

Json = Annotated[bool, Option("Print JSON, one object per line.", ("--json",))]


@dataclass(frozen=True)
class Output:
    """What a command has found out, for whoever shows it."""

    tables: Sequence[Table] = ()
    lines: Sequence[str] = ()
    documents: Sequence[dict[str, Any]] | None = None  # for --json; the tables unless given
    alarms: Sequence[str] = ()  # told on stderr; they make the command fail

    def as_dicts(self) -> list[dict[str, Any]]:
        return [t.as_dict() for t in self.tables] if self.documents is None else list(self.documents)


Command = Callable[..., Output]


def summary(command: Command) -> str:
    return inspect.getdoc(command) or ""


# -- without typer


def main(
    program: str, commands: Command | Mapping[str, Command], arguments: Sequence[str] | None = None
) -> int:
    """Runs the command, or the one of several that the first argument names; returns the exit code."""
    parser = argparse.ArgumentParser(program)
    if callable(commands):
        _declare(parser, commands)
    else:
        verbs = parser.add_subparsers(required=True, metavar="COMMAND")
        for name, command in commands.items():
            _declare(verbs.add_parser(name, help=_literal(summary(command).splitlines()[0])), command)
    options = vars(parser.parse_args(arguments))
    command = options.pop("the command")
    absent: tuple[object, ...] = (None, [])
    given = {p.name: p.default if options[p.name] in absent else options[p.name] for p in parameters(command)}
    try:
        with interrupting():
            return _tell(command(**grouped(command, given)), bool(given.get("as_json")))
    except ChainRouteError as error:
        print(on_command_line(error, command), file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt as error:
        print("Stopped; call it again to go on.", file=sys.stderr)
        return STOPPED + (error.number if isinstance(error, Interrupt) else signal.SIGINT)


def _declare(parser: argparse.ArgumentParser, command: Command) -> None:
    parser.description = summary(command)
    parser.set_defaults(**{"the command": command})
    for p in parameters(command):
        if isinstance(p.about, Argument):
            count = ("+" if p.required else "*") if p.many else None if p.required else "?"
            parser.add_argument(p.name, type=p.single, help=_literal(p.about.help), nargs=count)
        elif p.single is bool and p.optional:
            action = argparse.BooleanOptionalAction
            parser.add_argument(
                *p.names, dest=p.name, action=action, default=None, help=_literal(p.about.help)
            )
        elif p.single is bool:
            parser.add_argument(*p.names, dest=p.name, action="store_true", help=_literal(p.about.help))
        elif p.many:  # either `--n 50 --n 100` or `--n 50 100`
            parser.add_argument(
                *p.names, dest=p.name, type=p.single, help=_literal(p.about.help), nargs="+", action="extend"
            )
        else:
            parser.add_argument(*p.names, dest=p.name, type=p.single, help=_literal(p.about.help))


def _literal(text: str) -> str:
    """The text as argparse wants it, which formats what it is given as help."""
    return text.replace("%", "%%")


def _tell(output: Output, as_json: bool) -> int:
    if as_json:
        print(*map(json.dumps, output.as_dicts()), sep="\n")
    else:
        print(*[table.markdown() for table in output.tables], *output.lines, sep="\n")
    print(*output.alarms, sep="\n", end="\n" * bool(output.alarms), file=sys.stderr)
    return OUR_FAULT if output.alarms else 0
