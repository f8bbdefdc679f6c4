"""ChainRoute's own JSON: locations by name, coordinates or matrices, everything a Problem can hold.

The models below are the schema, published in docs/schema. A window that never closes ends in null, since JSON
knows no infinity; for the same reason an entry of a matrix is null where there is no road.
"""

from __future__ import annotations

import difflib
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from chainroute.errors import Place, fail
from chainroute.features import beyond, our_name
from chainroute.files import PathLike, encode, save
from chainroute.fleet import MAX_TYPES, VehicleType
from chainroute.formats.common import (
    CostObjective,
    Faults,
    Roads,
    build,
    costs_of,
    durations_at,
    measured,
    short,
    speed_of,
)
from chainroute.left_out import explained
from chainroute.measure import ANY_DAY, Metric, Rounding
from chainroute.numerals import told
from chainroute.problem import Problem
from chainroute.solution import Solution
from chainroute.validate import MAX_LOCATIONS
from chainroute.variants import Backhaul

LEAST_LIKENESS = 0.8  # of two names from which one is taken for the other misspelt
MAX_WINDOWS = 100  # of one customer
MATRICES = {"distance_matrix": "distances", "duration_matrix": "durations"}  # what a document calls them
MAX_FIELDS = 25  # of one object; a larger one is refused as a whole, not field by field

REMEDY_OF_END = "Leave it out: where a vehicle ends is for the problem to say (`end` of its type)."

# -- the schema


class Strict(BaseModel):
    """Nothing is converted, nothing unknown is passed over."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _bounded(cls, given: Any) -> Any:
        if isinstance(given, dict) and len(given) > MAX_FIELDS and cls.model_config["extra"] == "forbid":
            message = "has {number} fields, most of them unknown"
            raise PydanticCustomError("too_many_fields", message, {"number": len(given)})
        return given


def _whole(value: Any) -> Any:
    """A whole number that was written with a point, 2.0, as some languages write all of theirs."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Whole = Annotated[int, BeforeValidator(_whole)]
# A document has lists and texts where the models have tuples and choices.
Window = Annotated[tuple[float, float | None], Field(strict=False)]
# Of a matrix that is wrong throughout, one fault a row. Some writers of JSON know infinity.
Length = Annotated[float, Field(allow_inf_nan=True)]
MatrixRow = Annotated[list[Length | None], Field(fail_fast=True)]


class Location(Strict):
    name: str | None = Field(None, description="Unique; by default 'depot' and the customers' numbers.")
    x: float | None = Field(None, description="With y, in any unit; straight lines are measured.")
    y: float | None = None
    lon: float | None = Field(None, description="With lat, in degrees; metres along the globe are measured.")
    lat: float | None = None
    window: Window | None = Field(None, description="Opening and closing; null for never.")


class Depot(Location):
    pass


SeveralWindows = Annotated[list[Window], Field(min_length=1, max_length=MAX_WINDOWS)]


class Customer(Location):
    delivery: float = Field(0, description="What the customer receives.")
    pickup: float = Field(0, description="What the customer hands over.")
    service: float = Field(0, description="Time spent there.")
    windows: SeveralWindows | None = Field(None, description="In place of window, where there are several.")
    prize: float | None = Field(
        None, description="What it costs to leave the customer out; by default it must be served."
    )
    skills: list[str] = Field(default_factory=list, description="That the vehicle must have.")


