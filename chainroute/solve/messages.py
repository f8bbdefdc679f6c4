"""What lanes report to the thread that called `solve`."""

from __future__ import annotations

from dataclasses import dataclass

from chainroute.errors import Fault
from chainroute.plan.solution import Solution


@dataclass(frozen=True)
class PlanFound:
    source: str  # one of `result.SOURCES`
    plan: Solution


@dataclass(frozen=True)
class Note:
    text: str


@dataclass(frozen=True)
class Failed:
    fault: Fault


@dataclass(frozen=True)
class LaneEnded:
    error: BaseException | None


Message = PlanFound | Note | Failed | LaneEnded
