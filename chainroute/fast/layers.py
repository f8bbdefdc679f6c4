"""The policy's layers by fused kernels, where these serve: in half precision, on a GPU with Triton."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from types import ModuleType

import torch
from torch import Tensor

from chainroute.policy.layers import accelerated


@contextmanager
def fused() -> Iterator[None]:
    """While it lasts, the policy's attention and gates run by kernels wherever these serve."""
    with accelerated(Fused()):
        yield


class Fused:
    """`policy.layers.Kernels` by Triton; each answers None where it does not serve."""

    def gate(self, x: Tensor) -> Tensor | None:
        kernels = _kernels_for(x)
        return None if kernels is None else kernels.Gate.apply(x)

    def attention(
        self, query: Tensor, key: Tensor, value: Tensor, heads: int, bias: Tensor | None, keep: int
    ) -> Tensor | None:
        kernels = _kernels_for(query)
        if kernels is None or not kernels.holds(query, key, heads):
            return None
        bias = None if bias is None else bias.contiguous()
        return kernels.Attention.apply(query, key, value, heads, bias, keep)  # type: ignore[no-any-return]


def _kernels_for(x: Tensor) -> ModuleType | None:
    return _kernels() if x.is_cuda and x.dtype in (torch.bfloat16, torch.float16) else None


@cache
def _kernels() -> ModuleType | None:
    try:
        from chainroute.fast import kernels
    except ImportError:
        return None
    return kernels
