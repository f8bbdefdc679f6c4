"""The command: what each verb prints, writes and returns, and how it fails."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from commands import COMMAND, run, spawn
from corpus import corpus
from where import DATA, EXAMPLES

import chainroute
from chainroute import VARIANTS, Problem, Solution, check
from chainroute.cli import policies, show
from chainroute.cli import solve as solving
from chainroute.cli.live import Live
from chainroute.errors import Fault, fail
from chainroute.formats import read, read_many, read_solution, write, write_solution
from chainroute.generate import benchmark, generate
from chainroute.runtime.shell import OUR_FAULT
from chainroute.solve import Outcome, Progress, Result


@pytest.fixture
def line(tmp_path):
    """A file with customers A, B, C at 10, 20 and 30 along a line from the depot."""
    problem = Problem(
        name="line",
        capacity=10,
        delivery=[4, 3, 2],
        coords=[(0, 0), (10, 0), (20, 0), (30, 0)],
        names=["depot", "A", "B", "C"],
    )
    write(problem, tmp_path / "line.json")
    return tmp_path / "line.json"


# -- solve


def test_solve_prints_the_routes(line, one_route):
    code, out, _ = run("solve", line)
    assert code == 0
    assert out.splitlines()[0].startswith("line: CVRP, cost 60, 1 route (auto, search, ")
    assert out.splitlines()[1] == "  1. depot - A - B - C - depot  (length 60, load 9)"


def test_solve_json_is_one_object_with_the_facts(line, one_route):
    code, out, err = run("solve", line, "--json", "--seed", 7)
    answer = json.loads(out)
    assert (code, err) == (0, "")
    assert (answer["source"], answer["notes"]) == ("search", ["All is well."])
    assert (answer["cost"], answer["feasible"], answer["variant"]) == (60, True, "CVRP")
    assert answer["routes"][0]["customers"] == ["A", "B", "C"]
    assert answer["violations"] == []
    assert answer["seconds"] >= 0
    assert (answer["solver"], answer["seed"]) == ("auto", 7)


def test_solve_many_gives_one_object_per_problem(tmp_path, one_route):
    """Files and the problems inside an .npz count alike."""
    run("generate", "OVRP", "-n", 3, "--count", 2, "-o", tmp_path / "a.npz")
    run("generate", "MDOVRP", "-n", 3, "-o", tmp_path / "b.json")
    code, out, _ = run("solve", tmp_path / "a.npz", tmp_path / "b.json", "--json")
    answers = [json.loads(row) for row in out.splitlines()]
    assert code == 0
    assert [a["problem"] for a in answers] == ["a[0]", "a[1]", "MDOVRP-n3-seed0"]
    _, only, _ = run("solve", tmp_path / "a.npz", "--index", 1, "--json")
    assert json.loads(only)["problem"] == "a[1]"


def test_solve_writes_solutions_and_pictures(line, tmp_path, one_route):
    for name in ("a.sol", "a.json"):
        code, *_ = run("solve", line, "-o", tmp_path / name, "--plot", tmp_path / "a.png")
        solution = read_solution(tmp_path / name, read(line))
        assert code == 0
        assert check(solution.problem, solution).cost == 60
    assert (tmp_path / "a.png").stat().st_size > 1000


def test_solve_many_needs_a_name_in_the_output(tmp_path, one_route):
    run("generate", "OVRP", "-n", 3, "--count", 2, "-o", tmp_path / "a.npz")
    code, _, err = run("solve", tmp_path / "a.npz", "-o", tmp_path / "a.sol")
    assert code == 2
    assert "put {name} into" in err
    code, *_ = run("solve", tmp_path / "a.npz", "-o", tmp_path / "{name}.sol")
    assert code == 0
    assert sorted(p.name for p in tmp_path.glob("*.sol")) == ["a[0].sol", "a[1].sol"]


def test_solve_does_not_write_two_problems_to_one_file(line, tmp_path, one_route):
    code, _, err = run("solve", line, line, "-o", tmp_path / "{name}.sol")
    assert code == 2
    assert "[bad-option] --output: two problems" in err


def test_solve_never_writes_over_a_problem(line, one_route, monkeypatch):
    """Not even where {name} makes the file's own name, nor by another spelling of it."""
    before = line.read_bytes()
    monkeypatch.chdir(line.parent)
    for output in ("{name}.json", line, "./line.json"):
        code, out, err = run("solve", line.name, "-o", output)
        assert (code, out) == (2, "")
        assert "[bad-option] --output:" in err
        assert "line.json" in err
    assert line.read_bytes() == before


def other_names(file):
    """The file under names that are spelt differently and lead to it."""
    folder = file.parent
    (folder / "link.json").symlink_to(file)
    (folder / "twin.json").hardlink_to(file)
    (folder / "door").symlink_to(folder)
    return [file, folder / ".." / folder.name / file.name, folder / "door" / file.name, folder / "link.json",
            folder / "twin.json"]  # fmt: skip


