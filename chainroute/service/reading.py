"""Requests are read from bytes: what they ask for, with all their faults at once.

This is plain work in a process of its own (requests.py), which is ended when it takes too long. A file keeps
nothing of its name but a short stem, as the problem's name, and never touches the disk.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from pydantic import Field

from chainroute import formats
from chainroute.errors import ChainRouteError, Fault, fail
from chainroute.formats import geojson
from chainroute.formats import json as our_json
from chainroute.formats.common import Faults, Roads, noted, short
from chainroute.formats.schema import ProblemFile, SolutionFile, Strict, Whole
from chainroute.options import Effort, Option, limit_faults, parameters
from chainroute.plan.solution import Solution
from chainroute.problem import Problem
from chainroute.problem.budget import too_many_matrices
from chainroute.problem.measure import FloatArray
from chainroute.runtime.files import decode, encode
from chainroute.service import documents, webhook
from chainroute.service.settings import Settings

FORM = ("file", "time_limit", "seed", "index")  # its fields
CSV, XLSX = "text/csv", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"  # kinds of bodies
NAME_CHARACTERS = 60  # characters of a file's name that are kept

Body = bytes | dict[str, str | tuple[str, bytes]]  # JSON, or a form: texts, and files as (name, content)
Reader = Callable[[Body, Settings], Any]  # one of the tasks below
T = TypeVar("T")


# -- what is asked for


_DECLARED = {parameter.name: parameter for parameter in (*parameters(Effort), *parameters(limit_faults))}


def _field(name: str, default: Any = None, most: float | None = None) -> Any:
    """A declared option as a field of a request; `most` is a bound of the service's own."""
    about = _DECLARED[name].about
    assert isinstance(about, Option)
    bounds = {"ge": about.least, "gt": about.above, "le": most or about.most}
    given: dict[str, Any] = {bound: value for bound, value in bounds.items() if value is not None}
    return Field(default, description=about.help, **given)


class EffortRequest(Strict):
    """How hard to try; null leaves the choice to the size and the time."""

    polish: bool = _field("polish", True)
    starts: Whole | None = _field("starts", most=1000)
    augmentations: Whole | None = _field("augmentations")
    samples: Whole | None = _field("samples", most=64)


class SolveOptions(Strict):
    time_limit: float = _field("time_limit", 2.0)
    seed: Whole = _field("seed", 0)
    effort: EffortRequest = Field(default_factory=lambda: EffortRequest.model_validate({}))
    webhook: str | None = Field(None, max_length=2000, description="Where to send the job when it has ended.")


class SolveRequest(SolveOptions):
    problem: ProblemFile
    initial: SolutionFile | None = Field(None, description="A feasible solution to start from.")


class CheckRequest(Strict):
    """What `check` and `geojson` are asked."""

    problem: ProblemFile
    solution: SolutionFile | str = Field(
        description="Routes, or a solution file of any format: its text, or a workbook as data:;base64,..."
    )


@dataclass(frozen=True)
class Order:
    """What a job is to do."""

    problem: Problem
    time_limit: float
    seed: int
    effort: Effort
    initial: Solution | None
    webhook: str | None = None
    notes: tuple[str, ...] = ()  # on the file it came from

    @property
    def size(self) -> int:
        """Bytes that it takes while it waits, as far as they grow with the problem."""
        holders = (self.problem, *self.problem.vehicle_types)
        arrays = (value for h in holders for value in vars(h).values() if isinstance(value, np.ndarray))
        return sum(array.nbytes for array in arrays) + sum(map(len, self.problem.names))


# -- the tasks of a reader


def run(task: Reader, given: Body, settings: Settings, report: Callable[[Any], None]) -> None:
    """Reports what the task makes of a body. Faults of the routing server do not say where that is."""
    try:
        report(task(given, settings))
    except MemoryError:
        raise fail("too-large", "reading it takes more memory than is given to it.", "body") from None
    except ChainRouteError as error:
        raise ChainRouteError(map(_without_address, error.faults)) from None


