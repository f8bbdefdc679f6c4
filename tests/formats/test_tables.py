"""Tables of people's own making, CSV and Excel: what cells and headings mean, and where faults are."""

import re
import tracemalloc
from dataclasses import fields
from datetime import date, datetime, time, timedelta
from zipfile import ZipFile

import numpy as np
import pytest
from fleets import invent
from openpyxl import Workbook
from typer.testing import CliRunner
from where import DATA, EXAMPLES

from chainroute import Backhaul, ChainRouteError, Metric, Problem, VehicleType, check
from chainroute.cli.app import app
from chainroute.formats import companions, read, read_many, write
from chainroute.formats.common import noted
from chainroute.formats.tables import grids
from chainroute.formats.tables.cells import Moment
from chainroute.formats.tables.grids import Sheet, write_workbook
from chainroute.formats.tables.headings import heading, kind_of
from chainroute.formats.tables.stops import cells
from chainroute.solve import solve


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
    """The fields of tests/data/table.csv: times are seconds, lengths metres, and 36 km/h are 10 m/s."""
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
    """The matrix of tests/data/squares.csv is read, in which B has no road to A."""
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
    with pytest.warns(
        UserWarning, match="it.xlsx, sheet 'Monday', row 3: 'Phone' is no heading of stops"
    ) as told:
        p = read(tmp_path / "it.xlsx")
    assert [(len(told), warning.filename) for warning in told] == [(1, __file__)]
    assert p.names == ("depot", "7", "B")
    assert p.windows[1:].tolist() == [[8 * 3600, 10 * 3600], [32 * 3600, 33.5 * 3600]]
    assert p.service.tolist() == [600, 300]
    assert p.fleet == 2


def test_columns_that_are_not_read_are_noted(tmp_path):
    """A note names the first eight of a table; who listens hears of no file but those read meanwhile."""
    strange = [f"col{i}" for i in range(10)]
    text = f"name,x,y,demand,{','.join(strange)},\ndepot,0,0,,\nA,3,4,5,\n"
    (tmp_path / "stops.csv").write_text(text)
    (tmp_path / "vehicles.csv").write_text("count,capacity,Kennzeichen\n1,9,HB-X 1\n")
    with noted() as outer:
        with noted() as notes:
            read(tmp_path / "stops.csv")
        read_many(tmp_path / "stops.csv")
    named = ", ".join(f"'{name}'" for name in strange[:8])
    assert notes == outer
    assert notes == [
        f"{tmp_path}/stops.csv, row 1: {named}, 2 others are no headings of stops, and not read.",
        f"{tmp_path}/stops.csv, vehicles.csv, row 1: 'Kennzeichen' is no heading of vehicles, and not read.",
    ]


def test_several_depots_and_their_vehicles(tmp_path):
    text = "kind,name,x,y,pickup\nhub,N,0,9,\nstop,A,0,1,3\nwarehouse,S,0,-9,\n"
    vehicles = "name,base,capacity,returns\na,N,5,no\nb,S,5,no\n"
    p = problem_of(tmp_path, text, vehicles=vehicles, settings="setting,value\nbackhaul,linehauls first\n")
    assert p.names == ("N", "S", "A")
    assert (p.num_depots, p.fleet, p.open, p.backhaul) == (2, 1, True, Backhaul.LINEHAULS_FIRST)
    unequal = problem_of(tmp_path, text, vehicles=vehicles + "c,N,5,no\n")
    assert [(t.name, t.count, t.depots) for t in unequal.types] == [
        ("a", 1, (0,)),
        ("b", 1, (1,)),
        ("c", 1, (0,)),
    ]
    assert unequal.variant.open


def test_depots_may_be_numbered(tmp_path):
    p = problem_of(tmp_path, "kind,name,x,y\nDépôt 1,N,0,9\nstop,A,0,1\nHub 2,S,0,-9\n")
    assert (p.names, p.num_depots) == (("N", "S", "A"), 2)


@pytest.mark.parametrize("kind", ["Depto", "depo", "wharehouse"])
def test_a_kind_that_looks_like_a_depot_is_asked_about(tmp_path, kind):
    (fault,) = refusal(tmp_path, f"kind,name,x,y\ndepot,N,0,9\nstop,A,0,1\n{kind},S,0,-9\n")
    assert (fault.code, fault.where) == ("unknown-value", "row 4, column 'kind'")


