"""The search for the cheapest plan of given routes, for every instance of a batch.

Shapes: B instances, n nodes, a beam of W plans, K routes as rows, of which H at most hold the same node.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

from chainroute.neural.decode.pools import ALIGNED, Pools, first_of_each
from chainroute.neural.fast.layers import TRITON
from chainroute.neural.fast.support import failure

if TRITON:
    from chainroute.neural.decode import beam_triton

WIDTH = (256, 512)  # partial plans that are kept, at least and at most: five for each node
CANDIDATES = 2  # longer plans for each of them, among which those for the same customers are found
LOOK_EVERY = 4  # steps between looks at whether any plan goes on


def search(pools: Pools, extra: Tensor, bound: Tensor, limit: Tensor, wanted: Tensor) -> Tensor:
    """The rows of the cheapest plan below the limit (B,) that is found, (B, D); -1 after the last. A plan
    costs at least the bound (B,) and the extra cost of its rows (B, K), which hold wanted nodes alone.

    It goes on as the one in NumPy does, but plans for the same customers are found among the CANDIDATES of
    least extra cost alone.
    """
    size, nodes = wanted.shape
    wide = width(nodes)
    kind = torch.float32 if extra.device.type == "cpu" else torch.float16  # counts below 2,048 are exact
    holds = pad(pools.holds.to(kind), (0, -nodes % ALIGNED))
    sizes, apart = pools.holds.sum(-1), holds @ holds.mT == 0
    extra, room = extra.float(), (limit - bound).float()
    holders, extra_of_holders = _holders(holds > 0, extra)
    branch, follow = branches, followers
    if not failure(extra.device):
        branch, follow = beam_triton.branches, beam_triton.followers
    # Of each plan: the rows that can be added (1, else 0), how many nodes are left, and what it comes to.
    live = (extra < room[:, None])[:, None].to(kind)
    left = wanted.sum(1, keepdim=True)
    keys, costs = pools.keys.new_zeros(size, 1), pools.costs.new_zeros(size, 1)
    gap = extra.new_zeros(size, 1)  # the extra cost of its rows; infinite where there is no plan
    steps = list[tuple[Tensor, Tensor]]()  # the plan that was made longer, and the row
    last, slot = pools.keys.new_full((size,), -1), pools.keys.new_zeros(size)  # the best plan's last step
    while len(steps) < nodes:
        scores, choices = branch(live @ holds, left, gap, live, holders, extra_of_holders)
        most = scores.shape[-1]
        scores = scores.flatten(1)  # (B, W H)
        gap, longer = scores.topk(min(CANDIDATES * wide, scores.shape[1]), largest=False, sorted=False)
        plan = longer // most
        row = holders.flatten(1).gather(1, choices.gather(1, plan) * most + longer % most).long()
        keys = keys.gather(1, plan) + pools.keys.gather(1, row)
        costs = (costs.gather(1, plan) + pools.costs.gather(1, row)).masked_fill(gap.isinf(), torch.inf)
        gap = gap.masked_fill(~first_of_each(keys, costs), torch.inf)
        gap, kept = gap.topk(min(wide, gap.shape[1]), largest=False, sorted=False)
        plan, row, keys, costs = (x.gather(1, kept) for x in (plan, row, keys, costs))
        left = left.gather(1, plan) - sizes.gather(1, row)
        whole = (left == 0) & gap.isfinite()  # at most one, since all hold the same nodes
        cost, at = costs.masked_fill(~whole, torch.inf).min(1)
        better = cost < limit
        limit, slot = cost.where(better, limit), at.where(better, slot)
        last = last.masked_fill(better, len(steps))
        steps.append((plan, row))
        room, gap = (limit - bound).float(), gap.masked_fill(whole, torch.inf)
        if len(steps) % LOOK_EVERY == 0 and not gap.isfinite().any():
            break
        live = follow(live, plan, row, apart, extra, room[:, None] - gap)
    return _rows_of(steps, last, slot)


def width(nodes: int) -> int:
    """Partial plans that are kept of so many nodes."""
    least, most = WIDTH
    return min(most, max(least, 5 * nodes))


def branches(
    counts: Tensor, left: Tensor, gap: Tensor, live: Tensor, holders: Tensor, extra: Tensor
) -> tuple[Tensor, Tensor]:
    """What plans come to with each holder (B, n, H), at that extra cost, of the node that they go on with,
    (B, W, H); and that node, (B, W), the first that fewest of a plan's live rows hold, by counts (B, W, n).
    Infinite where a row is not live, and where a node that is left has none. Kernel: `beam_triton`.

    Live rows hold nodes alone that are left, of which there are `left` (B, W): without a row for each of
    these, fewer have counts.
    """
    instance = torch.arange(len(live), device=live.device)[:, None]
    choices = counts.masked_fill(counts == 0, torch.inf).argmin(-1)
    gap = gap.where((counts > 0).sum(-1) == left, torch.inf)
    scores = gap[..., None] + extra[instance, choices]
    return scores.where(live.gather(2, holders[instance, choices].long()) > 0, torch.inf), choices


def followers(live: Tensor, plan: Tensor, row: Tensor, apart: Tensor, extra: Tensor, room: Tensor) -> Tensor:
    """The rows that can be added to plans (B, W, K): to the plan (B, W) that was made longer, apart from the
    row (B, W) that was added, and of less extra cost (B, K) than there is room (B, W) for. Kernel:
    `beam_triton`."""
    instance = torch.arange(len(live), device=live.device)[:, None]
    return live[instance, plan] * (apart[instance, row] & (extra[:, None] < room[..., None]))


def _holders(contains: Tensor, extra: Tensor) -> tuple[Tensor, Tensor]:
    """The rows of `contains` (B, K, n) that hold each node, int32, and their extra cost, (B, n, H). Where a
    node has fewer than others, the rest are row 0 at infinite cost."""
    counts = contains.sum(1)
    before = counts.flatten().cumsum(0).view_as(counts) - counts  # of all holders of all nodes
    instance, node, row = contains.mT.nonzero(as_tuple=True)
    at = instance, node, torch.arange(len(row), device=row.device) - before[instance, node]
    shape = *counts.shape, int(counts.max())
    holders = row.new_zeros(shape, dtype=torch.int32).index_put_(at, row.int())
    return holders, extra.new_full(shape, torch.inf).index_put_(at, extra[instance, row])


def _rows_of(steps: list[tuple[Tensor, Tensor]], last: Tensor, slot: Tensor) -> Tensor:
    """The rows of the plan that stands in that slot after its last step, found backwards."""
    rows = list[Tensor]()
    for i, (plan, row) in reversed(list(enumerate(steps))):
        within = i <= last
        rows.append(row.gather(1, slot[:, None]).squeeze(1).where(within, -1))
        slot = plan.gather(1, slot[:, None]).squeeze(1).where(within, slot)
    return torch.stack(rows[::-1], 1)
