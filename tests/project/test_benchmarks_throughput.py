"""The benchmark of many problems runs in a small form, and its figures are what they say."""

import json
import os
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks import prices, recombine, throughput, throughput_curve
from benchmarks.rows import append_row, read_rows
from benchmarks.throughput import Row


def filling(arrays):
    """The problems stretched to fill the unit square, as a network is given what `solve_many` solves: arrays
    are decoded as they are, and at another scale a near tie of two visits may end the other way."""
    locs = arrays["locs"] - arrays["locs"].min(axis=1, keepdims=True)
    return {**arrays, "locs": locs / locs.max(axis=(1, 2), keepdims=True)}


@pytest.fixture
def references(tmp_path, monkeypatch):
    """The references are of two problems with five customers, which a moment of PyVRP solves."""
    path = tmp_path / "references.json"
    drawn = throughput.generate_arrays
    monkeypatch.setattr(
        throughput, "generate_arrays", lambda *args, **kwargs: filling(drawn(*args, **kwargs))
    )
    arguments = ["--references", str(path), "--sizes", "5", "--problems", "2", "--cores", "0"]
    throughput.main([*arguments, "--variants", "CVRP", "--reference-seconds", "0.1"])
    return path, arguments


def test_all_methods_are_measured_and_none_is_better_than_optimal(references, tmp_path):
    _, arguments = references
    path = tmp_path / "out" / "rows.csv"
    methods = [
        "policy-x1", "policy-x8", "recombined-x1", "recombined-x2r3", "polished-x1-0.05", "pyvrp-0.05",
        "product-x1", "product-x2r3", "product-policy",
    ]  # fmt: skip
    options = ["--variants", "CVRP", "--device", "cpu", "--seconds", "0", "--batch", "1", "--csv", str(path)]
    throughput.main([*arguments, *options, "--methods", *methods])
    found = {row.method: row for row in read_rows(path, Row)}
    assert list(found) == methods
    assert all(row.gap >= -1e-6 and row.unsolved == 0 and row.per_second > 0 for row in found.values())
    assert found["policy-x8"].gap <= found["policy-x1"].gap
    assert found["polished-x1-0.05"].gap == pytest.approx(0, abs=1e-4)
    assert (found["pyvrp-0.05"].device, found["policy-x1"].device > 0) == (0, True)
    for same in ("x1", "x2r3"):  # `solve_many` does what it is compared with
        assert found[f"product-{same}"].gap == pytest.approx(found[f"recombined-{same}"].gap, abs=1e-6)


def test_recombining_is_measured(monkeypatch, references, capsys):
    """Each way has a row; none is worse than the best trajectory, none better than the reference."""
    path, _ = references
    monkeypatch.setattr(recombine, "REFERENCES", path)
    recombine.main(
        ["--variants", "CVRP", "--sizes", "5", "--problems", "2", "--augment", "2", "--device", "cpu"]
    )
    rows = [line.split(" | ") for line in capsys.readouterr().out.splitlines() if "CVRP-005" in line]
    gaps = {method: float(gap.rstrip(" |")) for _, method, _, gap in rows}
    assert len(gaps) == 3 + len(recombine.VISITS) * len(recombine.WIDTHS) + len(recombine.POLISH_SECONDS)
    assert all(-0.001 <= gap <= gaps["best trajectory"] for gap in gaps.values())


def test_what_pools_allow_is_measured(capsys):
    """Bounds are below the relaxation, and it is below plans; either search is as good as the best
    trajectory."""
    prices.main(["--cases", "CVRP-6", "MDVRPTW-5", "--problems", "2"])
    rows = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines()[2:]]
    assert [row[0] for row in rows] == ["CVRP-6", "MDVRPTW-5"]
    for row in rows:
        below, best, by_core, core_ms, by_device, device_ms = map(float, row[1:])
        assert below >= 0
        assert -1e-3 <= by_core <= best
        assert -1e-3 <= by_device <= best
        assert core_ms > 0
        assert device_ms > 0


def test_the_host_s_work_is_measured(capsys):
    """Each step of each case has a time."""
    throughput.main(["--host", "--variants", "CVRP", "VRPTW", "--sizes", "5", "--problems", "2"])
    _, _, *rows = capsys.readouterr().out.splitlines()
    names, *times = zip(*(row.strip("| ").split(" | ") for row in rows), strict=True)
    assert names == ("CVRP-005", "VRPTW-005")
    assert len(times) == 6
    assert all(float(ms) > 0 for step in times for ms in step)


def test_other_weights_are_measured_as_they_are_named(references, tmp_path):
    """So are those that `solve_many` is given, which joins routes, too; PyVRP has none."""
    _, arguments = references
    path, weights = tmp_path / "rows.csv", Path(throughput.__file__).parents[1] / "weights" / "paper-n50"
    options = ["--variants", "CVRP", "--device", "cpu", "--seconds", "0", "--weights", str(weights)]
    methods = ["--methods", "recombined-x2r3", "product-x2r3", "pyvrp-0.05"]
    throughput.main([*arguments, *options, *methods, "--csv", str(path)])
    decoded, product, classical = read_rows(path, Row)
    assert [row.weights for row in (decoded, product, classical)] == ["paper-n50", "paper-n50", ""]
    assert -1e-6 <= product.gap <= decoded.gap + 1e-6
    assert throughput.effort_of(None, 0.0, str(weights), "cpu").weights == str(weights)


