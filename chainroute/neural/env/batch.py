"""ProblemBatch: problems as tensors, in the units the policy knows.

A batch may mix all 48 variants, depot counts and sizes. Nodes are the locations, padded depots first and then
padded customers: with M depots and N customers after padding, n = M + N, and node M is the first customer of
every instance. Coordinates lie in the unit square, the capacity is 1, and time is measured in distances.

How boundaries are handled: `from_problems` makes float64 tensors and puts half of the judge's slack on top of
closing times and limits (and the mask on top of the capacity), so whatever the mask allows the judge accepts.
Between whole numbers, where the judge has no slack, there is room for rounding errors: less than a unit.
Float32 is for training: there a bound may be overstepped by a rounding error, and no judge is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from chainroute.problem import Problem
from chainroute.problem.features import require_known
from chainroute.problem.measure import LOAD_SLACK, SLACK, FloatArray, Metric, Rounding, layout, planar
from chainroute.problem.roads import with_detours
from chainroute.problem.variants import FLAGS, Backhaul


class Rules(StrEnum):
    """Which physics the environment follows."""

    EXACT = "exact"  # the load fits at every moment; the first customer of a route decides its depot
    PUBLISHED = "published"  # as earlier work is scored: the weak test for mixed loads, depots as actions


@dataclass(frozen=True)
class ProblemBatch:
    num_depots: int  # M
    coords: Tensor  # (B, n, 2)
    distance: Tensor  # (B, n, n) from row to column
    duration: Tensor  # (B, n, n); the very same tensor where travel takes as long as it is far
    delivery: Tensor  # (B, n) share of the capacity; 0 at depots
    pickup: Tensor  # (B, n) likewise
    opening: Tensor  # (B, n)
    closing: Tensor  # (B, n) the last moment to begin, or to be back; infinite where there is no deadline
    service: Tensor  # (B, n)
    counted_service: Tensor  # (B, n) the part of the service that counts towards the limit
    limit: Tensor  # (B,) infinite where there is none
    open: Tensor  # (B,) bool
    backhaul: Tensor  # (B,) bool: some customers hand goods over
    mixed: Tensor  # (B,) bool: in any order with the deliveries
    start_depot: Tensor  # (B, n) long: the depot that a route leaves whose first customer this is
    padding: Tensor | None = None  # (B, n) bool; None where no instance is padded
    fleet: Tensor | None = None  # (B,) vehicles of all depots, infinite for any number; None: everywhere
    blocked: Tensor | None = None  # (B, n, n) bool: no road, whatever the distance; None where all are there
    rules: Rules = Rules.EXACT

    @staticmethod
    def of(
        num_depots: int,
        coords: Tensor,
        distance: Tensor,
        delivery: Tensor,
        *,
        duration: Tensor | None = None,
        pickup: Tensor | None = None,
        opening: Tensor | None = None,
        closing: Tensor | None = None,
        service: Tensor | None = None,
        counted_service: Tensor | None = None,
        limit: Tensor | None = None,
        open: Tensor | None = None,
        backhaul: Tensor | None = None,
        mixed: Tensor | None = None,
        padding: Tensor | None = None,
        fleet: Tensor | None = None,
        blocked: Tensor | None = None,
        rules: Rules = Rules.EXACT,
    ) -> ProblemBatch:
        """The batch with these fields; a constraint that is not given is absent.

        Whatever is given for padding is replaced: it lies at the origin, wants nothing and never closes.
        """

        def nodes(values: Tensor | None, absent: float = 0.0) -> Tensor:
            if values is None:
                return torch.full_like(delivery, absent)
            return values if padding is None else values.masked_fill(padding, absent)

        def instances(values: Tensor | None, absent: float | bool) -> Tensor:
            if values is not None:
                return values
            kind = torch.bool if isinstance(absent, bool) else coords.dtype
            return torch.full_like(coords[:, 0, 0], absent, dtype=kind)

        if padding is not None:
            hidden = padding[:, :, None] | padding[:, None]
            coords, distance = coords.masked_fill(padding[..., None], 0.0), distance.masked_fill(hidden, 0.0)
            duration = None if duration is None else duration.masked_fill(hidden, 0.0)
        batch = ProblemBatch(
            num_depots=num_depots,
            coords=coords,
            distance=distance,
            duration=distance if duration is None else duration,
            delivery=nodes(delivery),
            pickup=nodes(pickup),
            opening=nodes(opening),
            closing=nodes(closing, torch.inf),
            service=nodes(service),
            counted_service=nodes(counted_service),
            limit=instances(limit, torch.inf),
            open=instances(open, False),
            backhaul=instances(backhaul, False),
            mixed=instances(mixed, False),
            start_depot=torch.zeros_like(delivery, dtype=torch.long),
            padding=padding,
            fleet=fleet,
            blocked=blocked,
            rules=rules,
        )
        return replace(batch, start_depot=start_depots(batch))

    @property
    def size(self) -> int:
        return self.coords.shape[0]

    @property
    def num_nodes(self) -> int:
        return self.coords.shape[1]

    @property
    def num_customers(self) -> int:
        return self.num_nodes - self.num_depots

    @property
    def depot_counts(self) -> Tensor:
        """How many depots each instance has, (B, 1) long."""
        return self._counts(0, self.num_depots)

    @property
    def customer_counts(self) -> Tensor:
        """How many customers each instance has, (B, 1) long."""
        return self._counts(self.num_depots, self.num_nodes)

    def _counts(self, first: int, end: int) -> Tensor:
        """How many of the nodes from `first` to before `end` are not padding, (B, 1) long."""
        if self.padding is None:
            return torch.full((self.size, 1), end - first, device=self.device)
        return (~self.padding[:, first:end]).sum(1, keepdim=True)

    @property
    def is_customer(self) -> Tensor:
        """Which nodes are customers, (B, n) bool."""
        customers = torch.arange(self.num_nodes, device=self.device) >= self.num_depots
        return customers.expand(self.size, -1) if self.padding is None else customers & ~self.padding

    @property
    def device(self) -> torch.device:
        return self.coords.device

    @property
    def flags(self) -> Tensor:
        """Which of the FLAGS each instance has, (B, 4) bool: the constraint prompt."""
        windows = (self.closing.isfinite() | (self.opening > 0)).any(1)
        has = {"B": self.backhaul, "L": self.limit.isfinite(), "O": self.open, "TW": windows}
        return torch.stack([has[flag] for flag in FLAGS], 1)

    # -- what every step needs and no step changes

    @cached_property
    def latest(self) -> Tensor:
        """When to be at a node at the latest, to serve it and be back at depot m in time, (B, M, n)."""
        m = self.num_depots
        home = self.closing[:, :m, None] - self.duration[:, :, :m].mT - self.service[:, None]
        latest = torch.minimum(self.closing[:, None], home.where(~self.open[:, None, None], torch.inf))
        never = self.opening[:, None] > latest
        if self.blocked is not None:
            never = never | (self.blocked[:, :, :m].mT & ~self.open[:, None, None])
        return latest.masked_fill(never, -torch.inf)

    @cached_property
    def farthest(self) -> Tensor:
        """How long a route from depot m may be on arrival at a node, to keep the limit, (B, M, n)."""
        back = self.distance[:, :, : self.num_depots].mT * ~self.open[:, None, None]
        return (self.limit[:, None, None] - self.counted_service[:, None] - back).contiguous()

    @cached_property
    def longest_trip(self) -> Tensor:
        """The length of the longest way from a depot to a customer and back, (B,)."""
        m = self.num_depots
        return (self.distance[:, :m, m:] + self.distance[:, m:, :m].mT).amax((1, 2))

    @cached_property
    def vehicle_shares(self) -> Tensor:
        """The least share of a vehicle that each customer takes, (B, n, 3): of its load as a delivery and as
        a pickup, and of its day or of the limit on its length, whichever is more. Open routes have no day."""
        itself = torch.eye(self.num_nodes, dtype=torch.bool, device=self.device)
        hidden = itself if self.padding is None else itself | self.padding[..., None]
        closing, opening = self.closing[:, : self.num_depots], self.opening[:, : self.num_depots]
        if self.padding is not None:
            absent = self.padding[:, : self.num_depots]
            closing, opening = closing.masked_fill(absent, -torch.inf), opening.masked_fill(absent, torch.inf)
        day = closing.amax(1, keepdim=True) - opening.amin(1, keepdim=True)
        day = day.masked_fill(self.open[:, None], torch.inf)
        shares = [
            (service + legs.masked_fill(hidden, torch.inf).amin(1)) / most
            for service, legs, most in (
                (self.service, self.duration, day),
                (self.counted_service, self.distance, self.limit[:, None]),
            )
        ]
        busy = torch.maximum(*shares)
        busy = busy.masked_fill(~busy.isfinite(), 0.0)  # padding, and depots closed at once
        return torch.stack([self.delivery, self.pickup, busy], -1)

    @cached_property
    def visits(self) -> Tensor:
        """Opening, service, counted service, delivery and pickup of each node, (B, n, 5)."""
        columns = (self.opening, self.service, self.counted_service, self.delivery, self.pickup)
        return torch.stack(columns, -1)

    @cached_property
    def first_visits(self) -> Tensor:
        """Which customers a route from their start depot can reach and serve, (B, n) bool."""
        depot = self.start_depot[:, None]  # (B, 1, n)

        def of_start(matrix: Tensor) -> Tensor:
            return matrix.gather(1, depot).squeeze(1)

        arrival = self.opening.gather(1, self.start_depot) + of_start(self.duration)
        legal = (arrival <= of_start(self.latest)) & (of_start(self.distance) <= of_start(self.farthest))
        return legal if self.blocked is None else legal & ~of_start(self.blocked)

    def map(self, change: Callable[[Tensor], Tensor]) -> ProblemBatch:
        """Every tensor changed; tensors that were one stay one."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        new: dict[str, Any] = {k: change(v) for k, v in values.items() if isinstance(v, Tensor)}
        if self.duration is self.distance:
            new["duration"] = new["distance"]
        return replace(self, **new)

    def to(self, device: torch.device | str) -> ProblemBatch:
        return self.map(lambda t: t.to(device))

    def __getitem__(self, instances: slice | Tensor) -> ProblemBatch:
        return self.map(lambda t: t[instances])

    def pick(self, instances: list[int]) -> ProblemBatch:
        """These instances alone; the batch itself if they are all."""
        return self if instances == list(range(self.size)) else self.map(lambda t: t[instances])


