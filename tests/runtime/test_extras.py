"""Libraries that are missing or broken: told with a code of their own; what can go on without them does."""

import json
import os
import subprocess
import sys
import threading

import pytest
from where import EXAMPLES

from chainroute import ChainRouteError, check, variant
from chainroute.generate import generate
from chainroute.runtime import worker
from chainroute.runtime.extras import loading
from chainroute.search.solvers import pyvrp
from chainroute.solve import Effort, policy_process, solve, solve_many

PARCELS = EXAMPLES / "parcels.vrp"
COMMAND = [sys.executable, "-c", "from chainroute.cli import main; main()"]
GONE = "libgone.so.1: cannot open shared object file: No such file or directory"
BROKEN = {"pyvrp": f"raise ImportError({GONE!r})", "torch": f"raise OSError({GONE!r})"}


@pytest.fixture
def broken(tmp_path, monkeypatch):
    """Makes libraries fail on import in all processes to come, as where a library of the system is gone."""

    def break_(*names):
        for name in names:
            (tmp_path / name).mkdir()
            (tmp_path / name / "__init__.py").write_text(BROKEN[name])
        monkeypatch.syspath_prepend(tmp_path)
        end_workers()
        return {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, sys.path)])}

    yield break_
    end_workers()


def end_workers():
    worker._idle.clear()
    for each in list(worker._alive):
        each.end()


def codes(error):
    return [fault.code for fault in error.value.faults]


def run(env, *args):
    done = subprocess.run(
        [*COMMAND, *map(str, args)], capture_output=True, text=True, timeout=120, env=env, cwd=PARCELS.parent
    )
    assert "Traceback" not in done.stderr
    return done


def test_what_fails_around_imports():
    for error, code in (
        (ModuleNotFoundError("No module named 'x'", name="x"), "missing-extra"),
        (ImportError(GONE), "broken-extra"),
        (OSError(GONE), "broken-extra"),
    ):
        with pytest.raises(ChainRouteError) as caught, loading("it", "neural"):
            raise error
        assert codes(caught) == [code]
    with pytest.raises(ZeroDivisionError), loading("it", "neural"):
        raise ZeroDivisionError


def test_where_pyvrp_is_broken_the_policy_goes_on(broken):
    """Also within seconds that it would otherwise leave to PyVRP; alone and among many."""
    broken("pyvrp")
    policy_process.warm_up()
    problems = generate(variant("VRPTW"), 20, 2, seed=1)
    answered = threading.Event()  # so that a busy machine has time and an idle one need not use it
    result = solve(
        problems[0], 20, stop=answered, on_progress=lambda n: answered.set() if n.source == "policy" else None
    )
    assert check(problems[0], result.solution).feasible
    assert "policy" in {news.source for news in result.history}
    assert any(fault.code == "broken-extra" and GONE in fault.cause for fault in result.faults)
    for outcome in solve_many(problems, 2):
        assert check(outcome.problem, outcome.result.solution).feasible
        assert any(fault.code == "broken-extra" for fault in outcome.result.faults)
    with pytest.raises(ChainRouteError) as error:
        pyvrp.solve(problems[0], 5)
    assert codes(error) == ["broken-extra"]


def test_a_broken_torch_is_told_where_the_policy_is_asked_for(broken):
    (problem,) = generate(variant("VRPTW"), 20, 1, seed=1)
    broken("torch")
    with pytest.raises(ChainRouteError) as error:
        solve(problem, 20, effort=Effort(polish=False))
    assert codes(error) == ["broken-extra"]
    result = solve(problem, effort=Effort(iterations=20))
    assert check(problem, result.solution).feasible
    assert any(fault.code == "broken-extra" for fault in result.faults)


def test_the_command_goes_on_with_what_is_left(broken):
    """With neither, the plan is constructed; what needs the library is refused with its own code."""
    env = broken("pyvrp", "torch")
    done = run(env, "solve", PARCELS, "--time-limit", 2, "--json")
    answer = json.loads(done.stdout)
    assert (done.returncode, answer["feasible"], answer["source"]) == (0, True, "construction")
    for args in (["solve", PARCELS, "--solver", "neural"], ["solve", PARCELS, "--solver", "pyvrp"]):
        done = run(env, *args)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("[broken-extra]"), done.stderr
    done = run(env, "info", "--policy")
    assert (done.returncode, done.stderr.startswith("[broken-extra] a policy needs")) == (2, True)
