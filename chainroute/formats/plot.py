"""Pictures: where the customers are, who visits them, when, and with what load.

Beside the map stand panels with one lane per customer, in the order of the routes, so that a lane reads
across: when the customer is served (where there are time windows) and what the vehicle carries on leaving.
A problem without coordinates is laid out from its distances by classical multidimensional scaling.
"""

from __future__ import annotations

import colorsys
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chainroute.errors import fail
from chainroute.plan.solution import Route, RouteFacts, Solution, Stop
from chainroute.problem import Problem
from chainroute.problem.measure import FloatArray, at_most, layout, planar
from chainroute.problem.roads import with_detours
from chainroute.runtime.extras import loading
from chainroute.runtime.files import save
from chainroute.runtime.numerals import number_text

SUFFIXES = (".png", ".svg", ".pdf")
LABELLED_CUSTOMERS = 60  # customers up to which each is labelled
OWN_LANE_CUSTOMERS = 120  # customers up to which each has a lane of its own
MOST_TICKS = 8  # of an axis of times of the day
TICK_SECONDS = (60, 300, 900, 1800, 3600, 7200, 14_400, 21_600, 43_200, 86_400)  # between two of them
CURVE_ROUTES = 60  # routes up to which a lane that is shared is high enough for a curve

INK, GREY, PALE, ALARM = "#22303c", "#8a97a3", "#e3e8ed", "#d4202a"
DELIVERY, PICKUP = "#2f6fb5", "#e07b28"
PALETTE = (
    *("#2f6fb5", "#e07b28", "#3a9150", "#c2456b", "#7d5ab5", "#8c5f4c"),
    *("#1f9fb3", "#a8961c", "#d560c4", "#1d3f72", "#6f9d2f", "#5f6b76"),
)
STYLE: dict[Any, Any] = {
    "font.size": 8,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": GREY,
    "axes.linewidth": 0.6,
    "axes.titlesize": 9,
    "xtick.color": GREY,
    "xtick.labelcolor": INK,
    "xtick.labelsize": 7,
    "ytick.labelcolor": INK,
    "hatch.linewidth": 0.6,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "text.parse_math": False,  # a dollar in a name is a dollar
    "svg.hashsalt": "chainroute",  # the same picture is the same file
}
Axes = Any  # matplotlib is imported late


@dataclass(frozen=True)
class _Lane:
    """A row of the panels: a customer, or the depot at which a route starts."""

    y: int
    location: int
    colour: str
    load: float  # on leaving; without routes, the demand
    capacity: float  # of the vehicle; without routes, of the largest
    route: RouteFacts | None = None  # at a depot
    ends_by: float = math.inf  # when the route has to be over
    stop: Stop | None = None  # at a customer on a route

    @property
    def left_at(self) -> float:
        return self.stop.departure if self.stop else self.route.start if self.route else 0.0


def draw(problem: Problem, path: str | Path, solution: Solution | None = None) -> Path:
    """Writes a picture of the problem, and of the routes where a solution is given, as PNG, SVG or PDF."""
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise fail("bad-option", f"'{path.name}' does not end in {', '.join(SUFFIXES)}.", "plot")
    require()
    import matplotlib

    undated = {".png": {}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}[suffix]
    data = io.BytesIO()
    with matplotlib.rc_context(STYLE):
        _figure(problem, solution).savefig(data, format=suffix[1:], dpi=150, metadata=undated)
    save(path, data.getvalue())
    return path


def require() -> None:
    """Raises what keeps pictures from being drawn."""
    with loading("a picture", "plot"):
        import matplotlib.figure  # noqa: F401


def _figure(problem: Problem, solution: Solution | None) -> Any:
    from matplotlib.figure import Figure

    height = 7.0 if problem.num_customers <= LABELLED_CUSTOMERS else 9.0
    timed = problem.time_windows is not None
    widths = [height, height * 0.75, height * 0.35] if timed else [height, height * 0.45]
    figure = Figure(figsize=(sum(widths), height), layout="constrained")
    chart, *panels = figure.subplots(1, len(widths), width_ratios=widths)
    lanes = _lanes(problem, solution)
    _map(chart, problem, solution, {lane.location: lane.colour for lane in lanes})
    if timed:
        _schedule(panels[0], problem, lanes)
    _loads(panels[-1], problem, lanes)
    for panel in panels:
        _frame(panel, problem, lanes, labelled=panel is panels[0])
    figure.suptitle(_title(problem, solution), x=0.01, ha="left", fontsize=11, fontweight="bold")
    return figure


