"""What recombining trajectories takes on one core, and what it brings, beside PyVRP from the best of them.
The last row is for all problems together on the device.

python -m benchmarks.recombine --sizes 100 --augment 8
python -m benchmarks.recombine --sizes 100 --augment 8 --problems 128 --device cuda

Problems and references are those of `benchmarks.throughput`. Milliseconds are of the processor, from
trajectories to a judged plan, and on the device of the clock, to plans that are still to be judged. Gaps are
means to the references of those that have one.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import torch

from benchmarks import throughput
from benchmarks.throughput import REFERENCED, REFERENCES, SHORT_HISTORY_SHARE, SIZES, VARIANTS, improved, part
from chainroute.arrays import problems_from_arrays
from chainroute.assembly import Draft, assembled, incumbent, recombine
from chainroute.assembly.incumbent import most_promising
from chainroute.decode import api
from chainroute.decode.memory import budget
from chainroute.decode.recombine import recombined
from chainroute.env import ProblemBatch
from chainroute.env.stacked import from_arrays
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


def on_device(batch: ProblemBatch, drafts: Sequence[Draft]) -> tuple[float, list[Draft]]:
    """Seconds of the clock for all problems on the device of their batch, and their plans."""
    steps = max(actions.shape[-1] for draft in drafts for actions, _ in draft.pieces)

    def stacked(draft: Draft) -> tuple[np.ndarray, np.ndarray]:
        most = most_promising(batch.num_customers)
        actions = [np.pad(a, ((0, 0), (0, steps - a.shape[-1]))) for a, _ in draft.pieces]
        return np.concatenate(actions)[:most], np.concatenate([whole for _, whole in draft.pieces])[:most]

    actions, whole = (
        torch.from_numpy(np.stack(some)).to(batch.device) for some in zip(*map(stacked, drafts), strict=True)
    )
    for _ in range(2):  # the first also sets things up
        begin = time.perf_counter()
        plans, there = (x.cpu().numpy() for x in recombined(batch, actions, whole, 1, budget(batch.device)))
        seconds = time.perf_counter() - begin
    return seconds, [Draft(((plans[i], there[i]),), 1, False) for i in range(batch.size)]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--variants", nargs="+", default=VARIANTS)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES[:2])
    parser.add_argument("--augment", type=int, default=8, help="maps")
    parser.add_argument("--problems", type=int, default=REFERENCED)
    parser.add_argument("--device", default="auto")
    args = parser.parse_args(arguments)
    references = json.loads(REFERENCES.read_text())
    device = choose_device(args.device)
    policy = load_policy(device=device)
    options = DecodeOptions(augmentations=args.augment, recombine=True)
    print("| case | plan | ms | gap % |\n| --- | --- | --- | --- |")
    for name, arrays in throughput.cases(args):
        drafts = list[Draft]()
        with (
            patch.object(incumbent, "KEPT_VISITS", max(VISITS)),
            patch.object(api, "on_device", lambda device: False),
        ):
            for first in range(0, args.problems, TOGETHER):
                drafts += throughput.decoded(policy, part(arrays, first, TOGETHER), options)
        problems = list(problems_from_arrays(arrays, ""))
        known = np.array(references.get(name, {"costs": []})["costs"])[: len(problems)]
        for problem in problems:
            problem.distances  # noqa: B018  # made when first asked for, which is nobody's time
        for method, finish in methods():
            begin = time.process_time()
            costs = [finish(*one) for one in zip(problems, drafts, strict=True)]
            tell(name, method, time.process_time() - begin, costs, known)
        seconds, plans = on_device(from_arrays(part(arrays, 0, args.problems)).to(device), drafts)
        costs = [plan_cost(*one) for one in zip(problems, plans, strict=True)]
        tell(name, f"on the {device.type}, {len(problems)} together", seconds, costs, known)


def tell(case: str, method: str, seconds: float, costs: Sequence[float], known: np.ndarray) -> None:
    """Prints a row."""
    gap = 100 * np.mean(np.array(costs)[: len(known)] / known - 1) if len(known) else np.nan
    print(f"| {case} | {method} | {1000 * seconds / len(costs):.2f} | {gap:.3f} |", flush=True)


if __name__ == "__main__":
    main()
