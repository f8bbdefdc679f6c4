"""Many problems on one machine: problems per second against the gap, ours and PyVRP's on all cores.

python -m benchmarks.throughput --reference-seconds 6                  # long runs of PyVRP, kept in one file
python -m benchmarks.throughput --device cuda --csv out/throughput.csv
python -m benchmarks.throughput --device cpu --sizes 50 --seconds 5 --batch 16 --methods policy-x1 pyvrp-0.1
python -m benchmarks.throughput --host --device cpu --sizes 50 --problems 64   # what cores do for a problem

It needs torch, NumPy, safetensors, Triton (on a GPU) and PyVRP, nothing else. Problems follow the paper's
law; a gap is the mean over those that have a reference, the first of each case. References are counted in
seconds of the processor, for 100 customers; others have more or less by their number of customers.

policy-x1, policy-x8       the best trajectory, on one or eight maps
recombined-x1, -x2, ...    the best plan of the routes of all trajectories
recombined-x2r20, ...      the same with 20 re-embeddings of the nodes in place of as many as the card says
polished-x1-0.1, ...       that, and then PyVRP from it for so many seconds
product-0.1, ...           `solve_many` with that time limit
product-policy             `solve_many` with the policy alone as it decodes by default, to compare with
                           recombined-x8: eight maps, as many re-embeddings as the card says
product-x2r20, ...         the same with other maps and re-embeddings, to compare with recombined-x2r20
pyvrp-0.1, ...             PyVRP from cold for so many seconds

Each method has problems for `--seconds`, the same again where there are too few. A GPU decodes and recombines
the next batch while cores judge and polish the one before; the column `device` says for which share of the
time it did. On a CPU the cores recombine, too. Every plan is judged. Workers run, and kernels are made,
before the clock starts. What is recombined comes as arrays, of which cores make problems; `solve_many` is
given problems, which one core makes while it runs, and gives back solutions: the difference of their rows is
what that takes. A network is given a problem stretched to fill the unit square, and arrays as they are drawn,
so that plans are alike where problems fill it, as those of 50 customers nearly do: they reach over 0.98.
"""

import argparse
import importlib.util
import json
import os
import pickle
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import torch

if importlib.util.find_spec("vrplib") is None:  # PyVRP imports it for reading files, of which there are none
    _stand_in = tempfile.TemporaryDirectory(prefix="chainroute-")  # where processes of ours find it, too
    Path(_stand_in.name, "vrplib.py").touch()
    sys.path.insert(0, _stand_in.name)

from benchmarks.rows import append_row
from chainroute.errors import Fault
from chainroute.generate import generate_arrays
from chainroute.neural.assembly import Draft, assembled, joined
from chainroute.neural.decode import batch_drafts
from chainroute.neural.device import choose_device, device_name
from chainroute.neural.env import from_problems
from chainroute.neural.env.stacked import from_arrays
from chainroute.neural.policy import Policy
from chainroute.neural.policy.store import load_policy
from chainroute.options import DecodeOptions, Effort
from chainroute.plan.check import check
from chainroute.plan.solution import Solution
from chainroute.problem import Problem
from chainroute.problem.arrays import Arrays, problems_from_arrays
from chainroute.problem.variants import variant
from chainroute.research.evaluate.policy_solver import best_plans
from chainroute.runtime import deadline
from chainroute.runtime.cores import cores
from chainroute.runtime.deadline import Deadline
from chainroute.runtime.worker import ONE_THREAD
from chainroute.search.library import Found, SearchTask
from chainroute.search.solvers import pyvrp_search
from chainroute.search.solvers.pyvrp import SHORT_HISTORY_SHARE
from chainroute.solve import solve_many
from chainroute.solve.policy_process import Proposal, assemble
from chainroute.solve.reduction import reduction

REFERENCES = Path(__file__).parent / "throughput-references.json"
DRAWN, REFERENCED = 2_048, 96  # problems of each case; those that have a reference
VARIANTS, SIZES = ("CVRP", "VRPTW"), (50, 100, 200)
METHODS = (
    "policy-x1", "policy-x8", "recombined-x1", "recombined-x2", "recombined-x4", "recombined-x8",
    "polished-x1-0.05", "polished-x8-0.2", "product-0.1", "product-policy",
    "pyvrp-0.02", "pyvrp-0.05", "pyvrp-0.1", "pyvrp-0.2", "pyvrp-0.5", "pyvrp-2",
)  # fmt: skip
ASSEMBLED_TOGETHER, POLISHED_TOGETHER = 16, 2  # problems that a core takes at a time
READ_TOGETHER = 64  # problems that are made at a time for `solve_many`
WARM_PROBLEMS = 1_057  # before the clock starts: whole batches of `solve_many` on a GPU, and a part of one
HOST_REPEATS = 9  # of each step of the host's work, of which the fastest counts
CHUNKS_AHEAD = 8  # of these for each core that are on their way; with fewer, the device waits for cores


