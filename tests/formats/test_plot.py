"""Pictures: every kind of problem is drawn, and what is drawn is what the solution says."""

import errno
import os
import xml.etree.ElementTree as ElementTree
from collections import Counter

import numpy as np
import pytest
from matplotlib.collections import LineCollection, PathCollection, PolyCollection
from matplotlib.colors import to_rgb
from problems import line, two_on_a_line

from chainroute import VARIANTS, Backhaul, ChainRouteError, Problem, Solution, VehicleType, check
from chainroute.formats import plot
from chainroute.formats.plot import ALARM, PALE, PALETTE, draw


def problem(n=6, **fields):
    rng = np.random.default_rng(n)
    m = fields.get("num_depots", 1)
    base = {"capacity": 10, "delivery": np.full(n, 4.0), "coords": rng.uniform(0, 100, (m + n, 2))}
    return Problem(**{**base, **fields})


def pairs(p):
    """Two customers per route, depots in turn."""
    starts = range(p.num_depots, p.num_locations, 2)
    routes = [(r % p.num_depots, range(c, min(c + 2, p.num_locations))) for r, c in enumerate(starts)]
    solution = Solution.of(p, routes)
    assert check(p, solution).feasible
    return solution


def figure(p, solution=None):
    return plot._figure(p, solution)


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf", ".PNG"])
def test_writes_each_kind_of_file(tmp_path, suffix):
    magic = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}[suffix.lower()]
    path = draw(problem(), tmp_path / f"picture{suffix}", pairs(problem()))
    assert path.read_bytes().startswith(magic)


@pytest.mark.parametrize("name", ["picture.gif", "picture", "picture.png.txt"])
def test_other_endings_are_refused_before_anything_is_drawn(tmp_path, name):
    with pytest.raises(ChainRouteError) as error:
        draw(problem(), tmp_path / name)
    assert [(f.code, f.where) for f in error.value.faults] == [("bad-option", "plot")]
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_does_not_exist_is_a_coded_error(tmp_path):
    with pytest.raises(ChainRouteError) as error:
        draw(problem(), tmp_path / "missing" / "picture.png")
    assert [f.code for f in error.value.faults] == ["file-unwritable"]


def test_the_same_picture_is_the_same_file(tmp_path):
    first, second = (draw(problem(), tmp_path / name, pairs(problem())) for name in ("a.svg", "b.svg"))
    assert first.read_bytes() == second.read_bytes()


def test_svg_holds_names_and_cost_as_text(tmp_path):
    p = problem(names=["hub", "Ada", "Bob", "Cleo", "Dora", "Emil", "<Fritz & Co> $5^"])
    tree = ElementTree.parse(draw(p, tmp_path / "a.svg", pairs(p)))
    texts = " ".join(tree.getroot().itertext())
    for word in [*p.names, "route 3", f"cost {pairs(p).cost:.8g}", "CVRP"]:
        assert word in texts


@pytest.mark.parametrize("v", VARIANTS[::5], ids=str)
def test_variants_have_the_panels_they_need(v):
    """Every fifth of the 48: a schedule with time windows, loads always, an end mark on open routes."""
    back = np.arange(6) % 3 == 2
    p = problem(
        n=6,
        num_depots=2 if v.multi_depot else 1,
        delivery=np.where(back & (v.backhaul is not Backhaul.NONE), 0, 4),
        pickup=np.where(back & (v.backhaul is not Backhaul.NONE), 4, 0),
        backhaul=v.backhaul,
        time_windows=[(0, 900)] * (8 if v.multi_depot else 7) if v.time_windows else None,
        distance_limit=900 if v.limit else None,
        open=v.open,
    )
    routes = Solution.of(p, [(0, [c]) for c in p.customers])
    assert check(p, routes).feasible
    axes = figure(p, routes).axes
    assert [a.get_title("left") for a in axes[1:]] == ["schedule"] * v.time_windows + ["load on leaving"]
    legend = [text.get_text() for text in axes[0].get_legend().get_texts()]
    assert ("end of an open route" in legend) == v.open
    assert ("pickup" in legend) == (v.backhaul is not Backhaul.NONE)
    assert [a.get_title("left") for a in figure(p).axes[1:]] == ["time windows"] * v.time_windows + ["demand"]


def lines(axes):
    """How many lines there are of each colour."""
    drawn = [c for c in axes.collections if isinstance(c, LineCollection)]
    return Counter(tuple(c.get_edgecolor()[i][:3]) for c in drawn for i in range(len(c.get_segments())))


def test_each_route_has_a_colour_of_its_own_and_closed_ones_return():
    """Three closed routes of two: an inner line, and two legs to and from the depot, in one colour each."""
    p = problem()
    assert lines(figure(p, pairs(p)).axes[0]) == {to_rgb(c): 3 for c in PALETTE[:3]}


