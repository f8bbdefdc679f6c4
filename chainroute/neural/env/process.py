"""The decision process: what may be visited next, and what a visit changes.

Pure functions on frozen dataclasses of tensors, without branches that depend on data, so that they compile
and can be captured. S trajectories solve each of B instances, over n nodes of which the first M are depots.

Routes with several depots: a trajectory never chooses a depot. The first customer of a route decides it
(`ProblemBatch.start_depot`), and the vehicle returns to it. Under the published rules depots are actions.

Fleets: no vehicle goes home while it can take what the vehicles left cannot, by their loads, days and
lengths. So no plan within the fleet is lost, and many that exceed it are not made. More may still be needed:
then a trajectory goes on with vehicles beyond the fleet (`State.beyond`) until everyone is served.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, TypeVar

import torch
from torch import Tensor

from chainroute.neural.env.batch import ProblemBatch, Rules
from chainroute.problem.measure import LOAD_SLACK

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Values = TypeVar("Values", bound="DataclassInstance")
LOAD_ROUNDING = 1e-5  # loads that may be due to rounding, where the goods of an instance are summed up


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
    routes: Tensor  # (B, S) how many were begun
    visited: Tensor  # (B, S, n) bool; depots and padding count as visited
    spare: Tensor | None = None  # (B, S) bool: trajectories that repeat others to fill a padded batch

    def at_depot(self, batch: ProblemBatch) -> Tensor:
        return self.current < batch.num_depots

    def beyond(self, batch: ProblemBatch) -> Tensor:
        """How many vehicles were used beyond the fleet, (B, S)."""
        if batch.fleet is None:
            return torch.zeros_like(self.routes)
        return (self.routes - batch.fleet[:, None]).clamp(min=0)

    def cost(self, batch: ProblemBatch) -> Tensor:
        """What training minimises, (B, S): the distance travelled, and for each vehicle beyond the fleet the
        longest trip of the instance on top, so that plans hardly gain by one."""
        if batch.fleet is None:
            return self.travelled
        return self.travelled + self.beyond(batch) * batch.longest_trip[:, None]

    def finished(self, batch: ProblemBatch) -> Tensor:
        """Which trajectories have served everyone and are back, (B, S)."""
        return self.visited.all(-1) & self.at_depot(batch)


def picked(values: Values, instances: Tensor) -> Values:
    """The same dataclass of tensors with these instances alone."""
    tensors = {f.name: getattr(values, f.name) for f in fields(values)}
    return replace(values, **{name: t[instances] for name, t in tensors.items() if isinstance(t, Tensor)})


def reset(batch: ProblemBatch, starts: Tensor, spare: Tensor | None = None) -> State:
    """Trajectories at the depot `starts`, (B, S) long, all customers still to serve."""
    zero = batch.delivery.new_zeros(starts.shape)
    return State(
        current=starts,
        depot=starts,
        time=batch.opening.gather(1, starts),
        length=zero,
        travelled=zero,
        delivered=zero,
        picked_up=zero,
        peak=zero,
        routes=zero,
        visited=(~batch.is_customer)[:, None].expand(-1, starts.shape[1], -1),
        spare=spare,
    )


def at_depot(batch: ProblemBatch, count: int) -> State:
    """`count` trajectories of each instance that have not left: a first customer is a choice like others."""
    return reset(batch, torch.zeros(batch.size, count, dtype=torch.long, device=batch.device))


def begin(batch: ProblemBatch, num_starts: int | None = None) -> State:
    """Multi-start: trajectory s has already gone to customer s (again from the first after the last).

    It stays at the depot where that customer cannot be a route's first, and under the published rules with
    several depots, where trajectory s starts at depot s as in earlier work.
    """
    count = batch.num_customers if num_starts is None else num_starts
    order = torch.arange(count, device=batch.device).expand(batch.size, -1)
    depots, customers = batch.depot_counts, batch.customer_counts
    published = batch.rules is Rules.PUBLISHED
    spare = None if batch.padding is None or num_starts is not None else order >= customers
    state = reset(batch, order % depots if published else torch.zeros_like(order), spare)
    first = batch.num_depots + order % customers
    goes = mask(batch, state).gather(2, first[..., None]).squeeze(-1)
    if published:
        goes = goes & (depots == 1)
    return step(batch, state, torch.where(goes, first, state.current))


def servable(batch: ProblemBatch, state: State) -> Tensor:
    """Which customers each trajectory can reach, serve and load next, (B, S, n) bool."""
    return _reachable(batch, state) & _loadable(batch, state) & ~state.visited


def mask(
    batch: ProblemBatch, state: State, servable: Callable[[ProblemBatch, State], Tensor] = servable
) -> Tensor:
    """Which nodes each trajectory may go to next, (B, S, n) bool. There is always at least one.

    A trajectory at a depot stays there only if no customer can be served: it has finished, or it is stuck.
    """
    legal = servable(batch, state)
    home = _depot_mask(batch, state, legal)
    if batch.fleet is not None:
        home, legal = _kept_fleet(batch, state, home, legal)
    legal[..., : batch.num_depots] = home
    return legal


def step(batch: ProblemBatch, state: State, action: Tensor) -> State:
    """The state after each trajectory has gone to node `action`, (B, S) long, and left it again."""
    arrives = action < batch.num_depots  # at a depot
    depot, origin, left = state.depot, state.current, state.time
    if batch.num_depots > 1 and batch.rules is Rules.EXACT:
        leaves = state.at_depot(batch)
        depot = torch.where(leaves & ~arrives, batch.start_depot.gather(1, action), depot)
        origin = torch.where(leaves, depot, origin)
        left = torch.where(leaves, batch.opening.gather(1, depot), left)
    # A route ends at its own depot, whichever was chosen.
    home = action if batch.num_depots == 1 else torch.where(arrives, depot, action)
    leg = _entry(batch.distance, origin, home)
    travel = leg if batch.duration is batch.distance else _entry(batch.duration, origin, home)
    free = arrives & batch.open[:, None]
    if batch.rules is Rules.PUBLISHED:  # the next route leaves from the depot that was chosen
        depot, home = torch.where(arrives, action, depot), action
        free = free | (arrives & state.at_depot(batch))

    opening, service, counted_service, delivery, pickup = _rows(batch.visits, home).unbind(-1)
    departure = torch.maximum(left + travel, opening) + service
    on_route = (~arrives).to(leg.dtype)
    picked_up = (state.picked_up + pickup) * on_route
    return State(
        current=home,
        depot=depot,
        time=torch.where(arrives, opening, departure),
        length=(state.length + leg + counted_service) * on_route,
        travelled=state.travelled + leg.masked_fill(free, 0.0),
        delivered=(state.delivered + delivery) * on_route,
        picked_up=picked_up,
        peak=torch.maximum(state.peak + delivery, picked_up) * on_route,
        routes=state.routes + state.at_depot(batch) * on_route,
        visited=state.visited.scatter(2, action[..., None], True),
        spare=state.spare,
    )


def _reachable(batch: ProblemBatch, state: State) -> Tensor:
    """Whether each node can be reached and served in time and within the limit, (B, S, n)."""
    leg = _rows(batch.distance, state.current)
    if batch.num_depots == 1:
        latest, farthest = batch.latest, batch.farthest  # (B, 1, n)
    else:
        latest, farthest = _rows(batch.latest, state.depot), _rows(batch.farthest, state.depot)
    time, length = latest - state.time[..., None], farthest - state.length[..., None]  # still to be spent
    if batch.duration is batch.distance:
        reachable = leg <= torch.minimum(time, length)
    else:
        reachable = (_rows(batch.duration, state.current) <= time) & (leg <= length)
    if batch.blocked is not None:
        reachable = reachable & ~_rows(batch.blocked, state.current)
    if batch.num_depots == 1 or batch.rules is Rules.PUBLISHED:
        return reachable
    # At a depot, each customer would be reached from the depot of the route it starts.
    return torch.where(state.at_depot(batch)[..., None], batch.first_visits[:, None], reachable)


def _loadable(batch: ProblemBatch, state: State) -> Tensor:
    """Whether each customer's goods fit on each vehicle, (B, S, n)."""
    room, room_back = _rooms(batch, state)
    return (batch.delivery[:, None] <= room[..., None]) & (batch.pickup[:, None] <= room_back[..., None])