def _title(problem: Problem, solution: Solution | None) -> str:
    depots = f"{problem.num_depots} depots, " if problem.num_depots > 1 else ""
    title = f"{problem.name}   {problem.kind}, {depots}{problem.num_customers} customers"
    if solution is None:
        return title
    routes = f"{len(solution.routes)} route{'s' * (len(solution.routes) != 1)}"
    return f"{title}, {routes}, cost {solution.cost:.8g}"


def _lanes(problem: Problem, solution: Solution | None) -> list[_Lane]:
    """One lane per route, and one below it per customer, in the order of visits; in a large problem customers
    share the lane of their route. Without a solution, customers stand in the order in which they open."""
    if solution is None or not solution.routes:
        demand = problem.deliveries + problem.pickups
        colours = np.where(problem.pickups > 0, PICKUP, DELIVERY)
        order = sorted(problem.customers, key=lambda c: tuple(problem.windows[c]))
        largest = max(vehicle.capacity for vehicle in problem.types)
        return [_Lane(y, c, str(colours[c]), float(demand[c]), largest) for y, c in enumerate(order)]
    shared = problem.num_customers > OWN_LANE_CUSTOMERS
    lanes: list[_Lane] = []
    y = 0
    routes = zip(solution.routes, solution.facts, _colours(len(solution.routes)), strict=True)
    for route, facts, colour in routes:
        vehicle = problem.types[route.vehicle]
        end, room = vehicle.end_of(route.depot), vehicle.capacity
        ends_by = vehicle.shift[1] if end is None else min(vehicle.shift[1], problem.windows[end, 1])
        lanes.append(_Lane(y, route.depot, colour, facts.initial_load, room, facts, ends_by))
        for stop in facts.stops:
            y += not shared
            lanes.append(_Lane(y, stop.location, colour, stop.load, room, stop=stop))
        y += 1
    return lanes


def _colours(count: int) -> list[str]:
    """One per route: a fixed palette for a few; for many, hues in golden steps with alternating lightness."""
    if count <= len(PALETTE):
        return list(PALETTE[:count])
    wheel = ((i * 0.618034 % 1, (0.34, 0.43, 0.52)[i % 3], 0.6) for i in range(count))
    return ["#{:02x}{:02x}{:02x}".format(*(round(255 * c) for c in colorsys.hls_to_rgb(*w))) for w in wheel]


# -- the map


def _map(axes: Axes, problem: Problem, solution: Solution | None, colours: dict[int, str]) -> None:
    """Circles receive, triangles hand over; the larger the demand, the larger the mark."""
    if problem.coords is None:
        places = layout(with_detours(problem.distances, problem.num_depots))
    else:
        places = planar(problem.metric, problem.coords)
    few = problem.num_customers <= LABELLED_CUSTOMERS
    demand = problem.deliveries + problem.pickups
    size = np.clip(2500 / problem.num_customers, 5, 44) * (0.5 + demand / max(demand.max(), 1e-300))
    colour = np.array([colours.get(i, GREY) for i in range(problem.num_locations)])

    def mark(chosen: NDArray[np.intp], marker: str, scale: float, face: Any, **style: Any) -> None:
        axes.scatter(
            *places[chosen].T, s=scale * size[chosen], marker=marker, c=face, linewidths=1.0, **style
        )

    customers = np.asarray(problem.customers)
    receives, hands_over = (customers[problem.pickup == 0], customers[problem.pickup > 0])
    mark(receives, "o", 1.0, colour[receives], edgecolors=colour[receives], zorder=4)
    mark(hands_over, "^", 1.4, "white", edgecolors=colour[hands_over], zorder=4)
    routes = [route for route in solution.routes if route.visits] if solution else []
    _paths(axes, problem, places, routes, [str(colour[route.visits[0]]) for route in routes])
    if problem.open and routes:
        last = np.array([route.visits[-1] for route in routes])
        mark(last, "o", 6.0, "none", edgecolors=colour[last], zorder=3)
    depot = {"marker": "s", "color": INK, "markeredgecolor": "white", "ls": "", "ms": 10 if few else 8}
    axes.plot(*places[: problem.num_depots].T, **depot, zorder=5)
    for i, name in enumerate(problem.names if few else ()):
        _label(axes, places[i], name, bold=i < problem.num_depots)

    axes.set_aspect("equal", adjustable="datalim")
    axes.margins(0.04)
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_visible(False)
    if problem.coords is None:
        axes.set_title("laid out from the distance matrix", loc="left", color=GREY)
    keys = {"depot": depot}
    if receives.size:
        keys["delivery"] = {"marker": "o", "color": GREY, "ls": "", "ms": 5}
    if hands_over.size:
        keys["pickup"] = {"marker": "^", "color": GREY, "mfc": "white", "ls": "", "ms": 6}
    if problem.open and routes:
        keys["end of an open route"] = {"marker": "o", "color": GREY, "mfc": "none", "ls": "", "ms": 9}
    handles = [axes.plot([], [], label=label, **style)[0] for label, style in keys.items()]
    axes.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=len(keys))


