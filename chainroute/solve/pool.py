"""Many problems on this machine: one on each core, and the policy in batches where it pays."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import islice
from queue import Empty, Full, Queue, SimpleQueue
from typing import TypeVar

from chainroute.classical.construct import construct
from chainroute.errors import FOR_ALL, ChainRouteError, Fault, fail
from chainroute.infeasible import impossible
from chainroute.options import Effort
from chainroute.problem import Problem
from chainroute.runtime import threads, worker
from chainroute.runtime.cores import cores
from chainroute.runtime.deadline import START_SECONDS, Deadline
from chainroute.solution import Solution
from chainroute.solve import policy_process
from chainroute.solve.portfolio import CONSTRUCTED, Race
from chainroute.solve.result import CONSTRUCTION, Board, Outcome, Result

T = TypeVar("T")

BATCH_PROBLEMS = 64  # problems that the policy decodes together
WATCH_SECONDS = 0.1  # seconds between looks at whether somebody wants to stop


def ahead(items: Iterable[T], most: int, over: threading.Event) -> Iterator[T]:
    """Yields the same items, made in a thread of its own before anybody asks for them, up to `most` of them.

    What ends the thread is raised after the items before it. Nothing more comes once it is `over`.
    """
    line: Queue[tuple[T | None, BaseException | None]] = Queue(most)

    def put(item: T | None, ending: BaseException | None = None) -> None:
        while not over.is_set():
            with suppress(Full):
                return line.put((item, ending), timeout=WATCH_SECONDS)

    def make() -> None:
        for item in items:
            put(item)
            if over.is_set():
                return

    threads.start(make, lambda error: put(None, error or StopIteration()))
    while not over.is_set():
        with suppress(Empty):
            item, ending = line.get(timeout=WATCH_SECONDS)
            if isinstance(ending, StopIteration):
                return
            if ending is not None:
                raise ending
            yield item  # type: ignore[misc]  # there is one, where there is no ending


class WorkerPool:
    """Threads that take problems from one line, and put outcomes into another."""

    def __init__(
        self, problems: Iterable[Problem], time_limit: float | None, seed: int, effort: Effort
    ) -> None:
        self.todo = iter(enumerate(problems))
        self.time_limit, self.seed, self.effort = time_limit, seed, effort
        self.over = threading.Event()  # no more is begun, and what is under way ends
        self.done: SimpleQueue[Outcome | BaseException | None] = SimpleQueue()
        self.line, self.lock = self.started(), threading.Lock()
        if effort.polish and policy_process.gpu(effort):  # decodes the next batch while cores search
            self.line = ahead(self.line, BATCH_PROBLEMS, self.over)

    def outcomes(self, stop: threading.Event | None) -> Iterator[Outcome]:
        lanes: list[Callable[[], None]] = [self.decode]
        if self.effort.polish:
            lanes = [partial(self.solve, f"{worker.SEARCH} {core}") for core in range(cores())]
        for lane in lanes:
            threads.start(lane, self.done.put)
        running = len(lanes)
        try:
            while running:
                if stop is not None and stop.is_set():
                    self.over.set()
                try:
                    outcome = self.done.get(timeout=WATCH_SECONDS)
                except Empty:
                    continue
                except KeyboardInterrupt:
                    if self.over.is_set():
                        raise
                    self.over.set()
                    continue
                if isinstance(outcome, BaseException):
                    raise outcome
                if outcome is None:
                    running -= 1
                else:
                    yield outcome
        finally:
            self.over.set()

    # -- in threads of their own

    def solve(self, kind: str) -> None:
        """One problem after the other, on one core. The workers of that kind are this lane's own."""
        while not self.over.is_set():
            with self.lock:
                item = next(self.line, None)
            if item is None:
                break
            i, problem, start = item
            try:
                race = Race(problem, self.time_limit, self.seed, self.effort, start, "policy", 1, kind=kind)
                self.done.put(Outcome(i, problem, race.run(self.over)))
            except ChainRouteError as error:
                self.fail([(i, problem)], error)

    def started(self) -> Iterator[tuple[int, Problem, Solution | None]]:
        """The problems, with the policy's routes to start from where a GPU makes them cheap."""
        if not policy_process.gpu(self.effort):
            yield from ((i, problem, None) for i, problem in self.todo)
        while batch := self.batch():
            problems = [problem for _, problem in batch]
            starts = policy_process.propose_many(problems, self.effort, self.seed, stop=self.over)
            yield from ((i, p, start) for (i, p), start in zip(batch, starts, strict=True))

    def decode(self) -> None:
        """The policy alone, in batches; no clock runs while it is loaded."""
        if self.time_limit is not None:
            with suppress(ChainRouteError):  # which the first batch will end in as well
                policy_process.warm_up(self.effort, Deadline.after(START_SECONDS), stop=self.over)
        while batch := self.batch():
            try:
                self.propose(batch)
            except ChainRouteError as error:
                self.fail(batch, error)

    def batch(self) -> list[tuple[int, Problem]]:
        return [] if self.over.is_set() else list(islice(self.todo, BATCH_PROBLEMS))

    def propose(self, batch: list[tuple[int, Problem]]) -> None:
        begin = time.monotonic()
        seconds = None if self.time_limit is None else self.time_limit * len(batch)
        deadline = Deadline.after(seconds)
        boards = [Board(problem, None) for _, problem in batch]
        why = [
            fail("no-plan-found", "the policy did not answer in time.", problem.name) for _, problem in batch
        ]

        def on_answer(index: int, answer: Solution | Fault) -> None:
            if isinstance(answer, Fault):
                why[index] = ChainRouteError([answer])
            else:
                boards[index].offer(answer, "policy")

        problems = [problem for _, problem in batch]
        policy_process.propose_many(
            problems, self.effort, self.seed, deadline, on_answer=on_answer, stop=self.over
        )
        stopped, took = self.over.is_set(), time.monotonic() - begin
        for (i, problem), board, error in zip(batch, boards, why, strict=True):
            notes: tuple[str, ...] = ()
            faults: tuple[Fault, ...] = ()
            if board.best is None and not stopped and (plan := construct(problem, lambda: True)):
                board.offer(plan, CONSTRUCTION)
                notes, faults = (CONSTRUCTED,), (error.faults[0].moved(field="policy"),)
            if board.best is not None:
                result = Result(board.best, took, tuple(board.history), notes, stopped, faults)
                self.done.put(Outcome(i, problem, result))
            elif not stopped:
                self.done.put(Outcome(i, problem, None, impossible(problem) or error))

    def fail(self, batch: list[tuple[int, Problem]], error: ChainRouteError) -> None:
        """Where the options are wrong, nothing can be solved; else the next problems may."""
        if any(f.code in FOR_ALL for f in error.faults):
            raise error
        if not self.over.is_set():
            for i, problem in batch:
                self.done.put(Outcome(i, problem, None, error))