class VehicleFile(Strict):
    """Vehicles of one type; what is left out is as the problem says."""

    name: str | None = Field(None, description="Unique; by default 'type 1', 'type 2', ...")
    count: Whole | None = Field(None, description="At the depot, or at each one where none is named.")
    depot: str | None = Field(None, description="Where they start, by name; by default at every depot.")
    end: str | None = Field(None, description="The depot where they end; by default where they started.")
    open: bool | None = Field(None, description="They end at their last customer.")
    open_start: bool = Field(False, description="They begin at their first customer.")
    capacity: float | None = None
    fixed_cost: float | None = Field(None, description="Of each vehicle that is used.")
    cost_per_distance: float | None = Field(None, description="In place of the problem's.")
    cost_per_time: float | None = Field(None, description="From departure to the end.")
    shift: Window | None = Field(None, description="They leave no earlier and end no later.")
    max_duration: float | None = Field(None, description="From departure to the end.")
    distance_limit: float | None = None
    speed: float | None = Field(
        None, description="Length per unit of time, in place of the problem's speed or durations."
    )
    distances: list[MatrixRow] | None = Field(None, description="In place of the problem's.")
    durations: list[MatrixRow] | None = Field(
        None,
        description="In place of the problem's. By default the type's distances divided by its speed; if it "
        "has none, the problem's durations; without these its distances divided by the problem's speed.",
    )
    skills: list[str] = []
    max_trips: Whole = Field(1, description="How often a vehicle goes out within its shift.")
    reload_depots: list[str] = Field([], description="Between trips; by default where it started.")


class ProblemFile(Strict):
    """A vehicle routing problem, in the user's own units."""

    model_config = ConfigDict(title="ChainRoute problem")

    name: str | None = Field(None, description="By default the name of the file.")
    capacity: float | None = Field(
        None, description="Of every vehicle; may be left out where all vehicle types have one."
    )
    fleet: Whole | None = Field(None, description="Vehicles at each depot; by default as many as needed.")
    open: bool = Field(False, description="Routes end at their last customer.")
    backhaul: Backhaul = Field(
        Backhaul.NONE, strict=False, description="How pickups go together with deliveries."
    )
    distance_limit: float | None = Field(None, description="Of each route, way back included unless open.")
    limit_counts_service: bool = Field(False, description="Service times count towards the limit.")
    rounding: Rounding = Field(
        Rounding.EXACT, strict=False, description="How distances between coordinates are rounded."
    )
    day: str | None = Field(
        None, description="Times are seconds after its midnight: a date (2026-11-16), or 'any'."
    )
    objective: CostObjective = Field(
        CostObjective.DISTANCE,
        strict=False,
        description="What is least: the distance, the time that vehicles are out (then no costs are given), "
        "or the costs given. By default a unit of distance costs 1, unless cost_per_distance is given; other "
        "costs come on top.",
    )
    fixed_cost: float | None = Field(None, description="Of each vehicle that is used.")
    cost_per_distance: float | None = Field(
        None, description="By default 1, or 0 where the objective is money."
    )
    cost_per_time: float | None = Field(None, description="Of a vehicle, from its departure to its end.")
    vehicles: list[VehicleFile] | None = Field(None, description="The types of vehicles, where they differ.")
    depots: list[Depot]
    customers: list[Customer]
    distances: list[MatrixRow] | None = Field(
        None,
        description="From row to column, depots first; null for no road; goes before the coordinates.",
    )
    durations: list[MatrixRow] | None = Field(
        None, description="By default the distances, divided by the speed."
    )
    speed: float | None = Field(
        None,
        description="Length per unit of time, such as metres per second; by default 1. Also of vehicle types "
        "with distances of their own.",
    )


class StopFile(Strict):
    customer: str
    arrival: float
    waiting: float
    start: float
    departure: float
    load: float = Field(description="On board when leaving.")
    distance: float | None = Field(None, description="Driven since the depot.")


class RouteFile(Strict):
    depot: str | None = Field(None, description="Its name; may be left out if the problem has one depot.")
    vehicle: str | None = Field(None, description="Its type; may be left out if there is one.")
    end_depot: str | None = Field(
        None, description="Where it ends, as its type says; may be left out, as at a last customer."
    )
    customers: list[str] = Field(
        fail_fast=True, description="Their names, in the order of the visits; a depot where it reloads."
    )
    duration: float | None = None
    length: float | None = None
    start: float | None = None
    end: float | None = None
    waiting: float | None = None
    initial_load: float | None = None
    max_load: float | None = None
    stops: list[StopFile] | None = None


