"""Coded errors: what is wrong, where, and how to fix it.

Everything a user can get wrong becomes a `Fault` with a code that stays the same between versions. Checks
collect all faults they find and raise them together, so that a file is corrected in one go.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from traceback import extract_tb
from typing import Any

# Every code with its remedy. docs/errors.md lists this table; a test keeps the two equal.
CODES: dict[str, str] = {
    # -- the problem itself
    "no-depot": "Give at least one depot.",
    "no-customer": "Give at least one customer.",
    "too-large": "Split the problem, or drop locations, until it is within the stated size.",
    "no-distances": "Give coordinates, a distance matrix, or both.",
    "wrong-shape": "Give one entry per location (depots first, then customers), or per customer, as asked.",
    "wrong-type": "Give the field as the kind of value it asks for.",
    "not-finite": "Replace NaN and infinity by numbers.",
    "number-too-large": "Give the numbers in a larger unit.",
    "negative": "Give a value of at least zero.",
    "not-positive": "Give a value greater than zero.",
    "coordinate-range": "Give longitude within [-180, 180] and latitude within [-90, 90], in that order.",
    "matrix-not-square": "Give one row and one column per location, depots first.",
    "matrix-diagonal": "Set the distance from each location to itself to zero.",
    "window-reversed": "Let each time window open no later than it closes.",
    "duplicate-name": "Give every location a name of its own.",
    "unknown-value": "Use one of the listed values.",
    "backhaul-rule-missing": "Say whether backhauls come after the linehauls (linehauls-first) or mixed.",
    "demand-above-capacity": "Raise the capacity or split the customer's demand.",
    "window-unreachable": "Widen the window, shorten the service, or open a depot nearer or longer.",
    "no-road": "Give the missing roads a length, or leave the customer out.",
    "limit-too-short": "Raise the distance limit to at least the shortest round trip to the customer.",
    "fleet-too-small": "Give more vehicles: even full ones cannot carry all demand.",
    "skill-missing": "Let a vehicle type do what the customer needs, or let the customer be left out.",
    "conflicting-fields": "Give one of the two.",
    "unsupported-feature": "Leave the feature out, or take what the message names (docs/modelling.md).",
    # -- variants
    "unknown-variant": "Use one of the 48 names that `chainroute variants` lists.",
    # -- solutions
    "unknown-location": "Use the customers and depots of the problem.",
    "unknown-vehicle": "Use the vehicle types of the problem.",
    # -- files
    "file-not-found": "Check the path.",
    "file-unreadable": "Check that the path is a file you may read.",
    "file-unwritable": "Check that the folder exists, has space and may be written to.",
    "file-empty": "Give a file with content.",
    "file-too-large": "Give a smaller file.",
    "not-text": "Give a text file (UTF-8), or an .npz of the benchmark.",
    "not-a-problem": "Give the problem that it goes with; routes are for `chainroute check` and `--initial`.",
    "unknown-format": "Give VRPLIB, Solomon, Cordeau, JSON, CSV, Excel or .npz; as routes also .sol, .res.",
    "bad-syntax": "Correct the named line.",
    "missing-section": "Add the section that the format asks for.",
    "duplicate-section": "Keep one of the sections of that name.",
    "wrong-count": "Make the number of entries agree with the file's header.",
    "missing-field": "Add the field.",
    "unit-missing": "Say the unit in the heading, such as 'service (min)', 'speed (km/h)' or 'x (km)'.",
    "unknown-field": "Remove the field or correct its spelling.",
    "cannot-express": "Choose another output format; this one cannot hold the problem.",
    # -- roads
    "roads-unreachable": "Check --roads-url, and that the routing server runs there; or try again later.",
    "roads-refused": "Correct what the server names: places off its map, the profile, the key, its limits.",
    "roads-not-understood": "Check that --roads names the kind of server that is at --roads-url.",
    # -- weights
    "weights-missing": "Check the path: it is a folder with model.safetensors and config.json, or two files.",
    "weights-corrupt": "Fetch or save both files of the policy again.",
    "weights-mismatch": "Keep a policy's two files together, and read them with the version that wrote them.",
    "weights-untrusted": "Give --trust-code (in Python trust_code=True) if you know the code.",
    "unknown-block": "Name a class of torch modules that Python can import, as `module:Class`.",
    "block-failed": "Correct the class: docs/extending.md says how blocks are made and called.",
    "weights-not-finite": "Go back to weights from before the training diverged.",
    # -- solving
    "bad-option": "Give the option a value in its range.",
    "missing-extra": "Install the extra that the message names.",
    "broken-extra": "Install that library again, with what it needs of the system.",
    "infeasible-start": "Give a start that `chainroute check` accepts, or none.",
    "no-solution": "Relax the constraint that binds (`--explain`): no plan keeps them all.",
    "no-plan-found": "Give more time, another solver, or relax what binds (`--explain`).",
    "cluster-failed": "Look at `ray status` for nodes with free cores, then solve again with --resume.",
    "solver-failed": "Run again; if it persists, report the problem file.",
    # -- training
    "other-config": "Give the recipe that the run began with, or begin a new run.",
    "run-exists": "Continue the run, or choose another folder.",
    "snapshot-broken": "Restore the file from a copy, or remove it to begin again.",
    "diverged": "Continue from the last snapshot with a lower learning rate or another seed, as a new run.",
    "out-of-memory": "Give a smaller batch or smaller problems.",
    # -- evaluating
    "data-missing": "Get the sets as docs/evaluating.md says, or name with --task those that you have.",
    "bad-result": "Give a result file, NAME.json (with its NAME.npz, to compare costs), or run it again.",
    "other-settings": "Choose another label or another folder: results of different settings are kept apart.",
    # -- the service
    "unknown-address": "Use the addresses, methods and names that docs/service.md lists.",
    "unknown-job": "Send the problem again: jobs are forgotten after a while.",
    "unauthorized": "Send the token of the service: `Authorization: Bearer TOKEN`.",
    "unknown-host": "Use a name that the service was started for; `--allow-host NAME` adds one.",
    "foreign-origin": "Use the service's own page, or start it with `--allow-origin ORIGIN`.",
    "unknown-content-type": "Send application/json, text/csv, or multipart/form-data with a `file`.",
    "key-reused": "Give each order an Idempotency-Key of its own.",
    "webhook-not-allowed": "Use an address of a place that `chainroute serve --allow-webhook` names.",
    "no-road-server": "Start the service with --roads and --roads-url, or leave `roads` out.",
    "service-unreachable": "Check the address, and that the service runs there.",
    "too-slow": "Send the whole request within the stated time.",
    "text-too-long": "Shorten the name.",
    "reading-too-long": "Give a smaller or simpler problem.",
    "busy": "Try again after as many seconds as `Retry-After` says.",
    # -- ours
    "internal-error": "This is our fault: report the message and the problem file.",
}  # fmt: skip


WEIGHTS = frozenset(code for code in CODES if code.startswith("weights-")) | {"unknown-block", "block-failed"}
# What the next problem would end in as well: options, or what is installed, not the problem.
FOR_ALL = WEIGHTS | {"bad-option", "missing-extra", "broken-extra", "infeasible-start"}

BROKEN_OFF = frozenset({"solver-failed", "internal-error"})  # the input is not to blame

USE_LISTED = CODES["unknown-value"]  # the remedy of an option that is none of its values


@dataclass(frozen=True)
class Place:
    """Where something is wrong, as data; as text, it is how all who report it say it."""

    field: str = ""  # of the problem; or an option, a section, a route, a name
    entry: tuple[int, ...] = ()  # which entry of the field
    location: int | None = None  # of the problem, depots first
    name: str = ""  # what that location is called
    within: str = ""  # where that stands in a file, in the file's own words, such as "line 12"
    file: str = ""
    owner: tuple[str, int] | None = None  # the element of a list that has the field: ("vehicle_types", 2)

    @property
    def path(self) -> str:
        """Where it stands in the file or document, such as customers[3].window; else the field."""
        return self.within or self.owned_field + self._entry

    @property
    def owned_field(self) -> str:
        """The field and what has it, such as vehicle_types[2].capacity."""
        return self.field if self.owner is None else f"{self.owner[0]}[{self.owner[1]}].{self.field}"

    @property
    def _entry(self) -> str:
        return f"[{', '.join(map(str, self.entry))}]" if self.entry else ""

    def __str__(self) -> str:
        called = f" '{self.name}'" if self.name else ""
        what = f"{self.owned_field}{called}{self._entry}"
        if self.within:
            what = f"{what} ({self.within})" if self.name else self.within
        return f"{self.file}: {what}" if self.file and what else self.file or what


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong: what, where, and how to correct it."""

    code: str
    message: str
    place: Place | str | os.PathLike[str] = Place()  # a str is the field, a path the file
    remedy: str = ""  # where it is not the one of the code
    cause: str = ""  # what a library or the system said, which may tell of the machine

    def __post_init__(self) -> None:
        if self.code not in CODES:
            raise KeyError(f"fault code {self.code!r} is not in errors.CODES")
        if isinstance(self.place, str):
            object.__setattr__(self, "place", Place(self.place))
        elif isinstance(self.place, os.PathLike):
            object.__setattr__(self, "place", Place(file=os.fspath(self.place)))
        object.__setattr__(self, "remedy", self.remedy or CODES[self.code])

    @property
    def at(self) -> Place:
        assert isinstance(self.place, Place)  # since __post_init__
        return self.place

    @property
    def where(self) -> str:
        """The place in words."""
        return str(self.place)

    @property
    def told(self) -> str:
        """The message, with the cause."""
        return f"{self.message.rstrip('.')}: {self.cause.rstrip('.')}." if self.cause else self.message

    def moved(self, **changes: Any) -> Fault:
        """The same at another place: with other values of fields of `Place`."""
        return replace(self, place=replace(self.at, **changes))

    def as_dict(self) -> dict[str, Any]:
        return {
            "code": self.code,
            "where": self.where,
            "path": self.at.path,
            "field": self.at.owned_field,
            "location": self.at.location,
            "message": self.told,
            "remedy": self.remedy,
        }

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        return printable(f"[{self.code}] {place}{self.told} {self.remedy}")


