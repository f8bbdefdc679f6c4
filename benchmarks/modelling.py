"""`solve` beyond the 48 variants against PyVRP called directly, at equal time.

Forty invented problems with mixes of features, 30 to 80 customers. Directly means: the same model in PyVRP's
own terms, one process, PyVRP's own parameters, its plan judged here. Prints a line per problem and the mean
gap of each to the better of both.

    python -m benchmarks.modelling --seconds 5 --problems 40

With `--processor`, seconds are of the processor, and the two searches that `solve` runs side by side run one
after the other, each for so long: what a busy machine would take from them is not counted.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
import pyvrp

from chainroute import Problem, Solution, VehicleType, check, solve
from chainroute.search.library import Found, SearchTask
from chainroute.search.solvers import pyvrp_search
from chainroute.search.solvers.pyvrp import LONGER_HISTORY_SHARE, SHORT_HISTORY_SHARE
from chainroute.search.solvers.pyvrp_fleet import build
from chainroute.solve.attempt import OTHER_SEED
from chainroute.solve.result import Board

MAX_PENALTY = 1e7
FEATURES = ("types", "prizes", "windows", "skills", "trips", "shifts")


def invent(seed: int) -> Problem:
    """A problem with three of the features, in whole numbers."""
    rng = np.random.default_rng(seed)
    has = set(rng.choice(FEATURES, 3, replace=False))
    n = int(rng.integers(30, 81))
    demand = rng.integers(1, 10, n).astype(float)
    opens = rng.integers(0, 400, n)
    types = [VehicleType(name="van", capacity=40.0, fixed_cost=30.0, skills=["a", "b"])]
    if "types" in has:
        types.append(
            VehicleType(name="truck", capacity=90.0, fixed_cost=100.0, cost_per_distance=1.4, count=3)
        )
    if "trips" in has:
        types[0] = VehicleType(name="van", capacity=25.0, fixed_cost=60.0, max_trips=3, skills=["a", "b"])
    if "shifts" in has:
        types.append(VehicleType(name="evening", capacity=40.0, shift=(300, 900), cost_per_time=0.1))
    return Problem(
        name=f"{seed}: {', '.join(sorted(has))}",
        delivery=demand,
        coords=rng.integers(0, 100, (n + 1, 2)).astype(float),
        rounding="round",
        service=np.full(n, 5.0),
        vehicle_types=types,
        prize=np.where(rng.random(n) < 0.3, rng.integers(5, 60, n), np.inf) if "prizes" in has else (),
        skills=[[["a"], ["b"], [], [], []][k] for k in rng.integers(0, 5, n)] if "skills" in has else (),
        customer_windows=[
            [(a, a + 60), (a + 200, a + 320)] if rng.random() < 0.5 else [(a, a + 400)]
            for a in opens.tolist()
        ]
        if "windows" in has
        else (),
    )


class ProcessorTime:
    """A deadline in seconds of this process, with what a search asks of one."""

    def __init__(self, seconds: float):
        self.end = time.process_time() + seconds

    @property
    def left(self) -> float:
        return self.end - time.process_time()

    @property
    def passed(self) -> bool:
        return self.left <= 0

    def __call__(self, best_cost: int) -> bool:
        return self.passed


def by_both_searches(problem: Problem, seconds: float, seed: int) -> float:
    """What the two searches of `solve` find, each in that time of the processor."""
    board = Board(problem, None)
    for number, share in ((seed, SHORT_HISTORY_SHARE), (seed + OTHER_SEED, LONGER_HISTORY_SHARE)):
        reports: list[Found] = []
        deadline: Any = ProcessorTime(seconds)
        pyvrp_search.search(SearchTask(problem, deadline, number, history_share=share), reports.append)
        board.offer(Solution.of(problem, reports[-1].routes), "search")
    return float("inf") if board.best is None else board.best.cost


def directly(problem: Problem, seconds: float, seed: int, processor: bool) -> float:
    """What PyVRP finds by itself in that time; infinite if that is nothing."""
    begin, deadline = time.monotonic(), ProcessorTime(seconds)
    model = build(problem)
    left = seconds - (time.monotonic() - begin)
    # Numbers are as large here as `solve` has them; by its own bound on penalties PyVRP would break rules.
    params = pyvrp.SolveParams(penalty=pyvrp.PenaltyParams(max_penalty=MAX_PENALTY))
    stop = deadline if processor else pyvrp.stop.MaxRuntime(max(left, 0.1))
    result = pyvrp.solve(model.data, stop, seed=seed, display=False, params=params)
    if not result.is_feasible():
        return float("inf")
    solution = Solution.of(problem, model.decode(result.best))
    verdict = check(problem, solution)
    return verdict.cost if verdict.feasible else float("inf")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--problems", type=int, default=40)
    parser.add_argument("--processor", action="store_true", help="count seconds of the processor")
    args = parser.parse_args()
    if not args.processor:
        solve(invent(0), time_limit=2.0)  # workers are started
    gaps: list[tuple[float, float]] = []
    for seed in range(args.problems):
        problem = invent(seed)
        theirs = directly(problem, args.seconds, seed, args.processor)
        if args.processor:
            ours = by_both_searches(problem, args.seconds, seed)
        else:
            ours = solve(problem, time_limit=args.seconds, seed=seed).solution.cost
        best = min(ours, theirs)
        gaps.append((100 * (ours / best - 1), 100 * (theirs / best - 1)))
        print(
            f"{problem.name}, {problem.num_customers} customers: ours {ours:g}, PyVRP {theirs:g}", flush=True
        )
    both = [gap for gap in gaps if np.isfinite(gap).all()]
    print(f"{len(both)} of {len(gaps)} problems were solved by both")
    if both:
        ours, theirs = np.mean(both, axis=0)
        print(f"mean gap in per cent to the better: ours {ours:.2f}, PyVRP {theirs:.2f}")


if __name__ == "__main__":
    main()
