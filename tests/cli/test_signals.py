"""Signals: Ctrl-C, a polite kill, a closed terminal end `solve` with what was found, not in a traceback."""

import json
import os
import pty
import signal
import subprocess
import sys
import threading
import time

import misbehaving
import pytest
from commands import COMMAND, run
from where import EXAMPLES

from chainroute import Problem, check
from chainroute.cli import show
from chainroute.cli.live import Live
from chainroute.formats import read, read_solution, write
from chainroute.generate import generate
from chainroute.problem.variants import variant
from chainroute.runtime import worker
from chainroute.runtime.signals import Interrupt, StopRequest, interruptible, interrupting
from chainroute.search.solvers import ortools, pyvrp
from chainroute.solve import first_plans, policy_process, pool
from chainroute.solve.portfolio import CONSTRUCTED
from chainroute.solve.result import Board

SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
PARCELS = EXAMPLES / "parcels.vrp"


@pytest.fixture(autouse=True)
def _listening():
    """Signals are as in a terminal, also where the tests run under nohup, which switches one off."""
    off = {number for number in SIGNALS if signal.getsignal(number) is signal.SIG_IGN}
    for number in off:
        signal.signal(number, signal.SIG_DFL)
    yield
    for number in off:
        signal.signal(number, signal.SIG_IGN)


def send(number):
    threading.Timer(0.05, os.kill, (os.getpid(), number)).start()


def found(out):
    """The only answer, which is a plan."""
    answer = json.loads(out)
    assert answer["feasible"]
    return answer


@pytest.mark.parametrize("number", SIGNALS)
def test_solve_returns_what_was_found(number, monkeypatch):
    """Out of a limit of minutes; that is no failure."""
    told = []
    monkeypatch.setattr(Live, "progress", lambda self, news: told or (told.append(news), send(number)))
    code, out, err = run("solve", PARCELS, "--time-limit", 600, "--json")
    assert (code, err) == (0, "Stopped.\n")
    assert found(out)["seconds"] < 60


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("solver", [pyvrp, ortools], ids=["pyvrp", "ortools"])
def test_other_solvers_return_what_was_found(number, solver, monkeypatch):
    """It is sent once, after their first report: another could come when nobody handles it any more."""
    real, told = worker.run, []

    def report_and_stop(task, args, deadline, on_report, **options):
        def on_first(report):
            on_report(report)
            if not told:
                told.append(report)
                send(number)

        return real(task, args, deadline, on_first, **options)

    monkeypatch.setattr(worker, "run", report_and_stop)
    name = solver.__name__.split(".")[-1]
    code, out, err = run("solve", PARCELS, "--solver", name, "--time-limit", 600, "--json")
    assert (code, err) == (0, "Stopped.\n")
    assert found(out)["source"] == "search"


def test_a_solver_with_nothing_yet_leaves_a_constructed_plan(monkeypatch):
    """A note says that it was stopped, not that its ten minutes are over."""
    misbehaving.replace_pyvrp(monkeypatch, misbehaving.hang)
    threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGTERM)).start()
    code, out, _ = run("solve", PARCELS, "--solver", "pyvrp", "--time-limit", 600, "--json")
    answer = found(out)
    assert (code, answer["source"]) == (0, "construction")
    assert answer["notes"] == [
        "PyVRP found no feasible solution before it was stopped. These routes are only constructed."
    ]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_batch_keeps_what_is_done_and_under_way(number, tmp_path, monkeypatch):
    """Sent once there is a plan, and twice, as `timeout` and shells do: once is meant."""
    for i, problem in enumerate(generate(variant("CVRP"), 20, 9, seed=0)):
        write(problem, tmp_path / f"{i}.json")
    solved = tmp_path / "solved"
    solved.mkdir()

    offer, offered = Board.offer, threading.Event()
    monkeypatch.setattr(Board, "offer", lambda *args: (offer(*args), offered.set())[0])

    def stop():
        offered.wait()
        os.kill(os.getpid(), number)
        os.kill(os.getpid(), number)

    threading.Thread(target=stop).start()
    code, out, err = run("solve", tmp_path, "--time-limit", 600, "--json", "-o", solved / "{name}.json")
    answers = [json.loads(row) for row in out.splitlines()]
    assert (code, 0 < len(answers) < 9) == (3, True)
    assert err == f"Stopped. {9 - len(answers)} of 9 problems were not begun, or had no plan yet.\n"
    assert len(list(solved.iterdir())) == len(answers)


def test_what_is_under_way_is_written_where_nobody_reads_on(tmp_path, monkeypatch):
    """As in a pipe to `tee`, which the same Ctrl-C ends first. Sent once two problems have a plan."""
    for i, problem in enumerate(generate(variant("CVRP"), 20, 4, seed=0)):
        write(problem, tmp_path / f"{i}.json")
    solved = tmp_path / "solved"
    solved.mkdir()
    offer, boards, told, once = Board.offer, set(), [], threading.Lock()

    def offered(board, *given):
        accepted = offer(board, *given)
        boards.add(board.problem.name)
        if len(boards) >= 2 and once.acquire(blocking=False):
            os.kill(os.getpid(), signal.SIGINT)
        return accepted

    def unread(document):
        told.append(document["problem"])
        raise BrokenPipeError

    monkeypatch.setattr(pool, "cores", lambda: 2)
    monkeypatch.setattr(Board, "offer", offered)
    monkeypatch.setattr(show, "line", unread)
    code, *_ = run("solve", tmp_path, "--time-limit", 600, "--json", "-o", solved / "{name}.json")
    assert code == 141
    assert len(list(solved.iterdir())) == len(told) >= 2


