"""The front door: solvers run in parallel within a time limit; the cheapest plan found is returned."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from queue import Empty

from chainroute.errors import BROKEN_OFF, ChainRouteError, Fault, coded, fail
from chainroute.options import Effort, require_limits, rules
from chainroute.plan.check import check
from chainroute.plan.solution import Solution
from chainroute.problem import Problem, require_problem
from chainroute.problem.features import require_known
from chainroute.problem.infeasible import impossible
from chainroute.runtime import threads, worker
from chainroute.runtime.cores import cores as available_cores
from chainroute.runtime.deadline import (
    LATE_ANSWER_SECONDS,
    LONGEST_SECONDS,
    Deadline,
    judging,
    seconds_of,
)
from chainroute.search.own import ruin
from chainroute.search.own.construct import inserted
from chainroute.search.own.exact import ALL_TRIED, is_tiny, optimum
from chainroute.search.solvers import pyvrp
from chainroute.solve import asking, policy_process
from chainroute.solve.attempt import Attempt, Propose
from chainroute.solve.first_plans import first_plan, plan_for_parts
from chainroute.solve.lanes import Facts, Lane, lanes_for, notes_for, refusal, search_workers
from chainroute.solve.messages import Failed, LaneEnded, Message, Note, PlanFound
from chainroute.solve.reduction import is_reducible
from chainroute.solve.result import CONSTRUCTION, UNSEARCHED, Board, Progress, Result
from chainroute.solve.searching import LANES, WATCH_SECONDS, search_parts
from chainroute.solve.sectors import Sectors, anneals, is_best_annealed, suits

CONSTRUCTED = "Neither a search nor the policy had routes in time: these are only constructed."


def solve(
    problem: Problem,
    time_limit: float | None = None,
    *,
    seed: int = 0,
    effort: Effort = Effort(),
    initial: Solution | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    stop: threading.Event | None = None,
    propose: Propose | None = None,
) -> Result:
    """The best routes found within `time_limit` seconds, counted from this call to its return.

    While workers start, which takes the first call a second and busy machines longer, up to START_SECONDS,
    the clock stands still. Without a limit, the size decides. Ctrl-C or `stop` ends the search early, with
    the best so far. `propose` takes the place of our own policy process.
    """
    require_limits(time_limit, seed)
    race = Race(
        require_problem(problem), time_limit, seed, effort, initial, on_progress=on_progress, propose=propose
    )
    return race.run(stop)


class Race:
    """Lanes, each a thread that drives worker processes, send what they find to the caller's thread."""

    def __init__(
        self,
        problem: Problem,
        time_limit: float | None,
        seed: int,
        effort: Effort,
        start: Solution | None = None,
        source: str = "given",  # of the start
        cores: int | None = None,
        on_progress: Callable[[Progress], None] | None = None,
        propose: Propose | None = None,
        kind: str = worker.SEARCH,  # of the workers that search
    ):
        require_known("solve", problem, pyvrp.KNOWS)
        board = Board(problem, on_progress)
        timed = time_limit is not None or (effort.polish and effort.iterations is None)
        limit = (time_limit or rules.default_limit(problem.num_customers)) if timed else LONGEST_SECONDS
        searches = effort.polish and pyvrp.installed()
        # A search decides which customers are left out; what it has decided by then depends on its speed.
        decided = not problem.has_optional or (searches and timed)
        reducible = is_reducible(problem) and decided
        self.attempt = Attempt(
            problem=problem,
            seed=seed,
            effort=effort,
            board=board,
            cores=cores or available_cores(),
            limit=min(limit, LONGEST_SECONDS),
            timed=timed,
            deadline=Deadline.after(min(limit, LONGEST_SECONDS), board.begin),
            searches=searches,
            reducible=reducible,
            asks=(propose is not None or not policy_process.missing()) and reducible,
            start=None if start is None else Solution(problem, start.routes),
            source=source,
            propose=propose,
            kind=kind,
        )
        if start is None:
            self.attempt.insertions = inserted(problem, self.attempt.is_settled)
        self.notes: list[str] = []
        self.faults: list[Fault] = []
        self.last_resort: Solution | None = None  # where the network is to answer alone
        self.stopped = False

    @property
    def problem(self) -> Problem:
        return self.attempt.problem

    @property
    def board(self) -> Board:
        return self.attempt.board

    def run(self, stop: threading.Event | None) -> Result:
        attempt, board = self.attempt, self.board
        attempt.stop_requested = stop or attempt.should_stop
        if attempt.start is not None and not board.offer(attempt.start, attempt.source):
            violations = check(self.problem, attempt.start).violations
            raise ChainRouteError(Fault("infeasible-start", v.message, "initial") for v in violations)
        if error := impossible(self.problem):
            raise error
        if not attempt.effort.polish or not is_tiny(self.problem):
            if attempt.start is None:
                attempt.first = first_plan(attempt, self.by_parts)
            if attempt.first is not None:
                self.take(CONSTRUCTION, [attempt.first])
            self.compete(stop)
        elif best := optimum(self.problem):
            board.offer(best, "exact")
        else:
            raise fail("no-solution", ALL_TRIED, self.problem.name)
        if not board.history and self.last_resort is not None:
            board.offer(self.last_resort, CONSTRUCTION)
        if not board.history:
            raise self.failure()
        if not attempt.timed:
            board.settle()
        searched = board.last.keys() - UNSEARCHED
        failed = not searched and any(fault.code in BROKEN_OFF for fault in self.faults)
        if (attempt.searches or attempt.asks) and board.last.keys() == {CONSTRUCTION} and not failed:
            self.notes.append(CONSTRUCTED)
        history, seconds = tuple(board.history), time.monotonic() - board.begin
        return Result(
            history[-1].solution,
            seconds,
            history,
            tuple(self.notes),
            self.stopped,
            tuple(self.faults),
            failed,
        )

    @property
    def by_parts(self) -> bool:
        """Whether the parts of a first plan are to be searched."""
        return self.attempt.searches and self.attempt.timed and suits(self.problem)

    def facts(self) -> Facts:
        """What decides which lanes run."""
        a, n, is_annealed = self.attempt, self.problem.num_customers, anneals(self.problem)
        return Facts(
            customers=n,
            cores=a.cores,
            timed=a.timed,
            polish=a.effort.polish,
            searches=a.searches,
            asks=a.asks,
            reducible=a.reducible,
            by_parts=self.by_parts,
            has_plan=self.board.best is not None,
            anneals=is_annealed,
            annealing_missing=a.timed and is_best_annealed(self.problem) and not ruin.installed(),
            is_short=a.timed and a.searches and a.cores > 1 and asking.is_short(a),
            has_time_for_whole=rules.has_time_for_whole(n, a.limit, is_annealed),
        )

    def lanes(self, stop: threading.Event | None) -> list[Callable[[], None]]:
        """What runs in parallel, once its workers are up; or what is missing for it."""
        attempt, facts = self.attempt, self.facts()
        if refused := refusal(facts):
            raise fail(*refused, self.problem.name)
        if not attempt.reducible:
            unknown = policy_process.unknown(self.problem)
            if not attempt.searches:
                raise fail("unsupported-feature", f"{unknown} PyVRP can.", self.problem.name)
            self.notes.append(f"Without the network: {unknown}")
        elif not attempt.effort.polish and attempt.propose is None:
            policy_process.require()
        self.notes += notes_for(facts)
        names = lanes_for(facts)
        if Lane.NETWORK in names:
            self.start_workers(partial(asking.load, attempt, stop))
        elif attempt.searches:
            for solver in (pyvrp, ruin) if facts.takes_parts and facts.anneals else (pyvrp,):
                self.start_workers(partial(solver.warm_up, stop, attempt.kind, search_workers(facts)))
        parts = self.parts(names, facts.anneals) if Lane.PARTS in names else None
        return [
            partial(search_parts, attempt, *parts)
            if name is Lane.PARTS and parts
            else partial(LANES[name], attempt)
            for name in names
        ]

    def start_workers(self, start: Callable[[], None]) -> None:
        """Starts workers while the clock stands still: worker start-up does not count against the limit."""
        seconds = seconds_of(start)
        self.board.begin += seconds
        self.attempt.deadline = self.attempt.deadline.later(seconds)

    def parts(self, names: list[Lane], is_annealed: bool) -> tuple[Sectors, Deadline]:
        """The plan whose parts are searched, and until when. Where the time is long for the size, one of
        several cores searches the whole, and parts that PyVRP searches are of the best plan."""
        attempt, first = self.attempt, self.board.best
        if attempt.start is None and (better := plan_for_parts(attempt)):
            self.take(CONSTRUCTION, [better])
        plan = self.board.best
        assert plan is not None
        wanted = attempt.deadline.earlier(judging(self.problem.num_customers))
        best = lambda: self.board.best if Lane.SEARCH in names else None  # noqa: E731
        is_rough = attempt.start is None and plan is first
        count = names.count(Lane.PARTS)
        return Sectors(plan, attempt.seed, count, wanted, is_rough, best, is_annealed), wanted

    def compete(self, stop: threading.Event | None) -> None:
        """Runs all lanes until they have ended, the time is up, or the caller has had enough."""
        attempt = self.attempt
        try:
            if stop is not None and stop.is_set():  # while a first plan was made
                self.stopped = True
                return
            lanes = self.lanes(stop)
            running = len(lanes)
            for lane in lanes:
                threads.start(lane, lambda ending: attempt.messages.put(LaneEnded(ending)))
            while running and (left := attempt.deadline.left + LATE_ANSWER_SECONDS) > 0:
                if stop is not None and stop.is_set():
                    self.stopped = True
                    break
                running -= self.listen(min(left, WATCH_SECONDS))
        except KeyboardInterrupt:
            self.stopped = True
            with suppress(ChainRouteError):
                self.listen(0)  # what came in the same moment
            if not (self.board.history or self.last_resort):
                raise
        except BaseException:
            attempt.should_stop.set()
            raise
        finally:
            if self.stopped:
                attempt.should_stop.set()

    def listen(self, seconds: float) -> int:
        """Takes in what the lanes have sent, waiting for it so long; returns how many of them have ended."""
        queue = self.attempt.messages
        try:
            messages: list[Message] = [queue.get(timeout=seconds)]
        except Empty:
            return 0
        while not queue.empty():
            messages.append(queue.get())
        found: dict[str, list[Solution]] = defaultdict(list)
        ended = 0
        for message in messages:
            match message:
                case PlanFound(source, plan):
                    found[source].append(plan)
                case Note(text):
                    self.notes += [text] if text not in self.notes else []
                case Failed(fault):
                    self.faults += [fault] if fault not in self.faults else []
                case LaneEnded(error):
                    ended += 1
                    if isinstance(error, Exception) and not isinstance(error, ChainRouteError):
                        self.faults += coded(error, "solve").faults  # of one lane; the others go on
                    elif error is not None:
                        raise error
        for source, plans in found.items():
            self.take(source, plans)
        return ended

    def take(self, source: str, plans: list[Solution]) -> None:
        """Keeps what is better and passes the checker: of several plans from one moment the cheapest, and
        without a clock the last, so that it does not matter what came in one moment."""
        if source == CONSTRUCTION and not self.attempt.effort.polish:
            known = [s for s in (self.last_resort, *plans) if s is not None]
            self.last_resort = min(known, key=lambda s: s.cost)
            return
        likely = sorted(plans, key=lambda s: s.cost) if self.attempt.timed else reversed(plans)
        if any(self.board.offer(s, source) for s in likely) and source != CONSTRUCTION:
            self.attempt.answered.set()

    def failure(self) -> ChainRouteError:
        """Why there is no solution."""
        attempt = self.attempt
        if self.stopped:
            return fail("no-plan-found", "stopped before any was found.", self.problem.name)
        broken_off = [fault for fault in self.faults if fault.code in BROKEN_OFF]
        if broken_off and not attempt.searched:
            return ChainRouteError(broken_off)
        seconds = f" within {attempt.limit:g} s" if attempt.timed else ""
        starting = "PyVRP may still have been starting, which takes a second."
        if not attempt.searches:
            starting = "The policy may still have been loading, which takes a new process some seconds."
        known = [*self.notes, *(f"{fault.at.field}: {fault.message}" for fault in self.faults)]
        why = " ".join(known) or ("" if attempt.searched else starting)
        message = f"no feasible routes were found{seconds}. {why}".rstrip()
        return fail("no-plan-found", message, self.problem.name)
