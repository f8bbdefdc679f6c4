"""How a gradient moves the weights: by AdamW, or the matrices by Muon and everything else by AdamW.

Muon (Jordan et al., "Muon: an optimizer for hidden layers in neural networks", 2024) moves a matrix along
the orthogonal matrix nearest to its momentum, so that it learns in all directions at one pace. The length of
its steps, in root mean square, is a multiple of the rate (Liu et al., "Muon is scalable for LLM training",
2025). PyTorch has one, which goes matrix by matrix and has its rate on the host: not to be captured.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from typing import Literal

import torch
import torch._dynamo  # the first optimiser loads it, which takes seconds: not of the time given for training
from torch import Tensor

from chainroute.neural.policy import Policy
from chainroute.neural.policy.layers import StackedLinear

Method = Literal["adamw", "muon"]

MOMENTUM = 0.95
STEP_LENGTH = 0.6  # of a step, in rates; AdamW's own are about 0.2 to 1
ITERATION = (3.4445, -4.7750, 2.0315)  # of Jordan et al.: brings singular values near 1 in five rounds


class Optimiser:
    """An optimiser with gradients and moments in place from the start, and on a GPU the rate in a tensor:
    what is captured finds everything where it was."""

    def __init__(self, policy: Policy, method: Method, weight_decay: float):
        named = dict(policy.named_parameters())
        # One buffer behind all gradients: norm, sum over ranks and clearing are one operation each.
        sizes = [p.numel() for p in named.values()]
        self.gradient = torch.zeros(sum(sizes), dtype=policy.dtype, device=policy.device)
        for p, part in zip(named.values(), torch.split(self.gradient, sizes), strict=True):
            p.grad = part.view_as(p)
        self.matrices = {
            name: p for name, p in named.items() if method == "muon" and _wide(p, policy.config.dim)
        }
        self.counts = {  # of layers that hold several matrices
            f"{name}.weight": layer.count
            for name, layer in policy.named_modules()
            if isinstance(layer, StackedLinear)
        }
        self.momentum = [torch.zeros_like(p) for p in self.matrices.values()]
        self.others = {name: p for name, p in named.items() if name not in self.matrices}
        self.adamw = _adamw(list(self.others.values()), weight_decay)

    def step(self) -> None:
        """Moves the weights along their gradients."""
        self.adamw.step()
        if self.matrices:
            self._muon()

    def _muon(self) -> None:
        (group,) = self.adamw.param_groups
        rate, weights = group["lr"], [p.data for p in self.matrices.values()]
        gradients = [p.grad for p in self.matrices.values() if p.grad is not None]
        torch._foreach_lerp_(self.momentum, gradients, 1 - MOMENTUM)
        ahead = torch._foreach_lerp(gradients, self.momentum, MOMENTUM)  # Nesterov's: where it will be
        alike: dict[tuple[int, ...], list[tuple[Tensor, Tensor]]] = defaultdict(list)  # by shape
        for name, weight, direction in zip(self.matrices, weights, ahead, strict=True):
            count = self.counts.get(name, 1)
            for w, d in zip(weight.chunk(count), direction.chunk(count), strict=True):
                alike[tuple(w.shape)].append((w, d))
        for shape, members in alike.items():
            steps = orthogonal(torch.stack([d for _, d in members])) * (STEP_LENGTH * math.sqrt(max(shape)))
            steps += group["weight_decay"] * torch.stack([w for w, _ in members])
            torch._foreach_sub_([w for w, _ in members], list(steps * rate))

    def moments(self) -> Iterator[tuple[str, Tensor]]:
        """What the optimiser remembers of earlier gradients, by name."""
        for name, momentum in zip(self.matrices, self.momentum, strict=True):
            yield f"moment1.{name}", momentum
        for name, p in self.others.items():
            yield f"moment1.{name}", self.adamw.state[p]["exp_avg"]
            yield f"moment2.{name}", self.adamw.state[p]["exp_avg_sq"]

    def counters(self) -> list[Tensor]:
        """How many gradients AdamW's moments have seen."""
        return [state["step"] for state in self.adamw.state.values()]

    def hold(self, still: Tensor) -> None:
        """Where `still` is true the next step moves nothing; the rate is set again for the step after it."""
        (group,) = self.adamw.param_groups
        if isinstance(group["lr"], Tensor):
            group["lr"].mul_(~still)
        elif bool(still):
            group["lr"] = 0.0

    def set_rate(self, rate: float) -> None:
        (group,) = self.adamw.param_groups
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate


def orthogonal(matrices: Tensor) -> Tensor:
    """Nearly the orthogonal matrices nearest to these, (k, rows, columns), contiguous."""
    a, b, c = ITERATION
    tall = matrices.shape[1] > matrices.shape[2]
    x: Tensor = matrices / (torch.linalg.matrix_norm(matrices, keepdim=True) + 1e-12)
    if x.is_cuda:
        x = x.bfloat16()
    if tall:
        x = x.mT
    for _ in range(5):
        square = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(square, square, square, beta=b, alpha=c), x, beta=a)
    return (x.mT if tall else x).to(matrices.dtype).contiguous()


def _wide(p: Tensor, dim: int) -> bool:
    """Whether it is a matrix between embeddings; those from a few attributes to one are not."""
    return p.ndim == 2 and min(p.shape) >= dim


def _adamw(parameters: list[Tensor], weight_decay: float) -> torch.optim.AdamW:
    device = parameters[0].device
    gpu = device.type == "cuda"
    optimiser = torch.optim.AdamW(
        parameters,
        lr=torch.zeros((), device=device) if gpu else 0.0,
        weight_decay=weight_decay,
        fused=True,
        capturable=gpu,
    )
    for p in parameters:
        optimiser.state[p] = {
            "step": torch.zeros((), device=device),
            "exp_avg": torch.zeros_like(p),
            "exp_avg_sq": torch.zeros_like(p),
        }
    return optimiser
