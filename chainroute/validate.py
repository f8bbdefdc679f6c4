"""What makes a problem sound: every field checked, all faults reported at once.

`validate` also brings the fields into their final form (read-only float64 arrays, names filled in). A sound
problem is one in which every customer could be served by a route of its own, so each fault of that kind names
the customer and the reason.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from chainroute.errors import ChainRouteError, Fault, more
from chainroute.measure import FloatArray, Metric, Rounding, at_most
from chainroute.numerals import told
from chainroute.roads import closed
from chainroute.variants import Backhaul

if TYPE_CHECKING:
    from chainroute.problem import Problem

MAX_LOCATIONS = 10_000  # a dense distance matrix of this size takes 800 MB
LARGEST = 1e100  # of any number given, so that no sum or square of them overflows
TOO_LARGE = f"numbers may be up to {LARGEST:g}."
MAX_FAULTS = 20  # of one kind in one field; a file that is wrong throughout is told so once


def validate(problem: Problem) -> None:
    """Raises all faults of the problem together."""
    checks = _Checks(problem)
    checks.run()
    if checks.faults:
        raise ChainRouteError(checks.faults)


def frozen(array: FloatArray) -> FloatArray:
    array.flags.writeable = False
    return array


def _left_out(value: object) -> bool:
    return value.size == 0 if isinstance(value, np.ndarray) else isinstance(value, tuple | list) and not value


class _Checks:
    def __init__(self, problem: Problem):
        self.problem = problem
        self.faults: list[Fault] = []

    def run(self) -> None:
        self.choices()
        if self.sizes():
            self.demands()
            self.numbers()
            self.places()
            self.windows()
            self.labels()
        if not self.faults:  # what follows reads the fields together and needs each to be sound
            self.loads()
            self.servable()

    def fault(self, code: str, message: str, where: str) -> None:
        self.faults.append(Fault(code, message, where))

    def each(
        self, field: str, bad: NDArray[np.bool_], code: str, tell: Callable[[Any], tuple[str, str]]
    ) -> None:
        """A fault, told as a message and where, for the first bad places, and how many more there are."""
        places = np.argwhere(bad)
        for place in places[:MAX_FAULTS]:
            self.fault(code, *tell(tuple(place.tolist()) if bad.ndim > 1 else int(place[0])))
        if len(places) > MAX_FAULTS:
            self.faults.append(more(code, len(places) - MAX_FAULTS, field))

    def entries(self, field: str, bad: NDArray[np.bool_], code: str, message: str = "is {}.") -> None:
        """A fault for each bad entry of an array."""
        value = np.asarray(getattr(self.problem, field))

        def tell(place: Any) -> tuple[str, str]:
            index = ", ".join(map(str, place if isinstance(place, tuple) else (place,)))
            return message.format(told(value[place])), f"{field}[{index}]"

        self.each(field, bad, code, tell)

    def put(self, field: str, value: object) -> None:
        object.__setattr__(self.problem, field, value)

    # -- kinds of fields

    def choice(self, field: str, kind: type[StrEnum]) -> None:
        value = getattr(self.problem, field)
        try:
            self.put(field, kind(value))
        except ValueError:
            self.fault("unknown-value", f"'{value}' is not one of {', '.join(kind)}.", field)

    def whole(self, field: str, least: int, code: str, message: str) -> bool:
        value = getattr(self.problem, field)
        if isinstance(value, bool) or not isinstance(value, int | np.integer):
            self.fault("wrong-type", f"must be a whole number, not {value!r}.", field)
        elif value > LARGEST:
            self.fault("number-too-large", TOO_LARGE, field)
        elif value < least:
            self.fault(code, message, field)
        else:
            self.put(field, int(value))
            return True
        return False

    def positive(self, field: str) -> None:
        value = getattr(self.problem, field)
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
            self.put(field, float(value))

    def array(self, field: str, shape: tuple[int | None, ...], infinite: bool = False) -> bool:
        try:
            value = np.array(getattr(self.problem, field), dtype=np.float64)
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
        self.put(field, frozen(value))
        bad = np.isnan(value) if infinite else ~np.isfinite(value)
        huge = np.isfinite(value) & (np.abs(value) > LARGEST)
        self.entries(field, bad, "not-finite")
        self.entries(field, huge, "number-too-large", f"is {{}}; {TOO_LARGE}")
        return not (bad | huge).any()

    def nonnegative(self, field: str) -> None:
        self.entries(field, getattr(self.problem, field) < 0, "negative")

    # -- each field for itself

    def choices(self) -> None:
        for field, kind in (("backhaul", Backhaul), ("metric", Metric), ("rounding", Rounding)):
            self.choice(field, kind)
        for field in ("open", "limit_counts_service"):
            value = getattr(self.problem, field)
            if not isinstance(value, bool | np.bool_):
                self.fault("wrong-type", f"must be true or false, not {value!r}.", field)
            else:
                self.put(field, bool(value))

    def sizes(self) -> bool:
        """The number of depots and customers, which all other checks need."""
        p = self.problem
        if not self.whole("num_depots", 1, "no-depot", "the problem has no depot."):
            return False
        if not self.array("delivery", (None,)):
            return False
        if p.num_customers < 1:
            self.fault("no-customer", "the problem has no customers.", "delivery")
        elif p.num_locations > MAX_LOCATIONS:
            self.fault("too-large", f"{p.num_locations} locations; at most {MAX_LOCATIONS}.", "delivery")
        else:
            return True
        return False

    def demands(self) -> None:
        self.nonnegative("delivery")
        for field in ("pickup", "service"):
            if _left_out(getattr(self.problem, field)):
                self.put(field, frozen(np.zeros(self.problem.num_customers)))
            elif self.array(field, (self.problem.num_customers,)):
                self.nonnegative(field)

    def numbers(self) -> None:
        p = self.problem
        self.positive("capacity")
        if isinstance(p.distance_limit, float) and p.distance_limit == math.inf:
            self.put("distance_limit", None)
        if p.distance_limit is not None:
            self.positive("distance_limit")
        if p.fleet is not None:
            self.whole("fleet", 1, "not-positive", f"is {p.fleet}.")

    def places(self) -> None:
        p = self.problem
        if p.coords is None and p.distance_matrix is None:
            self.fault("no-distances", "there are neither coordinates nor a distance matrix.", "coords")
        if p.coords is not None and self.array("coords", (p.num_locations, 2)):
            lon, lat = np.abs(p.coords).T
            off = ((lon > 180) | (lat > 90)) & (p.metric is Metric.HAVERSINE)
            places = p.coords.tolist()
            self.each(
                "coords",
                off,
                "coordinate-range",
                lambda i: (f"({', '.join(map(told, places[i]))}) is not on the globe.", f"coords[{i}]"),
            )
        given = [f for f in ("distance_matrix", "duration_matrix") if getattr(p, f) is not None]
        sound = [self.matrix(field) for field in given]
        if len(given) == 2 and all(sound):  # where one has no road, the other has none
            gone = np.isinf(p.distance_matrix) | np.isinf(p.duration_matrix)  # type: ignore[arg-type]
            for field in given if gone.any() else ():
                self.put(field, frozen(np.where(gone, np.inf, getattr(p, field))))

    def matrix(self, field: str) -> bool:
        """Whether the matrix is sound. Entries that stand for no road become infinite."""
        value, n = getattr(self.problem, field), self.problem.num_locations
        if isinstance(value, list | tuple) and any(isinstance(r, list | tuple) and None in r for r in value):
            value = [
                [math.inf if d is None else d for d in r] if isinstance(r, list | tuple) else r for r in value
            ]
            self.put(field, value)
        try:
            shape = np.shape(value)
        except ValueError:  # ragged, which `array` reports
            shape = (n, n)
        if len(shape) == 2 and shape[0] != shape[1]:
            self.fault("matrix-not-square", f"has {shape[0]} rows and {shape[1]} columns.", field)
        elif self.array(field, (n, n), infinite=True):
            matrix = getattr(self.problem, field)
            self.nonnegative(field)
            if (matrix < 0).any():
                return False
            matrix = closed(matrix, self.problem.num_depots, bool(self.problem.open)).copy()
            stays = np.diagonal(matrix)
            np.fill_diagonal(matrix, np.where(np.isinf(stays), 0.0, stays))
            self.put(field, frozen(matrix))
            here = "a location is away from itself."
            self.each(field, stays > 0, "matrix-diagonal", lambda i: (here, f"{field}[{i}, {i}]"))
            return not (stays > 0).any()
        return False

    def windows(self) -> None:
        p = self.problem
        if p.time_windows is None or not self.array("time_windows", (p.num_locations, 2), infinite=True):
            return
        opening, closing = p.time_windows.T
        never = "a window must open at a finite time."
        unopened = ~np.isfinite(opening)
        self.each("time_windows", unopened, "not-finite", lambda i: (never, f"time_windows[{i}]"))

        def reversed_(i: Any) -> tuple[str, str]:
            return f"opens at {told(opening[i])} and closes at {told(closing[i])}.", f"time_windows[{i}]"

        self.each("time_windows", opening > closing, "window-reversed", reversed_)

    def labels(self) -> None:
        p = self.problem
        if not isinstance(p.name, str):
            self.fault("wrong-type", f"must be a text, not {p.name!r}.", "name")
        if isinstance(p.names, np.ndarray):
            self.put("names", tuple(p.names.tolist()))
        if not isinstance(p.names, tuple | list) or not all(isinstance(n, str) for n in p.names):
            self.fault("wrong-type", "must be a list of texts.", "names")
        elif not p.names:
            depots = ["depot"] if p.num_depots == 1 else [f"depot {d + 1}" for d in p.depots]
            self.put("names", (*depots, *(str(i + 1) for i in range(p.num_customers))))
        elif len(p.names) != p.num_locations:
            self.fault("wrong-shape", f"has {len(p.names)} entries for {p.num_locations} locations.", "names")
        else:
            self.put("names", tuple(p.names))
            twice = sorted(name for name, count in Counter(p.names).items() if count > 1)
            message = "'{}' is used more than once."
            every = np.ones(len(twice), dtype=bool)
            self.each("names", every, "duplicate-name", lambda i: (message.format(twice[i]), "names"))

    # -- fields together

    def customer(self, i: Any) -> str:
        return f"customer '{self.problem.names[self.problem.num_depots + int(i)]}'"

    def loads(self) -> None:
        p = self.problem
        both = (p.delivery > 0) & (p.pickup > 0) & (p.backhaul is Backhaul.LINEHAULS_FIRST)
        message = "has both a delivery and a pickup, where linehauls come first."
        self.each("customers", both, "delivery-and-pickup", lambda i: (message, self.customer(i)))
        if p.backhaul is Backhaul.NONE and (p.pickup > 0).any():
            some = self.customer(np.argmax(p.pickup > 0))
            self.fault("backhaul-rule-missing", f"{some} has a pickup, but the rule is 'none'.", "backhaul")
        demand = np.maximum(p.delivery, p.pickup)

        def above(i: Any) -> tuple[str, str]:
            return f"has a demand of {told(demand[i])}; a vehicle holds {told(p.capacity)}.", self.customer(i)

        self.each("customers", demand > p.capacity * (1 + p.load_slack), "demand-above-capacity", above)
        if p.fleet is not None:
            full = max(p.delivery.sum(), p.pickup.sum()) / p.capacity * (1 - p.load_slack)
            if float(full) > p.fleet * p.num_depots:
                message = f"{p.fleet * p.num_depots} vehicles, but the demand fills {math.ceil(full)}."
                self.fault("fleet-too-small", message, "fleet")

    def servable(self) -> None:
        """Each customer must be servable by a route of its own; say which is not, and why."""
        p = self.problem
        if p.time_windows is None and p.distance_limit is None and p.has_all_roads:
            return
        depots, customers = np.asarray(p.depots)[:, None], np.asarray(p.customers)[None, :]
        travel = (p.duration(depots, customers), p.duration(customers, depots))
        length = (p.distance(depots, customers), p.distance(customers, depots))
        in_time, in_limit = self.in_time(*travel), self.in_limit(*length)
        if (in_time & in_limit).any(axis=0).all():
            return
        matrices = p.distance_matrix is not None or p.duration_matrix is not None
        if matrices or p.rounding is not Rounding.EXACT:
            # A detour may be shorter than the direct way here, so only shortest paths prove anything.
            travel = (
                _shortest_paths(p.durations, p.num_depots),
                _shortest_paths(p.durations.T, p.num_depots),
            )
            length = (
                _shortest_paths(p.distances, p.num_depots),
                _shortest_paths(p.distances.T, p.num_depots),
            )
            in_time, in_limit = self.in_time(*travel), self.in_limit(*length)
        reasons = {
            i: self.reason(i, travel[0], length, any(in_time[:, i]), any(in_limit[:, i]))
            for i in np.flatnonzero(~(in_time & in_limit).any(axis=0)).tolist()
        }
        every = range(p.num_customers)
        for code in ("no-road", "limit-too-short", "window-unreachable"):
            lost = np.array([i in reasons and reasons[i][0] == code for i in every])
            self.each("customers", lost, code, lambda i: (reasons[i][1], self.customer(i)))

    def in_time(self, go: FloatArray, back: FloatArray) -> NDArray[np.bool_]:
        """Which depot (row) can serve which customer (column) inside the windows."""
        p = self.problem
        depot, customer = p.windows[: p.num_depots, :, None], p.windows[p.num_depots :].T
        start = np.maximum(depot[:, 0] + go, customer[0])
        home = at_most(start + p.service + back, depot[:, 1], p.time_slack) & np.isfinite(back)
        return np.asarray(at_most(start, customer[1], p.time_slack) & np.isfinite(start) & (home | p.open))

    def in_limit(self, go: FloatArray, back: FloatArray) -> NDArray[np.bool_]:
        limit = math.inf if self.problem.distance_limit is None else self.problem.distance_limit
        trip = self.trip(go, back)
        return at_most(trip, limit, self.problem.length_slack) & np.isfinite(trip)

    def trip(self, go: FloatArray, back: FloatArray) -> FloatArray:
        """What a route to one customer counts towards the limit."""
        p = self.problem
        return go + (0.0 if p.open else back) + (p.service if p.limit_counts_service else 0.0)

    def reason(
        self, i: int, go: FloatArray, length: tuple[FloatArray, FloatArray], in_time: bool, in_limit: bool
    ) -> tuple[str, str]:
        p = self.problem
        if not np.isfinite(self.trip(*length)[:, i]).any():
            to, back = (np.isfinite(way[:, i]).any() for way in length)
            if to and back:
                return "no-road", "no depot has both a road to it and one back, not even by way of others."
            ends = "back from it to a depot" if to else "to it from a depot"
            return "no-road", f"there is no road {ends}, not even by way of others."
        if p.distance_limit is not None and not in_limit:
            need = told(self.trip(*length)[:, i].min())
            return (
                "limit-too-short",
                f"the shortest trip takes {need}, the limit is {told(p.distance_limit)}.",
            )
        if in_time:
            return "window-unreachable", "no depot reaches it both inside the windows and within the limit."
        opening, closing = p.windows[p.num_depots + i]
        arrival = (p.windows[: p.num_depots, 0] + go[:, i]).min()
        if not at_most(arrival, closing, p.time_slack):
            return (
                "window-unreachable",
                f"is reached at {told(arrival)} at the earliest, but closes at {told(closing)}.",
            )
        when = f"after service in [{told(opening)}, {told(closing)}]"
        return "window-unreachable", f"{when} no vehicle is back before its depot closes."


def _shortest_paths(costs: FloatArray, num_depots: int) -> FloatArray:
    """Dijkstra over a dense matrix: from each depot to every customer, (M, N)."""
    paths = []
    for depot in range(num_depots):
        best = costs[depot].copy()
        best[depot] = 0.0
        todo = np.ones(len(costs), dtype=bool)
        for _ in range(len(costs)):
            at = np.argmin(np.where(todo, best, np.inf))
            todo[at] = False
            best = np.minimum(best, best[at] + costs[at])
        paths.append(best[num_depots:])
    return np.array(paths)