def _without_address(fault: Fault) -> Fault:
    is_of_roads = fault.code.startswith("roads-") or fault.at.field == "--roads"
    return fault.moved(field="roads") if is_of_roads else fault


def read_problem(given: Body, settings: Settings) -> bytes:
    """The answer to a file: the problem in it as a document."""
    with noted() as notes:
        problem = read_file(given, settings)
    document = documents.problem(problem)
    return documents.encoded({"problem": document, "variant": problem.kind, "notes": notes})


def read_solve(given: Body, settings: Settings) -> Order:
    notes: list[str] = []
    if isinstance(given, bytes):
        document = _document(given, ("problem", "initial"))
        parts = _Parts()
        found = parts.take(lambda: _problem(document, settings))
        options = parts.take(lambda: _options(document))
        initial = parts.take(lambda: _solution(document, "initial", found) if found else None)
    else:
        texts = {key: value for key, value in given.items() if isinstance(value, str)}
        parts = _Parts()
        with noted() as notes:
            found = parts.take(lambda: read_file(given, settings))
        options = parts.take(
            lambda: _options({key: _number(texts[key]) for key in ("time_limit", "seed") if key in texts})
        )
        initial = None
    if options and options.time_limit > settings.max_time_limit:
        message = f"is {options.time_limit:g} s; at most {settings.max_time_limit:g} s."
        parts.faults.append(Fault("bad-option", message, "time_limit"))
    if options and options.webhook and not webhook.is_allowed(options.webhook, settings.webhooks):
        message = f"this service sends nothing to '{short(options.webhook)}'."
        parts.faults.append(Fault("webhook-not-allowed", message, "webhook"))
    parts.stop()
    assert found is not None  # these two are there, or there were faults
    assert options is not None
    effort = Effort(**options.effort.model_dump())
    return Order(found, options.time_limit, options.seed, effort, initial, options.webhook, tuple(notes))


def read_check(given: Body, settings: Settings) -> bytes:
    """The answer to a solution: what the judge says of it."""
    return documents.encoded(documents.verdict(*_both(given, settings)))


def read_geojson(given: Body, settings: Settings) -> bytes:
    """The answer to a solution: its routes for a map, along the roads if these are asked for."""
    _, solution = _both(given, settings)
    return geojson.write(solution, None if settings.roads is None else settings.roads.lines)


def _both(given: Body, settings: Settings) -> tuple[Problem, Solution]:
    """The problem and the solution of a body."""
    if not isinstance(given, bytes):
        raise fail("unknown-content-type", "the body is a file.", "Content-Type", "Send application/json.")
    document = _document(given, ("problem", "solution"), texts=("solution",))
    _refuse_others(document)
    if document["solution"] is None:
        raise fail("missing-field", "is missing.", "solution")
    problem = _problem(document, settings)
    solution = _solution(document, "solution", problem)
    assert solution is not None
    return problem, solution


# -- from bytes to problems


def read_file(given: Body, settings: Settings) -> Problem:
    """The problem in a form's `file`, and of several that at `index`."""
    assert isinstance(given, dict)
    faults = Faults()
    for key in given:
        if key not in FORM:
            faults.add("unknown-field", f"is no field; there are {', '.join(FORM)}.", short(key))
    faults.stop()
    upload = given.get("file")
    if not isinstance(upload, tuple):
        raise fail("missing-field", "the form has no file.", "file")
    called, data = upload
    name = (
        re.sub(r"[^\w.+ \[\]-]", "", re.split(r"[/\\]", called)[-1])[:NAME_CHARACTERS].strip(". ") or "upload"
    )
    index = _number(given["index"]) if "index" in given else None
    if not isinstance(index, int | None):
        raise fail("wrong-type", "must be a whole number, counted from 0.", "index")
    title, roads = name.rpartition(".")[0] or name, _roads(settings)
    problem = formats.parse_one(data, title, where=name, index=index, roads=roads)
    return _bounded(problem, settings)


