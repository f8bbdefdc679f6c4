"""All operations as Triton kernels."""

from chainroute.neural.fast.ops.attention_triton import attend, attend_backward
from chainroute.neural.fast.ops.choice_triton import choose, choose_backward
from chainroute.neural.fast.ops.mask_triton import mask
from chainroute.neural.fast.ops.mlp_triton import mlp, mlp_backward
from chainroute.neural.fast.ops.rows_triton import gate, gate_backward, normalise, normalise_backward, pool
from chainroute.neural.fast.ops.situation_triton import situate, situate_backward

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