def _lines(axes: Axes, lines: Sequence[Any], colours: Sequence[str], **style: Any) -> None:
    from matplotlib.collections import LineCollection

    axes.add_collection(LineCollection(lines, colors=colours, capstyle="round", **style))


def _paths(
    axes: Axes, problem: Problem, places: FloatArray, routes: Sequence[Route], colours: Sequence[str]
) -> None:
    """Routes as lines, their legs to and from the depot lighter, with arrows where there is room for them."""
    few = problem.num_customers <= LABELLED_CUSTOMERS
    homes = [problem.types[route.vehicle].end_of(route.depot) for route in routes]
    ends = [
        [(route.depot, route.visits[0])] * (not problem.types[route.vehicle].open_start)
        + ([] if home is None else [(route.visits[-1], home)])
        for route, home in zip(routes, homes, strict=True)
    ]
    faint = {"linewidths": 1.0, "alpha": 0.6} if few else {"linewidths": 0.6, "alpha": 0.35}
    _lines(axes, [places[list(r.visits)] for r in routes], colours, linewidths=1.6 if few else 1.1, zorder=2)
    legs = [(leg, colour) for some, colour in zip(ends, colours, strict=True) for leg in some]
    _lines(axes, [places[list(leg)] for leg, _ in legs], [colour for _, colour in legs], zorder=1, **faint)
    for route, outer, colour in zip(routes, ends, colours, strict=True) if few else ():
        for start, end in [*pairwise(route.visits), *outer]:
            middle, step = (places[start] + places[end]) / 2, (places[end] - places[start]) / 1000
            arrow = {"arrowstyle": "-|>", "color": colour, "lw": 0, "mutation_scale": 11}
            axes.annotate("", middle + step, middle - step, arrowprops=arrow, zorder=2)


def _label(axes: Axes, place: FloatArray, text: str, bold: bool) -> None:
    style = {"fontsize": 8, "fontweight": "bold"} if bold else {"fontsize": 6.5}
    ground = {"facecolor": "white", "edgecolor": "none", "alpha": 0.7, "pad": 0.4}
    axes.annotate(text, place, (6, 5), textcoords="offset points", bbox=ground, zorder=6, **style)


# -- the panels


