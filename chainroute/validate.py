"""What makes each field of a problem sound, all faults reported at once.

`validated` takes the fields as they were given and returns them in their final form (read-only float64
arrays, names filled in). What the fields mean together is for `servable`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import date
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chainroute.errors import ChainRouteError, Fault, Place, more
from chainroute.measure import ANY_DAY, FloatArray, Metric, Rounding
from chainroute.numerals import told
from chainroute.roads import closed
from chainroute.variants import Backhaul

MAX_LOCATIONS = 10_000  # a dense distance matrix of this size takes 800 MB
LARGEST = 1e100  # of any number given, so that no sum or square of them overflows
TOO_LARGE = f"numbers may be up to {LARGEST:g}."
OF_CUSTOMERS = ("delivery", "pickup", "service")  # fields without entries for depots
MAX_FAULTS = 20  # of one kind in one field; a file that is wrong throughout is told so once


def validated(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a problem in their final form; all their faults are raised together."""
    checks = _Checks(dict(fields))
    checks.run()
    if checks.faults:
        raise ChainRouteError(checks.faults)
    return checks.fields


def told_of_each(
    field: str, bad: NDArray[np.bool_], code: str, tell: Callable[[Any], tuple[str, Place]]
) -> list[Fault]:
    """A fault, told as a message and its place, for the first bad places, and how many more there are."""
    places = np.argwhere(bad)
    faults = [
        Fault(code, *tell(tuple(place.tolist()) if bad.ndim > 1 else int(place[0])))
        for place in places[:MAX_FAULTS]
    ]
    return faults if len(places) <= MAX_FAULTS else [*faults, more(code, len(places) - MAX_FAULTS, field)]


def frozen(array: FloatArray) -> FloatArray:
    array.flags.writeable = False
    return array


def _left_out(value: object) -> bool:
    return value.size == 0 if isinstance(value, np.ndarray) else isinstance(value, tuple | list) and not value


def is_day(day: object) -> bool:
    """Whether this says which day it is: a date in ISO's spelling, any, or nothing at all."""
    if day is None or day == ANY_DAY:
        return True
    try:
        return isinstance(day, str) and date.fromisoformat(day).isoformat() == day
    except ValueError:
        return False