def from_problems(
    problems: Sequence[Problem], rules: Rules = Rules.EXACT, device: torch.device | str = "cpu"
) -> ProblemBatch:
    """Problems of any size and variant as one padded batch of float64 tensors on a device, which measures the
    distances itself where it is fast and they are straight lines."""
    for problem in problems:
        require_known("the network", problem, ())
    depots, customers = max(p.num_depots for p in problems), max(p.num_customers for p in problems)
    padded = any((p.num_depots, p.num_customers) != (depots, customers) for p in problems)
    # Where the locations of each problem stand among the nodes of a padded batch.
    places = [np.r_[p.depots, depots : depots + p.num_customers] for p in problems] if padded else []
    units = [_Units(p) for p in problems]

    def vectors(values: Sequence[FloatArray]) -> FloatArray:
        """Values (n, ...) of the locations of each problem as one array, zero where there is padding."""
        if not padded:
            return np.stack(values)
        array = np.zeros((len(problems), depots + customers, *values[0].shape[1:]))
        for row, at, own in zip(array, places, values, strict=True):
            row[at] = own
        return array

    def squares(values: Sequence[FloatArray]) -> FloatArray:
        """The same of values (n, n) of pairs of locations."""
        if not padded:
            return np.stack(values)
        array = np.zeros((len(problems), depots + customers, depots + customers))
        for row, at, own in zip(array, places, values, strict=True):
            row[at[:, None], at] = own
        return array

    def factors(name: str) -> FloatArray:
        return np.array([[getattr(u, name)] for u in units], dtype=np.float64)

    def tensor(values: FloatArray | list[bool]) -> Tensor:
        return torch.as_tensor(values, device=device)

    def flag(value: Callable[[Problem], bool]) -> Tensor:
        return tensor([value(p) for p in problems])

    # What none of the problems has is left out.
    length, time, load, epoch = map(factors, ("length", "time", "load", "epoch"))
    given: dict[str, FloatArray] = {}
    if any(p.duration_matrix is not None for p in problems):
        given["duration"] = squares([u.durations for u in units]) * time[..., None]
    if any(p.backhaul is not Backhaul.NONE for p in problems):
        given["pickup"] = vectors([p.pickups for p in problems]) / load
    if any(p.time_windows is not None for p in problems):
        opening, closing = np.moveaxis(vectors([p.windows for p in problems]), -1, 0)
        slack = np.array([[bool(p.time_slack)] for p in problems])
        given["opening"] = (opening - epoch) * time
        given["closing"] = (_stretched(closing, slack, epoch) - epoch) * time
    if any(p.service.any() for p in problems):
        service = vectors([p.services for p in problems])
        given["service"] = service * time
        given["counted_service"] = service * length * [[p.limit_counts_service] for p in problems]
    if any(p.distance_limit is not None for p in problems):
        limit = np.array([p.distance_limit or np.inf for p in problems])
        given["limit"] = _stretched(limit, np.array([bool(p.length_slack) for p in problems])) * length[:, 0]
    if any(p.vehicles is not None for p in problems):
        given["fleet"] = np.array(
            [np.inf if (count := p.vehicles) is None else float(count) for p in problems]
        )
    coords = tensor(vectors([u.coords for u in units]))
    if _is_fast(device) and all(map(_is_straight, problems)):
        distance = straight_lines(coords)
    else:
        distance = tensor(squares([u.distances for u in units]) * length[..., None])
    if not all(p.has_all_roads for p in problems):
        given["blocked"] = squares([np.isinf(p.distances) for p in problems]).astype(bool)
    if padded:
        given["padding"] = vectors([np.ones(len(at)) for at in places]) == 0
    return ProblemBatch.of(
        depots,
        coords=coords,
        distance=distance,
        delivery=tensor(vectors([p.deliveries for p in problems]) / load),
        open=flag(lambda p: p.open),
        backhaul=flag(lambda p: p.backhaul is not Backhaul.NONE),
        mixed=flag(lambda p: p.backhaul is Backhaul.MIXED),
        rules=rules,
        **{name: tensor(values) for name, values in given.items()},
    )


