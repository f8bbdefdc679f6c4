"""Problem: one immutable, validated routing instance in the user's own units.

Locations are numbered depots first, then customers: with M depots and N customers, depot d is location d and
the i-th customer is location M + i. Everything that is read off a problem (distances, names, windows) uses
this numbering. A variant is not a class: it follows from which attributes a problem has. What lies beyond the
48 variants (`extras`) is left out by default, and a problem without it is as if there were no such fields.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chainroute.errors import ChainRouteError, fail, printable
from chainroute.problem import measure, slack
from chainroute.problem.attributes import Attribute, Beyond, Column, Kind, attributes
from chainroute.problem.fields import frozen
from chainroute.problem.fleet import Vehicle, VehicleType, count_matrices, vehicles
from chainroute.problem.measure import FloatArray, Metric, Rounding
from chainroute.problem.reachable import faults_of, reach_of
from chainroute.problem.servable import Reach
from chainroute.problem.validate import validated
from chainroute.problem.variants import Backhaul, Variant
from chainroute.runtime.numerals import duration_text, number_text, number_texts_apart, time_of_day


def _all(kind: Kind, meaning: str = "", **more: Any) -> Attribute:
    return Attribute("problem", kind, meaning, **more)


def _each(kind: Kind, meaning: str, *columns: Column, **more: Any) -> Attribute:
    return Attribute("customer", kind, meaning, columns=columns, **more)


@dataclass(frozen=True, eq=False, kw_only=True)
class Problem:
    """Arrays may be given as anything NumPy makes an array of; they are kept as read-only float64."""

    # fmt: off
    # Of the problem, or of all its vehicles.
    name: str = "problem"
    capacity: Annotated[float, _all(
        Kind.POSITIVE, "Of every vehicle; may be left out where all vehicle types have one.",
        unit="load")] = None  # type: ignore[assignment]
    fleet: Annotated[int | None, _all(
        Kind.WHOLE, "Vehicles at each depot; by default as many as needed.")] = None
    open: Annotated[bool, _all(Kind.FLAG, "Routes end at their last customer.")] = False
    backhaul: Annotated[Backhaul, _all(
        Kind.CHOICE, "How pickups go together with deliveries.")] = Backhaul.NONE
    distance_limit: Annotated[float | None, _all(
        Kind.POSITIVE, "Of each route, way back included unless open.", unit="length")] = None
    limit_counts_service: Annotated[bool, _all(  # as in CMT's and Cordeau's files
        Kind.FLAG, "Service times count towards the limit.")] = False
    rounding: Annotated[Rounding, _all(
        Kind.CHOICE, "How distances between coordinates are rounded.")] = Rounding.EXACT
    day: Annotated[str | None, _all(
        Kind.TEXT, "Times are seconds after its midnight: a date (2026-11-16), or 'any'.")] = None
    fixed_cost: Annotated[float, _all(Kind.NUMBER, "Of each vehicle that is used.", unit="money")] = 0.0
    cost_per_distance: Annotated[float, _all(
        Kind.NUMBER, "By default 1, or 0 where the objective is money.", unit="money per length")] = 1.0
    cost_per_time: Annotated[float, _all(
        Kind.NUMBER, "Of a vehicle, from its departure to its end.", unit="money per time")] = 0.0
    vehicle_types: Sequence[VehicleType] = ()  # what differs between vehicles; () where they are all alike

    # Of locations: depots first.
    num_depots: int = 1
    names: Sequence[str] = ()  # (M + N,); by default "depot" or "depot 1".. and customers "1".."N"
    coords: FloatArray | None = None  # (M + N, 2)
    metric: Metric = Metric.EUCLIDEAN
    # From row to column, (M + N, M + N); infinite where there is no road (`roads`).
    distance_matrix: FloatArray | None = None  # goes before the coordinates
    duration_matrix: FloatArray | None = None  # without it, durations are distances
    time_windows: FloatArray | None = None  # (M + N, 2) opening and closing; closing may be infinite

    # Of customers, (N,).
    delivery: Annotated[FloatArray, _each(
        Kind.NUMBER, "What the customer receives.",
        Column("delivery", "delivery deliveries demand linehaul quantity qty amount load units volume weight"
               " parcels drop deliveryamount deliverydemand deliveryquantity"
               " menge lieferung liefermenge gewicht bedarf pakete quantite livraison poids demande colis"),
        missing=0.0, unit="load")]
    pickup: Annotated[FloatArray, _each(
        Kind.NUMBER, "What the customer hands over.",
        Column("pickup", "pickup pickups collection collect backhaul returns pickupamount pickupdemand"
               " pickupquantity"
               " abholung abholmenge retouren ramassage collecte enlevement retours"),
        missing=0.0, unit="load")] = ()  # type: ignore[assignment]
    service: Annotated[FloatArray, _each(
        Kind.NUMBER, "Time spent there.",
        Column("service", "service servicetime serviceduration stoptime dwell dwelltime handlingtime"
               " timeatstop visitduration unloadingtime duration"
               " servicezeit dauer standzeit entladezeit dureedeservice tempsdeservice duree"),
        missing=0.0, unit="time")] = ()  # type: ignore[assignment]
    customer_windows: Annotated[Sequence[Sequence[tuple[float, float]]], _each(
        Kind.WINDOWS, "In place of window, where there are several.",
        key="windows", unit="time", beyond=Beyond.SEVERAL_WINDOWS)] = ()
    prize: Annotated[FloatArray, _each(
        Kind.NUMBER, "What it costs to leave the customer out; by default it must be served.",
        Column("prize", "prize penalty skippenalty penaltyforleavingout"),
        switches={True: Column("optional", "optional mayskip canskip"),
                  False: Column("required", "required mandatory compulsory mustserve")},
        missing=math.inf, unit="money", beyond=Beyond.OPTIONAL)] = ()  # type: ignore[assignment]
    skills: Annotated[Sequence[Collection[str]], _each(
        Kind.TEXTS, "That the vehicle must have.",
        Column("skills", "skills skill skillsneeded requiredskills skillsrequired"),
        missing=frozenset(), beyond=Beyond.SKILLS)] = ()
    # fmt: on

    def __post_init__(self) -> None:
        vars(self).update(validated(vars(self), attributes(Problem)))
        if faults := faults_of(self):
            raise ChainRouteError(faults)

    # -- sizes and kind

    @property
    def num_customers(self) -> int:
        return len(self.delivery)

    @property
    def num_locations(self) -> int:
        return self.num_depots + self.num_customers

    @property
    def depots(self) -> range:
        return range(self.num_depots)

    @property
    def customers(self) -> range:
        return range(self.num_depots, self.num_locations)

    @property
    def vehicles(self) -> int | None:
        """How many all depots have together; None for as many as needed."""
        total = sum(vehicle.count * len(vehicle.depots) for vehicle in self.types)
        return None if total == math.inf else int(total)

    @cached_property
    def types(self) -> tuple[Vehicle, ...]:
        """The vehicle types with everything filled in; one where all vehicles are alike."""
        given = self.vehicle_types or (VehicleType(name="vehicle"),)
        return vehicles(given, vars(self), self.distance, self.duration)

    @property
    def variant(self) -> Variant:
        return Variant(
            open=all(vehicle.open for vehicle in self.types),
            backhaul=self.backhaul,
            limit=any(vehicle.distance_limit < math.inf for vehicle in self.types),
            time_windows=self.time_windows is not None,
            multi_depot=self.num_depots > 1,
        )

    @cached_property
    def extras(self) -> tuple[str, ...]:
        """What lies beyond the 48 variants, in words; nothing as a rule."""
        return tuple(name for name, is_there in EXTRAS.items() if is_there(self))

    @property
    def kind(self) -> str:
        """The variant and what lies beyond it: 'VRPTW + mixed fleet + optional'."""
        return " + ".join([self.variant.name, *self.extras])

    # -- distances and durations

    def distance(self, start: ArrayLike, end: ArrayLike) -> FloatArray:
        """The length from location to location, rounded as the problem says, infinite where there is no road;
        the arguments broadcast."""
        start, end = np.asarray(start, dtype=np.intp), np.asarray(end, dtype=np.intp)
        known = self.__dict__.get("distances", self.distance_matrix)  # the whole matrix, if it has been made
        if known is not None:
            return np.asarray(known[start, end])
        assert self.coords is not None  # a problem has one or the other
        straight = measure.distance(self.metric, self.rounding, self.coords[start], self.coords[end])
        if self.has_all_roads:
            return straight
        return np.where(np.isinf(self.duration(start, end)), np.inf, straight)

    def duration(self, start: ArrayLike, end: ArrayLike) -> FloatArray:
        """Travel time from location to location; the arguments broadcast."""
        if self.duration_matrix is not None:
            start, end = np.asarray(start, dtype=np.intp), np.asarray(end, dtype=np.intp)
            return np.asarray(self.duration_matrix[start, end])
        return self.distance(start, end)

    def ways(self, vehicle: Vehicle, path: Sequence[int]) -> tuple[list[float], list[float]]:
        """Lengths and durations from place to place by that vehicle; both infinite where it has no road."""
        start, end = np.asarray(path[:-1], dtype=np.intp), np.asarray(path[1:], dtype=np.intp)
        if vehicle.lengths is None and vehicle.times is None:
            lengths: list[float] = self.distance(start, end).tolist()
            return lengths, lengths[:] if self.duration_matrix is None else self.duration(start, end).tolist()
        length = (self.distance if vehicle.lengths is None else vehicle.lengths.at)(start, end)
        time = (self.duration if vehicle.times is None else vehicle.times.at)(start, end)
        gone = np.isinf(length) | np.isinf(time)
        return np.where(gone, np.inf, length).tolist(), np.where(gone, np.inf, time).tolist()

    def can_leave(self, vehicle: Vehicle, depot: int) -> bool:
        """Whether the vehicle's shift begins before the depot closes."""
        return bool(measure.at_most(np.array(vehicle.shift[0]), self.windows[depot, 1], self.time_slack))

    def can_go_out(self, vehicle: Vehicle, depot: int) -> bool:
        """Whether the vehicle can leave the depot, and end in its shift while the depot there is open."""
        end = vehicle.end_of(depot)
        opens = float(self.windows[[depot] if end is None else [depot, end], 0].max())
        in_shift = bool(measure.at_most(np.array(opens), vehicle.shift[1], self.time_slack))
        return in_shift and self.can_leave(vehicle, depot) and (end is None or self.can_leave(vehicle, end))

    @cached_property
    def has_all_roads(self) -> bool:
        """Whether there is a road from everywhere to everywhere."""
        matrices = (self.distance_matrix, self.duration_matrix)
        return all(matrix is None or bool(np.isfinite(matrix).all()) for matrix in matrices)

    @cached_property
    def distances(self) -> FloatArray:
        """The whole matrix, (M + N, M + N)."""
        if self.distance_matrix is not None:
            return self.distance_matrix
        every = np.arange(self.num_locations)
        return frozen(self.distance(every[:, None], every[None, :]))

    @cached_property
    def durations(self) -> FloatArray:
        return self.distances if self.duration_matrix is None else self.duration_matrix

    @property
    def matrix_count(self) -> int:
        """How many matrices solving it may need, whether they are made yet or not."""
        return 1 + (self.duration_matrix is not None) + count_matrices(self.vehicle_types)

    # -- per location, (M + N, ...): zeros at depots, and windows that never close where there are none

    @cached_property
    def deliveries(self) -> FloatArray:
        return frozen(np.concatenate([np.zeros(self.num_depots), self.delivery]))

    @cached_property
    def pickups(self) -> FloatArray:
        return frozen(np.concatenate([np.zeros(self.num_depots), self.pickup]))

    @cached_property
    def services(self) -> FloatArray:
        return frozen(np.concatenate([np.zeros(self.num_depots), self.service]))

    @cached_property
    def prizes(self) -> FloatArray:
        """What it costs to leave a location out; infinite where that is not allowed."""
        if not len(self.prize):
            return frozen(np.full(self.num_locations, math.inf))
        return frozen(np.concatenate([np.full(self.num_depots, math.inf), self.prize]))

    @cached_property
    def windows(self) -> FloatArray:
        if self.time_windows is not None:
            return self.time_windows
        return frozen(np.tile([0.0, math.inf], (self.num_locations, 1)))

    def windows_of(self, location: int) -> Sequence[tuple[float, float]]:
        """All windows of a location, the earliest first."""
        return self._all_windows[location]

    @cached_property
    def _all_windows(self) -> list[Sequence[tuple[float, float]]]:
        found: list[Sequence[tuple[float, float]]] = [((a, b),) for a, b in self.windows.tolist()]
        for i, several in enumerate(self.customer_windows):
            found[self.num_depots + i] = several or found[self.num_depots + i]
        return found

    def of_customer(self, a: Attribute, location: int) -> Any:
        """The value that a customer has of an attribute."""
        values = getattr(self, a.name)
        return values[location - self.num_depots] if len(values) else a.missing

    def skills_of(self, location: int) -> Collection[str]:
        return self.skills[location - self.num_depots] if self.skills else ()

    @cached_property
    def load_slack(self) -> float:
        return slack.load_slack(self)

    @cached_property
    def time_slack(self) -> float:
        return slack.time_slack(self)

    @cached_property
    def length_slack(self) -> float:
        return slack.length_slack(self)

    # -- which vehicles may serve which customers

    @cached_property
    def eligible(self) -> NDArray[np.bool_]:
        """Whether a vehicle of each type may serve each customer, (types, N): it has room and the skills."""
        rooms = np.array([vehicle.capacity for vehicle in self.types]) * (1 + self.load_slack)
        return self.skilled & (np.maximum(self.delivery, self.pickup) <= rooms[:, None])

    @cached_property
    def skilled(self) -> NDArray[np.bool_]:
        """Whether a vehicle of each type has the skills that each customer needs, (types, N)."""
        if not self.skills:
            return np.ones((len(self.types), self.num_customers), dtype=bool)
        able = {needed: [t.skills >= set(needed) for t in self.types] for needed in set(self.skills)}
        return np.array([able[needed] for needed in self.skills]).T

    @property
    def has_optional(self) -> bool:
        """Whether any customer may be left out."""
        return len(self.prize) > 0

    @cached_property
    def reach(self) -> Reach:
        """Which customers can be served at all, and why not the others."""
        return reach_of(self)

    @property
    def required(self) -> NDArray[np.bool_]:
        """The customers that must be served, (N,)."""
        return np.isinf(self.prizes[self.num_depots :])

    # -- for readers

    def moment(self, time: float) -> str:
        """A time in words: of the day, where the problem has one."""
        return number_text(time) if self.day is None else time_of_day(time)

    def moments(self, time: float, bound: float) -> tuple[str, str]:
        """Returns two different times in words, times of day to the second."""
        texts = time_of_day(time), time_of_day(bound)
        return number_texts_apart(time, bound) if self.day is None else texts

    def span(self, time: float) -> str:
        """A length of time in words."""
        return number_text(time) if self.day is None else duration_text(time)

    # -- as a value

    def replace(self, **changes: Any) -> Problem:
        """A problem like this one with some fields changed, validated again."""
        return dataclasses.replace(self, **changes)

    def part(self, customers: ArrayLike, **changes: Any) -> Problem:
        """Returns the problem of these customers alone, in their order, with all depots, and `changes`."""
        chosen = np.asarray(customers, dtype=np.intp)
        at = np.concatenate([np.arange(self.num_depots), chosen])

        def square(matrix: FloatArray | None) -> FloatArray | None:
            return None if matrix is None else matrix[np.ix_(at, at)]

        def taken(values: Any, places: NDArray[np.intp]) -> Any:
            if values is None or not len(values):
                return values
            return values[places] if isinstance(values, np.ndarray) else [values[i] for i in places]

        types = [
            dataclasses.replace(
                t, distance_matrix=square(t.distance_matrix), duration_matrix=square(t.duration_matrix)
            )
            for t in changes.pop("vehicle_types", self.vehicle_types)
        ]
        each = {a.name: taken(getattr(self, a.name), chosen - self.num_depots) for a in OF_CUSTOMERS}
        places = {name: taken(getattr(self, name), at) for name in ("coords", "time_windows", "names")}
        matrices = {name: square(getattr(self, name)) for name in ("distance_matrix", "duration_matrix")}
        return self.replace(**{**each, **places, **matrices, "vehicle_types": types, **changes})

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Problem):
            return NotImplemented
        pairs = ((getattr(self, name), getattr(other, name)) for name in FIELDS)
        return all(map(_equal, *zip(*pairs, strict=True)))

    def __getstate__(self) -> dict[str, Any]:
        """What another process gets: the fields, and the few facts that are known and take longer to find out
        than to send. Matrices that follow from the fields are soon made."""
        known = vars(self)
        return {name: known[name] for name in SENT if name in known}

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        depots = "1 depot" if self.num_depots == 1 else f"{self.num_depots} depots"
        size = f"{self.num_customers} customers, {depots}"
        return printable(f"{self.name}: {self.kind}, {size}, capacity {number_text(self.capacity)}")

    def __repr__(self) -> str:
        return f"<Problem {self}>"


