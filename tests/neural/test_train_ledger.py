"""The ledger of a run."""

import sys

import pytest

from chainroute.errors import ChainRouteError
from chainroute.neural.train import ledger


def rows(*steps):
    return [{"start": f"t{s}", "step": s, "instances": 10 * s, "estimated_gap": 1 / s} for s in steps]


def test_rows_are_added_and_the_last_is_replaced(tmp_path):
    """A stretch that is saved twice has one row; columns that come later are empty before."""
    path = tmp_path / "log.csv"
    first, second = rows(1, 2)
    for row in (first, second, {**second, "instances": 25, "end": "done", "none": None}):
        ledger.record(path, row, "start")
    assert ledger.read(path) == [
        {"start": "t1", "step": "1", "instances": "10", "estimated_gap": "1", "end": "", "none": ""},
        {"start": "t2", "step": "2", "instances": "25", "estimated_gap": "0.5", "end": "done", "none": ""},
    ]


def test_rows_of_updates_to_be_made_again_are_dropped(tmp_path):
    path = tmp_path / "curve.csv"
    for row in rows(1, 2, 3):
        ledger.record(path, row, "step")
    ledger.forget(path, 2)
    assert [row["step"] for row in ledger.read(path)] == ["1", "2"]
    ledger.forget(path, 0)
    assert ledger.read(path) == []
    ledger.forget(tmp_path / "none.csv", 3)


@pytest.mark.parametrize("data", [b"a,b\n1,2\n", b"\xff\xfe\x00"])
def test_files_that_are_no_ledger(tmp_path, data):
    (tmp_path / "log.csv").write_bytes(data)
    with pytest.raises(ChainRouteError):
        ledger.read(tmp_path / "log.csv")


def test_picture(tmp_path):
    """The curve is drawn once there is something to draw."""
    pytest.importorskip("matplotlib")
    ledger.draw(tmp_path)
    assert not (tmp_path / "curve.png").exists()  # nothing to draw yet
    for row in rows(1, 2, 3):
        ledger.record(tmp_path / "curve.csv", row, "step")
    ledger.draw(tmp_path)
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")


def test_no_picture_without_matplotlib(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    ledger.record(tmp_path / "curve.csv", rows(1)[0], "step")
    ledger.draw(tmp_path)
    assert not (tmp_path / "curve.png").exists()
