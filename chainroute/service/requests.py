"""Bodies: bounded before they are read, problems and solutions out, all faults at once.

Reading is plain work on bytes, done in a thread. A file keeps nothing of its name but a short stem, as the
problem's name, and never touches the disk.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from chainroute import formats
from chainroute.errors import ChainRouteError, Fault, fail
from chainroute.files import decode
from chainroute.formats import json as our_json
from chainroute.formats.json import ProblemFile, SolutionFile
from chainroute.problem import Problem
from chainroute.service.settings import Settings
from chainroute.solution import Solution
from chainroute.solve import Effort

NAME = 60  # characters of a file's name that are kept
FIELDS = 8  # of a form
SEEDS = 2**32

Body = bytes | dict[str, str | tuple[str, bytes]]  # JSON, or a form: texts, and files as (name, content)
T = TypeVar("T")


# -- what is asked for


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class EffortRequest(_Model):
    """How hard to try; null leaves the choice to the size and the time."""

    polish: bool = Field(True, description="Improve the policy's routes; without it, the policy alone.")
    starts: int | None = Field(None, ge=1, le=1000, description="First customers that the policy tries.")
    augmentations: int | None = Field(None, ge=1, le=8, description="Turned and mirrored maps.")
    samples: int | None = Field(None, ge=0, le=64, description="For each start and map; 0 is greedy.")


class SolveOptions(_Model):
    time_limit: float = Field(2.0, gt=0, description="Seconds, from when the job starts to run.")
    seed: int = Field(0, ge=0, lt=SEEDS)
    effort: EffortRequest = Field(default_factory=lambda: EffortRequest.model_validate({}))


class SolveRequest(SolveOptions):
    problem: ProblemFile
    initial: SolutionFile | None = Field(None, description="A feasible solution to start from.")


class CheckRequest(_Model):
    problem: ProblemFile
    solution: SolutionFile


@dataclass(frozen=True)
class Order:
    """What a job is to do."""

    problem: Problem
    time_limit: float
    seed: int
    effort: Effort
    initial: Solution | None


# -- from the wire


async def body(request: Request, settings: Settings, *, forms_only: bool = False) -> Body:
    """The whole body, if it is of a kind and size that we take; the size is watched by the application."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "multipart/form-data":
        return await _form(request, settings)
    if kind == "application/json" and not forms_only:
        return await request.body()
    wanted = "multipart/form-data" if forms_only else "application/json or multipart/form-data"
    raise fail("unknown-format", f"the body must be {wanted}, not '{kind[:40]}'.", "Content-Type")


async def _form(request: Request, settings: Settings) -> Body:
    parser = MultiPartParser(request.headers, request.stream(), max_files=1, max_fields=FIELDS)
    parser.spool_max_size = settings.max_bytes + 1  # in memory, never on disk
    try:
        form = await parser.parse()
    except (MultiPartException, KeyError, ValueError) as error:
        message = error.message if isinstance(error, MultiPartException) else "it has no boundary."
        raise fail("bad-syntax", f"the form cannot be read: {message[:100]}", "body") from None
    found: dict[str, str | tuple[str, bytes]] = {}
    for key, value in form.multi_items():
        if key in found:
            raise fail("duplicate-section", "the field is given more than once.", key[:NAME])
        found[key] = (value.filename or "", await value.read()) if isinstance(value, UploadFile) else value
    await form.close()
    return found


# -- from bytes to problems


def read_solve(given: Body, settings: Settings) -> Order:
    if isinstance(given, bytes):
        document = _document(given, ("problem", "initial"))
        parts = _Parts()
        found = parts.take(lambda: _problem(document, settings))
        options = parts.take(lambda: _options(document))
        initial = parts.take(lambda: _solution(document, "initial", found) if found else None)
    else:
        texts = {key: value for key, value in given.items() if isinstance(value, str)}
        parts = _Parts()
        found = parts.take(lambda: read_file(given, settings))
        options = parts.take(
            lambda: _options({key: _number(texts[key]) for key in ("time_limit", "seed") if key in texts})
        )
        initial = None
    if options and options.time_limit > settings.max_time_limit:
        message = f"is {options.time_limit:g} s; at most {settings.max_time_limit:g} s."
        parts.faults.append(Fault("bad-option", message, "time_limit"))
    parts.stop()
    assert found is not None  # these two are there, or there were faults
    assert options is not None
    return Order(found, options.time_limit, options.seed, Effort(**options.effort.model_dump()), initial)


def read_check(given: Body, settings: Settings) -> tuple[Problem, Solution]:
    if not isinstance(given, bytes):
        raise fail("unknown-format", "the body must be application/json.", "Content-Type")
    document = _document(given, ("problem", "solution"))
    _refuse_others(document)
    if document["solution"] is None:
        raise fail("missing-field", "is missing.", "solution")
    problem = _problem(document, settings)
    solution = _solution(document, "solution", problem)
    assert solution is not None
    return problem, solution


