"""The benchmark of large problems runs in a small form, on problems that are what they say."""

import numpy as np
import pytest

from benchmarks import compare, large
from benchmarks.rows import append_row, read_rows
from chainroute import Problem, Solution, variant


@pytest.mark.parametrize(("draw", "name"), [(large.by_x, "CVRP"), (large.by_solomon, "VRPTW")])
def test_problems_are_of_their_kind_and_the_same_every_time(draw, name):
    for seed in range(3):
        problem = draw(200, seed)
        assert (problem.variant, problem.num_customers) == (variant(name), 200)
        assert problem == draw(200, seed)
        assert not np.array_equal(problem.coords, draw(200, seed + 1).coords)


def test_radial_bound(capsys, tmp_path):
    """Vehicles that each fill at one customer go there and back, and nothing else; shared ones cost more."""
    places = [[0, 0], [3, 4], [6, 8]]
    alone = Problem(capacity=5, delivery=[5, 5], coords=places)
    assert large.radial_bound(alone) == Solution.of(alone, [(0, [1]), (0, [2])]).cost == 30
    shared = Problem(capacity=10, delivery=[5, 5], coords=places)
    assert large.radial_bound(shared) == 15
    row = compare.Row("CVRP-60", "CVRP-60", "CVRP-60-0", "pyvrp", 60.0, 60.0, 1e6, np.nan, "")
    append_row(tmp_path / "rows.csv", row)
    large.main([str(tmp_path / "rows.csv"), "--bounds"])
    bound = large.radial_bound(large.by_x(60, 0))
    above = 1e6 - bound
    told = f"| CVRP-60-0 | {bound:,.0f} | 1,000,000 | {100 * above / bound:.1f} % | {2e6 / above:.0f} % |"
    assert told in capsys.readouterr().out


def test_ours_and_pyvrp_are_measured_in_processor_time(tmp_path, capsys):
    """A fifth of a second of it, on two problems; rows that are there are not run again."""
    rows = tmp_path / "large.csv"
    options = ["--processor-time", "--limits", "0.2", "--instances", "1", "--suites", "CVRP-60", "VRPTW-60"]
    large.main([str(rows), *options])
    found = {(row.task, row.solver): row.cost for row in read_rows(rows, compare.Row)}
    assert list(found) == [(f"{kind}-60", name) for kind in ("CVRP", "VRPTW") for name in ("ours", "pyvrp")]
    assert np.isfinite(list(found.values())).all()
    large.main([str(rows), *options])
    assert len(read_rows(rows, compare.Row)) == 4
    large.main([str(rows), "--table"])
    assert "| CVRP-60 | 0.2 s | ours | 1 of 1 |" in capsys.readouterr().out