@pytest.mark.parametrize("resume", [(), ("--resume",)])
@pytest.mark.parametrize("name", ["{name}.json", "LINE.json"])
def test_the_problems_of_a_folder_are_not_written_over(line, one_route, monkeypatch, name, resume):
    """However the folder is spelt, with and without --resume, which must not take a problem for its solution.
    LINE.json stands for a file system without cases: another name, the same file."""
    before = line.read_bytes()
    monkeypatch.chdir(line.parent)
    Path("LINE.json").hardlink_to(line)
    Path("door").symlink_to(line.parent)
    for folder, place in ((line.parent, "."), (".", line.parent), ("door", "."), (".", "door")):
        code, out, err = run("solve", folder, "-o", f"{place}/{name}", *resume)
        assert (code, out) == (2, "")
        assert "[bad-option] --output: would write over the input" in err
    assert line.read_bytes() == Path("LINE.json").read_bytes() == before


def test_no_verb_writes_over_what_it_reads(line, tmp_path, one_route):
    """Problems, routes to start from or to judge, and policies, by any name that leads to the file; a problem
    may be called .png, since the content says what a file is."""
    routes = tmp_path / "routes.json"
    write_solution(Solution.of(read(line), [(0, [1, 2, 3])]), routes)
    picture = tmp_path / "problem.png"
    picture.write_bytes(line.read_bytes())
    card = tmp_path / "policy.json"
    card.write_text("{}")
    before = {path: path.read_bytes() for path in (line, routes, picture, card)}
    names = other_names(line)
    calls = [("solve", line, "-o", name) for name in names] + [("convert", line, name) for name in names]
    calls += [
        ("solve", line, "--initial", routes, "-o", routes),
        ("solve", line, "--weights", tmp_path / "policy", "-o", card),
        ("solve", picture, "--plot", picture),
        ("check", picture, routes, "--plot", picture),
        ("info", picture, "--plot", picture),
        ("convert", line, tmp_path),  # a folder, in which {name}.json is the problem itself
        ("convert", line, tmp_path / "{name}.json"),
        ("convert", picture, picture, "--format", "json"),
    ]
    for call in calls:
        code, out, err = run(*call)
        assert (code, out) == (2, ""), call
        assert "would write over the input" in err, call
        assert {path: path.read_bytes() for path in before} == before, call


def test_a_broken_problem_is_not_written_over_by_the_solution_of_another(line, one_route):
    """It was named as input, and its author will want to correct it."""
    broken = line.with_name("b.json")
    broken.write_text("{broken")
    write(read(line).replace(name="b"), line)
    code, _, err = run("solve", line.parent, "-o", line.parent / "{name}.json")
    assert (code, "would write over the input" in err) == (2, True)
    assert broken.read_text() == "{broken"


def test_solutions_may_lie_beside_their_problems(line, one_route):
    """As JSON too: a second call passes over them, or with --resume over the problems that have one."""
    call = ("solve", line.parent, "-o", line.parent / "{name}-plan.json")
    first, second = run(*call), run(*call)
    assert first[0] == second[0] == 0
    assert first[1] == second[1] != ""
    assert run(*call, "--resume") == (0, "", "Skipped 1 of 1 problems: their outputs are there.\n")
    line.unlink()
    code, _, err = run(*call)
    assert (code, "there are no problems in this folder" in err) == (2, True)


def test_solve_looks_at_the_places_to_write_to_before_it_works(line, tmp_path, one_route, monkeypatch):
    (tmp_path / "a.sol").mkdir()
    code, out, err = run("solve", line, "-o", tmp_path / "a.sol")
    assert (code, out) == (2, "")
    assert "[file-unwritable] --output:" in err
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    code, out, err = run("solve", line, "--plot", tmp_path / "a.png")
    assert (code, out) == (2, "")
    assert "[file-unwritable] --plot:" in err


def test_routes_that_cannot_be_written_are_printed_all_the_same(line, tmp_path, one_route, monkeypatch):
    def full(solution, path, **_):
        raise fail("file-unwritable", "No space left on device.", str(path))

    monkeypatch.setattr(chainroute.formats, "write_solution", full)
    code, out, err = run("solve", line, "-o", tmp_path / "a.sol")
    assert (code, "depot - A - B - C - depot" in out) == (2, True)
    assert "No space left" in err


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_a_plan_that_nobody_searched_since_the_solver_broke_off(line, tmp_path, monkeypatch, form):
    """It is printed and written, the solver is named with the reason, and a script sees it by the code."""

    def front_door(time_limit, seed, effort, cluster, problems, *_):
        for i, problem in enumerate(problems):
            plan = Solution.of(problem, [(0, problem.customers)])
            fault = Fault("solver-failed", "the solver stopped.", "PyVRP", cause="OverflowError: too big")
            history = (Progress(0.1, plan, "construction"),)
            yield Outcome(i, problem, Result(plan, 0.1, history, faults=(fault,), failed=True))

    monkeypatch.setattr(policies, "ready", lambda effort: None)
    monkeypatch.setattr(solving, "_front_door", front_door)
    code, out, err = run("solve", line, "-o", tmp_path / "a.sol", *form)
    assert (code, (tmp_path / "a.sol").exists()) == (70, True)
    reason = "[solver-failed] PyVRP: the solver stopped: OverflowError: too big."
    if form:
        document = json.loads(out)
        assert [fault["field"] for fault in document["error"]["faults"]] == ["PyVRP"]
        assert document["cost"] == 60
    else:
        assert err.startswith(reason)
        assert "depot - A - B - C - depot" in out


