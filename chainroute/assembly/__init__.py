"""From trajectories to plans, in NumPy alone: any process can do it while the device decodes others."""

from chainroute.assembly.incumbent import Draft, Incumbent, assembled

__all__ = ["Draft", "Incumbent", "assembled"]