def test_ctrl_c_in_python_returns_what_a_solver_has_found():
    problem = read(PARCELS)
    start = threading.Timer(2.0, os.kill, (os.getpid(), signal.SIGINT))
    pyvrp.warm_up()
    start.start()
    result = pyvrp.solve(problem, 600)
    assert check(problem, result.solution).feasible
    assert result.seconds < 60


TELLING = """
import os, signal
import chainroute_command
real = signal.signal
def tell(number, handler):
    before = real(number, handler)
    os.write(1, b">" * (number == signal.SIGHUP))
    return before
signal.signal = tell
chainroute_command.main()
"""


@pytest.mark.parametrize("delay", [0, 0.1, 0.3])
@pytest.mark.parametrize("number", SIGNALS)
def test_the_first_moments_end_without_a_traceback(number, delay):
    """While it imports and starts workers, from where it first listens to signals (and tells us so): a word,
    and the code of the signal; or the plan, where that was quicker."""
    process = subprocess.Popen(
        [sys.executable, "-c", TELLING, "solve", str(PARCELS), "--time-limit", "600"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    process.stdout.read(1)
    time.sleep(delay)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    if "cost" in out:  # the plan was quicker, if only the one that is constructed at once
        assert (process.returncode, err.replace(f"Note: {CONSTRUCTED}\n", "")) == (0, "Stopped.\n")
    else:
        assert (process.returncode, err) == (128 + number, "Stopped.\n")


def test_a_closed_terminal_leaves_the_plan_in_its_file(tmp_path):
    """The terminal is gone, and with it whoever would read the table."""
    target = tmp_path / "plan.json"
    child, terminal = pty.fork()
    if child == 0:
        os.execv(sys.executable, [*COMMAND, "solve", str(PARCELS), "--time-limit", "600", "-o", str(target)])
    seen = b""
    while b"cost" not in seen:  # in the line of progress
        seen += os.read(terminal, 1000)
    os.close(terminal)
    end = time.monotonic() + 60
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        assert time.monotonic() < end
        time.sleep(0.05)
    problem = read(PARCELS)
    assert check(problem, read_solution(target, problem)).feasible


def test_what_the_caller_has_switched_off_stays_off():
    """Under nohup signals are ignored, and stay so."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with interruptible() as stop:
            os.kill(os.getpid(), signal.SIGHUP)
            assert not stop.is_set()
            os.kill(os.getpid(), signal.SIGTERM)
            assert (stop.is_set(), stop.number) == (True, signal.SIGTERM)
        with interrupting():
            os.kill(os.getpid(), signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_second_ctrl_c_interrupts_and_a_second_kill_does_not():
    with interruptible():
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    with interrupting():
        with pytest.raises(Interrupt) as error:
            os.kill(os.getpid(), signal.SIGTERM)
        assert error.value.number == signal.SIGTERM
        os.kill(os.getpid(), signal.SIGTERM)


def test_a_signal_that_comes_while_another_is_handled_does_not_wait_for_it(monkeypatch):
    """It would for ever, in the same thread, for the lock of the event that the first one sets."""
    begun = []

    def is_interrupted(stop):
        begun.append(stop)
        if len(begun) == 1:
            os.kill(os.getpid(), signal.SIGHUP)
        threading.Event.set(stop)

    monkeypatch.setattr(StopRequest, "set", is_interrupted)
    with interruptible() as stop:
        os.kill(os.getpid(), signal.SIGTERM)
        assert (stop.is_set(), stop.number, len(begun)) == (True, signal.SIGTERM, 1)


def test_handlers_are_put_back():
    before = [signal.getsignal(number) for number in SIGNALS]
    with interruptible(), interrupting():
        assert [signal.getsignal(number) for number in SIGNALS] != before
    assert [signal.getsignal(number) for number in SIGNALS] == before


def test_a_problem_without_a_plan_is_not_told_where_somebody_stopped_it(tmp_path, monkeypatch):
    """130 and a word, as before anything was found."""
    coords = [(0, 0), *((i, 1) for i in range(9))]
    full = Problem(name="full", capacity=10, delivery=[7, 7, 6, 6, 3, 3, 4, 4, 0], coords=coords, fleet=4)
    write(full, tmp_path / "full.json")
    misbehaving.construct_nothing(monkeypatch)
    monkeypatch.setattr(first_plans, "squeeze_in", lambda problem, over, seed: None)
    misbehaving.replace_pyvrp(monkeypatch, misbehaving.hang)
    monkeypatch.setattr(policy_process, "missing", lambda: "torch")
    threading.Timer(2.0, os.kill, (os.getpid(), signal.SIGINT)).start()
    code, out, err = run("solve", tmp_path / "full.json", "--time-limit", 600)
    assert (code, out, err) == (130, "", "Stopped.\n")
