"""Problems in, judged solutions out."""

from __future__ import annotations

import math
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import pad

from chainroute.errors import ChainRouteError, Fault, Place, fail
from chainroute.neural.assembly.incumbent import Draft, Incumbent, joined, most_promising, promising
from chainroute.neural.assembly.recombine import Pool
from chainroute.neural.assembly.routes import Actions, Nodes, Tour, least_costs, tours
from chainroute.neural.decode.memory import budget
from chainroute.neural.decode.neighbourhood import Rounds
from chainroute.neural.decode.parts import parts, sectors
from chainroute.neural.decode.recombine import on_device, recombined
from chainroute.neural.decode.rollout import Rollout
from chainroute.neural.decode.search import rollouts, rows_at_once
from chainroute.neural.device import choose_device
from chainroute.neural.env import ProblemBatch, from_problems
from chainroute.neural.policy import Policy
from chainroute.options import DecodeOptions
from chainroute.plan.check import check
from chainroute.plan.solution import Solution
from chainroute.problem import Problem
from chainroute.runtime.deadline import NEVER, Deadline

KEPT_OF_EVERY = 8  # trajectories beside a recombined plan, where the judge may refuse the first


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
    *,
    deadline: Deadline = NEVER,
    initial: Sequence[Solution | None] | None = None,
    on_better: Callable[[int, Solution], None] | None = None,
) -> list[Solution | Fault]:
    """The same as `decode`, with the reason in place of a solution where none was found.

    When the deadline passes, the best so far are returned. A problem with an initial
    solution is not decoded: its routes are where the rounds begin. `on_better` hears
    of each problem's solutions as they are found, each cheaper than the one before.
    """
    options = options or DecodeOptions()
    _require_sense(problems, options, deadline, initial)
    if device is not None:
        policy.to(choose_device(str(device)))
    searches = [Incumbent(p, partial(on_better, i) if on_better else None) for i, p in enumerate(problems)]
    for search, given in zip(searches, initial or [None] * len(searches), strict=True):
        if given is not None:
            search.begin(given)
    buckets = _buckets(searches, policy, options)
    running = list[Rounds]()
    for bucket, rows in buckets:
        alone = options.rounds == 0 or deadline.passed
        whole = None if alone else _batch(bucket)  # rounds need all of them at once
        new = [i for i, search in enumerate(bucket) if search.solution is None]
        together = max(1, rows // options.copies)
        for first in range(0, len(new), together):
            if not deadline.passed:
                own = new[first : first + together]
                chosen = [bucket[i] for i in own]
                batch = _batch(chosen) if whole is None else whole.pick(own)
                _run(policy, chosen, batch, options, deadline)
        if whole is not None:
            running.append(Rounds(policy, bucket, whole, options))
    while running and not deadline.passed:
        running = [rounds for rounds in running if rounds.run_one(deadline)]
    return [search.outcome() for search in searches]


def drafts(
    policy: Policy, problems: Sequence[Problem], options: DecodeOptions
) -> Iterator[tuple[int, Draft | Fault]]:
    """The trajectories of each problem, for others to make plans of while the device goes on; or why there
    are none. Problems are decoded whole, and once."""
    searches = [Incumbent(problem) for problem in problems]
    index = {id(search): i for i, search in enumerate(searches)}
    for bucket, rows in _buckets(searches, policy, replace(options, sector=None)):
        together = max(1, rows // options.copies)
        for first in range(0, len(bucket), together):
            chosen = bucket[first : first + together]
            found: list[list[Draft]] = [[] for _ in chosen]
            try:
                batch = _batch(chosen, policy.device)
                for i, draft in batch_drafts(policy, batch, options, every=_every(chosen)):
                    found[i].append(draft)
            except ChainRouteError as error:
                for search in chosen:
                    yield index[id(search)], error.faults[0].moved(field=search.problem.name)
                continue
            for search, some in zip(chosen, found, strict=True):
                yield index[id(search)], joined(some)


def _require_sense(
    problems: Sequence[Problem],
    options: DecodeOptions,
    deadline: Deadline,
    initial: Sequence[Solution | None] | None,
) -> None:
    if not problems:
        raise fail("bad-option", "there are none.", "problems", "Give at least one.")
    if options.rounds is None and deadline.never:
        message, remedy = "rounds without end need a deadline.", "Give a deadline, or a number of rounds."
        raise fail("bad-option", message, "rounds", remedy)
    if initial is not None and len(initial) != len(problems):
        message = f"must hold a solution or None for each of {len(problems)} problems, not {len(initial)}."
        raise fail("bad-option", message, "initial")
    faults = []
    for i, (problem, given) in enumerate(zip(problems, initial or (), strict=False)):
        if given is not None and (wrong := check(problem, given).violations):
            faults.append(Fault("infeasible-start", wrong[0].message, Place("initial", (i,))))
    if faults:
        raise ChainRouteError(faults)


def _buckets(
    searches: Sequence[Incumbent], policy: Policy, options: DecodeOptions
) -> list[tuple[list[Incumbent], int]]:
    """Problems of the same size, and how many copies of them, or of their parts, are decoded together."""
    sizes: dict[tuple[int, int], list[Incumbent]] = defaultdict(list)
    for search in searches:
        sizes[search.problem.num_depots, search.problem.num_customers].append(search)
    device = policy.device
    buckets, faults = [], list[Fault]()
    for (depots, customers), bucket in sizes.items():
        name = bucket[0].problem.name
        most = min(customers, options.sector or customers)
        try:
            buckets.append((bucket, rows_at_once(policy, depots, most, options, device, name)))
        except ChainRouteError as error:
            faults += error.faults
    if faults:
        raise ChainRouteError(faults)
    return buckets


def _batch(searches: Sequence[Incumbent], device: torch.device | str = "cpu") -> ProblemBatch:
    return from_problems([search.problem for search in searches], device=device)


def _run(
    policy: Policy,
    searches: Sequence[Incumbent],
    batch: ProblemBatch,
    options: DecodeOptions,
    deadline: Deadline,
) -> None:
    """Decodes problems of one size together: in sectors, if they are larger, and what that leaves whole."""
    if options.sector is not None and searches[0].problem.num_customers > options.sector:
        _run_sectors(policy, searches, batch, options, options.sector, deadline)
        left = [i for i, search in enumerate(searches) if search.solution is None]
        searches, batch = [searches[i] for i in left], batch.pick(left)
    if searches and not deadline.passed:
        try:
            _run_whole(policy, searches, batch.to(policy.device), options, deadline)
        except ChainRouteError as error:
            for search in searches:
                search.refusal = error.faults[0].moved(field=search.problem.name)


def _run_whole(
    policy: Policy,
    searches: Sequence[Incumbent],
    batch: ProblemBatch,
    options: DecodeOptions,
    deadline: Deadline,
) -> None:
    for i, draft in batch_drafts(policy, batch, options, deadline, _every(searches)):
        searches[i].take(draft)
    if options.recombine:
        for search in searches:
            search.recombine()


def _every(searches: Sequence[Incumbent]) -> bool:
    """Whether not only the cheapest trajectory may be wanted: depots can be exchanged, vehicles too many."""
    return any(s.problem.num_depots > 1 or s.problem.fleet is not None for s in searches)


def batch_drafts(
    policy: Policy,
    batch: ProblemBatch,
    options: DecodeOptions,
    deadline: Deadline = NEVER,
    every: bool = False,
) -> Iterator[tuple[int, Draft]]:
    """What each part of a batch, as it is decoded, has for each of its problems: all trajectories where
    `every` one may be wanted, the best ones where they are recombined, else the best of each map. Those that
    are recombined on the device have their best plan and few others."""
    if options.recombine and options.rounds == 0 and on_device(batch.device):  # rounds need the routes
        yield from _recombined_drafts(policy, batch, options, deadline, KEPT_OF_EVERY if every else 1)
        return
    for instances, result in rollouts(policy, batch, options, deadline):
        if deadline.passed and not result.finished.any():
            return
        actions, finished = _candidates(result, every or options.recombine, batch.num_depots)
        rows, costs = instances.cpu().numpy(), result.costs.cpu().numpy()
        for i in np.unique(rows):
            own = rows == i
            piece = np.concatenate(actions[own]), np.concatenate(finished[own])
            if options.recombine:
                best = promising(np.concatenate(costs[own]), batch.num_customers)
                piece = piece[0][best], piece[1][best]
            yield int(i), Draft((piece,), int(own.sum()) * result.costs.shape[1], options.recombine)


def _recombined_drafts(
    policy: Policy, batch: ProblemBatch, options: DecodeOptions, deadline: Deadline, kept: int
) -> Iterator[tuple[int, Draft]]:
    """A draft for each problem of a batch, with the `kept` best trajectories and the best plan of the routes
    of all; or all that are promising, where none is a whole plan for the vehicles there are."""
    n, device = batch.num_customers, batch.device
    rows = rows_at_once(policy, batch.num_depots, n, options, device, "batch")
    together = max(1, rows // options.copies)
    for first in range(0, batch.size, together):
        part = batch[first : first + together]
        made = [*rollouts(policy, part, options, deadline)]
        if not made or (deadline.passed and not any(result.finished.any() for _, result in made)):
            return
        tried = sum(result.costs.numel() for _, result in made) // part.size
        actions, costs, finished = cheapest(made, part.size, most_promising(n))
        memory = options.memory or budget(device)
        try:
            plans, there = (
                x.cpu().numpy() for x in recombined(part, actions, costs.isfinite(), kept, memory)
            )
        except Exception as error:  # such as a lack of memory: cores can do it
            warnings.warn(f"Routes are recombined on cores, since the device failed: {error}", stacklevel=2)
            plans, there = np.empty((part.size, 0, 1), np.int16), np.empty((part.size, 0), bool)
        found = there.sum(1)
        for i in range(part.size):
            piece = plans[i], there[i]
            if not found[i]:
                piece = actions[i].cpu().numpy(), finished[i].cpu().numpy()
            yield first + i, Draft((piece,), tried, recombine=not found[i])


def cheapest(made: Sequence[tuple[Tensor, Rollout]], size: int, most: int) -> tuple[Tensor, Tensor, Tensor]:
    """The actions (B, C, T) of the trajectories of each of so many instances, `most` of them and the cheapest
    first, their costs and which have finished, (B, C); of rollouts with the instance of each row, of which
    every instance has as many."""
    order = torch.cat([instance for instance, _ in made]).argsort(stable=True)
    steps = max(result.actions.shape[-1] for _, result in made)

    def by_instance(rows: Sequence[Tensor]) -> Tensor:
        return torch.cat([*rows])[order].reshape(size, -1, *rows[0].shape[2:])

    costs, best = by_instance([result.costs for _, result in made]).sort(dim=1, stable=True)
    costs, best = costs[:, :most], best[:, :most]
    actions = by_instance([pad(r.actions, (0, steps - r.actions.shape[-1])) for _, r in made])
    finished = by_instance([result.finished for _, result in made])
    return actions.gather(1, best[..., None].expand(-1, -1, steps)), costs, finished.gather(1, best)


def _run_sectors(
    policy: Policy,
    searches: Sequence[Incumbent],
    batch: ProblemBatch,
    options: DecodeOptions,
    size: int,
    deadline: Deadline,
) -> None:
    """A plan for each problem, of the plans for its sectors."""
    of, customers = list[int](), list[Nodes]()
    for i in range(batch.size):
        own = sectors(batch.coords[i].numpy(), batch.start_depot[i].numpy(), batch.num_depots, size)
        of += [i] * len(own)
        customers += own
    pools = [Pool(searches[i].problem, own) for i, own in zip(of, customers, strict=True)]
    best: dict[int, tuple[float, Actions]] = {}  # of each part
    small, nodes = parts(batch, of, customers)
    for rows, result in rollouts(policy, small.to(policy.device), options, deadline):
        costs, which = (x.tolist() for x in result.costs.cpu().min(1))
        for part, actions, cost, w in zip(
            rows.tolist(), result.actions.cpu().numpy(), costs, which, strict=True
        ):
            at = nodes[part][actions.astype(np.intp)]
            pools[part].add(at)
            if cost < best.get(part, (math.inf, at))[0]:
                best[part] = cost, at[w]
    for i, search in enumerate(searches):
        own_parts = [part for part in range(len(of)) if of[part] == i]
        if all(part in best for part in own_parts):
            search.adopt([tour for part in own_parts for tour in _plan(pools[part], best[part][1], options)])


def _plan(pool: Pool, actions: Actions, options: DecodeOptions) -> list[Tour]:
    """The tours of a trajectory, or better ones from the pool."""
    cost = float(least_costs(pool.problem, actions[None])[0])
    better = pool.best(cost) if options.recombine else None
    return better[1] if better else tours(pool.problem, actions)


def _candidates(result: Rollout, every: bool, depots: int) -> tuple[Actions, NDArray[np.bool_]]:
    """Actions (B, C, T) and finished (B, C) of all trajectories, or of the best of each row."""
    actions, finished = result.actions, result.finished
    if not every:
        missing = -(actions >= depots).sum(-1)  # so that of those that are stuck the one that came farthest
        best = torch.where(finished, result.costs, 1e9 + missing).argmin(1, keepdim=True)
        finished = finished.gather(1, best)
        actions = actions.gather(1, best[..., None].expand(-1, -1, actions.shape[-1]))
    return actions.cpu().numpy(), finished.cpu().numpy()
