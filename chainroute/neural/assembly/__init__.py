"""Assembly makes plans of trajectories in NumPy alone: any process can do it while the device decodes on."""

from chainroute.errors import Fault
from chainroute.neural.assembly.incumbent import Draft, Incumbent, assembled, joined
from chainroute.plan.solution import Routes

# Of the problem with this index: routes, or trajectories to make them of; a str is a note.
PolicyReport = tuple[int, Routes | Draft | Fault | str]

__all__ = ["Draft", "Incumbent", "PolicyReport", "assembled", "joined"]
