"""Vehicles that differ: types as they are given, and vehicles as the judge and the solvers read them.

A problem whose vehicles are all alike says so in its own fields (capacity, fleet, open, distance_limit and
the costs). A `VehicleType` has what is different about some of them: whatever it leaves out is as the problem
says. `Vehicle` has everything filled in; every problem has at least one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import numpy as np

from chainroute.errors import Fault
from chainroute.problem.attributes import Attribute, Beyond, Column, Kind, attributes
from chainroute.problem.fields import Checks, frozen
from chainroute.problem.measure import FloatArray

MAX_TYPES = 1_000

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
    distances: FloatArray | None  # where its ways are its own
    durations: FloatArray | None
    skills: frozenset[str]
    max_trips: int
    reload_depots: tuple[int, ...]  # none: where it started

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


Ways = Callable[[], tuple[FloatArray, FloatArray]]  # distances and durations of a problem


def vehicle(given: VehicleType, own: Mapping[str, Any], ways: Ways) -> Vehicle:
    """The type with what the problem says filled in; a speed and an open start need its `ways`."""
    told = {field: getattr(given, field) for field in SHARED}
    told = {field: own[field] if value is None else value for field, value in told.items()}
    count = own["fleet"] if given.count is None else given.count
    durations = given.duration_matrix
    lengths = given.distance_matrix
    if given.speed is not None:
        durations = frozen((ways()[0] if lengths is None else lengths) / given.speed)
    elif durations is None and lengths is not None and own["duration_matrix"] is None:
        durations = lengths
    if given.open_start:
        everyone = ways()
        lengths = _from_anywhere(everyone[0] if lengths is None else lengths, own["num_depots"])
        durations = _from_anywhere(everyone[1] if durations is None else durations, own["num_depots"])
    return Vehicle(
        **told | {"distance_limit": told["distance_limit"] or math.inf},
        name=given.name,
        count=math.inf if count is None else count,
        depots=tuple(range(own["num_depots"])) if given.depot is None else (given.depot,),
        end=given.end,
        open_start=given.open_start,
        shift=(-math.inf, math.inf) if given.shift is None else given.shift,
        max_duration=math.inf if given.max_duration is None else given.max_duration,
        distances=lengths,
        durations=durations,
        skills=frozenset(given.skills),
        max_trips=given.max_trips,
        reload_depots=tuple(given.reload_depots),
    )


def _from_anywhere(matrix: FloatArray, num_depots: int) -> FloatArray:
    """The matrix for a vehicle that begins at its first customer: to be there takes no way from a depot."""
    free = matrix.copy()
    free[:num_depots, num_depots:] = 0.0
    return frozen(free)


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
