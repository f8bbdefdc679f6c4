"""Pictures: each shows what it is given, as a small file, the same each time."""

import numpy as np
import pytest

from chainroute.errors import ChainRouteError
from chainroute.generate.references import references
from chainroute.research.evaluate import pictures
from chainroute.research.evaluate.results import Results, TaskResult
from chainroute.research.evaluate.tasks import SUITES, TEST_SET_PROBLEMS


def results(label="n50", above=2.0, **settings):
    made = Results(label, "seen", 50, "exact", settings)
    for v in SUITES["seen"]:
        cost = references()[v.name, 50] * (1 + above / 100)
        made.tasks[v.name] = TaskResult(v.name, np.full(TEST_SET_PROBLEMS, cost), 2.0, 2**30, 100)
    return made


def words(figure):
    return [t.get_text() for axes in figure.axes for t in [*axes.texts, *axes.get_xticklabels()]]


def test_bars_stand_for_every_task_and_method(tmp_path):
    figure = pictures.bars([results()])
    (axes,) = figure.axes
    assert len(axes.patches) == 16 * (1 + 7)
    assert axes.patches[0].get_height() == pytest.approx(2)
    pictures.write(figure, tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "a.png").stat().st_size < 200_000


def test_each_suite_and_size_has_a_panel():
    """Stored results of several suites go into one picture; libraries have bars, but no time for 1,000."""
    small = results()
    big = Results(
        "n100", "seen", 100, "exact", {}, {"CVRP": TaskResult("CVRP", np.full(TEST_SET_PROBLEMS, 16.0), 2.0)}
    )
    named = TaskResult("X", np.array([28144.0]), 2.0, names=("X-n101-k25",), best=(27591.0,))
    library = Results("n100", "real", None, "exact", {}, {"X": named})
    *_, last = pictures.bars([small, big, library]).axes
    assert last.get_title(loc="left") == "instances from libraries"
    assert last.patches[0].get_height() == pytest.approx(100 * (28144 / 27591 - 1))
    assert len(pictures.trade_off([small, big, library]).axes) == 2
    with pytest.raises(ChainRouteError, match="bad-option"):
        pictures.trade_off([library])


def test_the_same_picture_is_the_same_file(tmp_path):
    for name in ("a.svg", "b.svg"):
        pictures.write(pictures.trade_off([results()]), tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert "CCL+ReLD" in (tmp_path / "a.svg").read_text()


def test_the_heat_map_has_a_cell_for_each_pair_of_rates():
    grid = [
        results(f"{tr}-{ts}", tr + 2 * ts, trained_update_rate=tr, update_rates=[ts])
        for tr, ts in ((0.25, 0.5), (0.25, 1.0), (0.75, 1.0))
    ]
    figure = pictures.update_rates(grid)
    assert {"1.25", "2.25", "2.75"} <= set(words(figure))
    assert [text.get_text() for text in figure.axes[1].texts] == ["2.00"] * 3  # seconds for 1,000 problems
    with pytest.raises(ChainRouteError, match="bad-option"):
        pictures.update_rates([results()])


def test_error_bars_span_the_seeds_of_one_setting():
    """Gaps of 1 and 3 %: the standard deviation is the square root of 2; another setting has its own."""
    runs = [results("a", 1.0, seed=0), results("a-seed1", 3.0, seed=1), results("b", 5.0, seed=0, half=True)]
    (axes,) = pictures.seeds(runs).axes
    bars = axes.containers
    assert len(bars) == 2
    segment = bars[0].lines[2][0].get_segments()[0]
    assert segment[1, 1] - segment[0, 1] == pytest.approx(2 * np.sqrt(2), rel=1e-3)


def test_learning_curves_come_from_the_ledgers_of_runs(tmp_path):
    """The gap from the first update on, and the loss from where the ledger has it."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "curve.csv").write_text(
        "step,instances,estimated_gap,training_loss\n0,0,99,\n5,2000000,4,\n9,4000000,2,-0.5\n"
    )
    gap, loss = pictures.curves([tmp_path / "mine"]).axes
    assert gap.lines[0].get_xydata().tolist() == [[2, 4], [4, 2]]
    assert loss.lines[0].get_xydata().tolist() == [[4, -0.5]]
