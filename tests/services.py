"""Services for tests: with a solver that does as told, inside this process; and the real one, in its own."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import httpx
import pytest

from chainroute import Problem, Solution, check
from chainroute.runtime.deadline import Deadline
from chainroute.service.app import create_app
from chainroute.service.openapi import PROBLEM
from chainroute.service.server import Server, bound, configured
from chainroute.service.settings import Settings
from chainroute.solve import Progress, Result
from chainroute.solve.reduction import known_ahead

TWO_STOPS = PROBLEM  # at 5 and 10 along a line; 20 there and back


def each(problem):
    """A route for each customer: feasible in the problems of these tests."""
    return Solution.of(problem, [(0, [c]) for c in problem.customers])


def together(problem):
    return Solution.of(problem, [(0, list(problem.customers))])


class Solver:
    """In place of `solve`: finds a route for each customer at once, one for all after half of the time, and
    takes the whole time. Keeps the names of the problems in the order in which they were begun."""

    def __init__(self):
        self.begun, self.stopped = [], []

    def __call__(self, problem, limit, *, seed, effort, initial, on_progress, stop, propose):
        self.begun.append(problem.name)
        begin = time.monotonic()
        history = []

        def found(solution, source):
            history.append(Progress(time.monotonic() - begin, solution, source))
            on_progress(history[-1])

        known = known_ahead(problem)
        first = known and propose(known, Deadline.after(limit))
        found(first or each(problem), "policy" if first else "search")
        stop.wait(limit / 2)
        if problem.name != "broken":
            found(together(problem), "polish")
        else:
            raise RuntimeError("secret of the machine")
        if stop.wait(limit / 2):
            self.stopped.append(problem.name)
        return Result(history[-1].solution, time.monotonic() - begin, tuple(history), ("all went well",))


def decode(problems, effort, seed, deadline, aside=None):
    """In place of the policy."""
    return [each(problem) for problem in problems]


def application(solver=None, **settings):
    return create_app(Settings(**{"running": 2, **settings}), solver or Solver(), decode)


@contextlib.contextmanager
def listening(app, port=0):
    """The application behind a real socket, in a thread; gives a client, which can also end it."""
    with bound("127.0.0.1", port) as listener:
        server = Server(configured(app, log_level="critical"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            address = f"http://127.0.0.1:{listener.getsockname()[1]}"
            with httpx.Client(base_url=address, timeout=30) as client:
                client.end = lambda: server.handle_exit(signal.SIGINT, None)
                yield client
        finally:
            client.end()
            thread.join()


COMMAND = "from chainroute.cli import main; main()"
WITH_SETTINGS = """
from chainroute.service.server import serve
from chainroute.service.settings import Settings
serve(Settings(**{}), "127.0.0.1", 0, lambda address: print(address, flush=True))
"""


class Service:
    """`chainroute serve` as a process; or the same with settings that the command does not offer, and after
    some lines of code."""

    def __init__(self, cwd=None, env=None, before="", **settings):
        code = f"{before}\n{WITH_SETTINGS.format(settings) if settings else COMMAND}"
        self.log = tempfile.TemporaryFile("w+")  # noqa: SIM115 a pipe that nobody reads would fill up
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, "serve", "--port", "0"],
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
            cwd=cwd,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **(env or {})},
        )
        line = self.process.stdout.readline()
        found = re.search(r"http://\S+", line)
        assert found, self.logged()
        self.client = httpx.Client(base_url=found[0], timeout=60)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.client.close()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(20)
        self.process.stdout.close()
        self.log.close()

    def logged(self):
        self.log.seek(0)
        return self.log.read()

    def workers(self):
        return children(self.process.pid)

    def memory(self):
        """Bytes that the service itself holds, without its workers."""
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", text)[1]) * 1024


def children(pid):
    """The processes whose parent it is. Threads' own lists of children would change while they are read."""
    return [int(place.name) for place in Path("/proc").glob("[0-9]*") if _parent(place) == pid]


def _parent(place):
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
        return int((place / "stat").read_text().rpartition(")")[2].split()[1])


def until(what, seconds=60):
    """Waits for an event that comes later on a busy machine; gives what it is."""
    end = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)
    return found


def judged(problem: Problem, document):
    """The cost of a solution's document, once the judge has agreed with it."""
    number = {name: i for i, name in enumerate(problem.names)}
    routes = [(number[r["depot"]], [number[c] for c in r["customers"]]) for r in document["routes"]]
    verdict = check(problem, Solution.of(problem, routes))
    assert verdict.feasible, verdict
    assert document["cost"] == pytest.approx(verdict.cost, rel=1e-9)
    return verdict.cost


def codes(answer):
    """The code and the place of each fault of a refusal."""
    return [(fault["code"], fault["where"]) for fault in answer.json()["error"]["faults"]]
