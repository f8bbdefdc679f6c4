"""The depots of complete routes, exchanged for those that make them shortest, by the batch on the device.

The twin of `assembly.routes` in tensors: every trajectory is driven again from all depots at once, and each
route counts with the depot from which it is shortest among those from which it breaks no rule.
"""

from __future__ import annotations

import torch
from torch import Tensor

from chainroute.neural.env import ProblemBatch


def exchanged_costs(batch: ProblemBatch, instance: Tensor, actions: Tensor) -> Tensor:
    """What trajectories (R, S, T) of the instances (R,) cost with the best depots, (R, S).

    For finished trajectories of instances without a fleet and without padding.
    """
    depots = torch.arange(batch.num_depots, device=batch.device)
    row, all_depots = instance[:, None, None], depots[None, None]  # (R, 1, 1), (1, 1, M)
    opens, closes = batch.opening[row, all_depots], batch.closing[row, all_depots]  # (R, 1, M)
    is_open, limit = batch.open[row], batch.limit[row]
    shape = (*actions.shape[:2], batch.num_depots)
    time, length = opens.expand(shape), opens.new_zeros(shape)  # of the route so far, from each depot
    counted, kept = torch.zeros_like(length), torch.ones_like(length, dtype=torch.bool)
    total = opens.new_zeros(shape[:2])
    last = torch.zeros_like(actions[..., 0], dtype=torch.long)  # a customer, or any depot between routes
    for action in actions.long().unbind(-1):
        arrives, away = (action < batch.num_depots)[..., None], (last >= batch.num_depots)[..., None]
        here = torch.where(away, last[..., None], all_depots)
        there = torch.where(arrives, all_depots, action[..., None])
        leg, travel = batch.distance[row, here, there], batch.duration[row, here, there]
        # Back at the depot: the best of those that were possible is the route's.
        back = torch.where(is_open, 0.0, leg)
        late = ~is_open & (time + travel > closes)
        possible = kept & ~late & (length + counted + back <= limit)
        best = torch.where(possible, length + back, torch.inf).amin(-1)
        total = total + torch.where((arrives & away)[..., 0], best, 0.0)
        # On to a customer.
        begin = torch.maximum(time + travel, batch.opening[row, there])
        kept = arrives | (kept & (begin <= batch.closing[row, there]))
        time = torch.where(arrives, opens, begin + batch.service[row, there])
        length = torch.where(arrives, 0.0, length + leg)
        counted = torch.where(arrives, 0.0, counted + batch.counted_service[row, there])
        last = action
    return total
