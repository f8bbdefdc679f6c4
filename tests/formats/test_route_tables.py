"""Routes as tables and as pages to print: every row by hand, and back again."""

import csv
import io
from datetime import datetime, time, timedelta

import pytest
from fleets import invent
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chainroute import ChainRouteError, Problem, Solution, VehicleType, check
from chainroute.formats import read_solution, require_expressible, write_solution
from chainroute.formats.tables.grids import read_workbook
from chainroute.formats.tables.routes import hours

# Along a line, one unit a second. A opens a minute after the first arrival, B both receives and hands over.
FIELDS = {
    "name": "line",
    "capacity": 10,
    "delivery": [4, 3],
    "pickup": [0, 2],
    "backhaul": "mixed",
    "coords": [(0, 0), (600, 0), (1200, 0)],
    "service": [120, 60],
    "time_windows": [(28_800, 64_800), (29_460, 40_000), (0, 64_800)],
    "names": ["depot", "A", "B"],
}
LINE = Problem(**FIELDS, day="any")  # 28 800 s: 08:00
PLAN = Solution.of(LINE, [(0, []), (0, [1, 2])])  # nobody is visited by the first


def rows(data):
    return list(csv.reader(io.StringIO(data.decode())))


def test_every_row_of_a_route(tmp_path):
    assert check(LINE, PLAN).feasible
    write_solution(PLAN, tmp_path / "it.csv")
    head, *body = rows((tmp_path / "it.csv").read_bytes())
    assert head == ["route", "position", "name", "arrival", "wait", "start", "departure", "load", "distance"]
    start = PLAN.facts[1].start
    leaves = hours(int(start))
    waits = 60 - (start - 28_800)  # a vehicle that leaves later waits less
    assert body == [
        ["2", "0", "depot", "", "", "", leaves, "7", "0"],
        ["2", "1", "A", hours(int(start) + 600), hours(int(waits)), "08:11:00", "08:13:00", "3", "600"],
        ["2", "2", "B", "08:23:00", "00:00:00", "08:23:00", "08:24:00", "2", "1200"],
        ["2", "3", "depot", "08:44:00", "", "", "", "", "2400"],
    ]


def test_without_a_day_times_are_numbers(tmp_path):
    plain = Problem(**FIELDS)
    write_solution(Solution.of(plain, [(0, [1, 2])]), tmp_path / "it.csv")
    assert rows((tmp_path / "it.csv").read_bytes())[3][3:7] == ["30180", "0", "30180", "30240"]


def test_a_workbook_has_times_as_excel_has_them(tmp_path):
    write_solution(PLAN, tmp_path / "it.xlsx")
    (sheet,) = read_workbook((tmp_path / "it.xlsx").read_bytes(), "it")
    assert sheet.rows[3][3:6] == [time(8, 23), timedelta(0), time(8, 23)]
    dated = Problem(**FIELDS, day="2026-11-16")
    write_solution(Solution.of(dated, [(0, [1, 2])]), tmp_path / "it.xlsx")
    (sheet,) = read_workbook((tmp_path / "it.xlsx").read_bytes(), "it")
    assert sheet.rows[3][3] == datetime(2026, 11, 16, 8, 23)


def test_past_midnight(tmp_path):
    """A window of the next day: in hours that go on counting, or with its date."""
    late = {**FIELDS, "time_windows": [(0, 200_000), (90_000, 100_000), (0, 200_000)]}
    write_solution(Solution.of(Problem(**late, day="any"), [(0, [1, 2])]), tmp_path / "it.csv")
    assert rows((tmp_path / "it.csv").read_bytes())[2][5] == "25:00:00"
    write_solution(Solution.of(Problem(**late, day="2026-11-16"), [(0, [1, 2])]), tmp_path / "it.csv")
    assert rows((tmp_path / "it.csv").read_bytes())[2][5] == "2026-11-17 01:00:00"
    assert hours(int(timedelta(hours=30, seconds=5).total_seconds())) == "30:00:05"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_routes_come_back_the_same(data, tmp_path):
    """All but the empty ones do, of open and closed routes from several depots."""
    n = data.draw(st.integers(1, 6))
    p = Problem(
        capacity=9,
        delivery=[0] * n,
        num_depots=2,
        coords=[(i, i * i) for i in range(n + 2)],
        open=data.draw(st.booleans()),
    )
    order = data.draw(st.permutations(list(p.customers)))
    cut = data.draw(st.integers(0, n))
    plan = Solution.of(p, [(d, part) for d, part in ((1, order[:cut]), (0, order[cut:])) if part])
    for ending in ("csv", "xlsx"):
        write_solution(plan, tmp_path / f"it.{ending}")
        assert read_solution(tmp_path / f"it.{ending}", p).routes == plan.routes


