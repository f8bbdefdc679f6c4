"""What a lane of `solve` is worth: PyVRP by history, by its first penalties, from cold or after the policy,
and the better of two.

python -m benchmarks.lanes out/lanes.jsonl     # 11 minutes on two cores; run nothing else beside it
python -m benchmarks.lanes out/lanes-gpu.jsonl --device cuda --at-once 6 --lanes H0 H1 M0 PH1

Each lane has a core of its own, two run at a time unless told otherwise. H: a 400th of the iterations as
history, M: a 100th, D: PyVRP's own, with its own penalties; O: a 400th with these. P before it: the policy
has the first quarter of the time. The digit is the seed. Gaps are to the best of all runs.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"  # a lane is a core

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import combinations
from multiprocessing import get_context
from pathlib import Path
from statistics import mean
from unittest.mock import patch

import pyvrp

from chainroute import Problem, Solution, check
from chainroute.generate import benchmark, generate
from chainroute.neural.decode import attempt, fit
from chainroute.neural.policy import Policy
from chainroute.neural.policy.store import load_policy
from chainroute.options.rules import POLICY_SHARE
from chainroute.problem.arrays import problems_from_arrays
from chainroute.problem.variants import SEEN, variant
from chainroute.runtime.deadline import Deadline
from chainroute.search.library import Found, SearchTask
from chainroute.search.solvers import pyvrp_search
from chainroute.search.solvers.pyvrp import LONGER_HISTORY_SHARE, SHORT_HISTORY_SHARE

SHARES = {"H": SHORT_HISTORY_SHARE, "M": LONGER_HISTORY_SHARE, "O": SHORT_HISTORY_SHARE, "D": None}
LANES = ("H0", "H1", "M0", "O0", "D0", "D1", "PH1", "PD1")
FIRST = 4  # validation instances before these are left out: the constants were chosen on them

Job = tuple[str, Problem, float, str, str]  # the instance's name, itself, seconds, lane, the policy's device


def jobs(lanes: Sequence[str], device: str) -> Iterator[Job]:
    for name, problem, limits in instances():
        yield from ((name, problem, seconds, lane, device) for seconds in limits for lane in lanes)


def instances() -> Iterator[tuple[str, Problem, tuple[float, float]]]:
    """Problems with their names and time limits."""
    for n, count in ((100, 2), (50, 1)):
        for v in SEEN:
            drawn = problems_from_arrays(benchmark(v, n, "val", FIRST + count), v.name)[FIRST:]
            for i, problem in enumerate(drawn):
                yield f"{v.name}-{n}-{i}", problem, (0.5, 2.0)
    for name in ("CVRP", "VRPTW", "OVRPB", "VRPLTW"):
        (problem,) = generate(variant(name), 500, 1, seed=5)
        yield f"{name}-500-0", problem, (2.0, 8.0)


@cache
def policy(device: str) -> Policy:
    """The shipped one, loaded, and timed by `fit`, before any clock starts."""
    made = load_policy(device=device)
    fit(made, 50, 1.0)
    return made


def run(job: Job) -> tuple[str, int, float, str, float, float | None]:
    """The job's cost, and the policy's own."""
    name, problem, seconds, lane, device = job
    the_policy = policy(device)
    begin = time.monotonic()
    start, first = None, None
    if lane.startswith("P"):
        share = POLICY_SHARE * seconds
        options, until = fit(the_policy, problem.num_customers, share), Deadline.after(share, begin)
        (found,) = attempt(the_policy, [problem], options, deadline=until)
        if isinstance(found, Solution):
            start, first = found.pairs(), found.cost
    reports = [] if start is None else [Found(start)]
    kind, seed = lane[-2], int(lane[-1])
    until = Deadline.after(seconds, begin)
    task = SearchTask(problem, until, seed, start, history_share=SHARES[kind])
    penalties = pyvrp_search.NeighbourPenalties if kind != "O" else pyvrps_own
    with patch.object(pyvrp_search, "NeighbourPenalties", penalties):
        pyvrp_search.search(task, reports.append)
    best = min((Solution.of(problem, found.routes) for found in reports[-10:]), key=lambda s: s.cost)
    assert check(problem, best).feasible
    return name, problem.num_customers, seconds, lane, best.cost, first


def pyvrps_own(max_penalty: float, iterations: float) -> pyvrp.PenaltyParams:
    return pyvrp.PenaltyParams(max_penalty=max_penalty)


def show(file: Path) -> None:
    costs: dict[tuple[int, float], dict[str, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    first: dict[tuple[int, float], dict[str, float]] = defaultdict(dict)
    least: dict[str, float] = {}
    for line in file.read_text().splitlines():
        name, n, seconds, lane, cost, own = json.loads(line)
        costs[n, seconds][name][lane] = cost
        least[name] = min(cost, least.get(name, cost))
        if own is not None:
            first[n, seconds][name] = own
    for (n, seconds), rows in sorted(costs.items()):
        gaps = sorted(100 * (own / least[name] - 1) for name, own in first[n, seconds].items())
        told = f"{gaps[0]:.1f} to {gaps[-1]:.1f} %, mean {mean(gaps):.1f}" if gaps else "no answer"
        print(f"\nN = {n}, {seconds:g} s, {len(rows)} instances; the policy alone: {told}\n")
        print("| lanes | gap % |\n| --- | --- |")
        for size in (1, 2):
            for chosen in combinations(LANES, size):
                if all(lane in row for row in rows.values() for lane in chosen):
                    gap = mean(min(row[k] for k in chosen) / least[name] - 1 for name, row in rows.items())
                    print(f"| {' + '.join(chosen)} | {100 * gap:.2f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("file", type=Path, help="JSON lines; shown without running where it exists")
    parser.add_argument("--lanes", nargs="+", choices=LANES, default=LANES)
    parser.add_argument("--device", default="cpu", help="of the policy")
    parser.add_argument("--at-once", type=int, default=2, help="lanes that run at a time, one on each core")
    args = parser.parse_args()
    if not args.file.exists():
        with get_context("spawn").Pool(args.at_once) as pool, open(args.file, "w") as out:
            for result in pool.imap(run, jobs(args.lanes, args.device)):
                print(json.dumps(result), file=out, flush=True)
    show(args.file)


if __name__ == "__main__":
    main()
