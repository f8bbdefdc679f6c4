"""The pointer at speed: from contexts and nodes to a choice, and the way back from its likelihood. In the
paper's words it is `neural/policy/pointer.py`.

The pointer of every step hangs off the nodes and contexts of that step alone, so that all steps are
differentiated at once, as one large batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

import torch
from torch import Tensor

from chainroute.neural.fast.fold import stack
from chainroute.neural.fast.ops.products import product, weight_gradient
from chainroute.neural.fast.ops.rows import power
from chainroute.neural.fast.update import Gradients, Update, projected


@dataclass(frozen=True)
class GlimpseTape:
    """What one glimpse leaves of T steps; without ReLD and residual the query is what was seen."""

    seen: Tensor  # (T, B, S, D) what attention gives
    lse: Tensor  # (T, B, heads, S)
    x: Tensor  # (T, B, S, D) the sum of identity, what was seen and any residual, normalised
    inverse: Tensor  # (T, B, S)
    query: Tensor  # (T, B, S, D) what the glimpse gives

    @staticmethod
    def empty(update: Update, steps: int, trajectories: int) -> GlimpseTape:
        config, near = update.config, update.scene.near
        rows = (steps, len(near), trajectories)

        def make(*shape: int, dtype: torch.dtype = update.half) -> Tensor:
            return torch.empty(shape, dtype=dtype, device=near.device)

        seen, lse = make(*rows, config.dim), make(*rows[:2], config.heads, rows[2], dtype=update.full)
        if not config.reld:
            none, query = make(0), make(*rows, config.dim) if config.glimpse_residual else seen
            return GlimpseTape(seen, lse, none, none, query)
        return GlimpseTape(
            seen=seen,
            lse=lse,
            x=make(*rows, config.dim),
            inverse=make(*rows, dtype=update.full),
            query=make(*rows, config.dim),
        )


@dataclass(frozen=True)
class PointerTape:
    """What the pointer leaves of T steps."""

    pointed: tuple[int, ...]  # which of V versions of the nodes each of T steps points at
    version: Tensor  # (T,) int32: the same
    legal: Tensor  # (T, B, S, n) bool, padded
    keys: Tensor  # (V, B, n, (2 depth + 1) D): keys and values of each glimpse, and logit keys
    glimpses: tuple[GlimpseTape, ...]
    projected: Tensor  # (T, B, S, D): the queries, where a block of its own projects them
    actions: Tensor  # (T, B, S) long

    @staticmethod
    def empty(update: Update, pointed: tuple[int, ...], versions: int, trajectories: int) -> PointerTape:
        config, (b, n, _), device = update.config, update.scene.near.shape, update.scene.near.device
        steps = len(pointed)
        width = (2 * config.decoder_depth + 1) * config.dim
        version = torch.empty(steps, dtype=torch.int32, device=device)
        for number, first, last in _runs(pointed):  # nothing may come from the host in a captured graph
            version[first:last].fill_(number)
        return PointerTape(
            pointed=pointed,
            version=version,
            legal=torch.zeros(steps, b, trajectories, power(n), dtype=torch.bool, device=device)[..., :n],
            keys=torch.empty(versions, b, n, width, dtype=update.half, device=device),
            glimpses=tuple(
                GlimpseTape.empty(update, steps, trajectories) for _ in range(config.decoder_depth)
            ),
            projected=torch.empty(
                (steps, b, trajectories, config.dim) if update.project is not None else 0,
                dtype=update.half,
                device=device,
            ),
            actions=torch.empty(steps, b, trajectories, dtype=torch.long, device=device),
        )


def point(update: Update, tape: PointerTape, j: int, context: Tensor) -> Tensor:
    """The query (B, S, D) of step j from its contexts and identities (B, S, 2 D), keys and mask."""
    ops, config = update.ops, update.config
    query, identity = context[..., : config.dim], context[..., config.dim :]
    keys = tape.keys[tape.pointed[j]].chunk(2 * config.decoder_depth + 1, -1)
    for g, (w12, w3) in enumerate(update.weights.glimpses(config.decoder_depth)):
        t = tape.glimpses[g]
        ops.attend(
            query, keys[2 * g], keys[2 * g + 1], config.heads, tape.legal[j], None, t.seen[j], t.lse[j]
        )
        asked, query = query, t.query[j]
        if config.reld:
            base = identity + asked if config.glimpse_residual else identity
            ops.mlp(base, t.seen[j], w12, w3, t.x[j], t.inverse[j], None, query)
            identity = query
        elif config.glimpse_residual:
            torch.add(asked, t.seen[j], out=query)
    if update.project is not None:
        query = tape.projected[j].copy_(projected(update, query))
    return query


def choose(update: Update, tape: PointerTape, j: int, query: Tensor, current: Tensor, draws: Tensor) -> None:
    """Samples the actions of step j: exponential noise (B, S, n) decides."""
    logit_keys = tape.keys[tape.pointed[j]][..., -update.config.dim :]
    place = (update.scene.near, current, tape.legal[j], draws, update.config.clip)
    update.ops.choose(query, logit_keys, *place, tape.actions[j])


def likelihood_of(update: Update, tape: PointerTape, current: Tensor) -> Tensor:
    """The log-likelihood of each trajectory, (B, S), whose gradient is thrown away."""
    query = (tape.glimpses[-1].query if update.project is None else tape.projected).flatten(0, 1)
    keys = tape.keys.flatten(0, 1)[..., -update.config.dim :]
    found = torch.empty(tape.actions.shape, dtype=update.full, device=query.device)
    dkeys = keys.new_empty(len(query), *keys.shape[1:])
    nothing, dquery = torch.zeros_like(found[0]), torch.empty_like(query)
    update.ops.choose_backward(
        query, keys, update.scene.near, current.flatten(0, 1), tape.legal.flatten(0, 1), update.config.clip,
        tape.actions.flatten(0, 1), nothing, dquery, dkeys, found.flatten(0, 1), tape.version,
    )  # fmt: skip
    return found.sum(0)


def pointer_backward(
    update: Update, tape: PointerTape, context: Tensor, current: Tensor, nodes: Tensor, weight: Tensor
) -> tuple[Tensor, Tensor, Tensor, Gradients]:
    """The way back through the pointers of all steps, from the log-likelihoods weighed by `weight` (B, S).

    Takes the contexts and identities (T, B, S, 2 D) that the pointer was given, where the trajectories were
    (T, B, S), and all versions of the nodes (V, B, n, D). Returns the log-likelihood of each trajectory
    (B, S) and the gradients of contexts and identities, of the versions, and of the pointer's weights.
    """
    ops, config, w = update.ops, update.config, update.weights
    dim, depth = config.dim, config.decoder_depth

    def all_steps(x: Tensor) -> Tensor:
        return x.flatten(0, 1)

    packed, legal, contexts = all_steps(tape.keys), all_steps(tape.legal), all_steps(context)
    dpacked = packed.new_empty(len(contexts), *packed.shape[1:])  # step by step
    keys, dkeys = packed.chunk(2 * depth + 1, -1), dpacked.chunk(2 * depth + 1, -1)
    query = all_steps(tape.glimpses[-1].query if update.project is None else tape.projected)
    dquery = torch.empty_like(query)
    likelihood = torch.empty(tape.actions.shape, dtype=update.full, device=query.device)
    ops.choose_backward(
        query, keys[-1], update.scene.near, all_steps(current), legal, config.clip, all_steps(tape.actions),
        weight, dquery, dkeys[-1], all_steps(likelihood), tape.version,
    )  # fmt: skip
    if update.project is not None:
        dquery = all_steps(_project_backward(update, tape, dquery.view_as(tape.projected)))
    dw12: list[Tensor] = []
    dw3: list[Tensor] = []
    for g, (w12, w3) in reversed(list(enumerate(w.glimpses(depth)))):
        t = tape.glimpses[g]
        dcontext = torch.empty_like(contexts)  # of what this glimpse looks with, and of its identity
        dseen = dquery
        if config.reld:
            x, hidden = all_steps(t.x), config.hidden
            gated, dhidden = (x.new_empty(*x.shape[:-1], width) for width in (hidden, 2 * hidden))
            dseen = dcontext[..., dim:]  # a sum of both: its gradient is the identity's, too
            ops.mlp_backward(
                dquery, None, x, all_steps(t.inverse), w12, w3, dquery, gated, dhidden, None, dseen
            )
            dw12.append(weight_gradient(dhidden, x))
            dw3.append(weight_gradient(dquery, gated))
        query = all_steps(tape.glimpses[g - 1].query) if g else contexts[..., :dim]
        ops.attend_backward(
            dseen, query, keys[2 * g], keys[2 * g + 1], config.heads, legal, None, all_steps(t.seen),
            all_steps(t.lse), dcontext[..., :dim], dkeys[2 * g], dkeys[2 * g + 1], None, tape.version,
        )  # fmt: skip
        if config.glimpse_residual:
            dcontext[..., :dim] += dseen
        if g:  # the glimpse before gives both what this one looks with and its identity
            dquery = dcontext[..., :dim] + dseen if config.reld else dcontext
    grads = {"pointer_w12": stack(dw12[::-1]), "pointer_w3": stack(dw3[::-1])} if config.reld else {}
    dversions = torch.empty_like(tape.keys)
    ops.pool(dpacked.view(len(tape.pointed), *tape.keys.shape[1:]), tape.version, dversions)
    grads["keys"] = weight_gradient(dversions, nodes)
    return likelihood.sum(0), dcontext.view_as(context), product(dversions, w.keys), grads


def _runs(pointed: tuple[int, ...]) -> Iterator[tuple[int, int, int]]:
    """Versions, each with the first of the steps in a row that point at it and the one after them."""
    first = 0
    for version, steps in groupby(pointed):
        last = first + len(list(steps))
        yield version, first, last
        first = last


def _project_backward(update: Update, tape: PointerTape, dprojected: Tensor) -> Tensor:
    """The gradient of the queries before the block that projects them, (T, B, S, D): autograd, step by step.

    Those of its weights are added to what they have.
    """
    dquery = torch.empty_like(dprojected)
    for query, given, taken in zip(tape.glimpses[-1].query, dprojected, dquery, strict=True):
        with torch.enable_grad():
            asked = query.detach().requires_grad_()
            made = projected(update, asked)
        torch.autograd.backward([made], [given.to(made.dtype)])
        assert asked.grad is not None
        taken.copy_(asked.grad)
    return dquery
