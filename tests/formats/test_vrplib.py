"""VRPLIB: what each header and section means, in the dialects of CVRPLIB, PyVRP and LKH-3."""

from pathlib import Path

import numpy as np
import pytest
import pyvrp
import vrplib as reference
from where import DATA

from chainroute import Backhaul, ChainRouteError, Problem, Rounding
from chainroute.formats import read, write


def read_text(text: str, tmp_path: Path) -> Problem:
    path = tmp_path / "file.vrp"
    path.write_text(text, encoding="utf-8")
    return read(path)


def changed(name: str, *changes: tuple[str, str]) -> str:
    text = (DATA / name).read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    return text


# -- reading


def test_plain_file() -> None:
    """All that a small file says, and nothing more."""
    assert read(DATA / "five.vrp") == Problem(
        name="five",
        capacity=10,
        delivery=[4, 5, 6, 3],
        coords=[[0, 0], [5, 5], [5, -5], [-5, -5], [-5, 5]],
        rounding=Rounding.ROUND,
    )


def test_several_depots_windows_service_fleet_and_limit() -> None:
    assert read(DATA / "depots.vrp") == Problem(
        name="depots",
        num_depots=2,
        capacity=10,
        fleet=2,
        distance_limit=30,
        coords=[[0, 0], [20, 0], [3, 4], [17, 4], [20, 5.5]],
        delivery=[7, 7, 2.5],
        time_windows=[[0, 100], [10, 100], [5, 6], [0, 50], [40, 60]],
        service=[2, 2, 1],
    )


def test_lkh_lists_backhauls_whose_amounts_are_demands() -> None:
    problem = read(DATA / "backhauls.vrpb")
    assert problem.backhaul is Backhaul.LINEHAULS_FIRST
    assert problem.delivery.tolist() == [0, 4, 0, 1]
    assert problem.pickup.tolist() == [6, 0, 9, 0]
    assert problem.fleet == 2


def test_pyvrp_gives_each_backhaul_an_amount(tmp_path: Path) -> None:
    rows = "1 0\n2 6\n3 0\n4 9\n5 0\n"
    text = changed("backhauls.vrpb", ("BACKHAUL_SECTION\n2 4\n-1\n", f"BACKHAUL_SECTION\n{rows}"))
    text = text.replace("2 6\n3 4\n4 9\n5 1", "2 0\n3 4\n4 0\n5 1", 1)
    assert read_text(text, tmp_path) == read(DATA / "backhauls.vrpb")


def test_a_type_before_the_coordinates_says_which_nodes_are_backhauls(tmp_path: Path) -> None:
    """The layout of the backhaul sets on VRP-REP, whose TYPE is CVRP: linehauls come first, as in VRPB."""
    theirs = read(DATA / "backhauls.vrpb").replace(fleet=None, name="types")
    assert read(DATA / "types.vrpb") == theirs
    mixed = read_text(changed("types.vrpb", ("TYPE : CVRP", "TYPE : VRPMB")), tmp_path)
    assert mixed == theirs.replace(backhaul=Backhaul.MIXED)


def test_linehauls_alone_with_types_are_a_plain_problem(tmp_path: Path) -> None:
    text = changed("types.vrpb", ("2 1 0 3", "2 0 0 3"), ("4 1 4 0", "4 0 4 0"))
    problem = read_text(text, tmp_path)
    assert problem.variant.name == "CVRP"
    assert problem.delivery.tolist() == [6, 4, 9, 1]


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("five.vrp", "1\n-1\nEOF", "1\nEOF"),
        ("five.vrp", "1\n-1\nEOF", "1"),  # the end of the file
        ("depots.vrp", "1\n2\n-1\nEOF", "1 2\nEOF"),
        ("matrix.vrp", "DEMAND_SECTION", "DEPOT_SECTION\n1\nDEMAND_SECTION"),  # another section follows
    ],
)
def test_depots_may_end_with_their_section(name: str, old: str, new: str, tmp_path: Path) -> None:
    """PyVRP's readers take such files, too: -1 need not end the list."""
    text = changed(name, (old, new))
    if name == "matrix.vrp":
        text = text.replace("DEPOT_SECTION\n1\n-1\n", "", 1)
    assert read_text(text, tmp_path) == read(DATA / name)


