"""The policy as a solver of tasks: on the device by the thousand, and its plans before the judge."""

from __future__ import annotations

import hashlib
import math
import resource
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from chainroute.errors import fail
from chainroute.neural.assembly.routes import Actions, tours, with_depots
from chainroute.neural.decode import attempt, rollouts
from chainroute.neural.decode.engine import engine, in_half
from chainroute.neural.decode.rollout import longest
from chainroute.neural.device import device_name
from chainroute.neural.env import ProblemBatch, Rules
from chainroute.neural.env.stacked import from_arrays
from chainroute.neural.policy import Policy
from chainroute.neural.policy.store import DEFAULT, describe
from chainroute.options import DecodeOptions
from chainroute.problem import Problem
from chainroute.problem.arrays import Arrays, problems_from_arrays
from chainroute.problem.measure import FloatArray
from chainroute.problem.variants import ZERO_SHOT
from chainroute.research.evaluate.exchange import exchanged_costs
from chainroute.research.evaluate.networks import switches
from chainroute.research.evaluate.results import TaskResult
from chainroute.research.evaluate.run import solved
from chainroute.research.evaluate.tasks import Task

JUDGED_PLANS = 100  # plans of each task, besides every plan of a named instance
BATCH_INSTANCES = 64  # named instances of one size that a GPU solves together
PUBLISHED_RATES = ((75, 0.15), (math.inf, 0.02))  # P_ts of the paper's zero-shot tables, by customers
STORED_NAMES = {"starts": "num_starts"}  # what an option is called in result files, where that is older
NOT_STORED = ("memory", "full_precision", "rates_in_turn")  # options that are not stored as they are
ZERO_SHOT_NAMES = {v.name for v in ZERO_SHOT}
COST_TOLERANCE = 1e-6  # relative: how near the judge's cost and the device's must be


@dataclass(frozen=True)
class Neural:
    """A policy with all that decides what it finds."""

    policy: Policy
    options: DecodeOptions
    rules: Rules = Rules.EXACT
    judged: int = JUDGED_PLANS
    card: Mapping[str, Any] = field(default_factory=dict)  # of the weights

    @property
    def device(self) -> torch.device:
        return next(self.policy.parameters()).device

    def settings(self, n: int | None = None) -> dict[str, Any]:
        """All that may change what is found on problems with n customers (None: of several sizes)."""
        counts, several = describe(self.policy), len(self.policy.reembeddings) > 1
        training = self.card.get("training", {})
        options = self.options if n is None else self._options(n)
        return {
            "solver": "neural",
            "weights": fingerprint(self.policy),
            "switches": switches(self.policy.config),
            "parts": {part: counts[part] for part in ("encoder", "decoder")},
            "instances": self.card.get("instances"),
            "trained_seconds": self.card.get("seconds", self.card.get("gpu_seconds")),
            "trained_update_rate": training.get("update_rate"),
            "trained_law": law if (law := training.get("law")) != "paper" else None,
            "saw_all_variants": ZERO_SHOT_NAMES.issubset(training.get("variants", ())) or None,
            "reembeddings": self.policy.reembeddings if several else self.policy.reembeddings[0],
            **{
                STORED_NAMES.get(key, key): v
                for key, v in asdict(self.options).items()
                if key not in NOT_STORED
            },
            "half": in_half(self.policy, self.options),
            "rates_in_turn": self.options.rates_in_turn or None,  # as in results that are older than it
            "used_update_rates": None if n is None else options.rates(n, self.policy.reembeddings),
            "engine": engine(self.policy, self.options),
            "device": device_name(self.device),
            "torch": str(torch.__version__),
        }

    def __call__(self, task: Task, first: int) -> Iterator[TaskResult]:
        """The instances of the task from the first on. Stacked ones are decoded together, and only costs and
        plans leave the device; named ones, and where more is asked than decoding, go by the usual way."""
        if task.arrays is not None and not goes_beyond(self.options):
            yield self._stacked(
                task.name, {key: array[first:] for key, array in task.arrays().items()}, first
            )
        else:
            while first < task.count:
                problems = self._together(task, first)
                began = self._start()
                found = attempt(self.policy, problems, self._options(problems[0].num_customers))
                seconds, memory = time.perf_counter() - began, self._memory()
                for i, outcome in enumerate(found, first):
                    yield solved(task, i, outcome, seconds / len(found), memory)
                first += len(problems)

    def _together(self, task: Task, first: int) -> list[Problem]:
        """The next instances: on a GPU those of one size."""
        problems = [task.problem(first)]
        if self.device.type != "cuda":
            return problems
        for i in range(first + 1, min(task.count, first + BATCH_INSTANCES)):
            problem = task.problem(i)
            if (problem.num_depots, problem.num_customers) != (
                problems[0].num_depots,
                problems[0].num_customers,
            ):
                break
            problems.append(problem)
        return problems

    def warm_up(self, task: Task) -> None:
        """Solves two problems, so that nothing of what happens once is timed."""
        if task.arrays is not None and not goes_beyond(self.options):
            batch = self._batch({key: array[:2] for key, array in task.arrays().items()})
            best_plans(self.policy, batch, self._options(batch.num_customers))

    def _options(self, customers: int) -> DecodeOptions:
        if self.options.update_rates is None and self.rules is Rules.PUBLISHED:
            rate = next(rate for most, rate in PUBLISHED_RATES if customers <= most)
            return replace(self.options, update_rates=(rate,))
        return self.options

    def _batch(self, arrays: Arrays) -> ProblemBatch:
        return replace(from_arrays(arrays, self.device), rules=self.rules)

    def _stacked(self, task: str, arrays: Arrays, first: int) -> TaskResult:
        batch = self._batch(arrays)
        began = self._start()
        costs, plans = best_plans(self.policy, batch, self._options(batch.num_customers))
        costs, plans = costs.cpu(), plans.cpu()  # waits for the device
        seconds, memory = time.perf_counter() - began, self._memory()
        found = np.where(costs.isfinite(), costs, math.nan)
        few = {key: array[: max(0, self.judged - first)] for key, array in arrays.items()}
        refused = self._judge(few, found, plans.numpy(), task)
        unsolved = int(np.isnan(found).sum())
        return TaskResult(
            task, found, seconds, memory, len(few["locs"]), refused,
            notes=(f"{unsolved} instances without a finished trajectory",) if unsolved else (),
        )  # fmt: skip

    def _judge(self, arrays: Arrays, costs: FloatArray, plans: Actions, name: str) -> int:
        """How many of these plans the judge refuses. By exact rules there is none, and costs are the same."""
        if not len(arrays["locs"]):
            return 0
        refused = 0
        for problem, cost, plan in zip(problems_from_arrays(arrays, name), costs, plans, strict=False):
            if math.isnan(cost):
                continue
            _, verdict = with_depots(problem, tours(problem, plan))
            refused += not verdict.feasible
            if self.rules is Rules.EXACT and not (
                verdict.feasible and math.isclose(verdict.cost, cost, rel_tol=COST_TOLERANCE)
            ):
                message = f"the plan has cost {cost}, and the judge says: {verdict}."
                raise fail("internal-error", message, problem.name)
        return refused

    def _start(self) -> float:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
            torch.cuda.reset_peak_memory_stats(self.device)
        return time.perf_counter()

    def _memory(self) -> int:
        """The most bytes taken since the start; without a GPU, the most the process ever had."""
        if self.device.type == "cuda":
            return torch.cuda.max_memory_allocated(self.device)
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def goes_beyond(options: DecodeOptions) -> bool:
    """Whether more is done than the paper does: more than the best of all trajectories."""
    return options.recombine or options.rounds != 0 or options.sector is not None