def _rooms(batch: ProblemBatch, state: State) -> tuple[Tensor, Tensor]:
    """How much more each vehicle can deliver, and how much more it can pick up, (B, S) each.

    A delivery was on board since the depot, so it adds to every load met so far, the largest included. A
    pickup only adds to what has been picked up: deliveries still to come are counted when they come.
    """
    full = 1 + LOAD_SLACK / 2
    if batch.rules is Rules.PUBLISHED:  # only beside what was picked up so far
        load = torch.maximum(state.delivered, state.picked_up)
    else:
        load = state.peak
    delivers = batch.mixed[:, None] | (state.picked_up == 0)  # else nothing may be delivered any more
    return (full - load) * delivers, full - state.picked_up


def _depot_mask(batch: ProblemBatch, state: State, legal: Tensor) -> Tensor:
    """Which depots may be gone to, (B, S, M)."""
    at_depot = state.at_depot(batch)[..., None]
    idle = at_depot & legal.any(-1, keepdim=True)  # standing at a depot although a customer can be served
    if batch.num_depots == 1:
        return ~idle
    depots = torch.arange(batch.num_depots, device=batch.device)
    own = depots == state.depot[..., None]
    if batch.rules is Rules.EXACT:
        return own & ~idle
    # Any depot may follow a customer. From a depot where nobody can be served only the next one may, so that
    # no trajectory wanders between such depots for ever.
    count = batch.depot_counts[..., None]
    following = depots == (state.depot[..., None] + 1) % count
    waiting = torch.where(state.finished(batch)[..., None], own, following)
    return torch.where(at_depot, waiting, depots < count) & ~idle