def test_what_a_format_cannot_hold_is_told_before_any_work(tmp_path, one_route, monkeypatch):
    """Open routes in a .res, a plane in GeoJSON: one such problem among several, and nothing is solved."""
    run("generate", "CVRP", "OVRP", "-n", 3, "-o", tmp_path / "in")
    monkeypatch.setattr(solving, "_front_door", lambda *_: pytest.fail("solved"))
    for ending, why in (
        ("res", "OVRP-n3-seed0: a .res file cannot hold open routes"),
        ("geojson", "GeoJSON needs"),
    ):
        code, out, err = run("solve", tmp_path / "in", "-o", tmp_path / f"{{name}}.{ending}")
        assert (code, out) == (2, "")
        assert "[cannot-express]" in err
        assert why in err
    for ending in ("sol", "res"):
        code, out, err = run("solve", DATA / "fleet.json", "-o", tmp_path / f"a.{ending}")
        assert (code, out) == (2, "")
        assert f"a .{ending} cannot hold routes of a problem with: mixed fleet" in err


@pytest.mark.parametrize("verb", ["solve", "check", "info"])
def test_a_missing_library_for_pictures_is_told_before_any_work(verb, line, tmp_path, one_route, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # as if it were not installed
    monkeypatch.setattr(solving, "_front_door", lambda *_: pytest.fail("solved"))
    write_solution(Solution.of(read(line), [(0, [1, 2, 3])]), tmp_path / "a.sol")
    files = [line, tmp_path / "a.sol"] if verb == "check" else [line]
    code, out, err = run(verb, *files, "--plot", tmp_path / "a.png")
    assert (code, out) == (2, "")
    assert err.startswith("[missing-extra] a picture needs matplotlib")


def test_a_place_that_fails_while_writing_does_not_end_a_batch(tmp_path, one_route, monkeypatch):
    """The first cannot be written, for the disk is full; the second is."""
    run("generate", "OVRP", "-n", 3, "--count", 2, "-o", tmp_path / "a.npz")
    real = chainroute.formats.write_solution

    def first_fails(solution, path, **_):
        if "0" in path.name:
            raise fail("file-unwritable", "No space left on device.", str(path))
        real(solution, path)

    monkeypatch.setattr(chainroute.formats, "write_solution", first_fails)
    code, out, err = run("solve", tmp_path / "a.npz", "-o", tmp_path / "{name}.sol", "--json")
    answers = [json.loads(row) for row in out.splitlines()]
    assert [answer.get("cost") is None for answer in answers] == [False, True, False]
    assert (code, err, answers[1]["error"]["faults"][0]["code"]) == (2, "", "file-unwritable")
    assert [path.name for path in tmp_path.glob("*.sol")] == ["a[1].sol"]


def test_a_name_cannot_lead_out_of_the_folder(tmp_path, one_route):
    problem = read(EXAMPLES / "parcels.vrp").replace(name="../../etc/x y")
    write(problem.replace(capacity=1000), tmp_path / "p.json")
    code, *_ = run("solve", tmp_path / "p.json", "-o", tmp_path / "{name}.json")
    assert code == 0
    assert (tmp_path / "_.._etc_x_y.json").exists()


def test_bad_files_do_not_keep_the_good_ones_from_being_solved(line, tmp_path, one_route):
    """They are told, by name, and the exit code remembers them."""
    (tmp_path / "bad.json").write_text('{"capacity": -1, "depots": [{"x": 0, "y": 0}], "customers": []}')
    files = [tmp_path / "bad.json", line, tmp_path / "none.vrp"]
    code, out, err = run("solve", *files)
    assert code == 2
    assert out.startswith("line: CVRP, cost 60")
    assert f"[file-not-found] {tmp_path}/none.vrp" in err
    assert f"{tmp_path}/bad.json" in err
    code, out, err = run("solve", *files, "--json")
    bad, none, good = map(json.loads, out.splitlines())
    assert (code, err, good["cost"]) == (2, "", 60)
    assert [bad["file"], none["file"]] == [str(files[0]), str(files[2])]
    assert none["error"]["faults"][0]["code"] == "file-not-found"
    code, out, err = run("solve", files[0], files[2])
    assert (code, out) == (2, "")
    assert "[file-not-found]" in err


def test_a_folder_stands_for_the_problems_in_it(line, tmp_path, one_route):
    """Hidden files, pictures and solutions are passed over; a folder without problems is told."""
    for name in (".hidden.json", "a.png", "a.sol"):
        (tmp_path / name).write_text("?")
    assert run("solve", tmp_path, "--json")[:2] == run("solve", line, "--json")[:2]
    (tmp_path / "empty").mkdir()
    code, _, err = run("solve", tmp_path / "empty")
    assert (code, err.startswith("[file-not-found]")) == (2, True)


def test_resume_skips_what_is_written(tmp_path, one_route):
    run("generate", "OVRP", "-n", 3, "--count", 3, "-o", tmp_path / "a.npz")
    pattern = tmp_path / "{name}.sol"
    run("solve", tmp_path / "a.npz", "--index", 1, "-o", pattern)
    code, out, _ = run("solve", tmp_path / "a.npz", "-o", pattern, "--resume", "--json")
    assert code == 0
    assert [json.loads(row)["problem"] for row in out.splitlines()] == ["a[0]", "a[2]"]
    assert run("solve", tmp_path / "a.npz", "-o", pattern, "--resume")[:2] == (0, "")
    assert run("solve", tmp_path / "a.npz", "--resume")[2].startswith("[bad-option] --resume")


def test_solve_tells_the_faults_of_all_options_before_it_works(line):
    given = ["--solver", "magic", "-o", "a.xyz", "--plot", "no/a.gif"]
    code, out, err = run("solve", line, *given)
    assert (code, out) == (2, "")
    for fault in (
        "[bad-option] --solver",
        "[bad-option] --output",
        "[bad-option] --plot",
        "[file-unwritable] --plot: there is no folder 'no'",
    ):
        assert fault in err


def test_solve_of_an_infeasible_plan_is_exit_1_with_its_violations(line, tmp_path, one_route):
    write(read(line).replace(capacity=8), tmp_path / "tight.json")
    code, out, _ = run("solve", tmp_path / "tight.json")
    assert code == 1
    assert "[capacity-exceeded] route 1" in out
    code, out, _ = run("solve", tmp_path / "tight.json", "--json")
    answer = json.loads(out)
    assert (code, answer["feasible"]) == (1, False)
    assert answer["violations"][0]["amount"] == 1


def test_solve_goes_on_when_one_problem_has_no_solution(line, tmp_path):
    """Two of the three customers do not fit into one of the two vehicles."""
    tight = read(line).replace(name="tight", capacity=5, delivery=[3, 3, 3], fleet=2)
    write(tight, tmp_path / "tight.json")
    code, out, err = run("solve", tmp_path / "tight.json", line)
    assert (code, out.startswith("line: CVRP, cost 60")) == (1, True)
    assert err.count("[no-solution] tight") == 1
    code, out, _ = run("solve", tmp_path / "tight.json", "--json")
    answer = json.loads(out)
    assert (code, answer["cost"], answer["feasible"], answer["routes"]) == (1, None, False, [])
    assert answer["variant"] == "CVRP"
    assert answer["error"]["faults"][0]["code"] == "no-solution"


def test_solve_with_pyvrp_from_end_to_end(line, tmp_path):
    """The real thing in a process of its own: the best of three customers on a line is one route of 60."""
    done = spawn("solve", line, "--time-limit", 5, "-o", tmp_path / "a.sol")
    assert done.returncode == 0, done.stderr
    assert "cost 60, 1 route (" in done.stdout
    assert check(read(line), read_solution(tmp_path / "a.sol", read(line))).feasible


def test_solve_refuses_options_out_of_range(line):
    """Under the names that they have on the command line."""
    code, _, err = run("solve", line, "--time-limit", -1, "--seed", -1, "--starts", 0, "--iterations", -1)
    assert code == 2
    assert {row.split(":")[0] for row in err.splitlines()} == {
        f"[bad-option] --{option}" for option in ("time-limit", "seed", "starts", "iterations")
    }
    for solver in ("pyvrp", "ortools"):
        code, _, err = run("solve", line, "--solver", solver, "--time-limit", "nan", "--weights", "random")
        assert code == 2
        assert {row.split(":")[0] for row in err.splitlines()} == {
            "[bad-option] --time-limit",
            "[bad-option] --weights",
        }


def test_solve_starts_from_given_routes(line, tmp_path):
    """Which are never made worse; an infeasible start, or one for many problems, is refused."""
    (problem,) = generate(VARIANTS[0], 8, 1, seed=0)
    write(problem, tmp_path / "p.json")
    poor = Solution.of(problem, [(0, [c]) for c in problem.customers])
    write_solution(poor, tmp_path / "poor.sol")
    given = ["--initial", tmp_path / "poor.sol"]
    code, out, _ = run("solve", tmp_path / "p.json", *given, "--time-limit", 1, "--json")
    assert (code, json.loads(out)["cost"] < poor.cost) == (0, True)
    assert "[bad-option] --initial" in run("solve", tmp_path / "p.json", line, *given)[2]
    write_solution(Solution.of(read(line), [(0, [1, 2]), (0, [3])]), tmp_path / "two.sol")
    write(read(line).replace(capacity=5), tmp_path / "tight.json")
    code, out, err = run("solve", tmp_path / "tight.json", "--initial", tmp_path / "two.sol")
    assert (code, out) == (2, "")
    assert err.startswith("[infeasible-start] --initial: route 1 carries 7")


# -- check


@pytest.fixture
def plan(line):
    def written(*routes):
        path = line.parent / "plan.sol"
        write_solution(Solution.of(read(line), [(0, route) for route in routes]), path)
        return path

    return written


def test_check_feasible(line, plan):
    """A plan that keeps all rules: its cost, and exit code 0; as a line of JSON too."""
    assert run("check", line, plan([1, 2], [3])) == (0, "feasible, cost 100\n", "")
    code, out, _ = run("check", line, plan([1, 2], [3]), "--json")
    assert code == 0
    verdict = {"feasible": True, "cost": 100, "violations": []}
    assert json.loads(out) == {**verdict, "stated_cost": 100, "notes": []}


def test_check_infeasible(line, plan):
    """A plan that breaks a rule: what it breaks and where, and exit code 1."""
    code, out, _ = run("check", line, plan([1, 2]))
    assert code == 1
    assert out == "infeasible, cost 40\n  [customer-missing] C is not visited.\n"
    code, out, _ = run("check", line, plan([1, 2]), "--json")
    assert (code, json.loads(out)["violations"][0]["location"]) == (1, "C")


def test_check_draws(line, plan, tmp_path):
    """`--plot` draws the routes that are judged."""
    code, *_ = run("check", line, plan([1, 2], [3]), "--plot", tmp_path / "a.svg")
    assert code == 0
    assert "route 2" in (tmp_path / "a.svg").read_text()


def test_check_bad_input(line, tmp_path):
    (tmp_path / "bad.sol").write_text("Route #1: 1 2 77\n")
    code, out, err = run("check", line, tmp_path / "bad.sol")
    assert (code, out) == (2, "")
    assert f"[unknown-location] {tmp_path}/bad.sol" in err
    code, out, err = run("check", line, tmp_path / "bad.sol", "--json")
    fault = json.loads(out)["error"]["faults"][0]
    assert (code, err, fault["code"]) == (2, "", "unknown-location")
    assert set(fault) == {"code", "where", "path", "field", "location", "message", "remedy"}


# -- generate


def test_generate_a_folder_of_json(tmp_path):
    code, out, _ = run(
        "generate", "cvrp", "MDVRPMBLTW", "-n", 5, "--count", 2, "--seed", 3, "-o", tmp_path / "d"
    )
    assert (code, out) == (0, f"Wrote 4 problems to {tmp_path}/d\n")
    problems = [read(path) for path in sorted((tmp_path / "d").iterdir())]
    assert [(str(p.variant), p.num_customers) for p in problems] == [("CVRP", 5)] * 2 + [
        ("MDVRPMBLTW", 5)
    ] * 2


def test_generate_an_npz_and_the_same_seed_gives_the_same_problems(tmp_path):
    for name in ("a.npz", "b.npz"):
        assert run("generate", "VRPTW", "-n", 5, "--count", 3, "--seed", 1, "-o", tmp_path / name)[0] == 0
    a, b = (read_many(tmp_path / name) for name in ("a.npz", "b.npz"))
    assert len(a) == 3
    assert all(p.replace(name="") == q.replace(name="") for p, q in zip(a, b, strict=True))


def test_generate_one_npz_per_variant(tmp_path):
    code, *_ = run("generate", "seen", "-n", 3, "-o", tmp_path / "{name}.npz")
    assert code == 0
    assert {p.stem for p in tmp_path.iterdir()} == {v.name for v in VARIANTS if v.seen}
    code, _, err = run("generate", "seen", "-n", 3, "-o", tmp_path / "all.npz")
    assert code == 2
    assert "16 problems; put {name} into" in err


def test_generate_by_the_wide_law(tmp_path):
    """Problems of many kinds, read back as they were drawn; another law is refused."""
    assert run("generate", str(VARIANTS[-1]), "-n", 7, "--count", 3, "--law", "wide", "-o", tmp_path)[0] == 0
    drawn = generate(VARIANTS[-1], 7, 3, 0, "wide")
    assert [read(tmp_path / f"{p.name}.json") for p in drawn] == drawn
    assert "[unknown-value] --law" in run("generate", "CVRP", "--law", "narrow", "-o", tmp_path)[2]


def test_generate_tells_all_wrong_names(tmp_path):
    code, _, err = run("generate", "CVPR", "VRPX", "-o", tmp_path / "d")
    assert code == 2
    assert err.count("[unknown-variant]") == 2
    assert "Did you mean CVRP" in err


@pytest.mark.parametrize("args", [("-o", "d"), ("CVRP",), ("CVRP", "-n", 0, "-o", "d")])
def test_generate_needs_a_variant_a_place_and_a_size(args, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _, err = run("generate", *args)
    assert code == 2
    assert err.startswith("[bad-option]")
    assert list(tmp_path.iterdir()) == []


def test_generate_benchmark_is_the_published_one(tmp_path):
    code, out, _ = run("generate", "--benchmark", "CVRP", "MDOVRPTW", "-n", 50, "-o", tmp_path / "b")
    assert (code, out) == (0, f"Wrote 4 files to {tmp_path}/b\n")
    assert {p.name for p in (tmp_path / "b").iterdir()} == {
        f"{v}-n50-{split}.npz" for v in ("CVRP", "MDOVRPTW") for split in ("test", "val")
    }
    with np.load(tmp_path / "b" / "MDOVRPTW-n50-val.npz") as stored:
        expected = benchmark(chainroute.variant("MDOVRPTW"), 50, "val")
        assert set(stored) == set(expected)
        assert all((stored[key] == expected[key]).all() for key in expected)


# -- convert and info


def test_convert_there_and_back(line, tmp_path):
    numbered = read(line).replace(names=())
    write(numbered, tmp_path / "a.json")
    assert run("convert", tmp_path / "a.json", tmp_path / "b.vrp")[0] == 0
    code, out, _ = run("convert", tmp_path / "b.vrp", tmp_path / "c.json")
    assert (code, out) == (0, f"Wrote 1 problem to {tmp_path}/c.json\n")
    assert read(tmp_path / "c.json") == numbered


def test_convert_an_npz_to_files_of_their_own(tmp_path):
    run("generate", "VRPTW", "-n", 4, "--count", 2, "-o", tmp_path / "a.npz")
    assert run("convert", tmp_path / "a.npz", tmp_path / "{name}.vrp")[0] == 0
    assert run("convert", tmp_path / "a.npz", tmp_path / "folder")[0] == 0
    assert (
        run("convert", tmp_path / "a.npz", tmp_path / "one.txt", "--index", 1, "--format", "solomon")[0] == 0
    )
    assert len(list(tmp_path.glob("*.vrp"))) == len(list((tmp_path / "folder").iterdir())) == 2
    assert read(tmp_path / "one.txt", rounding=read(tmp_path / "a.npz", index=1).rounding).num_customers == 4


def test_convert_refuses_what_the_format_cannot_hold(line, tmp_path):
    code, _, err = run("convert", line, tmp_path / "a.npz")
    assert code == 2
    assert "[cannot-express]" in err
    assert not (tmp_path / "a.npz").exists()


def test_info(line):
    """What is in a file, by the numbers of the example."""
    code, out, _ = run("info", line, "--json")
    facts = json.loads(out)
    assert code == 0
    assert (facts["variant"], facts["customers"], facts["delivery"], facts["vehicles_needed"]) == (
        "CVRP",
        3,
        9,
        1,
    )
    code, out, _ = run("info", line)
    rows = dict(row.split(None, 1) for row in out.splitlines() if row.strip())
    assert (code, rows["variant"].strip(), rows["capacity"].strip()) == (0, "CVRP", "10")


def test_info_counts_what_the_largest_vehicles_carry_of_what_must_be_carried(tmp_path):
    """30 to deliver and 50 more for a prize: one truck of 30, or one van of 10 that goes out three times."""
    customers = [{"x": x, "y": 0, "delivery": 10} for x in range(1, 4)]
    customers += [{"x": 9, "y": 0, "delivery": 10, "prize": 1} for _ in range(5)]
    document = {"capacity": 10, "depots": [{"x": 0, "y": 0}], "customers": customers}
    for vehicles in ([{"capacity": 30}, {}], [{"max_trips": 3}]):
        (tmp_path / "a.json").write_text(json.dumps({**document, "vehicles": vehicles}))
        assert json.loads(run("info", tmp_path / "a.json", "--json")[1])["vehicles_needed"] == 1


def test_info_with_windows_that_never_close(tmp_path):
    document = {
        "capacity": 1,
        "depots": [{"x": 0, "y": 0}],
        "customers": [{"x": 1, "y": 0, "delivery": 1, "window": [5, None]}],
    }
    (tmp_path / "a.json").write_text(json.dumps(document))
    facts = json.loads(run("info", tmp_path / "a.json", "--json")[1])
    assert (facts["first_opening"], facts["last_closing"]) == (0, 5)


def test_info_tells_vehicle_types_and_times_of_the_day(tmp_path):
    """Each type has a row, with a column for what is said of any; in JSON times stay seconds."""
    vans = {"name": "van", "count": 2, "capacity": 9, "shift": [21600, None], "max_duration": 5400}
    document = {
        "day": "any",
        "vehicles": [vans, {"name": "bike", "capacity": 4, "fixed_cost": 3, "skills": ["ice", "lift"]}],
        "depots": [{"name": "hub", "x": 0, "y": 0}],
        "customers": [{"x": 1, "y": 0, "delivery": 1, "service": 300, "window": [28800, 43230]}],
    }
    (tmp_path / "a.json").write_text(json.dumps(document))
    facts = json.loads(run("info", tmp_path / "a.json", "--json")[1])
    assert [facts[key] for key in ("day", "first_opening", "last_closing", "service")] == [
        "any",
        0,
        43230,
        300,
    ]
    van, bike = facts["vehicles"]
    assert (van["name"], van["count"], van["depots"], van["shift_start"], van["shift_end"]) == (
        "van",
        2,
        ["hub"],
        21600,
        None,
    )
    assert (bike["count"], bike["fixed_cost"], bike["skills"]) == (None, 3, ["ice", "lift"])
    told, types = (part.splitlines() for part in run("info", tmp_path / "a.json")[1].split("\n\n"))
    rows = dict(re.split("  +", row) for row in told)
    assert [rows[key] for key in ("first opening", "last closing", "service")] == [
        "00:00",
        "12:00:30",
        "5 min",
    ]
    head, first, second = (dict(enumerate(re.split("  +", row))) for row in types)
    column = {name: place for place, name in head.items()}
    assert "distance limit" not in column
    assert (first[column["shift start"]], first[column["max duration"]]) == ("06:00", "1 h 30 min")
    assert (second[column["capacity"]], second[column["skills"]]) == ("4", "ice, lift")


def test_info_of_many_is_a_table_with_a_row_each(tmp_path):
    run("generate", "CVRP", "-n", 4, "--count", 3, "-o", tmp_path / "a.npz")
    rows = run("info", tmp_path / "a.npz")[1].splitlines()
    assert rows[0].split()[:3] == ["name", "variant", "customers"]
    assert [row.split()[0] for row in rows[1:]] == ["a[0]", "a[1]", "a[2]"]


def test_info_draws_the_instance(line, tmp_path):
    assert run("info", line, "--plot", tmp_path / "a.png")[0] == 0
    assert (tmp_path / "a.png").exists()


@pytest.mark.parametrize("verb", ["solve", "check", "convert", "info"])
def test_every_verb_that_reads_takes_a_rounding(verb, tmp_path, one_route):
    """A leg of 1.5 is 2 when rounded, 1 when truncated: there and back 4 or 2."""
    write(
        Problem(capacity=1, delivery=[1], coords=[(0, 0), (1.5, 0)], rounding="round", name="p"),
        tmp_path / "p.json",
    )
    (tmp_path / "p.sol").write_text("Route #1: 1\n")
    args = {
        "solve": ["solve", tmp_path / "p.json", "--json"],
        "check": ["check", tmp_path / "p.json", tmp_path / "p.sol", "--json"],
        "convert": ["convert", tmp_path / "p.json", tmp_path / "q.json"],
        "info": ["info", tmp_path / "p.json", "--json"],
    }[verb]
    code, out, _ = run(*args, "--rounding", "trunc")
    assert code == 0
    if verb in ("solve", "check"):
        assert json.loads(out)["cost"] == 2
        assert json.loads(run(*args)[1])["cost"] == 4
    elif verb == "convert":
        assert read(tmp_path / "q.json").rounding == "trunc"
    else:
        assert json.loads(out)["rounding"] == "trunc"
    code, out, err = run(*args, "--rounding", "sideways")
    assert code == 2
    assert "'sideways' is not one of exact, round" in out + err


# -- variants, help, version


def test_variants():
    """All 48 are listed in their order, and which of them the network was trained on."""
    code, out, _ = run("variants")
    assert code == 0
    assert [row.split()[0] for row in out.splitlines()[1:]] == [v.name for v in VARIANTS]
    rows = [json.loads(row) for row in run("variants", "--json")[1].splitlines()]
    assert [row["name"] for row in rows if row["seen"]] == [v.name for v in VARIANTS if v.seen]


def test_help_lists_the_verbs_and_version_is_the_packages():
    for args in (["--help"], ["-h"], []):
        code, out, _ = run(*args)
        assert code == 0
        for verb in ("solve", "check", "generate", "convert", "info", "variants"):
            assert f"\n  {verb} " in out
    assert run("--version") == (0, f"chainroute {chainroute.__version__}\n", "")


@pytest.mark.parametrize(
    "args", [["solve"], ["dissolve"], ["solve", "a.vrp", "--sede", 1], ["check", "a.vrp"]]
)
def test_usage_errors_are_exit_2_on_stderr(args):
    code, out, err = run(*args)
    assert (code, out) == (2, "")
    assert "Error" in err


# -- ways to fail


def test_bad_files_end_in_a_message_never_a_traceback(tmp_path):
    contents = {
        "empty": b"",
        "binary": bytes(range(256)),
        "text": b"hello\n",
        "brace": b"{",
        "zip": b"PK\x03\x04junk",
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
        for verb in (["info"], ["solve"], ["convert"], ["check"]):
            more = [tmp_path / "out.json"] if verb[0] in ("convert", "check") else []
            code, out, err = run(*verb, tmp_path / name, *more)
            assert (code, out) == (2, ""), (verb, name)
            assert err.startswith("["), (verb, name)


def test_every_broken_file_of_the_corpus_is_refused_with_its_codes(tmp_path):
    """Side by side with a good one, which is solved all the same."""
    cases = corpus()
    for i, case in enumerate(cases):
        (tmp_path / str(i)).mkdir()
        (tmp_path / str(i) / case.file).write_bytes(case.content)
    write(Problem(name="good", capacity=1, delivery=[1], coords=[[0, 0], [3, 4]]), tmp_path / "good.json")
    files = [tmp_path / str(i) / case.file for i, case in enumerate(cases)]
    code, out, err = run("solve", *files, tmp_path / "good.json", "--json")
    answers = [json.loads(row) for row in out.splitlines()]
    assert (code, err, len(answers)) == (2, "", len(cases) + 1)
    for case, file, answer in zip(cases, files, answers, strict=False):
        assert answer["file"] == str(file)
        assert {fault["code"] for fault in answer["error"]["faults"]} == case.codes
    assert answers[-1]["cost"] == 10


def test_our_own_faults_are_told_without_a_traceback(line, monkeypatch):
    def solver(*args):
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(solving, "_engine", solver)
    code, out, err = run("solve", line)
    assert (code, out) == (OUR_FAULT, "")
    assert err.startswith("[internal-error] ZeroDivisionError: a bug (test_cli.py, line ")


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="looks for the solver's process in /proc")
def test_ctrl_c_stops_cleanly():
    """Interrupted while workers start: the constructed plan, a word on stderr, and soon nobody is left."""
    process = subprocess.Popen(
        [*COMMAND, "solve", str(EXAMPLES / "parcels.vrp"), "--time-limit", "60"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    deadline = time.monotonic() + 60
    while not children.read_text() and time.monotonic() < deadline:
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, "(auto, construction, " in out) == (0, True)
    assert err.endswith("\nStopped.\n")
    end = time.monotonic() + 20  # a worker that was just being started notices by itself
    while _group_exists(process.pid):
        assert time.monotonic() < end
        time.sleep(0.1)


def _group_exists(group):
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_ctrl_c_prints_what_was_found(monkeypatch):
    """And says so; that is no failure."""

    def interrupt(self, news):
        if not self.done:
            self.done = 1
            threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()

    monkeypatch.setattr(Live, "progress", interrupt)
    code, out, err = run("solve", EXAMPLES / "parcels.vrp", "--time-limit", 60, "--json")
    answer = json.loads(out)
    assert (code, answer["feasible"], err) == (0, True, "Stopped.\n")
    assert answer["seconds"] < 30


def test_ctrl_c_among_many_keeps_what_is_done(tmp_path):
    """Problems that are under way are told with their best so far, the others not at all."""
    run("generate", "OVRP", "-n", 20, "--count", 9, "-o", tmp_path / "a.npz")
    threading.Timer(3, os.kill, (os.getpid(), signal.SIGINT)).start()
    code, out, err = run("solve", tmp_path / "a.npz", "--time-limit", 60, "--json")
    answers = [json.loads(row) for row in out.splitlines()]
    assert len(answers) < 9
    assert all(answer["feasible"] for answer in answers)
    undone = f"Stopped. {9 - len(answers)} of 9 problems were not begun, or had no plan yet.\n"
    assert (code, err) == ((3, undone) if answers else (130, "Stopped.\n"))


def test_broken_pipe_is_quiet():
    process = subprocess.Popen(
        [*COMMAND, "variants", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    process.stdout.close()
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (show.BROKEN_PIPE, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_told():
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*COMMAND, "variants"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60
        )
    assert done.returncode == 2
    assert done.stderr.startswith("[file-unwritable]")
    assert "Traceback" not in done.stderr


def test_names_print_whatever_the_encoding(tmp_path):
    write(read(EXAMPLES / "parcels.vrp").replace(name="Zürich 東京"), tmp_path / "a.json")
    done = spawn("info", tmp_path / "a.json", env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0
    assert "Z\\xfcrich" in done.stdout


# -- examples


@pytest.mark.parametrize("path", sorted(EXAMPLES.iterdir()), ids=lambda path: path.name)
def test_examples_are_sound(path):
    """Those of docs/modelling.md are small, to be followed by hand."""
    problem = read(path)
    assert problem.num_customers >= 20 or problem.extras


# -- on a terminal


def test_tables_are_framed_on_a_terminal_and_plain_elsewhere(monkeypatch, capsys):
    show.table(["name", "size"], [["a [b]", 7], ["c", 12]], numbers=["size"])
    assert capsys.readouterr().out == "name   size\na [b]     7\nc        12\n"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    show.table(["name", "size"], [["a [b]", 7]], numbers=["size"])
    framed = capsys.readouterr().out
    assert "─" in framed
    assert "a [b]" in framed


def test_routes_are_a_table_on_a_terminal(monkeypatch, capsys):
    problem = read(EXAMPLES / "dairy.json")
    solution = Solution.of(problem, [(0, problem.customers)])
    assert not check(problem, solution).feasible
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    show.routes(solution, "by hand")
    out = capsys.readouterr().out
    assert out.splitlines()[0].endswith("1 route (by hand)")
    assert "waits" in out


def test_routes_are_lines_on_a_terminal_too_narrow_for_a_table(monkeypatch, capsys):
    problem = read(EXAMPLES / "dairy.json")
    solution = Solution.of(problem, [(0, problem.customers)])
    assert not check(problem, solution).feasible
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "60")
    show.routes(solution, "by hand")
    assert " - ".join(problem.names) in capsys.readouterr().out


def test_progress_is_shown_on_a_terminal_only_and_never_on_stdout(monkeypatch, capsys):
    with show.working("solving"):
        pass
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with show.working("solving"):
        print("a result")
    shown = capsys.readouterr()
    assert "solving" in shown.err
    assert shown.out == "a result\n"