def test_lkh_columns_of_pickups_and_deliveries() -> None:
    problem = read(DATA / "mixed.vrpmpd")
    assert problem.backhaul is Backhaul.MIXED
    assert problem.delivery.tolist() == [7, 0, 3]
    assert problem.pickup.tolist() == [0, 9, 0]
    assert problem.service.tolist() == [5, 5, 5]
    assert problem.time_windows is None
    assert (problem.distance_limit, problem.limit_counts_service) == (50, True)


def test_lkh_columns_with_windows(tmp_path: Path) -> None:
    text = changed("mixed.vrpmpd", ("2 0 0 10000000", "2 0 4 60"))
    windows = read_text(text, tmp_path).time_windows
    assert windows is not None
    assert windows.tolist() == [[0, 1e7], [4, 60], [0, 1e7], [0, 1e7]]
    promised = changed("mixed.vrpmpd", ("TYPE : VRPMPD", "TYPE : VRPMPDTW"))
    assert read_text(promised, tmp_path).variant.time_windows


@pytest.mark.parametrize(
    ("line", "limit", "counts_service"),
    [
        ("DISTANCE : 60\nSERVICE_TIME : 3", 60, True),
        ("DISTANCE : 60", 60, False),  # nothing to count
        ("VEHICLES_MAX_DISTANCE : 60\nSERVICE_TIME : 3", 60, False),
        ("VEHICLES_MAX_DURATION : 60\nSERVICE_TIME : 3", 60, True),
        ("SERVICE_TIME : 3", None, False),
    ],
)
def test_limits(line: str, limit: float | None, counts_service: bool, tmp_path: Path) -> None:
    """A limit counts service where the file gives a service time beside it."""
    problem = read_text(changed("five.vrp", ("CAPACITY", f"{line}\nCAPACITY")), tmp_path)
    assert (problem.distance_limit, problem.limit_counts_service) == (limit, counts_service)
    assert problem.service.tolist() == [3 * ("SERVICE_TIME" in line)] * 4


def test_a_section_of_equal_vehicles_is_one_number(tmp_path: Path) -> None:
    text = changed("five.vrp", ("CAPACITY : 10\n", "CAPACITY_SECTION\n1 10\n2 10\n"))
    assert read_text(text, tmp_path) == read(DATA / "five.vrp")


@pytest.mark.parametrize(
    ("given", "rounding"),
    [("EUC_2D", "round"), ("CEIL_2D", "ceil"), ("FLOOR_2D", "trunc"), ("EXACT_2D", "exact")],
)
def test_weight_types(given: str, rounding: str, tmp_path: Path) -> None:
    """The type of the weights says how distances are rounded."""
    assert read_text(changed("five.vrp", ("EUC_2D", given)), tmp_path).rounding == rounding


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("TYPE : VRP", "CVRP"),
        ("TYPE : ACVRP", "CVRP"),
        ("TYPE : OVRP", "OVRP"),
        ("TYPE : DCVRP\nDISTANCE : 99", "VRPL"),
        ("TYPE : OVRPL\nDISTANCE : 99", "OVRPL"),
        ("COMMENT : no type", "CVRP"),
    ],
)
def test_types(given: str, name: str, tmp_path: Path) -> None:
    """The variant follows from the type and from what the file contains."""
    assert read_text(changed("five.vrp", ("TYPE : CVRP", given)), tmp_path).variant.name == name


SYMMETRIC = [[0, 1, 2, 3], [1, 0, 4, 5], [2, 4, 0, 6], [3, 5, 6, 0]]


@pytest.mark.parametrize(
    ("form", "entries"),
    [
        ("FULL_MATRIX", "0 1 2 3 1 0 4 5 2 4 0 6 3 5 6 0"),
        ("UPPER_ROW", "1 2 3\n4 5\n6"),
        ("LOWER_ROW", "1\n2 4\n3 5 6"),
        ("UPPER_DIAG_ROW", "0 1 2 3\n0 4 5\n0 6\n0"),
        ("LOWER_DIAG_ROW", "0\n1 0\n2 4 0\n3 5 6 0"),
        ("UPPER_COL", "1\n2 4\n3 5 6"),
        ("LOWER_COL", "1 2 3\n4 5\n6"),
        ("UPPER_DIAG_COL", "0\n1 0\n2 4 0\n3 5 6 0"),
        ("LOWER_DIAG_COL", "0 1 2 3 0 4\n5 0 6 0"),
    ],
)
def test_matrix_formats(form: str, entries: str, tmp_path: Path) -> None:
    """All layouts of a symmetric matrix give the same distances."""
    text = changed(
        "matrix.vrp",
        ("FULL_MATRIX", form),
        ("0 1 2\n3 0 4\n5 6 0", entries),
        ("DIMENSION : 3", "DIMENSION : 4"),
        ("3 1\n", "3 1\n4 1\n"),
    )
    assert read_text(text, tmp_path).distances.tolist() == SYMMETRIC


