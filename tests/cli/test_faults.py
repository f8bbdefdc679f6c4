"""One problem's trouble is its own: an exception, a full disk or a kill at each step of a batch, and all
others are solved and written."""

import errno
import json
import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import chainroute.plot
import misbehaving
import pytest
from commands import COMMAND, run

import chainroute.formats
import chainroute.generate
import chainroute.plan.reasons
from chainroute import Solution, check, variant
from chainroute.cli import files, outcomes
from chainroute.formats import read, read_solution, write, write_solution
from chainroute.generate import generate
from chainroute.solve import Outcome, Progress, Result, policy_process
from chainroute.solve.portfolio import Race

NAMES = ["a", "bad", "c", "d", "e"]
GOOD = [name for name in NAMES if name != "bad"]


@pytest.fixture
def batch(tmp_path):
    """Five problems of three customers, of which every plan is tried, and a place for their plans."""
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    for name, problem in zip(NAMES, generate(variant("CVRP"), 3, 5, seed=0), strict=True):
        write(problem.replace(name=name), tmp_path / "in" / f"{name}.json")
    return tmp_path


def solve(batch, *more):
    return run("solve", batch / "in", "-o", batch / "out" / "{name}.json", *more)


def written(batch, ending="json"):
    """The names of plans that are there, whole and judged."""
    found = []
    for place in sorted((batch / "out").iterdir()):
        problem = read(batch / "in" / f"{place.stem}.json")
        assert check(problem, read_solution(place, problem)).feasible
        found.append(place.stem)
    return found


def raising(real, name_of, error=ZeroDivisionError("a bug")):
    """The function, which fails for the problem that is called bad."""

    def call(*args, **options):
        if name_of(*args).startswith("bad"):
            raise error
        return real(*args, **options)

    return call


def in_reading(patch):
    patch(files, "read_many", raising(files.read_many, lambda path, *_: path.name))


def in_solving(patch):
    patch(Race, "run", raising(Race.run, lambda race, *_: race.problem.name))


def in_judging(patch):
    module = sys.modules[check.__module__]
    patch(module, "check", raising(check, lambda problem, *_: problem.name))


def in_writing(patch):
    patch(chainroute.formats, "write_solution", raising(write_solution, lambda plan, *_: plan.problem.name))


def in_drawing(patch):
    patch(chainroute.plot, "draw", raising(chainroute.plot.draw, lambda problem, *_: problem.name))


def in_telling(patch):
    real = chainroute.plan.reasons.explained
    patch(chainroute.plan.reasons, "explained", raising(real, lambda plan: plan.problem.name))


@pytest.mark.parametrize("form", [[], ["--json"]], ids=["text", "json"])
@pytest.mark.parametrize("step", [in_reading, in_solving, in_judging, in_writing, in_drawing, in_telling])
def test_an_exception_at_any_step_is_one_problems_own(batch, monkeypatch, step, form):
    """It is told with the name; the code says that it is our fault."""
    step(monkeypatch.setattr)
    code, out, err = solve(batch, *form, "--plot", batch / "{name}.svg")
    needed = step is in_telling and not form  # what JSON alone tells
    assert code == (0 if needed else 70)
    told = [line for line in (out if form else err).splitlines() if "internal-error" in line]
    assert len(told) == (0 if needed else 1)
    assert all("bad" in line and "ZeroDivisionError: a bug" in line for line in told)
    assert set(GOOD) <= set(written(batch))
    assert {file.stem for file in batch.glob("*.svg")} >= set(GOOD)


@pytest.mark.parametrize("solver", ["pyvrp", "auto"])
def test_an_exception_of_a_solver_is_one_problems_own(batch, monkeypatch, solver):
    """It is named by its solver, and the constructed plan is there all the same where others would search."""
    for name, problem in zip(NAMES, generate(variant("CVRP"), 6, 5, seed=0), strict=True):
        write(problem.replace(name=name), batch / "in" / f"{name}.json")
    monkeypatch.setattr(policy_process, "missing", lambda: "torch")
    misbehaving.replace_pyvrp(monkeypatch, misbehaving.search_or_die)
    code, _, err = solve(batch, "--solver", solver, "--time-limit", 0.5)
    assert code == 70
    assert "[solver-failed]" in err
    assert "signal 9" in err
    assert written(batch) == (NAMES if solver == "auto" else GOOD)


