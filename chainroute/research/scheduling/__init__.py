"""The flexible flow shop by the chain of contexts: the same blocks, objective and optimiser elsewhere.

Small and apart: nothing of routing is used but the network's blocks and what training has in common.
"""

from chainroute.research.scheduling.shop import FlowShop, Schedule, check, dispatch, generate

__all__ = ["FlowShop", "Schedule", "check", "dispatch", "generate"]
