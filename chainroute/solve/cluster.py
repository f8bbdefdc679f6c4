"""Many problems on many machines, by Ray: each core of a cluster has one problem at a time, each GPU a batch.

Problems are sent out as cores become free, outcomes come back as they are ready. What was in the hands of a
machine that died is sent out again; what dies again and again is told as an error of that problem. Ray's own
retries are off, so that who has what is known here and nowhere else.
"""

from __future__ import annotations

import math
import signal
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from queue import Empty
from typing import Any

from chainroute.errors import FOR_ALL, ChainRouteError, coded, fail
from chainroute.options import Effort
from chainroute.plan.solution import Routes, Solution
from chainroute.problem import Problem
from chainroute.runtime.deadline import Deadline
from chainroute.runtime.extras import loading
from chainroute.solve import policy_process
from chainroute.solve.pool import BATCH_PROBLEMS, GPU_BATCH_PROBLEMS, WATCH_SECONDS, WorkerPool, made_ahead
from chainroute.solve.portfolio import Race
from chainroute.solve.result import Outcome

JOBS_AHEAD = 2  # jobs for each core or GPU that are sent out, so that none waits for the next
PROBLEM_TRIES = 3  # of a problem, where machines die
ASKING_SECONDS = 1.0  # between two questions for what the cluster has
ANSWER_SECONDS = 10.0  # in which a cluster must accept a connection
LOST_SECONDS = 60.0  # without a core in the cluster, after which it is given up
STALLED_SECONDS, STALLED_LIMITS = 120.0, 10  # without any outcome, and so many time limits beside

Item = tuple[int, Problem, Routes | None]  # the problem's number, and routes to start from


@dataclass(frozen=True)
class RayTask:
    """What is sent out in one piece, and how often it has been."""

    task: Callable[..., list[Any]]
    items: tuple[Item, ...]
    tries: int = 1


def solve_on_cluster(
    address: str,
    problems: Iterable[Problem],
    time_limit: float | None,
    seed: int,
    effort: Effort,
    stop: threading.Event | None = None,
) -> Iterator[Outcome]:
    """Yields outcomes as they are ready. `stop` gives up what is under way."""
    with loading("a cluster", "ray"):
        import ray
    ours = not ray.is_initialized()
    if ours:
        _connect(address)
    cluster = _Cluster(ray, problems, (time_limit, seed, effort))
    try:
        yield from cluster.outcomes(stop)
    finally:
        for reference in cluster.out:
            ray.cancel(reference, force=True)
        if ours:
            ray.shutdown()


def _connect(address: str) -> None:
    import ray

    handler = signal.getsignal(signal.SIGTERM)
    try:
        _require_listener(address)
        ray.init(address, log_to_driver=False, logging_level="ERROR")
    except (OSError, ValueError, RuntimeError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise fail("cluster-failed", f"there is none at '{address}': {reason}.", "cluster") from None
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, handler)  # Ray takes it, and would exit on it