@pytest.mark.parametrize("call", ["open", "replace"])
def test_a_full_disk_is_one_problems_own(batch, monkeypatch, call):
    """No part of a file stays."""
    full = OSError(errno.ENOSPC, "No space left on device")
    if call == "replace":
        monkeypatch.setattr(Path, "replace", raising(Path.replace, lambda _, target: Path(target).name, full))
    else:
        writing = []
        real, save = os.fsync, chainroute.formats.save
        monkeypatch.setattr(
            chainroute.formats, "save", lambda path, data: (writing.append(path), save(path, data))
        )
        monkeypatch.setattr(os, "fsync", raising(real, lambda _: Path(writing[-1]).name, full))
    code, out, err = solve(batch)
    assert (code, "No space left on device" in err, "bad.json" in err) == (2, True, True)
    assert "bad: CVRP" in out
    assert written(batch) == GOOD


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_where_nothing_can_be_printed_all_is_written(batch):
    with open("/dev/full", "w") as full:
        place = str(batch / "out" / "{name}.json")
        call = [*COMMAND, "solve", str(batch / "in"), "-o", place, "--json"]
        done = subprocess.run(call, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert (done.returncode, done.stderr.count("file-unwritable")) == (2, 1)
    assert written(batch) == NAMES


def test_a_process_that_dies_of_a_file_is_that_files_own(batch, monkeypatch):
    monkeypatch.setattr(files, "MANY", 1)
    monkeypatch.setattr(files.ProblemReader, "read", misbehaving.read_or_die)
    code, _, err = solve(batch)
    assert code == 70
    assert "bad.json" in err
    assert "signal 9" in err
    assert written(batch) == GOOD


def test_a_process_that_dies_of_an_outcome_is_that_problems_own(batch, monkeypatch):
    monkeypatch.setattr(outcomes, "_words", misbehaving.words_or_die)
    every = []
    for i, name in enumerate(NAMES):
        problem = read(batch / "in" / f"{name}.json")
        plan = Solution.of(problem, [(0, [c]) for c in problem.customers])
        result = Result(plan, 0.1, (Progress(0.1, plan, "policy"),))
        every.append((Outcome(i, problem, result), batch / "out" / f"{name}.json", None))
    facts = {"solver": "neural", "seed": 0}
    tell = partial(outcomes.tell, facts=facts, as_json=True, explain=False, server=None)
    codes = [say() for _, say in outcomes.told_by_workers(tell, every)]
    assert codes == [0, 70, 0, 0, 0]
    assert written(batch) == GOOD


def test_a_problem_that_cannot_be_written_is_its_own(tmp_path, monkeypatch):
    """One of three is larger than what is read; it is refused, and the others are written."""
    drawn = generate(variant("CVRP"), 5, 3, seed=0)
    large = drawn[1].replace(distance_matrix=drawn[1].distances)
    monkeypatch.setattr(chainroute.generate, "generate", lambda *_: [drawn[0], large, drawn[2]])
    monkeypatch.setattr(chainroute.formats, "MAX_BYTES", 800)
    code, out, err = run("generate", "CVRP", "-o", tmp_path / "drawn")
    assert (code, out) == (2, f"Wrote 2 problems to {tmp_path / 'drawn'}\n")
    assert f"[file-too-large] {tmp_path / 'drawn' / large.name}.json: would have 0 MB" in err
    assert len(list((tmp_path / "drawn").iterdir())) == 2


# -- what a kill leaves behind

KILLED = """
import os, signal, sys
import chainroute_command
real, calls = os.fsync, []
def fsync(file):
    calls.append(file)
    if len(calls) == 5:  # each file takes two: one for itself, one for its folder
        os.kill(os.getpid(), signal.SIGKILL)
    real(file)
os.fsync = fsync
chainroute_command.main()
"""


def test_after_a_kill_the_next_run_goes_on_and_tidies_up(batch):
    """Killed while it writes the third plan: two are whole, and a part of the third is beside them."""
    place = str(batch / "out" / "{name}.json")
    call = [sys.executable, "-c", KILLED, "solve", str(batch / "in"), "-o", place]
    assert subprocess.run(call, capture_output=True, timeout=60).returncode == -signal.SIGKILL
    names = sorted(file.name for file in (batch / "out").iterdir())
    assert (len(names), [name.endswith(".part") for name in names].count(True)) == (3, 1)
    other = batch / "out" / ".elsewhere-1-1.part"  # of another machine, which may be at work
    ours = batch / "out" / f".{names[0].split('-')[0].lstrip('.')}-{os.getpid()}-1.part"
    other.touch()
    ours.touch()
    code, _, err = solve(batch, "--resume")
    assert (code, err) == (0, "Skipped 2 of 5 problems: their outputs are there.\n")
    assert other.exists()
    assert ours.exists()
    other.unlink()
    ours.unlink()
    assert written(batch) == NAMES


def spoil_nothing(place, others):
    pass


def cut_short(place, others):
    place.write_bytes(place.read_bytes()[:40])


def empty(place, others):
    place.write_bytes(b"")


def leave_one_out(place, others):
    document = json.loads(place.read_text())
    document["routes"] = document["routes"][:-1]
    place.write_text(json.dumps(document))


def swap(place, others):
    place.write_text('{"routes": [{"customers": ["Anna", "Ben"]}]}')


@pytest.mark.parametrize("many", [1, 10**9])
@pytest.mark.parametrize("spoil", [spoil_nothing, cut_short, empty, leave_one_out, swap])
def test_resume_skips_plans_that_are_whole_and_of_their_problem(batch, monkeypatch, spoil, many):
    assert solve(batch)[0] == 0
    spoil(batch / "out" / "bad.json", NAMES)
    monkeypatch.setattr(files, "MANY", many)
    code, out, err = solve(batch, "--resume")
    skipped = 5 if spoil is spoil_nothing else 4
    assert (code, err) == (0, f"Skipped {skipped} of 5 problems: their outputs are there.\n")
    assert ("bad: CVRP" in out) is (skipped == 4)
    assert written(batch) == NAMES


def test_a_process_that_dies_of_an_output_has_that_one_solved_again(batch, monkeypatch):
    assert solve(batch)[0] == 0
    monkeypatch.setattr(files, "MANY", 1)
    monkeypatch.setattr(outcomes, "_is_done", misbehaving.is_done_or_die)
    code, _, err = solve(batch, "--resume")
    assert (code, err) == (0, "Skipped 4 of 5 problems: their outputs are there.\n")


def test_a_map_that_is_there_is_not_made_again(batch):
    """It cannot be read back."""
    call = ("solve", batch / "in", "-o", batch / "{name}.html")
    assert run(*call)[0] == 0
    (batch / "bad.html").write_bytes(b"")
    assert run(*call, "--resume")[2] == "Skipped 4 of 5 problems: their outputs are there.\n"


# -- each on its own


def test_what_ended_whole_batches_is_one_problems_own(batch):
    """A date past the year 9999, an archive with a damaged header, a capacity that is as good as none, and a
    name that is no text."""
    import io
    import zipfile

    import numpy as np

    far = {"capacity": 9, "day": "2026-11-16", "depots": [{"x": 0, "y": 0}],
           "customers": [{"x": 1e12, "y": 0, "delivery": 1, "window": [0, None]}]}  # fmt: skip
    (batch / "in" / "far.json").write_text(json.dumps(far))
    (batch / "in" / "farther.json").write_text(json.dumps(far).replace("1000000000000.0", "1e90"))
    tiny = {"capacity": 1e-320, "fleet": 1, "depots": [{"x": 0, "y": 0}],
            "customers": [{"x": 1, "y": 0, "delivery": 1, "prize": 3}]}  # fmt: skip
    (batch / "in" / "tiny.json").write_text(json.dumps(tiny))
    with zipfile.ZipFile(batch / "in" / "header.npz", "w") as archive:
        array = io.BytesIO()
        np.lib.format.write_array(array, np.ones((2, 2)))
        archive.writestr("demand_linehaul.npy", array.getvalue().replace(b"(2, 2)", b"((((((", 1))
    for name in (b"\xff.json", b"\xfe.json"):
        (batch / "in" / os.fsdecode(name)).write_bytes((batch / "in" / "a.json").read_bytes().replace(
            b'"name": "a",', b""))  # fmt: skip
    code, _, err = run("solve", batch / "in", "-o", batch / "out" / "{name}.xlsx")
    assert code == 2
    assert sorted(line.split("]")[0] for line in err.splitlines()) == ["[bad-syntax", "[not-positive"]
    assert "header.npz" in err
    assert "tiny.json" in err
    done = sorted(file.stem for file in (batch / "out").iterdir())
    assert done == ["_xfe", "_xff", *NAMES, "far", "farther"]
    for name in ("far", "farther"):
        problem = read(batch / "in" / f"{name}.json")
        assert check(problem, read_solution(batch / "out" / f"{name}.xlsx", problem)).feasible
        for ending in ("csv", "html"):
            write_solution(Solution.of(problem, [(0, [1])]), batch / f"{name}.{ending}")
