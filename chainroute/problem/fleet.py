"""Vehicles that differ: types as they are given, and vehicles as the judge and the solvers read them.

A problem whose vehicles are all alike says so in its own fields (capacity, fleet, open, distance_limit and
the costs). A `VehicleType` has what is different about some of them: whatever it leaves out is as the problem
says. `Vehicle` has everything filled in; every problem has at least one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike

from chainroute.errors import Fault
from chainroute.problem.attributes import Attribute, Beyond, Column, Kind, attributes
from chainroute.problem.budget import MAX_TYPES, too_many_matrices
from chainroute.problem.fields import Checks, frozen
from chainroute.problem.measure import FloatArray

# What a type and a problem both have: the problem's own is for types that leave it out.
SHARED = ("capacity", "open", "distance_limit", "fixed_cost", "cost_per_distance", "cost_per_time")


def _has(kind: Kind, meaning: str = "", *columns: Column, **more: Any) -> Attribute:
    return Attribute("vehicle", kind, meaning, columns=columns, **more)


@dataclass(frozen=True, eq=False, kw_only=True)
class VehicleType:
    """Some vehicles of a fleet; None stands for what the problem says."""

    # fmt: off
    name: Annotated[str, _has(
        Kind.TEXT, "Unique; by default 'type 1', 'type 2', ...",
        Column("name", "name vehicle vehiclename vehicletype type driver van truck id vehicleid label"
               " fahrzeug fahrzeugtyp fahrer nom vehicule chauffeur"))] = ""
    count: Annotated[int | None, _has(
        Kind.WHOLE, "At the depot, or at each one where none is named.",
        Column("count", "count number vehicles vehiclecount numvehicles fleet fleetsize available quantity"
               " howmany anzahl nombre"))] = None
    depot: Annotated[int | None, _has(
        Kind.DEPOT, "Where they start, by name; by default at every depot.",
        Column("depot", "depot startdepot base home location startlocation startsat"))] = None
    end: Annotated[int | None, _has(
        Kind.DEPOT, "The depot where they end; by default where they started.",
        Column("end depot", "enddepot endlocation endsat returnsto finishdepot"),
        beyond=Beyond.OTHER_END)] = None
    open: Annotated[bool | None, _has(
        Kind.FLAG, "They end at their last customer.",
        Column("returns", "returns return returnstodepot returntodepot comesback roundtrip", True))] = None
    open_start: Annotated[bool, _has(
        Kind.FLAG, "They begin at their first customer.",
        Column("starts at depot", "startsatdepot startsatadepot startfromdepot startsfromdepot leavesdepot",
               True),
        beyond=Beyond.FREE_START)] = False
    capacity: Annotated[float | None, _has(
        Kind.POSITIVE, "",
        Column("capacity", "capacity vehiclecapacity cap maxload payload maxweight maxvolume loadcapacity"
               " kapazitat kapazitaet nutzlast zuladung capacite chargeutile"),
        unit="load")] = None
    fixed_cost: Annotated[float | None, _has(
        Kind.NUMBER, "Of each vehicle that is used.",
        Column("fixed cost", "fixedcost fixed costpervehicle dailycost costperday costperuse fixedcosts"),
        unit="money")] = None
    cost_per_distance: Annotated[float | None, _has(
        Kind.NUMBER, "In place of the problem's.",
        Column("cost per distance", "costperdistance distancecost priceperdistance rateperdistance"),
        unit="money per length")] = None
    cost_per_time: Annotated[float | None, _has(
        Kind.NUMBER, "From departure to the end.",
        Column("cost per time", "costpertime timecost durationcost wage priceperhour ratepertime pricepertime"
               " wagepertime"),
        unit="money per time")] = None
    shift: Annotated[tuple[float, float] | None, _has(
        Kind.WINDOW, "They leave no earlier and end no later.",
        Column("shift start", "shiftstart shiftbegin shiftbegins shiftfrom start starttime earlieststart"
               " earliest from schichtbeginn von beginn debut"),
        Column("shift end", "shiftend shiftends shiftto shiftuntil end endtime latestend latest to until"
               " schichtende bis ende fin"),
        Column("shift", "shift shifttime workinghours workhours window"),
        unit="time", beyond=Beyond.SHIFTS)] = None
    max_duration: Annotated[float | None, _has(
        Kind.POSITIVE, "From departure to the end.",
        Column("max duration", "maxduration maxtime maxworkingtime maxhours maxroutetime maxshift"
               " maxdrivingtime durationlimit timelimit"),
        unit="time", beyond=Beyond.SHIFTS)] = None
    distance_limit: Annotated[float | None, _has(
        Kind.POSITIVE, "",
        Column("max distance", "maxdistance distancelimit limit maxlength routelimit range maxroutelength"
               " maxrange reichweite maxdistanz distancemax autonomie"),
        unit="length")] = None
    speed: Annotated[float | None, _has(
        Kind.POSITIVE, "Length per unit of time, in place of the problem's speed or durations.",
        Column("speed", "speed averagespeed avgspeed velocity geschwindigkeit vitesse"),
        unit="speed", beyond=Beyond.OWN_ROADS)] = None
    # (M + N, M + N)
    distance_matrix: Annotated[FloatArray | None, _has(
        Kind.MATRIX, "In place of the problem's.", key="distances", beyond=Beyond.OWN_ROADS)] = None
    duration_matrix: Annotated[FloatArray | None, _has(
        Kind.MATRIX,
        "In place of the problem's. By default the type's distances divided by its speed; if it has none, the"
        " problem's durations; without these its distances divided by the problem's speed.",
        key="durations", beyond=Beyond.OWN_ROADS)] = None
    skills: Annotated[Collection[str], _has(
        Kind.TEXTS, "", Column("skills", "skills skill"))] = frozenset()
    max_trips: Annotated[int, _has(
        Kind.WHOLE, "How often a vehicle goes out within its shift.",
        Column("trips", "trips maxtrips tripsperday rounds maxrounds"),
        beyond=Beyond.TRIPS)] = 1
    reload_depots: Annotated[Sequence[int], _has(
        Kind.DEPOTS, "Between trips; by default where it started.",
        Column("reload depots", "reloaddepots reloadsat reloaddepot reloadat reloads"))] = ()
    # fmt: on

    @property
    def has_matrix(self) -> bool:
        return self.distance_matrix is not None or self.duration_matrix is not None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, VehicleType):
            return NotImplemented
        return all(np.array_equal(value, getattr(other, name)) for name, value in vars(self).items())

    __hash__ = None  # type: ignore[assignment]


Entries = Callable[[ArrayLike, ArrayLike], FloatArray]  # from these locations to those, which broadcast


class Ways:
    """Lengths or durations between locations, entry by entry; the matrix is made when it is asked for."""

    def __init__(self, size: int, at: Entries) -> None:
        self._size, self.at = size, at

    @classmethod
    def given(cls, matrix: FloatArray | None) -> Ways | None:
        if matrix is None:
            return None
        ways = cls(len(matrix), lambda start, end: np.asarray(matrix[np.asarray(start), np.asarray(end)]))
        vars(ways)["matrix"] = matrix
        return ways

    @cached_property
    def matrix(self) -> FloatArray:
        every = np.arange(self._size)
        return frozen(self.at(every[:, None], every[None, :]))

    @property
    def rows(self) -> Iterator[FloatArray]:
        """The rows of the matrix, which is not made for them."""
        every = np.arange(self._size)
        return (self.at(row, every) for row in range(self._size))


@dataclass(frozen=True, eq=False)
class Vehicle:
    """A type with everything filled in; infinite where there is no bound."""

    name: str
    count: float
    depots: tuple[int, ...]
    end: int | None
    open: bool
    open_start: bool
    capacity: float
    fixed_cost: float
    cost_per_distance: float
    cost_per_time: float
    shift: tuple[float, float]
    max_duration: float
    distance_limit: float
    lengths: Ways | None  # where they are its own
    times: Ways | None
    skills: frozenset[str]
    max_trips: int
    reload_depots: tuple[int, ...]  # none: where it started

    @property
    def distances(self) -> FloatArray | None:
        return None if self.lengths is None else self.lengths.matrix

    @property
    def durations(self) -> FloatArray | None:
        return None if self.times is None else self.times.matrix

    def end_of(self, depot: int) -> int | None:
        """Where a vehicle ends that started at the depot; None at its last customer."""
        return None if self.open else depot if self.end is None else self.end

    def reloads_at(self, depot: int) -> tuple[int, ...]:
        """Where a vehicle that started at the depot may reload."""
        return () if self.max_trips == 1 else self.reload_depots or (depot,)

    @property
    def has_shift(self) -> bool:
        return self.shift != (-math.inf, math.inf) or self.max_duration < math.inf

    @property
    def leaves_depot(self) -> bool:
        """Whether its routes begin at a depot, not at a customer."""
        return not self.open_start

    @property
    def reloads(self) -> bool:
        """Whether it may go out more than once."""
        return self.max_trips > 1

    @property
    def largest_load(self) -> float:
        """What one vehicle carries at most, on all its trips."""
        return self.capacity * self.max_trips

    @property
    def costs(self) -> tuple[float, float, float]:
        return self.fixed_cost, self.cost_per_distance, self.cost_per_time


def vehicles(
    types: Sequence[VehicleType], own: Mapping[str, Any], distance: Entries, duration: Entries
) -> tuple[Vehicle, ...]:
    """The types with what the problem says filled in, `distance` and `duration` among it."""
    roads = _Roads(own, distance, duration)
    return tuple(_vehicle(given, own, *roads.of(given)) for given in types)


def _vehicle(given: VehicleType, own: Mapping[str, Any], lengths: Ways | None, times: Ways | None) -> Vehicle:
    told = {field: getattr(given, field) for field in SHARED}
    told = {field: own[field] if value is None else value for field, value in told.items()}
    count = own["fleet"] if given.count is None else given.count
    return Vehicle(
        **told | {"distance_limit": told["distance_limit"] or math.inf},
        name=given.name,
        count=math.inf if count is None else count,
        depots=tuple(range(own["num_depots"])) if given.depot is None else (given.depot,),
        end=given.end,
        open_start=given.open_start,
        shift=(-math.inf, math.inf) if given.shift is None else given.shift,
        max_duration=math.inf if given.max_duration is None else given.max_duration,
        lengths=lengths,
        times=times,
        skills=frozenset(given.skills),
        max_trips=given.max_trips,
        reload_depots=tuple(given.reload_depots),
    )


class _Roads:
    """The lengths and times of vehicle types: one of each kind for all types that have the same."""

    def __init__(self, own: Mapping[str, Any], distance: Entries, duration: Entries) -> None:
        self.depots, self.timed = own["num_depots"], own["duration_matrix"] is not None
        self.size = self.depots + len(own["delivery"])
        self.distance, self.duration = distance, duration
        self.found: dict[tuple[object, ...], Ways | None] = {}

    def of(self, given: VehicleType) -> tuple[Ways | None, Ways | None]:
        """The lengths and the times of a type, None where they are the problem's."""
        matrices = id(given.distance_matrix), id(given.duration_matrix)
        lengths = self._once((matrices[0],), lambda: Ways.given(given.distance_matrix))
        times = self._once((matrices, given.speed), lambda: self._times(given, lengths))
        if given.open_start:
            base = lengths.at if lengths else self.distance, times.at if times else self.duration
            lengths = self._once(("free", matrices[0]), lambda: self._from_anywhere(base[0]))
            times = self._once(("free", matrices, given.speed), lambda: self._from_anywhere(base[1]))
        return lengths, times

    def _once(self, key: tuple[object, ...], make: Callable[[], Ways | None]) -> Ways | None:
        if key not in self.found:
            self.found[key] = make()
        return self.found[key]

    def _times(self, given: VehicleType, lengths: Ways | None) -> Ways | None:
        if (speed := given.speed) is not None:
            at = self.distance if lengths is None else lengths.at
            return Ways(self.size, lambda start, end: at(start, end) / speed)
        times = Ways.given(given.duration_matrix)
        return lengths if times is None and not self.timed else times

    def _from_anywhere(self, at: Entries) -> Ways:
        """For a vehicle that begins at its first customer: to be there takes no way from a depot."""

        def free(start: ArrayLike, end: ArrayLike) -> FloatArray:
            to_first = (np.asarray(start) < self.depots) & (np.asarray(end) >= self.depots)
            return np.where(to_first, 0.0, at(start, end))

        return Ways(self.size, free)