class ChainRouteError(Exception):
    """Something the user can fix. Carries every fault that was found."""

    def __init__(self, faults: Iterable[Fault]):
        self.faults = tuple(faults)
        super().__init__("\n".join(map(str, self.faults)))

    def __reduce__(self) -> tuple[type[ChainRouteError], tuple[tuple[Fault, ...]]]:
        return type(self), (self.faults,)  # so that it crosses process borders whole


def fail(
    code: str, message: str, place: Place | str | os.PathLike[str] = "", remedy: str = "", cause: str = ""
) -> ChainRouteError:
    """A single fault as an exception: `raise fail("bad-option", ..., "time_limit")`."""
    return ChainRouteError([Fault(code, message, place, remedy, cause)])


def coded(error: BaseException, place: Place | str | os.PathLike[str] = "") -> ChainRouteError:
    """The error itself if it is coded; any other is an internal error, with its place in the program."""
    if isinstance(error, ChainRouteError):
        return error
    found = extract_tb(error.__traceback__)
    line = f" ({os.path.basename(found[-1].filename)}, line {found[-1].lineno})" if found else ""
    return fail("internal-error", f"{type(error).__name__}: {error}{line}.", place)


def more(code: str, count: int, place: Place | str = "") -> Fault:
    """Stands for further faults of a kind, where the first have been told."""
    return Fault(code, f"and {count} more.", place)


# What a terminal acts on: control characters, line separators, and marks that turn the direction of text.
_ACTED_ON = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """The text on one line, with what a terminal would act on shown as escapes, such as \\x1b."""
    return _ACTED_ON.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
