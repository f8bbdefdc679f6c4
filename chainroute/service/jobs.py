"""Jobs, from the queue to their end.

All that is known of jobs lives in the event loop and is changed only there; each running job has a thread,
which waits for worker processes. The order is fair to the small: a job may be overtaken by those that ask for
less time, for as long as it asks for itself; and long or large jobs leave one place to the others.
"""

from __future__ import annotations

import asyncio
import logging
import math
import secrets
import threading
import time
from bisect import insort
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from chainroute.errors import ChainRouteError, Fault, fail
from chainroute.plan.reasons import explained
from chainroute.plan.solution import Solution
from chainroute.runtime.deadline import Deadline
from chainroute.service import documents, webhook
from chainroute.service.batch import Batcher, Ticket
from chainroute.service.metrics import Metrics
from chainroute.service.reading import Order
from chainroute.service.settings import Settings
from chainroute.solve import Progress, Result, policy_process
from chainroute.solve.reduction import Reduction, is_reducible

Solve = Callable[..., Result]
Mark = tuple[str, bytes]  # an Idempotency-Key, and the fingerprint of the order that came with it

LANE_WAIT_SECONDS = (
    2.0  # of a queued job for the policy to take its problem up; its time limit if that is more
)
DECODING_WAIT_SECONDS = 10.0  # of a queued job while the policy is at work on its problem
THREAD_WAIT_SECONDS = 1.0  # before the system is asked again for a thread that it did not have
LONG_JOB_SECONDS = 5.0  # jobs that ask for more leave one place to the others


OURS = Fault("internal-error", "the service failed; its log says how.")

log = logging.getLogger("chainroute.service")


@dataclass(eq=False)
class Work:
    """What a job needs until it has ended."""

    order: Order
    ticket: Ticket
    best: Solution | None = None
    first: Solution | None = None  # the policy's own
    explained: dict[str, Any] | None = None  # the best when it has ended, with reasons for who is left out
    texts: dict[str, tuple[object, bytes]] = field(default_factory=dict)  # the latest of each kind

    def once(self, kind: str, state: object, encode: Callable[[], bytes]) -> bytes:
        """What `encode` gives for this state, if it is not the same as when last asked."""
        if kind not in self.texts or self.texts[kind][0] != state:
            self.texts[kind] = state, encode()
        return self.texts[kind][1]


@dataclass(eq=False)
class Job:
    id: str
    problem_name: str
    work: Work | None
    submitted: float
    status: str = "queued"
    history: list[dict[str, Any]] = field(default_factory=list)
    error: Sequence[Fault] = ()
    notes: Sequence[str] = ()
    without_policy: str | None = None  # why it had no part
    started: float | None = None
    ended: float = math.inf
    final: bytes = b""  # the document of a job that has ended
    listeners: int = 0
    key: str = ""  # under which it was ordered
    created: float = field(default_factory=time.time)  # by the wall clock; all else is on the monotonic one
    patience: float = 0.0  # seconds for which a free place waits until the policy takes its problem up
    held: float | None = None  # since when one does
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def touch(self) -> None:
        """Wakes all who wait for a change."""
        self.changed.set()
        self.changed = asyncio.Event()

    @property
    def long(self) -> bool:
        return self.work is not None and (
            self.work.order.time_limit > LONG_JOB_SECONDS or self.work.ticket.slow
        )

    @property
    def ready(self) -> bool:
        return self.work is not None and self.work.ticket.ready

    @property
    def turn(self) -> float:
        """Jobs run in the order of this."""
        return self.work.ticket.turn if self.work else math.inf


