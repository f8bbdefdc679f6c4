"""What recombining trajectories takes on one core, and what it brings, beside PyVRP from the best of them.

python -m benchmarks.recombine --sizes 100 --augment 8

Problems and references are those of `benchmarks.throughput`. Milliseconds are of the processor, from
trajectories to a judged plan; gaps are means to the references.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np

from benchmarks import throughput
from benchmarks.throughput import REFERENCED, REFERENCES, SHORT_HISTORY_SHARE, SIZES, VARIANTS, improved, part
from chainroute.arrays import problems_from_arrays
from chainroute.assembly import Draft, assembled, incumbent, recombine
from chainroute.options import DecodeOptions
from chainroute.policy.store import load_policy
from chainroute.problem import Problem
from chainroute.runtime import deadline
from chainroute.runtime.device import choose_device
from chainroute.solution import Solution

VISITS, WIDTHS = (5_000, 10_000, 20_000, 40_000), (64, 256)
POLISH_SECONDS = (0.01, 0.02, 0.05)
TOGETHER = 8  # problems that are decoded together

Finish = Callable[[Problem, Draft], float]


def plan_cost(problem: Problem, draft: Draft) -> float:
    found = assembled(problem, draft)
    return found.cost if isinstance(found, Solution) else np.inf


def shortened(draft: Draft, customers: int, visits: int) -> Draft:
    """The trajectories of a draft that so many visits leave; its own are in the order of their costs."""
    most = max(1, visits // customers)
    return replace(draft, pieces=tuple((a[:most], finished[:most]) for a, finished in draft.pieces))


def methods() -> Iterator[tuple[str, Finish]]:
    """Each way from trajectories to a plan, by its name."""
    yield "best trajectory", lambda p, draft: plan_cost(p, replace(shortened(draft, 1, 1), recombine=False))
    for visits in VISITS:
        for width in WIDTHS:

            def recombined(p: Problem, draft: Draft, visits: int = visits, width: int = width) -> float:
                with patch.object(recombine, "BEAM_WIDTH", width):
                    return plan_cost(p, shortened(draft, p.num_customers, visits))

            yield f"{visits:,} visits, beam of {width}", recombined
    for seconds in POLISH_SECONDS:

        def polished(p: Problem, draft: Draft, seconds: float = seconds) -> float:
            best = assembled(p, replace(shortened(draft, 1, 1), recombine=False))
            start = best if isinstance(best, Solution) else None
            with patch.object(deadline, "time", SimpleNamespace(monotonic=time.process_time)):
                return improved(p, start, seconds, SHORT_HISTORY_SHARE)

        yield f"best trajectory, PyVRP for {seconds:g} s", polished


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--variants", nargs="+", default=VARIANTS)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES[:2])
    parser.add_argument("--augment", type=int, default=8, help="maps")
    parser.add_argument("--problems", type=int, default=REFERENCED)
    parser.add_argument("--device", default="auto")
    args = parser.parse_args(arguments)
    references = json.loads(REFERENCES.read_text())
    policy = load_policy(device=choose_device(args.device))
    options = DecodeOptions(augmentations=args.augment, recombine=True)
    print("| case | plan | ms | gap % |\n| --- | --- | --- | --- |")
    for name, arrays in throughput.cases(args):
        drafts = list[Draft]()
        with patch.object(incumbent, "KEPT_VISITS", max(VISITS)):
            for first in range(0, args.problems, TOGETHER):
                drafts += throughput.decoded(policy, part(arrays, first, TOGETHER), options)
        problems = list(problems_from_arrays(arrays, ""))
        known = np.array(references.get(name, {"costs": [np.nan] * len(problems)})["costs"])[: len(problems)]
        for problem in problems:
            problem.distances  # noqa: B018  # made when first asked for, which is nobody's time
        for method, finish in methods():
            begin = time.process_time()
            costs = [finish(*one) for one in zip(problems, drafts, strict=True)]
            milliseconds = 1000 * (time.process_time() - begin) / len(problems)
            gap = 100 * np.mean(np.array(costs) / known - 1)
            print(f"| {name} | {method} | {milliseconds:.1f} | {gap:.3f} |", flush=True)


if __name__ == "__main__":
    main()
