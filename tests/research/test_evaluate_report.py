"""The page of results: written between its marks, and left alone outside of them."""

import shutil

import numpy as np
import pytest
from where import ROOT

from chainroute.errors import ChainRouteError
from chainroute.research.evaluate import pictures
from chainroute.research.evaluate.report import renewed, report
from chainroute.research.evaluate.results import Results, TaskResult


def store(folder, cost=10.5, suite="seen", label="n50", **settings):
    folder.mkdir(parents=True, exist_ok=True)
    task = TaskResult("CVRP", np.full(1000, cost), 2.0, 2**30)
    Results(label, suite, 50, "exact", settings, {"CVRP": task}).save(folder)


def test_only_what_stands_between_marks_changes():
    page = "before\n<!-- a -->\nold\n<!-- /a -->\nafter <!-- b -->\nkept\n<!-- /b -->\n"
    assert renewed(page, {"a": "new", "c": "nowhere"}, {}) == page.replace("old\n", "\nnew\n")
    assert renewed(renewed(page, {"a": r"\1 new"}, {}), {"a": "new"}, {}) == renewed(page, {"a": "new"}, {})


def test_single_figures_stand_within_a_sentence():
    page = "| gap <!--=seen-n50 n50-->9<!--/--> of <!--=X n100 solved--><!--/--> |"
    figures = {"seen-n50 n50": "1.122", "X n100 solved": "33/33"}
    said = "| gap <!--=seen-n50 n50-->1.122<!--/--> of <!--=X n100 solved-->33/33<!--/--> |"
    assert renewed(page, {}, figures) == renewed(said, {}, figures) == said


def test_a_figure_that_no_result_gives_is_refused(tmp_path):
    """And no page is touched."""
    store(tmp_path / "results")
    page = tmp_path / "page.md"
    page.write_text("<!--=seen-n50 n50--><!--/--> <!--=seen-n50 n51--><!--/-->")
    with pytest.raises(ChainRouteError, match="gives the figure 'seen-n50 n51'"):
        report([page], tmp_path / "results")
    assert page.read_text() == "<!--=seen-n50 n50--><!--/--> <!--=seen-n50 n51--><!--/-->"


def test_the_pages_say_what_the_stored_results_say(tmp_path, monkeypatch):
    """A report of copies of the project's pages changes nothing in them, nor in the rows of instances. Its
    pictures are drawn where tests/project/test_pages.py runs the command."""
    monkeypatch.setattr(pictures, "write", lambda figure, path: None)
    shutil.copytree(ROOT / "docs" / "results", tmp_path / "docs" / "results")
    for name in ("README.md", "docs/results.md", "docs/paper.md", "docs/comparison.md"):
        shutil.copy(ROOT / name, tmp_path / name)
    copies = [path for path in tmp_path.rglob("*") if path.suffix in (".md", ".csv")]
    report([path for path in copies if path.suffix == ".md"], tmp_path / "docs" / "results", ROOT / "runs")
    assert len(copies) > 10
    for copy in copies:
        assert copy.read_text() == (ROOT / copy.relative_to(tmp_path)).read_text(), copy.name


def test_a_page_is_made_and_made_again(tmp_path):
    results, page = tmp_path / "docs" / "results", tmp_path / "docs" / "results.md"
    store(results)
    store(results / "ablation", switches="reld=false")
    store(results / "rivals", label="cada-seed1")
    store(results / "rivals-long", label="mvmoe-seed1")
    store(results / "rates", trained_update_rate=0.75, update_rates=[1.0])
    store(results / "seeds", seed=1)
    (tmp_path / "runs" / "n50").mkdir(parents=True)
    (tmp_path / "runs" / "n50" / "curve.csv").write_text("step,instances,estimated_gap\n5,2000000,4\n")
    report([page], results, tmp_path / "runs")
    first = page.read_text()
    assert "| CVRP | 10.500 |" in first
    assert "reld=false" in first
    assert "| CaDA |" in first
    for picture in ("seen-n50-bars", "seen-n50-time", "learning-curves", "update-rates", "seeds"):
        assert f"images/{picture}.png" in first
        assert (page.parent / "images" / f"{picture}.png").stat().st_size < 200_000
    page.write_text(first.replace("# Results", "# Ours"))
    store(results, 11.5)
    report([page], results)
    assert page.read_text().startswith("# Ours")
    assert "| CVRP | 11.500 |" in page.read_text()


def test_without_results_there_is_no_page(tmp_path):
    with pytest.raises(ChainRouteError, match="file-not-found"):
        report([tmp_path / "page.md"], tmp_path / "nothing")
    assert not (tmp_path / "page.md").exists()


def test_the_stored_picture_of_learning_curves_is_that_of_the_runs(tmp_path):
    """Or `evaluate report`, which draws it again, would leave a change behind."""
    from matplotlib.image import imread

    runs = sorted(path.parent for path in (ROOT / "runs").glob(f"*/{pictures.RUNS}"))
    pictures.write(pictures.curves(runs), tmp_path / "drawn.png")
    stored = imread(ROOT / "docs/images/learning-curves.png")
    assert np.array_equal(imread(tmp_path / "drawn.png"), stored)