def test_an_asymmetric_matrix_runs_from_row_to_column() -> None:
    problem = read(DATA / "matrix.vrp")
    assert problem.distance(0, 2) == 2
    assert problem.distance(2, 0) == 5


def test_coordinates_beside_a_matrix_are_kept(tmp_path: Path) -> None:
    for section in ("NODE_COORD", "DISPLAY_DATA"):
        text = changed(
            "matrix.vrp", ("DEMAND_SECTION", f"{section}_SECTION\n1 0 0\n2 1 0\n3 0 1\nDEMAND_SECTION")
        )
        problem = read_text(text, tmp_path)
        assert problem.coords is not None
        assert problem.coords.tolist() == [[0, 0], [1, 0], [0, 1]]
        assert problem.distance(0, 1) == 1


def test_rows_may_stand_in_any_order(tmp_path: Path) -> None:
    text = changed("five.vrp", ("2 5 5\n3 5 -5\n", "3 5 -5\n2 5 5\n"))
    assert read_text(text, tmp_path) == read(DATA / "five.vrp")


def test_all_faults_are_told_with_their_lines(tmp_path: Path) -> None:
    text = changed(
        "five.vrp",
        ("CAPACITY : 10", "CAPACITY : ten"),
        ("3 5 -5", "3 5"),
        ("4 6\n", "4 nan\n"),
        ("DEPOT_SECTION", "PRIZE_SECTION\n1 2\nDEPOT_SECTION"),
    )
    with pytest.raises(ChainRouteError) as caught:
        read_text(text, tmp_path)
    assert {(fault.code, fault.where) for fault in caught.value.faults} == {
        ("bad-syntax", "CAPACITY, line 6"),
        ("bad-syntax", "NODE_COORD_SECTION, line 10"),
        ("not-finite", "DEMAND_SECTION, line 17"),
        ("unsupported-feature", "PRIZE_SECTION, line 19"),
    }


def test_what_validation_finds_is_told_with_its_line(tmp_path: Path) -> None:
    text = changed(
        "depots.vrp", ("5 40 60", "5 60 40"), ("4 7\n", "4 -7\n"), ("CAPACITY : 10", "CAPACITY : 0")
    )
    with pytest.raises(ChainRouteError) as caught:
        read_text(text, tmp_path)
    assert {(fault.code, fault.where) for fault in caught.value.faults} == {
        ("window-reversed", "TIME_WINDOW_SECTION, line 25"),
        ("negative", "DEMAND_SECTION, line 18"),
        ("not-positive", "CAPACITY, line 5"),
    }


# -- what others make of our files


def whole_problem(**changes: object) -> Problem:
    fields: dict[str, object] = {
        "name": "whole", "num_depots": 2, "capacity": 9, "fleet": 2, "backhaul": Backhaul.MIXED,
        "coords": [[0, 0], [30, 0], [3, 4], [6, 8], [27, 4]],
        "delivery": [3, 0, 5], "pickup": [0, 4, 0], "service": [2, 1, 3],
        "time_windows": [[0, 99], [5, 99], [6, 20], [0, 50], [0, 60]], "distance_limit": 40,
    }  # fmt: skip
    return Problem(**(fields | changes))  # type: ignore[arg-type]


def test_pyvrp_reads_the_same_problem(tmp_path: Path) -> None:
    problem = whole_problem(rounding=Rounding.ROUND)
    path = tmp_path / "whole.vrp"
    write(problem, path)
    data = pyvrp.read(path, round_func="round")
    assert (data.num_depots, data.num_clients, data.num_vehicles) == (2, 3, 4)
    assert [c.delivery for c in data.clients()] == [[3], [0], [5]]
    assert [c.pickup for c in data.clients()] == [[0], [4], [0]]
    assert [(c.tw_early, c.tw_late, c.service_duration) for c in data.clients()] == [
        (6, 20, 2), (0, 50, 1), (0, 60, 3),
    ]  # fmt: skip
    vehicles = [(v.start_depot, v.num_available, v.capacity, v.max_distance) for v in data.vehicle_types()]
    assert vehicles == [(0, 2, [9], 40), (1, 2, [9], 40)]
    np.testing.assert_array_equal(data.distance_matrix(0), problem.distances)


