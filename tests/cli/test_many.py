"""Very many problems: all cores read them and tell of their routes, as one would."""

import json
import re
import signal
import subprocess
import sys
import threading
from functools import partial

import pytest
from commands import run
from corpus import corpus
from services import until

from chainroute import Solution, check
from chainroute.cli import files, outcomes
from chainroute.cli import solve as solving
from chainroute.cli.shards import share
from chainroute.errors import ChainRouteError, fail
from chainroute.formats import read, read_solution, write, write_solution
from chainroute.generate import generate
from chainroute.problem.variants import variant
from chainroute.solve import Outcome, Progress, Result

NEVER = 10**9
SECONDS = re.compile(r"\d+\.\d+ s|\"seconds\": [\d.]+")


@pytest.fixture
def folder(tmp_path):
    """Twelve problems, of which one route is too long for some, files that are none, and a broken one."""
    inside = tmp_path / "problems"
    inside.mkdir()
    for name in ("CVRP", "VRPTW", "OVRPL"):
        for i, problem in enumerate(generate(variant(name), 4 + 3 * (name == "VRPTW"), 4, seed=1)):
            write(problem, inside / f"{name}-{i}.json")
    (inside / "notes.json").write_text('{"routes": []}')
    (inside / "broken.json").write_text("{")
    (tmp_path / "out").mkdir()
    return inside


def read_by(reader, many, paths, monkeypatch):
    monkeypatch.setattr(files, "MANY", many)
    found, _, unreadable, inputs = solving.read_problems(paths, reader, share(None))
    return found, [(file, str(error)) for file, error in unreadable], inputs


def test_all_cores_read_what_one_does(folder, tmp_path, monkeypatch):
    """They agree on good files and on every way in which one can be broken, in the order of their names."""
    for case in corpus():
        (folder / f"case-{case.file}").write_bytes(case.content)
    reader = files.ProblemReader({})
    (found, unreadable, inputs), (same, still, again) = (
        read_by(reader, many, [folder], monkeypatch) for many in (NEVER, 1)
    )
    assert len(found) >= 12
    assert len(unreadable) > 50
    assert (unreadable, inputs) == (still, again)
    for i, (one, other) in enumerate(zip(found, same, strict=True)):
        write(one, tmp_path / f"{i}-one.json")
        write(other, tmp_path / f"{i}-other.json")
        assert (tmp_path / f"{i}-one.json").read_bytes() == (tmp_path / f"{i}-other.json").read_bytes()


@pytest.mark.parametrize("many", [NEVER, 1])
def test_a_share_has_its_own_problems_faults_and_notes(folder, tmp_path, many, monkeypatch, capsys):
    """Together shares have all, each once; files of all of them are not to be written over."""
    for i in range(6):
        (folder / f"table-{i}.csv").write_text("name,x,y,Cantidad\ndepot,0,0,\nA,3,4,5\n")
        (folder / f"broken-{i}.json").write_text("{")
    reader = files.ProblemReader({})
    whole, no_others, broken, inputs = solving.read_problems([folder], reader, share(None))
    everything = sorted(capsys.readouterr().err.splitlines())
    assert (len(whole), no_others, len(broken)) == (18, 0, 7)
    assert len(everything) == 6
    monkeypatch.setattr(files, "MANY", many)
    found, unreadable, notes = [], [], []
    for i in (1, 2, 3):
        ours, others, faults, same = solving.read_problems([folder], reader, share(f"{i}/3"))
        assert len(ours) + others == 18
        assert same == inputs
        found += [problem.name for problem in ours]
        unreadable += [file for file, _ in faults]
        notes += capsys.readouterr().err.splitlines()
    assert sorted(found) == sorted(problem.name for problem in whole)
    assert sorted(unreadable) == sorted(file for file, _ in broken)
    assert sorted(notes) == everything


def test_the_policy_is_loaded_while_files_are_read(folder, monkeypatch):
    """And what is wrong with its options is told only where the files are sound."""
    begun, read = threading.Event(), solving.read_problems

    def engine(*_):
        begun.set()
        raise fail("bad-option", "is no policy.", "--weights")

    def reading(*args):
        assert begun.wait(60)
        return read(*args)

    monkeypatch.setattr(solving, "_engine", engine)
    monkeypatch.setattr(solving, "read_problems", reading)
    code, out, err = run("solve", folder / "CVRP-0.json")
    assert (code, out) == (2, "")
    assert err.startswith("[bad-option] --weights: is no policy.")
    code, out, err = run("solve", folder / "broken.json")
    assert (code, out) == (2, "")
    assert "broken.json" in err
    assert "--weights" not in err


@pytest.mark.parametrize("form", [[], ["--json"]], ids=["text", "json"])
def test_all_cores_collect_what_one_does(folder, tmp_path, form, monkeypatch):
    """Plans that are sound, that leave customers out, that cannot be read, and that are not there."""
    for i in range(4):
        problem = read(folder / f"CVRP-{i}.json")
        some = problem.customers[: 2 if i == 1 else None]
        write_solution(
            Solution.of(problem, [(0, [c]) for c in some]), tmp_path / "out" / f"{problem.name}.sol"
        )
    (tmp_path / "out" / f"{problem.name}.sol").write_text("Route #1: one")
    told = []
    for many in (NEVER, 1):
        monkeypatch.setattr(files, "MANY", many)
        told.append(run("collect", folder, "-o", tmp_path / "out" / "{name}.sol", *form))
    assert told[0] == told[1]
    code, out, err = told[1]
    assert code == 3
    if form:
        rows = [json.loads(row) for row in out.splitlines()]
        assert [row.get("feasible") for row in rows].count(True) == 2
        assert sum("missing" in row for row in rows) == 8
    else:
        assert "2 of 12 problems have a plan" in out
        assert "1 infeasible, 1 unreadable, 8 missing." in out
        assert "broken.json" in err


