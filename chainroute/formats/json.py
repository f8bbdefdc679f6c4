"""ChainRoute's own JSON, read and written: locations by name, coordinates or matrices, all of a Problem."""

from __future__ import annotations

import difflib
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar, get_args

from pydantic import (
    BaseModel,
    ValidationError,
)

from chainroute.errors import Place, fail
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
from chainroute.formats.schema import Location, ProblemFile, SolutionFile
from chainroute.plan.reasons import explained
from chainroute.plan.solution import Solution
from chainroute.problem import Problem
from chainroute.problem.attributes import Attribute, Kind, attributes
from chainroute.problem.budget import MAX_LOCATIONS, MAX_TYPES
from chainroute.problem.features import beyond, our_name
from chainroute.problem.fleet import VehicleType
from chainroute.problem.measure import ANY_DAY, Metric, Rounding
from chainroute.runtime.files import encode
from chainroute.runtime.numerals import number_text

LEAST_LIKENESS = 0.8  # of two names from which one is taken for the other misspelt
MATRICES = {"distance_matrix": "distances", "duration_matrix": "durations"}  # what a document calls them
REMEDY_OF_END = "Leave it out: the problem says where a vehicle ends (`end` of its type)."

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
    faults = Faults()
    costs, each, types = _costs(file), _of_customers(file, faults), _types(file, faults)
    faults.stop()
    return build(
        lambda place: _spot(file, place),
        **{a.name: getattr(file, a.key) for a in attributes(Problem, "problem") if not a.is_cost}
        | {"rounding": rounding or file.rounding},
        **costs,
        **each,
        name=name if file.name is None else file.name,
        num_depots=len(file.depots),
        coords=coords,
        metric=metric,
        distance_matrix=distances,
        duration_matrix=durations,
        vehicle_types=[VehicleType(**fields) for fields in types],
        time_windows=[(a, math.inf if b is None else b) for a, b in windows]
        if any(p.window is not None for p in places)
        else None,
        names=[*_depot_names(file), *customers],
    )


def _costs(file: Any) -> dict[str, float]:
    """Costs of all vehicles, by the objective and as they are given."""
    told = {a.name: getattr(file, a.key) for a in attributes(Problem, "problem") if a.is_cost}
    given = {field: value for field, value in told.items() if value is not None}
    if file.objective is CostObjective.TIME and (given or any(map(_has_costs, file.vehicles or ()))):
        raise fail("conflicting-fields", "does not go together with costs; say money.", "objective")
    return costs_of(file.objective, given)


def _has_costs(type_: Any) -> bool:
    """Whether a vehicle type has costs of its own."""
    return any(getattr(type_, a.name) is not None for a in attributes(VehicleType) if a.is_cost)


def _of_customers(file: Any, faults: Faults) -> dict[str, Any]:
    """The attributes of customers, where any has one."""
    for i, customer in enumerate(file.customers):
        if customer.window is not None and customer.windows is not None:
            message = "does not go together with window."
            faults.add("conflicting-fields", message, f"customers[{i}].windows")
    found = {}
    for a in attributes(Problem, "customer"):
        values = [getattr(c, a.key) for c in file.customers]
        if a.missing == 0:
            found[a.name] = values
        elif any(values) or any(value == 0 for value in values):  # a number of nothing is given, too
            found[a.name] = [_read(a, value) for value in values]
    return found


def _read(a: Attribute, value: Any) -> Any:
    """The value of a field, as a document has it."""
    if value is None:
        return a.missing if a.of == "customer" else a.default
    if a.kind is Kind.WINDOW:
        return _window(value)
    return [_window(each) for each in value] if a.kind is Kind.WINDOWS else value


def _window(given: tuple[float, float | None]) -> tuple[float, float]:
    return given[0], math.inf if given[1] is None else given[1]


def _types(file: Any, faults: Faults) -> list[dict[str, Any]]:
    """The fields of the vehicle types, whose depots a document calls by name."""
    depots = {name: d for d, name in enumerate(_depot_names(file))}

    def number(name: str, where: str) -> int:
        if name not in depots:
            faults.add("unknown-location", f"there is no depot '{short(name)}'.", where)
        return depots.get(name, 0)

    found = []
    for i, given in enumerate(file.vehicles or ()):
        fields = {}
        if given.distances is not None and given.durations is None and given.speed is None:
            given.speed = file.speed  # otherwise its times would follow the problem's distances
        for a in attributes(VehicleType):
            value, where = getattr(given, a.key), f"vehicles[{i}].{a.key}"
            if a.kind is Kind.DEPOT and value is not None:
                value = number(value, where)
            elif a.kind is Kind.DEPOTS:
                value = [number(name, where) for name in value]
            fields[a.name] = _read(a, value)
        found.append(fields)
    return found


def _depot_names(file: Any) -> list[str]:
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


def _coords(file: Any, places: Sequence[Location]) -> tuple[list[tuple[Any, Any]] | None, Metric]:
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


def _durations(file: Any, coords: list[tuple[Any, Any]] | None, metric: Metric, rounding: Rounding) -> Any:
    """The matrix given, or the distances at the speed given, or None where they are the same."""
    if file.speed is None:
        return file.durations
    if file.durations is not None:
        raise fail("unknown-field", "does not go together with durations.", "speed")
    if file.speed <= 0:
        raise fail("not-positive", f"is {number_text(file.speed)}.", "speed")
    return durations_at(file.speed, coords, metric, rounding, file.distances)


def _place(file: Any, location: int) -> str:
    depots = len(file.depots)
    return f"depots[{location}]" if location < depots else f"customers[{location - depots}]"


def _spot(file: Any, place: Place) -> str:
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
    for a in attributes(Problem, "problem"):
        if a.key not in head and not a.is_cost and a.given(p):
            head[a.key] = _written(p, a, getattr(p, a.name))
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
    for a in attributes(Problem, "customer") if i in p.customers else ():
        value = p.of_customer(a, i)
        if a.kind is not Kind.WINDOWS and value != a.missing:
            found[a.key] = _written(p, a, value)
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
    """A type, without the values that are the default."""
    return {a.key: _written(p, a, getattr(given, a.name)) for a in attributes(VehicleType) if a.given(given)}


def _written(p: Problem, a: Attribute, value: Any) -> Any:
    """A value as a document has it."""
    match a.kind:
        case Kind.DEPOT:
            return p.names[value]
        case Kind.DEPOTS:
            return [p.names[depot] for depot in value]
        case Kind.TEXTS:
            return sorted(value)
        case Kind.WINDOW:
            return [_number(value[0]), _length(value[1])]
        case Kind.MATRIX:
            return [[_length(d) for d in row] for row in value.tolist()]
        case Kind.NUMBER | Kind.POSITIVE:
            return _number(value)
    return value


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
