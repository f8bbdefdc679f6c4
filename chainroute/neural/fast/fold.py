"""The decoder with its weights multiplied out: the function of `Policy.step` in fewer and wider products.

Norms are folded into the projections that follow them, RGCR's linear maps into two, the pointer's output into
its logit keys. Here for inference, in `fast.chain` for gradients.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from chainroute.neural.env import ProblemBatch, State, picked
from chainroute.neural.fast.layers import attention_by_rows, fused, likeliest, normalised_rows, serve_decoding
from chainroute.neural.fast.ops.rows import padded
from chainroute.neural.policy.columns import FEATURES, GROUPS, NAMES, OF_TRAJECTORY, OWN
from chainroute.neural.policy.context import RGCR
from chainroute.neural.policy.layers import add_mlp, attention, normalised
from chainroute.neural.policy.pointer import Glimpse
from chainroute.neural.policy.policy import NO_LIMIT, Policy, Scene, more_attributes

WIDTH = max(16, 1 << (len(NAMES) - 1).bit_length())  # of RGCR's 13 attributes, padded for matrix units
NOWHERE = len(FEATURES)  # a column of zeros behind the features of a node
# The feature of the current node that each attribute is, and which attributes are the trajectory's own.
OF_NODE = [FEATURES.index(name) if name in FEATURES else NOWHERE for name in NAMES]
OF_NODE += [NOWHERE] * (WIDTH - len(NAMES))
CHANGING = [NAMES.index(name) for name in OWN]
WIDE = [len(NAMES) + i for i in range(len(OF_TRAJECTORY))]  # of these, too, with wide features


@dataclass(frozen=True)
class Weights:
    """Everything a step multiplies by, as (out, in) matrices. A situation is 32 + D numbers: `situate`.

    Without re-embedding TSNR's are empty, without ReLD the pointer's MLP is, and there is no identity.
    """

    relevance: Tensor  # (16, D) from the current node to what weighs the attributes
    context: Tensor  # (2 D, 32 + D) from the situation to the context and ReLD's identity
    qkv: Tensor  # (3 D, D) of TSNR
    qkv_bias: Tensor  # (3 D,)
    out: Tensor  # (D, D)
    out_bias: Tensor  # (D,)
    w12: Tensor  # (2 hidden, D)
    w3: Tensor  # (D, hidden)
    keys: Tensor  # (3 D, D) of the pointer: keys and values, of each glimpse, and logit keys
    pointer_w12: Tensor  # (2 hidden, D) of each glimpse, one below the other
    pointer_w3: Tensor  # (D, hidden) likewise

    def to(self, dtype: torch.dtype) -> Weights:
        """Constants of that type, transposed in memory: that halves the time of small products on ARM."""
        values = {f.name: getattr(self, f.name).detach().to(dtype) for f in fields(self)}
        return Weights(**{name: v.t().contiguous().t() for name, v in values.items()})

    def glimpses(self, depth: int) -> list[tuple[Tensor, Tensor]]:
        """The two matrices of each glimpse's MLP."""
        return list(zip(self.pointer_w12.chunk(depth), self.pointer_w3.chunk(depth), strict=True))