@dataclass(frozen=True)
class Row:
    """What a method did for a case, by the policy of these weights."""

    case: str
    weights: str
    method: str
    per_second: float  # problems
    gap: float  # in percent, to the references
    device: float  # share of the time in which it decoded
    unsolved: int


# -- on the cores


def started() -> None:
    torch.set_num_threads(1)


def search(arrays: Arrays, seconds: float) -> list[float]:
    """What PyVRP's plans cost."""
    return [
        improved(problem, None, seconds, SHORT_HISTORY_SHARE) for problem in problems_from_arrays(arrays, "")
    ]


def refer(arrays: Arrays, seconds: float) -> list[float]:
    """What PyVRP's plans cost after so many seconds of the processor, whoever else uses the machine."""
    clock = SimpleNamespace(monotonic=time.process_time)
    with patch.object(deadline, "time", clock):
        return [improved(problem, None, seconds, None) for problem in problems_from_arrays(arrays, "")]


def finish(arrays: Arrays, drafts: list[Draft], seconds: float) -> list[float]:
    """What plans cost: those of drafts, or these after a search."""
    costs = []
    for problem, draft in zip(problems_from_arrays(arrays, ""), drafts, strict=True):
        found = assembled(problem, draft)
        plan = found if isinstance(found, Solution) else None
        if seconds:
            costs.append(improved(problem, plan, seconds, SHORT_HISTORY_SHARE))
        else:
            costs.append(np.inf if plan is None else plan.cost)
    return costs


def improved(problem: Problem, start: Solution | None, seconds: float, share: float | None) -> float:
    """What the last plan of a search costs, by the judge; infinite if there is none."""
    found: list[Found] = []
    routes = None if start is None else start.pairs()
    task = SearchTask(problem, Deadline.after(seconds), start=routes, history_share=share)
    pyvrp_search.search(task, found.append)
    verdict = check(problem, Solution.of(problem, found[-1].routes))
    return verdict.cost if verdict.feasible else np.inf


