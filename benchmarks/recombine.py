"""What recombining trajectories takes on one core, and what it brings, beside PyVRP from the best of them.
The last two rows are of the device, all problems together: decoding, and recombining after it.

python -m benchmarks.recombine --sizes 100 --augment 8
python -m benchmarks.recombine --sizes 100 --augment 8 --problems 128 --device cuda --device-only

It needs what `benchmarks.throughput` does, PyVRP also with --device-only: problems and references are taken
from there. Milliseconds are of the processor, from trajectories to a judged plan, and on the device of the
clock, to plans that are still to be judged. Gaps are means to the references of those that have one.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
from torch import Tensor

from benchmarks import throughput
from benchmarks.throughput import REFERENCED, REFERENCES, SHORT_HISTORY_SHARE, SIZES, VARIANTS, improved, part
from chainroute.neural.assembly import Draft, assembled, incumbent, recombine
from chainroute.neural.assembly.incumbent import most_promising
from chainroute.neural.decode import api, rollouts
from chainroute.neural.decode.memory import budget
from chainroute.neural.decode.recombine import recombined
from chainroute.neural.device import choose_device
from chainroute.neural.env import ProblemBatch
from chainroute.neural.env.stacked import from_arrays
from chainroute.neural.policy import Policy
from chainroute.neural.policy.store import load_policy
from chainroute.options import DecodeOptions
from chainroute.plan.solution import Solution
from chainroute.problem import Problem
from chainroute.problem.arrays import problems_from_arrays
from chainroute.runtime import deadline

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


def trajectories(policy: Policy, batch: ProblemBatch, options: DecodeOptions) -> tuple[Tensor, Tensor]:
    """The most promising trajectories of each problem (B, C, T), the best first, and which are whole."""
    made = [*rollouts(policy, batch, options)]
    actions, costs, _ = api.cheapest(made, batch.size, most_promising(batch.num_customers))
    return actions, costs.isfinite()


def on_device(
    policy: Policy, batch: ProblemBatch, options: DecodeOptions
) -> tuple[float, float, list[Draft]]:
    """Seconds of the clock for decoding all problems on the device, for recombining them there, and plans."""
    for _ in range(1 if batch.device.type == "cpu" else 2):  # the first also makes kernels
        begin = time.perf_counter()
        actions, whole = trajectories(policy, batch, options)
        whole.cpu()  # waits for the device
        decoded = time.perf_counter()
        plans, there = (x.cpu().numpy() for x in recombined(batch, actions, whole, 1, budget(batch.device)))
        end = time.perf_counter()
    drafts = [Draft(((plans[i], there[i]),), 1, False) for i in range(batch.size)]
    return decoded - begin, end - decoded, drafts


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--variants", nargs="+", default=VARIANTS)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES[:2])
    parser.add_argument("--augment", type=int, default=8, help="maps")
    parser.add_argument("--problems", type=int, default=REFERENCED)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--device-only", action="store_true", help="leave out what cores do")
    args = parser.parse_args(arguments)
    references = json.loads(REFERENCES.read_text())
    device = choose_device(args.device)
    policy = load_policy(device=device)
    options = DecodeOptions(augmentations=args.augment, recombine=True)
    print("| case | plan | ms | gap % |\n| --- | --- | --- | --- |")
    for name, arrays in throughput.cases(args):
        problems = list(problems_from_arrays(arrays, ""))
        known = np.array(references.get(name, {"costs": []})["costs"])[: len(problems)]
        for problem in problems:
            problem.distances  # noqa: B018  # made when first asked for, which is nobody's time
        drafts = list[Draft]()
        with (
            patch.object(incumbent, "KEPT_VISITS", max(VISITS)),
            patch.object(api, "on_device", lambda device: False),
        ):
            for first in range(0, 0 if args.device_only else len(problems), TOGETHER):
                drafts += throughput.decoded(policy, part(arrays, first, TOGETHER), options)
        for method, finish in methods() if drafts else ():
            begin = time.process_time()
            costs = [finish(*one) for one in zip(problems, drafts, strict=True)]
            tell(name, method, time.process_time() - begin, costs, known)
        decoding, recombining, plans = on_device(policy, from_arrays(arrays, device), options)
        costs = [plan_cost(*one) for one in zip(problems, plans, strict=True)]
        best = [plan_cost(p, shortened(plan, 1, 1)) for p, plan in zip(problems, plans, strict=True)]
        tell(name, f"decoded on the {device.type}, {len(problems)} together", decoding, best, known)
        tell(name, f"and recombined there, {len(problems)} together", recombining, costs, known)


def tell(case: str, method: str, seconds: float, costs: Sequence[float], known: np.ndarray) -> None:
    """Prints a row."""
    gap = 100 * np.mean(np.array(costs)[: len(known)] / known - 1) if len(known) else np.nan
    print(f"| {case} | {method} | {1000 * seconds / len(costs):.2f} | {gap:.3f} |", flush=True)


if __name__ == "__main__":
    main()