def fold(policy: Policy) -> Weights:
    """The policy's weights as a step uses them, differentiable."""
    pointer, dim = policy.pointer, policy.config.dim
    glimpses = cast(Iterable[Glimpse], pointer.glimpses)
    relevance, unified = _rgcr(policy.rgcr)
    of_unified, of_here = policy.rgcr.context.weight.chunk(2, 1)  # (D, D) each
    context = torch.cat([of_unified @ unified, of_here], 1)
    logit_keys = pointer.logit_key.weight / math.sqrt(dim)
    if projection(policy) is None:
        logit_keys = pointer.out.weight.T @ logit_keys
    weights = {
        "relevance": relevance,
        "context": context,
        "keys": torch.cat([*(g.keys.weight for g in glimpses), logit_keys]),
    }
    if policy.config.reld:
        same = torch.eye(dim, device=of_here.device, dtype=of_here.dtype)
        identity = torch.cat([pointer.identity.weight @ unified, same], 1)
        weights["context"] = torch.cat([context, identity])
        weights["pointer_w12"] = stack([g.mlp.w12.weight * g.norm.weight for g in glimpses])
        weights["pointer_w3"] = stack([g.mlp.w3.weight for g in glimpses])
    if (tsnr := policy.tsnr) is not None:
        queries, keys, values = ((tsnr.q, tsnr.norm_q), (tsnr.k, tsnr.norm_k), (tsnr.v, tsnr.norm_v))
        weights["qkv"] = torch.cat([linear.weight * norm.weight for linear, norm in (queries, keys, values)])
        weights["qkv_bias"] = torch.cat([tsnr.q.bias, tsnr.k.bias, tsnr.v.bias])
        weights["out"], weights["out_bias"] = tsnr.out.weight, tsnr.out.bias
        weights["w12"], weights["w3"] = tsnr.mlp.w12.weight * tsnr.norm.weight, tsnr.mlp.w3.weight
    return Weights(**{f.name: weights.get(f.name, of_here.new_empty(0)) for f in fields(Weights)})


def projection(policy: Policy) -> nn.Module | None:
    """What stands in place of the pointer's output projection, if that is no linear map to be folded."""
    return None if type(policy.pointer.out) is nn.Linear else policy.pointer.out


def stack(matrices: list[Tensor]) -> Tensor:
    """One below the other; a single one is not copied."""
    return torch.cat(matrices) if len(matrices) > 1 else matrices[0]


def _rgcr(rgcr: RGCR) -> tuple[Tensor, Tensor]:
    """The matrices from the current node to what weighs the attributes, (16, D), zero where nothing does or
    chance alone, and from the attributes, plain and weighed, to S, (D, 32)."""
    scores = rgcr.config.scores
    if scores == "attributes":
        original = rgcr.attributes.weight
        table = torch.zeros_like(original)
    else:
        embed: list[Tensor] = list(rgcr.embed.parameters())  # C^k = embed[k] c^k
        blocks = rgcr.original.weight.chunk(len(embed), 1)
        original = torch.cat([block @ e for e, block in zip(embed, blocks, strict=True)], 1)
        table = torch.cat(embed, 1)
    if rgcr.config.features == "wide":
        original = torch.cat([original, rgcr.more.weight], 1)
    table, original = (F.pad(x, (0, WIDTH - x.shape[1])) for x in (table, original))
    nothing = torch.zeros_like(table)
    gated = table / math.sqrt(rgcr.config.dim)
    relevance = {"gated": gated, "dot": table, "cosine": table}.get(scores, nothing)
    return relevance.T, torch.cat([original, nothing if scores == "embeddings" else table], 1)


def laid_out(scene: Scene) -> Scene:
    """The scene as kernels read it: rows padded, the bias from key to query."""
    return replace(scene, near=padded(scene.near), node_bias=padded(scene.node_bias.mT).mT)


def lengths(attributes: Tensor, here: Tensor, table: Tensor, group: Tensor) -> Tensor:
    """|H| |C^k|, by which cosines divide, (..., k): `group` (16, k) says which attributes make a C^k.

    Embeddings are linear: |C^k|^2 is a quadratic form of the attributes, so that no C^k is formed.
    """
    table = table.to(attributes.dtype)
    gram = (table @ table.T) * (group @ group.T > 0)
    of_context = ((attributes * (attributes @ gram)) @ group).clamp(min=0).sqrt()
    of_here: Tensor = torch.linalg.vector_norm(here, dim=-1, keepdim=True, dtype=attributes.dtype)
    return (of_context * of_here).clamp(min=1e-8)


