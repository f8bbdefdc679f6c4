"""The decision process in tensors: batches of problems, states, masks and steps."""

from chainroute.neural.env.batch import ProblemBatch, Rules, from_problems
from chainroute.neural.env.process import State, at_depot, begin, mask, picked, reset, servable, step
from chainroute.neural.env.sample import Mixture, sample

__all__ = [
    "Mixture",
    "ProblemBatch",
    "Rules",
    "State",
    "at_depot",
    "begin",
    "from_problems",
    "mask",
    "picked",
    "reset",
    "sample",
    "servable",
    "step",
]
