"""Kinds of fields: numbers, choices, arrays and matrices, each checked and brought into its final form."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chainroute.errors import Fault, Place, more
from chainroute.problem.measure import FloatArray
from chainroute.problem.roads import mark_absurd
from chainroute.runtime.numerals import number_text

MAX_NUMBER = 1e100  # of any number given, so that no sum or square of them overflows
LEAST_NUMBER = 1e-100  # of those that must be positive: less is as good as 0, and no quotient overflows
TOO_LARGE = f"numbers may be up to {MAX_NUMBER:g}."
MAX_FAULTS = 20  # of one kind in one field; a file that is wrong throughout is told so once


def told_of_each(
    field: Place | str, bad: NDArray[np.bool_], code: str, tell: Callable[[Any], tuple[str, Place]]
) -> list[Fault]:
    """A fault, told as a message and its place, for the first bad places, and how many more there are."""
    if not bad.any():  # as a rule
        return []
    places = np.argwhere(bad)
    faults = [
        Fault(code, *tell(tuple(place.tolist()) if bad.ndim > 1 else int(place[0])))
        for place in places[:MAX_FAULTS]
    ]
    return faults if len(places) <= MAX_FAULTS else [*faults, more(code, len(places) - MAX_FAULTS, field)]


def frozen(array: FloatArray) -> FloatArray:
    array.flags.writeable = False
    return array


def is_missing(value: object) -> bool:
    return value.size == 0 if isinstance(value, np.ndarray) else isinstance(value, tuple | list) and not value


class Checks:
    """Fields by name, brought into their final form one by one, and the faults found on the way."""

    def __init__(
        self,
        fields: dict[str, Any],
        owner: tuple[str, int] | None = None,
        of_customers: Collection[str] = (),
    ):
        self.fields = fields
        self.of_customers = of_customers  # fields with an entry for each customer; others for each location
        self.owner = owner  # what has the fields, where that is not the problem itself
        self.faults: list[Fault] = []

    def fault(self, code: str, message: str, field: str | Place) -> None:
        place = Place(field, owner=self.owner) if isinstance(field, str) else field
        self.faults.append(Fault(code, message, place))

    def place(self, field: str, entry: int | tuple[int, ...]) -> Place:
        """Names an entry of an array, which has one for each location, or for each customer."""
        entry = entry if isinstance(entry, tuple) else (entry,)
        before = int(self.fields["num_depots"]) if field in self.of_customers else 0
        return Place(field, entry, entry[0] + before, owner=self.owner)

    def each(
        self, field: str, bad: NDArray[np.bool_], code: str, tell: Callable[[Any], tuple[str, Place]]
    ) -> None:
        self.faults += told_of_each(Place(field, owner=self.owner), bad, code, tell)

    def entries(self, field: str, bad: NDArray[np.bool_], code: str, message: str = "is {}.") -> None:
        """A fault for each bad entry of an array."""
        value = np.asarray(self.fields[field])

        def tell(entry: Any) -> tuple[str, Place]:
            return message.format(number_text(value[entry])), self.place(field, entry)

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
        if isinstance(value, float | np.floating) and float(value).is_integer():
            value = int(value)  # of a table of pandas, say, where a column with gaps has no other numbers
        if isinstance(value, bool) or not isinstance(value, int | np.integer):
            self.fault("wrong-type", f"must be a whole number, not {value!r}.", field)
        elif value > MAX_NUMBER:
            self.fault("number-too-large", TOO_LARGE, field)
        elif value < least:
            self.fault(code, message, field)
        else:
            self.fields[field] = int(value)
            return True
        return False

    def positive(self, field: str) -> None:
        if self.number(field) and self.fields[field] < LEAST_NUMBER:
            self.fault("not-positive", f"is {number_text(self.fields[field])}.", field)

    def at_least_zero(self, field: str) -> None:
        if self.number(field) and self.fields[field] < 0:
            self.fault("negative", f"is {number_text(self.fields[field])}.", field)

    def text(self, field: str) -> None:
        if not isinstance(value := self.fields[field], str):
            self.fault("wrong-type", f"must be a text, not {value!r}.", field)

    def counted(self, field: str) -> None:
        """A whole number of one or more."""
        self.whole(field, 1, "not-positive", f"is {self.fields[field]}.")

    def boolean(self, field: str) -> None:
        value = self.fields[field]
        if not isinstance(value, bool | np.bool_):
            self.fault("wrong-type", f"must be true or false, not {value!r}.", field)
        else:
            self.fields[field] = bool(value)

    def texts(self, field: str) -> None:
        """A set of texts."""
        value = self.fields[field]
        if not isinstance(value, frozenset | set | list | tuple) or not all(
            isinstance(v, str) for v in value
        ):
            self.fault("wrong-type", "must be a list of texts.", field)
        else:
            self.fields[field] = frozenset(value)

    def number(self, field: str) -> bool:
        """Whether the field is a finite number."""
        value = self.fields[field]
        value = value.item() if isinstance(value, np.number) else value
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.fault("wrong-type", f"must be a number, not {value!r}.", field)
        elif isinstance(value, float) and not math.isfinite(value):
            self.fault("not-finite", f"is {value}.", field)
        elif not -MAX_NUMBER <= value <= MAX_NUMBER:
            self.fault("number-too-large", TOO_LARGE, field)
        else:
            self.fields[field] = float(value)
            return True
        return False

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
        if (np.abs(value) <= MAX_NUMBER).all():  # as a rule
            return True
        bad = np.isnan(value) if infinite else ~np.isfinite(value)
        huge = np.isfinite(value) & (np.abs(value) > MAX_NUMBER)
        self.entries(field, bad, "not-finite")
        self.entries(field, huge, "number-too-large", f"is {{}}; {TOO_LARGE}")
        return not (bad | huge).any()

    def matrices(self, num_depots: int, num_locations: int, open: bool) -> None:
        """The lengths and durations of all ways, where they are given.

        Entries that stand for no road become infinite; where one matrix has no road, the other has none. So
        what is absurd in one is judged by the roads that the other has: together they cut nobody off.
        """
        given = [f for f in ("distance_matrix", "duration_matrix") if self.matrix(f, num_locations)]
        gone = np.zeros((num_locations, num_locations), dtype=bool)
        for field in given:
            gone |= np.isinf(self.fields[field])
        for field in given:
            np.fill_diagonal(gone, False)
            matrix = mark_absurd(np.where(gone, np.inf, self.fields[field]), num_depots, open)
            self.stays(field, np.diagonal(matrix))
            gone |= np.isinf(matrix)
        for field in given:
            matrix = np.where(gone, np.inf, self.fields[field])
            stays = np.diagonal(matrix)
            np.fill_diagonal(matrix, np.where(np.isinf(stays), 0.0, stays))
            self.fields[field] = frozen(matrix)

    def stays(self, field: str, diagonal: FloatArray) -> None:
        """Finds the locations that are away from themselves; none needs a road there."""
        away = np.isfinite(diagonal) & (diagonal > 0)
        here = "a location is away from itself."
        self.each(field, away, "matrix-diagonal", lambda i: (here, self.place(field, (i, i))))

    def matrix(self, field: str, n: int) -> bool:
        """Whether there is a matrix, and its entries are sound."""
        value = self.fields[field]
        if value is None:
            return False
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
            return False
        if not self.array(field, (n, n), infinite=True):
            return False
        self.nonnegative(field)
        return not (self.fields[field] < 0).any()

    def nonnegative(self, field: str) -> None:
        self.entries(field, self.fields[field] < 0, "negative")
