"""The wide law: problems as people have them. Every instance draws its own character.

Places, demands and route lengths are those of Uchoa et al.'s set X (2017), widened; windows are those of
Solomon's sets (1987), whose densities, widths, horizons and services lie inside the ranges below; half
of the instances follow the paper's law. Lengths are in units of the longer side of the map, times in units of
distance, and how many stops fit into a day, or under a limit, does not depend on the size.

`draw` maps uniform random numbers to instances. It is written once, for NumPy arrays and for tensors alike
(`xp` is either module), with the same work for every instance and no look at a value, so that a GPU can
capture it: `neural/env` draws training data with it, `generate` makes problems.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from chainroute.generate import paper
from chainroute.problem import Problem
from chainroute.problem.variants import VARIANTS, Backhaul, Variant

PAPER_SHARE = 0.5  # of the instances, that follow the paper's law

# -- places
DEPOTS = (2, 8)  # of an instance with several
CLUSTERS = (3, 12)
DECAY = (0.02, 0.08)  # the density around a cluster's centre falls with exp(-distance / decay)
STRIPS = 100.0  # more than a cluster has
NARROWEST = 0.3  # width of a map whose length is 1; half of the maps are square

# -- roads
ROAD_SHARE = 0.3  # of the instances, whose ways are not straight
TRAFFIC = 0.2  # a way is longer by up to this share, drawn for each direction
ONE_WAY = 0.5  # detour, at most, of leaving or arriving against a one-way street, in mean hops
SLOW_SHARE = 0.5  # of the instances with roads, where durations are not in proportion to distances
SLOW = 0.4  # how much slower or faster the surroundings of a place are, at most

# -- demand: lowest and highest of most customers and of the others, who are in two of the quarters of the map
# (sixth law) or a share between 5 and 30 % (seventh law).
DEMANDS = (
    (1, 1, 1, 1), (1, 10, 1, 10), (5, 10, 5, 10), (1, 100, 1, 100), (50, 100, 50, 100),
    (1, 50, 51, 100), (1, 10, 50, 100),
)  # fmt: skip
BY_QUARTER, FEW_LARGE = 5, 6  # rows of DEMANDS
LARGE_SHARE = (0.05, 0.3)
ROUTE = (3, 6, 25)  # customers that fill a vehicle: triangular, least, likeliest and most
LONG_SHARE = 0.3  # of the instances, with longer routes: larger vehicles and longer days
LONG_ROUTE = (25, 80)
BACKHAUL_SHARE = (0.1, 0.5)
BOTH_SHARE = 0.3  # of the mixed instances, where every customer receives and hands over

# -- windows and limits
STOPS = (2, 60)  # in a day or under a limit, beside the longest round trip
MOST_STOPS = (
    0.6  # of the customers, where that is more: the longest days of Solomon's sets have time for them
)
WIDTH = (0.02, 0.8)  # mean width of a window, in days
VARIATION = 0.8  # of widths and services around their mean, at most
PLANNED_SHARE = 0.25  # of the instances, whose windows follow a plan of routes, as those of Solomon's C
NO_SERVICE = 0.2  # share of the instances without service times
SERVICE = (0.02, 1.0)
COUNTED_SHARE = 0.5  # of the limited instances, where service counts towards the limit

# -- fleets
FLEET_SHARE = 0.5  # of the instances, that have one; half of these are tight, half ample
TIGHT, AMPLE = (1.0, 1.25), (1.5, 2.5)  # vehicles, in units of those that are needed by an estimate
HOP_TIME = 1.2  # from stop to stop, in mean hops, in that estimate
WAITING = 1.0  # how much longer routes take where everyone has a window of no width

PER_INSTANCE, PER_CUSTOMER = 32, 14  # random numbers


def hop(n: int) -> float:
    """The mean distance between neighbours on the shortest tour of n places in the unit square."""
    return 0.7124 / math.sqrt(n)


# -- uniform random numbers between 0 and 1 as other ones


def between(low: float, high: float, u: Any) -> Any:
    return low + (high - low) * u


def log_between(low: float, high: float, u: Any) -> Any:
    """Evenly spread logarithms: half of the numbers lie below the geometric mean."""
    return low * (high / low) ** u


def whole(xp: ModuleType, low: int, high: int, u: Any) -> Any:
    """Whole numbers from low to high, both included."""
    return xp.floor(between(low, high + 1, u))


def triangular(xp: ModuleType, least: float, likeliest: float, most: float, u: Any) -> Any:
    rise, fall, span = likeliest - least, most - likeliest, most - least
    return xp.where(u < rise / span, least + (u * span * rise) ** 0.5, most - ((1 - u) * span * fall) ** 0.5)


@dataclass(frozen=True)
class Chance:
    """Uniform random numbers between 0 and 1, of which instances are made."""

    instance: Any  # (B, PER_INSTANCE)
    customer: Any  # (B, n, PER_CUSTOMER)
    location: Any  # (B, M + n, 4)
    pair: Any  # (B, M + n, M + n)
    centre: Any  # (B, most clusters, 2)

    @staticmethod
    def of(uniform: Callable[[tuple[int, ...]], Any], count: int, depots: int, n: int) -> Chance:
        """Drawn by a function from a shape to numbers."""
        return Chance(
            uniform((count, PER_INSTANCE)),
            uniform((count, n, PER_CUSTOMER)),
            uniform((count, depots + n, 4)),
            uniform((count, depots + n, depots + n)),
            uniform((count, CLUSTERS[1], 2)),
        )


@dataclass(frozen=True)
class DrawnVariants:
    """The variant of each instance, (B,) bool each."""

    backhaul: Any
    mixed: Any
    limit: Any
    open: Any
    windows: Any
    several: Any


@dataclass(frozen=True)
class Instances:
    """What was drawn. Locations are the depots, padded to M, and then the customers."""

    padding: Any  # (B, M) bool: depots that an instance does not have
    coords: Any  # (B, M + n, 2)
    distance: Any  # (B, M + n, M + n) from row to column
    duration: Any  # likewise
    roads: Any  # (B,) bool: distances are not those of the coordinates
    slow: Any  # (B,) bool: durations are not the distances
    capacity: Any  # (B,)
    delivery: Any  # (B, n) whole numbers
    pickup: Any  # (B, n) likewise
    opening: Any  # (B, n)
    closing: Any  # (B, n) infinite where there are no windows
    day: Any  # (B,) when depots close; infinite where there are no windows
    service: Any  # (B, n)
    counted: Any  # (B,) bool: service counts towards the limit
    limit: Any  # (B,) infinite where there is none
    fleet: Any  # (B,) vehicles of each depot; infinite where there is no fleet


class _Drawing:
    """A batch in the making: hands out the random numbers one after the other."""

    def __init__(self, xp: ModuleType, chance: Chance, kind: DrawnVariants):
        self.xp, self.chance, self.kind = xp, chance, kind
        self.ones = iter(range(PER_INSTANCE))
        self.each = iter(range(PER_CUSTOMER))
        self.paper = self.instance() < PAPER_SHARE  # (B,) bool

    def instance(self) -> Any:
        """The next number of each instance, (B,)."""
        return self.chance.instance[:, next(self.ones)]

    def customer(self) -> Any:
        """The next number of each customer, (B, n)."""
        return self.chance.customer[..., next(self.each)]

    def pick(self, usual: Any, of_paper: Any) -> Any:
        """The number of each instance by the law that it follows."""
        return self.xp.where(self.paper if usual.ndim == 1 else self.paper[:, None], of_paper, usual)

    def varied(self) -> Any:
        """Factors around 1 for the customers, (B, n), which vary as much as suits the instance."""
        vary = VARIATION * self.instance()
        return 1 + vary[:, None] * (2 * self.customer() - 1)


def draw(xp: ModuleType, chance: Chance, kind: DrawnVariants, demands: Any) -> Instances:
    """Instances of these kinds; the random numbers say how many, and their size. `demands` is DEMANDS."""
    drawing = _Drawing(xp, chance, kind)
    n = chance.customer.shape[1]
    m = chance.location.shape[1] - n
    pick = drawing.pick
    depots = xp.where(kind.several, pick(whole(xp, *DEPOTS, drawing.instance()), paper.DEPOTS), 1.0)
    padding = xp.cumsum(xp.ones_like(chance.location[:, :m, 0]), 1) > depots[:, None]
    coords, sweep = _places(drawing, padding)
    distance, duration, roads, slow = _roads(drawing, coords, hop(n))

    # From home and back, in distance and in time. Home is the nearest depot, in the paper's law the first.
    far = xp.where(padding[..., None], xp.inf, distance[:, :m, m:])
    far[:, 1:] = xp.where(drawing.paper[:, None, None], xp.inf, far[:, 1:])
    home = xp.argmin(far, 1)[:, None]
    go, go_time = (_along(xp, x[:, :m, m:], home)[:, 0] for x in (distance, duration))
    back, back_time = (_along(xp, x[:, m:, :m].mT, home)[:, 0] for x in (distance, duration))

    capacity, delivery, pickup, long = _goods(drawing, coords[:, m:], demands)
    load = xp.clip(xp.sum(delivery, 1), min=xp.sum(pickup, 1)) / capacity

    # Service, and how much of a day or of a limit a stop takes.
    level = drawing.instance()
    mean = xp.where(level < NO_SERVICE, 0.0, log_between(*SERVICE, (level - NO_SERVICE) / (1 - NO_SERVICE)))
    service = pick(mean[:, None] * drawing.varied(), between(*paper.SERVICE, drawing.customer()))
    counted = (drawing.instance() < COUNTED_SHARE) & kind.limit & ~drawing.paper
    service = service * (kind.windows | counted)[:, None]
    times, stop = (go_time, back_time, service), hop(n) + mean
    day, opening, closing, late = _windows(drawing, times, stop, _stops(drawing, long, n), n / load, sweep)

    trip = go + back + service * counted[:, None]
    longest = xp.amax(trip, 1) * (1 + paper.LIMIT_MARGIN)
    usual = longest + _stops(drawing, long, n) * (hop(n) + mean * counted)
    least = 2 * xp.amax(distance[:, 0], 1) + paper.LIMIT_MARGIN
    most = xp.clip(least + paper.LIMIT_MARGIN, min=paper.MAX_LIMIT)
    limit = pick(usual, between(least, most, drawing.instance()))

    # A fleet, from how many vehicles are needed for the load, the time and the limit.
    spent = xp.sum(service, 1) + n * HOP_TIME * hop(n)
    by_time = spent * (1 + WAITING * late) / xp.clip(day - xp.mean(go_time + back_time, 1), min=1e-3)
    counted_spent = spent - xp.sum(service, 1) * ~counted
    by_limit = counted_spent / xp.clip(limit - xp.mean(go + back, 1), min=1e-3)
    needed = xp.clip(xp.clip(load, min=by_time * kind.windows), min=by_limit * kind.limit)
    which, size = drawing.instance() / FLEET_SHARE, drawing.instance()
    vehicles = xp.ceil(needed * xp.where(which < 0.5, between(*TIGHT, size), between(*AMPLE, size)))
    has_fleet = (which < 1) & ~drawing.paper
    return Instances(
        padding=padding,
        coords=coords,
        distance=distance,
        duration=duration,
        roads=roads,
        slow=slow,
        capacity=capacity,
        delivery=delivery,
        pickup=pickup,
        opening=opening,
        closing=closing,
        day=xp.where(kind.windows, day, xp.inf),
        service=service,
        counted=counted,
        limit=xp.where(kind.limit, limit, xp.inf),
        fleet=xp.where(has_fleet, xp.ceil(vehicles / depots), xp.inf),
    )


def _places(drawing: _Drawing, padding: Any) -> tuple[Any, Any]:
    """Coordinates (B, M + n, 2), and numbers (B, n) in whose order a sweep would come to the customers.

    Padding lies where the first depot does. The sweep goes round the depot to those of no cluster, and then
    through the clusters, up and down in strips that are one decay wide.
    """
    xp, chance, m = drawing.xp, drawing.chance, padding.shape[1]
    uniform = chance.location[..., :2]
    share = 0.5 * ((1 + whole(xp, 0, 2, drawing.instance())) % 3)  # none, half or all
    clustered = (drawing.customer() < share[:, None]) & ~drawing.paper[:, None]
    count = whole(xp, *CLUSTERS, drawing.instance())
    cluster = xp.floor(drawing.customer() * count[:, None])
    at = _along(xp, chance.centre, xp.stack([cluster, cluster], -1))
    decay = log_between(*DECAY, drawing.instance())[:, None]
    radius = -decay * xp.log((1 - drawing.customer()) * (1 - drawing.customer()))
    angle = 2 * math.pi * drawing.customer()
    across, up = radius * xp.cos(angle), radius * xp.sin(angle)
    strip = xp.floor(across / decay)
    along = 0.5 + up * (0.5 - strip % 2)  # clusters are less than one long
    around = at + xp.stack([across, up], -1)
    around = 1 - xp.abs(1 - around % 2)  # what falls off the map is reflected
    customers = xp.where(clustered[..., None], around, uniform[:, m:])

    # One depot lies in the centre, in a corner or anywhere, several lie anywhere.
    place, first = whole(xp, 0, 2, drawing.instance()), uniform[:, :1]
    fixed = (place > 0) & ~drawing.kind.several & ~drawing.paper
    first = xp.where(fixed[:, None, None], 0.5 * (place == 1)[:, None, None], first)
    depots = xp.where(padding[..., None], first, uniform[:, :m])
    depots[:, :1] = first
    coords = xp.concatenate([depots, customers], 1)

    # Half of the maps are square; the longer side of every one is 1.
    width = 1 - 2 * (1 - NARROWEST) * xp.clip(drawing.instance() - 0.5, min=0.0)
    lies = drawing.instance() < 0.5
    sides = xp.stack([xp.where(lies, 1.0, width), xp.where(lies, width, 1.0)], -1)[:, None]
    coords = coords * xp.where(drawing.paper[:, None, None], 1.0, sides)
    low = xp.amin(coords, 1)
    extent = xp.amax(xp.amax(coords, 1) - low, 1)
    moved = (coords - low[:, None]) / extent[:, None, None]
    coords = xp.where(drawing.paper[:, None, None], coords, moved)

    dx, dy = (coords[:, m:, i] - coords[:, :1, i] for i in (0, 1))
    turn = xp.arctan2(dy, dx) / (2 * math.pi)
    return coords, xp.where(clustered, STRIPS * (cluster + 1) + strip + along, turn)


def _roads(drawing: _Drawing, coords: Any, mean_hop: float) -> tuple[Any, Any, Any, Any]:
    """Distances and durations (B, M + n, M + n); which instances have roads, and places that are slow.

    Ways lie between the straight line and a grid of streets, turned by some angle. Every place is on a
    one-way street with some heading: who leaves or arrives against it drives round the block. Distances are
    scaled so that they are as long, in all, as straight ones.
    """
    xp, pair, location = drawing.xp, drawing.chance.pair, drawing.chance.location
    roads = (drawing.instance() < ROAD_SHARE) & ~drawing.paper
    grid = (drawing.instance() * roads)[:, None, None]
    turn = math.pi / 2 * drawing.instance()
    traffic = (TRAFFIC * drawing.instance() * roads)[:, None, None]
    block = (ONE_WAY * mean_hop * drawing.instance() * roads)[:, None, None]
    heading = 2 * math.pi * location[..., 2]

    x, y = coords[..., 0], coords[..., 1]
    dx, dy = x[:, None] - x[..., None], y[:, None] - y[..., None]  # from row to column
    straight = (dx * dx + dy * dy) ** 0.5
    cos, sin = (f(turn)[:, None, None] for f in (xp.cos, xp.sin))
    streets = xp.abs(dx * cos + dy * sin) + xp.abs(dy * cos - dx * sin)
    east, north = xp.cos(heading), xp.sin(heading)
    along = dx * (east[:, None] + east[..., None]) + dy * (north[:, None] + north[..., None])
    against = 1 - 0.5 * along / xp.clip(straight, min=1e-9)
    ways = (straight + grid * (streets - straight)) * (1 + traffic * pair)
    ways = ways + block * xp.where(straight > 0, against, 0.0)
    ways = ways * (xp.sum(straight, (1, 2)) / xp.sum(ways, (1, 2)))[:, None, None]
    distance = xp.where(roads[:, None, None], ways, straight)

    slow = (drawing.instance() < SLOW_SHARE) & roads
    pace = 1 + SLOW * (2 * location[..., 3] - 1) * slow[:, None]
    return distance, distance * (0.5 * (pace[:, None] + pace[..., None])), roads, slow


def _goods(drawing: _Drawing, places: Any, demands: Any) -> tuple[Any, Any, Any, Any]:
    """The capacity (B,), what customers receive and hand over, (B, n) each, and if routes are long, (B,)."""
    xp, kind = drawing.xp, drawing.kind
    law = whole(xp, 0, len(DEMANDS) - 1, drawing.instance())
    row = _along(xp, demands, xp.stack([law] * 4, -1))  # (B, 4)
    quarter = (places[..., 0] < 0.5) == (places[..., 1] < 0.5)
    few = drawing.customer() < between(*LARGE_SHARE, drawing.instance())[:, None]
    other = xp.where(law[:, None] == BY_QUARTER, quarter, few)
    low, high = (
        drawing.pick(xp.where(other, row[:, i + 2, None], row[:, i, None]), end)
        for i, end in enumerate((paper.DEMAND[0], paper.DEMAND[1] - 1))
    )
    amount = xp.floor(low + (high + 1 - low) * drawing.customer())

    per_route = triangular(xp, *ROUTE, drawing.instance())
    long = drawing.instance() / LONG_SHARE
    per_route = xp.where(long < 1, between(*LONG_ROUTE, long), per_route)
    usual = xp.clip(xp.ceil(per_route * xp.mean(amount, 1)), min=xp.amax(amount, 1))
    capacity = drawing.pick(usual, paper.capacity(amount.shape[1]))

    share = drawing.pick(between(*BACKHAUL_SHARE, drawing.instance()), paper.BACKHAUL_SHARE)
    part = drawing.customer()
    returns = (part < share[:, None]) & kind.backhaul[:, None]
    both = (drawing.instance() < BOTH_SHARE) & kind.mixed & ~drawing.paper
    delivery = xp.where(both[:, None], xp.floor(amount * part + 0.5), amount * ~returns)
    return capacity, delivery, amount - delivery, long < 1


def _stops(drawing: _Drawing, long: Any, n: int) -> Any:
    """How many fit into a day, or under a limit, beside the longest round trip, (B,)."""
    least, most, u = STOPS[0], max(STOPS[1], MOST_STOPS * n), drawing.instance()
    return drawing.xp.where(long, log_between(LONG_ROUTE[0], most, u), log_between(least, most, u))


def _windows(
    drawing: _Drawing, times: tuple[Any, Any, Any], stop: Any, stops: Any, fill: Any, sweep: Any
) -> tuple[Any, Any, Any, Any]:
    """When the depots close, (B,), the windows of the customers, (B, n) each, and how tight they are, (B,).

    A customer can be served in its window by a vehicle of its own. `times` are the ways to it and home and
    its service, `stop` is what a stop takes on average, (B,); so many `stops` fit into a day, and so many
    customers `fill` a vehicle. `sweep` is the order of a plan.
    """
    xp, kind, pick = drawing.xp, drawing.kind, drawing.pick
    go, back, service = times
    day = pick(xp.amax(go + back + service, 1) + stops * stop, paper.HORIZON)
    share = log_between(*WIDTH, drawing.instance())
    width = pick((share * day)[:, None] * drawing.varied(), between(*paper.WINDOW_SPAN, drawing.customer()))
    density = pick(0.25 * whole(xp, 1, 4, drawing.instance()), 1.0)
    given = drawing.customer()
    has_window = given < density[:, None]

    # Where a plan made the windows: customers in the order of the sweep, cut into routes.
    rank = xp.argsort(xp.argsort(sweep, 1), 1)
    per_route = xp.floor(xp.minimum(stops, xp.clip(fill, min=1.0)))[:, None]
    planned = (rank % per_route + 0.5) / per_route
    by_plan = (drawing.instance() < PLANNED_SHARE) & ~drawing.paper
    when = xp.where(by_plan[:, None], planned, drawing.customer())

    # The paper draws the opening, others draw the middle of the window.
    latest = day[:, None] - service - back
    whole_width = drawing.pick(0 * width, width)
    begin = go + when * (latest - whole_width - go)
    opening = begin - 0.5 * (width - whole_width)
    closing = xp.where(has_window, xp.clip(opening + width, max=latest), day[:, None])
    opening = xp.where(has_window, xp.clip(opening, min=0.0), 0.0)
    late = density * xp.clip(1 - share, min=0.0)
    some = kind.windows[:, None]
    return day, xp.where(some, opening, 0.0), xp.where(some, closing, xp.inf), late


def _along(xp: ModuleType, values: Any, index: Any) -> Any:
    """values[index[i, j, ..], j, ..] along the first axis of tables, the second of batches of them."""
    axis = 0 if values.ndim == 2 else 1
    if xp is np:
        return np.take_along_axis(values, index.astype(np.intp), axis)
    return xp.take_along_dim(values, index.long(), axis)


# -- problems


def generate(variant: Variant, n: int, count: int, seed: int) -> list[Problem]:
    """`count` problems of a variant, in the units of the map."""
    paper.require_options(n, DEPOTS[1] if variant.multi_depot else 1, count, seed)
    rng = np.random.default_rng([seed, VARIANTS.index(variant), 1])
    kind = DrawnVariants(
        *(
            np.full(count, flag)
            for flag in (
                variant.backhaul is not Backhaul.NONE,
                variant.backhaul is Backhaul.MIXED,
                variant.limit,
                variant.open,
                variant.time_windows,
                variant.multi_depot,
            )
        )
    )
    m = DEPOTS[1] if variant.multi_depot else 1
    drawn = draw(np, Chance.of(rng.random, count, m, n), kind, np.array(DEMANDS, float))
    name = f"{variant}-n{n}-wide-seed{seed}"
    return [_problem(drawn, i, m, variant, name if count == 1 else f"{name}[{i}]") for i in range(count)]


def _problem(drawn: Instances, i: int, m: int, variant: Variant, name: str) -> Problem:
    depots = int((~drawn.padding[i]).sum())
    own = np.r_[np.arange(depots), m : drawn.coords.shape[1]]
    roads, fleet = bool(drawn.roads[i]), float(drawn.fleet[i])
    windows = np.zeros((len(own), 2))
    windows[:depots, 1] = drawn.day[i]
    windows[depots:] = np.stack([drawn.opening[i], drawn.closing[i]], -1)
    return Problem(
        name=name,
        num_depots=depots,
        coords=drawn.coords[i][own],
        distance_matrix=drawn.distance[i][np.ix_(own, own)] if roads else None,
        duration_matrix=drawn.duration[i][np.ix_(own, own)] if drawn.slow[i] else None,
        capacity=float(drawn.capacity[i]),
        delivery=drawn.delivery[i],
        pickup=drawn.pickup[i],
        service=drawn.service[i],
        time_windows=windows if variant.time_windows else None,
        distance_limit=float(drawn.limit[i]) if variant.limit else None,
        limit_counts_service=bool(drawn.counted[i]),
        open=variant.open,
        backhaul=variant.backhaul,
        fleet=int(fleet) if math.isfinite(fleet) else None,
    )
