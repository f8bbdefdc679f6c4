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
    done: Tensor  # (B, T, J): when the job would be done with its next stage
    machine: Tensor  # (B, T, J) long: on which machine of it, the one where that is earliest


def begin(times: Tensor) -> ShopState:
    """The state after one job has gone on in each of J trajectories; times are (B, stages, machines, J)."""
    b, stages, machines, jobs = times.shape
    state = _ahead(
        times,
        free=times.new_zeros(b, jobs, stages, machines),
        ready=times.new_zeros(b, jobs, jobs),
        stage=torch.zeros(b, jobs, jobs, dtype=torch.long, device=times.device),
        current=torch.zeros(b, jobs, dtype=torch.long, device=times.device),
        makespan=times.new_zeros(b, jobs),
    )
    return step(times, state, torch.arange(jobs, device=times.device).expand(b, -1))


def mask(times: Tensor, state: ShopState) -> Tensor:
    """Which jobs may go on, (B, T, J)."""
    return state.stage < times.shape[1]


def step(times: Tensor, state: ShopState, job: Tensor) -> ShopState:
    """The state after a job (B, T) goes on, one of those that may."""
    at = job[..., None]
    stage, machine, ends = (x.gather(2, at) for x in (state.stage, state.machine, state.done))
    return _ahead(
        times,
        free=state.free.flatten(2).scatter(2, stage * times.shape[2] + machine, ends).view_as(state.free),
        ready=state.ready.scatter(2, at, ends),
        stage=state.stage.scatter(2, at, stage + 1),
        current=job,
        makespan=torch.maximum(state.makespan, ends.squeeze(2)),
    )


def _ahead(
    times: Tensor, free: Tensor, ready: Tensor, stage: Tensor, current: Tensor, makespan: Tensor
) -> ShopState:
    """The state, with what would become of each job; one that is through stays at the last stage."""
    stages, machines, jobs = times.shape[1:]
    now = stage.clamp(max=stages - 1)
    table = times.mT.flatten(1, 2)  # (B, stages * J, machines)
    which = (now * jobs + torch.arange(jobs, device=times.device)).flatten(1)
    spent = table.gather(1, which[..., None].expand(-1, -1, machines)).view(*stage.shape, machines)
    begins = torch.maximum(free.gather(2, now[..., None].expand_as(spent)), ready[..., None])
    done, machine = (begins + spent).min(-1)
    return ShopState(free, ready, stage, current, makespan, done, machine)
