"""Many problems on this machine: one on each core, and the policy in batches where it pays."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from queue import Empty, Full, Queue
from typing import TypeVar

from chainroute.errors import FOR_ALL, ChainRouteError, Fault, coded
from chainroute.options import Effort, rules
from chainroute.plan.solution import Solution
from chainroute.problem import Problem
from chainroute.problem.infeasible import impossible
from chainroute.runtime import threads, worker
from chainroute.runtime.cores import cores
from chainroute.runtime.deadline import START_SECONDS, Deadline
from chainroute.search.own.construct import construct
from chainroute.solve import policy_process
from chainroute.solve.policy_process import Proposal
from chainroute.solve.portfolio import CONSTRUCTED, Race
from chainroute.solve.reduction import Reduction, known_ahead
from chainroute.solve.result import CONSTRUCTION, Board, Outcome, Result

T = TypeVar("T")
Made = tuple[T | None, BaseException | None]  # an item, or what ended their making
PolicyAnswer = Solution | Proposal | Fault | None
Batch = list[tuple[int, Problem, Reduction | None]]  # with their numbers, and what stands for them
# A problem with its number, what the policy has for it, and when it was asked.
Item = tuple[int, Problem, PolicyAnswer, float]

BATCH_PROBLEMS = 64  # problems that the policy decodes together
GPU_BATCH_PROBLEMS = 256  # the same on a GPU, which a smaller batch would not fill
GPU_BATCH_CUSTOMERS = 51_200  # up to which batches of small problems grow, where no search waits for them
ASSEMBLED_TOGETHER = 32  # problems for which a core makes plans at a time, at most
WATCH_SECONDS = 0.1  # seconds between looks at whether somebody wants to stop


def made_ahead(items: Iterable[T], most: int, over: threading.Event) -> Queue[Made[T]]:
    """A line of the items, made in a thread of its own before anybody asks for them, up to `most` of them.

    Last comes what ended the thread. Nothing more comes once it is `over`.
    """
    line: Queue[Made[T]] = Queue(most)

    def put(made: Made[T]) -> None:
        while not over.is_set():
            with suppress(Full):
                return line.put(made, timeout=WATCH_SECONDS)

    def make() -> None:
        for item in items:
            put((item, None))
            if over.is_set():
                return

    threads.start(make, lambda error: put((None, error or StopIteration())))
    return line


def ahead(items: Iterable[T], most: int, over: threading.Event) -> Iterator[T]:
    """Yields the same items, made ahead. What ends their making is raised after the items before it."""
    line = made_ahead(items, most, over)
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
        self.todo: Iterator[tuple[int, Problem]] = enumerate(problems)
        self.time_limit, self.seed, self.effort = time_limit, seed, effort
        self.over = threading.Event()  # no more is begun, and what is under way ends
        self.done: Queue[Outcome | BaseException | None] = Queue()
        # What is read ahead keeps nobody waiting, not even who wants to stop while the next is not there yet.
        self.lock, self.batches = threading.Lock(), ahead(self.read(), 1, self.over)
        self.line: Iterator[list[Item]]
        if policy_process.gpu(effort):  # decodes the next batch while cores are busy with the last
            self.line = self.cut(ahead(self.started(), 1, self.over))
        else:
            self.line = ahead(self.each(), 1, self.over)

    def outcomes(self, stop: threading.Event | None) -> Iterator[Outcome]:
        lanes: list[Callable[[], None]] = [self.decode]
        if self.effort.polish or self.leaves_drafts():
            work = self.solve if self.effort.polish else self.assemble
            lanes = [partial(work, f"{worker.SEARCH} {core}") for core in range(cores())]
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
                items = next(self.line, None)
            if items is None:
                break
            ((i, problem, answer, _),) = items
            try:
                (plan,) = self.plans([answer], kind)
                start = plan if isinstance(plan, Solution) else None
                race = Race(problem, self.time_limit, self.seed, self.effort, start, "policy", 1, kind=kind)
                self.done.put(Outcome(i, problem, race.run(self.over)))
            except Exception as error:
                self.fail(i, problem, error)

    def each(self) -> Iterator[list[Item]]:
        """The problems one by one, of which the policy has nothing yet."""
        for i, problem in self.todo:
            yield [(i, problem, None, time.monotonic())]

    def read(self) -> Iterator[Batch]:
        """The problems in batches, and what stands for them; ready to be sent where a GPU would wait."""
        problems = GPU_BATCH_PROBLEMS if policy_process.gpu(self.effort) else BATCH_PROBLEMS
        most = GPU_BATCH_CUSTOMERS if self.leaves_drafts() and not self.effort.polish else 0
        batch, customers, before = Batch(), 0, 0
        for i, problem in self.todo:
            known, size = self.known(problem), problem.num_customers
            if known and most and size <= rules.WHOLE_CUSTOMERS:  # of larger ones no core makes plans
                known.ready()
            batch.append((i, problem, known))
            customers += size
            # A first batch is soon there, the others are as large as all before them.
            if len(batch) >= problems and customers >= min(before, most):
                yield batch
                batch, customers, before = Batch(), 0, before + customers
            if self.over.is_set():
                return
        if batch:
            yield batch

    def known(self, problem: Problem) -> Reduction | None:
        """What stands for the problem; None, too, where that is an exception, which must end no other."""
        with suppress(Exception):
            return known_ahead(problem)
        return None

    def started(self) -> Iterator[list[Item]]:
        """Batches with what the policy has for their problems."""
        for batch in self.batches:
            begin = time.monotonic()
            answers: list[PolicyAnswer] = [None] * len(batch)
            try:
                policy_process.propose_many(
                    [problem for _, problem, _ in batch],
                    self.effort,
                    self.seed,
                    known=[known for _, _, known in batch],
                    on_answer=answers.__setitem__,
                    on_draft=answers.__setitem__,
                    stop=self.over,
                )
            except ChainRouteError as error:
                if any(fault.code in FOR_ALL for fault in error.faults):
                    raise
                answers = [error.faults[0]] * len(batch)
            yield [
                (i, problem, answer, begin) for (i, problem, _), answer in zip(batch, answers, strict=True)
            ]

    def cut(self, batches: Iterable[list[Item]]) -> Iterator[list[Item]]:
        """The same in pieces for a core: a few problems, of which plans are made, or one to be searched."""
        for items in batches:
            size = 1 if self.effort.polish else min(max(1, len(items) // cores()), ASSEMBLED_TOGETHER)
            yield from (items[first : first + size] for first in range(0, len(items), size))

    def leaves_drafts(self) -> bool:
        """Whether the policy alone, in batches, leaves it to cores to make routes of its trajectories."""
        return self.time_limit is None and policy_process.gpu(self.effort)

    def plans(self, answers: Sequence[PolicyAnswer], kind: str) -> list[Solution | Fault | None]:
        """The policy's plans, or why there are none; on one core where they are still to be made."""
        made = iter(policy_process.assembled([a for a in answers if isinstance(a, Proposal)], kind))
        return [next(made) if isinstance(answer, Proposal) else answer for answer in answers]

    def assemble(self, kind: str) -> None:
        """Plans of the policy's trajectories, of a few problems after the others, on one core."""
        while not self.over.is_set():
            with self.lock:
                items = next(self.line, None)
            if items is None:
                break
            try:
                plans = self.plans([answer for _, _, answer, _ in items], kind)
            except ChainRouteError as error:
                plans = [error.faults[0]] * len(items)
            for (i, problem, _, begin), plan in zip(items, plans, strict=True):
                board = Board(problem, None)
                if isinstance(plan, Solution):
                    board.post(plan, "policy")
                why = plan if isinstance(plan, Fault) else None
                self.conclude(i, problem, board, why, time.monotonic() - begin)

    def decode(self) -> None:
        """The policy alone, in batches; no clock runs while it is loaded."""
        if self.time_limit is not None:
            with suppress(ChainRouteError):  # which the first batch will end in as well
                policy_process.warm_up(self.effort, Deadline.after(START_SECONDS), stop=self.over)
        for batch in self.batches:
            try:
                self.propose(batch)
            except Exception as error:
                for i, problem, _ in batch:
                    self.fail(i, problem, error)

    def propose(self, batch: Batch) -> None:
        begin = time.monotonic()
        seconds = None if self.time_limit is None else self.time_limit * len(batch)
        deadline = Deadline.after(seconds)
        problems, known = [problem for _, problem, _ in batch], [known for _, _, known in batch]
        boards = [Board(problem, None) for problem in problems]
        faults: list[Fault | None] = [None] * len(batch)

        def on_answer(index: int, answer: Solution | Fault) -> None:
            if isinstance(answer, Fault):
                faults[index] = answer
                return
            try:
                boards[index].offer(answer, "policy")
            except Exception as error:
                faults[index] = coded(error, problems[index].name).faults[0]

        policy_process.propose_many(
            problems, self.effort, self.seed, deadline, known=known, on_answer=on_answer, stop=self.over
        )
        took = time.monotonic() - begin
        for (i, problem, _), board, why in zip(batch, boards, faults, strict=True):
            self.conclude(i, problem, board, why, took)

    def conclude(self, i: int, problem: Problem, board: Board, why: Fault | None, took: float) -> None:
        """Puts out what the policy alone has come to; an error there is that problem's."""
        try:
            self._conclude(i, problem, board, why, took)
        except Exception as error:
            self.fail(i, problem, error)

    def _conclude(self, i: int, problem: Problem, board: Board, why: Fault | None, took: float) -> None:
        """Tells what the policy alone has come to; without routes of its own, what can be constructed, and
        why there are none."""
        stopped = self.over.is_set()
        notes: tuple[str, ...] = ()
        faults: tuple[Fault, ...] = ()
        if board.best is None and not stopped:
            why = why or Fault("no-plan-found", "the policy did not answer in time.", problem.name)
            if plan := construct(problem, lambda: True):
                board.offer(plan, CONSTRUCTION)
                notes, faults = (CONSTRUCTED,), (why.moved(field="policy"),)
            else:
                self.done.put(Outcome(i, problem, None, impossible(problem) or ChainRouteError([why])))
        if board.best is not None:
            result = Result(board.best, took, tuple(board.history), notes, stopped, faults)
            self.done.put(Outcome(i, problem, result))

    def fail(self, i: int, problem: Problem, cause: Exception) -> None:
        """Puts out the error of a problem, or raises an error of options, which concerns all problems."""
        error = coded(cause, problem.name)
        if any(f.code in FOR_ALL for f in error.faults):
            raise error
        if not self.over.is_set():
            self.done.put(Outcome(i, problem, None, error))