def _equal(a: Any, b: Any) -> bool:
    """Whether two values of a field are equal, of which any may be an array."""
    arrays = isinstance(a, np.ndarray) or isinstance(b, np.ndarray)
    return np.array_equal(a, b) if arrays else bool(a == b)


def require_problem(given: object) -> Problem:
    """The same, which must be a problem: a file's name, say, is none."""
    if isinstance(given, Problem):
        return given
    remedy = "Read a file by chainroute.formats.read(file), or make a Problem of its fields."
    raise fail("wrong-type", f"must be a Problem, not {type(given).__name__}.", "problem", remedy)


OF_CUSTOMERS = attributes(Problem, "customer")
FIELDS = tuple(field.name for field in dataclasses.fields(Problem))
SENT = (*FIELDS, "extras", "load_slack", "time_slack", "length_slack", "has_all_roads")


def _differs(a: Attribute, p: Problem) -> bool:
    """Whether the problem, a customer or a vehicle type of it has the attribute."""
    if a.of == "customer":
        return len(getattr(p, a.name)) > 0
    return any(a.given(t) for t in p.vehicle_types) if a.of == "vehicle" else a.given(p)


_DERIVED: dict[str, Callable[[Problem], bool]] = {
    Beyond.MIXED_FLEET: lambda p: len(p.types) > 1 or p.types[0].depots != tuple(p.depots),
    Beyond.BOTH_AT_ONCE: lambda p: (
        p.backhaul is Backhaul.LINEHAULS_FIRST and bool((p.delivery * p.pickup).any())
    ),
    Beyond.LEAST_TIME: lambda p: {t.costs for t in p.types} == {(0.0, 0.0, 1.0)},
    Beyond.MONEY: lambda p: {t.costs for t in p.types} not in ({(0.0, 1.0, 0.0)}, {(0.0, 0.0, 1.0)}),
}


def _extras() -> dict[str, Callable[[Problem], bool]]:
    """What lies beyond the 48 variants, by its word in `kind`: several facts, or declared attributes."""
    declared = [a for a in (*attributes(VehicleType), *attributes(Problem)) if a.beyond]
    found = {}
    for word in dict.fromkeys([*Beyond, *(a.beyond for a in declared)]):
        those = [a for a in declared if a.beyond == word]
        found[str(word)] = _DERIVED.get(word) or partial(_any, those)
    return found


def _any(those: Sequence[Attribute], p: Problem) -> bool:
    return any(_differs(a, p) for a in those)


EXTRAS = _extras()