class Here(Executor):
    """Runs everything at once, in this process: for small tests."""

    def submit(self, task: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(task(*args, **kwargs))
        return future


class Line:
    """Chunks that are on their way to the cores, no more than they need to be busy."""

    def __init__(self, executor: Executor, workers: int):
        self.executor, self.most = executor, CHUNKS_AHEAD * max(workers, 1)
        self.out: dict[Future[list[float]], int] = {}
        self.costs: dict[int, list[float]] = {}  # by the chunk's first problem

    def send(self, first: int, task: Callable[..., list[float]], *args: Any) -> None:
        while len(self.out) >= self.most:
            self.take()
        self.out[self.executor.submit(task, *args)] = first

    def send_batch(self, first: int, arrays: Arrays, drafts: list[Draft], size: int, seconds: float) -> None:
        """The drafts of a batch of problems, so many in a chunk, to be finished."""
        for i in range(0, len(drafts), size):
            self.send(first + i, finish, part(arrays, i, size), drafts[i : i + size], seconds)

    def take(self) -> None:
        for future in wait(self.out, return_when=FIRST_COMPLETED).done:
            self.costs[self.out.pop(future)] = future.result()

    def all(self) -> np.ndarray:
        while self.out:
            self.take()
        return np.array([cost for _, chunk in sorted(self.costs.items()) for cost in chunk])


# -- on the device


def decoded(policy: Policy, arrays: Arrays, options: DecodeOptions) -> list[Draft]:
    """The trajectories of each problem; the best alone unless they are recombined."""
    batch = from_arrays(arrays, policy.device)
    if not options.recombine:
        costs, plans = best_plans(policy, batch, options)
        finished, actions = costs.isfinite().cpu().numpy(), plans.cpu().numpy()
        return [Draft(((actions[i : i + 1], finished[i : i + 1]),), 1, False) for i in range(batch.size)]
    made: list[list[Draft]] = [[] for _ in range(batch.size)]
    for i, draft in batch_drafts(policy, batch, options):
        made[i].append(draft)
    return [joined(some) for some in made]


def part(arrays: Arrays, first: int, count: int) -> Arrays:
    return {key: array[first : first + count] for key, array in arrays.items()}


def rounds(arrays: Arrays, size: int, until: float) -> Iterator[tuple[int, Arrays]]:
    """Parts of so many problems, each with the number of its first, over and over again until that moment; at
    least those that have a reference."""
    total, first = len(arrays["locs"]), 0
    while first < min(REFERENCED, total) or time.perf_counter() < until:
        some = part(arrays, first % total, size)
        yield first, some
        first += len(some["locs"])


def options_of(method: str, customers: int) -> tuple[DecodeOptions | None, float]:
    """How a method decodes, if it says so, and the seconds of its search."""
    kind, *numbers = method.split("-")
    if not numbers[0].startswith("x"):
        return None, 0.0 if numbers[0] == "policy" else float(numbers[0])
    maps, _, reembeddings = numbers[0][1:].partition("r")
    rates = (min(1.0, int(reembeddings) / customers),) if reembeddings else None
    options = DecodeOptions(augmentations=int(maps), recombine=kind != "policy", update_rates=rates)
    return options, float(numbers[1]) if numbers[1:] else 0.0


def effort_of(options: DecodeOptions | None, seconds: float, weights: str, device: str) -> Effort:
    """The same for `solve_many`."""
    effort = Effort(device=device, polish=seconds > 0, weights=weights)
    if options is None:
        return effort
    return replace(
        effort, augmentations=options.augmentations, update_rates=options.update_rates, recombine=True
    )


def measured(
    method: str, policy: Policy, weights: str, arrays: Arrays, line: Line, batch_problems: int, budget: float
) -> tuple[np.ndarray, float, float]:
    """Costs, seconds, and the share of these in which the device decoded."""
    options, seconds = options_of(method, arrays["demand_linehaul"].shape[1])
    begin, decoding = time.perf_counter(), 0.0
    if method.startswith("product"):
        problems = (
            problem
            for _, some in rounds(arrays, READ_TOGETHER, begin + budget)
            for problem in problems_from_arrays(some, "")
        )
        effort = effort_of(options, seconds, weights, policy.device.type)
        for outcome in solve_many(problems, seconds or None, effort=effort):
            line.costs[outcome.index] = [outcome.result.solution.cost if outcome.result else np.inf]
    elif options is None:
        for first, some in rounds(arrays, 1, begin + budget):
            line.send(first, search, some, seconds)
    else:
        size = POLISHED_TOGETHER if seconds else ASSEMBLED_TOGETHER
        with ThreadPoolExecutor(1) as sender:  # it waits for cores, so that the device need not
            sent: Future[None] | None = None
            for first, some in rounds(arrays, batch_problems, begin + budget):
                since = time.perf_counter()
                drafts = decoded(policy, some, options)
                decoding += time.perf_counter() - since
                if sent is not None:
                    sent.result()  # one batch ahead, no more; and what went wrong is raised
                sent = sender.submit(line.send_batch, first, some, drafts, size, seconds)
        if sent is not None:
            sent.result()
    costs = line.all()
    took = time.perf_counter() - begin
    return costs, took, decoding / took


# -- what cores do for each problem beside decoding


def host_work(policy: Policy, arrays: Arrays) -> dict[str, float]:
    """Milliseconds of a core that each step takes for a problem; each step has problems as they come from
    another process, with nothing computed yet."""
    problems = problems_from_arrays(arrays, "")
    drafts = decoded(policy, arrays, DecodeOptions(augmentations=1, recombine=False))
    message = pickle.dumps(problems)

    def fresh() -> list[Problem]:
        return pickle.loads(message)

    def proposals() -> list[Proposal]:
        known = map(reduction, fresh())
        return [Proposal(k, draft) for k, draft in zip(known, drafts, strict=True) if k is not None]

    def plans(some: list[Problem]) -> list[Solution | Fault]:
        return [assembled(problem, draft) for problem, draft in zip(some, drafts, strict=True)]

    made = [tuple(plan.routes) for plan in plans(problems) if isinstance(plan, Solution)]
    steps: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
        "made and validated": (lambda: arrays, lambda some: problems_from_arrays(some, "")),
        "sent to a process": (fresh, lambda some: pickle.loads(pickle.dumps(some))),
        "made a batch": (fresh, from_problems),
        "plan made and judged": (fresh, plans),
        "the same by a core of `solve_many`": (proposals, lambda some: assemble(some, lambda _: None)),
        "priced at the end": (
            fresh,
            lambda some: [Solution(*pair).cost for pair in zip(some, made, strict=True)],
        ),
    }
    found = {}
    for name, (given, work) in steps.items():
        took = []
        for _ in range(HOST_REPEATS):
            some, begin = given(), time.process_time()
            work(some)
            took.append(time.process_time() - begin)
        found[name] = 1_000 * min(took) / len(problems)
    return found


def host_table(args: argparse.Namespace) -> None:
    """Prints a row of milliseconds for each case."""
    torch.set_num_threads(1)
    policy, head = load_policy(args.weights, choose_device(args.device)), True
    for name, arrays in cases(args):
        row = host_work(policy, arrays)
        if head:
            print(f"| ms of a core | {' | '.join(row)} |\n|{' --- |' * (len(row) + 1)}")
            head = False
        print(f"| {name} | {' | '.join(f'{ms:.3f}' for ms in row.values())} |", flush=True)