def test_pyvrp_reads_a_matrix(tmp_path: Path) -> None:
    problem = read(DATA / "matrix.vrp")
    write(problem, tmp_path / "matrix.vrp")
    data = pyvrp.read(tmp_path / "matrix.vrp", round_func="round")
    np.testing.assert_array_equal(data.distance_matrix(0), problem.distances)


def test_vrplib_accepts_a_comment_with_names(tmp_path: Path) -> None:
    names = ["north", "south", "Ann : Bee", "b\n#2", "Ç"]
    write(whole_problem(names=names), tmp_path / "named.vrp")
    assert read(tmp_path / "named.vrp").names == tuple(names)
    instance = reference.read_instance(tmp_path / "named.vrp")
    assert instance["dimension"] == 5
    np.testing.assert_array_equal(instance["demand"], [0, 0, 3, 0, 5])


def test_lkh_files_are_written_as_they_were_read(tmp_path: Path) -> None:
    """Our files of the LKH-3 dialect have the data lines of the originals."""
    for name in ("backhauls.vrpb", "mixed.vrpmpd"):
        write(read(DATA / name), tmp_path / name)
        ours = (tmp_path / name).read_text().split()
        assert sorted(ours) == sorted((DATA / name).read_text().split())


def test_type_says_what_pyvrp_and_lkh_look_for(tmp_path: Path) -> None:
    for format, kind in (("vrplib", "MDVRPMBTW"), ("lkh", "MDVRPMPDTW")):
        write(whole_problem(), tmp_path / "it", format)
        assert f"TYPE : {kind}\n" in (tmp_path / "it").read_text()
    write(read(DATA / "backhauls.vrpb").replace(distance_limit=99), tmp_path / "it", "vrplib")
    assert "TYPE : VRPB\n" in (tmp_path / "it").read_text()


def test_lkh_files_say_what_the_program_would_miss(tmp_path: Path) -> None:
    """It reads one half of a matrix of TYPE CVRP, beside a matrix it takes no coordinates but for display,
    and with backhauls and windows it reads no service time but that of the header."""
    lopsided = [[0, 5, 6], [7, 0, 8], [9, 10, 0]]
    problem = Problem(capacity=9, delivery=[1, 2], distance_matrix=lopsided, coords=[[0, 0], [1, 2], [3, 4]])
    windows = {"backhaul": "linehauls-first", "time_windows": [[0, 99]] * 3, "service": [4, 4]}
    for changes, lines in (
        ({}, ["TYPE : ACVRP", "DISPLAY_DATA_TYPE : TWOD_DISPLAY", "DISPLAY_DATA_SECTION"]),
        ({"distance_limit": 50}, ["TYPE : ADCVRP", "DISTANCE : 50"]),
        ({"distance_matrix": np.ones((3, 3)) - np.eye(3)}, ["TYPE : CVRP"]),
        ({**windows, "pickup": [0, 2], "delivery": [1, 0]}, ["TYPE : VRPBTW", "SERVICE_TIME : 4"]),
        ({"time_windows": [[0, 99]] * 3, "service": [4, 5]}, ["TYPE : CVRPTW", "SERVICE_TIME_SECTION"]),
    ):
        write(problem.replace(**changes), tmp_path / "it", "lkh")
        assert set(lines) <= set((tmp_path / "it").read_text().splitlines())
        assert read(tmp_path / "it") == problem.replace(**changes)


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"rounding": Rounding.TRUNC1}, "rounding to one decimal"),
        ({"metric": "haversine", "distance_limit": None, "time_windows": None}, "longitude and latitude"),
        ({"duration_matrix": np.zeros((5, 5))}, "a duration matrix"),
        ({"time_windows": [[0, np.inf]] * 5}, "windows that never close"),
        ({"name": "two\nlines"}, "the name"),
    ],
)
def test_what_cannot_be_written(changes: dict[str, object], word: str, tmp_path: Path) -> None:
    with pytest.raises(ChainRouteError, match=f"cannot hold {word}"):
        write(whole_problem(**changes), tmp_path / "it.vrp")
