"""The gradient of REINFORCE through the chain of contexts, organised for speed.

Autograd through a rollout would record thousands of small operations and undo them one by one. Here the
rollout writes everything it computes onto a tape, and the way back is split by what depends on what:

1. The pointers of all steps are differentiated at once: `pointer_backward`.
2. Only the chain is sequential: `chain_backward` goes from the last re-embedding to the first.
3. The gradient of each weight is then one product over all steps.

Weights are folded once per update, under autograd, which also differentiates the encoder. The result equals
plain autograd's; `tests/neural/test_fast_chain.py` says so.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import ModuleType

import torch
import torch.nn.functional as F
from torch import Tensor

from chainroute.neural.env import ProblemBatch, State, begin, mask, picked, step
from chainroute.neural.fast.fold import fold, laid_out, projection
from chainroute.neural.fast.layers import fused
from chainroute.neural.fast.ops import plain
from chainroute.neural.fast.ops.products import product
from chainroute.neural.fast.pointer import PointerTape, choose, likelihood_of, point, pointer_backward
from chainroute.neural.fast.reembedding import (
    ReembeddingGradients,
    ReembeddingTape,
    reembed,
    reembed_backward,
    reembedding_weights,
)
from chainroute.neural.fast.relevance import (
    RelevanceTape,
    relevance,
    relevance_backward,
    relevance_backward_at_once,
    relevance_weights,
)
from chainroute.neural.fast.update import Gradients, Update
from chainroute.neural.policy import Policy, Scene
from chainroute.neural.policy.columns import NAMES, OF_TRAJECTORY
from chainroute.neural.policy.policy import attributes

MAX_RECOMPILES = 64  # of `arrive`, for each size and number of instances; beyond that it would run uncompiled
# Costs and finished, each (B, S), and log-likelihoods (B, S) where they are asked for, to advantages (B, S).
Advantage = Callable[..., Tensor]


@dataclass(frozen=True)
class Tape:
    """What T steps leave, of which R re-embed."""

    steps: list[tuple[int, int]]  # which of the nodes each step starts from and points at: `_steps`
    nodes: Tensor  # (R + 1, B, n, D): H_0 and what each re-embedding leaves
    nodes_half: Tensor  # the same in the type of products
    relevance: RelevanceTape
    reembedding: ReembeddingTape
    pointer: PointerTape

    @staticmethod
    def empty(update: Update, encoded: Tensor, trajectories: int, refine: Sequence[bool]) -> Tape:
        steps, count = _steps(refine, update.config.chain), sum(refine)
        shape, device = (count + 1, *encoded.shape), encoded.device
        pointed = tuple(end for _, end in steps)
        tape = Tape(
            steps=steps,
            nodes=torch.empty(shape, dtype=update.full, device=device),
            nodes_half=torch.empty(shape, dtype=update.half, device=device),
            relevance=RelevanceTape.empty(update, len(steps), trajectories),
            reembedding=ReembeddingTape.empty(update, count, trajectories),
            pointer=PointerTape.empty(update, pointed, count + 1, trajectories),
        )
        tape.nodes[0] = encoded
        tape.nodes_half[0] = encoded
        return tape


def _steps(refine: Sequence[bool], chain: bool) -> list[tuple[int, int]]:
    """For each step, the number of the nodes it starts from, and of those it points at: new if it re-embeds.

    In a chain a step starts from what the last re-embedding left, otherwise from the encoder's output.
    """
    steps, start, done = [], 0, 0
    for refines in refine:
        done += refines
        steps.append((start, done if refines else start))
        start = done if chain else 0
    return steps


@dataclass(frozen=True)
class Stretch:
    """Steps that the same instances take: all of them at first, later those that are not done."""

    who: Tensor | slice  # which of all instances
    update: Update
    batch: ProblemBatch
    tape: Tape
    state: State  # that the steps lead to


@dataclass(frozen=True)
class ChainOutput:
    costs: Tensor  # (B, S)
    finished: Tensor  # (B, S) bool
    loss: Tensor  # ()
    actions: Tensor  # (T, B, S)


class Chain:
    """Computes gradients for one policy; `half` is the type of its products."""

    def __init__(self, policy: Policy, half: torch.dtype = torch.float32, ops: ModuleType = plain):
        self.policy, self.config, self.half, self.ops = policy, policy.config, half, ops
        self.arrive = arrive
        if ops is not plain:
            self.arrive = torch.compile(arrive, dynamic=False)
            torch._dynamo.config.recompile_limit = max(MAX_RECOMPILES, torch._dynamo.config.recompile_limit)

    def gradients(
        self,
        batch: ProblemBatch,
        refine: Sequence[bool],
        draws: Tensor,
        noise: Tensor,
        advantage: Advantage,
        actions: Tensor | None = None,
        halvings: Sequence[int] = (),
        penalty: Callable[[Tensor], Tensor] | None = None,
        sees_likelihoods: bool = False,
    ) -> ChainOutput:
        """Adds the gradient of REINFORCE on `batch` to the policy's `.grad`s.

        One trajectory from each of the first S customers takes T = len(refine) steps. Exponential draws
        (T, B, S, n) decide the samples where no `actions` (T, B, S) are given, or negative ones; noise
        (T, B, S, 4) is RGCR's.
        After each of the steps in `halvings`, the half of the instances goes on that has most trajectories
        under way. The loss may have a penalty on the nodes (B, n, D) as each instance's last re-embedding
        leaves them. Advantages that see log-likelihoods take these from a pass of their own.
        """
        half = torch.autocast(batch.device.type, torch.bfloat16, enabled=self.half == torch.bfloat16)
        with half, fused():
            scene, encoded = self.policy.encode(batch)
        folded = fold(self.policy)
        if self.config.reembedding == "off":
            refine = [False] * len(refine)
        with torch.no_grad():
            weights, seen = folded.to(self.half), self._seen(scene, noise)
            update = Update(self.config, self.ops, weights, *seen, projection(self.policy))
            stretches = self.rollout(update, batch, encoded, refine, draws, actions, halvings)
            costs, finished, taken = outcome(stretches)
            seen_too = (likelihoods(stretches),) if sees_likelihoods else ()
            advantages = advantage(costs, finished, *seen_too)
            added, dnodes = _penalised(stretches, penalty)
            found, dencoded, grads = backward(stretches, -advantages / advantages.numel(), dnodes)
        grads = {name: grad for name, grad in grads.items() if getattr(folded, name).requires_grad}
        _add_gradients(
            self.policy,
            [encoded, *(getattr(folded, name) for name in grads)],
            [dencoded.to(encoded.dtype), *grads.values()],
        )
        return ChainOutput(costs, finished, added - (advantages * found).mean(), taken)

    def _seen(self, scene: Scene, noise: Tensor) -> tuple[Scene, Tensor]:
        """The scene and RGCR's noise as the blocks take them; kernels read the bias from key to query, once
        for every head: as float16 where products are half, which is more precise for it than bfloat16."""
        near = scene.near if self.config.logit_distance_bias else torch.zeros_like(scene.near)
        node_bias = scene.node_bias.half() if self.half.itemsize == 2 else scene.node_bias
        scene = laid_out(replace(scene, near=near, node_bias=node_bias))
        if self.config.scores != "random":
            return scene, noise * (self.config.score_noise / math.sqrt(self.config.dim))
        # Sigmoids of noise, of absent constraints, too.
        scene = replace(scene, flags=torch.ones_like(scene.flags))
        return scene, torch.special.log_ndtr(noise) - torch.special.log_ndtr(-noise)

    def rollout(
        self, update: Update, batch: ProblemBatch, nodes: Tensor, refine: Sequence[bool], draws: Tensor,
        forced: Tensor | None, halvings: Sequence[int],
    ) -> list[Stretch]:  # fmt: skip
        """All steps, in stretches of which each has half as many instances as the one before."""
        who: Tensor | slice = slice(None)
        state, noise = begin(batch, draws.shape[2]), update.noise
        stretches: list[Stretch] = []
        for first, last in itertools.pairwise((0, *halvings, len(refine))):
            if first:
                rows = (~state.finished(batch)).sum(1).topk((batch.size + 1) // 2).indices
                who = rows if isinstance(who, slice) else who[rows]
                update = replace(update, scene=laid_out(picked(update.scene, rows)))
                nodes = stretches[-1].tape.nodes[-1 if self.config.chain else 0][rows]
                batch, state = batch[rows], picked(state, rows)
            update = replace(update, noise=noise[first:last][:, who])
            tape = Tape.empty(update, nodes, draws.shape[2], refine[first:last])
            actions = None if forced is None else forced[first:last][:, who]
            state = self.walk(update, tape, batch, state, draws[first:last][:, who], actions)
            stretches.append(Stretch(who, update, batch, tape, state))
        return stretches

    def walk(
        self, update: Update, tape: Tape, batch: ProblemBatch, state: State, draws: Tensor,
        forced: Tensor | None,
    ) -> State:  # fmt: skip
        """The state that the steps of a tape lead to; everything on the way is on the tape."""
        dim, at, pointer = self.config.dim, tape.relevance, tape.pointer
        known: set[int] = set()  # versions whose keys there are
        count = len(NAMES) + (len(OF_TRAJECTORY) if self.config.features == "wide" else 0)
        described = at.attributes[..., :count]  # beyond them are zeros
        places = [*zip(at.current, pointer.legal, described, strict=True)]
        _ = batch.visits  # kept from now on: were it new to the compiled `arrive`, that would compile twice
        note(batch, update.scene, state, *places[0])
        for j, (start, end) in enumerate(tape.steps):
            context = relevance(update, at, j, tape.nodes[start])
            if end != start:
                reembed(
                    update, tape.reembedding, end - 1, at.current[j], tape.nodes[start], context[..., :dim],
                    tape.nodes[end], tape.nodes_half[end],
                )  # fmt: skip
            if end not in known:
                product(tape.nodes_half[end], update.weights.keys.T, pointer.keys[end])
                known.add(end)
            query = point(update, pointer, j, context)
            choose(update, pointer, j, query, at.current[j], draws[j])
            if forced is not None:
                pointer.actions[j] = torch.where(forced[j] < 0, pointer.actions[j], forced[j])
            if j + 1 < len(places):
                current, legal, numbers = places[j + 1]
                # With fleets the compiler sums over the nodes that a kernel would have to look at again.
                within = legal if batch.fleet is not None else None
                state = self.arrive(batch, update.scene, state, pointer.actions[j], current, within, numbers)
                if within is None:
                    update.ops.mask(batch, state, legal)
        return step(batch, state, pointer.actions[-1])


def outcome(stretches: Sequence[Stretch]) -> tuple[Tensor, Tensor, Tensor]:
    """Costs (B, S), who finished (B, S), and actions (T, B, S), 0 for instances that do not go on."""
    whole = stretches[0]
    costs, finished = whole.state.cost(whole.batch), whole.state.finished(whole.batch)
    actions = [whole.tape.pointer.actions]
    for part in stretches[1:]:
        assert isinstance(part.who, Tensor)
        costs = costs.index_copy(0, part.who, part.state.cost(part.batch))
        finished = finished.index_copy(0, part.who, part.state.finished(part.batch))
        taken = part.tape.pointer.actions
        actions.append(taken.new_zeros(len(taken), *costs.shape).index_copy(1, part.who, taken))
    return costs, finished, actions[0] if len(actions) == 1 else torch.cat(actions)


def _penalised(
    stretches: Sequence[Stretch], penalty: Callable[[Tensor], Tensor] | None
) -> tuple[Tensor, Tensor]:
    """The penalty on the last nodes of each instance, and its gradient (B, n, D)."""
    nodes = stretches[0].tape.nodes[-1]
    if penalty is None:
        return nodes.new_zeros(()), torch.zeros_like(nodes)
    for part in stretches[1:]:
        assert isinstance(part.who, Tensor)
        nodes = nodes.index_copy(0, part.who, part.tape.nodes[-1])
    with torch.enable_grad():
        nodes = nodes.detach().requires_grad_()
        value = penalty(nodes)
    return value.detach(), torch.autograd.grad(value, nodes)[0]


def likelihoods(stretches: Sequence[Stretch]) -> Tensor:
    """The log-likelihood of each trajectory, (B, S)."""
    total = torch.zeros_like(stretches[0].state.travelled, dtype=stretches[0].update.full)
    for part in stretches:
        total[part.who] += likelihood_of(part.update, part.tape.pointer, part.tape.relevance.current)
    return total


def backward(
    stretches: Sequence[Stretch], weight: Tensor, dnodes: Tensor
) -> tuple[Tensor, Tensor, Gradients]:
    """The way back from the log-likelihoods weighed by `weight` (B, S), and from the last nodes' gradient.

    Returns the log-likelihood of each trajectory (B, S), and the gradients of H_0, (B, n, D), and of weights.
    """
    likelihood = torch.zeros_like(weight)
    sums: Gradients = {}
    for part in reversed(stretches):
        update, tape, who = part.update, part.tape, part.who
        likelihoods, dcontext, dpointed, grads = pointer_backward(
            update, tape.pointer, tape.relevance.context, tape.relevance.current, tape.nodes_half, weight[who]
        )
        likelihood[who] += likelihoods
        dnodes[who], more = chain_backward(update, tape, dcontext, dpointed, dnodes[who])
        for name, grad in (grads | more).items():
            sums[name] = sums[name] + grad if name in sums else grad
    return likelihood, dnodes, sums


def _add_gradients(policy: Policy, outputs: Sequence[Tensor], grads: Sequence[Tensor]) -> None:
    """Adds the gradients of the policy's parameters, which autograd finds from those of outputs: all at once,
    where autograd itself would add them one by one."""
    parameters = list(policy.parameters())
    found = torch.autograd.grad(outputs, parameters, grads, allow_unused=True)
    sums, added = [], []
    for parameter, grad in zip(parameters, found, strict=True):
        if grad is not None and parameter.grad is not None:
            sums.append(parameter.grad)
            added.append(grad)
        elif grad is not None:
            parameter.grad = grad
    if sums:
        torch._foreach_add_(sums, added)


def chain_backward(
    update: Update, tape: Tape, dcontext: Tensor, dpointed: Tensor, dnodes: Tensor
) -> tuple[Tensor, Gradients]:
    """The way back along the chain: the gradients of the nodes before it and of RGCR's and TSNR's weights.

    Takes the pointer's gradients of contexts and identities (T, B, S, 2 D) and of all versions of the nodes
    (R + 1, B, n, D), and that of the nodes from which later steps start, (B, n, D).
    """
    dim = update.config.dim
    reembedded = ReembeddingGradients.empty(tape.reembedding, update.config.hidden)
    dproduct = torch.empty(tape.relevance.attributes.shape, dtype=update.half, device=dnodes.device)
    version, runs = _kept(update, tape)
    if runs:  # the gradients of these steps' contexts come from the pointer alone
        relevance_backward_at_once(
            update, tape.relevance, version, runs, tape.nodes, dcontext, dpointed, dproduct
        )
    for j, (start, end) in reversed(list(enumerate(tape.steps))):
        if end == start:
            continue
        # What it left, later steps started from: in a chain.
        dlater = dnodes if update.config.chain else torch.zeros_like(dnodes)
        dbefore = reembed_backward(
            update, tape.reembedding, reembedded, end - 1, tape.relevance.current[j], dlater,
            dpointed[end], dcontext[j][..., :dim],
        )  # fmt: skip
        dnodes = dbefore if update.config.chain else dnodes + dbefore
        relevance_backward(update, tape.relevance, j, tape.nodes[start], dcontext[j], dnodes, dproduct[j])
    grads = relevance_weights(update, tape.relevance, dcontext, dproduct)
    return dnodes + dpointed[0], grads | reembedding_weights(tape.reembedding, reembedded)


def _kept(update: Update, tape: Tape) -> tuple[Tensor, list[slice]]:
    """The version of the nodes that each step keeps, (T,), -1 for steps that re-embed, and the runs of steps
    that keep theirs."""
    version = tape.pointer.version
    before = F.pad(version[:-1], (1, 0)) if update.config.chain else torch.zeros_like(version)
    kept = [start == end for start, end in tape.steps]
    edges = [j for j, (a, b) in enumerate(itertools.pairwise((False, *kept, False))) if a != b]
    runs = [slice(*edge) for edge in zip(edges[::2], edges[1::2], strict=True)]
    return torch.where(version == before, version, -1), runs


def note(
    batch: ProblemBatch, scene: Scene, state: State, current: Tensor, legal: Tensor | None, described: Tensor
) -> None:
    """Writes where trajectories are, RGCR's attributes, and what may be visited, unless that is found
    elsewhere."""
    current.copy_(state.current)
    if legal is not None:
        legal.copy_(mask(batch, state))
    described.copy_(attributes(batch, scene, state))


def arrive(
    batch: ProblemBatch, scene: Scene, state: State, action: Tensor, current: Tensor, legal: Tensor | None,
    described: Tensor,
) -> State:  # fmt: skip
    """The state after an action, noted: one function, so that it compiles to few kernels."""
    nodes = torch.arange(batch.num_nodes, device=batch.device)
    visited = state.visited | (nodes == action[..., None])  # compiled, a scatter is a kernel of its own
    state = replace(step(batch, state, action), visited=visited)
    note(batch, scene, state, current, legal, described)
    return state
