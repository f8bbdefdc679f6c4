"""Which customers can be served next, as one Triton kernel in place of a dozen passes over large tensors;
`env.process.servable` says what it does."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from chainroute.env import ProblemBatch, Rules, State, rooms
from chainroute.fast.ops.rows import power

TILE = 2_048  # entries that a program handles


@triton.jit
def _servable(
    distance, duration, blocked, latest, farthest, first, delivery, pickup,
    current, depot, time, length, room, room_back, visited, legal, S, n, depots,
    DURATIONS: tl.constexpr, BLOCKED: tl.constexpr, FIRST: tl.constexpr, R: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    b = tl.program_id(0).to(tl.int64)
    s, i = tl.program_id(1) * R + tl.arange(0, R), tl.arange(0, N)
    row, column = s < S, i < n
    inside = row[:, None] & column[None, :]
    at = tl.load(current + b * S + s, mask=row, other=0)
    home = tl.load(depot + b * S + s, mask=row, other=0)
    way = (b * n + at)[:, None] * n + i[None, :]
    back = (b * depots + home)[:, None] * n + i[None, :]
    leg = tl.load(distance + way, mask=inside, other=0.0)
    spent = tl.load(time + b * S + s, mask=row, other=0.0)[:, None]
    gone = tl.load(length + b * S + s, mask=row, other=0.0)[:, None]
    time_left = tl.load(latest + back, mask=inside, other=0.0) - spent
    length_left = tl.load(farthest + back, mask=inside, other=0.0) - gone
    if DURATIONS:
        ok = (tl.load(duration + way, mask=inside, other=0.0) <= time_left) & (leg <= length_left)
    else:
        ok = leg <= tl.minimum(time_left, length_left)
    if BLOCKED:
        ok &= tl.load(blocked + way, mask=inside, other=1) == 0
    if FIRST:  # at a depot, each customer would be reached from the depot of the route it starts
        begins = tl.load(first + b * n + i, mask=column, other=0) != 0
        ok = tl.where((at < depots)[:, None], begins[None, :], ok)
    ok &= (
        tl.load(delivery + b * n + i, mask=column, other=0.0)[None, :]
        <= tl.load(room + b * S + s, mask=row, other=0.0)[:, None]
    )
    ok &= (
        tl.load(pickup + b * n + i, mask=column, other=0.0)[None, :]
        <= tl.load(room_back + b * S + s, mask=row, other=0.0)[:, None]
    )
    spot = (b * S + s)[:, None]
    ok &= tl.load(visited + spot * n + i[None, :], mask=inside, other=1) == 0
    tl.store(legal + spot * N + i[None, :], ok.to(tl.uint8), mask=row[:, None])


def servable(batch: ProblemBatch, state: State) -> Tensor:
    """`env.process.servable`, with padded rows."""
    (size, s), n = state.current.shape, batch.num_nodes
    wide, durations = power(n), batch.duration is not batch.distance
    legal = torch.empty(size, s, wide, dtype=torch.bool, device=batch.device)
    first = batch.num_depots > 1 and batch.rules is Rules.EXACT
    blocked = batch.distance if batch.blocked is None else batch.blocked.view(torch.uint8)
    rows = max(1, TILE // wide)
    _servable[(size, triton.cdiv(s, rows))](
        batch.distance.contiguous(), batch.duration.contiguous(), blocked.contiguous(),
        batch.latest.contiguous(), batch.farthest.contiguous(),
        batch.first_visits.view(torch.uint8) if first else batch.distance, batch.delivery.contiguous(),
        batch.pickup.contiguous(), state.current.contiguous(), state.depot.contiguous(),
        state.time.contiguous(), state.length.contiguous(), *(x.contiguous() for x in rooms(batch, state)),
        state.visited.contiguous().view(torch.uint8), legal.view(torch.uint8), s, n, batch.num_depots,
        durations, batch.blocked is not None, first, rows, wide,
    )  # fmt: skip
    return legal[..., :n]
