"""Trajectories of a batch become routes to choose from, on its device."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from chainroute.neural.env import ProblemBatch
from chainroute.neural.fast.ops.rows import power

ALIGNED = 8  # numbers of rows and columns are multiples of it, which matrix units of a GPU want


@dataclass(frozen=True)
class Pools:
    """The routes of each instance, each set of customers once, in its cheapest order. Where an instance has
    fewer than others, the rest cost infinitely much and visit nobody."""

    costs: Tensor  # (B, R) double
    keys: Tensor  # (B, R) long: of a set of customers, the sum of random numbers, one for each
    visits: Tensor  # (B, R, L) int16, 0 after the last
    holds: Tensor  # (B, R, n) bool: whether a route visits a customer


@dataclass(frozen=True)
class Routes:
    """All routes of trajectories, one after another, (E,) each."""

    instance: Tensor
    which: Tensor  # of its trajectories
    start: Tensor  # the step of the first visit
    end: Tensor  # and of the last
    costs: Tensor
    keys: Tensor

    def pick(self, chosen: Tensor) -> Routes:
        columns = (self.instance, self.which, self.start, self.end, self.costs, self.keys)
        return Routes(*(column[chosen] for column in columns))


def pools_of(batch: ProblemBatch, actions: Tensor) -> tuple[Pools, Tensor]:
    """The pools of trajectories (B, C, T), not all of which are empty, and what each of them costs if every
    route may have the depot that makes it shortest, (B, C)."""
    path = actions.long()
    routes = _routes(batch, path)
    at = routes.instance, routes.which, routes.end
    costs = torch.zeros_like(path, dtype=torch.double).index_put(at, routes.costs).sum(-1)
    chosen = first_of_each(routes.keys, routes.costs) & routes.costs.isfinite()
    return _padded(batch, path, routes.pick(chosen)), costs


def first_of_each(keys: Tensor, costs: Tensor) -> Tensor:
    """Which have the least cost of all that have their key in their row, one for each key, (..., E) bool."""
    order = costs.argsort(dim=-1, stable=True)
    ordered, again = keys.gather(-1, order).sort(dim=-1, stable=True)
    is_first = pad(ordered[..., 1:] != ordered[..., :-1], (1, 0), value=True)
    return torch.empty_like(is_first).scatter_(-1, order.gather(-1, again), is_first)


def _routes(batch: ProblemBatch, path: Tensor) -> Routes:
    visited = path >= batch.num_depots
    before, after = pad(visited, (1, -1)), pad(visited, (-1, 1))
    instances = torch.arange(batch.size, device=batch.device)
    legs = batch.distance[instances[:, None, None], pad(path, (1, -1)), path]
    lengths = summed(legs.double().where(visited & before, 0.0))
    # Every instance has numbers of its own, so that keys tell routes of all instances apart.
    numbers = torch.randint(2**62, batch.delivery.shape, generator=torch.Generator().manual_seed(0))
    numbers = numbers.to(batch.device)
    sums = summed(numbers[instances[:, None, None], path].where(visited, 0))

    b, c, end = (visited & ~after).nonzero(as_tuple=True)
    start = (visited & ~before).nonzero(as_tuple=True)[2]  # of as many routes, in the same order
    leave, arrive = _depot_legs(batch)
    first, last = path[b, c, start], path[b, c, end]
    costs = lengths[b, c, end] - lengths[b, c, start] + (leave[b, first] + arrive[b, last]).amin(-1)
    return Routes(b, c, start, end, costs, sums[b, c, end] - sums[b, c, start] + numbers[b, first])


def summed(values: Tensor) -> Tensor:
    """The sums of each row up to each of its values. A GPU is slow along short rows, and fast across them."""
    return values.movedim(-1, 0).contiguous().cumsum(0).movedim(0, -1)


def _depot_legs(batch: ProblemBatch) -> tuple[Tensor, Tensor]:
    """Ways from each depot to each node, and back unless routes are open, (B, n, M) double; infinite where
    there is no road, or no depot. Other legs have roads, or the mask would not have allowed them."""
    m, closed = batch.num_depots, ~batch.open[:, None, None]
    leave, arrive = batch.distance[:, :m].mT.double(), batch.distance[:, :, :m].double() * closed
    if batch.blocked is not None:
        leave = leave.masked_fill(batch.blocked[:, :m].mT, torch.inf)
        arrive = arrive.masked_fill(batch.blocked[:, :, :m] & closed, torch.inf)
    if batch.padding is not None:
        leave = leave.masked_fill(batch.padding[:, None, :m], torch.inf)
    return leave, arrive


def _padded(batch: ProblemBatch, path: Tensor, routes: Routes) -> Pools:
    b = routes.instance
    counts = torch.bincount(b, minlength=batch.size)
    rank = torch.arange(len(b), device=batch.device) - (counts.cumsum(0) - counts)[b]
    most = -(-int(counts.max()) // ALIGNED) * ALIGNED
    shape, longest = (batch.size, most), int((routes.end - routes.start).max()) + 1

    def table(values: Tensor, absent: float) -> Tensor:
        return values.new_full(shape, absent).index_put((b, rank), values)

    step = table(routes.start, 0)[..., None] + torch.arange(longest, device=batch.device)
    inside = step <= table(routes.end, -1)[..., None]
    instances = torch.arange(batch.size, device=batch.device)[:, None, None]
    which = table(routes.which, 0)[..., None]
    visits = path[instances, which, step.clamp(max=path.shape[-1] - 1)].where(inside, 0)
    wide = power(batch.num_nodes)  # so that a kernel reads many at a time
    holds = torch.zeros(*shape, wide, dtype=torch.bool, device=batch.device).scatter_(2, visits, True)
    holds = holds[..., : batch.num_nodes]
    holds[..., : batch.num_depots] = False
    return Pools(table(routes.costs, torch.inf), table(routes.keys, 0), visits.to(torch.int16), holds)