class SolutionFile(Strict):
    """Routes for a problem. Only `routes` and `cost` are read back; other facts may stand beside them."""

    model_config = ConfigDict(title="ChainRoute solution", extra="allow")

    problem: str | None = None
    variant: str | None = None
    cost: float | None = None
    routes: list[RouteFile]


def publish(folder: PathLike) -> None:
    """Writes the JSON Schemas."""
    for name, model in (("problem", ProblemFile), ("solution", SolutionFile)):
        text = json.dumps(model.model_json_schema(), indent=2) + "\n"
        save(Path(folder) / f"{name}.json", encode(text))


# -- reading


def read(text: str, name: str, rounding: Rounding | None, roads: Roads | None = None) -> Problem:
    return to_problem(parse(text), name, rounding, roads)


def read_solution(text: str, problem: Problem) -> Solution:
    return to_solution(parse(text), problem)


def parse(text: str) -> Any:
    """The document in the text, read strictly: no key twice, no depth or number without bounds."""
    faults = Faults()

    def distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            for key, count in Counter(key for key, _ in pairs).items():
                if count > 1:
                    faults.add("duplicate-section", "the key is given more than once.", short(key))
        return found

    try:
        document = json.loads(text, object_pairs_hook=distinct)
    except json.JSONDecodeError as error:
        raise fail("bad-syntax", f"{error.msg}.", f"line {error.lineno}, column {error.colno}") from None
    except RecursionError:
        raise fail("bad-syntax", "is nested too deeply.") from None
    except ValueError:
        raise fail("bad-syntax", "a number has thousands of digits.") from None
    faults.stop()
    if re.search(r"\\u[dD][89a-fA-F]", text):  # an escaped surrogate: of these only pairs are characters
        try:
            json.dumps(document, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise fail("not-text", "holds half a character, a surrogate without its other half.") from None
    return document


def to_problem(
    document: Any, name: str, rounding: Rounding | None = None, roads: Roads | None = None
) -> Problem:
    """The problem that a parsed document describes, on straight lines unless roads are given."""
    file = validated(document, ProblemFile)
    places: list[Location] = [*file.depots, *file.customers]
    coords, metric = _coords(file, places)
    if rounding is not None and file.distances is not None:
        raise fail("bad-option", "the file gives a matrix, which is not rounded.", "rounding")
    customers = [str(i) if c.name is None else c.name for i, c in enumerate(file.customers, 1)]
    windows = [(0.0, None) if p.window is None else p.window for p in places]
    if roads is not None:
        matrix = file.distances is not None or file.durations is not None
        timed = any(p.window is not None for p in places) or any(c.service for c in file.customers)
        distances, durations = measured(roads, coords, metric, matrix, timed, file.day)
        file.day = file.day or ANY_DAY
    else:
        distances, durations = file.distances, _durations(file, coords, metric, rounding or file.rounding)
    return build(
        lambda place: _spot(file, place),
        name=name if file.name is None else file.name,
        num_depots=len(file.depots),
        coords=coords,
        metric=metric,
        rounding=rounding or file.rounding,
        distance_matrix=distances,
        duration_matrix=durations,
        capacity=file.capacity,
        **_costs(file),
        **_beyond(file),
        fleet=file.fleet,
        open=file.open,
        backhaul=file.backhaul,
        distance_limit=file.distance_limit,
        day=file.day,
        limit_counts_service=file.limit_counts_service,
        delivery=[c.delivery for c in file.customers],
        pickup=[c.pickup for c in file.customers],
        service=[c.service for c in file.customers],
        time_windows=[(a, math.inf if b is None else b) for a, b in windows]
        if any(p.window is not None for p in places)
        else None,
        names=[*_depot_names(file), *customers],
    )


def _costs(file: ProblemFile) -> dict[str, float]:
    """Costs of all vehicles, by the objective and as they are given."""
    told = {field: getattr(file, field) for field in ("fixed_cost", "cost_per_distance", "cost_per_time")}
    given = {field: value for field, value in told.items() if value is not None}
    if file.objective is CostObjective.TIME and (given or any(map(_has_costs, file.vehicles or ()))):
        raise fail("conflicting-fields", "does not go together with costs; say money.", "objective")
    return costs_of(file.objective, given)


def _has_costs(type_: VehicleFile | VehicleType) -> bool:
    costs = (type_.fixed_cost, type_.cost_per_distance, type_.cost_per_time)
    return any(cost is not None for cost in costs)


def _beyond(file: ProblemFile) -> dict[str, Any]:
    """Fields of what lies beyond the 48 variants."""
    found: dict[str, Any] = {}
    if any(c.prize is not None for c in file.customers):
        found["prize"] = [math.inf if c.prize is None else c.prize for c in file.customers]
    if any(c.skills for c in file.customers):
        found["skills"] = [c.skills for c in file.customers]
    if any(c.windows for c in file.customers):
        found["customer_windows"] = [
            [(a, math.inf if b is None else b) for a, b in c.windows or ()] for c in file.customers
        ]
    faults = Faults()
    for i, customer in enumerate(file.customers):
        if customer.window is not None and customer.windows is not None:
            message = "does not go together with window."
            faults.add("conflicting-fields", message, f"customers[{i}].windows")
    depots = {name: d for d, name in enumerate(_depot_names(file))}

    def number(name: str | None, where: str) -> int | None:
        if name is not None and name not in depots:
            faults.add("unknown-location", f"there is no depot '{short(name)}'.", where)
        return None if name is None else depots.get(name, 0)

    types = []
    for i, given in enumerate(file.vehicles or ()):
        where = f"vehicles[{i}]"
        fields = dict(given)
        if given.distances is not None and given.durations is None and given.speed is None:
            fields["speed"] = file.speed  # else its times would be those of the problem's distances
        shift = fields.pop("shift")
        types.append(
            fields
            | {
                "name": given.name or "",
                "depot": number(given.depot, f"{where}.depot"),
                "end": number(given.end, f"{where}.end"),
                "reload_depots": [number(name, f"{where}.reload_depots") for name in given.reload_depots],
                "shift": None if shift is None else (shift[0], math.inf if shift[1] is None else shift[1]),
                "distance_matrix": fields.pop("distances"),
                "duration_matrix": fields.pop("durations"),
            }
        )
    faults.stop()
    return found | {"vehicle_types": [VehicleType(**fields) for fields in types]}


def _depot_names(file: ProblemFile) -> list[str]:
    defaults = ["depot"] if len(file.depots) == 1 else [f"depot {d}" for d in range(1, len(file.depots) + 1)]
    return [d if p.name is None else p.name for p, d in zip(file.depots, defaults, strict=True)]


def to_solution(document: Any, problem: Problem) -> Solution:
    """The routes that a parsed document describes."""
    file = validated(document, SolutionFile)
    faults = Faults()
    number = {name: i for i, name in enumerate(problem.names)}
    types = {vehicle.name: i for i, vehicle in enumerate(problem.types)}
    routes = []
    for r, route in enumerate(file.routes):
        if route.depot is None and problem.num_depots > 1:
            faults.add("missing-field", "the problem has several depots.", f"routes[{r}].depot")
        names = [problem.names[0] if route.depot is None else route.depot, *route.customers]
        for name in names:
            if name not in number:
                faults.add("unknown-location", f"the problem has no '{short(name)}'.", f"routes[{r}]")
        if route.vehicle is None and len(types) > 1:
            faults.add("missing-field", "the problem has several vehicle types.", f"routes[{r}].vehicle")
        elif route.vehicle is not None and problem.vehicle_types and route.vehicle not in types:
            faults.add("unknown-vehicle", f"there is no '{short(route.vehicle)}'.", f"routes[{r}].vehicle")
        depot, *visits = (number.get(name, 0) for name in names)
        kind = types.get(route.vehicle or "", 0)
        end = problem.types[kind].end_of(depot)
        if route.end_depot is not None and (end is None or route.end_depot != problem.names[end]):
            there = "at its last customer" if end is None else f"at '{short(problem.names[end])}'"
            message = f"is '{short(route.end_depot)}', but such a vehicle ends {there}."
            faults.add("conflicting-fields", message, f"routes[{r}].end_depot", REMEDY_OF_END)
        routes.append((depot, visits, kind))
    faults.stop()
    return Solution.of(problem, routes, file.cost)


M = TypeVar("M", bound=BaseModel)


def validated(document: Any, model: type[M]) -> M:
    """The document as a model, or everything that is wrong with it."""
    faults = Faults()
    if isinstance(document, dict):
        _require_kind(document, model)
        _require_size(document)
        if model is ProblemFile and document.get("capacity") is None and not document.get("vehicles"):
            faults.add("missing-field", "is missing.", "capacity")
    try:
        found = model.model_validate(document)
        faults.stop()
        return found
    except ValidationError as error:
        for e in error.errors(include_url=False, include_context=False):
            message = _message(e["type"], e["msg"], e["input"], e["loc"], model)
            code = "bad-option" if "_than" in e["type"] else _CODES.get(e["type"], "wrong-type")
            if code == "unknown-field" and model is ProblemFile and (what := beyond(str(e["loc"][-1:]))):
                code, message = "unsupported-feature", f"asks for {what}"
            faults.add(code, message, _path(e["loc"]))
        raise faults.error() from None


def _require_size(document: dict[str, Any]) -> None:
    """Refuses what is too large before each location, row and route is looked at."""
    sizes = {key: len(value) for key, value in document.items() if isinstance(value, list)}
    locations = sizes.get("depots", 0) + sizes.get("customers", 0)
    if locations > MAX_LOCATIONS:
        raise fail("too-large", f"{locations} locations; at most {MAX_LOCATIONS}.", "customers")
    for key in ("distances", "durations", "routes", "vehicles"):
        most = MAX_TYPES if key == "vehicles" else MAX_LOCATIONS
        if sizes.get(key, 0) > most:
            raise fail("too-large", f"{sizes[key]} {key}; at most {most}.", key)


def _require_kind(document: dict[str, Any], model: type[BaseModel]) -> None:
    """Two files taken for each other are one mistake, and one fault."""
    if document.get("type") == "FeatureCollection":
        raise fail("unknown-format", "is GeoJSON, which is written for maps and not read.")
    theirs = "vehicles" in document and {"jobs", "shipments"} & document.keys()
    if model is ProblemFile and theirs and "customers" not in document:
        raise fail("unknown-format", "has jobs and vehicles, as VROOM's problems do.")
    if model is ProblemFile and "plan" in document and "customers" not in document:
        raise fail("unknown-format", "has a plan and a fleet, as problems in the pragmatic format do.")
    if model is ProblemFile and "routes" in document and "customers" not in document:
        raise fail("not-a-problem", "is a solution, not a problem.")
    if model is SolutionFile and "customers" in document and "routes" not in document:
        raise fail("unknown-format", "is a problem, not a solution.")


def _message(kind: str, message: str, value: object, loc: Sequence[str | int], model: type[BaseModel]) -> str:
    """What pydantic found, in our words."""
    if kind == "missing":
        return "is missing."
    if kind in ("model_type", "model_attributes_type"):
        return "must be an object."
    if kind == "extra_forbidden":
        known = _owner(model, loc).model_fields
        near = difflib.get_close_matches(str(loc[-1]), known, 1, LEAST_LIKENESS)
        if not near and model is ProblemFile and (ours := our_name(str(loc[-1]))):
            return f"is no field; here that is {ours}."
        meant = f"; is '{near[0]}' meant?" if near else "."
        return f"is no field; there are {', '.join(known)}{meant}"
    if isinstance(value, str | int | float):
        message += f", not {json.dumps(value, ensure_ascii=False)[:40]}"
    return f"{message}."


def _owner(model: type[BaseModel], loc: Sequence[str | int]) -> type[BaseModel]:
    """The model of the object in which the last step of the path lies."""
    for step in loc[:-1]:
        if isinstance(step, str) and step in model.model_fields:
            model = next(_models_in(model.model_fields[step].annotation), model)
    return model


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models_in(part)


_CODES = {
    "missing": "missing-field",
    "extra_forbidden": "unknown-field",
    "finite_number": "not-finite",
    "enum": "unknown-value",
    "too_many_fields": "unknown-field",
}


def _path(loc: Iterable[str | int]) -> str:
    """customers[3].window[0]"""
    steps = (f"[{step}]" if isinstance(step, int) else f".{short(step)}" for step in loc)
    return "".join(steps).removeprefix(".")


def _coords(file: ProblemFile, places: Sequence[Location]) -> tuple[list[tuple[Any, Any]] | None, Metric]:
    """Either x and y everywhere, or lon and lat everywhere, or, with a matrix, neither."""
    faults = Faults()
    plane = any(p.x is not None or p.y is not None for p in places)
    globe = any(p.lon is not None or p.lat is not None for p in places)
    wanted = ("lon", "lat") if globe else ("x", "y")
    for i, place in enumerate(places):
        for key in wanted if plane or globe else ():
            if getattr(place, key) is None:
                faults.add("missing-field", "other locations have it.", f"{_place(file, i)}.{key}")
        if globe and (place.x is not None or place.y is not None):
            message = "x and y do not go together with lon and lat."
            faults.add("unknown-field", message, _place(file, i))
    faults.stop()
    if not plane and not globe:
        return None, Metric.EUCLIDEAN
    metric = Metric.HAVERSINE if globe else Metric.EUCLIDEAN
    return [(getattr(p, wanted[0]), getattr(p, wanted[1])) for p in places], metric


def _durations(
    file: ProblemFile, coords: list[tuple[Any, Any]] | None, metric: Metric, rounding: Rounding
) -> Any:
    """The matrix given, or the distances at the speed given, or None where they are the same."""
    if file.speed is None:
        return file.durations
    if file.durations is not None:
        raise fail("unknown-field", "does not go together with durations.", "speed")
    if file.speed <= 0:
        raise fail("not-positive", f"is {told(file.speed)}.", "speed")
    return durations_at(file.speed, coords, metric, rounding, file.distances)


def _place(file: ProblemFile, location: int) -> str:
    depots = len(file.depots)
    return f"depots[{location}]" if location < depots else f"customers[{location - depots}]"


def _spot(file: ProblemFile, place: Place) -> str:
    """Where a field of Problem stands in the document."""
    field, location = MATRICES.get(place.field, place.field), place.location
    if place.owner is not None:
        return f"vehicles[{place.owner[1]}].{field}"
    if place.field in MATRICES:
        return field if location is None else f"{field}[{location}]"
    if location is None:
        plural = {"coords": "locations", "num_depots": "depots", "names": "name", "time_windows": "window"}
        plural |= {"vehicle_types": "vehicles"}
        return plural.get(field, "customers" if field == "delivery" else field)
    keys = {"coords": "", "customer": "", "time_windows": ".window", "customer_windows": ".windows"}
    key = keys.get(field, f".{field}")
    return _place(file, location) + key


# -- writing


def write(problem: Problem) -> bytes:
    p = problem
    head: dict[str, Any] = {"name": p.name, "capacity": _number(p.capacity), **_written_costs(p)}
    if p.fleet is not None:
        head["fleet"] = p.fleet
    if p.open:
        head["open"] = True
    if p.backhaul is not Backhaul.NONE:
        head["backhaul"] = p.backhaul
    if p.distance_limit is not None:
        head["distance_limit"] = _number(p.distance_limit)
    if p.limit_counts_service:
        head["limit_counts_service"] = True
    if p.rounding is not Rounding.EXACT:
        head["rounding"] = p.rounding
    if p.day is not None:
        head["day"] = p.day
    if p.vehicle_types:
        head["vehicles"] = [_vehicle(p, given) for given in p.vehicle_types]
    head["depots"] = [_location(p, d) for d in p.depots]
    head["customers"] = [_location(p, c) for c in p.customers]
    if p.distance_matrix is not None:
        head["distances"] = [[_length(d) for d in row] for row in p.distance_matrix.tolist()]
    # A type with distances of its own would take the problem's speed, but not its durations, for its own.
    own = any(t.has_matrix and t.duration_matrix is None and t.speed is None for t in p.vehicle_types)
    if not own and (speed := speed_of(p)) is not None:
        head["speed"] = _number(speed)
    elif p.duration_matrix is not None:
        head["durations"] = [[_length(d) for d in row] for row in p.duration_matrix.tolist()]
    return encode(_pretty(head))


def write_solution(solution: Solution) -> bytes:
    return encode(_pretty(explained(solution)))


def _location(p: Problem, i: int) -> dict[str, Any]:
    found: dict[str, Any] = {"name": p.names[i]}
    if p.coords is not None:
        keys = ("x", "y") if p.metric is Metric.EUCLIDEAN else ("lon", "lat")
        found |= zip(keys, map(_number, p.coords[i]), strict=True)
    if i in p.customers:
        values = {"delivery": p.deliveries[i], "pickup": p.pickups[i], "service": p.services[i]}
        found |= {key: _number(value) for key, value in values.items() if value}
        found |= {"prize": _number(p.prizes[i])} if p.prizes[i] < math.inf else {}
        found |= {"skills": sorted(p.skills_of(i))} if p.skills_of(i) else {}
    windows = [[_number(opening), _length(closing)] for opening, closing in p.windows_of(i)]
    if len(windows) > 1:
        found["windows"] = windows
    elif p.time_windows is not None:
        found["window"] = windows[0]
    return found


def _written_costs(p: Problem) -> dict[str, Any]:
    """Costs other than 1 for a unit of distance; `time` where nothing else counts."""
    costs = {"fixed_cost": p.fixed_cost, "cost_per_distance": p.cost_per_distance}
    costs |= {"cost_per_time": p.cost_per_time}
    if tuple(costs.values()) == (0.0, 0.0, 1.0) and not any(map(_has_costs, p.vehicle_types)):
        return {"objective": "time"}
    usual = {"fixed_cost": 0.0, "cost_per_distance": 1.0, "cost_per_time": 0.0}
    return {field: _number(value) for field, value in costs.items() if value != usual[field]}


def _vehicle(p: Problem, given: VehicleType) -> dict[str, Any]:
    """A type, without what is as by default."""
    usual = vars(VehicleType())
    found: dict[str, Any] = {}
    for field, value in vars(given).items():
        if value is None or (not isinstance(value, np.ndarray) and value == usual[field]):
            continue
        match field:
            case "depot" | "end":
                found[field] = p.names[value]
            case "reload_depots":
                found[field] = [p.names[depot] for depot in value]
            case "skills":
                found[field] = sorted(value)
            case "shift":
                found[field] = [_number(value[0]), _length(value[1])]
            case "distance_matrix" | "duration_matrix":
                found[MATRICES[field]] = [[_length(d) for d in row] for row in value.tolist()]
            case "name" | "open" | "open_start" | "count" | "max_trips":
                found[field] = value
            case _:
                found[field] = _number(value)
    return found


def _length(value: float) -> float | int | None:
    return _number(value) if math.isfinite(value) else None


def _number(value: float) -> float | int:
    value = float(value)
    return int(value) if value.is_integer() and abs(value) < 1e15 else value


def _pretty(document: dict[str, Any]) -> str:
    """One line per field, and per element of a list."""
    lines = []
    for key, value in document.items():
        if isinstance(value, list) and value:
            items = ",\n".join(f"    {json.dumps(item)}" for item in value)
            lines.append(f"  {json.dumps(key)}: [\n{items}\n  ]")
        else:
            lines.append(f"  {json.dumps(key)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"