def spare_vehicles(batch: ProblemBatch, state: State) -> Tensor:
    """How many vehicles are left at depots, this one being on its way, beyond those that unserved customers
    need at least, (B, S, 3): for deliveries, for pickups, for time and length. Infinite without a fleet."""
    assert batch.fleet is not None
    left = batch.fleet[:, None] - state.routes - state.at_depot(batch).to(state.routes.dtype)
    needed = [
        shares[:, None].masked_fill(state.visited, 0.0).sum(-1) for shares in batch.vehicle_shares.unbind(-1)
    ]
    return left[..., None] - torch.stack(needed, -1)


def _kept_fleet(batch: ProblemBatch, state: State, home: Tensor, legal: Tensor) -> tuple[Tensor, Tensor]:
    """The depots (B, S, M) and nodes (B, S, n) that may be gone to without wasting a vehicle.

    If the vehicles left cannot deliver the rest, this one must deliver more; likewise with pickups, and with
    what days and lengths allow. Where linehauls come first, a pickup ends deliveries as going home does.
    """
    few_to_deliver, few_to_pick_up, few = (spare_vehicles(batch, state) < -LOAD_ROUNDING).unbind(-1)
    delivers, picks_up = batch.delivery[:, None] > 0, batch.pickup[:, None] > 0
    must_deliver = few_to_deliver & (legal & delivers).any(-1)
    must_pick_up = few_to_pick_up & (legal & picks_up).any(-1)
    must_go_on = must_deliver | must_pick_up | (few & legal.any(-1))
    ends_deliveries = picks_up & ~delivers & ~batch.mixed[:, None, None]
    return home & ~must_go_on[..., None], legal & ~(must_deliver[..., None] & ends_deliveries)


def _rows(matrix: Tensor, index: Tensor) -> Tensor:
    """Row `index` (B, S) of each instance's matrix (B, n, n): (B, S, n)."""
    return matrix.gather(1, index[..., None].expand(-1, -1, matrix.shape[-1]))


def _entry(matrix: Tensor, row: Tensor, column: Tensor) -> Tensor:
    """Entries (row, column), each (B, S), of each instance's matrix: (B, S)."""
    return matrix.flatten(1).gather(1, row * matrix.shape[-1] + column)
