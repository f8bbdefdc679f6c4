"""Whether one result is better than another on the same instances: paired t-tests, confidence intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from chainroute.errors import fail
from chainroute.problem.measure import FloatArray
from chainroute.research.evaluate.gaps import gap
from chainroute.research.evaluate.results import Results, TaskResult
from chainroute.runtime.table import ResultCell, Table

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Comparison:
    """A against B on one task; only instances that both have solved count."""

    task: str
    count: int
    mean_a: float
    mean_b: float
    difference: float  # of the means, per cent of B's: negative where A is better
    low: float  # confidence interval of the difference
    high: float
    t: float
    p: float  # two-sided


def paired(task: str, a: FloatArray, b: FloatArray) -> Comparison:
    """Costs (K,) of the same instances."""
    try:
        from scipy.stats import t as student
    except ModuleNotFoundError:
        message = "comparisons need scipy: pip install 'chainroute[evaluate]'."
        raise fail("missing-extra", message) from None
    apart = a - b
    count, mean, scale = len(apart), float(apart.mean()), 100 / float(b.mean())
    error = float(apart.std(ddof=1)) / math.sqrt(count) if count > 1 else math.nan
    if not error > 0:  # one instance, or the same difference everywhere
        t, p = (math.nan, math.nan) if count < 2 or mean == 0 else (math.copysign(math.inf, mean), 0.0)
    else:
        t = mean / error
        p = 2 * float(student.sf(abs(t), count - 1))
    reach = error * float(student.ppf((1 + CONFIDENCE) / 2, count - 1)) if count > 1 else math.nan
    return Comparison(
        task,
        count,
        float(a.mean()),
        float(b.mean()),
        scale * mean,
        scale * (mean - reach),
        scale * (mean + reach),
        t,
        p,
    )


def shared(task: TaskResult, other: TaskResult) -> TaskResult:
    """The task with the instances alone that the other has, too, in one order for both; of named ones those
    that both have solved."""
    if not task.names:
        return replace(task, costs=task.costs[: other.count])
    both = sorted(_solved(task) & _solved(other))
    places = [task.names.index(name) for name in both]
    return replace(
        task, costs=task.costs[places], names=tuple(both), best=tuple(task.best[i] for i in places)
    )


def _solved(task: TaskResult) -> set[str]:
    return {name for name, cost in zip(task.names, task.costs, strict=True) if np.isfinite(cost)}


def compare(a: Results, b: Results) -> list[Comparison]:
    """Task by task, on the instances that both have."""
    if (a.suite, a.n) != (b.suite, b.n):
        message = f"{a.name} and {b.name} are not of the same suite and size."
        raise fail("bad-option", message, "b", "Compare results of the same tasks.")
    found = []
    for task in a.tasks.keys() & b.tasks.keys():
        one, other = a.tasks[task], b.tasks[task]
        for results, its in ((a, one), (b, other)):
            if its.summary:
                message = f"has the mean of {task} only: the costs, {results.name}.npz, were not kept."
                raise fail("bad-result", message, results.name)
        x, y = shared(one, other).costs, shared(other, one).costs
        solved = np.isfinite(x) & np.isfinite(y)
        if solved.any():
            found.append(paired(task, x[solved], y[solved]))
    if not found:
        raise fail("bad-option", f"{a.name} and {b.name} share no solved instance.", "b", "Compare others.")
    return sorted(found, key=lambda c: list(a.tasks).index(c.task))


def comparison_table(a: Results, b: Results, references: Sequence[Results] = ()) -> Table:
    """Task by task: mean costs, their difference with its interval and test, and the two gaps, all on the
    instances that both have."""

    def gap_of(results: Results, other: Results, task: str) -> float | None:
        found = gap(results, shared(results.tasks[task], other.tasks[task]), references)
        return None if found is None else found.percent

    rows: list[list[ResultCell]] = [
        [
            *(c.task, c.count, c.mean_a, c.mean_b, c.difference, f"{c.low:.3f} to {c.high:.3f}"),
            *(f"{c.t:.2f}", f"{c.p:.1e}", gap_of(a, b, c.task), gap_of(b, a, c.task)),
        ]
        for c in compare(a, b)
    ]
    heads = ["task", "problems", a.label, b.label, "difference %", "95 % interval", "t", "p"]
    heads += [f"{a.label}: gap %", f"{b.label}: gap %"]
    note = f"Negative: {a.label} is better. Paired t-tests on the costs of the same problems, two-sided."
    rules = [f"{r.label} is by the {r.rules} rules." for r in (a, b)] if a.rules != b.rules else []
    return Table(f"{a.name} against {b.name}", heads, rows, [note, *rules])
