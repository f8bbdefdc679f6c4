"""Equal wall time on two cores: ours, PyVRP, OR-Tools and VROOM on the same instances, every solution judged.

python -m benchmarks.compare out/compare.csv --instances 5              # all suites; ends and goes on at will
python -m benchmarks.compare out/compare.csv --suites n100 --limits 2   # a part of it
python -m benchmarks.compare out/compare.csv --table                    # Markdown, of what there is

Calls follow each other strictly one by one, on two cores: run nothing else beside it. Workers are started and
have loaded their solver before the clock starts, which is taken around the call. A row is written when a call
ends; rows that exist are not run again. A gap is to the best known cost, or else to the best that any solver
found at any limit. PyVRP searches on one core; `pyvrp-both` is two of its searches with different seeds, of
which the better counts.
"""

import argparse
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np

from benchmarks.rows import append_row, read_rows
from chainroute import ChainRouteError, Problem, Solution, check
from chainroute.generate import benchmark, generate
from chainroute.problem.arrays import problems_from_arrays
from chainroute.problem.variants import SEEN, variant
from chainroute.research.evaluate import real
from chainroute.research.evaluate.statistics import paired
from chainroute.search.solvers import pyvrp
from chainroute.search.solvers.table import SOLVERS

K = TypeVar("K")

CORES = 2
LIMITS = (0.5, 2.0, 10.0)
OURS, RIVALS = "ours", ("pyvrp", "pyvrp-both")
LIBRARY = Path(__file__).parents[1].parent / "shared" / "benchmarks"
CHOICE = (OURS, *RIVALS, "ortools", "vroom")
SUITES = ("n50", "n100", "X-small", "X-large", "solomon", "homberger600")


@dataclass(frozen=True)
class Row:
    """One call."""

    suite: str
    task: str  # a variant, or the suite again
    instance: str
    solver: str
    limit: float
    seconds: float
    cost: float  # NaN if it found none
    best_known: float  # NaN if there is none
    note: str  # the code of what went wrong

    @property
    def key(self) -> tuple[str, str, float]:
        return self.instance, self.solver, self.limit


# -- the solvers


def ours(problem: Problem, limit: float) -> Solution:
    """`solve` on the cores, also where there is a GPU: the others have none."""
    from chainroute.solve import Effort, solve

    return solve(problem, limit, effort=Effort(device="cpu")).solution


def pyvrp_both(problem: Problem, limit: float) -> Solution:
    """A search on each core."""
    from chainroute.search.solvers.pyvrp import solve

    with ThreadPoolExecutor(CORES) as pool:
        found = list(pool.map(lambda seed: solve(problem, limit, seed).solution, range(CORES)))
    return min(found, key=lambda solution: solution.cost)


def solver(name: str) -> Callable[[Problem, float], Solution]:
    if name == OURS:
        return ours
    if name == "pyvrp-both":
        return pyvrp_both
    chosen = SOLVERS[name]
    return lambda problem, limit: chosen.solve(problem, limit).solution


def warm(name: str) -> None:
    """As many workers as there are cores have loaded the solver, also after one was ended for being late."""
    if name in (OURS, "pyvrp", "pyvrp-both"):
        pyvrp.warm_up(count=CORES)
    else:
        SOLVERS[name].start(None)


# -- the instances


Instance = tuple[str, str, float, Problem]  # task, name, best known cost and problem


def instances(suite: str, count: int, data: Path) -> Iterator[Instance]:
    """`count` of each task, spread evenly over a library's sizes."""
    if suite in ("n50", "n100"):
        n = int(suite[1:])
        for v in SEEN:
            for i, problem in enumerate(problems_from_arrays(benchmark(v, n, "val", count), "")):
                yield v.name, f"{v}-{suite}-val-{i}", np.nan, problem
        return
    (task,) = real.tasks(data, [suite.partition("-")[0]])
    sizes = {"X-small": (0, 250), "X-large": (500, np.inf)}.get(suite, (0, np.inf))
    every = [
        (name, best, i)
        for i, (name, best) in enumerate(zip(task.names, task.best_known, strict=True))
        if suite[0] != "X" or sizes[0] < int(name.split("-")[1][1:]) - 1 <= sizes[1]
    ]
    for at in np.unique(np.linspace(0, len(every) - 1, min(count, len(every))).round().astype(int)):
        name, best, i = every[at]
        yield suite, name, best, task.problem(i)


# -- running


def run(args: argparse.Namespace, instances: Callable[..., Iterator[Instance]] = instances) -> None:
    done = {row.key for row in read_rows(args.csv, Row)}
    if OURS in args.solvers and not getattr(args, "processor_time", False):  # starts the policy's process
        warm(OURS)
        ours(*generate(variant("CVRP"), 50, 1, seed=0), 5.0)
    for suite in args.suites:
        for task, instance, best, problem in instances(suite, args.instances, args.data):
            for limit in args.limits:
                for name in args.solvers:
                    if (instance, name, limit) in done:
                        continue
                    row = call(suite, task, instance, best, problem, name, limit)
                    append_row(args.csv, row)
                    print(f"{instance} {name} {limit:g} s: {row.cost:.6g} {row.note}", flush=True)


