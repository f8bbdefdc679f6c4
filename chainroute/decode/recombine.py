"""The best plans of the routes of many trajectories, for a whole batch at once, on its device.

It does what `assembly/recombine.py` does on a core in NumPy, one problem after another: the same pool,
prices, bound and beam. On a GPU a batch is decoded in less time than cores take to recombine it, and they
would have to be sent all trajectories; from here only the best plans leave the device. The other stays for
CPUs, where it is faster, and for pools that grow from round to round. Tests hold the two together.

Shapes: B instances, C trajectories of T steps, R routes, n nodes; a beam of W plans of K routes. The host
waits for the device only to learn how many routes there are, and now and then whether a search is over.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

from chainroute.assembly.recombine import BEAM_WIDTH, MOST_ROUTES
from chainroute.decode.pools import Pools, first_of_each, pools_of
from chainroute.decode.prices import prices_of, worth
from chainroute.env import ProblemBatch

CANDIDATES = 4 * BEAM_WIDTH  # longer plans, among which those for the same customers are found
LOOK_EVERY = 4  # steps of a search between looks at whether any plan goes on
LEAST_GAIN = 1e-9  # of a cost: what a better plan saves at least, which is more than rounding errors


def on_device(device: torch.device) -> bool:
    """Whether trajectories made on that device are recombined here, not by cores in NumPy."""
    return device.type == "cuda"


@torch.inference_mode()
def recombined(
    batch: ProblemBatch, actions: Tensor, whole: Tensor, kept: int, memory: int
) -> tuple[Tensor, Tensor]:
    """The best `kept` of trajectories (B, C, T) that are whole plans, as (B, C) says, and after them the best
    plan of the routes of all where that costs less: (B, kept + 1, T') int16, and which of these there are.

    An instance without whole plans gets none. As many instances are done together as `memory`, in bytes,
    allows.
    """
    together = max(1, memory // bytes_each(batch.num_nodes, *actions.shape[1:]))
    found = [
        _recombined(batch[part], actions[part], whole[part], min(kept, whole.shape[1]))
        for part in (slice(first, first + together) for first in range(0, batch.size, together))
    ]
    longest = max(plans.shape[-1] for plans, _ in found)
    plans = torch.cat([pad(plans, (0, longest - plans.shape[-1])) for plans, _ in found])
    return plans, torch.cat([there for _, there in found])


def bytes_each(nodes: int, trajectories: int, steps: int) -> int:
    """An upper estimate of what an instance takes: its trajectories while they are cut into routes; the
    routes, each of two steps at least; and what is made of these in double precision, or the beam."""
    cut = 80 * trajectories * steps
    routes = trajectories * steps // 2
    searched = min(MOST_ROUTES, routes)
    beam = 24 * BEAM_WIDTH * searched + 8 * searched * (searched + nodes)
    return cut + 12 * routes * nodes + max(12 * routes * nodes, beam)


def _recombined(batch: ProblemBatch, actions: Tensor, whole: Tensor, kept: int) -> tuple[Tensor, Tensor]:
    if not whole.any():
        return actions.new_zeros(batch.size, kept + 1, 1), whole.new_zeros(batch.size, kept + 1)
    pools, least = pools_of(batch, actions)
    least, best = least.masked_fill(~whole, torch.inf).topk(kept, largest=False)
    wanted = torch.arange(batch.num_nodes, device=batch.device) >= batch.num_depots
    wanted = wanted.expand(batch.size, -1) if batch.padding is None else wanted & ~batch.padding
    cost = least[:, 0].where(least[:, 0].isfinite(), 0.0)  # nothing costs less than nothing
    rows = partition(pools, wanted, cost * (1 - LEAST_GAIN))
    plans = (
        trajectory(pools.visits, rows),
        actions.gather(1, best[..., None].expand(-1, -1, actions.shape[-1])),
    )
    longest = max(some.shape[-1] for some in plans)
    new, old = (pad(some, (0, longest - some.shape[-1])) for some in plans)
    there = torch.cat([least.isfinite(), (rows[:, :1] >= 0)], 1)
    return torch.cat([old, new], 1), there


def trajectory(visits: Tensor, rows: Tensor) -> Tensor:
    """One trajectory (B, 1, T) that makes the routes of a plan, (B, D), whose rows of `visits` are below 0
    after its last."""
    instance = torch.arange(len(rows), device=rows.device)[:, None]
    some = (rows >= 0)[..., None]
    nodes = visits[instance, rows.clamp(min=0)] * some
    goes = torch.cat([nodes > 0, some], -1).flatten(1)  # after each route to a depot
    order = (~goes).to(torch.uint8).argsort(dim=1, stable=True)
    return pad(nodes, (0, 1)).flatten(1).gather(1, order)[:, None, : int(goes.sum(1).max())]


def partition(pools: Pools, wanted: Tensor, cost: Tensor) -> Tensor:
    """Rows of each instance's pool that hold every wanted node once and together cost less than `cost`, where
    such are found, (B, D); -1 after the last."""
    prices, bound = prices_of(pools, wanted, cost)
    extra = (pools.costs - worth(pools, prices)).clamp(min=0)
    extra = extra.where(bound[:, None] + extra < cost[:, None], torch.inf)
    most = min(MOST_ROUTES, int(extra.isfinite().sum(1).max()))
    if most == 0:
        return torch.full((len(cost), 1), -1, device=cost.device)
    extra, rows = extra.sort(dim=1, stable=True)
    extra, rows = extra[:, :most], rows[:, :most]
    instance = torch.arange(len(cost), device=cost.device)[:, None]
    chosen = Pools(*(x[instance, rows] for x in (pools.costs, pools.keys, pools.visits, pools.holds)))
    found = _beam(chosen, extra, bound, cost, wanted)
    return rows.gather(1, found.clamp(min=0)).where(found >= 0, -1)


def _beam(pools: Pools, extra: Tensor, bound: Tensor, limit: Tensor, wanted: Tensor) -> Tensor:
    """The rows of the cheapest plan below the limit that is found, (B, D), as `partition` has them.

    It goes on as the one in NumPy does, but plans for the same customers are found among the CANDIDATES of
    least extra cost alone.
    """
    size, most = extra.shape
    holds = pools.holds if extra.device.type == "cpu" else pools.holds.half()  # counts below 2,048 are exact
    contains, apart = pools.holds > 0, holds @ holds.mT == 0
    holders = contains.mT.contiguous()  # (B, n, K)
    instance = torch.arange(size, device=extra.device)[:, None]
    extra, room = extra.float(), (limit - bound).float()
    # Of each plan: the rows that can be added, the nodes left, and what it comes to.
    live = torch.ones(size, 1, most, dtype=torch.bool, device=extra.device)
    left = wanted[:, None]
    keys, costs = pools.keys.new_zeros(size, 1), pools.costs.new_zeros(size, 1)
    gap = extra.new_zeros(size, 1)  # the extra cost of its rows; infinite where there is no plan
    steps = list[tuple[Tensor, Tensor]]()  # the plan that was made longer, and the row
    last, slot = pools.keys.new_full((size,), -1), pools.keys.new_zeros(size)  # the best plan's last step
    while len(steps) < wanted.shape[1]:
        score = gap[..., None] + extra[:, None]
        live = live & (score < room[:, None, None])
        choices = (live.to(holds.dtype) @ holds).masked_fill(~left, torch.inf).argmin(-1)
        score = score.masked_fill(~(live & holders[instance, choices]), torch.inf).flatten(1)
        gap, longer = score.topk(min(CANDIDATES, score.shape[1]), largest=False, sorted=False)
        plan, row = longer // most, longer % most
        keys = keys.gather(1, plan) + pools.keys.gather(1, row)
        costs = (costs.gather(1, plan) + pools.costs.gather(1, row)).masked_fill(gap.isinf(), torch.inf)
        gap = gap.masked_fill(~first_of_each(keys, costs), torch.inf)
        gap, kept = gap.topk(min(BEAM_WIDTH, gap.shape[1]), largest=False, sorted=False)
        plan, row, keys, costs = (x.gather(1, kept) for x in (plan, row, keys, costs))
        left = left[instance, plan] & ~contains[instance, row]
        whole = ~left.any(-1) & gap.isfinite()  # at most one, since all hold the same nodes
        cost, at = costs.masked_fill(~whole, torch.inf).min(1)
        better = cost < limit
        limit, slot = cost.where(better, limit), at.where(better, slot)
        last = last.masked_fill(better, len(steps))
        steps.append((plan, row))
        room, gap = (limit - bound).float(), gap.masked_fill(whole, torch.inf)
        live = live[instance, plan] & apart[instance, row]
        if len(steps) % LOOK_EVERY == 0 and not gap.isfinite().any():
            break
    return _rows_of(steps, last, slot)


def _rows_of(steps: list[tuple[Tensor, Tensor]], last: Tensor, slot: Tensor) -> Tensor:
    """The rows of the plan that stands in that slot after its last step, found backwards."""
    rows = list[Tensor]()
    for i, (plan, row) in reversed(list(enumerate(steps))):
        within = i <= last
        rows.append(row.gather(1, slot[:, None]).squeeze(1).where(within, -1))
        slot = plan.gather(1, slot[:, None]).squeeze(1).where(within, slot)
    return torch.stack(rows[::-1], 1)
