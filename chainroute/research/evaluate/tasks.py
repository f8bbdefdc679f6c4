"""What is solved: the test sets of the public benchmark, of which the first instances may be taken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

from chainroute.errors import USE_LISTED, fail
from chainroute.generate import BENCHMARK, benchmark
from chainroute.plan.solution import Solution
from chainroute.problem import Problem
from chainroute.problem.arrays import Arrays, problems_from_arrays
from chainroute.problem.variants import SEEN, ZERO_SHOT, Variant

SUITES = {"seen": SEEN, "zero-shot": ZERO_SHOT}
SMALL_CUSTOMERS = 10  # customers, few enough to be solved exactly; the paper has no such tasks
SIZES = (SMALL_CUSTOMERS, 50, 100)  # customers
TEST_SET_PROBLEMS = BENCHMARK["test"][1]  # problems of a test set


@dataclass(frozen=True)
class Task:
    """Instances that are solved and averaged together."""

    name: str
    count: int
    problem: Callable[[int], Problem]  # the i-th
    names: tuple[str, ...] = ()  # of instances from a library
    best_known: tuple[float, ...] = ()  # their best known costs
    comparable: Callable[[Solution], bool] = lambda solution: True  # is it by the convention of these?
    arrays: Callable[[], Arrays] | None = None  # all of them stacked, where they are of one size and variant


def benchmark_tasks(suite: str, n: int, limit: int = TEST_SET_PROBLEMS) -> list[Task]:
    """The tasks of a suite, each with its first `limit` problems."""
    if n not in SIZES:
        raise fail("bad-option", f"must be one of {', '.join(map(str, SIZES))}, not {n}.", "n", USE_LISTED)
    return [_benchmark_task(variant, n, limit) for variant in SUITES[suite]]


def _benchmark_task(variant: Variant, n: int, limit: int) -> Task:
    arrays = cache(partial(benchmark, variant, n, "test", limit))
    stem = f"{variant}-n{n}-test"

    def problem(i: int) -> Problem:
        return problems_from_arrays({key: a[i : i + 1] for key, a in arrays().items()}, f"{stem}[{i}]")[0]

    return Task(variant.name, limit, problem, arrays=arrays)
