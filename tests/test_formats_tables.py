"""Tables of people's own making, CSV and Excel: what cells and headings mean, and where faults are."""

from datetime import date, datetime, time, timedelta
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from chainroute import Backhaul, ChainRouteError, Metric, Problem, check
from chainroute.cli.app import app
from chainroute.formats import cells, companions, read, write
from chainroute.formats.cells import Moment
from chainroute.formats.grids import Sheet, write_workbook
from chainroute.formats.headings import heading, kind_of
from chainroute.solve import solve

DATA = Path(__file__).parent / "data"


def problem_of(tmp_path, text, **others):
    """The problem in a CSV of stops, with the other tables in files beside it."""
    for name, content in {"stops": text, **others}.items():
        (tmp_path / f"{name}.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    return read(tmp_path / "stops.csv")


def refusal(tmp_path, text, **others):
    with pytest.raises(ChainRouteError) as caught:
        problem_of(tmp_path, text, **others)
    return caught.value.faults


# -- a whole table


def test_a_table_in_every_field():
    """Of tests/data/table.csv: times in seconds, lengths in metres, the speed of 36 km/h as 10 m/s."""
    p = read(DATA / "table.csv")
    assert p.name == "three stops"
    assert p.names == ("hub", "Ada", "Bob", "Cy")
    assert (p.capacity, p.fleet, p.distance_limit, p.metric) == (10, 2, 40_000, Metric.HAVERSINE)
    assert p.delivery.tolist() == [6, 0, 4]
    assert p.pickup.tolist() == [0, 3, 0]
    assert p.backhaul is Backhaul.MIXED
    assert p.service.tolist() == [300, 600, 300]
    hour = 3600
    assert p.windows.tolist() == [
        [8 * hour, 18 * hour],
        [9 * hour, 11 * hour],
        [0, 17 * hour],
        [8.5 * hour, 17 * hour],
    ]
    assert np.allclose(p.durations, p.distances / 10)


def test_a_matrix_by_names():
    """Of tests/data/squares.csv, in which B has no road to A."""
    p = read(DATA / "squares.csv")
    assert p.distances.tolist() == [[0, 5, 10], [5, 0, 5], [10, np.inf, 0]]
    assert (p.fleet, p.time_windows) == (2, None)


PLAIN = "name,x,y,demand,ready time,due date,service time\nP,0,0,0,0,99,0\nA,3,4,5,10,20,2\n"


def test_numbers_without_units_are_kept_as_they_are(tmp_path):
    p = problem_of(tmp_path, PLAIN, vehicles="capacity\n9\n")
    assert p == Problem(
        name="stops",
        names=("P", "A"),
        capacity=9,
        delivery=[5],
        coords=[[0, 0], [3, 4]],
        time_windows=[[0, 99], [10, 20]],
        service=[2],
    )


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace(",", ";"),
        lambda text: text.replace(",", "\t"),
        lambda text: text.replace(",", "|"),
        lambda text: "\ufeff" + text.replace("\n", "\r\n"),
        lambda text: text.encode("utf-16"),
        lambda text: "Orders of Monday,,,,,,\n\n" + text,
        lambda text: text.replace("P,", "P,").replace("\n", "\n\n,,,\n", 1) + ",,,,,,\n\n",
        lambda text: text.replace("name,x,y,demand", '"ID","X-Coord.","Y-Coord.","Qty"'),
        lambda text: text.replace(",ready time,due date", ",TW start,TW_end").replace(
            "service time", "Dwell"
        ),
    ],
)
def test_ways_to_write_the_same_table(tmp_path, change):
    """Separators, codes, titles, blank rows, quotes and spellings."""
    same = problem_of(tmp_path, PLAIN, vehicles="capacity\n9\n")
    assert problem_of(tmp_path, change(PLAIN)) == same


def test_decimal_commas_and_a_windows_code(tmp_path):
    text = "name;x;y;demand\nLager;0;0;\nKöln;1.234,5;0,5;2,5\n"
    p = problem_of(tmp_path, text.encode("cp1252"), vehicles="capacity;count\n7,5;2\n")
    assert p.names == ("Lager", "Köln")
    assert p.coords.tolist() == [[0, 0], [1234.5, 0.5]]
    assert (p.delivery.tolist(), p.capacity, p.fleet) == ([2.5], 7.5, 2)