def straight_lines(coords: Tensor) -> Tensor:
    """The distances between all nodes of each instance, (B, n, n), from their coordinates (B, n, 2)."""
    distances: Tensor = torch.linalg.vector_norm(coords[:, :, None] - coords[:, None], dim=-1)
    return distances


def _is_fast(device: torch.device | str) -> bool:
    """Whether a device measures a batch sooner than this process measures its problems."""
    return torch.device(device).type != "cpu"


def _is_straight(p: Problem) -> bool:
    """Whether distances, and with them travel times, are those of coordinates, not rounded."""
    given = p.distance_matrix is not None or p.duration_matrix is not None
    return not given and p.metric is Metric.EUCLIDEAN and p.rounding is Rounding.EXACT


def _stretched(bound: FloatArray, slack: NDArray[np.bool_], epoch: FloatArray | float = 0.0) -> FloatArray:
    """Upper bounds on times or lengths with half of the slack that the judge gives them, where it does.

    Whole numbers it judges exactly: between two of them there is room for rounding errors, also of what is
    counted from the epoch.
    """
    size = np.abs(bound)
    room = np.clip(SLACK / 2 * (size + np.abs(epoch)), 1e-6, 0.5)
    return np.asarray(bound + np.where(slack, SLACK / 2 * size, room))


