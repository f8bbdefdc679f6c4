"""The gradient of REINFORCE through the chain of contexts, organised for speed.

Autograd through a rollout would record thousands of small operations and undo them one by one. Here the
rollout writes everything it computes onto a tape, and the way back is split by what depends on what:

1. The pointer of every step hangs off the nodes and contexts of that step alone, so all steps are
   differentiated at once, as one large batch.
2. Only the chain is sequential: it is walked backwards by hand, re-embedding by re-embedding.
3. The gradient of each weight is then one product over all steps.

Weights are folded once per update, under autograd, which also differentiates the encoder. The result equals
plain autograd's; `tests/test_fast_chain.py` says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import ModuleType

import torch
import torch.nn.functional as F
from torch import Tensor

from chainroute.env import ProblemBatch, State, begin, mask, step
from chainroute.fast.fold import WIDTH, Weights, fold, lengths, stack
from chainroute.fast.layers import fused
from chainroute.fast.ops import plain
from chainroute.fast.ops.situation import groups
from chainroute.policy import Policy, PolicyConfig, Scene
from chainroute.policy.policy import attributes

Advantage = Callable[[Tensor, Tensor], Tensor]  # costs and finished, each (B, S), to advantages (B, S)


class Tape:
    """What T steps of B instances with S trajectories and n nodes leave, R of the steps refining."""

    def __init__(
        self,
        encoded: Tensor,
        trajectories: int,
        refine: Sequence[bool],
        config: PolicyConfig,
        half: torch.dtype,
    ):
        self.refine, self.chain = list(refine), config.chain
        (batch, n, dim), s, t, r = encoded.shape, trajectories, len(refine), sum(refine)
        heads, hidden, depth = config.heads, config.hidden, config.decoder_depth

        def full(*shape: int) -> Tensor:
            return torch.empty(shape, dtype=torch.promote_types(half, torch.float32), device=encoded.device)

        def small(*shape: int) -> Tensor:
            return torch.empty(shape, dtype=half, device=encoded.device)

        def whole(*shape: int) -> Tensor:
            return torch.empty(shape, dtype=torch.long, device=encoded.device)

        # Every step.
        self.current, self.actions = whole(t, batch, s), whole(t, batch, s)
        self.legal = torch.empty(t, batch, s, n, dtype=torch.bool, device=encoded.device)
        self.attributes = full(t, batch, s, WIDTH)
        self.situation = small(t, batch, s, 2 * WIDTH + dim)
        self.context = small(t, batch, s, (1 + config.reld) * dim)  # and ReLD's identity
        self.keys = small(t, batch, n, (2 * depth + 1) * dim)  # keys and values of glimpses, logit keys
        # Every glimpse of every step.
        self.seen, self.seen_lse = small(depth, t, batch, s, dim), full(depth, t, batch, heads, s)
        self.query = self.seen
        if config.reld:
            self.glimpse, self.x = small(depth, t, batch, s, dim), small(depth, t, batch, s, dim)
            self.inverse, self.hidden = full(depth, t, batch, s), small(depth, t, batch, s, 2 * hidden)
            self.gated, self.query = small(depth, t, batch, s, hidden), small(depth, t, batch, s, dim)
        # Every re-embedding: H_0 and each refined H after it, and what TSNR computes.
        self.nodes, self.small_nodes = full(r + 1, batch, n, dim), small(r + 1, batch, n, dim)
        keys = s + n if config.node_attention else s  # where those stand that nodes look at
        self.rows = torch.empty(r, batch, keys, dtype=torch.int32, device=encoded.device)
        self.rows[:, :, s:] = torch.arange(keys - s, dtype=torch.int32, device=encoded.device)
        self.all_x, self.all_inverse = small(r, batch, s + n, dim), full(r, batch, s + n)
        self.qkv = small(r, batch, s + n, 3 * dim)
        m = s + n if config.reembedding == "self" else n  # those that are embedded anew
        self.node_seen, self.node_lse = small(r, batch, m, dim), full(r, batch, heads, m)
        self.node_x, self.node_inverse = small(r, batch, m, dim), full(r, batch, m)
        self.node_hidden, self.node_gated = small(r, batch, m, 2 * hidden), small(r, batch, m, hidden)

    def steps(self) -> list[tuple[int, int, int]]:
        """Each step j with which of `nodes` it starts from and which it points at: another if it refines."""
        steps, last, done = [], 0, 0
        for j, refines in enumerate(self.refine):
            done += refines
            steps.append((j, last, done if refines else last))
            last = done if self.chain else 0
        return steps


@dataclass(frozen=True)
class Outcome:
    costs: Tensor  # (B, S)
    finished: Tensor  # (B, S) bool
    loss: Tensor  # ()
    actions: Tensor  # (T, B, S)


class Chain:
    """Computes gradients for one policy; `half` is the type of its products."""

    def __init__(self, policy: Policy, half: torch.dtype = torch.float32, ops: ModuleType = plain):
        self.policy, self.half, self.ops = policy, half, ops
        self.config, self.self_attention = policy.config, policy.config.reembedding == "self"
        self.scores = self.config.scores if self.config.scores in ("dot", "cosine") else "gated"
        self.arrive = torch.compile(arrive, dynamic=False) if ops is not plain else arrive

    def gradients(
        self,
        batch: ProblemBatch,
        refine: Sequence[bool],
        gumbel: Tensor,
        noise: Tensor,
        advantage: Advantage,
        actions: Tensor | None = None,
    ) -> Outcome:
        """Adds the gradient of REINFORCE on `batch` to the policy's `.grad`s.

        One trajectory for each first customer takes T = len(refine) steps. gumbel (T, B, S, n) decides the
        samples, or `actions` (T, B, S) force them; noise (T, B, S, 4) is RGCR's.
        """
        half = torch.autocast(batch.device.type, torch.bfloat16, enabled=self.half == torch.bfloat16)
        with half, fused():
            scene, encoded = self.policy.encode(batch)
        if not self.config.logit_distance_bias:
            scene = replace(scene, near=torch.zeros_like(scene.near))
        if self.config.scores == "random":  # sigmoids of noise, of absent constraints, too
            scene = replace(scene, flags=torch.ones_like(scene.flags))
            noise = torch.special.log_ndtr(noise) - torch.special.log_ndtr(-noise)
        else:
            noise = noise * (self.config.score_noise / math.sqrt(self.config.dim))
        if self.config.reembedding == "off":
            refine = [False] * len(refine)
        folded = fold(self.policy)
        weights = folded.to(self.half)
        with torch.no_grad():
            tape = Tape(encoded, batch.num_customers, refine, self.config, self.half)
            state = self.rollout(tape, weights, batch, scene, encoded, gumbel, noise, actions)
            finished = state.finished(batch)
            advantages = advantage(state.travelled, finished)
            likelihood, dcontext, direct, grads = self.point(
                tape, weights, scene, -advantages / advantages.numel()
            )
            grad = self.walk_back(tape, weights, scene, noise, dcontext, direct, grads)
        grads = {k: g for k, g in grads.items() if getattr(folded, k).requires_grad}
        torch.autograd.backward(
            [encoded, *(getattr(folded, k) for k in grads)], [grad.to(encoded.dtype), *grads.values()]
        )
        return Outcome(state.travelled, finished, -(advantages * likelihood).mean(), tape.actions)

    def rollout(
        self, tape: Tape, w: Weights, batch: ProblemBatch, scene: Scene, encoded: Tensor, gumbel: Tensor,
        noise: Tensor, forced: Tensor | None,
    ) -> State:  # fmt: skip
        ops, dim = self.ops, self.config.dim
        state, pointed = begin(batch), -1
        legal, described = mask(batch, state), describe(batch, scene, state)
        tape.nodes[0] = encoded
        tape.small_nodes[0] = encoded
        for j, start, end in tape.steps():
            tape.current[j], tape.legal[j], tape.attributes[j] = state.current, legal, described
            here = (tape.nodes[start], tape.current[j], tape.attributes[j], scene.flags, noise[j])
            ops.situate(*here, w.relevance, self.scores, tape.situation[j])
            context = _product(tape.situation[j], w.context.T, tape.context[j])[..., :dim]
            if end != start:
                self.reembed(tape, start, end, w, scene, context, state.current)
            if end != pointed:
                _product(tape.small_nodes[end], w.keys.T, tape.keys[j])
            else:
                tape.keys[j] = tape.keys[j - 1]
            pointed = end
            self.glimpse(tape, j, w)
            if forced is None:
                place = (scene.near, tape.current[j], tape.legal[j], gumbel[j], self.config.clip)
                ops.choose(tape.query[-1, j], tape.keys[j][..., -dim:], *place, tape.actions[j])
            else:
                tape.actions[j] = forced[j]
            state, legal, described = self.arrive(batch, scene, state, tape.actions[j])
        return state

    def reembed(
        self, tape: Tape, start: int, end: int, w: Weights, scene: Scene, context: Tensor, current: Tensor
    ) -> None:
        """TSNR: from one of the tape's nodes to another; self-attention writes new contexts over the old."""
        ops, s, r = self.ops, context.shape[1], end - 1
        tape.rows[r, :, :s] = current
        ops.normalise(context, tape.nodes[start], tape.all_x[r], tape.all_inverse[r])
        torch.addmm(w.qkv_bias, _flat(tape.all_x[r]), w.qkv.T, out=_flat(tape.qkv[r]))
        ops.attend(*self.looks(tape, r, scene, current), tape.node_seen[r], tape.node_lse[r])
        delta = torch.addmm(w.out_bias, _flat(tape.node_seen[r]), w.out.T).view_as(tape.node_seen[r])
        before = tape.nodes[start]
        if self.self_attention:
            before = torch.cat([context, before], 1)
        between = torch.empty_like(before)
        ops.add_normalise(before, delta, between, tape.node_x[r], tape.node_inverse[r])
        ops.gate(_product(tape.node_x[r], w.w12.T, tape.node_hidden[r]), tape.node_gated[r])
        delta = _product(tape.node_gated[r], w.w3.T)
        if self.self_attention:
            after = between + delta
            context.copy_(after[:, :s])
            tape.nodes[end] = tape.small_nodes[end] = after[:, s:]
        else:
            ops.add(between, delta, tape.nodes[end], tape.small_nodes[end])

    def looks(
        self, tape: Tape, r: int, scene: Scene, current: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, int, Tensor, Tensor | None]:
        """What a re-embedding attends with and to, and the bias, as `attend` takes them."""
        q, k, v = tape.qkv[r].chunk(3, -1)
        keys, near = tape.rows.shape[2], scene.node_bias.mT
        k, v = k[:, :keys], v[:, :keys]
        if not self.self_attention:
            return q[:, current.shape[1] :], k, v, self.config.heads, near, tape.rows[r]
        there = near.gather(1, current[..., None].expand(-1, -1, near.shape[-1]))  # (B, S, n)
        of_contexts = F.pad(there, (there.shape[1], 0))  # none among themselves
        of_nodes = torch.cat([there.mT, scene.node_bias], 2)
        bias = torch.cat([of_contexts, of_nodes], 1)[..., :keys].contiguous()
        return q, k, v, self.config.heads, bias, None

    def glimpse(self, tape: Tape, j: int, w: Weights) -> None:
        """The glimpses of step j: from its context to its query."""
        ops, depth, context = self.ops, self.config.decoder_depth, tape.context[j]
        query, identity = context[..., : self.config.dim], context[..., self.config.dim :]
        keys = tape.keys[j].chunk(2 * depth + 1, -1)
        for g, (w12, w3) in enumerate(w.glimpses(depth)):
            looked = (query, keys[2 * g], keys[2 * g + 1], self.config.heads, tape.legal[j], None)
            ops.attend(*looked, tape.seen[g, j], tape.seen_lse[g, j])
            query = tape.query[g, j]
            if self.config.reld:
                glimpse, x, gated = tape.glimpse[g, j], tape.x[g, j], tape.gated[g, j]
                ops.add_normalise(identity, tape.seen[g, j], glimpse, x, tape.inverse[g, j])
                ops.gate(_product(x, w12.T, tape.hidden[g, j]), gated)
                torch.addmm(_flat(glimpse), _flat(gated), w3.T, out=_flat(query))
                identity = query

    def point(
        self, tape: Tape, w: Weights, scene: Scene, weight: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, dict[str, Tensor]]:
        """The way back through the pointers of all steps, weighed by `weight` (B, S).

        Returns the log-likelihood of each trajectory (B, S) and the gradients of all contexts and identities
        (T, B, S, 2 D or without ReLD D), of the nodes that each step pointed at (T, B, n, D), and of the
        pointer's weights.
        """
        ops, dim, depth = self.ops, self.config.dim, self.config.decoder_depth

        def all_steps(x: Tensor) -> Tensor:
            return x.flatten(0, 1)

        query, packed = all_steps(tape.query[-1]), all_steps(tape.keys)
        dquery, dpacked = torch.empty_like(query), torch.empty_like(packed)
        keys, dkeys = packed.chunk(2 * depth + 1, -1), dpacked.chunk(2 * depth + 1, -1)
        likelihood = tape.seen_lse.new_empty(tape.actions.shape)
        where = (
            scene.near,
            all_steps(tape.current),
            all_steps(tape.legal),
            self.config.clip,
            all_steps(tape.actions),
        )
        ops.choose_backward(query, keys[-1], *where, weight, dquery, dkeys[-1], all_steps(likelihood))
        dw12: list[Tensor] = []
        dw3: list[Tensor] = []
        for g, (w12, w3) in reversed(list(enumerate(w.glimpses(depth)))):
            dcontext, dseen = torch.empty_like(all_steps(tape.context)), dquery
            if self.config.reld:
                hidden, gated, x = (all_steps(y[g]) for y in (tape.hidden, tape.gated, tape.x))
                dhidden = torch.empty_like(hidden)
                ops.gate_backward(_product(dquery, w3), hidden, dhidden)
                dx, dseen = _product(dhidden, w12), dcontext[..., dim:]  # of the identity, too
                ops.add_normalise_backward(dquery, dx, x, all_steps(tape.inverse[g]), None, dseen)
                dw12.append(_weight_gradient(dhidden, x))
                dw3.append(_weight_gradient(dquery, gated))
            query = all_steps(tape.query[g - 1]) if g else all_steps(tape.context)[..., :dim]
            looked = (query, keys[2 * g], keys[2 * g + 1], self.config.heads, all_steps(tape.legal), None)
            ops.attend_backward(
                dseen, *looked, all_steps(tape.seen[g]), all_steps(tape.seen_lse[g]),
                dcontext[..., :dim], dkeys[2 * g], dkeys[2 * g + 1],
            )  # fmt: skip
            if g:  # the glimpse before gives what this one looks with and its identity
                dquery = dcontext[..., :dim] + dseen if self.config.reld else dcontext
        grads = {"pointer_w12": stack(dw12[::-1]), "pointer_w3": stack(dw3[::-1])} if self.config.reld else {}
        pointed = torch.cat([tape.small_nodes[end][None] for _, _, end in tape.steps()])
        grads["keys"] = _weight_gradient(dpacked, pointed)
        direct = _product(dpacked, w.keys).view(*tape.keys.shape[:-1], dim)
        return likelihood.sum(0), dcontext.view_as(tape.context), direct, grads

    def walk_back(
        self,
        tape: Tape,
        w: Weights,
        scene: Scene,
        noise: Tensor,
        dcontext: Tensor,
        direct: Tensor,
        grads: dict[str, Tensor],
    ) -> Tensor:
        """The way back along the chain: the gradient of H_0. RGCR's and TSNR's weights' join `grads`."""
        ops, dim, s = self.ops, self.config.dim, dcontext.shape[2]
        grad = torch.zeros_like(tape.nodes[0])
        # Gradients of what TSNR leaves, of its MLP's hidden layer, of what it saw, of its q, k, v.
        dnodes, dseen = torch.empty_like(tape.node_seen), torch.empty_like(tape.node_seen)
        dhidden, dqkv = torch.empty_like(tape.node_hidden), torch.zeros_like(tape.qkv)
        dproduct = torch.empty(tape.attributes.shape, dtype=self.half, device=grad.device)
        for j, start, end in reversed(tape.steps()):
            if end != start:
                r = end - 1
                onward = grad if self.config.chain else torch.zeros_like(grad)  # from the steps after it
                dafter, dpointed = onward, direct[j]
                if self.self_attention:  # new contexts are the pointer's alone
                    dafter = F.pad(onward, (0, 0, s, 0))
                    dpointed = torch.cat([dcontext[j][..., :dim], dpointed], 1)
                ops.add(dafter, dpointed, dafter, dnodes[r])
                ops.gate_backward(_product(dnodes[r], w.w3), tape.node_hidden[r], dhidden[r])
                dx, middle = _product(dhidden[r], w.w12), torch.empty_like(dafter)
                ops.add_normalise_backward(dafter, dx, tape.node_x[r], tape.node_inverse[r], middle, dseen[r])
                dq, dk, dv = dqkv[r].chunk(3, -1)
                dq = dq if self.self_attention else dq[:, s:]
                dk, dv = (x[:, : tape.rows.shape[2]] for x in (dk, dv))
                ops.attend_backward(
                    _product(dseen[r], w.out), *self.looks(tape, r, scene, tape.current[j]),
                    tape.node_seen[r], tape.node_lse[r], dq, dk, dv,
                )  # fmt: skip
                dx = _product(dqkv[r], w.qkv)
                if self.self_attention:
                    dcontext[j][..., :dim] = middle[:, :s]
                    middle = middle[:, s:].contiguous()
                ops.normalise_backward(
                    middle, dx, tape.all_x[r], tape.all_inverse[r], onward, dcontext[j][..., :dim]
                )
                if not self.config.chain:
                    grad += onward
            else:
                grad += direct[j]
            dsituation = _product(dcontext[j], w.context)
            here = (tape.nodes[start], tape.current[j], tape.attributes[j], scene.flags, noise[j])
            ops.situate_backward(grad, dsituation, *here, w.relevance, self.scores, dproduct[j])
        grads["context"] = _weight_gradient(dcontext, tape.situation)
        grads["relevance"] = _weight_gradient(dproduct, tape.situation[..., 2 * WIDTH :])
        if self.scores == "cosine":
            grads["relevance"] -= _along_contexts(tape, dproduct, w.relevance)
        if any(tape.refine):
            grads["w3"] = _weight_gradient(dnodes, tape.node_gated)
            grads["w12"] = _weight_gradient(dhidden, tape.node_x)
            grads["out"] = _weight_gradient(dseen, tape.node_seen)
            grads["out_bias"] = dseen.flatten(0, -2).sum(0, dtype=grad.dtype)
            grads["qkv"] = _weight_gradient(dqkv, tape.all_x)
            grads["qkv_bias"] = dqkv.flatten(0, -2).sum(0, dtype=grad.dtype)
        return grad


