"""The schema of ChainRoute's own JSON, published in docs/schema; attributes follow from their declarations.

A window that never closes ends in null, since JSON has no infinity; for the same reason an entry of a matrix
is null where there is no road.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, create_model, model_validator
from pydantic_core import PydanticCustomError

from chainroute.formats.common import CostObjective
from chainroute.problem import Problem, VehicleType
from chainroute.problem.attributes import Attribute, Kind, attributes
from chainroute.runtime.files import PathLike, encode, save

MAX_WINDOWS = 100  # of one customer
MAX_FIELDS = 25  # of one object; a larger one is refused as a whole, not field by field


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


# What a document has for each kind of attribute.
_TYPES: dict[Kind, Any] = {
    Kind.TEXT: str,
    Kind.NUMBER: float,
    Kind.POSITIVE: float,
    Kind.WHOLE: Whole,
    Kind.FLAG: bool,
    Kind.TEXTS: list[str],
    Kind.DEPOT: str,
    Kind.DEPOTS: list[str],
    Kind.WINDOW: Window,
    Kind.WINDOWS: Annotated[list[Window], Field(min_length=1, max_length=MAX_WINDOWS)],
    Kind.MATRIX: list[MatrixRow],
}


def _field(a: Attribute) -> tuple[Any, Any]:
    """The type and the default of an attribute in a document."""
    about: dict[str, Any] = {"description": a.meaning or None}
    if a.kind is Kind.CHOICE:
        return type(a.default), Field(a.default, strict=False, **about)
    kind = _TYPES[a.kind]
    if a.kind in (Kind.TEXTS, Kind.DEPOTS):
        return kind, Field(default_factory=list, **about) if a.of == "customer" else Field([], **about)
    default = a.missing if a.of == "customer" else a.default
    if a.kind is Kind.FLAG or (a.kind is Kind.WHOLE and default is not None):
        given = default
    else:
        given = int(default) if a.of == "customer" and default == 0 else None
    return (kind if given is not None else kind | None), Field(given, **about)


def _model(name: str, base: type[BaseModel], *fields: tuple[str, Any]) -> Any:
    return create_model(name, __base__=base, __module__=__name__, __doc__=base.__doc__, **dict(fields))


def _declared(those: Iterable[Attribute]) -> list[tuple[str, Any]]:
    return [(a.key, _field(a)) for a in those]


def _about(text: str) -> Any:
    return Field(None, description=text)


class _VehicleFile(Strict):
    """Vehicles of one type; what is left out is as the problem says."""


class _ProblemFile(Strict):
    """A vehicle routing problem, in the user's own units."""

    model_config = ConfigDict(title="ChainRoute problem")

    name: str | None = Field(None, description="By default the name of the file.")


_OF_ALL = attributes(Problem, "problem")
_OBJECTIVE = Field(
    CostObjective.DISTANCE,
    strict=False,
    description="What is least: the distance, the time that vehicles are out (then no costs are given), "
    "or the costs given. By default a unit of distance costs 1, unless cost_per_distance is given; other "
    "costs come on top.",
)
_MATRIX = "From row to column, depots first; null for no road; goes before the coordinates."
_SPEED = (
    "Length per unit of time, such as metres per second; by default 1. Also of vehicle types "
    "with distances of their own."
)
Customer: Any = _model("Customer", Location, *_declared(attributes(Problem, "customer")))
VehicleFile: Any = _model("VehicleFile", _VehicleFile, *_declared(attributes(VehicleType)))
ProblemFile: Any = _model(
    "ProblemFile",
    _ProblemFile,
    *_declared(a for a in _OF_ALL if not a.is_cost),
    ("objective", (CostObjective, _OBJECTIVE)),
    *_declared(a for a in _OF_ALL if a.is_cost),
    ("vehicles", (list[VehicleFile] | None, _about("The types of vehicles, where they differ."))),
    ("depots", (list[Depot], ...)),
    ("customers", (list[Customer], ...)),
    ("distances", (list[MatrixRow] | None, _about(_MATRIX))),
    ("durations", (list[MatrixRow] | None, _about("By default the distances, divided by the speed."))),
    ("speed", (float | None, _about(_SPEED))),
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