def call(suite: str, task: str, instance: str, best: float, problem: Problem, name: str, limit: float) -> Row:
    warm(name)
    cost, note = np.nan, ""
    started = time.perf_counter()
    try:
        solution = solver(name)(problem, limit)
        seconds = time.perf_counter() - started
        verdict = check(problem, solution)
        cost, note = (verdict.cost, "") if verdict.feasible else (np.nan, "infeasible")
    except ChainRouteError as error:
        seconds = time.perf_counter() - started
        note = error.faults[0].code
    return Row(suite, task, instance, name, limit, round(seconds, 3), cost, best, note)


# -- the tables


def tables(rows: Sequence[Row]) -> str:
    """Markdown: per suite and limit, every solver; then ours against its rivals, and where we lose."""
    reference: dict[str, float] = {}
    for row in rows:
        known = row.best_known if np.isfinite(row.best_known) else row.cost
        reference[row.instance] = np.nanmin([reference.get(row.instance, np.inf), known])
    lines = ["| suite | limit | solver | solved | mean cost | mean gap | best at this limit | mean seconds |"]
    lines.append("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for (suite, limit), group in grouped(rows, lambda r: (r.suite, r.limit)):
        least = {k: np.nanmin([r.cost for r in g]) for k, g in grouped(solved(group), lambda r: r.instance)}
        for name, mine in grouped(group, lambda r: r.solver):
            good = solved(mine)
            gaps = [100 * (r.cost / reference[r.instance] - 1) for r in good]
            wins = sum(r.cost <= least[r.instance] * (1 + 1e-9) for r in good)
            cells = [suite, f"{limit:g} s", name, f"{len(good)} of {len(mine)}", mean([r.cost for r in good])]
            cells += [f"{mean(gaps, 2)} %", str(wins), mean([r.seconds for r in mine], 2)]
            lines.append(f"| {' | '.join(cells)} |")
    for rival in RIVALS:
        if {OURS, rival} <= {row.solver for row in rows}:
            lines += _duel(rows, rival)
    return "\n".join(lines)


def _duel(rows: Sequence[Row], rival: str) -> list[str]:
    """Ours against a rival, suite by suite; then the tasks in which we lose."""
    lines = ["", f"{OURS} minus {rival}, per cent of each instance's cost, 95 % confidence intervals:", ""]
    lines += ["| suite | limit | instances | difference | interval |", "| --- | --- | --- | --- | --- |"]
    losses = []
    for (suite, limit), group in grouped(rows, lambda r: (r.suite, r.limit)):
        if (line := versus(group, rival)) is not None:
            lines.append(f"| {suite} | {limit:g} s | {line} |")
        losses += [
            f"| {suite} | {limit:g} s | {task} | {line} |"
            for task, part in grouped(group, lambda r: r.task)
            if (line := versus(part, rival, losing=True)) is not None
        ]
    lines += ["", f"Where {OURS} is worse than {rival} on average:", ""]
    if not losses:
        return [*lines, "Nowhere."]
    heading = "| suite | limit | task | instances | difference | interval |"
    return [*lines, heading, "| --- | --- | --- | --- | --- | --- |", *losses]


def versus(rows: Sequence[Row], rival: str, losing: bool = False) -> str | None:
    """Ours against a rival on the instances that both solved; None if there are none, or we do not lose."""
    cost = {(r.solver, r.instance): r.cost for r in solved(rows)}
    shares = [
        100 * c / cost[rival, instance]
        for (name, instance), c in cost.items()
        if name == OURS and (rival, instance) in cost
    ]
    if not shares:
        return None
    apart = paired("", np.array(shares), np.full(len(shares), 100.0))
    if losing and apart.difference <= 5e-4:
        return None
    interval = f"{apart.low:+.3f} to {apart.high:+.3f} %" if apart.count > 1 else "-"
    return f"{apart.count} | {apart.difference:+.3f} % | {interval}"


def solved(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if np.isfinite(row.cost)]


def grouped(rows: Sequence[Row], key: Callable[[Row], K]) -> list[tuple[K, list[Row]]]:
    groups: dict[K, list[Row]] = defaultdict(list)
    for row in rows:
        groups[key(row)].append(row)
    return list(groups.items())


def mean(values: Sequence[float], digits: int = 4) -> str:
    return f"{np.mean(values):.{digits}f}" if values else "-"


def keep_to_cores() -> None:
    """Has this process, and the workers that inherit it, use no more than CORES."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("csv", type=Path, help="where rows are kept")
    parser.add_argument("--table", action="store_true", help="print Markdown and run nothing")
    parser.add_argument("--instances", type=int, default=50, help="of each task, or of a library")
    parser.add_argument("--limits", type=float, nargs="+", default=LIMITS, help="seconds")
    parser.add_argument("--solvers", nargs="+", default=CHOICE, choices=CHOICE)
    parser.add_argument("--suites", nargs="+", default=SUITES, choices=SUITES)
    parser.add_argument("--data", type=Path, default=LIBRARY, help="folder of the libraries")
    args = parser.parse_args(arguments)
    if args.table:
        print(tables(read_rows(args.csv, Row)))
        return
    keep_to_cores()
    run(args)


if __name__ == "__main__":
    main()
