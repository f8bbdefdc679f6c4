"""TSNR at speed, forward and backward: from nodes and contexts to new nodes. In the paper's words it is
`neural/policy/reembed.py`."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from chainroute.neural.fast.ops.products import bias_gradient, flat, product, weight_gradient
from chainroute.neural.fast.update import Gradients, Update


@dataclass(frozen=True)
class ReembeddingTape:
    """What R re-embeddings leave, each of m rows: n nodes, under self-attention S contexts before them."""

    keys: int  # contexts and nodes that are seen: the first S, or all S + n
    x: Tensor  # (R, B, S + n, D) contexts and nodes, normalised
    inverse: Tensor  # (R, B, S + n) one over their root mean square
    qkv: Tensor  # (R, B, S + n, 3 D)
    seen: Tensor  # (R, B, m, D) what attention gives
    lse: Tensor  # (R, B, heads, m)
    middle: Tensor  # (R, B, m, D) the sum with what it gives, normalised
    middle_inverse: Tensor  # (R, B, m)

    @staticmethod
    def empty(update: Update, count: int, trajectories: int) -> ReembeddingTape:
        config, near = update.config, update.scene.near
        (b, n, _), s, dim, device = near.shape, trajectories, config.dim, near.device
        m = s + n if config.reembedding == "self" else n

        def half(*shape: int) -> Tensor:
            return torch.empty((count, b, *shape), dtype=update.half, device=device)

        def full(*shape: int) -> Tensor:
            return torch.empty((count, b, *shape), dtype=update.full, device=device)

        return ReembeddingTape(
            keys=s + n if config.node_attention else s,
            x=half(s + n, dim),
            inverse=full(s + n),
            qkv=half(s + n, 3 * dim),
            seen=half(m, dim),
            lse=full(config.heads, m),
            middle=half(m, dim),
            middle_inverse=full(m),
        )


@dataclass(frozen=True)
class ReembeddingGradients:
    """Gradients of what R re-embeddings computed, from which those of the weights follow."""

    after: Tensor  # (R, B, m, D) of what the MLP gives
    hidden: Tensor  # (R, B, m, 2 H) of its hidden layer
    gated: Tensor  # (R, B, m, H) no gradient: what its gate gives, which is made on the way back
    seen: Tensor  # (R, B, m, D) of what attention gives, projected
    qkv: Tensor  # (R, B, S + n, 3 D)

    @staticmethod
    def empty(tape: ReembeddingTape, hidden: int) -> ReembeddingGradients:
        rows, dim = tape.seen.shape[:-1], tape.seen.shape[-1]
        qkv = torch.empty_like(tape.qkv)  # zero where no contexts are asked, or no nodes seen
        qkv[:, :, : -rows[2], :dim].zero_()
        qkv[:, :, tape.keys :, dim:].zero_()
        return ReembeddingGradients(
            after=torch.empty_like(tape.seen),
            hidden=tape.seen.new_empty(*rows, 2 * hidden),
            gated=tape.seen.new_empty(*rows, hidden),
            seen=torch.empty_like(tape.seen),
            qkv=qkv,
        )


def reembed(
    update: Update, tape: ReembeddingTape, r: int, current: Tensor, nodes: Tensor, contexts: Tensor,
    after: Tensor, after_half: Tensor,
) -> None:  # fmt: skip
    """Re-embedding r: nodes (B, n, D) become `after`, in full precision and in half.

    Contexts (B, S, D) of trajectories at nodes `current` (B, S) are refined in place under self-attention.
    """
    ops, w, s = update.ops, update.weights, contexts.shape[1]
    ops.normalise(contexts, nodes, tape.x[r], tape.inverse[r])
    torch.addmm(w.qkv_bias, flat(tape.x[r]), w.qkv.T, out=flat(tape.qkv[r]))
    ops.attend(*_attention(update, tape, r, current), tape.seen[r], tape.lse[r])
    delta = torch.addmm(w.out_bias, flat(tape.seen[r]), w.out.T).view_as(tape.seen[r])
    before = torch.cat([contexts, nodes], 1) if update.config.reembedding == "self" else nodes
    if update.config.residual == "query":
        before = _asked(update, tape.qkv[r], s).to(before.dtype).contiguous()
    into = (tape.middle[r], tape.middle_inverse[r])
    if update.config.reembedding == "self":
        both, both_half = torch.empty_like(before), torch.empty_like(delta)
        ops.mlp(before, delta, w.w12, w.w3, *into, both, both_half)
        contexts.copy_(both[:, :s])
        after.copy_(both[:, s:])
        after_half.copy_(both_half[:, s:])
    else:
        ops.mlp(before, delta, w.w12, w.w3, *into, after, after_half)


def reembed_backward(
    update: Update, tape: ReembeddingTape, grads: ReembeddingGradients, r: int, current: Tensor,
    dlater: Tensor, dpointed: Tensor, dcontexts: Tensor,
) -> Tensor:  # fmt: skip
    """The gradient of the nodes before re-embedding r, (B, n, D).

    The gradient of the nodes after it has two parts: by later steps, in full precision, and by the pointer of
    its own step, in half. That of the contexts, (B, S, D), is brought up to date in place.
    """
    ops, w, s = update.ops, update.weights, dcontexts.shape[1]
    self_attention = update.config.reembedding == "self"
    if self_attention:  # only the pointer of its own step uses the new contexts
        dlater = F.pad(dlater, (0, 0, s, 0))
        dpointed = torch.cat([dcontexts, dpointed], 1)
    dmiddle = torch.empty_like(dlater)
    ops.mlp_backward(
        dlater, dpointed, tape.middle[r], tape.middle_inverse[r], w.w12, w.w3,
        grads.after[r], grads.gated[r], grads.hidden[r], dmiddle, grads.seen[r],
    )  # fmt: skip
    dq = _asked(update, grads.qkv[r], s)
    _, dk, dv = grads.qkv[r].chunk(3, -1)
    dk, dv = (d[:, : tape.keys] for d in (dk, dv))
    looked = _attention(update, tape, r, current)
    ops.attend_backward(product(grads.seen[r], w.out), *looked, tape.seen[r], tape.lse[r], dq, dk, dv)
    if update.config.residual == "query":
        dq += dmiddle
        dmiddle = torch.zeros_like(dmiddle)
    if self_attention:
        dcontexts.copy_(dmiddle[:, :s])
        dmiddle = dmiddle[:, s:].contiguous()
    dnodes = torch.empty_like(dmiddle)
    dx = product(grads.qkv[r], w.qkv)
    ops.normalise_backward(dmiddle, dx, tape.x[r], tape.inverse[r], dnodes, dcontexts)
    return dnodes


def reembedding_weights(tape: ReembeddingTape, grads: ReembeddingGradients) -> Gradients:
    """The gradients of TSNR's weights; none where nothing was re-embedded."""
    if not len(tape.x):
        return {}
    return {
        "w3": weight_gradient(grads.after, grads.gated),
        "w12": weight_gradient(grads.hidden, tape.middle),
        "out": weight_gradient(grads.seen, tape.seen),
        "out_bias": bias_gradient(grads.seen),
        "qkv": weight_gradient(grads.qkv, tape.x),
        "qkv_bias": bias_gradient(grads.qkv),
    }


