"""Options that suit a problem and a number of seconds.

The first answer may take a share of the time; the rest is for rounds. What an answer takes is estimated: a
model says how work grows with the size, and a short rollout how long a unit of work takes on this machine.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from weakref import WeakKeyDictionary

import torch

from chainroute.decode.options import DecodeOptions
from chainroute.decode.rollout import pattern, rollout
from chainroute.env import from_problems
from chainroute.generate import generate
from chainroute.policy import Policy
from chainroute.problem import Problem
from chainroute.variants import variant

FIRST = 0.5  # the share of the time that the first answer may take
FIRST_SECTORS = 0.75  # where it comes in sectors: rounds mend neighbouring routes, not a poor whole
SECTOR = 200  # customers; the policy is lost in problems much larger than those it was trained on
STEPS = 1.25  # for each customer: its visit, and ends of routes
OVERHEAD = 120.0  # of a step, however few embeddings it computes
NODE = 1.5  # a node against a trajectory
ENCODER = 6.0  # its layers
SAMPLE = (50, 16, 8)  # customers, starts and steps of the rollout that is timed

_unit: WeakKeyDictionary[Policy, tuple[object, float]] = WeakKeyDictionary()


def fit(policy: Policy, problem: Problem, seconds: float, seed: int = 0) -> DecodeOptions:
    """The most trajectories that are expected in time for a first answer, and rounds for the rest."""
    share = FIRST if problem.num_customers <= SECTOR else FIRST_SECTORS
    units = share * seconds / unit_seconds(policy)
    *better, cheapest = _ladder(problem.num_customers)
    chosen = next((one for one in better if work(policy, problem.num_customers, one) <= units), cheapest)
    return replace(chosen, recombine=True, rounds=None, seed=seed)


def _ladder(customers: int) -> Iterator[DecodeOptions]:
    """From much work to little."""
    if customers <= SECTOR:
        for maps in (4, 2, 1):
            yield DecodeOptions(augmentations=maps)
    for starts in (32, 16, 8):
        yield DecodeOptions(starts, augmentations=1, sector=SECTOR)
    for sector in (100, 50):
        yield DecodeOptions(8, augmentations=1, update_rates=(0.25,), sector=sector)


def work(policy: Policy, customers: int, options: DecodeOptions, steps: float | None = None) -> float:
    """What the first answer takes, in embeddings of trajectories and nodes that are computed."""
    size = min(customers, options.sector or customers)
    copies, starts = options.copies * -(-customers // size), options.starts(size)
    attention = 1 + size / 600  # it makes an embedding dearer where there are many to look at
    total = 0.0
    for rate in options.rates(size, policy.reembeddings):
        step = OVERHEAD + copies * attention * (starts + NODE * rate * size)
        total += ENCODER * copies * attention * size + (STEPS * size if steps is None else steps) * step
    return total


def unit_seconds(policy: Policy) -> float:
    """Seconds for a unit of work with this policy, on its device and with the threads that there are now."""
    device, threads = next(policy.parameters()).device, torch.get_num_threads()
    key, seconds = _unit.get(policy, (None, 0.0))
    if key != (device, threads):
        customers, starts, steps = SAMPLE
        batch = from_problems(generate(variant("CVRP"), customers, 1, seed=0)).to(device)
        options = DecodeOptions(starts, augmentations=1, update_rates=(1.0,))
        times = []
        for _ in range(3):  # the first also sets things up, and others may use the machine
            begun = time.perf_counter()
            rollout(policy, batch, pattern(1.0, 0, steps), starts).costs.cpu()
            times.append(time.perf_counter() - begun)
        seconds = min(times) / work(policy, customers, options, steps)
        _unit[policy] = (device, threads), seconds
    return seconds
