"""One rollout: trajectories for a batch, from their first customers to the end."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor

from chainroute.neural.decode import capture
from chainroute.neural.decode.engine import Steps, begin_chain
from chainroute.neural.env import ProblemBatch, Rules, State, begin, mask, picked, step
from chainroute.neural.fast.fold import Folded
from chainroute.neural.fast.layers import TRITON
from chainroute.neural.policy import Policy
from chainroute.runtime.deadline import NEVER, Deadline

if TRITON:
    from chainroute.neural.fast.ops import mask_triton

REPLAYED_PAIRS = 2**24  # of trajectories and nodes in a step; with more of them a GPU is busy anyway
LOOK_EVERY = 4  # steps between looks at whether all have finished, on devices that a look would wait for


@dataclass(frozen=True)
class Rollout:
    costs: Tensor  # (B, S) in the batch's units; infinite where a trajectory is stuck or exceeds the fleet
    actions: Tensor  # (B, S, T) int16: the nodes gone to, the first customer included
    finished: Tensor  # (B, S) bool: everyone is served


@torch.inference_mode()
def rollout(
    policy: Policy,
    batch: ProblemBatch,
    refine: Sequence[bool],
    num_starts: int | None = None,
    noise: Callable[[int], Tensor] | None = None,
    half: bool = False,
    deadline: Deadline = NEVER,
) -> Rollout:
    """Decodes at most len(refine) steps after the first visits; `refine` says which re-embed the nodes.

    The first visits are to customers evenly spread. Visits are greedy, or sampled where `noise` gives what is
    added to the logits (B, S, n) of each step. When the deadline passes it ends, with trajectories that have
    not finished.
    """
    chain = begin_chain(policy, batch, half)
    state = _starts(batch, num_starts)
    pairs = state.visited.numel()
    if half and noise is None and isinstance(chain, Folded) and pairs <= REPLAYED_PAIRS and capture.works():
        return _replayed(chain, batch, state, refine, deadline, capture.capture)
    return _stepped(chain, batch, state, refine, noise, deadline)


def _stepped(
    chain: Steps,
    batch: ProblemBatch,
    state: State,
    refine: Sequence[bool],
    noise: Callable[[int], Tensor] | None,
    deadline: Deadline,
) -> Rollout:
    """Step by step. When half of the instances have ended, the other half goes on alone."""
    actions = [state.current.to(torch.int16)]
    costs, finished = torch.full_like(state.travelled, torch.inf), torch.zeros_like(state.current).bool()
    who = torch.arange(batch.size, device=batch.device)  # of all instances, those that go on
    looks = _looks(batch)
    for j, refines in enumerate(refine):
        legal = _legal(chain, batch, state)
        if noise is None:
            action = chain.choose(state, legal, refines)
        else:
            action = (chain.step(state, legal, refines) + noise(j)[who]).argmax(-1)
        before, state = state, step(batch, state, action)
        actions.append(actions[-1].index_copy(0, who, action.to(torch.int16)))  # the others stay
        if deadline.passed:
            break
        if looks(j):
            going = (~_ended(batch, before, state)).nonzero().squeeze(1)
            if not len(going):
                break
            if 2 * len(going) <= len(who):
                costs[who], finished[who] = _outcome(batch, state)
                chain.keep(going)
                batch, state, who = batch[going], picked(state, going), who[going]
    costs[who], finished[who] = _outcome(batch, state)
    return Rollout(costs, torch.stack(actions, -1), finished)


def _replayed(
    chain: Folded,
    batch: ProblemBatch,
    state: State,
    refine: Sequence[bool],
    deadline: Deadline,
    capture: Callable[[Callable[[], None]], Callable[[], None]],
) -> Rollout:
    """The same for a batch so small that a GPU would wait for the host: a step is captured once with
    re-embedding, once without, and then replayed. All that steps change stays in its place."""
    state = replace(state, **{name: value.clone() for name, value in _tensors(state).items()})
    nodes, keys = chain.nodes, chain.keys
    actions = state.current.new_zeros(*state.current.shape, len(refine) + 1, dtype=torch.int16)
    actions[..., 0] = state.current
    place = torch.zeros(1, dtype=torch.long, device=batch.device)  # of the newest action
    all_ended = torch.zeros((), dtype=torch.bool, device=batch.device)

    def advance(refines: bool) -> None:
        chain.nodes, chain.keys = nodes, keys
        action = chain.choose(state, _legal(chain, batch, state), refines)
        after = step(batch, state, action)
        all_ended.copy_(_ended(batch, state, after).all())
        for name, value in _tensors(after).items():
            getattr(state, name).copy_(value)
        nodes.copy_(chain.nodes)
        keys.copy_(chain.keys)
        actions.index_copy_(2, place.add_(1), action.to(torch.int16)[..., None])

    ways: dict[bool, Callable[[], None]] = {}
    looks = _looks(batch)
    j = -1
    for j, refines in enumerate(refine):
        if refines in ways:
            ways[refines]()
        else:  # a first step sets up what a capture must find there
            advance(refines)
            ways[refines] = capture(functools.partial(advance, refines))
        if deadline.passed or (looks(j) and all_ended):
            break
    costs, finished = _outcome(batch, state)
    return Rollout(costs, actions[..., : j + 2], finished)


def _legal(chain: Steps, batch: ProblemBatch, state: State) -> Tensor:
    """The mask, by a kernel where the chain is computed by kernels."""
    if isinstance(chain, Folded) and chain.by_kernels:
        return mask_triton.legal(batch, state)
    return mask(batch, state)


def _looks(batch: ProblemBatch) -> Callable[[int], bool]:
    """Whether the host asks after step j if all have ended; before the shortest tour there is no need to."""
    fewest = batch.num_customers if batch.padding is None else int(batch.customer_counts.min())
    every = 1 if batch.device.type == "cpu" else LOOK_EVERY
    return lambda j: j + 1 >= fewest - 1 and j % every == 0


def _tensors(state: State) -> dict[str, Tensor]:
    values = {f.name: getattr(state, f.name) for f in fields(state)}
    return {name: value for name, value in values.items() if isinstance(value, Tensor)}


def longest(batch: ProblemBatch) -> int:
    """Steps after which every trajectory has finished or is stuck: a route for each customer, and under the
    published rules a walk over all depots before each."""
    return batch.num_customers * (2 if batch.rules is Rules.EXACT else 1 + batch.num_depots)


def drawn(rate: float, seed: int, steps: int) -> list[bool]:
    """The same as the paper has it: one draw for each step, shared by all problems."""
    chance = random.Random(seed)
    return [chance.random() < rate for _ in range(steps)]


def pattern(rate: float, seed: int, steps: int) -> list[bool]:
    """In which steps the nodes are re-embedded: a share `rate` of them, evenly spread, which the seed shifts.

    Shifts of seeds in a row fill the gaps (0, 1/2, 1/4, 3/4, 1/8, ...): at rate 1/4 any four have other steps
    each. The paper draws the steps: `drawn`. Then some stretches go without for long, and the same policy is
    better or worse by chance (docs/training-log.md).
    """
    shift = int(f"{seed:b}"[::-1], 2) / 2 ** seed.bit_length()  # the binary digits of the seed, mirrored
    return [int((j + 1) * rate + shift) > int(j * rate + shift) for j in range(steps)]


def _starts(batch: ProblemBatch, count: int | None) -> State:
    """The first visits: to every customer, or to `count` of them, evenly spread."""
    state = begin(batch)
    if count is None or count >= batch.num_customers:
        return state
    which = torch.arange(count, device=batch.device).expand(batch.size, -1)
    own = batch.customer_counts  # an instance with fewer than starts has spare ones
    which = torch.where(own < count, which, which * own // count)
    row = torch.arange(batch.size, device=batch.device)[:, None]
    return replace(state, **{name: value[row, which] for name, value in _tensors(state).items()})


def _ended(batch: ProblemBatch, before: State, state: State) -> Tensor:
    """Whether all trajectories of an instance have finished, or stood still and so are stuck, (B,) bool."""
    ended = state.finished(batch)
    if batch.rules is Rules.EXACT:
        ended = ended | before.at_depot(batch)
    return (ended & state.at_depot(batch)).all(1)


def _outcome(batch: ProblemBatch, state: State) -> tuple[Tensor, Tensor]:
    """The costs of a rollout, and who has finished: (B, S) each."""
    finished = state.finished(batch)
    good = finished & (state.beyond(batch) == 0)
    return torch.where(good, state.travelled, torch.inf), finished
