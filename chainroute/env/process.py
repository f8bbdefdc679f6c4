"""The decision process: what may be visited next, and what a visit changes.

Pure functions on frozen dataclasses of tensors, without branches that depend on data, so that they compile
and can be captured. S trajectories solve each of B instances, over n nodes of which the first M are depots.

Routes with several depots: a trajectory never chooses a depot. The first customer of a route decides it
(`ProblemBatch.start_depot`), and the vehicle returns to it. Under the published rules depots are actions.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from chainroute.env.batch import ProblemBatch, Rules
from chainroute.measure import LOAD_SLACK


@dataclass(frozen=True)
class State:
    current: Tensor  # (B, S) long: the node each trajectory is at
    depot: Tensor  # (B, S) long: the depot of the route under way, or of the last one
    time: Tensor  # (B, S) when it can leave the current node
    length: Tensor  # (B, S) of the route under way, as the limit counts it
    travelled: Tensor  # (B, S) of all routes so far; return legs of open routes are not counted
    delivered: Tensor  # (B, S) deliveries made on the route under way
    picked_up: Tensor  # (B, S) pickups on board
    peak: Tensor  # (B, S) the largest load on the route, had it left with just the deliveries made so far
    visited: Tensor  # (B, S, n) bool; depots and padding count as visited
    spare: Tensor | None = None  # (B, S) bool: trajectories that repeat others to fill a padded batch

    def at_depot(self, batch: ProblemBatch) -> Tensor:
        return self.current < batch.num_depots

    def finished(self, batch: ProblemBatch) -> Tensor:
        """Which trajectories have served everyone and are back, (B, S)."""
        return self.visited.all(-1) & self.at_depot(batch)


def reset(batch: ProblemBatch, starts: Tensor, spare: Tensor | None = None) -> State:
    """Trajectories at the depot `starts`, (B, S) long, all customers still to serve."""
    zero = batch.delivery.new_zeros(starts.shape)
    outside = torch.arange(batch.num_nodes, device=batch.device) < batch.num_depots
    visited = outside.expand(batch.size, -1) if batch.padding is None else outside | batch.padding
    return State(
        current=starts,
        depot=starts,
        time=batch.opening.gather(1, starts),
        length=zero,
        travelled=zero,
        delivered=zero,
        picked_up=zero,
        peak=zero,
        visited=visited[:, None].expand(-1, starts.shape[1], -1),
        spare=spare,
    )


def begin(batch: ProblemBatch, num_starts: int | None = None) -> State:
    """Multi-start: trajectory s has already gone to customer s (again from the first after the last).

    It stays at the depot where that customer cannot be a route's first, and under the published rules with
    several depots, where trajectory s starts at depot s as in earlier work.
    """
    count = batch.num_customers if num_starts is None else num_starts
    order = torch.arange(count, device=batch.device).expand(batch.size, -1)
    depots, customers = _counts(batch)
    published = batch.rules is Rules.PUBLISHED
    spare = None if batch.padding is None or num_starts is not None else order >= customers
    state = reset(batch, order % depots if published else torch.zeros_like(order), spare)
    first = batch.num_depots + order % customers
    goes = mask(batch, state).gather(2, first[..., None]).squeeze(-1)
    if published:
        goes = goes & (depots == 1)
    return step(batch, state, torch.where(goes, first, state.current))


def mask(batch: ProblemBatch, state: State) -> Tensor:
    """Which nodes each trajectory may go to next, (B, S, n) bool. There is always at least one.

    A trajectory at a depot stays there only if no customer can be served: it has finished, or it is stuck.
    """
    ahead = _Ahead.of(batch, state)
    begin_service = torch.maximum(ahead.arrival, batch.opening[:, None])
    closed = ~batch.open[:, None, None]
    back_home = begin_service + batch.service[:, None] + ahead.back_time
    in_time = (begin_service <= batch.closing[:, None]) & ((back_home <= ahead.depot_closing) | ~closed)
    length = state.length[..., None] + ahead.leg + batch.counted_service[:, None] + ahead.back * closed
    in_limit = length <= batch.limit[:, None, None]
    legal = in_time & in_limit & _loadable(batch, state) & ~state.visited
    return torch.cat([_depot_mask(batch, state, legal), legal[..., batch.num_depots :]], -1)


def step(batch: ProblemBatch, state: State, action: Tensor) -> State:
    """The state after each trajectory has gone to node `action`, (B, S) long, and left it again."""
    arrives = action < batch.num_depots  # at a depot
    leaves = state.at_depot(batch)
    if batch.num_depots == 1 or batch.rules is Rules.PUBLISHED:
        depot, origin = state.depot, state.current
    else:
        depot = torch.where(leaves & ~arrives, batch.start_depot.gather(1, action), state.depot)
        origin = torch.where(leaves, depot, state.current)
    target = torch.where(arrives, depot, action)  # a route ends at its own depot, whichever was chosen
    leg = _entry(batch.distance, origin, target)
    travel = leg if batch.duration is batch.distance else _entry(batch.duration, origin, target)
    counted = leg * ~(arrives & (batch.open[:, None] | leaves))
    left = torch.where(leaves, batch.opening.gather(1, depot), state.time)
    begin_service = torch.maximum(left + travel, batch.opening.gather(1, action))

    at_customer = ~arrives
    delivered = batch.delivery.gather(1, action)
    picked_up = (state.picked_up + batch.pickup.gather(1, action)) * at_customer
    next_depot = torch.where(arrives, action, depot) if batch.rules is Rules.PUBLISHED else depot
    return State(
        current=next_depot.where(arrives, action),
        depot=next_depot,
        time=torch.where(
            arrives,
            batch.opening.gather(1, next_depot),
            begin_service + batch.service.gather(1, action),
        ),
        length=(state.length + leg + batch.counted_service.gather(1, action)) * at_customer,
        travelled=state.travelled + counted,
        delivered=(state.delivered + delivered) * at_customer,
        picked_up=picked_up,
        peak=torch.maximum(state.peak + delivered, picked_up) * at_customer,
        visited=state.visited.scatter(2, action[..., None], True),
        spare=state.spare,
    )


@dataclass(frozen=True)
class _Ahead:
    """What going to each node would mean: each (B, S, n), or smaller where it is the same for all."""

    leg: Tensor
    arrival: Tensor
    back: Tensor  # from there to the depot of the route
    back_time: Tensor
    depot_closing: Tensor

    @staticmethod
    def of(batch: ProblemBatch, state: State) -> _Ahead:
        same = batch.duration is batch.distance
        leg = _rows(batch.distance, state.current)
        travel = leg if same else _rows(batch.duration, state.current)
        arrival = state.time[..., None] + travel
        if batch.num_depots == 1:
            back = batch.distance[:, None, :, 0]
            back_time = back if same else batch.duration[:, None, :, 0]
            return _Ahead(leg, arrival, back, back_time, batch.closing[:, None, :1])
        back = _rows(batch.distance.mT, state.depot)
        back_time = back if same else _rows(batch.duration.mT, state.depot)
        closing = batch.closing.gather(1, state.depot)[..., None]
        if batch.rules is Rules.PUBLISHED:
            return _Ahead(leg, arrival, back, back_time, closing)

        # At a depot, each customer would be reached from the depot of the route it starts.
        at_depot = state.at_depot(batch)[..., None]
        depot = batch.start_depot[:, None]  # (B, 1, n)

        def from_start(matrix: Tensor) -> Tensor:
            return matrix.gather(1, depot)

        def or_start(value: Tensor, start: Tensor) -> Tensor:
            return torch.where(at_depot, start, value)

        opening = batch.opening[:, None].gather(2, depot)
        return _Ahead(
            leg=or_start(leg, from_start(batch.distance)),
            arrival=or_start(arrival, opening + from_start(batch.duration)),
            back=or_start(back, from_start(batch.distance.mT)),
            back_time=or_start(back_time, from_start(batch.duration.mT)),
            depot_closing=or_start(closing, batch.closing[:, None].gather(2, depot)),
        )


def _loadable(batch: ProblemBatch, state: State) -> Tensor:
    """Whether each customer's goods fit on each vehicle, (B, S, n).

    A delivery was on board since the depot, so it adds to every load met so far, the largest included. A
    pickup only adds to what has been picked up: deliveries still to come are counted when they come.
    """
    full = 1 + LOAD_SLACK / 2
    delivery, pickup = batch.delivery[:, None], batch.pickup[:, None]
    picked_up, mixed = state.picked_up[..., None], batch.mixed[:, None, None]
    if batch.rules is Rules.PUBLISHED:  # only beside what was picked up so far
        fits = (state.delivered[..., None] + delivery <= full) & (picked_up + delivery <= full)
    else:
        fits = state.peak[..., None] + delivery <= full
    linehaul = fits & (mixed | (picked_up == 0) | (delivery == 0))
    return torch.where(pickup > 0, picked_up + pickup <= full, linehaul)


def _depot_mask(batch: ProblemBatch, state: State, legal: Tensor) -> Tensor:
    """Which depots may be gone to, (B, S, M)."""
    at_depot = state.at_depot(batch)[..., None]
    idle = at_depot & legal.any(-1, keepdim=True)  # standing at a depot although a customer can be served
    depots = torch.arange(batch.num_depots, device=batch.device)
    own = depots == state.depot[..., None]
    if batch.rules is Rules.EXACT or batch.num_depots == 1:
        return own & ~idle
    # Any depot may follow a customer. From a depot where nobody can be served only the next one may, so that a
    # trajectory cannot wander between such depots for ever.
    count = _counts(batch)[0][..., None]
    following = depots == (state.depot[..., None] + 1) % count
    waiting = torch.where(state.finished(batch)[..., None], own, following)
    return torch.where(at_depot, waiting, depots < count) & ~idle


def _counts(batch: ProblemBatch) -> tuple[Tensor, Tensor]:
    """How many depots and how many customers each instance has, (B, 1) long."""
    real = torch.ones_like(batch.delivery, dtype=torch.bool) if batch.padding is None else ~batch.padding
    depots, customers = real.split([batch.num_depots, batch.num_customers], 1)
    return depots.sum(1, keepdim=True), customers.sum(1, keepdim=True)


def _rows(matrix: Tensor, index: Tensor) -> Tensor:
    """Row `index` (B, S) of each instance's matrix (B, n, n): (B, S, n)."""
    return matrix.gather(1, index[..., None].expand(-1, -1, matrix.shape[-1]))


def _entry(matrix: Tensor, row: Tensor, column: Tensor) -> Tensor:
    """Entries (row, column), each (B, S), of each instance's matrix: (B, S)."""
    return matrix.flatten(1).gather(1, row * matrix.shape[-1] + column)
