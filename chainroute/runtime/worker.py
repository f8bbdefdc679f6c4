"""Work in a process of its own, which can be ended: a solver that hangs or crashes takes nothing with it.

A worker is a plain new interpreter: it shares no threads or locks with us and does not run our main script
again, as the processes of `multiprocessing` would. It is kept for the next call, which saves its start-up.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chainroute.errors import ChainRouteError, fail
from chainroute.runtime.deadline import NEVER, ORPHAN_SECONDS, Deadline

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

PARENT_WATCH_SECONDS = 0.5  # seconds between a worker's looks at whether its parent is still there
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1"}  # of NumPy's products: there is a worker for each core
RESTART_SECONDS = 2.0  # that must be left for another worker, which takes up to half of them to start
MEMORY_SHARE = 0.75  # of the machine's memory that one worker may take, unless less is said
UNBOUNDED = 0  # bytes of memory that stand for no bound
STOP_WATCH_SECONDS = 0.02  # seconds between looks at whether the caller wants to stop

SEARCH, POLICY, FILES = "search", "policy", "files"  # kinds of workers, which are kept apart

Message = tuple[str, Any]
WorkerTask = Callable[..., None]  # of a module, by whose name the worker finds it


def run(
    task: WorkerTask,
    args: tuple[Any, ...],
    deadline: Deadline,
    on_report: Callable[[Any], None],
    *,
    kind: str = SEARCH,
    stop: threading.Event | None = None,
    patience: float = 0.0,
    memory: int | None = None,
) -> bool:
    """Calls task(*args, report), and passes on what it reports.

    True when the task ended by itself, False when the deadline passed or `stop` was
    set first. It is then ended; or, with `patience`, left alone for so many seconds past a deadline, in
    which it may finish for nobody and so stay ready for the next call. A task that fails is `solver-failed`,
    and so is one whose process dies twice, or once with no time for another one; coded errors come through.
    `memory` is the bytes that a worker may take.
    """
    again = True
    while True:
        try:
            return _run(task, args, deadline, on_report, kind, stop, patience, memory)
        except _DeathError as death:
            if not again or deadline.left < RESTART_SECONDS:
                raise fail("solver-failed", f"the solver's process died ({death}).") from None
            again = False  # the first death may have had nothing to do with the task


def run_in_each(
    task: WorkerTask,
    args: tuple[Any, ...],
    count: int,
    deadline: Deadline,
    *,
    kind: str = SEARCH,
    stop: threading.Event | None = None,
) -> None:
    """Calls task(*args, report) in so many workers side by side, and keeps them for the next calls.

    Nobody hears what comes of it: it is for what a worker loads once. Where the deadline passes or `stop` is
    set first, they go on by themselves.
    """
    workers: list[_Worker] = []
    try:
        while len(workers) < count:  # all start before any is waited for
            workers.append(_take(kind, deadline, stop))
        for worker in workers:
            with suppress(EOFError, OSError):  # of a dead one the next call will know
                if worker.ready(deadline, stop):
                    worker.send(task, args, deadline, 0.0)
        for worker in workers:
            with suppress(EOFError, OSError):
                worker.ready(deadline, stop)
    finally:
        _idle[kind] += workers


class _DeathError(Exception):
    """A worker's process died: how."""


def _run(
    task: WorkerTask,
    args: tuple[Any, ...],
    deadline: Deadline,
    on_report: Callable[[Any], None],
    kind: str,
    stop: threading.Event | None,
    patience: float,
    memory: int | None,
) -> bool:
    worker = _take(kind, deadline, stop, memory)
    keep = False
    try:
        if not worker.ready(deadline, stop):
            keep = True  # still starting, or busy with what was left to it: for the next call
            return False
        worker.send(task, args, deadline, patience)
        while message := worker.receive(deadline, stop):
            what, content = message
            if what == "report":
                on_report(content)
                continue
            keep = True
            if what == "refused":
                raise content
            if what == "failed":
                raise fail("solver-failed", "the solver stopped.", cause=content)
            return True
        keep = patience > 0 and not (stop and stop.is_set())  # who stops wants nobody to go on
        return False
    except (EOFError, OSError):
        raise _DeathError(worker.death()) from None
    finally:
        if keep:
            _idle[kind].append(worker)
        else:  # late, dead, or interrupted
            worker.end()


