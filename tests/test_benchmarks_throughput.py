"""The benchmark of many problems runs in a small form, and its figures are what they say."""

import json
import subprocess
import sys

import numpy as np
import pytest

from benchmarks import throughput


@pytest.fixture
def references(tmp_path):
    """The references are of two problems with five customers, which a moment of PyVRP solves."""
    path = tmp_path / "references.json"
    arguments = ["--references", str(path), "--sizes", "5", "--problems", "2", "--cores", "0"]
    throughput.main([*arguments, "--variants", "CVRP", "--reference-seconds", "0.1"])
    return path, arguments


def test_all_methods_are_measured_and_none_is_better_than_optimal(references, tmp_path):
    _, arguments = references
    rows = tmp_path / "out" / "rows.json"
    methods = ["policy-x1", "policy-x8", "recombined-x1", "polished-x1-0.05", "pyvrp-0.05"]
    options = ["--variants", "CVRP", "--device", "cpu", "--seconds", "0", "--batch", "1", "--json", str(rows)]
    throughput.main([*arguments, *options, "--methods", *methods])
    found = {row["method"]: row for row in json.loads(rows.read_text())}
    assert list(found) == methods
    assert all(row["gap"] >= -1e-6 and row["unsolved"] == 0 for row in found.values())
    assert found["policy-x8"]["gap"] <= found["policy-x1"]["gap"]
    assert found["polished-x1-0.05"]["gap"] == pytest.approx(0, abs=1e-4)
    assert all(row["per_second"] == pytest.approx(2 / row["seconds"]) for row in found.values())
    assert (found["pyvrp-0.05"]["device"], found["policy-x1"]["device"] > 0) == (0, True)


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


def test_it_runs_where_little_more_than_torch_and_pyvrp_is_installed():
    """Importing any of these would fail."""
    absent = {"typer", "pydantic", "rich", "vrplib", "openpyxl", "fastapi", "matplotlib"}
    code = f"import sys; sys.modules.update(dict.fromkeys({absent})); import benchmarks.throughput"
    subprocess.run([sys.executable, "-c", code], check=True)