class Folded:
    """The chain of one batch. Node embeddings stay in full precision; with half weights products are half."""

    def __init__(self, policy: Policy, weights: Weights, batch: ProblemBatch):
        self.weights, self.config, self.half = weights, policy.config, weights.context.dtype
        self.project, self.mixed = projection(policy), self.half != policy.dtype
        with torch.autocast(batch.device.type, self.half, enabled=self.mixed), fused():
            self.scene, nodes = policy.encode(batch)
        self.nodes = nodes.to(policy.dtype)  # (B, n, D)
        self.by_kernels = serve_decoding(nodes.to(self.half), self.config.heads)
        if self.by_kernels:
            self.scene = laid_out(self.scene)
        self.keys = F.linear(nodes.to(self.half), weights.keys)  # (B, n, 3 D or more)
        self.glimpses = weights.glimpses(self.config.decoder_depth)
        # Where each instance's rows begin in tensors without a dimension for instances.
        self.offset = torch.arange(batch.size, device=batch.device)[:, None] * batch.num_nodes

        self.batch = batch
        own = CHANGING + WIDE if self.config.features == "wide" else CHANGING
        columns, self.changing = (torch.tensor(c, device=batch.device) for c in (OF_NODE, own))
        self.attributes = F.pad(self.scene.features, (0, 1)).index_select(2, columns)  # (B, n, 16)
        group = torch.repeat_interleave(torch.tensor([*GROUPS, WIDTH - sum(GROUPS)], device=batch.device))
        self.same_group = (group[:, None] == group).to(self.attributes)  # (16, 16)
        self.flags = F.pad(self.scene.flags, (0, 1))[:, None, group]  # (B, 1, 16)
        if self.config.scores == "random":  # of absent constraints, too
            self.flags = torch.ones_like(self.flags)
        limit, reach = batch.limit[:, None], self.scene.reach.to(batch.limit)
        self.limited = reach.where(limit.isfinite(), 0.0)
        self.limit = (limit * reach).where(limit.isfinite(), NO_LIMIT)

    def keep(self, instances: Tensor) -> None:
        """Goes on with these instances alone."""
        self.batch, self.scene = self.batch[instances], picked(self.scene, instances)
        if self.by_kernels:
            self.scene = laid_out(self.scene)
        self.offset = self.offset[: len(instances)]
        for name in ("nodes", "keys", "attributes", "flags", "limited", "limit"):
            setattr(self, name, getattr(self, name)[instances])

    @fused()
    def step(self, state: State, mask: Tensor, refine: bool) -> Tensor:
        """Logits (B, S, n) of the next visit."""
        query, keys = self.point(state, mask, refine)
        match: Tensor = (query @ keys.mT.contiguous()).to(self.nodes.dtype)
        if self.config.logit_distance_bias:
            match = match + _rows(self.scene.near, state.current + self.offset)
        return torch.where(mask, match.tanh_().mul_(self.config.clip), -torch.inf)

    @fused()
    def choose(self, state: State, mask: Tensor, refine: bool) -> Tensor:
        """The likeliest next visit, (B, S)."""
        if not self.by_kernels or not self.config.logit_distance_bias:
            return self.step(state, mask, refine).argmax(-1)
        mask = padded(mask)
        query, keys = self.point(state, mask, refine)
        return likeliest(query, keys, self.scene.near, state.current, mask, self.config.clip)

    def point(self, state: State, mask: Tensor, refine: bool) -> tuple[Tensor, Tensor]:
        """The queries (B, S, D) of trajectories and the logit keys (B, n, D) of nodes."""
        w, config = self.weights, self.config
        both = F.linear(self.situate(state, state.current + self.offset), w.context)
        context, identity = both[..., : config.dim], both[..., config.dim :]
        keys = self.keys
        if refine and config.reembedding != "off":
            context, nodes = self.refine(context, state)
            keys = F.linear(nodes.to(self.half), w.keys)
            if config.chain:
                self.nodes, self.keys = nodes, keys
        *seen, logit_keys = keys.chunk(2 * config.decoder_depth + 1, -1)
        query = context
        for k, v, (w12, w3) in zip(seen[::2], seen[1::2], self.glimpses, strict=True):
            glimpse = attention(query, k, v, config.heads, mask)
            query = query + glimpse if config.glimpse_residual else glimpse
            if config.reld:
                query = identity = add_mlp(identity, query, w12, w3)
        if self.project is not None:
            with torch.autocast(query.device.type, self.half, enabled=self.mixed):
                query = self.project(query).to(self.half)
        return query, logit_keys

    def situate(self, state: State, at: Tensor) -> Tensor:
        """Attributes, attributes weighed by their constraint's relevance, current node: (B, S, 32 + D)."""
        load = torch.where(state.picked_up > 0, state.picked_up, state.delivered)
        remaining = torch.addcmul(self.limit, state.length, self.limited, value=-1)
        own = [1 - load, remaining, state.travelled * self.scene.stride, state.time * self.scene.pace]
        if self.config.features == "wide":
            own += more_attributes(self.batch, state)
        attributes = _rows(self.attributes, at)
        attributes.index_copy_(2, self.changing, torch.stack(own, -1).to(attributes.dtype))
        here = _rows(self.nodes, at).to(self.half)
        dot = (attributes * F.linear(here, self.weights.relevance)) @ self.same_group
        if self.config.scores == "cosine":
            dot = dot / lengths(attributes, here, self.weights.relevance, self.same_group)
        elif self.config.scores != "dot":
            dot = dot.sigmoid_() * self.flags
        weighed = attributes * dot
        return torch.cat([attributes.to(self.half), weighed.to(self.half), here], -1)

    def refine(self, context: Tensor, state: State) -> tuple[Tensor, Tensor]:
        """TSNR: contexts and nodes, embedded again; contexts only under self-attention."""
        w, half, count = self.weights, self.half, context.shape[1]
        cross = self.config.reembedding == "cross" and state.spare is None
        if self.by_kernels and cross:
            return context, self.refine_by_kernels(context, state.current)
        # Of nodes towards contexts, (B, n, S): nobody is at a node that is padding.
        near = self.scene.near if self.config.distance_bias == "log" else self.scene.node_bias.mT
        bias = _rows(near, state.current + self.offset).mT
        if state.spare is not None:
            bias = bias.masked_fill(state.spare[:, None], -torch.inf)
        everyone = torch.cat([context.to(self.nodes.dtype), self.nodes], 1)
        x = normalised(everyone).to(half)  # the norm's weight is in the projection that follows
        before, looking, seen, of_contexts = self.nodes, x[:, count:], x[:, :count], bias.mT
        if self.config.node_attention:
            seen, bias = x, torch.cat([bias, self.scene.node_bias], 2)
        if self.config.reembedding == "self":
            before, looking = everyone, x
            of_contexts = F.pad(of_contexts, (count, 0))[..., : seen.shape[1]]  # none among contexts
            hidden = bias[:, :1].isneginf()
            bias = torch.cat([of_contexts.masked_fill(hidden, -torch.inf), bias], 1)
        dim = x.shape[-1]
        q = F.linear(looking, w.qkv[:dim], w.qkv_bias[:dim])
        k, v = F.linear(seen, w.qkv[dim:], w.qkv_bias[dim:]).chunk(2, -1)
        if self.config.residual == "query":
            before = q.to(before.dtype)
        added = F.linear(attention(q, k, v, self.config.heads, bias), w.out, w.out_bias)
        after = add_mlp(before, added, w.w12, w.w3)
        if self.config.reembedding == "self":
            return after[:, :count].to(half), after[:, count:]
        return context, after

    def refine_by_kernels(self, context: Tensor, current: Tensor) -> Tensor:
        """The nodes embedded again by cross-attention, without what lies between as large tensors."""
        w, count = self.weights, context.shape[1]
        x = normalised_rows(context, self.nodes)
        q, k, v = F.linear(x, w.qkv, w.qkv_bias).chunk(3, -1)
        q = q[:, count:]
        if not self.config.node_attention:
            k, v = k[:, :count], v[:, :count]
        before = q.to(self.nodes.dtype) if self.config.residual == "query" else self.nodes
        seen = attention_by_rows(q, k, v, self.config.heads, self.scene.node_bias.mT, current)
        return add_mlp(before, F.linear(seen, w.out, w.out_bias), w.w12, w.w3)


def _rows(values: Tensor, at: Tensor) -> Tensor:
    """Rows `at` (B, S) of values (B, n, d), counted over all instances: (B, S, d)."""
    return torch.embedding(values.flatten(0, 1), at)