class _Units:
    """How one problem's numbers become the policy's: one factor for both axes, and time in distances."""

    def __init__(self, p: Problem):
        self.problem = p
        coords = layout(self.distances) if p.coords is None else planar(p.metric, p.coords)
        coords = coords - coords.min(axis=0)
        extent = float(coords.max()) or 1.0
        self.coords = coords / extent
        self.length = 1 / extent
        if p.distance_matrix is not None:  # it may be in other units than the coordinates
            x, y = self.coords.T
            apart = np.hypot(x[:, None] - x, y[:, None] - y)
            self.length = _typical(apart) / _typical(self.distances)
        self.time = self.length
        if p.duration_matrix is not None:
            self.time *= _typical(self.distances) / _typical(self.durations)
        self.load = p.capacity
        if not p.load_slack:  # the slack of the mask, a share, is to be less than a unit
            self.load = min(p.capacity, (p.capacity + 0.5) / (1 + LOAD_SLACK / 2))
        # When the first depot opens.
        self.epoch = 0.0 if p.time_windows is None else p.time_windows[: p.num_depots, 0].min()

    # Where there is no road, the network sees a way round; the mask knows.

    @cached_property
    def distances(self) -> FloatArray:
        p = self.problem
        return p.distances if p.has_all_roads else with_detours(p.distances, p.num_depots)

    @cached_property
    def durations(self) -> FloatArray:
        p = self.problem
        if p.durations is p.distances:
            return self.distances
        return p.durations if p.has_all_roads else with_detours(p.durations, p.num_depots)


def _typical(distances: FloatArray) -> float:
    """The median, which a few very long roads do not move."""
    return float(np.median(distances)) or float(distances.mean()) or 1.0


def start_depots(batch: ProblemBatch) -> Tensor:
    """For each node, the nearest depot from which a route to it alone keeps windows and limit, (B, n)."""
    m = batch.num_depots
    if m == 1:
        return torch.zeros_like(batch.delivery, dtype=torch.long)
    go, back = batch.distance[:, :m], batch.distance[:, :, :m].mT  # (B, M, n)
    begin = torch.maximum(batch.opening[:, :m, None] + batch.duration[:, :m], batch.opening[:, None])
    home = begin + batch.service[:, None] + batch.duration[:, :, :m].mT
    closed = ~batch.open[:, None, None]
    length = go + batch.counted_service[:, None] + back * closed
    late = (begin > batch.closing[:, None]) | (closed & (home > batch.closing[:, :m, None]))
    bad = late | (length > batch.limit[:, None, None])
    if batch.blocked is not None:
        bad |= batch.blocked[:, :m] | (batch.blocked[:, :, :m].mT & closed)
    if batch.padding is not None:
        bad |= batch.padding[:, :m, None]
        go = go.masked_fill(batch.padding[:, :m, None], torch.inf)
    none_good = bad.all(1, keepdim=True)  # then the nearest at all
    return go.masked_fill(bad & ~none_good, torch.inf).argmin(1)
