"""Work in a process of its own, which can be ended: a solver that hangs or crashes takes nothing with it.

A worker is a plain new interpreter: it shares no threads or locks with us and does not run our main script
again, as the processes of `multiprocessing` would. It is kept for the next call, which saves its start-up.
"""

from __future__ import annotations

import atexit
import os
import pkgutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

from chainroute.errors import fail

PARENT_WATCH = 0.5  # seconds between a worker's looks at whether its parent is still there
ORPHAN_GRACE = 2.0  # seconds past the deadline after which a worker that nobody ended ends itself

Message = tuple[str, Any]


def run(task: str, args: tuple[Any, ...], deadline: float, on_report: Callable[[Any], None]) -> bool:
    """Calls task(*args, report), named as "module:function", and passes on what it reports.

    True when the task ended by itself, False when `deadline` (on the monotonic clock) passed first; it is
    then ended. A task that fails, or whose process dies, is `solver-failed`.
    """
    worker = _take()
    reusable = False
    try:
        if not worker.ready(deadline):
            reusable = True  # still starting: the next call will find it ready
            return False
        worker.pipe.send((task, args, deadline))
        while message := worker.receive(deadline):
            kind, content = message
            if kind == "report":
                on_report(content)
                continue
            reusable = True
            if kind == "failed":
                raise fail("solver-failed", f"the solver stopped with {content}.")
            return True
        return False
    except (EOFError, OSError):
        raise fail("solver-failed", f"the solver's process died ({worker.death()}).") from None
    finally:
        if reusable:
            _idle.append(worker)
        else:  # late, dead, or interrupted
            worker.end()


class _Worker:
    def __init__(self) -> None:
        self.pipe, theirs = Pipe()
        self._ready = False
        path = os.pathsep.join(p or os.getcwd() for p in sys.path)
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", __name__, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                env={**os.environ, "PYTHONPATH": path},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )

    def ready(self, deadline: float) -> bool:
        """Whether it listens. Before that, sending to it might block for ever."""
        self._ready = self._ready or self.receive(deadline) is not None
        return self._ready

    def receive(self, deadline: float) -> Message | None:
        """The next message, or None when the deadline passes first."""
        while (left := deadline - time.monotonic()) > 0:
            if self.pipe.poll(min(left, 60.0)):
                message: Message = self.pipe.recv()
                return message
        return None

    def death(self) -> str:
        """How a process that hung up came to its end."""
        with suppress(subprocess.TimeoutExpired):
            code = self.process.wait(1.0)
            return f"signal {-code}" if code < 0 else f"exit code {code}"
        return "it hung up"

    def end(self) -> None:
        self.pipe.close()
        self.process.kill()
        self.process.wait()


_idle: list[_Worker] = []


def _take() -> _Worker:
    with suppress(IndexError):
        while True:
            worker = _idle.pop()
            if worker.process.poll() is None:
                return worker
            worker.end()
    try:
        return _Worker()
    except OSError as error:
        raise fail("solver-failed", f"no process could be started: {error}.") from None


@atexit.register
def _end_idle() -> None:
    while _idle:
        _idle.pop().end()


os.register_at_fork(after_in_child=_idle.clear)  # the workers belong to the parent


# -- inside the worker


def _serve(pipe: Connection) -> None:
    """Runs tasks until the other end hangs up."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which then ends us
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    pipe.send(("ready", None))
    while True:
        task, args, deadline = pipe.recv()
        # Even a task that hangs outside Python, with nobody left to end it, must not run for ever.
        signal.setitimer(signal.ITIMER_REAL, max(deadline - time.monotonic(), 0) + ORPHAN_GRACE)
        try:
            pkgutil.resolve_name(task)(*args, lambda report: pipe.send(("report", report)))
            answer: Message = ("done", None)
        except Exception as error:
            answer = ("failed", f"{type(error).__name__}: {error}")
        signal.setitimer(signal.ITIMER_REAL, 0)
        pipe.send(answer)


def _end_with(parent: int) -> None:
    """Ends this process soon after its parent, which may have been killed in the middle of a long search."""
    while os.getppid() == parent:
        time.sleep(PARENT_WATCH)
    os._exit(1)


if __name__ == "__main__":
    with suppress(EOFError, OSError):
        _serve(Connection(int(sys.argv[1])))
