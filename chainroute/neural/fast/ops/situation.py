"""RGCR's relevance: the situation of a trajectory, which its context is made of. Kernels: `situation_triton`.

Attributes are padded from 13 to 16, so that a situation has 32 + D numbers: the attributes, the attributes
weighed by relevance, and the embedding of the node that the trajectory is at.
"""

from __future__ import annotations

from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor

from chainroute.neural.fast.fold import WIDTH, lengths
from chainroute.neural.fast.ops.rows import rows_of
from chainroute.neural.policy.columns import GROUPS


@cache
def groups(device: torch.device | str, dtype: torch.dtype = torch.float32) -> Tensor:
    """Which constraint each attribute speaks of, (16, 4); padding speaks of none.

    Made once: nothing may come from the host while a graph is captured.
    """
    index = torch.repeat_interleave(torch.arange(len(GROUPS)), torch.tensor(GROUPS))
    return F.pad(F.one_hot(index), (0, 0, 0, WIDTH - len(index))).to(device=device, dtype=dtype)


def situate(
    nodes: Tensor,
    current: Tensor,
    attributes: Tensor,
    flags: Tensor,
    noise: Tensor,
    table: Tensor,
    scores: str,
    out: Tensor,
    relevance: Tensor,
) -> None:
    """The situation (B, S, 32 + D) of trajectories at nodes `current`; noise (B, S, 4), table (16, D).

    The relevance of a constraint, (B, S, 4), is by `scores` a "dot" product, "gated" flag * sigmoid of it and
    the noise, or the "cosine" of the same embeddings.
    """
    here = rows_of(nodes, current).to(table.dtype)
    relevance.copy_(_relevance(here, attributes, flags, noise, table, scores))
    weighed = attributes * (relevance @ groups(nodes.device, attributes.dtype).T)
    out.copy_(torch.cat([attributes.to(table.dtype), weighed.to(table.dtype), here], -1))


def situate_backward(
    grad: Tensor, dsituation: Tensor, nodes: Tensor, current: Tensor, attributes: Tensor, relevance: Tensor,
    table: Tensor, scores: str, dproduct: Tensor, version: Tensor | None = None,
) -> None:  # fmt: skip
    """Adds to `grad` (B, n, D) what a situation's gradient means for the nodes, which only cosines need.

    `dproduct` (B, S, 16) is the gradient of the products of nodes and the table. With `version` (T,) all are
    of T steps, (T B, ...), but grad and nodes of V versions, (V B, n, D): step t is of version[t], or, where
    that is -1, left out.
    """
    if version is not None:
        count = len(current) // len(version)
        grads, versions = (x.view(-1, count, *x.shape[1:]) for x in (grad, nodes))
        steps = (
            x.view(-1, count, *x.shape[1:]) for x in (dsituation, current, attributes, relevance, dproduct)
        )
        for v, given, at, told, found, made in zip(version.tolist(), *steps, strict=True):
            if v >= 0:
                situate_backward(grads[v], given, versions[v], at, told, found, table, scores, made)
        return
    group = groups(nodes.device, attributes.dtype)
    dsituation = dsituation.to(attributes.dtype)
    dweighed, dhere = dsituation[..., WIDTH : 2 * WIDTH], dsituation[..., 2 * WIDTH :]
    ddot = (dweighed * attributes) @ group
    if scores == "gated":  # a flag is 0 or 1, so the slope of flag * sigmoid is relevance * (1 - relevance)
        ddot = ddot * (relevance * (1 - relevance))
    elif scores == "cosine":
        here = rows_of(nodes, current).to(table.dtype)
        ddot = ddot / lengths(attributes, here, table, group)
    dproduct.copy_(attributes * (ddot @ group.T))
    by_score = dproduct.to(dhere.dtype) @ table.to(dhere.dtype)
    if scores == "cosine":  # which changes across a node's embedding, not along it
        along = F.normalize(here.to(dhere.dtype), dim=-1, eps=1e-8)
        by_score = by_score - along * (along * by_score).sum(-1, keepdim=True)
    dhere = dhere + by_score
    grad.scatter_add_(1, current[..., None].expand_as(dhere), dhere.to(grad.dtype))


def _relevance(
    here: Tensor, attributes: Tensor, flags: Tensor, noise: Tensor, table: Tensor, scores: str
) -> Tensor:
    product = (here @ table.T).to(attributes.dtype)
    group = groups(here.device, attributes.dtype)
    dot = (attributes * product) @ group
    if scores == "cosine":
        return dot / lengths(attributes, here, table, group)
    return torch.sigmoid(dot + noise) * flags[:, None] if scores == "gated" else dot