def _frame(axes: Axes, problem: Problem, lanes: list[_Lane], labelled: bool) -> None:
    """What all panels share: lanes from top to bottom, a line above each route, names where there is room."""
    few = problem.num_customers <= LABELLED_CUSTOMERS
    starts = [lane for lane in lanes if lane.route]
    axes.set_ylim(lanes[-1].y + 0.6, -0.6)
    axes.set_yticks([])
    axes.spines[["top", "right", "left"]].set_visible(False)
    separators = [lane.y - 0.5 for lane in starts[1:]]
    axes.hlines(separators, 0, 1, transform=axes.get_yaxis_transform(), color=PALE, lw=0.6, zorder=0)
    if labelled:
        number = {lane.y: f"route {i}" if few else str(i) for i, lane in enumerate(starts, 1)}
        shown = lanes if few else starts[:: 1 + len(starts) // 80]
        texts = [number.get(lane.y, problem.names[lane.location]) for lane in shown]
        axes.set_yticks([lane.y for lane in shown], texts, fontsize=6.5 if few else 6)
        axes.tick_params(axis="y", length=0, pad=2)
        for text, lane in zip(axes.get_yticklabels(), shown, strict=True):
            text.set(color=lane.colour, fontweight="bold") if lane.route else None


def _bars(axes: Axes, y: Any, left: Any, width: Any, height: float, colours: Any, **style: Any) -> None:
    """Horizontal bars in one collection; matplotlib's own are an artist each, which is slow for thousands."""
    from matplotlib.collections import PolyCollection

    y, left, right = np.broadcast_arrays(np.asarray(y, dtype=float), left, np.add(left, width))
    low, high = y - height / 2, y + height / 2
    corners = np.stack([np.stack(c, -1) for c in ((left, low), (right, low), (right, high), (left, high))], 1)
    axes.add_collection(PolyCollection(list(corners), facecolors=colours, linewidths=0, **style))


def _schedule(axes: Axes, problem: Problem, lanes: list[_Lane]) -> None:
    """Windows in grey, waiting pale, service solid, travel as lines from lane to lane; late is red."""
    from matplotlib.patches import Patch
    from matplotlib.ticker import MultipleLocator

    stops = [(lane, lane.stop) for lane in lanes if lane.stop]
    routes = [(lane, lane.route) for lane in lanes if lane.route]
    first = problem.windows[:, 0].min()
    ends = [*(stop.departure for _, stop in stops), *(route.end for _, route in routes)]
    last = max([*problem.windows[np.isfinite(problem.windows)], *ends])
    span = (last - first) or 1.0
    late = np.zeros(0, dtype=bool)

    own = _own_lanes(problem, lanes)
    windows = [(lane, window) for lane in own for window in problem.windows_of(lane.location)]
    opening, closing = np.minimum([window for _, window in windows], last).T
    style = {"colours": PALE} if routes else {"colours": [lane.colour for lane, _ in windows], "alpha": 0.75}
    _bars(axes, [lane.y for lane, _ in windows], opening, closing - opening, 0.8, **style, zorder=1)
    if stops:
        y = [lane.y for lane, _ in stops]
        start, waiting, service = np.array([(s.start, s.waiting, s.departure - s.start) for _, s in stops]).T
        late = ~at_most(start, problem.windows[[s.location for _, s in stops], 1], problem.time_slack)
        colours = [ALARM if bad else lane.colour for bad, (lane, _) in zip(late, stops, strict=True)]
        _bars(
            axes,
            y,
            start - waiting,
            waiting,
            0.3 if len(own) == len(lanes) else 0.6,
            colours,
            alpha=0.4,
            zorder=3,
        )
        _bars(axes, y, start, np.maximum(service, span / 300), 0.6, colours, zorder=4)
        legs = [
            ((before.left_at, before.y), (after.stop.arrival, after.y))
            for before, after in pairwise(lanes)
            if after.stop
        ]
        colours = [lane.colour for lane, _ in stops]
        _lines(axes, legs, colours, linewidths=0.8, zorder=2)
    colours = [lane.colour for lane, _ in routes]
    spans = np.array([((r.start, lane.y), (r.end, lane.y)) for lane, r in routes]).reshape(-1, 2, 2)
    _lines(axes, list(spans), colours, linewidths=1.2, zorder=2)
    in_time = at_most(spans[:, 1, 0], np.array([lane.ends_by for lane, _ in routes]), problem.time_slack)
    tips = [lane.colour if good else ALARM for good, (lane, _) in zip(in_time, routes, strict=True)]
    if problem.open:
        axes.scatter(*spans[:, 1].T, s=16, c="white", edgecolors=tips, linewidths=1.2, zorder=3)
    else:
        axes.scatter(*spans[:, 1].T, s=32, c=tips, marker="|", linewidths=1.4, zorder=3)

    axes.set_xlim(first - 0.01 * span, last + 0.02 * span)
    axes.set_title("schedule" if routes else "time windows", loc="left")
    axes.set_xlabel("time")
    if problem.day is not None:
        step = next((step for step in TICK_SECONDS if span <= MOST_TICKS * step), span / MOST_TICKS)
        axes.xaxis.set_major_locator(MultipleLocator(step))
        axes.xaxis.set_major_formatter(lambda time, _: problem.moment(time))
    if routes:
        keys = [Patch(color=PALE, label="open"), Patch(color=GREY, alpha=0.4, label="waiting")]
        keys.append(Patch(color=GREY, label="service"))
        if late.any():
            keys.append(Patch(color=ALARM, label="late"))
        axes.legend(handles=keys, loc="upper center", bbox_to_anchor=(0.5, -0.05), ncols=len(keys))


def _loads(axes: Axes, problem: Problem, lanes: list[_Lane]) -> None:
    """What is on board when each stop is left, or the most of a route where its stops share a lane; without
    routes, the demands. What is over the capacity is red."""
    routes = [lane.route for lane in lanes if lane.route]
    shared = bool(routes) and problem.num_customers > OWN_LANE_CUSTOMERS
    if shared and len(routes) <= CURVE_ROUTES:
        return _profiles(axes, problem, lanes)
    own = _own_lanes(problem, lanes)
    loads = np.array([route.max_load for route in routes] if shared else [lane.load for lane in own])
    capacity = np.array([lane.capacity for lane in own])
    over = np.where(at_most(loads, capacity, problem.load_slack), 0, loads - capacity)
    y = np.array([lane.y for lane in own])
    _bars(axes, y, 0, loads - over, 0.8, [lane.colour for lane in own], alpha=0.75)
    _bars(axes, y, capacity, over, 0.8, ALARM)
    axes.set_xlabel(_capacities(own))
    if routes:
        axes.vlines(capacity, y - 0.5, y + 0.5, color=INK, lw=0.9, ls=(0, (4, 2)))
        axes.set_title("largest load" if shared else "load on leaving", loc="left")
        axes.set_xlim(0, 1.03 * max(capacity.max(), loads.max()))
    else:
        axes.set_title("demand", loc="left")
        axes.set_xlim(0, 1.03 * max(loads.max(), 1e-300))


def _capacities(lanes: list[_Lane], digits: int = 6) -> str:
    """The capacities of the vehicles in words: 'capacity 10', or 'capacity 4 to 20'."""
    given = [lane.capacity for lane in lanes]
    low, high = number_text(min(given), digits), number_text(max(given), digits)
    return f"capacity {low}" + f" to {high}" * (high != low)


def _profiles(axes: Axes, problem: Problem, lanes: list[_Lane]) -> None:
    """The load from stop to stop as the height of a curve in the route's lane; the largest fills it."""
    from matplotlib.collections import PolyCollection

    starts = [i for i, lane in enumerate(lanes) if lane.route]
    routes = [lanes[a:b] for a, b in pairwise([*starts, len(lanes)])]
    most = max(lane.load for lane in lanes) or 1.0

    def curve(route: list[_Lane], low: float) -> FloatArray:
        """Around what is above `low`: a step for the way out, and one from each stop to the next."""
        loads = np.maximum([lane.load for lane in route], low)
        x = np.repeat(np.arange(len(loads) + 1.0), 2)
        height = np.concatenate([[low], np.repeat(loads, 2), [low]])
        return np.stack([x, route[0].y + 0.4 - 0.8 * height / most], axis=1)

    colours = [route[0].colour for route in routes]
    axes.add_collection(PolyCollection([curve(r, 0) for r in routes], facecolors=colours, alpha=0.75, lw=0))
    slack = 1 + problem.load_slack
    over = [curve(r, r[0].capacity) for r in routes if max(lane.load for lane in r) > r[0].capacity * slack]
    axes.add_collection(PolyCollection(over, facecolors=ALARM, lw=0))
    axes.set_title("load along the route", loc="left")
    axes.set_xlabel(f"stops (full height: {number_text(most, 4)} of {_capacities(lanes, 4)})")
    axes.set_xlim(0, 1.03 * max(map(len, routes)))


def _own_lanes(problem: Problem, lanes: list[_Lane]) -> list[_Lane]:
    """The lanes that nobody shares: in a large problem those of the routes, else all."""
    return [lane for lane in lanes if not (lane.stop and problem.num_customers > OWN_LANE_CUSTOMERS)]