# -- references, and the table


def make_references(args: argparse.Namespace, executor: Executor, workers: int) -> None:
    """PyVRP's costs for the first problems of each case that has none yet."""
    known = json.loads(args.references.read_text()) if args.references.exists() else {}
    for name, arrays in cases(args):
        if name not in known:
            line, seconds = Line(executor, workers), args.reference_seconds * int(name[-3:]) / 100
            for i in range(min(REFERENCED, len(arrays["locs"]))):
                line.send(i, refer, part(arrays, i, 1), seconds)
            known[name] = {"seconds": seconds, "costs": line.all().tolist()}
            args.references.write_text(json.dumps(known))
            print(f"{name}: {len(known[name]['costs'])} problems of {seconds:g} s", flush=True)


def cases(args: argparse.Namespace) -> Iterator[tuple[str, Arrays]]:
    for name in args.variants:
        for n in args.sizes:
            yield f"{name}-{n:03}", part(generate_arrays(variant(name), n, DRAWN, seed=0), 0, args.problems)


def table(args: argparse.Namespace, executor: Executor, workers: int) -> None:
    """A row for each case and method, printed and written as it is measured."""
    references = json.loads(args.references.read_text())
    device = choose_device(args.device)
    policy = load_policy(args.weights, device)
    print(f"{device_name(device)}, {workers} cores, {args.seconds:g} s for each method\n")
    print("| case | method | problems/s | gap % | device | unsolved |\n| --- | --- | --- | --- | --- | --- |")
    for name, arrays in cases(args):
        known = references.get(name, {"costs": []})["costs"]  # without references the gap is not a number
        reference = np.array(known)[: args.problems]
        batch, warm = max(1, args.batch * min(args.sizes) // int(name[-3:])), set()
        for method in args.methods:
            options, seconds = options_of(method, arrays["demand_linehaul"].shape[1])
            if method.startswith("product"):  # its processes, and kernels for batches like these
                few = part(arrays, 0, WARM_PROBLEMS if device.type == "cuda" else 2 * workers + 1)
                effort = effort_of(options, seconds, args.weights, device.type)
                deque(solve_many(problems_from_arrays(few, ""), seconds or None, effort=effort), 0)
            elif options is not None and options not in warm:  # kernels for a batch like this
                decoded(policy, part(arrays, 0, batch), options)
                warm.add(options)
            line = Line(executor, workers)
            costs, took, share = measured(method, policy, args.weights, arrays, line, batch, args.seconds)
            solved = np.isfinite(costs[: len(reference)])
            gaps = 100 * (costs[: len(reference)][solved] / reference[solved] - 1)
            gap = float(gaps.mean()) if len(gaps) else np.nan
            unsolved, speed = int(np.isinf(costs).sum()), len(costs) / took
            print(f"| {name} | {method} | {speed:.1f} | {gap:.3f} | {share:.2f} | {unsolved} |", flush=True)
            if args.csv:
                weights = "" if method.startswith("pyvrp") else Path(args.weights).name
                append_row(args.csv, Row(name, weights, method, speed, gap, share, unsolved))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "--reference-seconds", type=float, help="of PyVRP for 100 customers; makes references"
    )
    parser.add_argument("--host", action="store_true", help="measure what cores do for a problem, alone")
    parser.add_argument("--references", type=Path, default=REFERENCES)
    parser.add_argument("--variants", nargs="+", default=VARIANTS)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--methods", nargs="+", default=METHODS)
    parser.add_argument("--problems", type=int, default=DRAWN, help=f"of each case, at most {DRAWN}")
    parser.add_argument("--seconds", type=float, default=1.5, help="of each method, about")
    parser.add_argument("--batch", type=int, default=256, help="problems decoded together, of the least size")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--cores", type=int, default=cores(), help="0: all in this process")
    parser.add_argument(
        "--weights", default="all", help="of the policy: a folder, or the name of a shipped one"
    )
    parser.add_argument("--csv", type=Path, help="where to add the rows")
    args = parser.parse_args(arguments)
    if args.host:
        host_table(args)
        return
    os.environ.update(ONE_THREAD)  # of the processes that are started from here
    pool = ProcessPoolExecutor(args.cores, get_context("spawn"), started) if args.cores else Here()
    with pool as executor:
        if args.reference_seconds is not None:
            make_references(args, executor, args.cores)
            return
        wait([executor.submit(time.sleep, 1) for _ in range(args.cores)])  # all workers are there
        table(args, executor, args.cores)


if __name__ == "__main__":
    main()
