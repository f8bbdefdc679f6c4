"""The operations of the fast engine in plain PyTorch: what `ops_triton` does, legibly.

Every operation writes into the tensors it is given last, and comes with its gradient by hand. The rows of
an attention are the contexts (S of them) and then the nodes (n). Attributes are padded from 13 to 16, so that
the situation of a trajectory has 32 + D numbers: its attributes, the attributes weighed by relevance, and the
embedding of the node it is at.
"""

from __future__ import annotations

import math
from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor

from chainroute.fast.fold import WIDTH, lengths
from chainroute.policy.context import GROUPS
from chainroute.policy.layers import split_heads

EPS = 1e-5  # of every RMS norm


@cache
def groups(device: torch.device | str, dtype: torch.dtype = torch.float32) -> Tensor:
    """Which constraint each attribute speaks of, (16, 4); padding speaks of none.

    Made once: nothing may come from the host while a graph is captured.
    """
    index = torch.repeat_interleave(torch.arange(len(GROUPS)), torch.tensor(GROUPS))
    return F.pad(F.one_hot(index), (0, 0, 0, WIDTH - len(index))).to(device=device, dtype=dtype)


# -- RGCR's relevance


def situate(
    nodes: Tensor,
    current: Tensor,
    attributes: Tensor,
    flags: Tensor,
    noise: Tensor,
    weights: Tensor,
    scores: str,
    out: Tensor,
) -> None:
    """The situation (B, S, 32 + D) of trajectories at nodes `current`; noise (B, S, 4), weights (16, D).

    The relevance of a constraint is by `scores` a "dot" product, "gated" flag * sigmoid of it and the noise,
    or the "cosine" of the same embeddings.
    """
    here = _rows(nodes, current).to(weights.dtype)
    relevance = _relevance(here, attributes, flags, noise, weights, scores)
    weighed = attributes * (relevance @ groups(nodes.device, attributes.dtype).T)
    out.copy_(torch.cat([attributes.to(weights.dtype), weighed.to(weights.dtype), here], -1))


def situate_backward(
    grad: Tensor, dsituation: Tensor, nodes: Tensor, current: Tensor, attributes: Tensor, flags: Tensor,
    noise: Tensor, weights: Tensor, scores: str, dproduct: Tensor,
) -> None:  # fmt: skip
    """Adds to `grad` (B, n, D) what a situation's gradient means for the nodes.

    `dproduct` (B, S, 16) is the gradient of the products of nodes and weights.
    """
    group = groups(nodes.device, attributes.dtype)
    here = _rows(nodes, current).to(weights.dtype)
    dsituation = dsituation.to(attributes.dtype)
    dweighed, dhere = dsituation[..., WIDTH : 2 * WIDTH], dsituation[..., 2 * WIDTH :]
    ddot = (dweighed * attributes) @ group
    if scores == "gated":  # a flag is 0 or 1, so the slope of flag * sigmoid is relevance * (1 - relevance)
        relevance = _relevance(here, attributes, flags, noise, weights, scores)
        ddot = ddot * (relevance * (1 - relevance))
    elif scores == "cosine":
        ddot = ddot / lengths(attributes, here, weights, group)
    dproduct.copy_(attributes * (ddot @ group.T))
    by_score = dproduct.to(dhere.dtype) @ weights.to(dhere.dtype)
    if scores == "cosine":  # which changes across a node's embedding, not along it
        along = F.normalize(here.to(dhere.dtype), dim=-1, eps=1e-8)
        by_score = by_score - along * (along * by_score).sum(-1, keepdim=True)
    dhere = dhere + by_score
    grad.scatter_add_(1, current[..., None].expand_as(dhere), dhere.to(grad.dtype))


def _relevance(
    here: Tensor, attributes: Tensor, flags: Tensor, noise: Tensor, weights: Tensor, scores: str
) -> Tensor:
    product = (here @ weights.T).to(attributes.dtype)
    group = groups(here.device, attributes.dtype)
    dot = (attributes * product) @ group
    if scores == "cosine":
        return dot / lengths(attributes, here, weights, group)
    return torch.sigmoid(dot + noise) * flags[:, None] if scores == "gated" else dot


def _rows(values: Tensor, index: Tensor) -> Tensor:
    return values.gather(1, index[..., None].expand(-1, -1, values.shape[-1]))


# -- attention, with the nearness of nodes as bias or a mask: see `kernels.attend`


def attend(
    q: Tensor, k: Tensor, v: Tensor, heads: int, bias: Tensor, rows: Tensor | None, out: Tensor, lse: Tensor
) -> None:
    scores = _scores(q, k, heads, bias, rows)
    lse.copy_(scores.logsumexp(-1))
    seen = (scores - lse[..., None]).exp() @ split_heads(v, heads)
    out.copy_(seen.transpose(1, 2).flatten(2))


