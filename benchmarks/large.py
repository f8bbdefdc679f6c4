"""Large problems at equal wall time on two cores: ours, PyVRP from cold and VROOM, every plan judged.

python -m benchmarks.large out/large.csv                                      # all; ends and goes on at will
python -m benchmarks.large out/large.csv --suites CVRP-2000 --limits 60       # a part of it
python -m benchmarks.large out/large.csv --table                              # Markdown, of what there is
python -m benchmarks.large out/large.csv --bounds                             # what could be better at all
python -m benchmarks.large --first-plans                                      # costs and seconds
python -m benchmarks.large --largest                                          # 10,000: memory, judge

Problems are drawn by the laws of two libraries: CVRP by that of Uchoa et al.'s X (2017), VRPTW by that of
Solomon's (1987), on a map that grows with the number of customers. The libraries themselves are suites of
`benchmarks.compare` (X-large, homberger600), which also says how calls are made and rows are kept. On a
machine that others use, `--processor-time` counts seconds of the processor instead of the clock's, in one
process: PyVRP has the limit, ours twice that, as two cores have; `--parts 300` makes parts of one size there.
"""

import argparse
import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np

from benchmarks import compare
from benchmarks.rows import read_rows
from chainroute import Problem, Solution, check
from chainroute.problem.measure import FloatArray, Rounding
from chainroute.runtime import deadline
from chainroute.runtime.deadline import Deadline
from chainroute.search.library import Found, Load, OnFound, SearchTask
from chainroute.search.own import ruin
from chainroute.search.own.construct import constructions, cut_tour
from chainroute.search.own.savings import by_savings
from chainroute.search.solvers import pyvrp, pyvrp_search
from chainroute.solve import sectors, solve

SIZES, LIMITS = (1_000, 2_000, 5_000, 10_000), (10.0, 60.0)
SUITES = tuple(f"{kind}-{n}" for n in SIZES for kind in ("CVRP", "VRPTW"))
CHOICE = ("ours", "pyvrp", "pyvrp-both", "vroom")
SIDE = 1_000  # of the map for 1,000 customers


