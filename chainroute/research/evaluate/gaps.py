"""Gaps, always to something that is said: the paper's reference, our runs of PyVRP, or best known costs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from chainroute.generate.references import references as paper_means
from chainroute.problem.measure import FloatArray
from chainroute.problem.variants import BY_NAME
from chainroute.research.evaluate.real import LIBRARIES
from chainroute.research.evaluate.results import Results, TaskResult
from chainroute.research.evaluate.tasks import TEST_SET_PROBLEMS

PAPER = "paper"  # the paper's HGS mean over the whole test set
OWN = "own"  # our runs of PyVRP on the same instances
BEST_KNOWN = "best known"  # of named instances


@dataclass(frozen=True)
class Gap:
    percent: float
    error: float | None  # standard error, per cent; None where the reference is a mean without its parts
    basis: str


def gap(results: Results, task: TaskResult, references: Sequence[Results] = ()) -> Gap | None:
    """How much the task costs more than the reference; None where there is nothing to compare with."""
    if task.names:
        each = named_gaps(task)
        each = each[np.isfinite(each)]
        return Gap(float(each.mean()), _error(each), BEST_KNOWN) if len(each) else None
    if task.mean is None or results.n is None:
        return None
    known = paper_means().get((task.task, results.n))
    if task.count == TEST_SET_PROBLEMS and known is not None:
        return Gap(100 * (task.mean / known - 1), None, PAPER)
    own = best_of(references, results.suite, results.n, task.task)
    if task.summary or len(own) < task.count or not np.isfinite(own[: task.count]).all():
        return None
    percent, error = ratio(task.costs, own[: task.count])
    return Gap(percent, error, OWN)


def named_gaps(task: TaskResult) -> FloatArray:
    """The gap of each instance, per cent; NaN for those without a solution, or by another convention."""
    gaps = 100 * (task.costs / np.array(task.best) - 1)
    gaps[[name in task.apart for name in task.names]] = math.nan
    return np.asarray(gaps)


def ratio(costs: FloatArray, others: FloatArray) -> tuple[float, float | None]:
    """By how much the mean of the one exceeds that of the other, per cent, and its standard error."""
    share = costs.mean() / others.mean()
    return float(100 * (share - 1)), _error(100 * (costs - share * others) / others.mean())


def _error(values: FloatArray) -> float | None:
    return float(values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else None


def best_of(references: Iterable[Results], suite: str, n: int | None, task: str) -> FloatArray:
    """The lowest cost of each instance in all reference runs of the task."""
    runs = [r.tasks[task].costs for r in references if (r.suite, r.n) == (suite, n) and task in r.tasks]
    most = max(map(len, runs), default=0)
    padded = [np.pad(costs, (0, most - len(costs)), constant_values=math.nan) for costs in runs]
    return np.asarray(reduce(np.fmin, padded, np.full(most, math.nan)))


def alarms(results: Iterable[Results]) -> list[str]:
    """Instances of a library that cost less than the best known: records, or more likely bugs of ours."""
    return [
        f"BELOW THE BEST KNOWN: {name} costs {cost:.10g} in {r.name}; the best known is {best:.10g}."
        for r in results
        for task in r.tasks.values()
        if task.names
        for name, cost, best in zip(task.names, task.costs, task.best, strict=True)
        if name not in task.apart and cost < best - LIBRARIES[task.task].slack
    ]


# -- means over tasks


def mean(gaps: Iterable[float | None]) -> float | None:
    """None if any is missing: a mean over fewer tasks is another figure."""
    every = list(gaps)
    known = [value for value in every if value is not None]
    return sum(known) / len(known) if every and len(known) == len(every) else None


def with_windows(task: str) -> bool:
    return task in BY_NAME and BY_NAME[task].time_windows