def test_a_pickup_whose_amount_is_a_delivery_is_asked_about(tmp_path):
    """The kind of a stop does not say what its quantity is; beside a column of pickups it is only a word."""
    text = "type,name,x,y,quantity\ndepot,N,0,9,\ndelivery,A,0,1,3\npickup,B,0,2,4\n"
    (fault,) = refusal(tmp_path, text, vehicles="capacity\n9\n")
    assert (fault.code, fault.where) == ("conflicting-fields", "row 4, column 'type'")
    both = text.replace("quantity", "quantity,pickup").replace("2,4", "2,,4")
    assert problem_of(tmp_path, both).pickup.tolist() == [0, 4]


def test_two_columns_of_one_field_must_agree(tmp_path):
    """Weights and volumes are both deliveries; which the vehicles hold is not for us to choose."""
    text = "name,x,y,weight,volume\ndepot,0,0,,\nA,0,1,3,3\nB,0,2,3,4\n"
    (fault,) = refusal(tmp_path, text, vehicles="capacity\n9\n")
    assert (fault.code, fault.where) == ("conflicting-fields", "row 1, column 'weight'")
    assert problem_of(tmp_path, text.replace("3,4", "4,4")).delivery.tolist() == [3, 4]
    assert problem_of(tmp_path, text.replace("3,4", "kg,4")).delivery.tolist() == [3, 4]
    twice = refusal(tmp_path, PLAIN, vehicles="max weight,max volume\n9,5\n")
    assert [fault.where for fault in twice] == ["vehicles.csv, row 1, column 'max volume'"]


def test_loads_and_capacities_have_one_unit(tmp_path):
    text = "name,x,y,weight (kg)\ndepot,0,0,\nA,0,1,300\n"
    (fault,) = refusal(tmp_path, text.replace("kg", "t"), vehicles="count,capacity (kg)\n1,1000\n")
    assert (fault.code, fault.where) == ("unknown-value", "vehicles.csv, column 'capacity (kg)'")
    assert problem_of(tmp_path, text, vehicles="count,capacity [KGs]\n1,1000\n").capacity == 1000
    assert problem_of(tmp_path, text, vehicles="count,capacity (per van)\n1,1000\n").capacity == 1000


def test_a_row_longer_than_its_headings_is_asked_about(tmp_path):
    """1,5 without quotes is two cells, of stops and of matrices; Excel fills headings up with empty cells."""
    (fault,) = refusal(tmp_path, "name,x,y\ndepot,0,0\nA,1,5,2\nB,1,2,\n")
    assert (fault.code, fault.where) == ("wrong-count", "row 3")
    matrix = "distances,depot,A\ndepot,0,1,5\nA,1,0\n"
    (fault,) = refusal(tmp_path, "name,x,y\ndepot,0,0\nA,1,5\n", distances=matrix)
    assert (fault.code, fault.where) == ("wrong-count", "distances.csv, row 2")
    (tmp_path / "distances.csv").unlink()
    assert problem_of(tmp_path, "name,x,y,\ndepot,0,0,\nA,1,5,call first\n").names == ("depot", "A")


def test_titles_of_groups_stand_above_headings(tmp_path):
    """'window' is a heading of its own, but here one of two others."""
    text = "customer,,,window,\nname,x,y,from,to\ndepot,0,0,,\nA,3,4,8,12\n"
    p = problem_of(tmp_path, text)
    assert (p.names, p.windows.tolist()) == (("depot", "A"), [[0, np.inf], [8, 12]])


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


def test_a_formula_that_nobody_computed_is_no_empty_cell(tmp_path):
    """Programs write formulas without values, Excel writes both; "" as a value is an empty cell."""
    book = Workbook()
    for row in (["name", "x", "y", "prize"], ["depot", 0, 0], ["A", 3, "=1+3", "=TODAY()"]):
        book.active.append(row)
    book.save(tmp_path / "it.xlsx")
    with pytest.raises(ChainRouteError) as caught:
        read(tmp_path / "it.xlsx")
    assert [f.where for f in caught.value.faults] == [
        "sheet 'Sheet', row 3, column 'y'",
        "sheet 'Sheet', row 3, column 'prize'",
    ]
    assert "'=1+3' is a formula without its value" in str(caught.value)
    with ZipFile(tmp_path / "it.xlsx") as old, ZipFile(tmp_path / "computed.xlsx", "w") as new:
        for part in old.namelist():
            text = re.sub(rb"</f>(<v />|<v></v>)", rb"</f><v>4</v>", old.read(part))
            new.writestr(part, re.sub(rb'"D3">(<f>[^<]*</f>)<v>4', rb'"D3" t="str">\1<v>', text))
    p = read(tmp_path / "computed.xlsx")
    assert (p.coords[1].tolist(), len(p.prize)) == ([3, 4], 0)