def places(rng: np.random.Generator, n: int) -> FloatArray:
    """The depot, in the middle, in a corner or anywhere, and customers: half of them in clusters."""
    side = SIDE * np.sqrt(n / 1_000)
    depot = [np.full(2, side / 2), np.zeros(2), rng.random(2) * side][rng.integers(3)]
    free = rng.random((n - n // 2, 2)) * side
    centres = rng.random((int(rng.integers(3, 9)) * max(1, n // 1_000), 2)) * side
    drift = rng.exponential(40.0, (n // 2, 1)) * _directions(rng, n // 2)
    clustered = centres[rng.integers(len(centres), size=n // 2)] + drift
    return np.rint(np.clip(np.concatenate([depot[None], free, clustered]), 0, side))


def _directions(rng: np.random.Generator, n: int) -> FloatArray:
    angle = rng.random(n) * 2 * np.pi
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


def by_x(n: int, seed: int) -> Problem:
    """A CVRP by X's law: whole distances, a law of demand, and 3 to 25 customers that fill a vehicle."""
    rng = np.random.default_rng([n, seed, 0])
    low, high = [(1, 1), (1, 10), (5, 10), (1, 100), (50, 100)][rng.integers(5)]
    demand = rng.integers(low, high + 1, size=n)
    capacity = max(int(np.ceil(rng.triangular(3, 6, 25) * demand.mean())), high)
    return Problem(
        capacity=capacity,
        delivery=demand,
        coords=places(rng, n),
        rounding=Rounding.ROUND,
        name=f"CVRP-{n}-{seed}",
    )


def by_solomon(n: int, seed: int) -> Problem:
    """A VRPTW by Solomon's law: odd seeds have long days and large vehicles, and half of all customers or
    more have windows, around a time at which they can be served."""
    rng = np.random.default_rng([n, seed, 1])
    coords, service = places(rng, n), 10.0
    far = np.hypot(*(coords[1:] - coords[0]).T)
    day = 2 * far.max() + service + (1_000.0 if seed % 2 else 300.0)
    centre = rng.uniform(far, day - far - service)
    half = rng.uniform(0.02, 0.15) * day
    has_window = rng.random(n) < rng.choice([0.5, 0.75, 1.0])
    opening = np.where(has_window, np.clip(centre - half, 0, None), 0.0)
    closing = np.where(has_window, np.minimum(centre + half, day - far - service), day - far - service)
    return Problem(
        capacity=1_000 if seed % 2 else 200,
        delivery=rng.integers(1, 36, size=n),
        coords=coords,
        service=np.full(n, service),
        time_windows=np.concatenate([[[0.0, day]], np.stack([opening, np.maximum(opening, closing)], 1)]),
        name=f"VRPTW-{n}-{seed}",
    )


def instances(suite: str, count: int, _: object) -> Iterator[compare.Instance]:
    kind, n = suite.split("-")
    for seed in range(count):
        problem = (by_x if kind == "CVRP" else by_solomon)(int(n), seed)
        yield suite, problem.name, np.nan, problem


def radial_bound(problem: Problem) -> float:
    """What any plan of a CVRP costs at least, but for what the rounding of legs takes off: each customer pays
    for its share of a full vehicle's way there and back (Haimovich and Rinnooy Kan, 1985)."""
    ways = problem.distance(0, np.arange(1, problem.num_locations))
    return float(2 * (ways * problem.delivery).sum() / problem.capacity)


def bounds(rows: Sequence[compare.Row]) -> Iterator[str]:
    """For each CVRP that PyVRP has solved with the most time: the bound, PyVRP's cost, and which share of
    what lies between them is 2 % of that cost."""
    yield "| problem | radial bound | PyVRP | above the bound | of which 2 % of the cost |"
    yield "| --- | --- | --- | --- | --- |"
    for row in rows:
        if row.solver == "pyvrp" and row.limit == LIMITS[-1] and row.suite.startswith("CVRP"):
            bound = radial_bound(by_x(*map(int, row.instance.split("-")[1:])))
            above = row.cost - bound
            share = f"{100 * above / bound:.1f} % | {2 * row.cost / above:.0f} %"
            yield f"| {row.instance} | {bound:,.0f} | {row.cost:,.0f} | {share} |"


def in_processor_time(
    problem: Problem, seconds: float, name: str, part_sizes: Sequence[int] = sectors.PART_SIZES
) -> Solution:
    """What a solver finds where time is this process's own, and waits for nobody."""

    def here(task: SearchTask, on_report: OnFound, *_: object, load: Load) -> None:
        load()(task, on_report)

    found: list[Found] = []
    with ExitStack() as patches:
        patches.enter_context(patch.object(deadline, "time", SimpleNamespace(monotonic=time.process_time)))
        patches.enter_context(patch.object(sectors, "PART_SIZES", part_sizes))
        for solver in (pyvrp, ruin):
            patches.enter_context(patch.object(solver, "search", partial(here, load=solver.load)))
        if name == "pyvrp":
            pyvrp_search.search(SearchTask(problem, Deadline.after(seconds)), found.append)
            return Solution.of(problem, found[-1].routes)
        until = Deadline.after(compare.CORES * seconds)
        plan = by_savings(problem)
        assert plan is not None
        ruin.load()
        work = sectors.Sectors(plan, 0, 1, until, is_rough=False, anneals=sectors.anneals(problem))
        work.work(lambda: None, threading.Event())
        return work.plan


def first_plans(suites: Sequence[str], count: int) -> Iterator[str]:
    """What plans cost before any search: pieces of a tour, and by savings, with the seconds of the latter."""
    yield "| problem | pieces of a tour | by savings | routes | seconds |"
    yield "| --- | --- | --- | --- | --- |"
    for suite in suites:
        for _, name, _, problem in instances(suite, count, None):
            pieces, begin = cut_tour(problem), time.process_time()
            joined, seconds = by_savings(problem), time.process_time() - begin
            assert pieces is not None
            assert joined is not None
            assert check(problem, joined).feasible
            costs = f"{pieces.cost:,.0f} | {joined.cost:,.0f}"
            yield f"| {name} | {costs} | {len(joined.routes)} | {seconds:.2f} |"


def capacity_test(n: int = SIZES[-1], seconds: float = LIMITS[0]) -> Iterator[str]:
    """For each kind: when the first plans came, seconds of the judge, and the most memory that this process
    and each of its workers held."""
    for problem in (by_x(n, 0), by_solomon(n, 0)):
        result = solve(problem, seconds)
        first = {progress.source: progress.seconds for progress in reversed(result.history)}
        plan = next(constructions(problem))  # with its many routes it takes the judge longest
        begin = time.process_time()
        check(problem, plan)
        judged = time.process_time() - begin
        came = ", ".join(f"{source} after {at:.2f} s" for source, at in first.items())
        held = " + ".join(f"{gigabytes:.2f}" for gigabytes in _peaks())
        yield f"{problem.name}: {came}; the judge {judged:.3f} s; memory {held} GB"


def _peaks() -> Iterator[float]:
    """The largest resident memory of this process and of its workers, in GB; Linux only."""
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            facts = dict(line.split(":", 1) for line in status.read_text().splitlines())
        except OSError:  # it has ended
            continue
        if os.getpid() in (int(facts["Pid"]), int(facts["PPid"])):
            yield int(facts["VmHWM"].split()[0]) / 1e6


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "csv", type=Path, nargs="?", default=Path("out/large.csv"), help="where rows are kept"
    )
    parser.add_argument("--table", action="store_true", help="print Markdown and run nothing")
    parser.add_argument("--bounds", action="store_true", help="print how far PyVRP is above a lower bound")
    parser.add_argument("--first-plans", action="store_true", help="print what plans cost before any search")
    parser.add_argument("--largest", action="store_true", help="first plan, judge and memory of the largest")
    parser.add_argument("--instances", type=int, default=4, help="of each suite")
    parser.add_argument("--limits", type=float, nargs="+", default=LIMITS, help="seconds")
    parser.add_argument("--solvers", nargs="+", default=CHOICE, choices=CHOICE)
    parser.add_argument("--suites", nargs="+", default=SUITES, metavar="KIND-SIZE")
    parser.add_argument("--processor-time", action="store_true", help="seconds of the processor")
    parser.add_argument(
        "--parts",
        type=int,
        nargs="+",
        default=sectors.PART_SIZES,
        help="customers of a part, by processor time",
    )
    args = parser.parse_args(arguments)
    args.data = None
    if args.table:
        print(compare.tables(read_rows(args.csv, compare.Row)))
        return
    if args.bounds:
        print(*bounds(read_rows(args.csv, compare.Row)), sep="\n")
        return
    if args.first_plans:
        print(*first_plans(args.suites, args.instances), sep="\n")
        return
    if args.processor_time:
        args.solvers = [name for name in args.solvers if name in ("ours", "pyvrp")]
        solver = lambda name: partial(in_processor_time, name=name, part_sizes=args.parts)  # noqa: E731
        with patch.object(compare, "warm", lambda _: None), patch.object(compare, "solver", solver):
            compare.run(args, instances)
        return
    compare.keep_to_cores()
    if args.largest:
        print(*capacity_test(), sep="\n")
    else:
        compare.run(args, instances)


if __name__ == "__main__":
    main()