def test_what_only_this_process_sees_is_read_here(folder, monkeypatch):
    monkeypatch.setattr(files, "MANY", 1)
    given = (folder / "CVRP-0.json").read_text()
    code, out, _ = run("collect", "-", folder / "CVRP-1.json", "-o", "nowhere/{name}.json", given=given)
    assert code != 0
    assert out.startswith("0 of 2 problems have a plan")


@pytest.mark.parametrize("form", [[], ["--json"]], ids=["text", "json"])
def test_workers_tell_what_the_command_would(folder, tmp_path, one_route, form, monkeypatch):
    """Routes that break rules, too, and the file that cannot be read; and the same files are written."""
    told = {}
    for many in (NEVER, 1):
        monkeypatch.setattr(files, "MANY", many)
        output = ["-o", tmp_path / "out" / "{name}.json"]
        code, out, err = run("solve", folder, "--solver", "neural", *output, *form)
        written = {file.name: file.read_bytes() for file in (tmp_path / "out").iterdir()}
        told[many] = code, SECONDS.sub("", out), err, written
        for file in (tmp_path / "out").iterdir():
            file.unlink()
    assert told[NEVER] == told[1]
    code, out, err, written = told[1]
    assert code == 2
    assert len(written) == 12
    assert "broken.json" in (out if form else err)
    assert "closes at" in out or '"feasible": false' in out
    assert form or "Note: All is well." in err


def test_what_cannot_be_written_or_solved_is_told_and_the_others_go_on(folder, tmp_path, monkeypatch):
    """A worker returns the exit codes, and writes the files, that this process would."""
    (folder / "broken.json").unlink()
    good, lost = (read(folder / f"CVRP-{i}.json") for i in (0, 1))
    plan = Solution.of(good, [(0, good.customers)])
    result = Result(plan, 0.1, (Progress(0.1, plan, "policy"),))
    error = ChainRouteError(fail("no-plan-found", "there was none in time.", lost.name).faults)
    every = [
        (Outcome(0, good, result), tmp_path / "gone" / "a.json", None),
        (Outcome(1, lost, None, error), tmp_path / "b.json", None),
        (Outcome(0, good, result), tmp_path / "c.json", tmp_path / "c.svg"),
    ]
    tell = partial(
        outcomes.tell, facts={"solver": "neural", "seed": 0}, as_json=False, explain=False, server=None
    )
    codes = [[say() for _, say in way(tell, every)] for way in (outcomes.told_here, outcomes.told_by_workers)]
    assert codes[0] == codes[1]
    assert codes[1][:2] == [2, 3]
    assert check(good, read_solution(tmp_path / "c.json", good)).cost == check(good, plan).cost
    assert (tmp_path / "c.svg").exists()
    assert not (tmp_path / "b.json").exists()


def test_words_for_a_terminal_are_framed(folder, monkeypatch):
    """As wide as it is, which a worker cannot see."""
    monkeypatch.setenv("COLUMNS", "80")  # which is set here, and put back afterwards
    problem = read(folder / "CVRP-0.json")
    plan = Solution.of(problem, [(0, problem.customers)])
    outcome = Outcome(0, problem, Result(plan, 0.1, (Progress(0.1, plan, "policy"),)))
    facts = {"solver": "neural", "seed": 0}
    tell = partial(outcomes.tell, facts=facts, as_json=False, explain=False, server=None)
    (_, plain, _), (_, framed, _) = (outcomes._words(tell, wide, outcome, None, None) for wide in (None, 100))
    assert "─" in framed
    assert "─" not in plain
    assert plain.splitlines()[0] == framed.splitlines()[0]


def test_ctrl_c_keeps_whole_files_and_resume_makes_the_rest(folder, tmp_path):
    """A real policy decodes in its own process while workers tell."""
    for i, problem in enumerate(generate(variant("CVRP"), 10, 40, seed=2)):
        write(problem, folder / f"more-{i}.json")
    (folder / "broken.json").unlink()
    script = "import chainroute.cli.files as f; f.MANY = 4\nfrom chainroute_command import main; main()"
    policy = ["--solver", "neural", "--weights", "random", "--starts", "1", "--augment", "1"]
    command = [sys.executable, "-c", script, "solve", str(folder), *policy, "--resume"]
    command += ["-o", str(tmp_path / "out" / "{name}.json")]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        until(lambda: any((tmp_path / "out").iterdir()))
        process.send_signal(signal.SIGINT)
        assert process.wait(60) in (0, 3, 128 + signal.SIGINT)  # all, some, or none were told
    problems = [read(file) for file in folder.iterdir() if file.name != "notes.json"]
    assert len(problems) == 52

    def judged():
        """What the judge says of the plans that are there: a file is whole or not there."""
        places = [(problem, tmp_path / "out" / f"{problem.name}.json") for problem in problems]
        return [
            check(problem, read_solution(place, problem)).feasible
            for problem, place in places
            if place.exists()
        ]

    assert all(judged())
    assert subprocess.run(command, capture_output=True, timeout=120).returncode == 0
    assert judged() == [True] * 52