def made(method, speed, gap, case="CVRP-050"):
    return Row(case, "" if method.startswith("pyvrp") else "all", method, speed, gap, 0.5, 0)


def test_speeds_at_a_gap_lie_between_rows_that_none_beats():
    """At 1 % halfway between 900 at 1.5 % and 500 at 0.5 %; the row at 1.2 % is slower than one with less."""
    rows = [made("recombined-x1", 900, 1.5), made("policy-x8", 400, 1.2), made("recombined-x2", 500, 0.5)]
    assert throughput_curve.at_gap(rows, 1.0) == pytest.approx(700)
    assert throughput_curve.at_gap(rows, 0.5) == pytest.approx(500)
    assert throughput_curve.at_gap(rows, 0.4) is throughput_curve.at_gap(rows, 1.6) is None


def test_a_curve_is_drawn_and_its_ratios_are_told(tmp_path, capsys):
    path, picture = tmp_path / "rows.csv", tmp_path / "curve.png"
    some = [made("recombined-x1", 900, 1.5), made("recombined-x2", 500, 0.5)]
    some += [replace(made("recombined-x1", 990, 2.0), weights="other"), replace(some[1], weights="other")]
    some += [made("pyvrp-0.1", 20, 2.0), made("pyvrp-0.2", 10, 0.0), made("policy-x8", 10, 0.0, "VRPTW-050")]
    some += [made("product-x2", 800, 0.5)]  # which is told, but is not what decoding makes
    for row in some:
        append_row(path, row)
    throughput_curve.main(["--csv", str(path), "--picture", str(picture)])
    assert capsys.readouterr().out.splitlines()[2:] == [
        "| CVRP-050 | all | 700 | 15 | 46.7 |",
        "| CVRP-050 | other | 663 | 15 | 44.2 |",
        "| VRPTW-050 | all |  |  |  |",
    ]
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_references_that_are_there_are_kept(references):
    path, arguments = references
    path.write_text(json.dumps({"CVRP-005": {"seconds": 1, "costs": [3.0]}}))
    throughput.main([*arguments, "--variants", "CVRP", "--reference-seconds", "0.1"])
    assert json.loads(path.read_text()) == {"CVRP-005": {"seconds": 1, "costs": [3.0]}}


def test_costs_come_in_the_order_of_the_problems():
    """However late chunks are, and with more of them than may be on their way."""
    line = throughput.Line(throughput.Here(), 0)
    for first in (0, 2, 4, 6, 8, 10):
        line.send(first, lambda first: [float(first), first + 1.0], first)
    assert line.all().tolist() == list(np.arange(12.0))


NUMBERED = {"locs": np.arange(6.0), "demand_linehaul": np.ones((6, 1))}  # six problems, each cost its number


def batches(monkeypatch, decoded, finish):
    """Costs of the numbered problems, of which two are decoded together."""
    monkeypatch.setattr(throughput, "decoded", decoded)
    monkeypatch.setattr(throughput, "finish", finish)
    line = throughput.Line(throughput.Here(), 0)
    return throughput.measured("policy-x1", None, "", NUMBERED, line, 2, 0.0)[0].tolist()


def test_a_batch_is_sent_while_the_next_is_decoded(monkeypatch):
    """The first is not finished before the second is being decoded, but before the third is; none is lost."""
    begun, finished = threading.Semaphore(0), []

    def decoded(policy, arrays, options):
        begun.release()
        assert arrays["locs"][0] < 4 or 0.0 in finished
        return [None, None]

    def finish(arrays, drafts, seconds):
        if arrays["locs"][0] == 0:
            assert begun.acquire(timeout=30)
            assert begun.acquire(timeout=30)
        assert len(drafts) == 2
        finished.extend(arrays["locs"])
        return list(arrays["locs"])

    assert batches(monkeypatch, decoded, finish) == finished == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


@pytest.mark.parametrize("bad", [0.0, 2.0, 4.0])
def test_what_goes_wrong_with_a_batch_is_raised(monkeypatch, bad):
    """Also with the last one."""

    def finish(arrays, drafts, seconds):
        if arrays["locs"][0] == bad:
            raise ValueError("no such plan")
        return list(arrays["locs"])

    with pytest.raises(ValueError, match="no such plan"):
        batches(monkeypatch, lambda *given: [None, None], finish)


def test_it_runs_where_little_more_than_torch_and_pyvrp_is_installed(tmp_path):
    """No process finds any of the others, as if they were not installed; PyVRP searches all the same."""
    (tmp_path / "sitecustomize.py").write_text(
        """
import sys

ABSENT = {"typer", "pydantic", "rich", "vrplib", "openpyxl", "fastapi", "matplotlib", "scipy"}

class Finder:
    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, *args):
        spec = self.finder.find_spec(name, *args)
        return None if spec and name in ABSENT and "site-packages" in str(spec.origin) else spec

sys.meta_path[:] = map(Finder, sys.meta_path)
"""
    )
    code = """
from benchmarks import recombine, throughput
from chainroute.search.solvers import pyvrp
from chainroute.generate import generate
from chainroute.problem.variants import variant

(problem,) = generate(variant("CVRP"), 6, 1, seed=0)
print(pyvrp.solve(problem, 5.0, max_iterations=1).solution.cost > 0)
"""
    path = os.pathsep.join([str(tmp_path), str(Path(throughput.__file__).parents[1])])
    ran = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True
    )
    assert ran.stdout == "True\n", ran.stderr