class _Checks:
    def __init__(self, fields: dict[str, Any]):
        self.fields = fields
        self.faults: list[Fault] = []

    def run(self) -> None:
        self.choices()
        if self.sizes():
            self.demands()
            self.numbers()
            self.places()
            self.windows()
            self.labels()

    @property
    def num_customers(self) -> int:
        return len(self.fields["delivery"])

    @property
    def num_locations(self) -> int:
        return int(self.fields["num_depots"]) + self.num_customers

    def fault(self, code: str, message: str, field: str) -> None:
        self.faults.append(Fault(code, message, field))

    def place(self, field: str, entry: int | tuple[int, ...]) -> Place:
        """Of an entry of an array, which has one for each location, or for each customer."""
        entry = entry if isinstance(entry, tuple) else (entry,)
        before = int(self.fields["num_depots"]) if field in OF_CUSTOMERS else 0
        return Place(field, entry, entry[0] + before)

    def each(
        self, field: str, bad: NDArray[np.bool_], code: str, tell: Callable[[Any], tuple[str, Place]]
    ) -> None:
        self.faults += told_of_each(field, bad, code, tell)

    def entries(self, field: str, bad: NDArray[np.bool_], code: str, message: str = "is {}.") -> None:
        """A fault for each bad entry of an array."""
        value = np.asarray(self.fields[field])

        def tell(entry: Any) -> tuple[str, Place]:
            return message.format(told(value[entry])), self.place(field, entry)

        self.each(field, bad, code, tell)

    # -- kinds of fields

    def choice(self, field: str, kind: type[StrEnum]) -> None:
        value = self.fields[field]
        try:
            self.fields[field] = kind(value)
        except ValueError:
            self.fault("unknown-value", f"'{value}' is not one of {', '.join(kind)}.", field)

    def whole(self, field: str, least: int, code: str, message: str) -> bool:
        value = self.fields[field]
        if isinstance(value, bool) or not isinstance(value, int | np.integer):
            self.fault("wrong-type", f"must be a whole number, not {value!r}.", field)
        elif value > LARGEST:
            self.fault("number-too-large", TOO_LARGE, field)
        elif value < least:
            self.fault(code, message, field)
        else:
            self.fields[field] = int(value)
            return True
        return False

    def positive(self, field: str) -> None:
        value = self.fields[field]
        value = value.item() if isinstance(value, np.number) else value
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.fault("wrong-type", f"must be a number, not {value!r}.", field)
        elif isinstance(value, float) and not math.isfinite(value):
            self.fault("not-finite", f"is {value}.", field)
        elif not -LARGEST <= value <= LARGEST:
            self.fault("number-too-large", TOO_LARGE, field)
        elif value <= 0:
            self.fault("not-positive", f"is {told(value)}.", field)
        else:
            self.fields[field] = float(value)

    def array(self, field: str, shape: tuple[int | None, ...], infinite: bool = False) -> bool:
        try:
            value = np.array(self.fields[field], dtype=np.float64)
        except OverflowError:
            self.fault("number-too-large", TOO_LARGE, field)
            return False
        except (TypeError, ValueError):
            self.fault("wrong-type", "must be an array of numbers with rows of one length.", field)
            return False
        fits = len(value.shape) == len(shape)
        if not fits or any(s not in (None, v) for s, v in zip(shape, value.shape, strict=True)):
            wanted = " x ".join("any" if s is None else str(s) for s in shape)
            got = " x ".join(map(str, value.shape)) or "a single number"
            self.fault("wrong-shape", f"has shape {got} where {wanted} is needed.", field)
            return False
        self.fields[field] = frozen(value)
        bad = np.isnan(value) if infinite else ~np.isfinite(value)
        huge = np.isfinite(value) & (np.abs(value) > LARGEST)
        self.entries(field, bad, "not-finite")
        self.entries(field, huge, "number-too-large", f"is {{}}; {TOO_LARGE}")
        return not (bad | huge).any()

    def nonnegative(self, field: str) -> None:
        self.entries(field, self.fields[field] < 0, "negative")

    # -- each field for itself

    def choices(self) -> None:
        for field, kind in (("backhaul", Backhaul), ("metric", Metric), ("rounding", Rounding)):
            self.choice(field, kind)
        for field in ("open", "limit_counts_service"):
            value = self.fields[field]
            if not isinstance(value, bool | np.bool_):
                self.fault("wrong-type", f"must be true or false, not {value!r}.", field)
            else:
                self.fields[field] = bool(value)

    def sizes(self) -> bool:
        """The number of depots and customers, which all other checks need."""
        if not self.whole("num_depots", 1, "no-depot", "the problem has no depot."):
            return False
        if not self.array("delivery", (None,)):
            return False
        if self.num_customers < 1:
            self.fault("no-customer", "the problem has no customers.", "delivery")
        elif self.num_locations > MAX_LOCATIONS:
            self.fault("too-large", f"{self.num_locations} locations; at most {MAX_LOCATIONS}.", "delivery")
        else:
            return True
        return False

    def demands(self) -> None:
        self.nonnegative("delivery")
        for field in ("pickup", "service"):
            if _left_out(self.fields[field]):
                self.fields[field] = frozen(np.zeros(self.num_customers))
            elif self.array(field, (self.num_customers,)):
                self.nonnegative(field)

    def numbers(self) -> None:
        p = self.fields
        self.positive("capacity")
        if isinstance(p["distance_limit"], float) and p["distance_limit"] == math.inf:
            self.fields["distance_limit"] = None
        if p["distance_limit"] is not None:
            self.positive("distance_limit")
        if p["fleet"] is not None:
            self.whole("fleet", 1, "not-positive", f"is {p['fleet']}.")

    def places(self) -> None:
        p = self.fields
        if p["coords"] is None and p["distance_matrix"] is None:
            self.fault("no-distances", "there are neither coordinates nor a distance matrix.", "coords")
        if p["coords"] is not None and self.array("coords", (self.num_locations, 2)):
            lon, lat = np.abs(p["coords"]).T
            off = ((lon > 180) | (lat > 90)) & (p["metric"] is Metric.HAVERSINE)
            places = p["coords"].tolist()
            self.each(
                "coords",
                off,
                "coordinate-range",
                lambda i: (
                    f"({', '.join(map(told, places[i]))}) is not on the globe.",
                    self.place("coords", i),
                ),
            )
        given = [f for f in ("distance_matrix", "duration_matrix") if p[f] is not None]
        sound = [self.matrix(field) for field in given]
        if len(given) == 2 and all(sound):  # where one has no road, the other has none
            gone = np.isinf(p["distance_matrix"]) | np.isinf(p["duration_matrix"])
            for field in given if gone.any() else ():
                self.fields[field] = frozen(np.where(gone, np.inf, p[field]))

    def matrix(self, field: str) -> bool:
        """Whether the matrix is sound. Entries that stand for no road become infinite."""
        value, n = self.fields[field], self.num_locations
        if isinstance(value, list | tuple) and any(isinstance(r, list | tuple) and None in r for r in value):
            value = [
                [math.inf if d is None else d for d in r] if isinstance(r, list | tuple) else r for r in value
            ]
            self.fields[field] = value
        try:
            shape = np.shape(value)
        except ValueError:  # ragged, which `array` reports
            shape = (n, n)
        if len(shape) == 2 and shape[0] != shape[1]:
            self.fault("matrix-not-square", f"has {shape[0]} rows and {shape[1]} columns.", field)
        elif self.array(field, (n, n), infinite=True):
            matrix = self.fields[field]
            self.nonnegative(field)
            if (matrix < 0).any():
                return False
            matrix = closed(matrix, self.fields["num_depots"], bool(self.fields["open"])).copy()
            stays = np.diagonal(matrix)
            np.fill_diagonal(matrix, np.where(np.isinf(stays), 0.0, stays))
            self.fields[field] = frozen(matrix)
            here = "a location is away from itself."
            self.each(field, stays > 0, "matrix-diagonal", lambda i: (here, self.place(field, (i, i))))
            return not (stays > 0).any()
        return False

    def windows(self) -> None:
        p = self.fields
        if p["time_windows"] is None or not self.array(
            "time_windows", (self.num_locations, 2), infinite=True
        ):
            return
        opening, closing = p["time_windows"].T
        never = "a window must open at a finite time."
        unopened = ~np.isfinite(opening)
        self.each("time_windows", unopened, "not-finite", lambda i: (never, self.place("time_windows", i)))

        def reversed_(i: Any) -> tuple[str, Place]:
            message = f"opens at {told(opening[i])} and closes at {told(closing[i])}."
            return message, self.place("time_windows", i)

        self.each("time_windows", opening > closing, "window-reversed", reversed_)

    def labels(self) -> None:
        name, names, m = self.fields["name"], self.fields["names"], self.fields["num_depots"]
        if not isinstance(name, str):
            self.fault("wrong-type", f"must be a text, not {name!r}.", "name")
        if not is_day(day := self.fields["day"]):
            self.fault(
                "unknown-value", f"{day!r} is neither a date, such as 2026-11-16, nor '{ANY_DAY}'.", "day"
            )
        if isinstance(names, np.ndarray):
            names = tuple(names.tolist())
        if not isinstance(names, tuple | list) or not all(isinstance(n, str) for n in names):
            self.fault("wrong-type", "must be a list of texts.", "names")
        elif not names:
            depots = ["depot"] if m == 1 else [f"depot {d + 1}" for d in range(m)]
            self.fields["names"] = (*depots, *(str(i + 1) for i in range(self.num_customers)))
        elif len(names) != self.num_locations:
            self.fault(
                "wrong-shape", f"has {len(names)} entries for {self.num_locations} locations.", "names"
            )
        else:
            self.fields["names"] = tuple(names)
            twice = sorted(name for name, count in Counter(names).items() if count > 1)
            message = "'{}' is used more than once."
            every = np.ones(len(twice), dtype=bool)
            self.each("names", every, "duplicate-name", lambda i: (message.format(twice[i]), Place("names")))
