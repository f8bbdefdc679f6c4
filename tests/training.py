"""Runs that are small enough for tests."""

from dataclasses import replace

import torch

from chainroute.neural.policy import PolicyConfig
from chainroute.neural.train import TrainConfig
from chainroute.neural.train.engine import PlainEngine
from chainroute.neural.train.learner import Learner
from chainroute.neural.train.ranks import Ranks

TINY = TrainConfig(
    variants=("CVRP", "OVRPTW"),
    sizes=(4,),
    batch=4,
    warmup=2,
    snapshot_every=0,
    policy=PolicyConfig(dim=8, heads=2, layers=1, hidden=8),
)


def tiny(**changes):
    """TINY with changes; those of the policy as a dictionary."""
    policy = replace(TINY.policy, **changes.pop("policy", {}))
    return replace(TINY, policy=policy, **changes)


def alone():
    """The ranks of a process on its own."""
    return Ranks(torch.device("cpu"))


def plain(config=TINY):
    """A fresh learner and its engine."""
    learner = Learner.fresh(config)
    return learner, PlainEngine(learner, alone())


def same(a, b):
    """Whether two learners are equal bit for bit."""
    x, y = dict(a.tensors()), dict(b.tensors())
    where = (a.step, a.instances, a.warm_since) == (b.step, b.instances, b.warm_since)
    return where and x.keys() == y.keys() and all(torch.equal(_bits(x[k]), _bits(y[k])) for k in x)


def _bits(tensor):
    return tensor.contiguous().view(torch.int32)  # NaN equals itself here
