"""What the policy's worker does. Imports torch: only that worker imports this module."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import lru_cache

import torch

from chainroute.errors import Fault
from chainroute.neural.assembly import PolicyReport
from chainroute.neural.decode import attempt, drafts, fit
from chainroute.neural.device import choose_device
from chainroute.neural.fast.support import obstacle
from chainroute.neural.policy import Policy
from chainroute.neural.policy.store import DEFAULT, load_policy, random_policy
from chainroute.options import Effort
from chainroute.plan.solution import Solution
from chainroute.problem import Problem
from chainroute.runtime.deadline import LAST_REPORT_SECONDS, Deadline

POLICIES = 4  # that are kept


def decode(
    problems: Sequence[Problem],
    effort: Effort,
    seed: int,
    deadline: Deadline,
    threads: int,
    report: Callable[[PolicyReport], None],
    *,
    as_drafts: bool = False,
) -> None:
    """Reports routes of each problem as they improve, or why there are none.

    With `as_drafts`, it reports trajectories where all that is left to do is to make plans of them.
    """
    torch.set_num_threads(threads)
    sizes: dict[int, list[int]] = {}
    for i, problem in enumerate(problems):
        sizes.setdefault(problem.num_customers, []).append(i)
    left = len(problems)
    for members in sizes.values():
        share = deadline.share(len(members) / left)  # of the time that is left
        until = share.earlier(LAST_REPORT_SECONDS)
        left -= len(members)

        def tell(j: int, found: Solution, members: list[int] = members) -> None:
            report((members[j], found.pairs()))

        own = [problems[i] for i in members]
        policy = the_policy(effort)
        if reason := obstacle(policy):
            report((members[0], f"The policy is decoded plainly: the fast engine {reason}."))
        seconds = None if until.never else until.left / len(own)
        options = fit(policy, own[0].num_customers, seconds, effort, seed)
        size = own[0].num_customers
        if as_drafts and options.rounds == 0 and size <= (options.sector or size):
            for j, draft in drafts(policy, own, options):
                report((members[j], draft))
            continue
        outcomes = attempt(policy, own, options, deadline=until, on_better=tell)
        for i, outcome in zip(members, outcomes, strict=True):
            if isinstance(outcome, Fault) and not until.passed:
                report((i, outcome))


def the_policy(effort: Effort) -> Policy:
    """The policy that is asked for, or the one that is shipped, loaded once."""
    return _policy(os.fspath(effort.weights or DEFAULT), effort.device, effort.trust_code)


@lru_cache(POLICIES)
def _policy(path: str, device: str | None, trust_code: bool) -> Policy:
    policy = random_policy() if path == "random" else load_policy(path, trust_code=trust_code)
    return policy.to(choose_device(device or "auto"))