def test_a_workbook_with_times_dates_and_notes(tmp_path):
    """Cells have types there; hidden sheets, notes and columns that nobody asked for are passed over."""
    stops = [
        ["Kundenliste"],
        [],
        ["Name", "Longitude", "Latitude", "Load (kg)", "Time window", "Service", "Phone"],
        ["depot", 10, 53.5, None, None, None, None],
        [7, 10.01, 53.5, 5, "2026-11-16 08:00 - 2026-11-16 10:00", time(0, 10), 4711],
        ["B", 10.02, 53.5, 4, "17.11.2026 8:00 – 17.11.2026 9:30", timedelta(minutes=5), None],
    ]
    vehicles = [["vehicle", "capacity", "speed (km/h)"], ["van 1", 9, 36], ["van 2", 9, 36]]
    sheets = [Sheet(stops, "Monday"), Sheet(vehicles, "Fleet"), Sheet([["Call Ada first."]], "notes")]
    (tmp_path / "it.xlsx").write_bytes(write_workbook(sheets))
    p = read(tmp_path / "it.xlsx")
    assert p.names == ("depot", "7", "B")
    assert p.windows[1:].tolist() == [[8 * 3600, 10 * 3600], [32 * 3600, 33.5 * 3600]]
    assert p.service.tolist() == [600, 300]
    assert p.fleet == 2


def test_several_depots_and_their_vehicles(tmp_path):
    text = "kind,name,x,y,pickup\nhub,N,0,9,\nstop,A,0,1,3\nwarehouse,S,0,-9,\n"
    vehicles = "name,base,capacity,returns\na,N,5,no\nb,S,5,no\n"
    p = problem_of(tmp_path, text, vehicles=vehicles, settings="setting,value\nbackhaul,linehauls first\n")
    assert p.names == ("N", "S", "A")
    assert (p.num_depots, p.fleet, p.open, p.backhaul) == (2, 1, True, Backhaul.LINEHAULS_FIRST)
    (unequal,) = refusal(tmp_path, text, vehicles=vehicles + "c,N,5,no\n")
    assert unequal.code == "unsupported-feature"
    assert "N: 2, S: 1" in unequal.message


def test_depots_may_have_a_table_of_their_own(tmp_path):
    stops, depots = "name,x,y\nA,3,4\n", "name,x,y,window\nhome,0,0,8-20\n"
    p = problem_of(tmp_path, stops, depots=depots)
    assert p.names == ("home", "A")
    assert p.windows.tolist() == [[8, 20], [0, np.inf]]
    assert p.fleet is None


def test_projected_coordinates_with_a_unit(tmp_path):
    """3 and 4 km are 5 km; at 30 km/h that takes 600 s."""
    p = problem_of(
        tmp_path,
        "name,x (km),y (km),opens\ndepot,0,0,\nA,3,4,8:00\n",
        vehicles="capacity,max distance [mi],speed_kmh\n9,10,30\n",
    )
    assert p.distances[0, 1] == 5
    assert p.durations[0, 1] == pytest.approx(600)
    assert p.distance_limit == pytest.approx(16.09344)


def test_a_folder_of_tables_shares_the_vehicles(tmp_path):
    for day in ("monday", "tuesday"):
        (tmp_path / f"{day}-stops.csv").write_text(f"name,x,y,demand\ndepot,0,0,\n{day},3,4,5\n")
    (tmp_path / "vehicles.csv").write_text("count,capacity\n1,9\n")
    (tmp_path / "tuesday-vehicles.csv").write_text("count,capacity\n1,7\n")
    assert [read(tmp_path / f"{day}-stops.csv").capacity for day in ("monday", "tuesday")] == [9, 7]
    assert companions(tmp_path / "tuesday-stops.csv") == {"vehicles": tmp_path / "tuesday-vehicles.csv"}
    result = CliRunner().invoke(app, ["solve", str(tmp_path), "--solver", "milp", "--json"])
    assert result.exit_code == 0, result.output
    assert len(result.stdout.splitlines()) == 2