def count_matrices(types: Sequence[VehicleType]) -> int:
    """How many matrices a solver may need for these types, beside the problem's."""
    own = {id(t.distance_matrix) for t in types if t.distance_matrix is not None or t.open_start}
    timed = {
        (id(t.distance_matrix), id(t.duration_matrix), t.speed, t.open_start)
        for t in types
        if t.speed is not None or t.duration_matrix is not None or t.open_start
    }
    return len(own) + len(timed)


def validated_types(types: Any, num_depots: int, num_locations: int, open: bool) -> tuple[Any, list[Fault]]:
    """The types in their final form, and their faults."""
    if isinstance(types, VehicleType):
        types = (types,)
    if not isinstance(types, tuple | list) or not all(isinstance(t, VehicleType) for t in types):
        return (), [Fault("wrong-type", "must be a list of VehicleType.", "vehicle_types")]
    if len(types) > MAX_TYPES:
        return (), [Fault("too-large", f"{len(types)} types; at most {MAX_TYPES}.", "vehicle_types")]
    faults: list[Fault] = []
    found = []
    for number, given in enumerate(types):
        checks = _TypeChecks(dict(vars(given)), ("vehicle_types", number))
        checks.run(number, num_depots, num_locations, open)
        faults += checks.faults
        if not checks.faults:
            found.append(VehicleType(**checks.fields))
    twice = [name for name, times in Counter(t.name for t in found).items() if times > 1]
    faults += [
        Fault("duplicate-name", f"'{name}' is used more than once.", "vehicle_types") for name in twice
    ]
    faults += too_many_matrices(num_locations, count_matrices(found), "vehicle_types")
    return tuple(found), faults


