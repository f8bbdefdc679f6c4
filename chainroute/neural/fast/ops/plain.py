"""All operations in plain PyTorch, on any device: the legible twins."""

from chainroute.neural.fast.ops.attention import attend, attend_backward
from chainroute.neural.fast.ops.choice import choose, choose_backward
from chainroute.neural.fast.ops.mask import mask
from chainroute.neural.fast.ops.mlp import mlp, mlp_backward
from chainroute.neural.fast.ops.rows import gate, gate_backward, normalise, normalise_backward, pool
from chainroute.neural.fast.ops.situation import situate, situate_backward

__all__ = [
    "attend",
    "attend_backward",
    "choose",
    "choose_backward",
    "gate",
    "gate_backward",
    "mask",
    "mlp",
    "mlp_backward",
    "normalise",
    "normalise_backward",
    "pool",
    "situate",
    "situate_backward",
]
