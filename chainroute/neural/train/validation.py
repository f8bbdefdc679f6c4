"""How good a policy is on the tasks of the benchmark: mean costs and gaps to the reference solutions.

Greedy multi-start as in the paper: one trajectory from each customer, on one map or all eight (turned and
mirrored), the best of all. During a run only validation sets are used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from chainroute.generate import benchmark
from chainroute.generate.references import references
from chainroute.neural.decode import best_costs
from chainroute.neural.device import choose_device
from chainroute.neural.env import ProblemBatch
from chainroute.neural.env.stacked import from_arrays
from chainroute.neural.policy import Policy
from chainroute.neural.policy.store import load_policy, read_card
from chainroute.options import MAPS, DecodeOptions
from chainroute.problem.variants import SEEN, Variant

Split = Literal["test", "val"]

CHOOSING_PROBLEMS = 64  # validation problems of each task by which an update rate is chosen


@dataclass(frozen=True)
class TaskCost:
    """One line of a table of gaps."""

    variant: str
    n: int
    split: Split
    count: int  # instances
    cost: float  # mean
    reference: float | None  # mean cost of the reference solutions of the test set; None where none are known

    @property
    def gap(self) -> float | None:
        """The gap in per cent. Other sets than the test set have other optima: there it is an estimate."""
        return None if self.reference is None else 100 * (self.cost / self.reference - 1)


@dataclass(frozen=True)
class Exam:
    """Tasks of one size and number of depots, ready to be decoded together."""

    variants: tuple[Variant, ...]
    n: int
    split: Split
    batch: ProblemBatch  # the same number of instances of each variant, one variant after the other


def prepare(
    n: int, variants: Sequence[Variant], split: Split, limit: int | None, device: torch.device | str
) -> list[Exam]:
    exams = []
    for several in (False, True):
        group = tuple(v for v in variants if v.multi_depot is several)
        if group:
            batches = [from_arrays(benchmark(v, n, split, limit), device) for v in group]
            exams.append(Exam(group, n, split, _joined(batches)))
    return exams


def examine(
    policy: Policy,
    exams: Sequence[Exam],
    augment: bool,
    rate_at: Callable[[int], float],
    over: Callable[[], bool] = lambda: False,
) -> list[TaskCost]:
    """The tasks of the exams, or those that were done when it was `over`.

    `rate_at` gives the update rate for a number of customers.
    """
    tasks: list[TaskCost] = []
    for exam in exams:
        parts = []
        instances = torch.arange(exam.batch.size, device=exam.batch.device)
        for rows in torch.split(instances, _at_once(exam.batch)):
            if over():
                return tasks
            parts.append(greedy_costs(policy, _part(exam.batch, rows), augment, rate_at(exam.n)))
        costs = torch.cat(parts).view(len(exam.variants), -1)
        for variant, cost in zip(exam.variants, costs, strict=True):
            known = references().get((variant.name, exam.n))
            tasks.append(TaskCost(variant.name, exam.n, exam.split, len(cost), cost.mean().item(), known))
    return tasks


def _part(batch: ProblemBatch, rows: Tensor) -> ProblemBatch:
    return batch if len(rows) == batch.size else batch.map(lambda t: t[rows])


def _at_once(batch: ProblemBatch) -> int:
    """Instances between two looks at the clock: on a CPU less than a second's work."""
    return batch.size if batch.device.type == "cuda" else max(1, 200 // batch.num_customers)


def evaluate_tasks(
    policy: Policy,
    n: int,
    variants: Sequence[Variant],
    split: Split,
    limit: int | None = None,
    augment: bool = False,
    update_rate: float = 1.0,
) -> list[TaskCost]:
    """The policy's mean cost on the first `limit` instances of each task, on the device of the policy."""
    device = policy.device
    return examine(policy, prepare(n, variants, split, limit, device), augment, lambda n: update_rate)


def best_rates(
    weights: Path, n: int, tasks: Sequence[str], limit: int | None, device: str
) -> tuple[float] | None:
    """The update rate that suits a trained network on validation problems, as decoding takes it: that of its
    training, or that of its testing; None where it re-embeds nothing, or its card has neither."""
    training = read_card(weights).get("training") or {}
    rates = sorted({training[f] for f in ("update_rate", "test_update_rate") if f in training})
    policy = load_policy(weights, choose_device(device))
    if policy.config.reembedding == "off" or not rates:
        return None
    variants = [v for v in SEEN if not tasks or v.name in tasks]
    count = min(limit or CHOOSING_PROBLEMS, CHOOSING_PROBLEMS)

    def cost(rate: float) -> float:
        return sum(task.cost for task in evaluate_tasks(policy, n, variants, "val", count, update_rate=rate))

    return (min(rates, key=cost),)


def mean_gap(tasks: Sequence[TaskCost]) -> float | None:
    gaps = [task.gap for task in tasks if task.gap is not None]
    return sum(gaps) / len(gaps) if gaps else None


def greedy_costs(policy: Policy, batch: ProblemBatch, augment: bool, update_rate: float) -> Tensor:
    """The cost of the best trajectory of each instance, (B,); infinite where none finished."""
    options = DecodeOptions(augmentations=MAPS if augment else 1, update_rates=(update_rate,))
    return best_costs(policy, batch, options)


def _joined(batches: Sequence[ProblemBatch]) -> ProblemBatch:
    """Batches of one size as one."""
    first = batches[0]
    together: dict[str, Any] = {
        f.name: torch.cat([getattr(b, f.name) for b in batches])
        for f in fields(first)
        if isinstance(getattr(first, f.name), Tensor)
    }
    return replace(first, **{**together, "duration": together["distance"]})
