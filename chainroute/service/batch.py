"""Micro-batching: problems that wait together are decoded together.

A problem is announced when its job is queued. The first job that asks for its routes takes along others that
were announced with the same effort and seed; they find theirs done when their turn comes. Nobody waits for a
batch to fill: it is what has gathered while others were decoded.

What takes long, large problems and many trajectories, goes to processes of its own, and holds up nobody.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from dataclasses import replace

from chainroute.problem import Problem
from chainroute.service.metrics import Metrics
from chainroute.solution import Solution
from chainroute.solve import Effort

Decode = Callable[..., list[Solution | None]]  # as policy.decode

STARTS = 32  # first customers to try, on one map, recombined, where the effort is left open
LARGEST = 150  # customers of what is decoded in batches
LIKE = 2  # problems in a batch differ in their number of customers by at most this factor
SHARE = 0.5  # of the time that the job which asks has left, that a batch is expected to take at most
PACE = 1e-4  # seconds per unit of work, until it is known
PATIENCE = 4  # times as long as expected may a batch take, for those in it whose time has not begun


class Ticket:
    """A problem that waits for the policy."""

    def __init__(self, problem: Problem, effort: Effort, seed: int) -> None:
        chosen = replace(effort, polish=True) != Effort()
        few = effort.augmentations == 1 and (effort.samples or 0) <= 1
        self.slow = problem.num_customers > LARGEST or (chosen and not few)
        self.problem, self.seed = problem, seed
        self.effort = (
            effort if chosen or self.slow else replace(effort, starts=STARTS, augmentations=1, recombine=True)
        )
        self.stop = threading.Event()  # nobody wants it any more
        self.solution: Solution | None = None
        self.state = "waits"  # then "taken", then "done"; or "waits" again, alone
        self.alone = False  # a batch with it has failed

    @property
    def work(self) -> int:
        """In proportion to the time that it takes, for one effort."""
        return self.problem.num_customers**2

    def goes_with(self, other: Ticket) -> bool:
        small, large = sorted((self.problem.num_customers, other.problem.num_customers))
        same = (self.effort, self.seed) == (other.effort, other.seed)
        return same and not self.alone and not other.alone and large <= LIKE * small


class Batcher:
    def __init__(self, most: int, lanes: int, decode: Decode, metrics: Metrics) -> None:
        self._most, self._lanes, self._decode, self._metrics = most, lanes, decode, metrics
        self._change = threading.Condition()  # held for all that follows, and for the state of tickets
        self._tickets: dict[Ticket, None] = {}  # in the order of their announcement
        self._pace: dict[Effort, float] = {}  # seconds per unit of work, as last seen
        self._free = lanes

    def announce(self, problem: Problem, effort: Effort, seed: int) -> Ticket:
        ticket = Ticket(problem, effort, seed)
        if not ticket.slow:
            with self._change:
                self._tickets[ticket] = None
        return ticket

    def withdraw(self, ticket: Ticket) -> None:
        ticket.stop.set()
        with self._change:
            self._tickets.pop(ticket, None)

    def propose(self, ticket: Ticket, deadline: float) -> Solution | None:
        """The policy's routes for the ticket's problem, or None if there are none by the deadline."""
        if ticket.slow:
            return self._decode([ticket.problem], ticket.effort, ticket.seed, deadline, ticket.stop)[0]
        with self._change:
            while ticket.state == "taken" or (ticket.state == "waits" and not self._free):
                if not self._change.wait(max(0.0, deadline - time.monotonic())):
                    return None
            if ticket.state == "done" or ticket.stop.is_set():
                return ticket.solution
            batch = self._gather(ticket, deadline)
            self._free -= 1
        try:
            self._run(batch, deadline)
        finally:
            with self._change:
                for member in batch:
                    member.state = "done" if member.solution or member is ticket else "waits"
                    member.alone |= member.state == "waits"  # one of them may be to blame
                self._free += 1
                self._change.notify_all()
        return ticket.solution

    def _gather(self, first: Ticket, deadline: float) -> list[Ticket]:
        """The ticket, and its share of others that can be decoded beside it in the time there is."""
        others = [t for t in self._tickets if t is not first and t.state == "waits" and first.goes_with(t)]
        most = min(self._most, math.ceil((1 + len(others)) / self._lanes))
        room = SHARE * (deadline - time.monotonic()) / self._seconds(first.effort) - first.work
        batch = [first]
        for ticket in others:
            if len(batch) < most and ticket.work <= room:
                batch.append(ticket)
                room -= ticket.work
        for ticket in batch:
            ticket.state = "taken"
        return batch

    def _seconds(self, effort: Effort) -> float:
        """Per unit of work."""
        return self._pace.get(effort, PACE)

    def _run(self, batch: list[Ticket], deadline: float) -> None:
        first, work, begin = batch[0], sum(ticket.work for ticket in batch), time.monotonic()
        if len(batch) > 1:
            deadline = max(deadline, begin + PATIENCE * work * self._seconds(first.effort))
        found = self._decode([t.problem for t in batch], first.effort, first.seed, deadline)
        seconds = time.monotonic() - begin
        for ticket, solution in zip(batch, found, strict=True):
            ticket.solution = solution
        with self._change:
            self._pace[first.effort] = seconds / work
        self._metrics.batches.inc()
        self._metrics.batch_problems.inc(len(batch))
        self._metrics.batch_seconds.inc(seconds)
