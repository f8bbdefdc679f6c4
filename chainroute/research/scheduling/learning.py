"""Trajectories of job lists, and REINFORCE on them by the objective, optimiser and schedule of routing."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from chainroute.errors import fail
from chainroute.neural.decode.rollout import pattern
from chainroute.neural.policy import Policy, PolicyConfig
from chainroute.neural.train.objective import advantages, fresh_means, loss
from chainroute.neural.train.optimiser import Optimiser
from chainroute.neural.train.schedule import factor, share
from chainroute.research.scheduling.policy import MEAN_TIME, JobPolicy
from chainroute.research.scheduling.process import begin, mask, step
from chainroute.research.scheduling.shop import TIMES, FlowShop, Schedule, dispatch

MAX_GRADIENT_NORM = 0.1
REPORT_EVERY = 50  # updates


@dataclass(frozen=True)
class Training:
    stages: int = 3
    machines: int = 4
    jobs: int = 20
    batch: int = 256
    updates: int = 2000
    warmup: int = 20  # updates until the full rate
    cooldown: int = 800  # the last updates of these, over which the rate falls
    learning_rate: float = 3e-4
    weight_decay: float = 0.1
    update_rate: float = 0.5  # how often a step re-embeds the jobs
    seed: int = 1
    policy: PolicyConfig = field(default_factory=lambda: PolicyConfig(layers=3))


@dataclass(frozen=True)
class Lists:
    makespan: Tensor  # (B, T)
    log_likelihood: Tensor  # (B, T)
    jobs: Tensor  # (B, T, steps + 1): the list of each trajectory, the first job included


def trajectories(
    policy: JobPolicy, times: Tensor, refine: Sequence[bool], generator: torch.Generator | None = None
) -> Lists:
    """One from each job that may go first: sampled with the generator, without it greedy.

    Times are whole numbers, so that sums are exact: of two machines where a job is done at the same time, the
    process takes the same as `dispatch`.
    """
    nodes, state = policy.encode(times), begin(times)
    noise = times.new_ones(len(refine), *state.ready.shape)
    if generator is not None:
        noise.exponential_(generator=generator)
    noise = noise.clamp_(min=1e-30).log_()  # of every step at once; minus Gumbel's
    made, taken = [], [state.current]
    for refines, disturb in zip(refine, noise, strict=True):
        logits, nodes = policy.step(times, nodes, state, mask(times, state), refines)
        job = (logits.detach() - disturb).argmax(-1)
        state = step(times, state, job)
        made.append(logits)
        taken.append(job)
    jobs = torch.stack(taken)
    likelihood = torch.stack(made).log_softmax(-1).gather(3, jobs[1:, ..., None]).sum((0, 3))
    return Lists(state.makespan, likelihood, jobs.permute(1, 2, 0))


def train(
    config: Training,
    seconds: float | None = None,
    device: str = "cpu",
    report: Callable[[dict[str, float]], None] = lambda row: None,
) -> JobPolicy:
    """A policy trained for that many updates or seconds, whichever end first; the rate falls by the same."""
    began = time.monotonic()
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(config.seed)
        policy = JobPolicy(config.policy, config.stages, config.machines).to(device)
    optimiser = Optimiser(cast(Policy, policy), "muon", config.weight_decay)  # it asks for little of one
    generator = torch.Generator(device).manual_seed(config.seed)
    means, only = fresh_means(device), torch.zeros(config.batch, dtype=torch.long, device=device)
    steps = config.stages * config.jobs - 1
    for update in range(config.updates):
        passed = time.monotonic() - began
        if seconds is not None and passed > seconds:
            break
        shape = (config.batch, config.stages, config.machines, config.jobs)
        times = torch.randint(*TIMES, shape, device=device, generator=generator).to(policy.dtype)
        made = trajectories(policy, times, pattern(config.update_rate, update, steps), generator)
        advantage = advantages(
            made.makespan / MEAN_TIME, torch.ones_like(made.makespan, dtype=torch.bool), only, means, "best"
        )
        objective = loss(advantage, made.log_likelihood)
        objective.backward()  # type: ignore[no-untyped-call]
        norm = torch.linalg.vector_norm(optimiser.gradient)
        optimiser.gradient.mul_((MAX_GRADIENT_NORM / (norm + 1e-6)).clamp(max=1.0))
        done = max((update + 0.5) / config.updates, passed / seconds if seconds else 0.0)
        ahead = share(1 - done, config.cooldown / config.updates)
        optimiser.set_rate(config.learning_rate * factor(update, config.warmup, ahead, "linear"))
        optimiser.step()
        optimiser.gradient.zero_()
        if update % REPORT_EVERY == 0 or update + 1 == config.updates:
            mean = made.makespan.mean().item()
            told = {"update": update, "loss": objective.item(), "makespan": mean, "seconds": passed}
            report({**told, "grad_norm": norm.item()})
    return policy.eval()


@torch.inference_mode()
def solve(policy: JobPolicy, shops: Sequence[FlowShop], update_rate: float) -> list[Schedule]:
    """The best greedy schedule of each shop, over all jobs that may go first; shops are of one size."""
    whole = torch.from_numpy(np.stack([shop.times for shop in shops]))
    times = whole.to(policy.device, policy.dtype)
    refine = pattern(update_rate, 0, times.shape[1] * times.shape[3] - 1)
    made = trajectories(policy, times, refine)
    best = made.makespan.argmin(1)
    lists = made.jobs[torch.arange(len(shops), device=best.device), best].tolist()
    return [dispatch(shop, jobs) for shop, jobs in zip(shops, lists, strict=True)]


def save(policy: JobPolicy, config: Training, path: Path) -> None:
    """The weights, with what made them in their header."""
    weights = {name: value.contiguous() for name, value in policy.state_dict().items()}
    save_file(weights, path, {"training": json.dumps(asdict(config))})


def load(path: Path) -> tuple[JobPolicy, Training]:
    """The policy that `save` wrote, and how it was trained."""
    if not path.is_file():
        remedy = "Check the path, or have `train` write it."
        raise fail("weights-missing", "there is no such file.", path, remedy)
    try:
        with safe_open(path, "pt") as file:
            values: dict[str, Any] = json.loads(file.metadata()["training"])
            weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, TypeError, KeyError) as error:
        remedy = "Give a file that `train` of this module has written."
        raise fail("weights-corrupt", "it holds no policy for flow shops.", path, remedy) from error
    config = Training(**{**values, "policy": PolicyConfig.from_dict(values["policy"])})
    policy = JobPolicy(config.policy, config.stages, config.machines)
    policy.load_state_dict(weights)
    return policy.eval(), config