def test_a_fault_in_a_workbook_names_sheet_row_and_column(tmp_path):
    stops = [["name", "x", "y", "demand"], ["depot", 0, 0, None], [], ["A", 3, 4, "many"]]
    sheets = [Sheet(stops, "Monday"), Sheet([["capacity", "count"], [9, 0.5]], "fleet")]
    (tmp_path / "it.xlsx").write_bytes(write_workbook(sheets))
    with pytest.raises(ChainRouteError) as caught:
        read(tmp_path / "it.xlsx")
    assert [fault.where for fault in caught.value.faults] == [
        "sheet 'Monday', row 4, column 'demand'",
        "sheet 'fleet', row 2, column 'count'",
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


def test_german_and_french_headings_are_read(tmp_path):
    """They had been passed over as strange columns: a plan without loads and windows was the answer."""
    german = problem_of(
        tmp_path,
        "Kunde;x (km);y (km);Menge;Öffnet;Schließt;Dauer (min)\n"
        "Lager;0;0;;08:00;18:00;\nAda;3;4;4,5;09:00;11:30;10\n",
        vehicles="Fahrzeug;Anzahl;Kapazität;Geschwindigkeit (km/h)\nTransporter;2;10;36\n",
    )
    french = problem_of(
        tmp_path,
        "Nom;x (km);y (km);Quantité;Créneau;Durée (min)\n"
        "Ada;3;4;4,5;09:00-11:30;10\nDépôt;0;0;;08:00-18:00;\n",
        vehicles="Véhicule;Nombre;Capacité;Vitesse (km/h)\ncamion;2;10;36\n",
    )
    assert (german.names, french.names) == (("Lager", "Ada"), ("Dépôt", "Ada"))
    for p in (german, french):
        assert (p.delivery.tolist(), p.service.tolist(), p.capacity, p.fleet) == ([4.5], [600], 10, 2)
        assert p.windows.tolist() == [[8 * 3600, 18 * 3600], [9 * 3600, 11.5 * 3600]]


def test_a_table_without_places_is_told_as_such(tmp_path):
    """Whatever else is missing with them: addresses alone have no distances, in whatever unit."""
    text = "name,street,demand,from,to\nhub,A 1,,8:00,9:00\nAda,A 2,5,8:00,9:00\n"
    (fault,) = refusal(tmp_path, text, vehicles="capacity,speed (km/h)\n9,40\n")
    assert (fault.code, fault.where) == ("no-distances", "stops")
    assert "longitude and latitude" in fault.remedy


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
        ("12 345 678,9", True, 12345678.9),
        ("3 4", False, None),
        ("12 50", False, None),
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
        ("8 30", None),
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
    extras = "mixed fleet + own roads + shifts + several trips + optional + several windows + skills + money"
    assert p.kind == f"VRPMBLTW + {extras}"
    found = solve(p, time_limit=1)
    assert check(p, found.solution).feasible
    before = file.read_bytes()
    assert CliRunner().invoke(app, ["template", str(tmp_path), *option]).exit_code == 2
    assert file.read_bytes() == before


def test_both_templates_are_one_problem(tmp_path):
    for option in ([], ["--xlsx"]):
        CliRunner().invoke(app, ["template", str(tmp_path), *option])
    assert read(tmp_path / "stops.csv") == read(tmp_path / "stops.xlsx")


# -- vehicles that differ, and stops that may be left out

SOME_STOPS, FLEET = (DATA / "fleet.csv").read_text().split("\n\n")


def test_every_column_of_vehicles_and_stops(tmp_path):
    """Kilometres, since x and y are in these; hours as seconds: 0.5 a km, 18 an hour = 0.005 a second."""
    p = problem_of(tmp_path, SOME_STOPS, vehicles=FLEET)
    van, bike = p.types
    assert (van.name, van.count, van.depots, van.end, van.capacity) == ("van", 2, (0,), 1, 10)
    assert (van.distance_limit, van.shift, van.max_duration) == (50, (28_800, 57_600), 27_000)
    assert van.costs == pytest.approx((30, 0.5, 0.005))
    assert (van.skills, van.max_trips, van.reload_depots) == ({"lift", "ice"}, 2, (0, 1))
    assert van.durations[2, 4] == pytest.approx(np.sqrt(2) * 100)  # a kilometre takes 100 s at 36 km/h
    assert (bike.count, bike.depots, bike.open, bike.skills) == (np.inf, (0, 1), True, set())
    assert bike.costs == pytest.approx((0, 0.1, 0.0025))
    assert bike.durations[0, 2] == pytest.approx(200)
    assert p.windows_of(2) == ((28_800, 36_000), (50_400, 57_600))
    assert p.windows_of(3) == ((32_400, 43_200),)
    assert p.prize.tolist() == [np.inf, 7.5, np.inf]
    assert p.skills == ({"lift"}, frozenset(), {"lift", "ice"})


@pytest.mark.parametrize(
    ("column", "costs"),
    [
        ("capacity", (0, 1, 0)),
        ("capacity,fixed cost", (7, 1, 0)),  # comes on top of the distance
        ("capacity,cost per distance", (0, 7, 0)),
        ("capacity,cost per time", (0, 0, 7)),  # money: the distance is free
    ],
)
def test_costs_are_the_objective_where_ways_or_times_have_a_price(column, costs, tmp_path):
    text, row = "name,x,y\ndepot,0,0\nA,3,4\n", "9,7\n" if "," in column else "9\n"
    (vehicle,) = problem_of(tmp_path, text, vehicles=f"{column}\n{row}").types
    assert vehicle.costs == costs


def test_the_objective_may_be_set(tmp_path):
    text, vehicles = "name,x,y\ndepot,0,0\nA,3,4\n", "capacity,cost per time\n9,2\n"
    settings = "setting,value\nobjective,{}\n"
    (both,) = problem_of(tmp_path, text, vehicles=vehicles, settings=settings.format("distance")).types
    assert both.costs == (0, 1, 2)
    (time,) = problem_of(tmp_path, text, vehicles="capacity\n9\n", settings=settings.format("time")).types
    assert time.costs == (0, 0, 1)
    (fault,) = refusal(tmp_path, text, vehicles=vehicles, settings=settings.format("time"))
    assert (fault.code, fault.where) == ("conflicting-fields", "settings.csv, row 2, column 'value'")


def test_a_matrix_of_one_vehicle_type(tmp_path):
    text = "name,x,y\ndepot,0,0\nA,3,4\n\ndistances of boat,depot,A\ndepot,0,2\nA,,0\n"
    p = problem_of(tmp_path, text, vehicles="name,count,capacity,returns\nboat,1,9,no\nvan,1,9,\n")
    assert p.types[0].distances.tolist() == [[0, 2], [np.inf, 0]]
    assert p.types[1].distances is None
    (fault,) = refusal(tmp_path, text, vehicles="name,count,capacity\nship,1,9\nvan,1,9\n")
    assert (fault.code, fault.where) == ("unknown-vehicle", "row 5, column 'distances of boat'")


def test_vehicles_of_one_name_are_told_apart_by_their_depot(tmp_path):
    text = "kind,name,x,y,demand\ndepot,N,0,0,\ndepot,S,9,9,\nstop,A,3,4,1\n"
    p = problem_of(tmp_path, text, vehicles="name,count,depot,capacity\nvan,1,N,5\nvan,2,S,7\n")
    assert [t.name for t in p.types] == ["van (N)", "van (S)"]


def test_a_vehicle_that_is_not_there_today(tmp_path):
    text = "name,x,y\ndepot,0,0\nA,3,4\n"
    p = problem_of(tmp_path, text, vehicles="name,count,capacity\nvan,1,5\ntruck,0,50\n")
    assert (p.capacity, p.fleet, p.vehicle_types) == (5, 1, ())
    (fault,) = refusal(tmp_path, text, vehicles="name,count,capacity\nvan,0,5\ntruck,0,50\n")
    assert (fault.code, fault.where) == ("not-positive", "vehicles.csv, column 'count'")


@pytest.mark.parametrize(
    ("old", "new", "code", "where"),
    [
        (",N,S,10", ",N,X,10", "unknown-location", "vehicles.csv, row 2, column 'end depot'"),
        ('"N, S"', '"N, X"', "unknown-location", "vehicles.csv, row 2, column 'reload depots'"),
        ("08:00-16:00", "16:00-08:00", "window-reversed", "vehicles.csv, row 2, column 'shift'"),
        ("08:00-16:00", "N", "bad-syntax", "vehicles.csv, row 2, column 'shift'"),
        (",7.5,", ",-7.5,", "not-positive", "vehicles.csv, row 2, column 'max duration (h)'"),
        (",30,", ",-30,", "negative", "vehicles.csv, row 2, column 'fixed cost'"),
        ("bike,,,,3", "bike,,,,", "missing-field", "vehicles.csv, row 3, column 'capacity'"),
        (",,18,", ",,,", "missing-field", "vehicles.csv, row 3, column 'speed (km/h)'"),
        ("cost per hour", "cost per time", "unit-missing", "vehicles.csv, column 'cost per time'"),
        ("cost per km", "cost per distance", "unit-missing", "vehicles.csv, column 'cost per distance'"),
        (',2,"N', ',1.5,"N', "bad-syntax", "vehicles.csv, row 2, column 'trips'"),
        (',2,"N', ',1,"N', "conflicting-fields", "vehicles.csv, row 2, column 'reload depots'"),
        ("cost per km", "breaks (km)", "unsupported-feature", "vehicles.csv, row 1, column 'breaks (km)'"),
        ("bike,,,", "van,,N,", "duplicate-name", "vehicles.csv, column 'name'"),
        (",no,\n", ",no,\nstop,D,1,3,2,,,no,\n", "missing-field", "row 6, column 'prize'"),
        (",9,yes", ",nine,yes", "bad-syntax", "row 6, column 'prize'"),
        (",9,yes", ",9,maybe", "unknown-value", "row 6, column 'required'"),
        ("lift + ice", "wings", "skill-missing", "customer 'C' (row 6)"),
        ("14:00-16:00", "16:00", "bad-syntax", "row 4, column 'windows'"),
        ("8:00-18:00,,", '"8:00-9:00, 10:00-18:00",,', "unsupported-feature", "row 2, column 'windows'"),
    ],
)
def test_a_fault_of_vehicles_and_stops_names_its_cell(old, new, code, where, tmp_path):
    stops, fleet = (text.replace(old, new, 1) for text in (SOME_STOPS, FLEET))
    assert (stops, fleet) != (SOME_STOPS, FLEET)
    faults = refusal(tmp_path, stops, vehicles=fleet)
    assert (code, where) in {(fault.code, fault.where) for fault in faults}


def test_the_vehicles_may_be_named(tmp_path):
    """--vehicles goes before vehicles.csv beside the stops; a workbook will do, an own table will not."""
    (tmp_path / "stops.csv").write_text("name,x,y,demand\ndepot,0,0,\nA,3,4,5\n")
    (tmp_path / "vehicles.csv").write_text("capacity\n9\n")
    (tmp_path / "big.csv").write_text("capacity\n90\n")
    sheets = [Sheet([["capacity"], [50]], "Fleet"), Sheet([["name", "x", "y"]], "stops")]
    (tmp_path / "big.xlsx").write_bytes(write_workbook(sheets))
    assert read(tmp_path / "stops.csv").capacity == 9
    assert read(tmp_path / "stops.csv", vehicles=tmp_path / "big.csv").capacity == 90
    assert read(tmp_path / "stops.csv", vehicles=tmp_path / "big.xlsx").capacity == 50
    write(read(tmp_path / "stops.csv"), tmp_path / "own.csv")
    write(read(tmp_path / "stops.csv"), tmp_path / "own.json")
    for file in ("own.csv", "own.json"):
        result = CliRunner().invoke(app, ["info", f"{tmp_path}/{file}", "--vehicles", f"{tmp_path}/big.csv"])
        assert result.exit_code == 2
        assert "[bad-option]" in result.stderr
    result = CliRunner().invoke(
        app, ["convert", f"{tmp_path}/stops.csv", f"{tmp_path}/big.csv", "--vehicles", f"{tmp_path}/big.csv"]
    )
    assert "would write over the input" in result.stderr


# -- writing


def differing(p, q):
    """The fields in which two problems differ, types compared as vehicles that have everything filled in."""

    def same(a, b):
        return a == b if isinstance(a, tuple) else np.array_equal(a, b)

    of_types = {"capacity", "fleet", "open", "distance_limit", "vehicle_types", "duration_matrix"}
    of_types |= {"fixed_cost", "cost_per_distance", "cost_per_time"}
    own = {f.name for f in fields(Problem)} - of_types
    found = [name for name in own if not same(getattr(p, name), getattr(q, name))]
    for a, b in zip(p.types, q.types, strict=True):
        for name in sorted(vars(a).keys() - {"lengths", "times"} | {"distances", "durations"}):
            value, other = getattr(a, name), getattr(b, name)
            if name in ("distances", "durations"):  # which may be the problem's
                value, other = (getattr(x, name) if v is None else v for x, v in ((p, value), (q, other)))
            if not same(value, other) and (name != "name" or len(p.types) > 1):
                found.append(name)
    return found


@pytest.mark.parametrize("seed", range(40))
def test_problems_beyond_the_variants_come_back_the_same(seed, tmp_path):
    p = invent(seed)
    file = tmp_path / ("it.csv" if seed % 8 else "it.xlsx")
    write(p, file)
    assert differing(p, read(file)) == []


@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("*.json")), ids=lambda path: path.stem)
def test_examples_come_back_the_same(example, tmp_path):
    write(read(example), tmp_path / "it.csv")
    assert differing(read(example), read(tmp_path / "it.csv")) == []


