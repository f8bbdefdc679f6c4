"""The policy: encode once, then at every step reformulate the context, re-embed the nodes, and point.

H_0 = encoder(instance)
at step j:  C_j = RGCR(state, H_{j-1});  H_j = TSNR(H_{j-1}, C_j);  logits = pointer(C_j, H_j)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from chainroute.generate import HORIZON
from chainroute.neural.env import ProblemBatch, State, at_depot
from chainroute.neural.env.process import spare_vehicles
from chainroute.neural.policy.blocks import make_block
from chainroute.neural.policy.columns import CLOSING, FEATURES, NAMES, OWN, TIMES
from chainroute.neural.policy.config import PolicyConfig
from chainroute.neural.policy.context import RGCR
from chainroute.neural.policy.encoder import Encoder
from chainroute.neural.policy.layers import nearness
from chainroute.neural.policy.pointer import Pointer
from chainroute.neural.policy.reembed import TSNR

NO_LIMIT = 10.0  # the remaining distance where there is no limit
USUAL_SIZE = 50  # customers; what depends on the size is told as it is for so many
SPARE_VEHICLES = 2  # vehicles to spare; more are told as so many
TRAINING_LIMIT = 2 * math.sqrt(2)  # distance: from corner to corner of the unit square and back


@dataclass(frozen=True)
class Scene:
    """What the policy sees of the instances and does not change while it decodes."""

    features: Tensor  # (B, n, 7): `columns.FEATURES`, infinite values as 0
    pace: Tensor  # (B, 1) of the clock by which opening, closing, service and the current time are told
    reach: Tensor  # (B, 1) likewise, of the measure by which the limit and what remains of it are told
    stride: Tensor  # (B, 1) likewise, of the distance travelled in all
    flags: Tensor  # (B, 4) as numbers
    instance: Tensor | None  # (B, 4) `columns.OF_INSTANCE`, with wide features
    near: Tensor  # (B, n, n) -log of the distance from row to column
    node_bias: Tensor  # (B, n, n) of TSNR, from row towards column; minus infinity towards padding


class Policy(nn.Module):
    # How many on the way through a problem suit it, by its card where that says so; maps take them in turn.
    reembeddings: tuple[float, ...] = (50.0,)

    def __init__(self, config: PolicyConfig | None = None):
        super().__init__()
        self.config = config or PolicyConfig()
        self.encoder = make_block(self.config, "encoder", Encoder)
        self.rgcr = make_block(self.config, "rgcr", RGCR)
        self.tsnr = make_block(self.config, "tsnr", TSNR) if self.config.reembedding != "off" else None
        self.pointer = make_block(self.config, "pointer", Pointer)

    @property
    def dtype(self) -> torch.dtype:
        """The type of the weights, and so of everything the policy sees."""
        return next(self.parameters()).dtype

    @property
    def shared(self) -> bool:
        """Whether trajectories share the nodes of an instance; else nodes are (B S, n, D) after a step."""
        return getattr(self.tsnr, "shared", True)

    @property
    def sees_places(self) -> bool:
        """Whether the network is told coordinates; else it is told distances."""
        return getattr(self.encoder, "sees_places", True)

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    def encode(self, batch: ProblemBatch) -> tuple[Scene, Tensor]:
        """The scene of a batch and its node embeddings H_0, (B, n, D)."""
        scene = self.observe(batch)
        limit = _finite(batch.limit.to(self.dtype)) * scene.reach.squeeze(1)
        told = scene.flags if scene.instance is None else torch.cat([scene.flags, scene.instance], 1)
        seen = (scene.features, limit, told, batch.num_depots, batch.padding)
        if self.sees_places:
            return scene, self.encoder(*seen)
        return scene, self.encoder(*seen, batch.distance.to(self.dtype))

    def observe(self, batch: ProblemBatch) -> Scene:
        """What the policy sees of a batch."""
        places = batch.coords.unbind(-1) if self.sees_places else _ways(batch)
        columns = [*places, *(getattr(batch, name) for name in FEATURES[2:])]
        features = _finite(torch.stack(columns, -1).to(self.dtype))
        # The policy knows no longer days and limits than those of training: it sees longer ones scaled down.
        day = features[..., CLOSING].amax(1, keepdim=True)
        pace, instance, stride = HORIZON / day.clamp(min=HORIZON), None, torch.ones_like(day)
        if self.config.features == "wide":
            pace = HORIZON / torch.where(day > 0, day, HORIZON)
            stride = (USUAL_SIZE / customers(batch)).sqrt().to(self.dtype)
        features = torch.cat([features[..., :TIMES], features[..., TIMES:] * pace[..., None]], -1)
        reach = TRAINING_LIMIT / _finite(batch.limit.to(self.dtype))[:, None].clamp(min=TRAINING_LIMIT)
        if self.config.features == "wide":
            vehicles = _vehicles(batch, at_depot(batch, 1)).to(self.dtype)
            instance = torch.cat([-2 * stride.log(), pace.log(), reach.log(), vehicles], 1)
        near = nearness(batch.distance.to(self.dtype))
        if self.config.spacing:
            near = torch.where(batch.distance > 0, near + _spacing(batch).log().to(self.dtype), 0.0)
        bias = self.bias(batch.distance, near)
        if batch.padding is not None:
            bias = bias.masked_fill(batch.padding[..., None], -torch.inf)
        flags = batch.flags.to(self.dtype)
        return Scene(features, pace, reach, stride, flags, instance, near, bias.mT)

    def bias(self, distance: Tensor, near: Tensor) -> Tensor:
        """What TSNR adds to its attention scores."""
        match self.config.distance_bias:
            case "log":
                return near
            case "raw":
                return distance.to(near.dtype)
            case "off":
                return torch.zeros_like(near)

    def step(
        self,
        batch: ProblemBatch,
        scene: Scene,
        nodes: Tensor,
        state: State,
        mask: Tensor,
        refine: bool,
        noise: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """One step of the chain: logits (B, S, n) of the next visit, and the nodes (B, n, D) it leaves.

        `refine` says whether TSNR runs at this step (the paper's update with probability P); `noise` is
        RGCR's in training.
        """
        current, near = state.current, _rows(scene.near, state.current)  # (B, S), (B, S, n)
        told, flags, node_bias = attributes(batch, scene, state), scene.flags, scene.node_bias
        from_contexts = self.bias(_rows(batch.distance, current), near)
        if state.spare is not None:
            from_contexts = from_contexts.masked_fill(state.spare[..., None], -torch.inf)
        if not self.shared:  # each trajectory is an instance of its own, (B S, 1, ...), with its own nodes
            count = current.shape[1]
            apart = [x.flatten(0, 1)[:, None] for x in (current, near, told, from_contexts, mask)]
            current, near, told, from_contexts, mask = apart
            flags, node_bias = flags.repeat_interleave(count, 0), node_bias.repeat_interleave(count, 0)
            noise = None if noise is None else noise.flatten(0, 1)[:, None]
            if len(nodes) == batch.size:  # before the first step all have the same
                nodes = nodes.repeat_interleave(count, 0)
        here = _rows(nodes, current)  # (B, S, D)
        context, unified = self.rgcr(told, here, flags, noise)
        refined = nodes
        if refine and self.tsnr is not None:
            refined, context = self.tsnr(nodes, context, from_contexts.mT, node_bias)
        logits = self.pointer(context, here, unified, refined, near, mask)
        return logits.view(*state.current.shape, -1), refined if self.config.chain else nodes


def attributes(batch: ProblemBatch, scene: Scene, state: State) -> Tensor:
    """The numbers by which a trajectory describes its situation, (B, S, 13): `columns.ATTRIBUTES`.

    With wide features, `columns.OF_TRAJECTORY` follow.
    """
    here = _rows(scene.features, state.current)
    load = torch.where(state.picked_up > 0, state.picked_up, state.delivered)
    limit = batch.limit[:, None]
    remaining = torch.where(limit.isfinite(), (limit - state.length) * scene.reach, NO_LIMIT)
    own = (1 - load, remaining, state.travelled * scene.stride, state.time * scene.pace)
    values = dict(zip((*FEATURES, *OWN), (*here.unbind(-1), *own), strict=True))
    numbers = [values[name] for name in NAMES]
    if scene.instance is not None:
        numbers += more_attributes(batch, state)
    return torch.stack([number.to(here.dtype) for number in numbers], -1)


def more_attributes(batch: ProblemBatch, state: State) -> list[Tensor]:
    """`columns.OF_TRAJECTORY`, (B, S) each: vehicles to spare, and the share of the customers served."""
    unserved = (~state.visited).sum(-1)
    return [_vehicles(batch, state), 1 - unserved / customers(batch)]


def customers(batch: ProblemBatch) -> Tensor:
    """How many each instance has, (B, 1), as numbers to compute with."""
    return batch.customer_counts.to(batch.limit.dtype)


def _vehicles(batch: ProblemBatch, state: State) -> Tensor:
    """How many vehicles there are to spare, (B, S): from -3 to 0, which stands for plenty."""
    if batch.fleet is None:
        return torch.zeros_like(state.routes)
    return spare_vehicles(batch, state).amin(-1).clamp(-1, SPARE_VEHICLES) - SPARE_VEHICLES


def _ways(batch: ProblemBatch) -> tuple[Tensor, Tensor]:
    """How far each node is from the nearest depot, and from there back, (B, n) each."""
    m = batch.num_depots
    go, back = batch.distance[:, :m], batch.distance[:, :, :m].mT  # (B, M, n)
    if batch.padding is not None:
        absent = batch.padding[:, :m, None]
        go, back = go.masked_fill(absent, torch.inf), back.masked_fill(absent, torch.inf)
    return go.amin(1), back.amin(1)


def _spacing(batch: ProblemBatch) -> Tensor:
    """The mean distance from a node to its nearest other, (B, 1, 1), in units of that of USUAL_SIZE customers
    spread evenly over the unit square. Nodes at one place count as one."""
    nearest = torch.where(batch.distance > 0, batch.distance, torch.inf).amin(2)
    known = nearest.isfinite()
    total, count = _finite(nearest).sum(1), known.sum(1)
    usual = 0.5 / math.sqrt(USUAL_SIZE)
    mean = torch.where(count > 0, total / count.clamp(min=1), usual)
    return (mean / usual)[:, None, None]


def _rows(values: Tensor, index: Tensor) -> Tensor:
    """Rows `index` (B, S) of values (B, n, d): (B, S, d)."""
    return values.gather(1, index[..., None].expand(-1, -1, values.shape[-1]))


def _finite(values: Tensor) -> Tensor:
    return torch.where(values.isfinite(), values, 0.0)
