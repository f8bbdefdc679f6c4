"""Assembly makes plans of trajectories in NumPy alone: any process can do it while the device decodes on."""

from chainroute.neural.assembly.incumbent import Draft, Incumbent, assembled, joined

__all__ = ["Draft", "Incumbent", "assembled", "joined"]