@pytest.mark.parametrize(
    "more",
    [
        {"skills": [["a, b"]], "vehicle_types": [VehicleType(skills=["a, b"])]},
        {"customer_windows": [[(0, 1), (2, np.inf)]]},
        {"vehicle_types": [VehicleType(name="boat (fast)", distance_matrix=[[0, 1], [1, 0]])]},
    ],
)
def test_what_a_table_would_not_give_back_is_refused(more, tmp_path):
    p = Problem(capacity=1, delivery=[1], coords=[[0, 0], [0.5, 0]], **more)
    with pytest.raises(ChainRouteError, match="cannot-express"):
        write(p, tmp_path / "it.csv")


def test_a_name_that_looks_like_a_formula_is_a_name(tmp_path):
    p = Problem(name="it", capacity=1, delivery=[1], coords=[[0, 0], [3, 4]], names=["=1+1", "+49 40"])
    write(p, tmp_path / "it.xlsx")
    assert read(tmp_path / "it.xlsx") == p


def test_a_name_that_no_cell_can_hold_is_refused(tmp_path):
    for name in ("", " a", "a\nb", "\x07"):
        p = Problem(capacity=1, delivery=[1], coords=[[0, 0], [3, 4]], names=["depot", name])
        with pytest.raises(ChainRouteError, match="cannot-express"):
            write(p, tmp_path / "it.csv")


def test_matrices_of_vehicles_are_priced_before_they_are_made(tmp_path):
    """Twenty empty matrices of 8,000 stops would take 10 GB."""
    stops = "name,x,y\n" + "".join(f"s{i},{i},0\n" for i in range(8000))
    own = "".join(f"\ndistances of v{k},s0\ns0,0\n" for k in range(20))
    tracemalloc.start()
    (fault,) = refusal(tmp_path, stops + own, vehicles="name,count,capacity\nv1,1,9\n")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (fault.code, fault.where) == ("too-large", "distances")
    assert "20 matrices of 8000 locations" in fault.message
    assert peak < 8 * 8000**2 / 4


def test_cells_are_counted_as_they_are_read(monkeypatch):
    monkeypatch.setattr(grids, "MAX_CELLS", 11)
    assert len(grids.read_csv("a,b,c\n" * 3, ",").rows) == 3
    with pytest.raises(ChainRouteError, match="more than 11 cells"):
        grids.read_csv("a,b,c\n" * 4, ",", place="stops")