@torch.inference_mode()
def best_plans(policy: Policy, batch: ProblemBatch, options: DecodeOptions) -> tuple[Tensor, Tensor]:
    """The cost of each instance's best trajectory, (B,), infinite if none finished, and its actions (B, T).

    Under the exact rules with several depots, every route of every trajectory has the depot that is best.
    """
    exchange = batch.num_depots > 1 and batch.rules is Rules.EXACT
    best = batch.distance.new_full((batch.size,), torch.inf)
    plans = torch.zeros(batch.size, longest(batch) + 1, dtype=torch.int16, device=batch.device)
    for instance, made in rollouts(policy, batch, options):
        costs = made.costs
        if exchange:
            costs = torch.where(made.finished, exchanged_costs(batch, instance, made.actions), torch.inf)
        cost, start = costs.min(1)  # of each row
        before, best = best, best.scatter_reduce(0, instance, cost, "amin")
        hit = (cost == best[instance]) & (cost < before[instance])
        rows = torch.arange(len(cost), device=batch.device)
        winner = torch.full_like(instance.new_empty(batch.size), len(cost))
        winner.scatter_reduce_(0, instance[hit], rows[hit], "amin")
        better = winner < len(cost)
        row = winner[better]
        plan = made.actions[row, start[row]]
        plans[better] = torch.nn.functional.pad(plan, (0, plans.shape[1] - plan.shape[1]))
    return best, plans


# -- policies


def weights_file(weights: str | None) -> Path:
    """The named policy; without a name, the shipped one."""
    return DEFAULT if weights is None else Path(weights)


def weights_name(path: Path) -> str:
    """What the policy is called: its file's name, or that of the folder or run whose weights it is."""
    return path.parent.name if path.stem in ("weights", "model", "config") else path.stem


def fingerprint(policy: Policy) -> str:
    """Which weights these are, in a few letters."""
    digest = hashlib.sha256()
    for name, tensor in sorted(policy.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().float().contiguous().numpy().tobytes())
    return digest.hexdigest()[:12]