def test_open_routes_have_no_way_back():
    p = problem(open=True)
    assert lines(figure(p, pairs(p)).axes[0]) == {to_rgb(c): 2 for c in PALETTE[:3]}


@pytest.mark.parametrize("count", [1, 12, 13, 150])
def test_colours_are_distinct(count):
    assert len(set(plot._colours(count))) == count


def bars(axes):
    """(left, right, y) of all bars in a panel, with their colour."""
    for collection in axes.collections:
        if isinstance(collection, PolyCollection):
            faces = collection.get_facecolor()
            for i, path in enumerate(collection.get_paths()):
                (left, low), (right, high) = path.vertices[0], path.vertices[2]
                yield round(left, 9), round(right, 9), (low + high) / 2, tuple(faces[i % len(faces)][:3])


def test_loads_are_those_of_the_solution():
    """7 when leaving the depot, 3 after A, nothing after B."""
    p = two_on_a_line()
    solution = Solution.of(p, [(0, [1, 2])])
    assert check(p, solution).feasible
    drawn = [(left, right, y) for left, right, y, _ in bars(figure(p, solution).axes[1]) if right > left]
    assert drawn == [(0, 7, 0), (0, 3, 1)]


def test_what_exceeds_the_capacity_is_red():
    p = two_on_a_line(capacity=6)
    solution = Solution.of(p, [(0, [1, 2])])
    assert [v.code for v in check(p, solution).violations] == ["capacity-exceeded"]
    red = [(a, b, y) for a, b, y, c in bars(figure(p, solution).axes[1]) if c == to_rgb(ALARM) and b > a]
    assert red == [(6, 7, 0)]


def test_schedule_shows_windows_waiting_and_service_and_marks_what_is_late():
    """A: reached at 10, opens at 15, served for 5; B: reached at 30, closed since 25, served for 5."""
    p = two_on_a_line(service=[5, 5], time_windows=[(0, 90), (15, 40), (0, 25)])
    solution = Solution.of(p, [(0, [1, 2])])
    assert [v.code for v in check(p, solution).violations] == ["window-missed"]
    panel = figure(p, solution).axes[1]
    drawn = [(left, right, y) for left, right, y, _ in bars(panel) if right > left]
    assert drawn == [
        *((0, 90, 0), (15, 40, 1), (0, 25, 2)),  # windows of depot, A and B
        *((10, 15, 1),),  # waiting at A
        *((15, 20, 1), (30, 35, 2)),  # service
    ]
    assert [(a, b) for a, b, y, c in bars(panel) if c == to_rgb(ALARM) and y == 2] == [(30, 30), (30, 35)]
    travel = next(c for c in panel.collections if isinstance(c, LineCollection))
    assert [leg.tolist() for leg in travel.get_segments()] == [[[0, 0], [10, 1]], [[20, 1], [30, 2]]]


def test_each_vehicle_has_its_own_capacity():
    """A truck of 9 takes 7 and is not red, a van of 3 takes 4 and is: by one."""
    types = [VehicleType(name="truck", capacity=9), VehicleType(name="van", capacity=3)]
    p = line(capacity=6, delivery=[7, 4, 1], vehicle_types=types)
    for visits, red in (([(0, [1], 0)], []), ([(0, [2], 1)], [(3, 4, 0)])):
        panel = figure(p, Solution.of(p, visits)).axes[1]
        assert [(a, b, y) for a, b, y, c in bars(panel) if c == to_rgb(ALARM) and b > a] == red
    both = figure(p, Solution.of(p, [(0, [1], 0), (0, [3], 1)])).axes[1]
    assert both.get_xlabel() == "capacity 3 to 9"


def test_several_windows_are_several_bars():
    windows = [[(0, 5), (20, 30)], [(0, 90)]]
    p = two_on_a_line(time_windows=[(0, 90), (0, 30), (0, 90)], customer_windows=windows)
    panel = figure(p, Solution.of(p, [(0, [1, 2])])).axes[1]
    assert [(a, b) for a, b, y, c in bars(panel) if y == 1 and c == to_rgb(PALE)] == [(0, 5), (20, 30)]


@pytest.mark.parametrize(
    ("fields", "late"),
    [
        ({"end": 1}, False),
        ({"end": 0}, True),
        ({"open": True}, False),
        ({"open": True, "shift": (0, 15)}, True),
    ],
)
def test_a_route_is_late_where_it_ends(fields, late):
    """From a depot that closes at 15 to a customer at 20: to another depot, or to nobody, is in time."""
    p = Problem(
        capacity=1,
        num_depots=2,
        delivery=[1],
        coords=[(0, 0), (25, 0), (20, 0)],
        time_windows=[(0, 15), (0, 99), (0, 99)],
        vehicle_types=[VehicleType(open=True), VehicleType(**fields)],
    )
    panel = figure(p, Solution.of(p, [(0, [2], 1)])).axes[1]
    (tips,) = (c for c in panel.collections if isinstance(c, PathCollection))
    assert (tuple(tips.get_edgecolor()[0][:3]) == to_rgb(ALARM)) is late