def test_vehicles_are_not_written_over(tmp_path):
    problem_of(tmp_path, PLAIN, vehicles="capacity\n9\n")
    result = CliRunner().invoke(app, ["convert", f"{tmp_path}/stops.csv", f"{tmp_path}/vehicles.csv"])
    assert result.exit_code == 2
    assert "would write over the input" in result.stderr


# -- where faults are


def test_a_fault_in_a_workbook_names_sheet_row_and_column(tmp_path):
    stops = [["name", "x", "y", "demand"], ["depot", 0, 0, None], [], ["A", 3, 4, "many"]]
    sheets = [Sheet(stops, "Monday"), Sheet([["capacity", "count"], [9, 0.5]], "fleet")]
    (tmp_path / "it.xlsx").write_bytes(write_workbook(sheets))
    with pytest.raises(ChainRouteError) as caught:
        read(tmp_path / "it.xlsx")
    assert [fault.where for fault in caught.value.faults] == [
        "sheet 'fleet', row 2, column 'count'",
        "sheet 'Monday', row 4, column 'demand'",
    ]


def test_a_fault_beside_names_the_file(tmp_path):
    (fault,) = refusal(tmp_path, PLAIN, vehicles="capacity,count\nnine,1\n")
    assert fault.where == "vehicles.csv, row 2, column 'capacity'"


def test_what_the_problem_finds_is_placed_too(tmp_path):
    """The order of rows is kept in the file's own numbers, whatever the order of locations."""
    text = "kind,name,x,y,Qty,from,to\nstop,A,3,4,-5,9,8\ndepot,D,0,0,,,\n"
    faults = refusal(tmp_path, text, vehicles="capacity\n9\n")
    assert {(fault.code, fault.where) for fault in faults} == {
        ("negative", "row 2, column 'Qty'"),
        ("window-reversed", "row 2, column 'from'"),
    }


def test_a_misspelt_heading_is_asked_about_and_a_stranger_is_not(tmp_path):
    (fault,) = refusal(tmp_path, "name,x,y,demnd,phone\ndepot,0,0,,\nA,3,4,5,110\n", vehicles="capacity\n9\n")
    assert (fault.code, fault.where) == ("unknown-field", "row 1, column 'demnd'")
    assert "is 'demand' meant?" in fault.message


def test_a_unit_is_asked_for_once_a_column(tmp_path):
    rows = "".join(f"{i},{i},0,8:00,10\n" for i in range(1, 30))
    faults = refusal(tmp_path, f"name,x (m),y (m),from,service\n0,0,0,,\n{rows}", vehicles="capacity\n9\n")
    assert {(fault.code, fault.where) for fault in faults} == {
        ("unit-missing", "column 'service'"),
        ("missing-field", "vehicles.csv"),  # a speed
    }


# -- cells


@pytest.mark.parametrize(
    ("cell", "comma", "value"),
    [
        ("1.5", False, 1.5),
        ("1,5", True, 1.5),
        ("1,5", False, 1.5),
        ("1.234,5", True, 1234.5),
        ("1,234.5", False, 1234.5),
        ("1,234", True, 1.234),
        ("1,234", False, None),
        ("1 234", False, 1234.0),
        ("1'234.5", False, 1234.5),
        (7, False, 7.0),
        ("1,2,3", True, None),
        ("1_000", False, None),
        (True, False, None),
        ("ten", False, None),
    ],
)
def test_numbers(cell, comma, value):
    """Decimal points and commas, and what separates thousands."""
    assert cells.number(cell, comma) == value