def describe(batch: ProblemBatch, scene: Scene, state: State) -> Tensor:
    """The attributes of RGCR, padded to 16."""
    numbers = attributes(batch, scene, state)
    return F.pad(numbers, (0, WIDTH - numbers.shape[-1]))


def arrive(batch: ProblemBatch, scene: Scene, state: State, action: Tensor) -> tuple[State, Tensor, Tensor]:
    """The state after an action, with its mask and attributes."""
    state = step(batch, state, action)
    return state, mask(batch, state), describe(batch, scene, state)


def _along_contexts(tape: Tape, dproduct: Tensor, table: Tensor) -> Tensor:
    """Of dproduct^T H, the gradient of the table if scores were dot products, what changes no cosine.

    That is the part of H along C^k, s |H| / |C^k| times C^k; the weighed attributes are those of s C^k.
    """
    weighed, here = tape.situation[..., WIDTH : 2 * WIDTH], tape.situation[..., 2 * WIDTH :]
    group = groups(table.device, tape.attributes.dtype)
    square = torch.linalg.vector_norm(here, dim=-1, keepdim=True, dtype=group.dtype).square()
    ratio = square / lengths(tape.attributes, here, table, group)
    along = weighed * (ratio @ group.T)
    products = _weight_gradient(dproduct, along.to(dproduct.dtype)) * (group @ group.T)
    return products @ table.to(products.dtype)


def _flat(x: Tensor) -> Tensor:
    return x.flatten(0, -2)


def _product(x: Tensor, weight: Tensor, out: Tensor | None = None) -> Tensor:
    if out is None:
        return (_flat(x) @ weight).view(*x.shape[:-1], weight.shape[-1])
    torch.mm(_flat(x), weight, out=_flat(out))
    return out


def _weight_gradient(dy: Tensor, x: Tensor) -> Tensor:
    """dy^T x over all rows, accumulated in single precision."""
    if x.is_cuda and x.dtype != torch.float32:
        return torch.mm(_flat(dy).T, _flat(x), out_dtype=torch.float32)
    return _flat(dy).T @ _flat(x)
