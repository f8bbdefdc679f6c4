"""What each search finds in the time that the best of eight maps takes, and how large problems come along.

python -m benchmarks.search                              # a few variants with 50 and 100 customers
python -m benchmarks.search --large X-n502-k39.vrp ...   # files with solutions (.sol) beside them

Time is that of the processor, one thread: other work on the machine does not count.
"""

import argparse
import math
import time
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import torch

from chainroute.formats import read
from chainroute.generate import benchmark
from chainroute.neural.decode import DecodeOptions, attempt, decode, fit
from chainroute.neural.policy import Policy
from chainroute.neural.policy.store import DEFAULT, load_policy
from chainroute.plan.solution import Solution
from chainroute.problem import Problem
from chainroute.problem.arrays import problems_from_arrays
from chainroute.problem.variants import variant
from chainroute.runtime.deadline import Deadline

SEARCHES = {
    "8 maps": DecodeOptions(),
    "8 maps, recombined": DecodeOptions(recombine=True),
    "4 maps x 2 samples": DecodeOptions(augmentations=4, samples=2),
    "P = 1, 0.5 on 4 maps": DecodeOptions(augmentations=4, update_rates=(1.0, 0.5)),
    "1 map, rounds": DecodeOptions(augmentations=1, recombine=True, rounds=None),
    "4 maps, rounds": DecodeOptions(augmentations=4, recombine=True, rounds=None),
}


def cost_by(policy: Policy, problem: Problem, options: DecodeOptions, seconds: float) -> float:
    """Of the best solution found, with rounds in the seconds of processor time that are left."""
    deadline = Deadline.after(seconds if options.rounds is None else None)
    (outcome,) = attempt(policy, [problem], options, deadline=deadline)
    return outcome.cost if isinstance(outcome, Solution) else math.inf


def row(*cells: object) -> None:
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def small(policy: Policy, args: argparse.Namespace) -> None:
    """Against the best of eight maps, at the time it takes."""
    names = list(SEARCHES)[1:]
    row("variant", "N", "instances", "seconds", *names)
    row(*["---"] * (4 + len(names)))
    for n in args.sizes:
        for name in args.variants:
            problems = problems_from_arrays(benchmark(variant(name), n, "val", args.count), name)
            gaps, times = [], []
            for problem in problems:
                begun = time.process_time()
                reference = decode(policy, [problem], SEARCHES["8 maps"])[0].cost
                times.append(time.process_time() - begun)
                found = [cost_by(policy, problem, SEARCHES[s], times[-1]) for s in names]
                gaps.append([cost / reference - 1 for cost in found])
            row(
                name,
                n,
                len(problems),
                f"{np.mean(times):.2f}",
                *(f"{100 * g:+.2f} %" for g in np.mean(gaps, 0)),
            )


def large(policy: Policy, args: argparse.Namespace) -> None:
    """What `fit` chooses for a budget, and the gap of what is found in it to the solution beside the file."""
    row("problem", "N", "seconds", "starts", "maps", "sector", "gap")
    row(*["---"] * 7)
    for path in args.large:
        problem = read(path)
        n, text = problem.num_customers, Path(path).with_suffix(".sol").read_text()
        best = float(next(line for line in text.splitlines() if line.startswith("Cost")).split()[1])
        for seconds in args.seconds:
            options = fit(policy, n, seconds)
            gap = cost_by(policy, problem, options, seconds) / best - 1
            chosen = options.trajectories(n), options.augmentations, options.sector or "whole"
            row(problem.name, n, f"{seconds:g}", *chosen, f"{100 * gap:.1f} %")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--weights", help="the path of a policy; by default the one that is shipped")
    parser.add_argument("--sizes", type=int, nargs="+", default=(50, 100))
    parser.add_argument("--variants", nargs="+", default=["CVRP", "OVRPLTW", "VRPB", "VRPTW"])
    parser.add_argument("--count", type=int, default=16, help="validation instances of each")
    parser.add_argument("--seconds", type=float, nargs="+", default=(0.3, 1.0, 5.0), help="with --large")
    parser.add_argument("--large", nargs="+", help="files of large problems")
    args = parser.parse_args()
    torch.set_num_threads(1)
    policy = load_policy(args.weights or DEFAULT)
    clock = SimpleNamespace(monotonic=time.process_time, perf_counter=time.process_time)
    with (
        patch("chainroute.runtime.deadline.time", clock),
        patch("chainroute.neural.decode.speed.time", clock),
    ):
        large(policy, args) if args.large else small(policy, args)


if __name__ == "__main__":
    main()