class _TypeChecks(Checks):
    def run(self, number: int, num_depots: int, num_locations: int, open: bool) -> None:
        f = self.fields
        by_kind: dict[Kind, Callable[[str], object]] = {
            Kind.TEXT: self.text,
            Kind.NUMBER: self.at_least_zero,
            Kind.POSITIVE: self.positive,
            Kind.WHOLE: self.counted,
            Kind.FLAG: self.boolean,
            Kind.TEXTS: self.texts,
            Kind.DEPOT: partial(self.depot, num_depots=num_depots),
            Kind.DEPOTS: partial(self.depots, num_depots=num_depots),
            Kind.WINDOW: self.window,
        }
        for a in attributes(VehicleType):
            if a.kind in by_kind and not (f[a.name] is None and a.default is None):
                by_kind[a.kind](a.name)
        f["name"] = f["name"] or f"type {number + 1}"
        stays_out = open if f["open"] is None else bool(f["open"])
        self.matrices(num_depots, num_locations, stays_out)
        self.conflicts(stays_out)

    def conflicts(self, stays_out: bool) -> None:
        """Finds fields that do not go together."""
        f = self.fields
        if f["reload_depots"] and f["max_trips"] == 1:
            self.fault("conflicting-fields", "there is one trip only; raise max_trips.", "reload_depots")
        if f["speed"] is not None and f["duration_matrix"] is not None:
            self.fault("conflicting-fields", "does not go together with a duration matrix.", "speed")
        if stays_out and f["end"] is not None:
            self.fault("conflicting-fields", "an open route has no depot where it ends.", "end")
        if f["open_start"] is True and f["max_trips"] != 1:
            message = "a vehicle that begins at a customer goes out once; give no number of trips."
            self.fault("conflicting-fields", message, "max_trips")

    def depot(self, field: str, num_depots: int) -> None:
        value = self.fields[field]
        if self.whole(field, 0, "unknown-location", f"{value} is not a depot.") and value >= num_depots:
            self.fault("unknown-location", f"{value} is not a depot.", field)

    def depots(self, field: str, num_depots: int) -> None:
        given = self.fields[field]
        if not isinstance(given, tuple | list | range) or not all(type(d) is int for d in given):
            self.fault("wrong-type", "must be a list of depots.", field)
            return
        self.fields[field] = tuple(dict.fromkeys(given))
        for depot in given:
            if not 0 <= depot < num_depots:
                self.fault("unknown-location", f"{depot} is not a depot.", field)

    def window(self, field: str) -> None:
        if self.array(field, (2,), infinite=True):
            begin, end = self.fields[field].tolist()
            self.fields[field] = begin, end
            if math.isinf(begin):
                self.fault("not-finite", "must begin at a finite time.", field)
            elif begin > end:
                self.fault("window-reversed", f"begins at {begin:g} and ends at {end:g}.", field)


def is_plain(given: VehicleType) -> bool:
    """Whether a fleet of this type alone can be told by the problem's own fields."""
    plain = VehicleType(name=given.name, count=given.count, **{f: getattr(given, f) for f in SHARED})
    return given == plain


def folded(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields of a problem, without types where there is a single plain one."""
    types = fields["vehicle_types"]
    if len(types) != 1 or not is_plain(types[0]):
        return fields
    told = {field: getattr(types[0], field) for field in SHARED} | {"fleet": types[0].count}
    return (
        fields | {field: value for field, value in told.items() if value is not None} | {"vehicle_types": ()}
    )