def _asked(update: Update, qkv: Tensor, s: int) -> Tensor:
    """The queries among qkv (B, S + n, 3 D): of the nodes, under self-attention of the S contexts, too."""
    q = qkv[..., : update.config.dim]
    return q if update.config.reembedding == "self" else q[:, s:]


def _attention(
    update: Update, tape: ReembeddingTape, r: int, current: Tensor
) -> tuple[Tensor, Tensor, Tensor, int, Tensor, Tensor | None]:
    """Queries, keys, values, heads, bias and rows of re-embedding r, as `attend` takes them."""
    q, k, v = tape.qkv[r].chunk(3, -1)
    s, keys, node_bias = current.shape[1], tape.keys, update.scene.node_bias
    k, v, near = k[:, :keys], v[:, :keys], node_bias.mT
    if update.config.reembedding == "cross":
        return q[:, s:], k, v, update.config.heads, near, current
    there = near.gather(1, current[..., None].expand(-1, -1, near.shape[-1]))  # (B, S, n)
    hidden = node_bias[:, :1].isneginf()  # padding is hidden from contexts as it is from nodes
    of_contexts = F.pad(there.masked_fill(hidden, -torch.inf), (s, 0))  # contexts have no distance
    of_nodes = torch.cat([there.mT, node_bias], 2)
    bias = torch.cat([of_contexts, of_nodes], 1)[..., :keys].contiguous()
    return q, k, v, update.config.heads, bias, None
