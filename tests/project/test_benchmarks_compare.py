"""The comparison script: it runs, goes on where it stopped, and its tables are right."""

import math
import re

import pytest
from where import ROOT

from benchmarks import compare
from benchmarks.compare import LIBRARY, Row, instances, main, tables
from benchmarks.rows import read_rows
from chainroute import check, variant
from chainroute.search.solvers import pyvrp

pytest.importorskip("scipy", reason="needs chainroute[evaluate]")


def test_it_runs_judges_and_goes_on_where_it_stopped(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(compare, "SEEN", (variant("OVRP"), variant("VRPTW")))
    affinity = compare.os.sched_getaffinity(0) if hasattr(compare.os, "sched_getaffinity") else None
    path = tmp_path / "out" / "c.csv"
    options = [str(path), "--instances", "1", "--suites", "n50", "--limits", "0.3"]
    main([*options, "--solvers", "pyvrp"])
    main([*options, "--solvers", "pyvrp", "pyvrp-both"])
    if affinity is not None:
        compare.os.sched_setaffinity(0, affinity)
    rows = read_rows(path, Row)
    assert [(r.task, r.solver, r.note) for r in rows] == [
        *(("OVRP", "pyvrp", ""), ("VRPTW", "pyvrp", "")),
        *(("OVRP", "pyvrp-both", ""), ("VRPTW", "pyvrp-both", "")),
    ]
    for _, name, _, problem in instances("n50", 1, tmp_path):
        solution = pyvrp.solve(problem, 60, max_iterations=300).solution
        assert check(problem, solution).feasible
        for row in (r for r in rows if r.instance == name):
            assert row.cost == pytest.approx(solution.cost, rel=0.1)
            assert 0.25 < row.seconds < 5
    capsys.readouterr()
    main([str(path), "--table"])
    assert "| n50 | 0.3 s | pyvrp-both | 2 of 2 |" in capsys.readouterr().out


def row(instance, solver, cost, best=math.nan, task="CVRP"):
    return Row("n50", task, instance, solver, 2.0, 2.0, cost, best, "" if cost == cost else "no-solution")


def test_tables_by_hand():
    """Ours is 1 % better, 3 % worse, and the same; the third instance has a best known cost."""
    rows = [
        *(row("a", "ours", 99.0), row("a", "pyvrp", 100.0), row("a", "vroom", math.nan)),
        *(row("b", "ours", 103.0, task="OVRP"), row("b", "pyvrp", 100.0, task="OVRP")),
        *(row("c", "ours", 110.0, 100.0), row("c", "pyvrp", 110.0, 100.0)),
    ]
    lines = tables(rows).splitlines()
    assert "| n50 | 2 s | ours | 3 of 3 | 104.0000 | 4.33 % | 2 | 2.00 |" in lines
    assert (
        f"| n50 | 2 s | pyvrp | 3 of 3 | 103.3333 | {(100 / 99 - 1 + 0.1) / 0.03:.2f} % | 2 | 2.00 |" in lines
    )
    assert "| n50 | 2 s | vroom | 0 of 1 | - | - % | 0 | 2.00 |" in lines
    # (-1 + 3 + 0) / 3, with a standard error of 1.2019 and Student's 4.3027 for two degrees of freedom
    assert "| n50 | 2 s | 3 | +0.667 % | -4.504 to +5.838 % |" in lines
    lost = [line for line in lines if "OVRP" in line]
    assert lost == ["| n50 | 2 s | OVRP | 1 | +3.000 % | - |"]
    assert not any("pyvrp-both" in line for line in lines)


def test_the_first_page_says_what_the_stored_comparison_says():
    """Its marked figures are mean gaps of the table that the stored rows give."""
    root = ROOT
    cells = [
        line.split(" | ") for line in tables(read_rows(root / "benchmarks" / "compare.csv", Row)).splitlines()
    ]
    gaps = {f"{c[0][2:]} {c[1]} {c[2]}": c[5].removesuffix(" %") for c in cells if len(c) == 8}
    said = re.findall(r"<!--compare ([^>]+?)-->(.*?)<!--/-->", (root / "README.md").read_text())
    assert len(said) >= 6
    assert {name: gaps[name] for name, _ in said} == dict(said)


@pytest.mark.skipif(
    not LIBRARY.is_dir(), reason="the libraries are not in shared/benchmarks beside the checkout"
)
def test_samples_of_libraries_are_spread_over_their_sizes():
    small = [(name, problem.num_customers) for _, name, _, problem in instances("X-small", 3, LIBRARY)]
    assert (small[0][0], small[-1][0]) == ("X-n101-k25", "X-n251-k28")
    large = [(best, problem) for _, _, best, problem in instances("X-large", 2, LIBRARY)]
    assert all(problem.num_customers > 500 and best > 0 for best, problem in large)
    assert [n for _, n in small] == sorted(n for _, n in small)
    assert len(list(instances("homberger600", 2, LIBRARY))) == 2
    assert len(list(instances("solomon", 99, LIBRARY))) == 56
