"""RGCR at speed, forward and backward: from where a trajectory is to its context. In the paper's words it is
`neural/policy/context.py`; a step here makes ReLD's identity, too, which depends on the same numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from chainroute.neural.fast.fold import WIDTH, lengths
from chainroute.neural.fast.ops.products import product, weight_gradient
from chainroute.neural.fast.ops.situation import groups
from chainroute.neural.fast.update import Gradients, Update
from chainroute.neural.policy.columns import GROUPS


@dataclass(frozen=True)
class RelevanceTape:
    """What RGCR leaves of T steps."""

    current: Tensor  # (T, B, S) long: the node each trajectory is at
    attributes: Tensor  # (T, B, S, 16), zero beyond the last attribute
    relevance: Tensor  # (T, B, S, 4) of each constraint
    situation: Tensor  # (T, B, S, 32 + D): attributes, attributes weighed by relevance, current node
    context: Tensor  # (T, B, S, 2 D): contexts and ReLD's identities; (T, B, S, D) without ReLD

    @staticmethod
    def empty(update: Update, steps: int, trajectories: int) -> RelevanceTape:
        dim, device = update.config.dim, update.noise.device
        shape = (steps, len(update.scene.flags), trajectories)
        return RelevanceTape(
            current=torch.empty(shape, dtype=torch.long, device=device),
            attributes=torch.zeros((*shape, WIDTH), dtype=update.full, device=device),
            relevance=torch.empty((*shape, len(GROUPS)), dtype=update.full, device=device),
            situation=torch.empty((*shape, 2 * WIDTH + dim), dtype=update.half, device=device),
            context=torch.empty((*shape, (1 + update.config.reld) * dim), dtype=update.half, device=device),
        )


def relevance(update: Update, tape: RelevanceTape, j: int, nodes: Tensor) -> Tensor:
    """Contexts and identities of step j, (B, S, 2 D), from the nodes (B, n, D) it starts from."""
    update.ops.situate(
        nodes, tape.current[j], tape.attributes[j], update.scene.flags, update.noise[j],
        update.weights.relevance, _scores(update), tape.situation[j], tape.relevance[j],
    )  # fmt: skip
    return product(tape.situation[j], update.weights.context.T, tape.context[j])


def relevance_backward(
    update: Update, tape: RelevanceTape, j: int, nodes: Tensor,
    dcontext: Tensor, dnodes: Tensor, dproduct: Tensor,
) -> None:  # fmt: skip
    """Adds to `dnodes` (B, n, D) what the gradient of contexts and identities (B, S, 2 D) means for them.

    `dproduct` (B, S, 16) becomes the gradient of the products of nodes and relevance weights.
    """
    dsituation = product(dcontext, update.weights.context)
    update.ops.situate_backward(
        dnodes, dsituation, nodes, tape.current[j], tape.attributes[j], tape.relevance[j],
        update.weights.relevance, _scores(update), dproduct,
    )  # fmt: skip


def relevance_backward_at_once(
    update: Update, tape: RelevanceTape, version: Tensor, runs: Sequence[slice], nodes: Tensor,
    dcontext: Tensor, dnodes: Tensor, dproduct: Tensor,
) -> None:  # fmt: skip
    """The same of several steps, in runs of one after the other, whose contexts have all their gradients.

    They start from versions (V, B, n, D) of the nodes: step t from version[t], which is -1 for steps that are
    left out; dcontext is (T, B, S, 2 D) and dproduct (T, B, S, 16).
    """
    dsituation = torch.empty_like(tape.situation)
    for run in runs:
        product(dcontext[run], update.weights.context, dsituation[run])
    taped = (x.flatten(0, 1) for x in (tape.current, tape.attributes, tape.relevance))
    update.ops.situate_backward(
        dnodes.flatten(0, 1), dsituation.flatten(0, 1), nodes.flatten(0, 1), *taped,
        update.weights.relevance, _scores(update), dproduct.flatten(0, 1), version,
    )  # fmt: skip


def relevance_weights(update: Update, tape: RelevanceTape, dcontext: Tensor, dproduct: Tensor) -> Gradients:
    """The gradients of RGCR's weights from those of all steps, (T, B, S, 2 D) and (T, B, S, 16)."""
    table = weight_gradient(dproduct, tape.situation[..., 2 * WIDTH :])
    if update.config.scores == "cosine":
        table = table - _along_contexts(update, tape, dproduct)
    return {"context": weight_gradient(dcontext, tape.situation), "relevance": table}


def _scores(update: Update) -> str:
    """The scores as `situate` names them: those that no embedding decides are gated by zeros or noise."""
    return update.config.scores if update.config.scores in ("dot", "cosine") else "gated"


def _along_contexts(update: Update, tape: RelevanceTape, dproduct: Tensor) -> Tensor:
    """The part of dproduct^T H, the table's gradient if scores were dot products, that changes no cosine.

    That is the part of H along C^k, s |H| / |C^k| times C^k; the weighed attributes are those of s C^k.
    """
    table = update.weights.relevance
    weighed, here = tape.situation[..., WIDTH : 2 * WIDTH], tape.situation[..., 2 * WIDTH :]
    group = groups(table.device, tape.attributes.dtype)
    square = torch.linalg.vector_norm(here, dim=-1, keepdim=True, dtype=group.dtype).square()
    ratio = square / lengths(tape.attributes, here, table, group)
    along = weighed * (ratio @ group.T)
    products = weight_gradient(dproduct, along.to(dproduct.dtype)) * (group @ group.T)
    return products @ table.to(products.dtype)