def test_the_axis_has_times_of_the_day():
    p = two_on_a_line(time_windows=[(28_800, 43_200)] * 3, day="any")
    axis = figure(p).axes[1].xaxis
    assert [axis.get_major_formatter()(time) for time in (28_800, 36_000)] == ["08:00", "10:00"]
    assert all(time % 1800 == 0 for time in axis.get_ticklocs())


def test_windows_that_never_close_are_drawn_to_the_end():
    p = two_on_a_line(time_windows=[(0, np.inf), (5, np.inf), (0, np.inf)])
    solution = Solution.of(p, [(0, [1, 2])])
    assert check(p, solution).feasible
    assert max(right for _, right, _, _ in bars(figure(p, solution).axes[1])) == 40
    figure(p)


def test_a_problem_without_coordinates_is_laid_out_from_its_matrix(tmp_path):
    p = two_on_a_line()
    bare = p.replace(coords=None, distance_matrix=p.distances)
    marks = [c for c in figure(bare).axes[0].collections if isinstance(c, PathCollection)]
    (x, _), (u, _) = marks[0].get_offsets()
    assert abs(x - u) == pytest.approx(10)
    assert "distance matrix" in figure(bare).axes[0].get_title("left")


@pytest.mark.parametrize(
    "fields",
    [
        {"n": 1, "delivery": [0.0]},
        {"n": 3, "coords": np.zeros((4, 2))},
        {"n": 2, "coords": [(8.5, 47.3), (8.6, 47.4), (-170, -80)], "metric": "haversine"},
        {"n": 4, "service": np.zeros(4), "time_windows": [(5, 5)] * 5, "coords": np.zeros((5, 2))},
    ],
    ids=["no-demand", "all-in-one-place", "globe", "one-moment"],
)
def test_degenerate_problems_are_drawn_too(tmp_path, fields):
    p = problem(**fields)
    nowhere = Solution.of(p, [(0, [])])
    assert not check(p, nowhere).feasible
    draw(p, tmp_path / "routes.png", pairs(p))
    for solution in (None, Solution(p, ()), nowhere):
        assert len(figure(p, solution).axes) >= 2


def test_a_thousand_customers_share_the_lanes_of_their_routes():
    """The panel of 500 routes has the largest loads; that of 50 would have curves."""
    p = problem(n=1000, time_windows=[(0, 10_000)] * 1001)
    solution = pairs(p)
    panel = figure(p, solution).axes[2]
    assert panel.get_title("left") == "largest load"
    drawn = [right for left, right, _, _ in bars(panel) if right > left]
    assert drawn == [facts.max_load for facts in solution.facts]
    assert len(drawn) == 500


def test_in_a_shared_lane_the_load_is_a_curve_and_what_exceeds_the_capacity_is_red(monkeypatch):
    """7, 3 and nothing on board with a capacity of 5: the lane is 0.8 high, which is the 7."""
    monkeypatch.setattr(plot, "OWN_LANE_CUSTOMERS", 1)
    p = two_on_a_line(capacity=5)
    solution = Solution.of(p, [(0, [1, 2])])
    assert [v.code for v in check(p, solution).violations] == ["capacity-exceeded"]
    curves = [c for c in figure(p, solution).axes[1].collections if isinstance(c, PolyCollection)]
    (load,), (over,) = (c.get_paths() for c in curves)
    heights = [(x, round((0.4 - y) / 0.8 * 7, 9)) for x, y in load.vertices[:8]]
    assert heights == [(0, 0), (0, 7), (1, 7), (1, 3), (2, 3), (2, 0), (3, 0), (3, 0)]
    red = [(x, round((0.4 - y) / 0.8 * 7, 9)) for x, y in over.vertices[:8]]
    assert red == [(0, 5), (0, 7), (1, 7), (1, 5), (2, 5), (2, 5), (3, 5), (3, 5)]
    assert tuple(curves[1].get_facecolor()[0][:3]) == to_rgb(ALARM)


def test_a_full_disk_leaves_no_empty_picture(tmp_path, monkeypatch):
    """It is told, and neither an empty nor half a picture is left, nor is an old one lost."""

    def full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    problem = Problem(capacity=1, delivery=[1], coords=[(0, 0), (3, 4)])
    draw(problem, tmp_path / "old.png")
    before = (tmp_path / "old.png").read_bytes()
    monkeypatch.setattr(os, "fsync", full)
    for name in ("old.png", "new.svg", "new.pdf"):
        with pytest.raises(ChainRouteError, match=r"file-unwritable.*No space left"):
            draw(problem, tmp_path / name)
    assert os.listdir(tmp_path) == ["old.png"]
    assert (tmp_path / "old.png").read_bytes() == before
