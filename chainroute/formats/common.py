"""What all formats share: words and numbers as text, and faults in the file's own words."""

import math
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from enum import StrEnum
from typing import Any

import numpy as np

from chainroute.errors import ChainRouteError, Fault, Place, fail, more
from chainroute.problem import Problem
from chainroute.problem.fields import MAX_FAULTS
from chainroute.problem.measure import FloatArray, Metric, Rounding, distance
from chainroute.problem.servable import CODES as IMPOSSIBLE
from chainroute.runtime.numerals import listed

# -- notes on what was read

_notes: ContextVar[list[str] | None] = ContextVar("notes", default=None)


@contextmanager
def noted() -> Iterator[list[str]]:
    """While it lasts, the list gets what there is to say of files that are read, though nothing is wrong."""
    notes: list[str] = []
    before = _notes.set(notes)
    try:
        yield notes
    finally:
        _notes.reset(before)


@contextmanager
def noted_of(path: object) -> Iterator[None]:
    """While it lasts, a file is read, by whose path its notes are known afterwards."""
    with noted() as notes:
        yield
    for text in notes:
        note(f"{path}, {text}", above=3)


def note(text: str, above: int = 0) -> None:
    """Says something of a file to whoever listens; in Python, where nobody does, it is a warning at so many
    calls above the one that says it."""
    if (notes := _notes.get()) is None:
        warnings.warn(text, stacklevel=2 + above)
    else:
        notes.append(text)


# -- words and numbers

Lines = list[tuple[int, list[str]]]  # the number of a line and its words


def lines_of(text: str) -> Lines:
    """The lines that are neither blank nor comments, which begin with #."""
    split = ((number, line.split()) for number, line in enumerate(text.splitlines(), 1))
    return [(number, words) for number, words in split if words and not words[0].startswith("#")]


def plain(value: float) -> str:
    """A number as text that reads back as the same number."""
    value = float(value)
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


def parsed(word: str) -> float | None:
    """The number that a word stands for, or None; NaN and infinity are numbers here."""
    try:
        return None if "_" in word else float(word)
    except ValueError:
        return None


def title(name: str, format: str) -> str:
    """The problem's name, if a line of text can hold it."""
    if not name.isprintable() or name != name.strip():
        raise fail("cannot-express", f"{format} cannot hold the name {name!r}.", "name")
    return name


# -- faults


class Faults:
    """Collects what is wrong with a file, at most twenty of each kind."""

    def __init__(self) -> None:
        self.found: list[Fault] = []
        self.seen: Counter[str] = Counter()

    def add(self, code: str, message: str, place: Place | str = "", remedy: str = "") -> None:
        self.seen[code] += 1
        if self.seen[code] <= MAX_FAULTS:
            self.found.append(Fault(code, message, place, remedy))

    def stop(self) -> None:
        """Ends the reading here if anything was found."""
        if self.found:
            raise self.error()

    def error(self) -> ChainRouteError:
        """All that was found: of each kind the first faults, and how many more there are."""
        beyond = {code: count - MAX_FAULTS for code, count in self.seen.items() if count > MAX_FAULTS}
        return ChainRouteError([*self.found, *(more(code, count) for code, count in beyond.items())])

    # -- the words of a line of text

    def numbers(self, words: list[str], where: str) -> list[float]:
        """One number per word; 0 for each that is faulty."""
        return [self.number(word, where) for word in words]

    def number(self, word: str, where: str) -> float:
        value = parsed(word)
        if value is None:
            self.add("bad-syntax", f"'{short(word)}' is not a number.", where)
        elif not math.isfinite(value):
            self.add("not-finite", f"'{short(word)}' is not a finite number.", where)
        else:
            return value
        return 0.0

    def whole(self, word: str, where: str) -> int | None:
        """The whole number that a word stands for; None for a faulty one."""
        if (value := parsed(word)) is not None and value.is_integer():
            return int(value)
        self.add("bad-syntax", f"'{short(word)}' is not a whole number.", where)
        return None


def short(word: str) -> str:
    """What is quoted of a text that may be megabytes long."""
    return word if len(word) <= 40 else f"{word[:40]}..."


Spot = Callable[[Place], str]  # says where in the file a place of a Problem stands


NAMED_CUSTOMERS = 5  # customers that a note names
_drops: ContextVar[bool] = ContextVar("drops", default=False)


@contextmanager
def dropping_impossible(drops: bool) -> Iterator[None]:
    """While it lasts, problems are read without the customers that no vehicle can serve."""
    before = _drops.set(drops)
    try:
        yield
    finally:
        _drops.reset(before)


