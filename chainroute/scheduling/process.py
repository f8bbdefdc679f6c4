"""The decision process in tensors: which job goes on next. B shops, T trajectories of each, J jobs.

The job begins its next stage on the machine where it is done earliest, so that a trajectory is the list of
`shop.dispatch` and has as many steps as there are operations.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class ShopState:
    free: Tensor  # (B, T, stages, machines): when each machine is
    ready: Tensor  # (B, T, J): when the job is done with what it has begun
    stage: Tensor  # (B, T, J) long: the next one; the number of stages when all are begun
    current: Tensor  # (B, T) long: the job that went on last
    makespan: Tensor  # (B, T)


def begin(times: Tensor) -> ShopState:
    """The state after one job has gone on in each of J trajectories; times are (B, stages, machines, J)."""
    b, stages, machines, jobs = times.shape
    zero = times.new_zeros(b, jobs)
    state = ShopState(
        free=times.new_zeros(b, jobs, stages, machines),
        ready=times.new_zeros(b, jobs, jobs),
        stage=torch.zeros(b, jobs, jobs, dtype=torch.long, device=times.device),
        current=zero.long(),
        makespan=zero,
    )
    return step(times, state, torch.arange(jobs, device=times.device).expand(b, -1))


def mask(times: Tensor, state: ShopState) -> Tensor:
    """Which jobs may go on, (B, T, J)."""
    return state.stage < times.shape[1]


def completions(times: Tensor, state: ShopState) -> Tensor:
    """When each job would be done with its next stage, on each machine of it: (B, T, J, machines)."""
    b, stages, machines, jobs = times.shape
    stage = state.stage.clamp(max=stages - 1)
    free = state.free.gather(2, stage[..., None].expand(-1, -1, -1, machines))
    table = times.permute(0, 1, 3, 2).reshape(b, stages * jobs, machines)
    which = (stage * jobs + torch.arange(jobs, device=times.device)).flatten(1)
    spent = table.gather(1, which[..., None].expand(-1, -1, machines)).view_as(free)
    return torch.maximum(free, state.ready[..., None]) + spent


def step(times: Tensor, state: ShopState, job: Tensor) -> ShopState:
    """The state after a job (B, T) goes on; one that is done already changes nothing."""
    stages, machines = times.shape[1:3]
    at = job[..., None]
    stage = state.stage.gather(2, at)  # (B, T, 1)
    done = stage < stages
    ends, machine = _of(completions(times, state), at).min(-1)  # (B, T)
    place = (stage.clamp(max=stages - 1) * machines + machine[..., None]).squeeze(-1)
    free = state.free.flatten(2)
    free = torch.where(done, free.scatter(2, place[..., None], ends[..., None]), free).view_as(state.free)
    ready = torch.where(done, state.ready.scatter(2, at, ends[..., None]), state.ready)
    makespan = torch.where(done[..., 0], torch.maximum(state.makespan, ends), state.makespan)
    return ShopState(free, ready, state.stage.scatter_add(2, at, done.long()), job, makespan)


def _of(values: Tensor, at: Tensor) -> Tensor:
    """The rows of jobs `at` (B, T, 1) among values (B, T, J, k): (B, T, k)."""
    return values.gather(2, at[..., None].expand(-1, -1, -1, values.shape[-1])).squeeze(2)
