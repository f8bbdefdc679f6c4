"""Micro-batching: problems that wait together are decoded together.

A problem is announced when its job is queued, and decoded as soon as one of the lanes, each with a process of
the policy, is free: with others that were announced meanwhile and are like it. Nobody waits for a batch to
fill: it is what has gathered while others were decoded. A job that had to wait finds its routes ready.

What takes long, large problems and many trajectories, goes to processes of its own, and holds up nobody.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from chainroute.errors import ChainRouteError, fail
from chainroute.options import Effort, rules
from chainroute.plan.solution import Solution
from chainroute.problem import Problem
from chainroute.runtime.deadline import Deadline
from chainroute.service.metrics import Metrics
from chainroute.solve.reduction import known_ahead

Decode = Callable[..., list[Solution | None]]  # as policy.decode

MAX_BATCHED_CUSTOMERS = 150  # of a problem that is decoded with others
MAX_SIZE_RATIO = 2  # of the numbers of customers of two problems in a batch
MAX_BATCH_WORK = 30_000  # squares of customers in a batch at most: a second or two of one core
MAX_BATCH_SECONDS = 30.0  # with more, and with a failure, each problem is decoded alone

log = logging.getLogger("chainroute.service")


class Ticket:
    """A problem that waits for the policy."""

    def __init__(self, problem: Problem, effort: Effort, seed: int, turn: float) -> None:
        few = effort.augmentations == 1 and (effort.samples or 0) <= 1
        self.slow = problem.num_customers > MAX_BATCHED_CUSTOMERS or not (rules.is_open(effort) or few)
        ahead = known_ahead(problem)
        self.known = None if ahead is None else ahead.problem  # what is decoded; None: a search decides first
        self.seed, self.turn = seed, turn
        self.effort = effort if self.slow else rules.in_batch(effort)
        self.stop = threading.Event()  # nobody wants it any more
        self.solution: Solution | None = None
        self.error: ChainRouteError | None = None
        self.state = "waits"  # then "taken", then "done"; or "waits" again, alone
        self.alone = False  # a batch with it has failed

    def of(self, known: Problem) -> Ticket:
        """One for another problem, which is dropped together with this one."""
        other = Ticket(known, self.effort, self.seed, self.turn)
        other.stop = self.stop
        return other

    @property
    def work(self) -> int:
        """A number in proportion to the time that decoding takes, for one effort."""
        return self.size**2

    @property
    def size(self) -> int:
        """Customers of the problem that is decoded."""
        return 0 if self.known is None else self.known.num_customers

    @property
    def ready(self) -> bool:
        """Whether a job that began now would not have to wait for a lane."""
        return self.slow or self.known is None or self.state == "done"

    @property
    def taken(self) -> bool:
        """Whether it is being decoded."""
        return self.state == "taken"

    def goes_with(self, other: Ticket) -> bool:
        small, large = sorted((self.size, other.size))
        same = (self.effort, self.seed) == (other.effort, other.seed)
        return same and not self.alone and not other.alone and large <= MAX_SIZE_RATIO * small


class Batcher:
    def __init__(self, most: int, lanes: int, decode: Decode, metrics: Metrics) -> None:
        self._most, self._lanes, self._decode, self._metrics = most, lanes, decode, metrics
        self._change = threading.Condition()  # held for all that follows, and for the state of tickets
        self._waiting: set[Ticket] = set()
        self._free = lanes
        self.on_done: Callable[[], None] = lambda: None  # told, in a lane's thread, that tickets are done

    def announce(self, problem: Problem, effort: Effort, seed: int, turn: float) -> Ticket:
        """A ticket, to be decoded in the order of its turn, a time on any clock."""
        ticket = Ticket(problem, effort, seed, turn)
        if not ticket.slow and ticket.known is not None:
            self._queue(ticket)
        return ticket

    def _queue(self, ticket: Ticket) -> None:
        with self._change:
            self._waiting.add(ticket)
            if self._free:
                with suppress(RuntimeError):  # no thread is to be had; the next ticket asks again
                    threading.Thread(target=self._lane, daemon=True).start()
                    self._free -= 1

    def withdraw(self, ticket: Ticket) -> None:
        ticket.stop.set()
        with self._change:
            self._waiting.discard(ticket)
            self._change.notify_all()

    def propose(self, ticket: Ticket, known: Problem, deadline: Deadline) -> Solution | None:
        """The policy's routes for the problem that stands for the ticket's, or None if there are none by the
        deadline. Where a search has decided whom to leave out, that problem is news, and decoded now."""
        if ticket.slow:
            return self._decode([known], ticket.effort, ticket.seed, deadline, ticket.stop)[0]
        if ticket.known != known:
            ticket = ticket.of(known)
            self._queue(ticket)
        with self._change:
            in_time = self._change.wait_for(
                lambda: ticket.state == "done" or ticket.stop.is_set(), max(0.0, deadline.left)
            )
            if not in_time:
                self._waiting.discard(ticket)
        if ticket.error:
            raise ticket.error
        return ticket.solution

    # -- in the thread of a lane

    def _lane(self) -> None:
        """Decodes batch after batch for as long as anybody waits."""
        while batch := self._gather():
            error: ChainRouteError | None = None
            try:
                self._run(batch)
            except ChainRouteError as failure:
                error = failure
            except Exception:  # the lane must not be lost with the batch
                log.exception("A batch failed.")
                error = fail("internal-error", "the service failed; its log says how.")
            with self._change:
                for ticket in batch:
                    if ticket.solution or len(batch) == 1:
                        ticket.state, ticket.error = "done", error
                    elif not ticket.stop.is_set():
                        ticket.state, ticket.alone = "waits", True  # one of them may be to blame
                        self._waiting.add(ticket)
                self._change.notify_all()
            self.on_done()

    def _gather(self) -> list[Ticket]:
        """Whose turn is next, and this lane's share of those like it that can be decoded in the same time."""
        with self._change:
            waiting = sorted(self._waiting, key=lambda ticket: ticket.turn)
            if not waiting:
                self._free += 1
                return []
            like = [ticket for ticket in waiting[1:] if waiting[0].goes_with(ticket)]
            most = min(self._most, math.ceil((1 + len(like)) / self._lanes))
            batch = [waiting[0]]
            room = MAX_BATCH_WORK - batch[0].work
            for ticket in like:
                if len(batch) < most and ticket.work <= room:
                    batch.append(ticket)
                    room -= ticket.work
            for ticket in batch:
                ticket.state = "taken"
                self._waiting.discard(ticket)
            return batch

    def _run(self, batch: list[Ticket]) -> None:
        first, begin = batch[0], time.monotonic()
        problems = [ticket.known for ticket in batch]
        found = self._decode(problems, first.effort, first.seed, Deadline.after(MAX_BATCH_SECONDS))
        for ticket, solution in zip(batch, found, strict=True):
            ticket.solution = solution
        self._metrics.batches.inc()
        self._metrics.batch_problems.inc(len(batch))
        self._metrics.batch_seconds.inc(time.monotonic() - begin)
