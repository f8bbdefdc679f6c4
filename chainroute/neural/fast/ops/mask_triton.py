"""What may be visited next, as one Triton kernel in place of a dozen passes over large tensors; `env.process`
says what it does."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from chainroute.neural import env
from chainroute.neural.env import ProblemBatch, Rules, State
from chainroute.neural.fast.ops.rows import is_padded, power
from chainroute.problem.measure import LOAD_SLACK

TILE = 2_048  # entries that a program handles
FULL_LOAD = 1 + LOAD_SLACK / 2  # that a vehicle may have


@triton.jit
def _servable(
    distance, duration, blocked, latest, farthest, first, delivery, pickup, mixed,
    current, depot, time, length, load, picked_up, visited, legal, S, n, depots, mixed_row,
    DURATIONS: tl.constexpr, BLOCKED: tl.constexpr, FIRST: tl.constexpr, HOME: tl.constexpr,
    FULL: tl.constexpr, R: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    """Which customers can be served next; with HOME whether a depot may be gone to, too."""
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
    aboard = tl.load(picked_up + b * S + s, mask=row, other=0.0)
    delivers = (tl.load(mixed + b * mixed_row) != 0) | (aboard == 0)  # else nothing may be delivered any more
    room = tl.where(delivers, FULL - tl.load(load + b * S + s, mask=row, other=0.0), 0.0)
    ok &= tl.load(delivery + b * n + i, mask=column, other=0.0)[None, :] <= room[:, None]
    ok &= tl.load(pickup + b * n + i, mask=column, other=0.0)[None, :] <= (FULL - aboard)[:, None]
    spot = (b * S + s)[:, None]
    ok &= tl.load(visited + spot * n + i[None, :], mask=inside, other=1) == 0
    if HOME:  # to its own depot, unless it stands there although a customer can be served
        idle = (at < depots) & (tl.max(ok.to(tl.int32), 1) > 0)
        ok |= (i[None, :] == home[:, None]) & (idle == 0)[:, None]
    tl.store(legal + spot * N + i[None, :], ok.to(tl.uint8), mask=row[:, None])


def mask(batch: ProblemBatch, state: State, out: Tensor) -> None:
    if _whole(batch) and is_padded(out):
        _launch(batch, state, out, home=True)
    else:
        out.copy_(legal(batch, state))


def legal(batch: ProblemBatch, state: State) -> Tensor:
    """`env.mask`, by the kernel as far as that goes; with padded rows if it goes all the way."""
    if not _whole(batch):
        return env.mask(batch, state, servable)
    found = _room(batch, state)
    _launch(batch, state, found, home=True)
    return found


def servable(batch: ProblemBatch, state: State) -> Tensor:
    """`env.servable`, with padded rows."""
    found = _room(batch, state)
    _launch(batch, state, found, home=False)
    return found


def _whole(batch: ProblemBatch) -> bool:
    """Whether the kernel knows all that decides: not what fleets ask for, nor depots that are actions."""
    return batch.fleet is None and batch.rules is Rules.EXACT


def _room(batch: ProblemBatch, state: State) -> Tensor:
    """Where a mask (B, S, n) can be written, with padded rows."""
    n = batch.num_nodes
    return torch.empty(*state.current.shape, power(n), dtype=torch.bool, device=batch.device)[..., :n]


def _launch(batch: ProblemBatch, state: State, out: Tensor, home: bool) -> None:
    (size, s), n = state.current.shape, batch.num_nodes
    wide, durations = power(n), batch.duration is not batch.distance
    first = batch.num_depots > 1 and batch.rules is Rules.EXACT
    blocked = batch.distance if batch.blocked is None else batch.blocked.view(torch.uint8)
    published = batch.rules is Rules.PUBLISHED  # then a delivery must fit beside what was picked up so far
    load = torch.maximum(state.delivered, state.picked_up) if published else state.peak
    rows = max(1, TILE // wide)
    _servable[(size, triton.cdiv(s, rows))](
        batch.distance.contiguous(), batch.duration.contiguous(), blocked.contiguous(),
        batch.latest.contiguous(), batch.farthest.contiguous(),
        batch.first_visits.view(torch.uint8) if first else batch.distance, batch.delivery.contiguous(),
        batch.pickup.contiguous(), batch.mixed.view(torch.uint8), state.current.contiguous(),
        state.depot.contiguous(), state.time.contiguous(), state.length.contiguous(), load.contiguous(),
        state.picked_up.contiguous(), state.visited.contiguous().view(torch.uint8), out.view(torch.uint8),
        s, n, batch.num_depots, batch.mixed.stride(0), durations, batch.blocked is not None, first, home,
        FULL_LOAD, rows, wide,
    )  # fmt: skip
