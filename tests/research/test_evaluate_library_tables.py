"""Tables of instances from libraries: beside the paper's costs, by name."""

import numpy as np
import pytest

from chainroute.research.evaluate import paper
from chainroute.research.evaluate.library_tables import real_summary, real_table
from chainroute.research.evaluate.results import Results, TaskResult


def row(table, name):
    return next(dict(zip(table.columns, r, strict=True)) for r in table.rows if r[0] == name)


def test_real_instances_stand_beside_the_papers():
    names, best = ("X-n101-k25", "X-n1001-k43"), (27591.0, 72355.0)
    made = Results("me", "real", None, "exact", {}, {
        "X": TaskResult("X", np.array([28000.0, np.nan]), 3.0, names=names, best=best, notes=("no",))
    })  # fmt: skip
    table = real_table(made, "X")
    assert row(table, "X-n101-k25")["CCL-Ens (paper)"] == 28727
    assert row(table, "X-n1001-k43")["me"] is None
    assert table.notes == ["no"]
    summary = row(real_summary([made]), "X")
    assert (summary["solved"], summary["in the paper"]) == ("1/2", 1)
    assert summary["gap there %"] == pytest.approx(100 * (28000 / 27591 - 1))
    assert summary["CCL (paper)"] == pytest.approx(100 * (28765 / 27591 - 1))


def test_the_papers_gaps_do_not_stand_beside_what_was_trained_on_a_law_like_it():
    """They are zero-shot, and stand first."""
    wide, other = (
        Results(name, "real", None, "exact", {"trained_law": law}, {
            "X": TaskResult("X", np.array([28000.0]), 3.0, names=("X-n101-k25",), best=(27591.0,))
        })
        for name, law in (("wide", "wide"), ("other", None))
    )  # fmt: skip
    table = real_summary([wide, other])
    rows = [dict(zip(table.columns, r, strict=True)) for r in table.rows]
    assert [(r["method"], r["CCL (paper)"] is None) for r in rows] == [("other", False), ("wide", True)]
    assert rows[0]["gap there %"] == rows[1]["gap there %"]


def test_the_papers_costs_below_the_optimum_are_named():
    """R101: 1604 against 1637.7, a known trap of the published evaluation."""
    made = TaskResult("solomon", np.array([1700.0]), names=("R101",), best=(1637.7,))
    table = real_table(Results("me", "real", None, "exact", {}, {"solomon": made}), "solomon")
    assert table.notes == ["The paper has costs below the best known: R101."]


def test_the_papers_real_instances_are_all_there():
    counts = {lib: sum(r.library == lib for r in paper.real()) for lib in ("X", "solomon", "homberger600")}
    assert counts == {"X": 27, "solomon": 27, "homberger600": 60}