@pytest.mark.parametrize(
    "text",
    [
        "route,stop\n1,A\n1,B\n",  # the depot goes without saying, rows stand in order
        "Route;Sequence;Customer\nN;2;B\nN;1;A\n",
        "Plan of Monday,,\n\nroute,position,name,note\nx,0,depot,\nx,1,A,gate 3\nx,2,B,\nx,3,depot,\n",
    ],
)
def test_a_plan_made_by_hand(text, tmp_path):
    (tmp_path / "plan.csv").write_text(text)
    assert [r.visits for r in read_solution(tmp_path / "plan.csv", LINE).routes] == [(1, 2)]


@pytest.mark.parametrize(
    ("text", "code", "where"),
    [
        ("route,name\n1,A\n1,Z\n", "unknown-location", "row 3, column 'name'"),
        ("route,position,name\n1,first,A\n", "bad-syntax", "row 2, column 'position'"),
        ("name,x,y\nA,1,2\n", "unknown-format", ""),
    ],
)
def test_what_is_wrong_with_a_plan(text, code, where, tmp_path):
    (tmp_path / "plan.csv").write_text(text)
    with pytest.raises(ChainRouteError) as caught:
        read_solution(tmp_path / "plan.csv", LINE)
    (fault,) = caught.value.faults
    assert (fault.code, fault.where) == (code, where)


def test_a_name_that_no_cell_can_hold_is_refused_beforehand(tmp_path):
    p = Problem(**{**FIELDS, "names": ["depot", "A\nA", "B"]})
    for ending in ("csv", "xlsx"):
        with pytest.raises(ChainRouteError, match="cannot-express"):
            require_expressible(p, tmp_path / f"it.{ending}")
        with pytest.raises(ChainRouteError, match="cannot-express"):
            write_solution(Solution.of(p, [(0, [1, 2])]), tmp_path / f"it.{ending}")


def test_with_several_depots_a_plan_says_which(tmp_path):
    p = Problem(capacity=9, delivery=[1], num_depots=2, coords=[(0, 0), (9, 9), (1, 1)])
    (tmp_path / "plan.csv").write_text("route,name\n1,1\n")
    with pytest.raises(ChainRouteError, match="does not begin with a depot"):
        read_solution(tmp_path / "plan.csv", p)


# -- vehicles and trips

# A van of two trips and an open bike; the van's second trip begins at depot S, where it ends.
FLEET = Problem(
    num_depots=2,
    capacity=9,
    delivery=[4, 4, 4, 1],
    coords=[(0, 0), (0, 30), (0, 10), (0, 20), (0, 40), (5, 0)],
    names=["N", "S", "A", "B", "C", "D"],
    vehicle_types=[
        VehicleType(name="van", count=1, depot=0, end=1, max_trips=2, reload_depots=[1]),
        VehicleType(name="bike", count=1, depot=0, open=True),
    ],
)
TWO = Solution.of(FLEET, [(0, [2, 3, 1, 4], 0), (0, [5], 1)])


def test_a_row_says_the_vehicle_and_its_trip(tmp_path):
    assert check(FLEET, TWO).feasible
    write_solution(TWO, tmp_path / "it.csv")
    head, *body = rows((tmp_path / "it.csv").read_bytes())
    assert head[:5] == ["route", "vehicle", "trip", "position", "name"]
    assert [row[:5] for row in body] == [
        ["1", "van", "1", "0", "N"],
        ["1", "van", "1", "1", "A"],
        ["1", "van", "1", "2", "B"],
        ["1", "van", "1", "3", "S"],
        ["1", "van", "2", "4", "C"],
        ["1", "van", "2", "5", "S"],
        ["2", "bike", "1", "0", "N"],
        ["2", "bike", "1", "1", "D"],
    ]
    assert read_solution(tmp_path / "it.csv", FLEET).routes == TWO.routes


def test_trips_without_their_depot_go_by_the_first(tmp_path):
    text = "route,vehicle,trip,stop\n1,van,1,N\n1,,1,A\n1,,2,B\n2,bike,,N\n2,,,D\n"
    (tmp_path / "plan.csv").write_text(text)
    first, second = read_solution(tmp_path / "plan.csv", FLEET).routes
    assert (first.visits, first.vehicle) == ((2, 0, 3), 0)
    assert (second.visits, second.vehicle) == ((5,), 1)