def attend_backward(
    dout: Tensor, q: Tensor, k: Tensor, v: Tensor, heads: int, bias: Tensor, rows: Tensor | None,
    out: Tensor, lse: Tensor, dq: Tensor, dk: Tensor, dv: Tensor,
) -> None:  # fmt: skip
    weight = (_scores(q, k, heads, bias, rows) - lse[..., None]).exp()
    grad, seen = split_heads(dout, heads), split_heads(out, heads)
    along = (grad * seen).sum(-1, keepdim=True)
    grad_score = weight * (grad @ split_heads(v, heads).mT - along) / math.sqrt(grad.shape[-1])
    dq.copy_((grad_score @ split_heads(k, heads)).transpose(1, 2).flatten(2))
    dk.copy_((grad_score.mT @ split_heads(q, heads)).transpose(1, 2).flatten(2))
    dv.copy_((weight.mT @ grad).transpose(1, 2).flatten(2))


def _scores(q: Tensor, k: Tensor, heads: int, bias: Tensor, rows: Tensor | None) -> Tensor:
    scores = split_heads(q, heads) @ split_heads(k, heads).mT / math.sqrt(q.shape[-1] // heads)
    if bias.dtype == torch.bool:
        return scores.masked_fill(~bias[:, None], -torch.inf)
    if rows is not None:
        bias = _rows(bias, rows.long()).mT
    return scores + bias[:, None]


# -- the gate of a gated MLP


def gate(x: Tensor, out: Tensor) -> None:
    a, b = x.chunk(2, -1)
    out.copy_(F.silu(a) * b)


def gate_backward(dy: Tensor, x: Tensor, out: Tensor) -> None:
    a, b = x.chunk(2, -1)
    s = torch.sigmoid(a)
    out.copy_(torch.cat([dy * b * s * (1 + a * (1 - s)), dy * a * s], -1))


# -- normalisation: each row divided by its root mean square, `inverse` is one over that


def normalise(contexts: Tensor, nodes: Tensor, x: Tensor, inverse: Tensor) -> None:
    """Contexts (B, S, D) and nodes (B, n, D) as one, normalised."""
    rows = torch.cat([contexts.to(nodes.dtype), nodes], 1)
    inverse.copy_(torch.rsqrt(rows.square().mean(-1) + EPS))
    x.copy_(rows * inverse[..., None])


def normalise_backward(
    grad: Tensor, dx: Tensor, x: Tensor, inverse: Tensor, dnodes: Tensor, dcontexts: Tensor
) -> None:
    """dnodes = grad + the nodes' part; the contexts' part is added to dcontexts."""
    rows = _normalise_backward(dx, x, inverse)
    count = dcontexts.shape[1]
    dnodes.copy_(grad + rows[:, count:])
    dcontexts.add_(rows[:, :count])


def add_normalise(a: Tensor, delta: Tensor, total: Tensor, x: Tensor, inverse: Tensor) -> None:
    """total = a + delta, and it normalised."""
    total.copy_(a + delta)
    inverse.copy_(torch.rsqrt(total.square().mean(-1) + EPS))
    x.copy_(total * inverse[..., None])


def add_normalise_backward(
    grad: Tensor, dx: Tensor, x: Tensor, inverse: Tensor, total: Tensor | None, small: Tensor
) -> None:
    """The gradient of a + delta, in full precision unless `total` is None, and in half."""
    result = grad + _normalise_backward(dx, x, inverse)
    small.copy_(result)
    if total is not None:
        total.copy_(result)


def _normalise_backward(dx: Tensor, x: Tensor, inverse: Tensor) -> Tensor:
    dx, x = dx.to(inverse.dtype), x.to(inverse.dtype)
    return inverse[..., None] * (dx - x * (dx * x).mean(-1, keepdim=True))


def add(a: Tensor, delta: Tensor, total: Tensor, small: Tensor) -> None:
    """a + delta, in full precision and in half."""
    torch.add(a, delta, out=total)
    small.copy_(total)


# -- the choice of the next visit


def choose(
    query: Tensor, keys: Tensor, near: Tensor, current: Tensor, mask: Tensor, gumbel: Tensor, clip: float,
    action: Tensor,
) -> None:  # fmt: skip
    """Samples an action for each query (B, S, D) over keys (B, n, D)."""
    action.copy_((_logits(query, keys, near, current, mask, clip)[0] + gumbel).argmax(-1))


def choose_backward(
    query: Tensor, keys: Tensor, near: Tensor, current: Tensor, mask: Tensor, clip: float, action: Tensor,
    weight: Tensor, dquery: Tensor, dkeys: Tensor, likelihood: Tensor,
) -> None:  # fmt: skip
    """The log-likelihood of actions (K B, S), and the gradient of its sum weighed by `weight` (B, S).

    All but near (B, n, n) and the weights have K times as many instances, all B of them K times over.
    """
    times = len(query) // len(near)
    logits, bent = _logits(query, keys, near.repeat(times, 1, 1), current, mask, clip)
    log_p = logits.log_softmax(-1)
    likelihood.copy_(log_p.gather(-1, action[..., None]).squeeze(-1))
    hit = F.one_hot(action, logits.shape[-1])
    dlogits = weight.repeat(times, 1)[..., None] * (hit - log_p.exp())
    dmatch = dlogits * clip * (1 - bent.square())
    dquery.copy_(dmatch @ keys)
    dkeys.copy_(dmatch.mT @ query)


def _logits(
    query: Tensor, keys: Tensor, near: Tensor, current: Tensor, mask: Tensor, clip: float
) -> tuple[Tensor, Tensor]:
    bent = torch.tanh(query @ keys.mT + _rows(near, current))
    return (clip * bent).masked_fill(~mask, -torch.inf), bent
