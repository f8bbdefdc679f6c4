"""Problems in, judged solutions out."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from chainroute.check import Verdict
from chainroute.decode.options import DecodeOptions
from chainroute.decode.rollout import Rollout
from chainroute.decode.routes import Actions, least_costs, tours, with_depots
from chainroute.decode.search import require_gpu_for_half, rollouts, rows_at_once
from chainroute.env import from_problems
from chainroute.errors import ChainRouteError, Fault, fail
from chainroute.policy import Policy
from chainroute.problem import Problem
from chainroute.solution import Solution

TOLD = 5  # violations that a message names


def decode(
    policy: Policy,
    problems: Sequence[Problem],
    options: DecodeOptions | None = None,
    device: torch.device | str | None = None,
) -> list[Solution]:
    """The best solution found for each problem, every one accepted by the judge.

    The policy is moved to `device`, if one is given. Problems without a solution are raised together.
    """
    outcomes = attempt(policy, problems, options, device)
    faults = [outcome for outcome in outcomes if isinstance(outcome, Fault)]
    if faults:
        raise ChainRouteError(faults)
    return [outcome for outcome in outcomes if isinstance(outcome, Solution)]


def attempt(
    policy: Policy,
    problems: Sequence[Problem],
    options: DecodeOptions | None = None,
    device: torch.device | str | None = None,
) -> list[Solution | Fault]:
    """As `decode`, with the reason in place of a solution where none was found."""
    options = options or DecodeOptions()
    if not problems:
        raise fail("bad-option", "there are none.", "problems")
    if device is not None:
        policy.to(_device(device))
    require_gpu_for_half(options, next(policy.parameters()).device)
    searches = [_Search(problem) for problem in problems]
    for bucket, rows in _buckets(searches, policy, options):
        together = max(1, rows // options.copies)
        for i in range(0, len(bucket), together):
            _run(policy, bucket[i : i + together], options)
    return [search.outcome() for search in searches]


class _Search:
    """What is known about one problem: the best solution so far, and why others failed."""

    def __init__(self, problem: Problem):
        self.problem = problem
        self.solution: Solution | None = None
        self.cost = math.inf
        self.failure: Verdict | None = None
        self.tried = 0

    def consider(self, actions: Actions, finished: NDArray[np.bool_]) -> None:
        """Takes the best of trajectories (C, T), if it is better than what there is."""
        p, complete = self.problem, actions[finished]
        costs = least_costs(p, complete)
        for i in np.argsort(costs, kind="stable"):
            if costs[i] >= self.cost:
                break
            solution, verdict = with_depots(p, tours(p, complete[i]))
            if verdict.feasible and verdict.cost < self.cost:
                self.solution, self.cost = solution, verdict.cost
        if self.solution is None:
            self.explain(actions)

    def explain(self, actions: Actions) -> None:
        """Keeps what is wrong with the trajectory that serves most customers with fewest routes."""
        p, away = self.problem, actions >= self.problem.num_depots
        routes = (np.diff(away, axis=1, prepend=False) & away).sum(1)
        nearest = np.lexsort((routes, -away.sum(1)))[0]
        _, verdict = with_depots(p, tours(p, actions[nearest]))
        if self.failure is None or len(verdict.violations) < len(self.failure.violations):
            self.failure = verdict

    def outcome(self) -> Solution | Fault:
        if self.solution is not None:
            return self.solution
        assert self.failure is not None
        wrong = [v.message for v in self.failure.violations]
        more = f" And {len(wrong) - TOLD} more." if len(wrong) > TOLD else ""
        message = f"none of {self.tried} trajectories keeps all rules. The nearest: {' '.join(wrong[:TOLD])}"
        return Fault("no-solution", message + more, self.problem.name)


def _buckets(
    searches: Sequence[_Search], policy: Policy, options: DecodeOptions
) -> list[tuple[list[_Search], int]]:
    """Problems of the same size, and how many copies of them are decoded together."""
    sizes: dict[tuple[int, int], list[_Search]] = defaultdict(list)
    for search in searches:
        sizes[search.problem.num_depots, search.problem.num_customers].append(search)
    device = next(policy.parameters()).device
    buckets, faults = [], list[Fault]()
    for (depots, customers), bucket in sizes.items():
        name = bucket[0].problem.name
        try:
            buckets.append((bucket, rows_at_once(policy, depots, customers, options, device, name)))
        except ChainRouteError as error:
            faults += error.faults
    if faults:
        raise ChainRouteError(faults)
    return buckets


def _run(policy: Policy, searches: Sequence[_Search], options: DecodeOptions) -> None:
    """Decodes problems of one size together."""
    problems = [search.problem for search in searches]
    batch = from_problems(problems).to(next(policy.parameters()).device)
    # Several depots can be exchanged and vehicles can be too many, so not only the cheapest may be wanted.
    every = batch.num_depots > 1 or any(p.fleet is not None for p in problems)
    for instances, result in rollouts(policy, batch, options):
        actions, finished = _candidates(result, every, batch.num_depots)
        rows = instances.cpu().numpy()
        for i in np.unique(rows):
            own = rows == i
            searches[i].tried += int(own.sum()) * result.costs.shape[1]
            searches[i].consider(np.concatenate(actions[own]), np.concatenate(finished[own]))


def _candidates(result: Rollout, every: bool, depots: int) -> tuple[Actions, NDArray[np.bool_]]:
    """Actions (B, C, T) and finished (B, C) of all trajectories, or of the best of each row."""
    actions, finished = result.actions, result.finished
    if not every:
        missing = -(actions >= depots).sum(-1)  # so that of those that are stuck the one that came farthest
        best = torch.where(finished, result.costs, 1e9 + missing).argmin(1, keepdim=True)
        finished = finished.gather(1, best)
        actions = actions.gather(1, best[..., None].expand(-1, -1, actions.shape[-1]))
    return actions.cpu().numpy(), finished.cpu().numpy()


def _device(name: torch.device | str) -> torch.device:
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise fail("bad-option", f"'{name}' cannot be used: {reason}.", "device") from None
    return device