@pytest.mark.parametrize(
    ("text", "code", "where"),
    [
        ("route,stop\n1,N\n1,A\n", "missing-field", "row 2"),
        ("route,vehicle,stop\n1,tram,N\n1,,A\n", "unknown-vehicle", "row 2, column 'vehicle'"),
        ("route,vehicle,stop\n1,van,N\n1,bike,A\n", "conflicting-fields", "row 3, column 'vehicle'"),
        ("route,vehicle,stop\n1,van,N\n1,van,A\n1,van,N\n", "unknown-location", "row 4, column 'stop'"),
    ],
)
def test_what_is_wrong_with_the_vehicle_of_a_plan(text, code, where, tmp_path):
    (tmp_path / "plan.csv").write_text(text)
    with pytest.raises(ChainRouteError) as caught:
        read_solution(tmp_path / "plan.csv", FLEET)
    (fault,) = caught.value.faults
    assert (fault.code, fault.where) == (code, where)


@pytest.mark.parametrize(
    ("text", "code", "where"),
    [
        ("1,1,A\n,2,B\n", "missing-field", "row 3, column 'route'"),  # as merged cells leave it
        ("1,1,A\n1,1,B\n", "bad-syntax", "row 3, column 'position'"),
        ("1,,A\n1,1,B\n2,,C\n", "missing-field", "row 2, column 'position'"),
    ],
)
def test_a_stop_without_a_place_in_the_plan_is_told_of(text, code, where, tmp_path):
    """No route, a position twice, or none where others of the route have one."""
    p = Problem(capacity=9, delivery=[1, 1, 1], coords=[(0, 0), (1, 0), (2, 0), (3, 0)], names=[*"DABC"])
    (tmp_path / "plan.csv").write_text(f"route,position,name\n{text}")
    with pytest.raises(ChainRouteError) as caught:
        read_solution(tmp_path / "plan.csv", p)
    (fault,) = caught.value.faults
    assert (fault.code, fault.where) == (code, where)


def test_invented_plans_come_back_the_same(tmp_path):
    """Every customer alone on the first type, which can do whatever has to be done."""
    for seed in range(20):
        p = invent(seed)
        plan = Solution.of(p, [(p.types[0].depots[0], [c], 0) for c in p.customers])
        write_solution(plan, tmp_path / "it.csv")
        assert read_solution(tmp_path / "it.csv", p).routes == plan.routes


# -- pages


def test_who_begins_at_a_customer_has_no_row_for_the_depot(tmp_path):
    """Unless the type stands at several depots, of which the row says one."""
    p = Problem(**FIELDS, vehicle_types=[VehicleType(name="van", open_start=True)])
    plan = Solution.of(p, [(0, [2, 1])])
    write_solution(plan, tmp_path / "it.csv")
    _, *body = rows((tmp_path / "it.csv").read_bytes())
    assert [row[3] for row in body] == ["B", "A", "depot"]
    assert read_solution(tmp_path / "it.csv", p).routes == plan.routes
    write_solution(plan, tmp_path / "it.html")
    page = (tmp_path / "it.html").read_text()
    assert page.count("<td>depot</td>") == 1
    two = p.replace(num_depots=2, names=["depot", "other", "B"], delivery=[3], pickup=[2], service=[0])
    plan = Solution.of(two, [(1, [2])])
    write_solution(plan, tmp_path / "two.csv")
    assert read_solution(tmp_path / "two.csv", two).routes == plan.routes


def test_a_page_names_the_vehicle_and_its_reloads(tmp_path):
    write_solution(TWO, tmp_path / "it.html")
    first, second = (tmp_path / "it.html").read_text().split("<section>")[1:]
    assert "route 1, van" in first
    assert "3 stops" in first
    assert first.count("S (reload)") == 1
    assert "route 2, bike" in second


def test_a_page_for_each_driver(tmp_path):
    p = Problem(**{**FIELDS, "names": ["depot", "<A> & co", "B"]}, day="any")
    write_solution(Solution.of(p, [(0, [1]), (0, [2])]), tmp_path / "it.html")
    text = (tmp_path / "it.html").read_text()
    assert text.count("<section>") == 2
    first, second = text.split("<section>")[1:]
    assert "&lt;A&gt; &amp; co" in first
    assert "08:11–11:07" in first
    assert "1 stop," in first
    assert "until 18:00" in second
    assert "<script" not in text
    assert "http" not in text