class Jobs:
    def __init__(self, settings: Settings, solve: Solve, batcher: Batcher, metrics: Metrics) -> None:
        self._settings, self._solve, self._batcher, self._metrics = settings, solve, batcher, metrics
        self._active: dict[str, Job] = {}
        self._ended: dict[str, Job] = {}  # in the order of their end
        self._queue: list[Job] = []  # in the order of their turn
        self._running: set[Job] = set()  # whose thread has not returned
        self._kept_bytes = 0
        self._keys: dict[str, tuple[str, bytes]] = {}  # the id and fingerprint of those with a key
        self._loop: asyncio.AbstractEventLoop | None = None
        batcher.on_done = self._tell_routes_are_there
        metrics.watch("jobs_queued", "Jobs that wait now.", lambda: self.queued)
        metrics.watch("jobs_running", "Jobs that run now.", lambda: self.running)
        metrics.watch("jobs_kept", "Jobs that can be asked for.", lambda: self.kept)

    # -- what a client can do

    def known(self, mark: Mark) -> Job | None:
        """The job that was ordered under this key, if it still is there; a key is for one order."""
        self._forget()
        key, fingerprint = mark
        id, first = self._keys.get(key, ("", b""))
        if id and first != fingerprint:
            raise fail("key-reused", "another order came with the same key.", "Idempotency-Key")
        return self.get(id) if id else None

    def submit(self, order: Order, mark: Mark | None = None) -> Job:
        """A new job; or the one with the same mark, should it have been ordered meanwhile."""
        if mark and (job := self.known(mark)):
            return job
        held = sum(job.work.order.size for job in self._active.values() if job.work)
        message = ""
        if len(self._queue) >= self._settings.queued:
            message = f"{len(self._queue)} jobs are waiting already."
        elif held and held + order.size > self._settings.queued_bytes:
            message = f"the problems of {len(self._active)} jobs fill {held / 1e6:.0f} MB already."
        if message:
            self._metrics.refused.inc()
            raise fail("busy", message)
        now = time.monotonic()
        ticket = self._batcher.announce(order.problem, order.effort, order.seed, now + order.time_limit)
        job = Job(secrets.token_urlsafe(12), order.problem.name, Work(order, ticket), now)
        self._loop = asyncio.get_running_loop()
        self._active[job.id] = job
        if mark:
            job.key, self._keys[mark[0]] = mark[0], (job.id, mark[1])
        insort(self._queue, job, key=lambda job: job.turn)
        self._start_some()
        if job.status == "queued":
            job.patience = max(LANE_WAIT_SECONDS, order.time_limit)
        return job

    def get(self, id: str) -> Job:
        self._forget()
        job = self._active.get(id) or self._ended.get(id)
        if job is None:
            raise fail("unknown-job", "there is no such job, or not any more.", "id")
        return job

    def cancel(self, job: Job) -> None:
        """Ends the job at once, with the best so far. Its thread returns when its workers have stopped."""
        if job.work is None:
            return
        if job.status == "queued":
            self._queue.remove(job)
        self._end(job, "cancelled")

    def close(self) -> None:
        """Cancels everything."""
        for job in [*self._queue, *self._running]:
            self.cancel(job)

    @property
    def queued(self) -> int:
        return len(self._queue)

    @property
    def running(self) -> int:
        return len(self._running)

    @property
    def listeners(self) -> int:
        return sum(job.listeners for job in (*self._active.values(), *self._ended.values()))

    @property
    def kept(self) -> int:
        return len(self._active) + len(self._ended)

    def patience(self) -> int:
        """After how many seconds it is worth trying again when the queue is full."""
        seconds = sum(job.work.order.time_limit for job in self._queue if job.work)
        return max(1, min(60, round(seconds / self._settings.running / 4)))

    def document(self, job: Job) -> bytes:
        """The job, encoded once for all who ask for it."""
        work = job.work
        if work is None:
            return job.final
        position = self._queue.index(job) + 1 if job.status == "queued" else None
        state = (job.status, position, len(job.history), work.first is None)
        return work.once("document", state, lambda: documents.encoded(self._facts(job, work, position)))

    def progress(self, job: Job, index: int) -> bytes:
        """A point of the history; the latest comes with its solution, encoded once for all listeners."""
        work, point = job.work, job.history[index]
        if work is None or index + 1 < len(job.history):
            return documents.encoded({**point, "solution": None})
        return work.once(
            "progress",
            index,
            lambda: documents.encoded({**point, "solution": work.best and documents.solution(work.best)}),
        )

    def listed(self, status: str, limit: int) -> list[dict[str, Any]]:
        """Summaries of the newest jobs."""
        self._forget()
        every = sorted((*self._active.values(), *self._ended.values()), key=lambda job: -job.submitted)
        fitting = [job for job in every if status in ("", job.status)][:limit]
        place = {job.id: i for i, job in enumerate(self._queue, 1)}
        return [self._summary(job, place.get(job.id)) for job in fitting]

    def _summary(self, job: Job, position: int | None) -> dict[str, Any]:
        def moment(seconds: float | None) -> str | None:
            """A time on the monotonic clock, by the wall clock."""
            if seconds is None or seconds == math.inf:
                return None
            wall = datetime.fromtimestamp(job.created + seconds - job.submitted, UTC)
            return wall.isoformat(timespec="milliseconds").replace("+00:00", "Z")

        return {
            "id": job.id,
            "status": job.status,
            "position": position,
            "problem_name": job.problem_name,
            "cost": job.history[-1]["cost"] if job.history else None,
            "created": moment(job.submitted),
            "started": moment(job.started),
            "ended": moment(job.ended),
            "expires": moment(job.ended + self._settings.keep_seconds),
        }

    def _facts(self, job: Job, work: Work, position: int | None = None) -> dict[str, Any]:
        return {
            **self._summary(job, position),
            "history": job.history,
            "solution": work.explained or (work.best and documents.solution(work.best)),
            "first": work.first and documents.solution(work.first),
            "error": documents.failure(job.error)["error"] if job.error else None,
            "notes": list(job.notes),
            "without_policy": job.without_policy,
        }

    # -- running

    def _start_some(self) -> None:
        places = self._settings.running
        while len(self._running) < places:
            long = sum(job.long for job in self._running)
            room = max(1, places - 1) - long  # for long ones
            fitting = [job for job in self._queue if room > 0 or not job.long]
            # One that began before the policy has routes for it would hardly have a use for them.
            job = next((job for job in fitting if job.ready), fitting[0] if fitting else None)
            if job is None or job.work is None or self._is_held(job):
                return
            loop, now = asyncio.get_running_loop(), time.monotonic()
            try:
                threading.Thread(target=self._run, args=(job, job.work, loop), daemon=True).start()
            except RuntimeError as error:
                log.warning("A job waits for a thread: %s", error)
                loop.call_later(THREAD_WAIT_SECONDS, self._start_some)
                return
            self._queue.remove(job)
            self._running.add(job)
            job.status, job.started = "running", now
            job.touch()

    def _is_held(self, job: Job) -> bool:
        """Whether a place stays free for a while, since the policy is at work for those who wait: it then has
        the cores to itself, and decodes many at once. Routes that are being made are worth a longer wait."""
        if job.ready or not job.patience or job.work is None:
            return False
        now, longest = time.monotonic(), max(job.patience, DECODING_WAIT_SECONDS)
        if job.held is None:
            job.held = now
            for seconds in (job.patience, longest):
                asyncio.get_running_loop().call_later(seconds + 0.01, self._start_some)
        return now < job.held + (longest if job.work.ticket.taken else job.patience)

    def _tell_routes_are_there(self) -> None:
        with suppress(RuntimeError):  # the loop has ended
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._start_some)

    def _run(self, job: Job, work: Work, loop: asyncio.AbstractEventLoop) -> None:
        """Solves the problem of a job, in a thread, and tells the loop."""

        def tell(what: Callable[..., None], *args: object) -> None:
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(what, job, *args)

        faults: list[Fault] = []
        order = work.order
        absent: str | None = "the search was left alone on its core."
        if not is_reducible(order.problem):
            absent = policy_process.unknown(order.problem)

        def propose(known: Reduction, deadline: Deadline) -> Solution | None:
            nonlocal absent
            seconds = deadline.left
            try:
                found = self._batcher.propose(work.ticket, known.problem, deadline)
            except ChainRouteError as error:
                if not order.effort.polish:
                    raise
                faults.extend(error.faults)
                absent = "it could not be used."
                return None
            plan = found and known.plan(found)
            absent = None if plan else f"it had no routes within its {max(0.0, seconds):.2g} s."
            if plan:
                tell(self._proposed, plan)
            return found

        try:
            result = self._solve(
                order.problem,
                order.time_limit,
                seed=order.seed,
                effort=order.effort,
                initial=order.initial,
                on_progress=partial(tell, self._progressed),
                stop=work.ticket.stop,
                propose=propose,
            )
            if result.source in ("exact", "policy"):
                absent = None
            others = [str(_discreet(fault)) for fault in (*result.faults, *faults)]
            notes = (*order.notes, *result.notes, *others)
            status, why = ("failed", result.faults) if result.failed else ("done", ())
            tell(self._returned, status, why, notes, absent, explained(result.solution))
        except ChainRouteError as error:
            tell(self._returned, "failed", error.faults, ())
        except BaseException:
            log.exception("A job failed.")
            tell(self._returned, "failed", (OURS,), ())

    def _proposed(self, job: Job, solution: Solution) -> None:
        """Keeps the policy's routes, even where a search was better, so that the two can be compared."""
        if job.work is not None:
            job.work.first = solution

    def _progressed(self, job: Job, progress: Progress) -> None:
        if job.work is None:  # cancelled
            return
        job.work.best = progress.solution
        cost = progress.solution.cost
        job.history.append({"seconds": progress.seconds, "cost": cost, "source": progress.source})
        job.touch()

    def _returned(
        self,
        job: Job,
        status: str,
        faults: Sequence[Fault],
        notes: Sequence[str],
        without_policy: str | None = None,
        solution: dict[str, Any] | None = None,
    ) -> None:
        self._running.discard(job)
        if job.work is not None:
            job.without_policy, job.work.explained = without_policy, solution
            self._end(job, status, faults, notes)
        self._start_some()

    def _end(self, job: Job, status: str, faults: Sequence[Fault] = (), notes: Sequence[str] = ()) -> None:
        work, now = job.work, time.monotonic()
        assert work is not None  # a job ends once
        job.status, job.ended = status, now
        job.error, job.notes = [_discreet(fault) for fault in faults], notes
        self._batcher.withdraw(work.ticket)
        job.final = self._final(job, work)
        job.work = None  # problems and solutions take more memory than their documents
        self._kept_bytes += len(job.final)
        self._ended[job.id] = self._active.pop(job.id)
        began = job.started or now
        if work.order.webhook:
            webhook.send(work.order.webhook, job.final, self._settings.webhook_key)
        self._metrics.jobs.labels(job.status).inc()
        self._metrics.waited.inc(began - job.submitted)
        self._metrics.ran.inc(now - began)
        job.touch()
        self._forget()

    def _final(self, job: Job, work: Work) -> bytes:
        """The job that has ended, encoded; one whose plan cannot be told has failed, and is alone in that."""
        try:
            return documents.encoded(self._facts(job, work))
        except Exception:
            log.exception("A job's plan cannot be told.")
            job.status, job.error, job.history = "failed", [OURS], []
            work.best = work.first = work.explained = None
            return documents.encoded(self._facts(job, work))

    def _forget(self) -> None:
        """Drops what is beyond the number, size or age to be kept, oldest first."""
        s, now = self._settings, time.monotonic()
        while self._ended:
            oldest = next(iter(self._ended.values()))
            many = len(self._ended) > s.keep_jobs or self._kept_bytes > s.keep_bytes
            if not many and now - oldest.ended < s.keep_seconds:
                return
            del self._ended[oldest.id]
            self._keys.pop(oldest.key, None)
            self._kept_bytes -= len(oldest.final)


def _discreet(fault: Fault) -> Fault:
    """The fault without what it tells of the machine, which the log has."""
    if fault.cause:
        log.warning("A fault of a job: %s", fault)
    return replace(fault.moved(file=""), cause="")
