"""The network, file by file as in the paper: encoder, context (RGCR), reembed (TSNR), pointer."""

from chainroute.neural.policy.config import PolicyConfig
from chainroute.neural.policy.policy import Policy, Scene

__all__ = ["Policy", "PolicyConfig", "Scene"]
