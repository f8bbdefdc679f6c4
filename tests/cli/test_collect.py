"""Many machines: shares of the problems that fit together, and results that are joined and judged."""

import json

import pytest
from commands import run

from chainroute import check, variant
from chainroute.cli.shards import share
from chainroute.errors import ChainRouteError
from chainroute.formats import read, read_solution, write, write_solution
from chainroute.generate import generate
from chainroute.search.own.exact import optimum

PROBLEMS = generate(variant("CVRP"), 4, 9, seed=0)  # few enough customers to be solved at once


@pytest.fixture
def folder(tmp_path):
    """Nine problems, and an empty folder for their routes."""
    for i, problem in enumerate(PROBLEMS):
        write(problem, tmp_path / f"{i}.json")
    (tmp_path / "out").mkdir()
    return tmp_path


def test_each_name_belongs_to_one_share():
    """About as many to each; and to the same, whatever other names there are."""
    names = [f"problem {i}" for i in range(1000)]
    shares = [{name for name in names if share(f"{i}/4")(name)} for i in range(1, 5)]
    assert set.union(*shares) == set(names)
    assert sum(map(len, shares)) == 1000
    assert all(200 < len(some) < 300 for some in shares)
    assert all(map(share(None), names))
    first = int("20094f264602f0c1", 16)  # of sha256, for ever: who goes on tomorrow finds the same shares
    assert share(f"{first % 4 + 1}/4")("problem 0")


@pytest.mark.parametrize("text", ["0/4", "5/4", "1", "a/b", "-1/4", "1/0", "1.5/4", "1/4/2"])
def test_other_shares_are_refused(text, folder):
    with pytest.raises(ChainRouteError) as error:
        share(text)
    assert [(fault.code, fault.where) for fault in error.value.faults] == [("bad-option", "--shard")]
    code, out, err = run("solve", folder, "--shard", text)
    assert (code, out) == (2, "")
    assert "--shard" in err


def test_shards_solve_every_problem_once_and_collect_joins_them(folder):
    """Also where the last share is solved after a file was added, and with --resume."""
    target = folder / "out" / "{name}.json"
    told = []
    for i in (1, 2, 3):
        if i == 3:
            write(PROBLEMS[0].replace(name="late"), folder / "late.json")
        code, out, _ = run("solve", folder, "--shard", f"{i}/3", "--json", "-o", target)
        assert code == 0
        told += [json.loads(row)["problem"] for row in out.splitlines()]
    late = 0 if share("3/3")("late") else 1
    assert len(told) == len(set(told)) == 10 - late
    code, out, err = run("collect", folder, "-o", target, "--json")
    rows = [json.loads(row) for row in out.splitlines()]
    assert (code, err) == (3 * late, "")
    assert {row["problem"] for row in rows if row.get("feasible")} == set(told)
    assert {row["problem"] for row in rows if row.get("missing")} == {"late"} - set(told)
    for problem in PROBLEMS:
        plan = read_solution(folder / "out" / f"{problem.name}.json", problem)
        assert check(problem, plan).cost == pytest.approx(optimum(problem).cost)


def test_collect_says_what_is_missing_broken_and_unreadable(folder):
    """Seven plans that are sound, one that forgets customers, none, and half a file."""
    out = folder / "out"
    for problem in PROBLEMS[:7]:
        write_solution(optimum(problem), out / f"{problem.name}.sol")
    (out / f"{PROBLEMS[7].name}.sol").write_text("Route #1: 1\nCost 1\n")
    write(PROBLEMS[0].replace(name="half"), folder / "half.json")
    (out / "half.sol").write_text("Route #1: one")
    code, told, err = run("collect", folder, "-o", out / "{name}.sol")
    cost = sum(optimum(problem).cost for problem in PROBLEMS[:7])
    assert code == 3
    assert f"7 of 10 problems have a plan, of cost {cost:.10g}" in told
    assert "1 infeasible, 1 unreadable, 1 missing." in told
    assert f"  missing: {PROBLEMS[8].name}\n" in told
    assert f"{PROBLEMS[7].name}: infeasible" in told
    assert "half.sol" in err


def test_collect_names_a_bounded_number(folder):
    many = [PROBLEMS[0].replace(name=f"p{i}") for i in range(25)]
    for problem in many:
        write(problem, folder / f"{problem.name}.json")
    _, out, _ = run("collect", folder, "-o", folder / "out" / "{name}.sol")
    assert out.count("missing: ") == 20
    assert out.endswith("  and 14 more\n")


def test_collect_needs_a_name_for_each(folder):
    code, out, err = run("collect", folder, "-o", folder / "out" / "all.sol")
    assert (code, out) == (2, "")
    assert "{name}" in err


def test_a_share_without_problems_is_no_failure(tmp_path):
    """Where there are many machines, some have nothing to do."""
    write(PROBLEMS[0], tmp_path / "one.json")
    ends = [run("solve", tmp_path / "one.json", "--shard", f"{i}/9", "--json") for i in range(1, 10)]
    assert [code for code, *_ in ends] == [0] * 9
    assert sorted(bool(out) for _, out, _ in ends) == [False] * 8 + [True]
    assert sum("has none of the 1 problems" in err for *_, err in ends) == 8
    assert read(tmp_path / "one.json") == PROBLEMS[0]
