"""How trajectories are made, and the best plan of them: multi-start, maps, samples, ensembles, rounds."""

from chainroute.neural.decode.api import attempt, batch_drafts, decode, drafts
from chainroute.neural.decode.rollout import Rollout, rollout
from chainroute.neural.decode.search import best_costs, rollouts
from chainroute.neural.decode.speed import fit
from chainroute.options import DecodeOptions

__all__ = [
    "DecodeOptions",
    "Rollout",
    "attempt",
    "batch_drafts",
    "best_costs",
    "decode",
    "drafts",
    "fit",
    "rollout",
    "rollouts",
]
