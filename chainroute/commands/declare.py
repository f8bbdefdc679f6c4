"""What the parameters of a command are, declared once, and a parser for them from the standard library.

    def greet(name: Annotated[str, Argument("Whom.")], times: Annotated[int, Option("How often.")] = 1): ...

Types are str, int, float, Path, bool (a switch), a list of one of these (the option may be repeated), or one
of these or None.
"""

from __future__ import annotations

import argparse
import inspect
import json
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import NoneType
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

from chainroute.errors import ChainRouteError
from chainroute.runtime.signals import Interrupt, interrupting

if TYPE_CHECKING:
    from chainroute.evaluate.table import Table

BAD_INPUT, OUR_FAULT, STOPPED = 2, 70, 128  # exit codes; to the last the number of the signal is added


@dataclass(frozen=True)
class Option:
    help: str
    names: tuple[str, ...] = ()  # such as ("--out", "-o"); by default the parameter's own


@dataclass(frozen=True)
class Argument:
    help: str


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


@dataclass(frozen=True)
class Parameter:
    name: str
    kind: Any  # as declared: int, list[str], Path | None, ...
    about: Option | Argument
    default: Any = field(default=inspect.Parameter.empty)

    @property
    def required(self) -> bool:
        return self.default is inspect.Parameter.empty

    @property
    def many(self) -> bool:
        return get_origin(self._present) is list

    @property
    def single(self) -> Any:
        """The type of one value."""
        return get_args(self._present)[0] if self.many else self._present

    @property
    def names(self) -> tuple[str, ...]:
        """As options are called on the command line."""
        own = self.about.names if isinstance(self.about, Option) else ()
        return own or (f"--{self.name.replace('_', '-')}",)

    @property
    def _present(self) -> Any:
        """The type without None."""
        kinds = [kind for kind in get_args(self.kind) if kind is not NoneType]
        return kinds[0] if NoneType in get_args(self.kind) else self.kind


def parameters(command: Command) -> list[Parameter]:
    hints = get_type_hints(command, include_extras=True)
    found = []
    for name, parameter in inspect.signature(command).parameters.items():
        kind, about = get_args(hints[name])
        found.append(Parameter(name, kind, about, parameter.default))
    return found


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
            _declare(verbs.add_parser(name, help=summary(command).splitlines()[0]), command)
    options = vars(parser.parse_args(arguments))
    command = options.pop("the command")
    absent: tuple[object, ...] = (None, [])
    given = {p.name: p.default if options[p.name] in absent else options[p.name] for p in parameters(command)}
    try:
        with interrupting():
            return _tell(command(**given), bool(given.get("as_json")))
    except ChainRouteError as error:
        print(error, file=sys.stderr)
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
            parser.add_argument(p.name, type=p.single, help=p.about.help, nargs=count)
        elif p.single is bool:
            parser.add_argument(*p.names, dest=p.name, action="store_true", help=p.about.help)
        elif p.many:  # either `--n 50 --n 100` or `--n 50 100`
            parser.add_argument(
                *p.names, dest=p.name, type=p.single, help=p.about.help, nargs="+", action="extend"
            )
        else:
            parser.add_argument(*p.names, dest=p.name, type=p.single, help=p.about.help)


def _tell(output: Output, as_json: bool) -> int:
    if as_json:
        print(*map(json.dumps, output.as_dicts()), sep="\n")
    else:
        print(*[table.markdown() for table in output.tables], *output.lines, sep="\n")
    print(*output.alarms, sep="\n", end="\n" * bool(output.alarms), file=sys.stderr)
    return OUR_FAULT if output.alarms else 0