class _Worker:
    def __init__(self, memory: int = UNBOUNDED) -> None:
        self.pending = 1  # answers that are still to come, of which the first says that it listens
        self.late = NEVER  # when a task that is still running is given up
        try:
            import subprocess  # here, since who imports the library may never need a worker
            from multiprocessing import Pipe

            path = os.pathsep.join(p or os.getcwd() for p in sys.path)
            self.pipe, theirs = Pipe()
            with theirs:
                self.process = subprocess.Popen(
                    [sys.executable, "-P", "-m", __name__, str(theirs.fileno()), str(memory)],
                    pass_fds=[theirs.fileno()],
                    env={**ONE_THREAD, **os.environ, "PYTHONPATH": path},
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
        except OSError as error:
            raise fail("solver-failed", "no process could be started.", cause=str(error)) from None
        _alive.add(self)

    def ready(self, deadline: Deadline, stop: threading.Event | None) -> bool:
        """Whether it listens. Before that, sending to it might block for ever. One that is dead has hung up,
        which is an EOFError here, even where the system does not know of its death yet."""
        while self.pending and self.receive(deadline, stop):
            pass
        if not self.pending and self.process.poll() is not None:
            raise EOFError
        return not self.pending

    def send(self, task: WorkerTask, args: tuple[Any, ...], deadline: Deadline, patience: float) -> None:
        self.pending += 1
        self.late = deadline.later(patience)
        self.pipe.send((task, args, self.late))

    def receive(self, deadline: Deadline, stop: threading.Event | None) -> Message | None:
        """The next message, or None when the deadline passes or `stop` is set first."""
        slice = 60.0 if stop is None else STOP_WATCH_SECONDS
        while (left := deadline.left) > 0 and not (stop and stop.is_set()):
            if self.pipe.poll(min(left, slice)):
                message: Message = self.read()
                self.pending -= message[0] != "report"
                return message
        return None

    def read(self) -> Message:
        """The next message in the pipe. A thread that ends all may close it meanwhile, which is to hang up:
        Python then reads on from no file at all, a TypeError."""
        try:
            message: Message = self.pipe.recv()
        except TypeError:
            if not self.pipe.closed:
                raise
            raise EOFError from None
        return message

    def death(self) -> str:
        """How a process that hung up came to its end."""
        from subprocess import TimeoutExpired

        try:
            code = self.process.wait(1.0)
        except TimeoutExpired:
            return "it hung up"
        return f"signal {-code}" if code < 0 else f"exit code {code}"

    def end(self) -> None:
        """Ends the process; a thread may do so while another does."""
        self.process.kill()
        _alive.discard(self)  # only now: who ends all at exit may come before this thread gets further
        with _closing:
            self.pipe.close()
        self.process.wait()


_closing = threading.Lock()  # of pipes: to close one twice at a time would close another file
_alive: set[_Worker] = set()
_idle: defaultdict[str, list[_Worker]] = defaultdict(list)


def _take(kind: str, deadline: Deadline, stop: threading.Event | None, memory: int | None = None) -> _Worker:
    """One that waits for work, if there is one that is still alive; else a new one."""
    while _idle[kind]:
        with suppress(IndexError):  # somebody else was faster
            worker = _idle[kind].pop()
            try:
                worker.ready(min(deadline, worker.late), stop)
                if not (worker.pending and worker.late.passed):
                    return worker
                worker.end()  # it hangs
            except (EOFError, OSError):  # it died while it had nothing to do
                worker.end()
            except BaseException:  # we are interrupted
                _idle[kind].append(worker)
                raise
    if memory is None:  # a driver of a GPU reserves more addresses than there is memory
        memory = UNBOUNDED if kind.startswith(POLICY) else int(MEMORY_SHARE * memory_of_machine())
    return _Worker(memory)


def memory_of_machine() -> int:
    """Bytes of memory that processes of this machine, or container, have together."""
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with suppress(OSError, ValueError):  # no container, or one without a bound
        whole = min(whole, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return whole


@atexit.register
def _end_all() -> None:
    _idle.clear()
    for worker in list(_alive):
        worker.end()


def _forget_all() -> None:
    _idle.clear()
    _alive.clear()


os.register_at_fork(after_in_child=_forget_all)  # the workers belong to the parent


# -- inside the worker


def _serve(pipe: Connection) -> None:
    """Runs tasks until the other end hangs up."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):  # to all of a group they are for the parent, which ends us
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    pipe.send(("ready", None))
    while True:
        task, args, deadline = pipe.recv()
        # Even a task that hangs outside Python, with nobody left to end it, must not run for ever.
        signal.setitimer(signal.ITIMER_REAL, max(deadline.left, 0) + ORPHAN_SECONDS)
        try:
            task(*args, lambda report: pipe.send(("report", report)))
            answer: Message = ("done", None)
        except ChainRouteError as error:
            answer = ("refused", error)
        except Exception as error:
            answer = ("failed", f"{type(error).__name__}: {error}")
        signal.setitimer(signal.ITIMER_REAL, 0)
        pipe.send(answer)


def _bound_memory(most: int) -> None:
    """Has the system refuse this process more memory: a task that asks for more fails alone."""
    if most == UNBOUNDED:
        return
    with suppress(ImportError, OSError, ValueError):  # not everywhere
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def _end_with(parent: int) -> None:
    """Ends this process soon after its parent, which may have been killed in the middle of a long search."""
    while os.getppid() == parent:
        time.sleep(PARENT_WATCH_SECONDS)
    os._exit(1)


if __name__ == "__main__":
    from multiprocessing.connection import Connection

    _bound_memory(int(sys.argv[2]))
    with suppress(EOFError, OSError):
        _serve(Connection(int(sys.argv[1])))
