"""The best plans of the routes of many trajectories, for a whole batch at once, on its device.

It does what `neural/assembly/recombine.py` does on a core in NumPy, one problem after another: the same pool,
prices, bound and search, with a wider beam. On a GPU a batch is decoded in less time than cores take to
recombine it, and they would have to be sent all trajectories; from here only the best plans leave the device.
The other stays for CPUs, where it is faster, and for pools that grow from round to round. Tests hold the two
together.

Shapes: B instances, C trajectories of T steps, R routes, n nodes. The host waits for the device only to learn
how many routes there are, and now and then whether a search is over.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

from chainroute.neural.assembly.recombine import MOST_ROUTES
from chainroute.neural.decode.beam import search, width
from chainroute.neural.decode.pools import ALIGNED, Pools, pools_of
from chainroute.neural.decode.prices import prices_of, worth
from chainroute.neural.env import ProblemBatch

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

    An instance without whole plans gets none. The batch is cut into as few equal parts as `memory`, in bytes,
    allows.
    """
    most = max(1, memory // bytes_each(batch.num_nodes, *actions.shape[1:]))
    together = -(-batch.size // -(-batch.size // most))
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
    beam = 28 * width(nodes) * searched + searched * (4 * searched + 24 * nodes)
    return cut + 12 * routes * nodes + max(12 * routes * nodes, beam)


def _recombined(batch: ProblemBatch, actions: Tensor, whole: Tensor, kept: int) -> tuple[Tensor, Tensor]:
    if not whole.any():
        return actions.new_zeros(batch.size, kept + 1, 1), whole.new_zeros(batch.size, kept + 1)
    pools, least = pools_of(batch, actions)
    least, best = least.masked_fill(~whole, torch.inf).topk(kept, largest=False)
    cost = least[:, 0].where(least[:, 0].isfinite(), 0.0)  # nothing costs less than nothing
    rows = partition(pools, batch.is_customer, cost * (1 - LEAST_GAIN))
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
    most = int(extra.isfinite().sum(1).max())
    if most == 0:
        return torch.full((len(cost), 1), -1, device=cost.device)
    extra, rows = extra.sort(dim=1, stable=True)
    most = min(MOST_ROUTES, -(-most // ALIGNED) * ALIGNED)
    extra, rows = extra[:, :most], rows[:, :most]
    instance = torch.arange(len(cost), device=cost.device)[:, None]
    chosen = Pools(*(x[instance, rows] for x in (pools.costs, pools.keys, pools.visits, pools.holds)))
    found = search(chosen, extra, bound, cost, wanted)
    return rows.gather(1, found.clamp(min=0)).where(found >= 0, -1)
