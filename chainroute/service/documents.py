"""What the service answers: models for the OpenAPI, and the documents themselves.

Answers are written directly, not through the models; a test holds the two together.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from chainroute.errors import Fault
from chainroute.formats import json as our_json
from chainroute.formats.schema import ProblemFile, SolutionFile
from chainroute.plan.check import check
from chainroute.plan.reasons import explained
from chainroute.plan.solution import Solution
from chainroute.problem import Problem

# -- models


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid")


class FaultDocument(_Model):
    code: str
    where: str
    path: str
    field: str
    location: int | None
    message: str
    remedy: str


class FaultList(_Model):
    faults: list[FaultDocument]


class Failure(_Model):
    """Everything that is wrong, at once."""

    error: FaultList


class Point(_Model):
    seconds: float
    cost: float
    source: Literal["given", "exact", "policy", "polish", "search", "construction"]


class JobSummary(_Model):
    id: str
    status: Literal["queued", "running", "done", "failed", "cancelled"]
    position: int | None
    problem_name: str
    cost: float | None
    created: str
    started: str | None
    ended: str | None
    expires: str | None


class JobList(_Model):
    jobs: list[JobSummary]


class JobDocument(JobSummary):
    history: list[Point]
    solution: SolutionFile | None
    first: SolutionFile | None
    error: FaultList | None
    notes: list[str]
    without_policy: str | None


class Links(_Model):
    job: str
    events: str


class Accepted(_Model):
    id: str
    status: Literal["queued", "running"]
    links: Links


class ViolationDocument(_Model):
    code: str
    message: str
    amount: float
    route: int | None
    location: str | None


class VerdictDocument(_Model):
    feasible: bool
    cost: float
    parts: dict[str, float] | None = None  # of the cost, where it is not the length alone
    violations: list[ViolationDocument]
    solution: SolutionFile


class ReadDocument(_Model):
    problem: ProblemFile
    variant: str
    notes: list[str]


class VariantDocument(_Model):
    name: str
    multi_depot: bool
    open: bool
    backhaul: Literal["none", "linehauls-first", "mixed"]
    limit: bool
    time_windows: bool
    seen: bool


class ExampleDocument(_Model):
    name: str
    title: str
    customers: int
    variant: str


class LimitsDocument(_Model):
    max_bytes: int
    max_customers: int
    max_name: int
    max_time_limit: float


class FeatureDocument(_Model):
    type: Literal["Feature"]
    geometry: dict[str, Any]
    properties: dict[str, Any]


class GeoDocument(_Model):
    type: Literal["FeatureCollection"]
    features: list[FeatureDocument]


class HealthDocument(_Model):
    status: Literal["ok"]
    version: str
    ready: bool
    queued: int
    running: int
    limits: LimitsDocument
    roads: str | None  # the kind of the routing server, if there is one


# -- documents


def encoded(document: object) -> bytes:
    return json.dumps(document, allow_nan=False, separators=(",", ":")).encode()


def failure(faults: Iterable[Fault]) -> dict[str, Any]:
    return {"error": {"faults": [fault.as_dict() for fault in faults]}}


def problem(p: Problem) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(our_json.write(p))
    return document


def solution(s: Solution) -> dict[str, Any]:
    return s.as_dict()


def verdict(p: Problem, s: Solution) -> dict[str, Any]:
    """What the judge says; and why customers are left out, which takes too long for news of a running job."""
    return {**check(p, s).as_dict(), "solution": explained(s)}
