"""How fast a policy is decoded on this machine."""

from __future__ import annotations

import time
from functools import partial
from weakref import WeakKeyDictionary

import torch

from chainroute.generate import generate
from chainroute.neural.decode.engine import in_half
from chainroute.neural.decode.rollout import pattern, rollout
from chainroute.neural.env import from_problems
from chainroute.neural.policy import Policy
from chainroute.options import DecodeOptions, Effort
from chainroute.options.rules import options_for, work
from chainroute.problem.variants import variant

SAMPLE = (50, 16, 8)  # customers, starts and steps of the rollout that is timed

_unit: WeakKeyDictionary[Policy, tuple[object, float]] = WeakKeyDictionary()


def fit(
    policy: Policy, customers: int, seconds: float | None, effort: Effort = Effort(), seed: int = 0
) -> DecodeOptions:
    """The options by which this policy, on its device, does best in so many seconds."""
    unit = partial(unit_seconds, policy)
    return options_for(effort, customers, seconds, unit, policy.reembeddings, seed)


def unit_seconds(policy: Policy) -> float:
    """Seconds for a unit of work with this policy, on its device and with the threads that there are now."""
    device, threads = policy.device, torch.get_num_threads()
    key, seconds = _unit.get(policy, (None, 0.0))
    if key != (device, threads):
        customers, starts, steps = SAMPLE
        batch = from_problems(generate(variant("CVRP"), customers, 1, seed=0)).to(device)
        options = DecodeOptions(starts=starts, augmentations=1, update_rates=(1.0,))
        times = []
        for _ in range(3):  # the first also sets things up, and others may use the machine
            begun = time.perf_counter()
            rollout(policy, batch, pattern(1.0, 0, steps), starts, half=in_half(policy, options)).costs.cpu()
            times.append(time.perf_counter() - begun)
        seconds = min(times) / work(options, customers, policy.reembeddings, steps)
        _unit[policy] = (device, threads), seconds
    return seconds