def build(spot: Spot, **fields: Any) -> Problem:
    """A Problem whose faults, if any, say where in the file they are."""
    try:
        return _made(fields)
    except ChainRouteError as error:
        raise ChainRouteError(fault.moved(within=spot(fault.at)) for fault in error.faults) from None


def _made(fields: dict[str, Any]) -> Problem:
    try:
        return Problem(**fields)
    except ChainRouteError as error:
        if not _drops.get() or {fault.code for fault in error.faults}.isdisjoint(IMPOSSIBLE):
            raise
    return _without_impossible(fields)


def _without_impossible(fields: dict[str, Any]) -> Problem:
    """The problem whose impossible customers may be left out at no price; a plan lists them with reasons."""
    everyone = Problem(**fields | {"prize": np.zeros(len(fields["delivery"]))})
    impossible = ~everyone.reach.possible
    given = np.array(fields.get("prize", ()), dtype=float)
    prize = given if len(given) else np.full(len(impossible), math.inf)
    problem = Problem(**fields | {"prize": np.where(impossible & np.isinf(prize), 0.0, prize)})
    names = [short(problem.names[problem.num_depots + int(i)]) for i in np.flatnonzero(impossible)]
    customers = "1 customer is" if len(names) == 1 else f"{len(names)} customers are"
    note(f"{customers} left out, as no vehicle can serve them: {listed(names, NAMED_CUSTOMERS)}.", above=3)
    return problem


# -- costs


class CostObjective(StrEnum):
    DISTANCE = "distance"
    TIME = "time"
    MONEY = "money"


def costs_of(objective: CostObjective, given: Mapping[str, float]) -> dict[str, float]:
    """The costs that the objective stands for; those that are given come on top."""
    least = {
        CostObjective.DISTANCE: {},
        CostObjective.TIME: {"cost_per_distance": 0.0, "cost_per_time": 1.0},
        CostObjective.MONEY: {"cost_per_distance": 0.0},
    }
    return least[objective] | dict(given)


# -- speed and roads

# Gives the metres and the seconds from place to place, by longitude and latitude.
Roads = Callable[[FloatArray], tuple[FloatArray, FloatArray]]


def measured(
    roads: Roads, coords: Any, metric: Metric, has_matrix: bool, timed: bool, day: str | None
) -> Any:
    """Distances and durations of the roads, if the problem has a place on the map and counts in seconds."""
    if coords is None or metric is not Metric.HAVERSINE:
        raise fail(
            "bad-option", "roads are measured between longitudes and latitudes; there are none.", "--roads"
        )
    if has_matrix:
        raise fail("bad-option", "the file gives a matrix of its own.", "--roads")
    if timed and day is None:
        message = (
            "a routing server counts in seconds; say that the file does, too, by times of day or its 'day'."
        )
        raise fail("unit-missing", message, "day")
    array = np.array(coords, dtype=float)
    off = ~np.isfinite(array).all(axis=1) | (np.abs(array) > (180.0, 90.0)).any(axis=1)
    return (None, None) if off.any() else roads(array)  # which is for the problem to tell


def durations_at(
    speed: float, coords: Any, metric: Metric, rounding: Rounding, distances: Any
) -> FloatArray | None:
    """Durations at this speed, of the matrix of distances or, without one, between the coordinates."""
    try:
        given = np.array(coords if distances is None else distances, dtype=float)
        given[np.isnan(given)] = np.inf if distances is not None else np.nan  # null: no road
    except ValueError:  # rows of different lengths, which is for the problem to tell
        return None
    with np.errstate(over="ignore"):
        if distances is None and coords is not None:
            given = distance(metric, rounding, given[:, None], given[None, :])
        # A duration that overflows is no missing road: it is told as too large.
        return np.where(np.isinf(given), given, np.minimum(given / speed, np.finfo(float).max))


def speed_of(p: Problem) -> float | None:
    """The speed at which all durations are the distances, if there is one."""
    if p.duration_matrix is None or (p.distance_matrix is None and not p.has_all_roads):
        return None  # a road that only the durations lack would be lost
    finite = np.where(np.isfinite(p.duration_matrix), p.duration_matrix, 0.0)
    longest = np.unravel_index(finite.argmax(), finite.shape)
    if finite[longest] == 0:
        return None
    exact = float(p.distances[longest] / p.duration_matrix[longest])
    for speed in (float(f"{exact:.12g}"), exact):
        if speed > 0 and np.array_equal(p.distances / speed, p.duration_matrix):
            return speed
    return None
