"""What the policy's worker does. Imports torch: only that worker imports this module."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import torch

from chainroute.decode import DecodeOptions, attempt, fit
from chainroute.errors import Fault
from chainroute.fast.support import obstacle
from chainroute.policy import Policy
from chainroute.policy.store import load_policy, random_policy, shipped_path
from chainroute.problem import Problem
from chainroute.runtime.device import choose_device
from chainroute.solution import Solution
from chainroute.solve.effort import Effort
from chainroute.solve.neural import Report

POLICIES = 4  # that are kept
LAST_WORD = 0.02  # seconds before the deadline, in which the last report arrives
LARGE = 200  # customers, above which a problem is decoded in sectors of so many


def decode(
    problems: Sequence[Problem],
    effort: Effort,
    seed: int,
    deadline: float | None,
    threads: int,
    report: Callable[[Report], None],
) -> None:
    """Reports routes of each problem as they improve, or why there are none."""
    torch.set_num_threads(threads)
    sizes: dict[int, list[int]] = {}
    for i, problem in enumerate(problems):
        sizes.setdefault(problem.num_customers, []).append(i)
    left = len(problems)
    for members in sizes.values():
        until = None
        if deadline is not None:  # each problem has its share of the time
            now = time.monotonic()
            until = now + (deadline - now) * len(members) / left - LAST_WORD
        left -= len(members)

        def tell(j: int, found: Solution, members: list[int] = members) -> None:
            report((members[j], found.pairs()))

        own = [problems[i] for i in members]
        policy = the_policy(effort, own[0].num_customers)
        if reason := obstacle(policy):
            report((members[0], f"The policy is decoded plainly: the fast engine {reason}."))
        options = options_for(policy, own, effort, seed, until)
        outcomes = attempt(policy, own, options, deadline=until, on_better=tell)
        for i, outcome in zip(members, outcomes, strict=True):
            if isinstance(outcome, Fault) and (until is None or time.monotonic() < until):
                report((i, outcome))


def options_for(
    policy: Policy, problems: Sequence[Problem], effort: Effort, seed: int, deadline: float | None
) -> DecodeOptions:
    """What the caller wishes; else what suits the time; else what suits the size."""
    wishes = {
        "num_starts": effort.starts,
        "augmentations": effort.augmentations,
        "samples": effort.samples,
        "update_rates": effort.update_rates,
        "recombine": effort.recombine,
        "rounds": effort.rounds,
    }
    given: dict[str, Any] = {name: value for name, value in wishes.items() if value is not None}
    if given:
        return DecodeOptions(**given, seed=seed)
    if deadline is not None:
        return fit(policy, problems[0], (deadline - time.monotonic()) / len(problems), seed)
    if problems[0].num_customers > LARGE:  # the policy is lost in much more than it was trained on
        return DecodeOptions(8, 1, update_rates=(0.25,), sector=LARGE, recombine=True, seed=seed)
    return DecodeOptions(augmentations=1 if effort.polish else 8, recombine=True, seed=seed)


def the_policy(effort: Effort, customers: int) -> Policy:
    return _policy(os.fspath(effort.weights or shipped_path(customers)), effort.device)


@lru_cache(POLICIES)
def _policy(path: str, device: str | None) -> Policy:
    policy = random_policy() if path == "random" else load_policy(path)
    return policy.to(choose_device(device or "auto"))
