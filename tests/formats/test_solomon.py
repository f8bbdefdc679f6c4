"""Solomon's format."""

from pathlib import Path

import numpy as np
import pytest
import vrplib
from where import DATA

from chainroute import ChainRouteError, Problem
from chainroute.formats import read, write

WINDOWS = Problem(
    name="windows",
    capacity=20,
    fleet=2,
    coords=[[0, 0], [3, 4], [6, 8], [-1, 1]],
    delivery=[10, 7, 3],
    time_windows=[[0, 100], [8, 20], [30, 40], [0, 90]],
    service=[2, 2, 2],
)


def test_file_by_hand() -> None:
    assert read(DATA / "windows.txt") == WINDOWS


def test_as_many_vehicles_as_customers_is_no_limit(tmp_path: Path) -> None:
    path = tmp_path / "free.txt"
    path.write_text((DATA / "windows.txt").read_text().replace("  2          20", "  3          20"))
    assert read(path).fleet is None
    write(WINDOWS.replace(fleet=None), path)
    assert read(path).fleet is None
    assert path.read_text().splitlines()[4].split() == ["3", "20"]


def test_vrplib_reads_the_same_numbers(tmp_path: Path) -> None:
    write(WINDOWS, tmp_path / "it.txt")
    theirs = vrplib.read_instance(tmp_path / "it.txt", instance_format="solomon")
    assert (theirs["name"], theirs["vehicles"], theirs["capacity"]) == ("windows", 2, 20)
    np.testing.assert_array_equal(theirs["node_coord"], WINDOWS.coords)
    np.testing.assert_array_equal(theirs["demand"], WINDOWS.deliveries)
    np.testing.assert_array_equal(theirs["time_window"], WINDOWS.windows)
    np.testing.assert_array_equal(theirs["service_time"], WINDOWS.services)


@pytest.mark.parametrize("name", ["", "{x}", "[x]", "#x", "Vehicle", "two\nlines", " x", "a  b"])
def test_names_that_would_not_come_back(name: str, tmp_path: Path) -> None:
    with pytest.raises(ChainRouteError, match="cannot-express"):
        write(WINDOWS.replace(name=name), tmp_path / "it.txt", "solomon")


@pytest.mark.parametrize("name", ["VEHICLE of mine", "CUSTOMER", "NAME : x", "2 3 4 5"])
def test_strange_names_that_do(name: str, tmp_path: Path) -> None:
    write(WINDOWS.replace(name=name), tmp_path / "it.txt", "solomon")
    assert read(tmp_path / "it.txt").name == name


def test_without_windows_it_is_another_problem(tmp_path: Path) -> None:
    with pytest.raises(ChainRouteError, match="cannot hold no time windows"):
        write(WINDOWS.replace(time_windows=None), tmp_path / "it.txt", "solomon")


def test_faults_name_the_line(tmp_path: Path) -> None:
    path = tmp_path / "bad.txt"
    path.write_text(
        (DATA / "windows.txt").read_text().replace("30         40", "40         30").replace("7  ", "-7 ")
    )
    with pytest.raises(ChainRouteError) as caught:
        read(path)
    found = {(fault.code, fault.where) for fault in caught.value.faults}
    assert found == {("window-reversed", "line 12"), ("negative", "line 12")}