def read_file(given: Body, settings: Settings) -> Problem:
    """The problem in a form's `file`, and of several that at `index`."""
    assert isinstance(given, dict)
    unknown = [key for key in given if key not in ("file", "time_limit", "seed", "index")]
    if unknown:
        message = "is no field; there are file, time_limit, seed, index."
        raise ChainRouteError(Fault("unknown-field", message, key[:NAME]) for key in unknown)
    upload = given.get("file")
    if not isinstance(upload, tuple):
        raise fail("missing-field", "the form has no file.", "file")
    called, data = upload
    name = re.sub(r"[^\w.+ \[\]-]", "", re.split(r"[/\\]", called)[-1])[:NAME].strip(". ") or "upload"
    problems = formats.parse(data, name.rpartition(".")[0] or name, where=name)
    index = _number(given.get("index", "0" if len(problems) == 1 else ""))
    if not isinstance(index, int) or not 0 <= index < len(problems):
        message = f"the file holds {len(problems)} problems; give the index of one, counted from 0."
        raise fail("bad-option", message, "index")
    return _bounded(problems[index], settings)


def _document(data: bytes, parts: tuple[str, ...]) -> dict[str, Any]:
    """The object in the body, with each of the parts, or None for it."""
    twice: list[str] = []

    def distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            keys = [key for key, _ in pairs]
            twice.extend(sorted({key for key in keys if keys.count(key) > 1}))
        return found

    try:
        document = json.loads(decode(data, "body"), object_pairs_hook=distinct)
    except json.JSONDecodeError as error:
        raise fail("bad-syntax", f"{error.msg}.", f"line {error.lineno}, column {error.colno}") from None
    except RecursionError:
        raise fail("bad-syntax", "is nested too deeply.", "body") from None
    except ValueError:
        raise fail("bad-syntax", "a number has thousands of digits.", "body") from None
    if twice:
        message = "the key is given more than once."
        raise ChainRouteError(Fault("duplicate-section", message, key[:NAME]) for key in twice[:FIELDS])
    if not isinstance(document, dict):
        raise fail("wrong-type", "must be an object.", "body")
    faults = [
        Fault("wrong-type", "must be an object.", part)
        for part in parts
        if not isinstance(document.setdefault(part, None), dict | None)
    ]
    if document["problem"] is None:
        faults.append(Fault("missing-field", "is missing.", "problem"))
    if faults:
        raise ChainRouteError(faults)
    return document


def _problem(document: dict[str, Any], settings: Settings) -> Problem:
    for what in ("customers", "depots"):  # before anything of their number squared is computed
        if isinstance(places := document["problem"].get(what), list):
            _require_size(len(places), what, settings)
    try:
        text = json.dumps(document["problem"])
    except RecursionError:
        raise fail("bad-syntax", "is nested too deeply.", "problem") from None
    return _bounded(our_json.read(text, "problem", None), settings)


def _bounded(problem: Problem, settings: Settings) -> Problem:
    _require_size(problem.num_customers, "customers", settings)
    _require_size(problem.num_depots, "depots", settings)
    return problem


def _require_size(number: int, what: str, settings: Settings) -> None:
    if number > settings.max_customers:
        raise fail("too-large", f"{number} {what}; at most {settings.max_customers}.", what)


def _solution(document: dict[str, Any], part: str, problem: Problem) -> Solution | None:
    if document[part] is None:
        return None
    try:
        return our_json.read_solution(json.dumps(document[part]), problem)
    except RecursionError:
        raise fail("bad-syntax", "is nested too deeply.", part) from None
    except ChainRouteError as error:
        raise ChainRouteError(_inside(part, error)) from None


def _inside(part: str, error: ChainRouteError) -> list[Fault]:
    return [Fault(f.code, f.message, f"{part}.{f.where}".removesuffix(".")) for f in error.faults]


def _options(document: dict[str, Any]) -> SolveOptions:
    rest = {key: value for key, value in document.items() if key not in ("problem", "initial")}
    try:
        return SolveOptions.model_validate(rest)
    except ValidationError as error:
        raise ChainRouteError(
            Fault(
                _CODES.get(e["type"], "bad-option" if "than" in e["type"] else "wrong-type"),
                f"{e['msg'][:1].lower()}{e['msg'][1:]}.",
                ".".join(str(step)[:NAME] for step in e["loc"]),
            )
            for e in error.errors(include_url=False)[:FIELDS]
        ) from None


_CODES = {"missing": "missing-field", "extra_forbidden": "unknown-field", "finite_number": "not-finite"}


def _refuse_others(document: dict[str, Any]) -> None:
    unknown = [key[:NAME] for key in document if key not in ("problem", "solution")]
    if unknown:
        message = "is no field; there are problem, solution."
        raise ChainRouteError(Fault("unknown-field", message, key) for key in unknown[:FIELDS])


def _number(text: object) -> object:
    """A form's text as the number it stands for, if it does."""
    for kind in (int, float):
        try:
            return kind(str(text)[:NAME])
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