def _document(data: bytes, parts: tuple[str, ...], texts: tuple[str, ...] = ()) -> dict[str, Any]:
    """The object in the body, with each of the parts, or None for it; some may be texts."""
    try:
        document = our_json.parse(decode(data, "body"))
    except ChainRouteError as error:
        raise ChainRouteError(f if f.where else f.moved(field="body") for f in error.faults) from None
    if not isinstance(document, dict):
        raise fail("wrong-type", "must be an object.", "body")
    faults = Faults()
    for part in parts:
        if isinstance(document.setdefault(part, None), str) and part in texts:
            continue
        if not isinstance(document[part], dict | None):
            faults.add("wrong-type", "must be an object.", part)
    if document["problem"] is None:
        faults.add("missing-field", "is missing.", "problem")
    faults.stop()
    return document


def _problem(document: dict[str, Any], settings: Settings) -> Problem:
    for what in ("customers", "depots"):  # before anything of their number squared is computed
        if isinstance(places := document["problem"].get(what), list):
            _require_size(len(places), what, settings)
    return _bounded(our_json.to_problem(document["problem"], "problem", roads=_roads(settings)), settings)


def _roads(settings: Settings) -> Roads | None:
    """What measures roads, of no more places than the service allows."""
    server = settings.roads
    if server is None:
        return None

    def measured(coords: FloatArray) -> tuple[FloatArray, FloatArray]:
        _require_size(len(coords), "places", settings)
        return server.matrices(coords)

    return measured


def _bounded(problem: Problem, settings: Settings) -> Problem:
    _require_size(problem.num_customers, "customers", settings)
    _require_size(problem.num_depots, "depots", settings)
    sizes = problem.num_locations, problem.matrix_count
    if faults := too_many_matrices(*sizes, "vehicles", settings.max_matrix_bytes):
        raise ChainRouteError(faults)
    if (longest := max(map(len, (problem.name, *problem.names)))) > settings.max_name:
        message = f"a name has {longest:,} characters; at most {settings.max_name}."
        raise fail("text-too-long", message, "name")
    return problem


def _require_size(number: int, what: str, settings: Settings) -> None:
    if number > settings.max_customers:
        raise fail("too-large", f"{number} {what}; at most {settings.max_customers}.", what)


def _solution(document: dict[str, Any], part: str, problem: Problem) -> Solution | None:
    given = document[part]
    if given is None:
        return None
    try:
        if isinstance(given, str):
            return formats.parse_solution(_content(given), problem, "")
        return our_json.to_solution(given, problem)
    except ChainRouteError as error:
        raise ChainRouteError(
            f.moved(field=f"{part}.{f.at.field}".strip(".")) for f in error.faults
        ) from None


def _content(text: str) -> bytes:
    """The content of a file: its text or, where it has none, an address that holds it in base64."""
    head = re.match(r"data:[\w.+/-]*;base64,", text)
    try:
        return base64.b64decode(text[head.end() :], validate=True) if head else encode(text)
    except ValueError:
        raise fail("bad-syntax", "is not in base64.") from None


def _options(document: dict[str, Any]) -> SolveOptions:
    rest = {key: value for key, value in document.items() if key not in ("problem", "initial")}
    return our_json.validated(rest, SolveOptions)


def _refuse_others(document: dict[str, Any]) -> None:
    faults = Faults()
    for key in document:
        if key not in CheckRequest.model_fields:
            message = f"is no field; there are {', '.join(CheckRequest.model_fields)}."
            faults.add("unknown-field", message, short(key))
    faults.stop()


def _number(text: object) -> object:
    """A form's text as the number it stands for, if it does."""
    for kind in (int, float):
        try:
            return kind(str(text)[:NAME_CHARACTERS])
        except ValueError:
            continue
    return text


class _Parts:
    """Several readings of one request: their results, and the faults of all."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []

    def take(self, read: Callable[[], T]) -> T | None:
        try:
            return read()
        except ChainRouteError as error:
            self.faults += error.faults
            return None

    def stop(self) -> None:
        if self.faults:
            raise ChainRouteError(self.faults)
