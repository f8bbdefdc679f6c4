"""How trajectories are made: greedy and sampled multi-start, augmentation, ensembles, best of all."""

from chainroute.decode.judged import attempt, decode
from chainroute.decode.options import DecodeOptions
from chainroute.decode.rollout import Rollout, rollout
from chainroute.decode.search import best_costs, rollouts

__all__ = ["DecodeOptions", "Rollout", "attempt", "best_costs", "decode", "rollout", "rollouts"]
