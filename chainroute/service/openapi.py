"""The interface in OpenAPI: what FastAPI cannot see, since bodies are read by hand, and examples."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema

from chainroute.service.documents import Failure, JobDocument
from chainroute.service.reading import CSV, XLSX, CheckRequest, SolveOptions, SolveRequest

SchemaPart = dict[str, Any]

PROBLEM = {
    "name": "two stops",
    "capacity": 10,
    "depots": [{"name": "hub", "x": 0, "y": 0, "window": [0, 100]}],
    "customers": [
        {"name": "Ada", "x": 3, "y": 4, "delivery": 6, "service": 2, "window": [10, 20]},
        {"name": "Bob", "x": 6, "y": 8, "delivery": 3},
    ],
}
ON_THE_MAP = {
    "name": "two stops",
    "capacity": 10,
    "depots": [{"name": "hub", "lon": 8.54, "lat": 47.37}],
    "customers": [
        {"name": "Ada", "lon": 8.55, "lat": 47.38, "delivery": 6},
        {"name": "Bob", "lon": 8.56, "lat": 47.37, "delivery": 3},
    ],
}
ROUTES = {"routes": [{"depot": "hub", "customers": ["Ada", "Bob"]}]}

_REASONS = {
    401: "The token is missing or wrong.",
    403: "The request comes from a page of another site.",
    404: "There is no such thing, or not any more.",
    408: "The body did not come in time.",
    413: "The body is larger than allowed.",
    415: "The body is of a kind that is not read here.",
    421: "The service is not known by this name.",
    422: "The content is wrong.",
    502: "The routing server cannot be asked, or not be understood.",
    503: "The queue is full; Retry-After says when to come back.",
}
FAILURES: dict[int | str, SchemaPart] = {
    status: {"model": Failure, "description": reason} for status, reason in _REASONS.items()
}
SOLVED: dict[int | str, SchemaPart] = {
    200: {"model": JobDocument, "description": "The job, which has ended."}
}
EVENTS: dict[int | str, SchemaPart] = {
    200: {
        "description": "Events `progress` (a point of the history with its solution) and `end` (the job).",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    }
}

_FILE: SchemaPart = {"type": "string", "format": "binary", "description": "A problem, in any format."}
_INDEX: SchemaPart = {
    "type": "integer",
    "minimum": 0,
    "description": "Which problem of an .npz with several, counted from 0.",
}


def _form(**fields: SchemaPart) -> SchemaPart:
    schema = {"type": "object", "required": ["file"], "additionalProperties": False}
    return {"schema": {**schema, "properties": {"file": _FILE, "index": _INDEX, **fields}}}


def _body(**content: SchemaPart) -> SchemaPart:
    kinds = {"json": "application/json", "form": "multipart/form-data", "csv": CSV, "xlsx": XLSX}
    return {"requestBody": {"required": True, "content": {kinds[k]: v for k, v in content.items()}}}


def _reference(name: str, example: SchemaPart) -> SchemaPart:
    return {"schema": {"$ref": f"#/components/schemas/{name}"}, "example": example}


_CSV: SchemaPart = {
    "schema": {"type": "string", "description": "Tables of stops and vehicles below each other."}
}
_XLSX: SchemaPart = {
    "schema": {"type": "string", "format": "binary", "description": "A workbook of stops and vehicles."}
}
READ = _body(form=_form(), csv=_CSV, xlsx=_XLSX)
CHECK = _body(json=_reference("CheckRequest", {"problem": PROBLEM, "solution": ROUTES}))
GEOJSON = _body(json=_reference("CheckRequest", {"problem": ON_THE_MAP, "solution": ROUTES}))
SOLVE = _body(
    json=_reference(
        "SolveRequest", {"problem": PROBLEM, "time_limit": 1.0, "seed": 0, "effort": {"polish": True}}
    ),
    form=_form(
        **{name: SolveOptions.model_json_schema()["properties"][name] for name in ("time_limit", "seed")},
    ),
    csv=_CSV,
    xlsx=_XLSX,
)


def complete(app: FastAPI) -> SchemaPart:
    """FastAPI's description, with the schemas of the bodies."""
    if not app.openapi_schema:
        found = get_openapi(
            title=app.title, version=app.version, description=app.description, routes=app.routes
        )
        models: Any = [(model, "validation") for model in (SolveRequest, CheckRequest)]
        _, extra = models_json_schema(models, ref_template="#/components/schemas/{model}")
        schemas = found["components"]["schemas"]
        found["components"]["schemas"] = {**extra["$defs"], **schemas}
        for name in ("HTTPValidationError", "ValidationError"):  # ours are coded
            found["components"]["schemas"].pop(name, None)
        app.openapi_schema = found
    return app.openapi_schema