@pytest.mark.parametrize(
    ("cell", "found"),
    [
        ("08:30", Moment(30_600)),
        ("8:30:15", Moment(30_615)),
        ("8h30", Moment(30_600)),
        ("8:30 PM", Moment(73_800)),
        ("12 am", Moment(0)),
        ("12:15 p.m.", Moment(44_100)),
        ("24:00", Moment(86_400)),
        ("90 min", Moment(5_400)),
        ("1 h 30 min", Moment(5_400)),
        ("1,5 h", Moment(5_400)),
        ("15", Moment(15, bare=True)),
        (15, Moment(15, bare=True)),
        ("2026-11-16T08:30", Moment(30_600, date(2026, 11, 16))),
        ("16.11.2026 8:30", Moment(30_600, date(2026, 11, 16))),
        ("2026-11-16", Moment(0, date(2026, 11, 16))),
        (datetime(2026, 11, 16, 8, 30), Moment(30_600, date(2026, 11, 16))),
        (date(2026, 11, 16), Moment(0, date(2026, 11, 16))),
        (time(8, 30), Moment(30_600)),
        (timedelta(hours=30), Moment(108_000)),
        ("13 pm", None),
        ("8:60", None),
        ("11/16/2026 8:30", None),
        ("2026-02-30", None),
        ("noon", None),
        ("5 parsecs", None),
        ("2026-11-16 5", None),
    ],
)
def test_times(cell, found):
    """Times of day as people write them, in seconds after midnight."""
    assert cells.moment(cell) == found


@pytest.mark.parametrize("between", ["-", " - ", "–", " to ", " until "])
def test_windows(between):
    """Two times with a dash or a word between them; a single one is no window."""
    assert cells.window(f"8:00{between}12:30") == (Moment(28_800), Moment(45_000))
    assert cells.window("8:00") is None


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("Service (min)", ("Service", "min")),
        ("service_min", ("service", "min")),
        ("max distance [km]", ("max distance", "km")),
        ("speed km/h", ("speed", "km/h")),
        ("speed (KM / H)", ("speed", "km/h")),
        ("due date", ("due date", "")),
    ],
)
def test_headings_and_their_units(text, parts):
    assert heading(text) == parts


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        (["Stop", "Latitude", "Longitude"], "stops"),
        (["CUST NO.", "XCOORD.", "YCOORD.", "DEMAND", "READY TIME", "DUE DATE", "SERVICE TIME"], "stops"),
        (["type", "capacity", "start", "end"], "vehicles"),
        (["key", "value"], "settings"),
        (["distances", "A", "B"], "distances"),
        (["durations (min)", 1, 2], "durations"),
        (["name", "phone"], ""),
        ([1, 2, 3], ""),
        ([None, None], ""),
    ],
)
def test_a_table_is_known_by_its_headings(row, kind):
    assert kind_of(row) == kind


# -- the template


@pytest.mark.parametrize("option", [[], ["--xlsx"]])
def test_the_template_solves_as_it_is_and_is_not_written_over(option, tmp_path):
    result = CliRunner().invoke(app, ["template", str(tmp_path), *option])
    assert result.exit_code == 0, result.output
    file = tmp_path / ("stops.xlsx" if option else "stops.csv")
    p = read(file)
    assert p.variant.name == "VRPMBLTW"
    found = solve(p, time_limit=1)
    assert check(p, found.solution).feasible
    before = file.read_bytes()
    assert CliRunner().invoke(app, ["template", str(tmp_path), *option]).exit_code == 2
    assert file.read_bytes() == before


def test_both_templates_are_one_problem(tmp_path):
    for option in ([], ["--xlsx"]):
        CliRunner().invoke(app, ["template", str(tmp_path), *option])
    assert read(tmp_path / "stops.csv") == read(tmp_path / "stops.xlsx")


# -- writing


def test_a_name_that_looks_like_a_formula_is_a_name(tmp_path):
    p = Problem(name="it", capacity=1, delivery=[1], coords=[[0, 0], [3, 4]], names=["=1+1", "+49 40"])
    write(p, tmp_path / "it.xlsx")
    assert read(tmp_path / "it.xlsx") == p


def test_a_name_that_no_cell_can_hold_is_refused(tmp_path):
    for name in ("", " a", "a\nb", "\x07"):
        p = Problem(capacity=1, delivery=[1], coords=[[0, 0], [3, 4]], names=["depot", name])
        with pytest.raises(ChainRouteError, match="cannot-express"):
            write(p, tmp_path / "it.csv")
