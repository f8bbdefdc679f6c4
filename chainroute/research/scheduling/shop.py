"""The flexible flow shop: jobs go through stages in order, at each stage on one of its machines.

A machine handles one job at a time and is not interrupted; machines of a stage differ in how long they take.
What is to be short is the makespan, the moment at which the last job leaves the last stage.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from chainroute.errors import fail

Whole = NDArray[np.int64]
TIMES = (2, 10)  # the law of MatNet's flow shops: whole numbers in [2, 10)


@dataclass(frozen=True)
class FlowShop:
    times: Whole  # (stages, machines, jobs): how long each machine takes for each job

    def __post_init__(self) -> None:
        if self.times.ndim != 3 or not self.times.size:
            message = f"must have stages, machines and jobs, not shape {self.times.shape}."
            raise fail("wrong-shape", message, "times")
        if not np.issubdtype(self.times.dtype, np.integer) or self.times.min() < 1:
            raise fail("bad-option", "must be whole numbers of at least 1.", "times")

    @property
    def stages(self) -> int:
        return int(self.times.shape[0])

    @property
    def machines(self) -> int:
        return int(self.times.shape[1])

    @property
    def jobs(self) -> int:
        return int(self.times.shape[2])


@dataclass(frozen=True)
class Schedule:
    machine: Whole  # (stages, jobs): on which machine of the stage
    start: Whole  # (stages, jobs)


@dataclass(frozen=True)
class ScheduleVerdict:
    makespan: int
    violations: tuple[str, ...]

    @property
    def feasible(self) -> bool:
        return not self.violations


def check(shop: FlowShop, schedule: Schedule) -> ScheduleVerdict:
    """The judge: the makespan, and every broken rule in words."""
    found, ends = [], np.zeros((shop.stages, shop.jobs), int)
    busy: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
    for s in range(shop.stages):
        for j in range(shop.jobs):
            m, start = int(schedule.machine[s, j]), int(schedule.start[s, j])
            if not 0 <= m < shop.machines:
                found.append(f"job {j} is on machine {m} of stage {s}, which there is not")
                continue
            ends[s, j] = start + shop.times[s, m, j]
            busy.setdefault((s, m), []).append((start, int(ends[s, j]), j))
            ready = ends[s - 1, j] if s else 0
            if start < ready:
                found.append(f"job {j} begins stage {s} at {start}, and is ready for it at {ready}")
    for (s, m), work in busy.items():
        work.sort()
        for (_, end, one), (start, _, other) in pairwise(work):
            if start < end:
                found.append(f"machine {m} of stage {s} begins job {other} at {start}, before {one} ends")
    return ScheduleVerdict(int(ends.max()), tuple(found))


def dispatch(shop: FlowShop, order: Iterable[int]) -> Schedule:
    """The schedule by a list: every mention of a job begins its next stage, where it is done earliest."""
    free = np.zeros((shop.stages, shop.machines), int)
    ready, stage = np.zeros(shop.jobs, int), np.zeros(shop.jobs, int)
    machine, start = np.zeros((2, shop.stages, shop.jobs), int)
    for j in order:
        s = stage[j]
        begins = np.maximum(free[s], ready[j])
        m = int((begins + shop.times[s, :, j]).argmin())
        machine[s, j], start[s, j] = m, begins[m]
        free[s, m] = ready[j] = begins[m] + shop.times[s, m, j]
        stage[j] += 1
    return Schedule(machine, start)


def generate(stages: int, machines: int, jobs: int, count: int, seed: int) -> list[FlowShop]:
    """Random shops, with times as in MatNet (Kwon et al., "Matrix encoding networks", 2021)."""
    rng = np.random.default_rng(seed)
    return [FlowShop(rng.integers(*TIMES, (stages, machines, jobs))) for _ in range(count)]


def list_schedule(shop: FlowShop) -> Schedule:
    """The best of three list schedules: jobs with much work first, with little first, and by Palmer's slope,
    by which jobs that take longer at late stages go first. Later stages serve first who comes first."""
    work = shop.times.mean(1)  # (stages, jobs)
    slope = (np.arange(shop.stages) - (shop.stages - 1) / 2) @ work
    lists = [np.argsort(key, kind="stable") for key in (-work.sum(0), work.sum(0), -slope)]
    return min((_by_list(shop, order) for order in lists), key=lambda made: check(shop, made).makespan)


def _by_list(shop: FlowShop, first: Sequence[int] | Whole) -> Schedule:
    order = list(map(int, first))
    for s in range(1, shop.stages):
        made = dispatch(shop, order)
        ends = made.start + np.take_along_axis(shop.times, made.machine[:, None], 1)[:, 0]
        order += [int(j) for j in np.argsort(ends[s - 1], kind="stable")]
    return dispatch(shop, order)
