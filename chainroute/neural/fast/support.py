"""Which networks have a fast version. The others run plainly, and whoever runs them says so.

The encoder runs as it is in either case. RGCR, TSNR and the pointer have a folded version (`fold.py`) and one
with gradients by hand (`relevance.py`, `reembedding.py`, `pointer.py`).
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from dataclasses import fields
from functools import lru_cache

import torch
from torch import nn

from chainroute.generate import DEPOTS
from chainroute.neural.policy import Policy, PolicyConfig
from chainroute.neural.policy.pointer import Glimpse

CAPABILITY = (8, 0)  # from which on GPUs multiply bfloat16
BLOCKS = ("rgcr", "tsnr", "pointer")

# Every field of PolicyConfig that the fast version follows, with the values that it knows; None: all.
KNOWN: dict[str, tuple[str, ...] | None] = {
    **dict.fromkeys(("dim", "heads", "hidden", "score_noise", "clip"), None),
    **dict.fromkeys(
        ("encoder", "layers", "sparse", "prompt", "fusion", "depot_closing"), None
    ),  # the encoder's own
    **dict.fromkeys(("rgcr", "tsnr", "pointer"), None),  # by their classes, above
    **dict.fromkeys(("node_attention", "chain"), None),
    **dict.fromkeys(("reld", "glimpse_residual", "decoder_depth", "logit_distance_bias"), None),
    "spacing": None,
    "features": ("paper", "wide"),
    "scores": ("gated", "dot", "cosine", "random", "embeddings", "attributes"),
    "reembedding": ("cross", "self", "off"),
    "residual": ("nodes", "query"),
    "distance_bias": ("log", "raw", "off"),
}


def obstacle(policy: Policy) -> str:
    """Why there is no fast version of this network; empty if there is one."""
    for part in BLOCKS:
        block = getattr(policy, part)
        if block is not None and not folds(block):
            return f"has no version of {_name(block)}, the network's {part}"
    for glimpse in policy.pointer.glimpses:
        if type(glimpse) is not Glimpse:
            return f"has no version of {_name(glimpse)}, a glimpse of the network"
    default = PolicyConfig()
    for field in fields(policy.config):
        value = getattr(policy.config, field.name)
        values = KNOWN.get(field.name, (getattr(default, field.name),))
        if values is not None and value not in values:
            return f"does not know {field.name} = {value!r}"
    return ""


def folds(block: nn.Module) -> bool:
    """Whether the block's own class says that it has a fast version; a subclass says so for itself."""
    return bool(vars(type(block)).get("folds", False))


def device_obstacle(device: torch.device) -> str:
    """Why kernels do not serve on that device; empty if they do."""
    if device.type != "cuda":
        return "needs a GPU"
    capability = torch.cuda.get_device_capability(device)
    if capability < CAPABILITY:
        had = f"{torch.cuda.get_device_name(device)} has {capability[0]}.{capability[1]}"
        return f"needs a GPU of compute capability {CAPABILITY[0]}.{CAPABILITY[1]}, and {had}"
    if importlib.util.find_spec("triton") is None:
        return "needs Triton: pip install triton"
    if not any(map(shutil.which, (os.environ.get("CC", "cc"), "gcc", "clang"))):
        return "needs a C compiler, with which Triton starts its kernels"
    return ""


@lru_cache
def failure(device: torch.device) -> str:
    """Why kernels do not run on that device, after trying the simplest one; empty if it ran."""
    if reason := device_obstacle(device):
        return reason
    from chainroute.neural.fast.ops import rows_triton

    try:
        rows_triton.Gate.apply(torch.ones(1, 32, dtype=torch.bfloat16, device=device))  # type: ignore[no-untyped-call]
    except Exception as error:  # such as for want of Python's header files, which Triton compiles with
        line = next(iter(str(error).strip().splitlines()), "").rstrip(".")
        return f"failed to start a kernel, {type(error).__name__}: {line}"
    return ""


def kernel_obstacle(config: PolicyConfig, customers: int) -> str:
    """Why kernels do not hold that network on problems of that size; empty if they do."""
    from chainroute.neural.fast.ops.attention_triton import HEADS, MAX_KEYS
    from chainroute.neural.fast.ops.mlp_triton import LEAST_PART, MAX_DIM

    size = config.dim // config.heads
    if config.dim & (config.dim - 1) or size not in HEADS:
        return f"needs a dim that is a power of two and heads of {', '.join(map(str, HEADS))}, not of {size}"
    if config.dim > MAX_DIM:
        return f"needs a dim of {MAX_DIM} at most, not {config.dim}"
    if config.hidden % LEAST_PART:
        return f"needs a hidden layer whose width is a multiple of {LEAST_PART}, not {config.hidden}"
    keys = 2 * customers + DEPOTS  # contexts and nodes
    most = (MAX_KEYS - DEPOTS) // 2
    return f"holds at most {most} customers, not {customers}" if keys > MAX_KEYS else ""


def _name(block: nn.Module) -> str:
    return f"{type(block).__module__}.{type(block).__qualname__}"
