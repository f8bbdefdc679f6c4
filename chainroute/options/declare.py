"""What a parameter is, declared where it stands, for all who need to know.

    def greet(name: Annotated[str, Argument("Whom.")], times: Annotated[int, Option("How often.")] = 1): ...

`parameters` reads the declarations of a function or a dataclass. From them come the command line
(cli/declared.py, runtime/shell.py), the fields of the service (service/reading.py), labels of results, and
whether a value will do.

Types are str, int, float, Path, bool, a list or tuple of one of these (the option may be repeated), or one of
these or None. A bool is a switch; one that may be None has a second, --no-NAME.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

from chainroute.errors import ChainRouteError, Fault, Place


@dataclass(frozen=True)
class Option:
    help: str
    names: tuple[str, ...] = ()  # such as ("--out", "-o"); by default the parameter's own
    least: float | None = None
    most: float | None = None
    above: float | None = None  # which is not itself allowed
    unit: str = ""
    mark: str = ""  # what a label has of a value that is not the default, such as "-x{}"


@dataclass(frozen=True)
class Argument:
    help: str


@dataclass(frozen=True)
class Group:
    """Options of a dataclass, by name: each is an option of the command, which gets a dict of those given."""

    holder: type
    only: tuple[str, ...]
    prefix: str = ""  # of what help says


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
        return get_origin(self._present) in (list, tuple)

    @property
    def single(self) -> Any:
        """The type of one value."""
        return get_args(self._present)[0] if self.many else self._present

    @property
    def optional(self) -> bool:
        """Whether it may be None."""
        return NoneType in get_args(self.kind)

    @property
    def names(self) -> tuple[str, ...]:
        """What the option is called on the command line."""
        own = self.about.names if isinstance(self.about, Option) else ()
        return own or (f"--{self.name.replace('_', '-')}",)

    @property
    def _present(self) -> Any:
        """The type without None."""
        kinds = [kind for kind in get_args(self.kind) if kind is not NoneType]
        return kinds[0] if self.optional else self.kind

    def faults(self, value: object) -> list[Fault]:
        """What is wrong with a value: its type, or that it is out of range."""
        if value is None and self.optional:
            return []
        if not self.many:
            return self._faults(value, self.name)
        if not isinstance(value, tuple) or not value:
            message = f"must be a tuple of at least one number, not {value!r}."
            return [Fault("bad-option", message, self.name)]
        places = [Place(self.name, (i,)) for i in range(len(value))]
        return [fault for one, place in zip(value, places, strict=True) for fault in self._faults(one, place)]

    def _faults(self, value: object, place: Place | str) -> list[Fault]:
        about, kind = self.about, self.single
        assert isinstance(about, Option)
        if kind is bool:
            wanted, good = "true or false", type(value) is bool
        elif kind in (int, float):
            right = isinstance(value, int if kind is int else int | float) and not isinstance(value, bool)
            good = right and _within(value, about)  # type: ignore[arg-type]
            wanted = f"a{' whole' * (kind is int)} number{_span(about)}"
        else:
            return []
        return [] if good else [Fault("bad-option", f"must be {wanted}, not {value!r}.", place)]


@cache
def parameters(declared: Callable[..., Any]) -> list[Parameter]:
    """The parameters of a function or a dataclass; those of a group, each by itself."""
    hints = get_type_hints(declared, include_extras=True)
    found = []
    for name, parameter in inspect.signature(declared).parameters.items():
        kind, about = get_args(hints[name])
        if isinstance(about, Group):
            found += _members(about)
        else:
            found.append(Parameter(name, kind, about, parameter.default))
    return found


def grouped(command: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """What the command is called with: values by the names of `parameters`, those of a group in a dict."""
    rest = dict(given)
    for name, hint in get_type_hints(command, include_extras=True).items():
        about = get_args(hint)[1] if len(get_args(hint)) == 2 else None
        if isinstance(about, Group):
            values = {member: rest.pop(member) for member in about.only}
            own = {member: value for member, value in values.items() if value is not None and value != []}
            rest[name] = {m: tuple(v) if isinstance(v, list) else v for m, v in own.items()}
    return rest


def refuse(given: Mapping[str, object], solvers: str) -> None:
    """Tells which of the options are for other solvers than the one that was chosen."""
    remedy = "Leave the option out, or choose such a solver."
    faults = [
        Fault("bad-option", f"is for --solver {solvers}.", name, remedy)
        for name, value in given.items()
        if value is not None
    ]
    if faults:
        raise ChainRouteError(faults)


def on_command_line(error: ChainRouteError, command: Callable[..., Any]) -> ChainRouteError:
    """The error with its options called as the command calls them; a field of a file is none of them."""
    names = {p.name: p.names[0] for p in parameters(command) if isinstance(p.about, Option)}
    return ChainRouteError(
        f if f.at.file else f.moved(field=names.get(f.at.field, f.at.field)) for f in error.faults
    )


def _members(group: Group) -> list[Parameter]:
    every = {parameter.name: parameter for parameter in parameters(group.holder)}
    found = []
    for name in group.only:
        kind, about = every[name].kind, every[name].about
        assert isinstance(about, Option)
        help = group.prefix + (about.help[:1].lower() + about.help[1:] if group.prefix else about.help)
        found.append(Parameter(name, kind | None, replace(about, help=help), None))
    return found


def _within(value: float, about: Option) -> bool:
    return (
        (-math.inf if about.above is None else about.above) < value < math.inf
        and (about.least is None or about.least <= value)
        and (about.most is None or value <= about.most)
    )


def _span(about: Option) -> str:
    unit = f" of {about.unit}" if about.unit else ""
    if about.above is not None:
        return f"{unit} above {about.above:g}"
    if about.least is None:
        return unit
    if about.most is None:
        return f"{unit} of at least {about.least:g}"
    return f"{unit} from {about.least:g} to {_told(about.most)}"


def _told(number: float) -> str:
    power = math.log2(number + 1)
    return f"2^{power:g} - 1" if power >= 20 and power == int(power) else f"{number:g}"