def _require_listener(address: str) -> None:
    """Raises OSError where nobody listens, which Ray itself would try for minutes to find out."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host, int(port)), ANSWER_SECONDS).close()


class _Cluster:
    """The caller's side: what is to be sent out, and what is out."""

    def __init__(
        self, ray: Any, problems: Iterable[Problem], options: tuple[float | None, int, Effort]
    ) -> None:
        self.ray, self.options = ray, options
        self.over = threading.Event()  # no more is read
        # Who wants to stop, or outcomes, does not wait while the next problem is not there yet.
        self.coming = made_ahead(enumerate(problems), BATCH_PROBLEMS, self.over)
        self.read: list[Item] = []  # and not sent out yet
        self.all_read = False
        self.line: deque[RayTask] = deque()  # before those that are still to come
        self.out: dict[Any, RayTask] = {}
        self.resources: dict[str, float] = {}
        self.asked = -math.inf  # when they were asked for
        self.tasks: dict[
            tuple[Any, bool], Any
        ] = {}  # in Ray's form; made once, for which Ray keeps processes
        self.last_outcome = self.last_core = time.monotonic()  # when there was one

    def outcomes(self, stop: threading.Event | None) -> Iterator[Outcome]:
        stop = stop or threading.Event()
        try:
            while not stop.is_set():
                while not stop.is_set() and self.has_room() and (job := self.next_job()):
                    self.send(job)
                if self.out:
                    ready, _ = self.ray.wait(list(self.out), timeout=WATCH_SECONDS)
                    for reference in ready:
                        yield from self.take(reference)
                elif job := self.next_job():  # there is no core for it, and one may come
                    self.line.appendleft(job)
                    time.sleep(WATCH_SECONDS)
                elif self.all_read:
                    return
                self.require_progress()
        finally:
            self.over.set()

    def count(self, resource: str) -> int:
        """How many there are in the cluster, as of a second ago at most: asking takes a message each time."""
        if time.monotonic() >= self.asked + ASKING_SECONDS:
            self.resources, self.asked = self.ray.cluster_resources(), time.monotonic()
        return int(self.resources.get(resource, 0))

    def has_room(self) -> bool:
        """Whether somebody would soon have nothing to do; asked each time, as machines come and go."""
        searches = sum(job.task is search for job in self.out.values())
        batches = len(self.out) - searches
        if self.line:
            return searches < JOBS_AHEAD * self.count("CPU")
        return batches < JOBS_AHEAD * self.count("GPU") or searches < JOBS_AHEAD * self.count("CPU")

    def next_job(self) -> RayTask | None:
        """What is to be sent out next; None if there is no more, or its problems are not there yet."""
        if self.line:
            return self.line.popleft()
        _, _, effort = self.options
        gpus = self.count("GPU") > 0
        size = GPU_BATCH_PROBLEMS if gpus else 1 if effort.polish else BATCH_PROBLEMS
        self.read_on(size)
        items, rest = self.read[:size], self.read[size:]
        if not items or (len(items) < size and not self.all_read):
            return None
        self.read = rest
        return RayTask(decode if not effort.polish else propose if gpus else search, tuple(items))

    def read_on(self, size: int) -> None:
        """Reads until so many problems are there, but not for long."""
        patience = Deadline.after(WATCH_SECONDS)
        while not self.all_read and len(self.read) < size:
            try:
                numbered, ending = self.coming.get(timeout=max(0.0, patience.left))
            except Empty:
                return
            if numbered is not None:
                self.read.append((*numbered, None))
            elif isinstance(ending, StopIteration):
                self.all_read = True
            elif ending is not None:
                raise ending

    def send(self, job: RayTask) -> None:
        key = job.task, job.task is not search and self.count("GPU") > 0
        if key not in self.tasks:
            needs = {"num_cpus": 0, "num_gpus": 1} if key[1] else {"num_cpus": 1}
            self.tasks[key] = self.ray.remote(max_retries=0, max_calls=0, **needs)(job.task)
        self.out[self.tasks[key].remote(job.items, *self.options)] = job

    def take(self, reference: Any) -> Iterator[Outcome]:
        """Outcomes of a job that has ended; what it leaves to others goes to the head of the line."""
        job = self.out.pop(reference)
        self.last_outcome = time.monotonic()
        try:
            results = self.ray.get(reference)
        except self.ray.exceptions.RayError as error:
            if job.tries < PROBLEM_TRIES:
                self.line.append(replace(job, tries=job.tries + 1))
                return
            what = f"the machine that had it failed {PROBLEM_TRIES} times: {type(error).__name__}."
            for i, problem, _ in job.items:
                yield Outcome(i, problem, None, fail("solver-failed", what, problem.name))
            return
        for (i, problem, _), result in zip(job.items, results, strict=True):
            if job.task is propose:
                self.line.append(RayTask(search, ((i, problem, result),)))
            elif isinstance(result, ChainRouteError):
                if any(fault.code in FOR_ALL for fault in result.faults):
                    raise result
                yield Outcome(i, problem, None, result)
            else:
                yield Outcome(i, problem, result)

    def require_progress(self) -> None:
        """Raises where nobody works any more, which Ray would wait out for ever."""
        now = time.monotonic()
        if not self.out:  # nobody has anything to send, or to do
            self.last_outcome = now
        if self.count("CPU") or not (self.out or self.line):
            self.last_core = now
        if now - self.last_core > LOST_SECONDS:
            message = f"has had no core for {LOST_SECONDS:g} s, and jobs wait for one."
            raise fail("cluster-failed", message, "cluster")
        limit = STALLED_SECONDS + STALLED_LIMITS * (self.options[0] or 0.0)
        if now - self.last_outcome > limit:
            message = f"has sent nothing for {limit:g} s, and {len(self.out)} jobs are out."
            raise fail("cluster-failed", message, "cluster")


# -- on the machines of the cluster, where Ray keeps processes, and they their workers, for the next job


def search(items: Sequence[Item], time_limit: float | None, seed: int, effort: Effort) -> list[Any]:
    """The result of each problem, on one core, or the error that it ends in."""
    results: list[Any] = []
    for _, problem, routes in items:
        start = None if routes is None else Solution.of(problem, routes)
        try:
            results.append(Race(problem, time_limit, seed, effort, start, "policy", 1).run(None))
        except Exception as error:
            results.append(coded(error, problem.name))
    return results


def decode(items: Sequence[Item], time_limit: float | None, seed: int, effort: Effort) -> list[Any]:
    """The result of the policy alone for each problem, or the error that it ends in."""
    outcomes = WorkerPool([problem for _, problem, _ in items], time_limit, seed, effort).outcomes(None)
    return [outcome.error or outcome.result for outcome in sorted(outcomes, key=lambda o: o.index)]


def propose(items: Sequence[Item], time_limit: float | None, seed: int, effort: Effort) -> list[Any]:
    """The policy's routes for each problem, from which a search starts; None where it has none."""
    found = policy_process.propose_many([problem for _, problem, _ in items], effort, seed)
    return [None if solution is None else solution.pairs() for solution in found]
