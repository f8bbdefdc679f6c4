"""The front door: one core searches from cold, another from the policy's routes, the best judged one wins."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from queue import Empty, Queue

from chainroute.errors import BROKEN_OFF, WEIGHTS, ChainRouteError, Fault, fail, unexpected
from chainroute.options import SEEDS, Effort, require_limits, rules
from chainroute.plan.check import check
from chainroute.plan.solution import Solution
from chainroute.problem import Problem, require_problem
from chainroute.problem.infeasible import impossible
from chainroute.runtime import threads, worker
from chainroute.runtime.cores import cores as available_cores
from chainroute.runtime.deadline import (
    LATE_ANSWER_SECONDS,
    LONGEST_SECONDS,
    NEVER,
    START_SECONDS,
    Deadline,
    judging,
    seconds_of,
)
from chainroute.search.library import Found, SearchTask
from chainroute.search.own import ruin
from chainroute.search.own.construct import appended, cut, inserted, inserted_by_regions, shared_out
from chainroute.search.own.ejection import squeezed
from chainroute.search.own.exact import ALL_TRIED, is_tiny, optimum
from chainroute.search.own.savings import by_savings
from chainroute.search.solvers import pyvrp
from chainroute.solve import policy_process
from chainroute.solve.reduction import Reduction, is_reducible, reduction
from chainroute.solve.result import CONSTRUCTION, UNSEARCHED, Board, Progress, Result
from chainroute.solve.sectors import Sectors, anneals, is_best_annealed, suits

Propose = Callable[[Reduction, Deadline], Solution | None]  # routes of the problem that stands for the given
# A source and its solution, or its fault; "note" and a sentence; or "ended" and an error or None.
News = tuple[str, object]

MAX_CUSTOMERS = 10_000  # by parts
MAX_WHOLE_CUSTOMERS = 5_000  # where each process holds all matrices
LOADING_SECONDS = 3.0  # seconds that it takes to load torch and the weights
PREPARING_SECONDS = 600.0  # seconds that it may take on what is left of busy cores
CONSTRUCTED = "Neither a search nor the policy had routes in time: these are only constructed."
NO_SOLVER = "Neither PyVRP nor torch is installed (pip install 'chainroute[neural]')."
NO_ANNEALING = "numba is not installed (pip install 'chainroute[large]'): the plan may end a tenth higher."
DECIDING_SHARE = 0.1  # of the time, after which the search has decided whom the network may leave out
SEARCH_LANES = 2  # that search the whole problem side by side, on two cores and more
CONSTRUCTING_SHARE = 0.5  # of the time, at most, for a plan whose parts are searched
OTHER_SEED = 1_000_003  # what is added to the seed for the second search
TELLING_FACTOR = 10  # times the judge's, in seconds between two plans that are made of sectors
WATCH_SECONDS = 0.02  # seconds between looks at whether the caller wants to stop


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
        self.problem, self.seed, self.effort = problem, seed, effort
        self.start = None if start is None else Solution(problem, start.routes)
        self.source, self.propose, self.kind = source, propose, kind
        self.cores = cores or available_cores()
        self.board = Board(problem, on_progress)
        # Without a limit, counted iterations and the policy alone take the time they take.
        self.timed = time_limit is not None or (effort.polish and effort.iterations is None)
        limit = (time_limit or rules.default_limit(problem.num_customers)) if self.timed else LONGEST_SECONDS
        self.limit = min(limit, LONGEST_SECONDS)
        self.deadline = Deadline.after(self.limit, self.board.begin)
        self.searches = effort.polish and pyvrp.installed()
        # Who is left out is for a search to decide; what it has decided by then depends on its speed.
        decided = not problem.has_optional or (self.searches and self.timed)
        self.reducible = is_reducible(problem) and decided
        self.asks = (propose is not None or not policy_process.missing()) and self.reducible
        # No SimpleQueue: in Python 3.11 it waits for ever if a signal is handled as its wait runs out.
        self.news: Queue[News] = Queue()
        self.over = threading.Event()  # the lanes are to stop at once
        self.end = self.over  # the caller's, which may come after the race: nothing is prepared any more
        self.trouble = threading.Event()  # the search has failed
        self.notes: list[str] = []
        self.faults: list[Fault] = []
        self.answered = threading.Event()  # a search or the policy has found routes
        self.insertions = inserted(problem, self.is_settled) if start is None else iter(())
        self.first: Solution | None = None  # that is there before anybody searches
        self.last_resort: Solution | None = None  # where the policy is to answer alone
        self.other_seed = (seed + OTHER_SEED) % SEEDS
        self.core_free = threading.Event()  # ejection does not need the second lane's core
        self.searched = False  # a search has come to its end
        self.stopped = False

    # -- in the caller's thread

    def run(self, stop: threading.Event | None) -> Result:
        self.end = stop or self.over
        if self.start is not None and not self.board.offer(self.start, self.source):
            violations = check(self.problem, self.start).violations
            raise ChainRouteError(Fault("infeasible-start", v.message, "initial") for v in violations)
        if error := impossible(self.problem):
            raise error
        if not self.effort.polish or not is_tiny(self.problem):
            self.first = self.first_plan()
            if self.first is not None:
                self.take(CONSTRUCTION, [self.first])
            self.compete(stop)
        elif best := optimum(self.problem):
            self.board.offer(best, "exact")
        else:
            raise fail("no-solution", ALL_TRIED, self.problem.name)
        if not self.board.history and self.last_resort is not None:
            self.board.offer(self.last_resort, CONSTRUCTION)
        if not self.board.history:
            raise self.failure()
        if not self.timed:
            self.board.settle()
        searched = self.board.last.keys() - UNSEARCHED
        failed = not searched and any(fault.code in BROKEN_OFF for fault in self.faults)
        if (self.searches or self.asks) and self.board.last.keys() == {CONSTRUCTION} and not failed:
            self.notes.append(CONSTRUCTED)
        history, seconds = tuple(self.board.history), time.monotonic() - self.board.begin
        told = tuple(self.notes), self.stopped, tuple(self.faults), failed
        return Result(history[-1].solution, seconds, history, *told)

    def first_plan(self) -> Solution | None:
        """A plan that is there at once; if there is none, and the parts of one are to be searched, one that
        takes its time, which beyond the 48 variants is too long."""
        if self.start is not None:
            return None
        quick = cut(self.problem) or self.plan_by_variant() or shared_out(self.problem, self.is_settled)
        if quick or not self.by_parts or self.problem.extras:
            return quick
        return appended(self.problem) or next(self.insertions, None)

    def plan_by_variant(self) -> Solution | None:
        """The quick plan of one of the 48 variants that stands for the problem, without routes that cost more
        than their prizes: with thousands of customers a search takes many seconds to its first."""
        p = self.problem
        copied = p.distance_matrix is not None or p.duration_matrix is not None  # which takes long
        if copied or not p.extras or not self.reducible:
            return None
        known = reduction(p)
        quick = None if known is None else cut(known.problem)
        plan = None if known is None or quick is None else known.plan(quick)
        if plan is None:
            return None
        rate, facts = p.types[0].cost_per_distance, zip(plan.routes, plan.facts, strict=True)
        worth = (r for r, f in facts if rate * f.length < p.prizes[list(r.visits)].sum())
        return Solution(p, tuple(worth))

    @property
    def by_parts(self) -> bool:
        """Whether the parts of a first plan are to be searched."""
        return self.searches and self.timed and suits(self.problem)

    def lanes(self, stop: threading.Event | None) -> list[Callable[[], None]]:
        """What runs side by side, once its workers are up; or what is missing for it."""
        n, plan, by_parts = self.problem.num_customers, self.board.best, self.by_parts
        most = MAX_CUSTOMERS if by_parts else MAX_WHOLE_CUSTOMERS
        if n > most:
            why = "" if by_parts else " where a problem is not searched by parts"
            raise fail("too-large", f"{n} customers; at most {most:,}{why}.", self.problem.name)
        by_parts = by_parts and plan is not None
        if n > MAX_WHOLE_CUSTOMERS and not by_parts:
            why = "no first plan, whose parts would be searched, was made in time."
            raise fail("no-plan-found", why, self.problem.name)
        if not self.reducible:
            unknown = policy_process.unknown(self.problem)
            if not self.searches:
                raise fail("unsupported-feature", f"{unknown} PyVRP does.", self.problem.name)
            self.notes.append(f"Without the network: {unknown}")
        elif not self.effort.polish:
            if self.propose is None:
                policy_process.require()
        elif not self.searches:
            if not self.asks:
                self.notes.append(NO_SOLVER)
                return [self.construct]
            self.notes.append("PyVRP is not installed (pip install 'chainroute').")
        elif not self.asks:
            self.notes.append("torch is not installed (pip install 'chainroute[neural]').")
        if not self.searches:
            self.start_workers(partial(self.load_policy, stop))
            return [self.construct, self.policy]
        count = self.cores if by_parts else min(self.cores, SEARCH_LANES)
        if self.timed and is_best_annealed(self.problem) and not ruin.installed():
            self.notes.append(NO_ANNEALING)
        for solver in (pyvrp, ruin) if by_parts and anneals(self.problem) else (pyvrp,):
            self.start_workers(partial(solver.warm_up, stop, self.kind, count))
        if by_parts and plan is not None:
            return self.sector_lanes(plan)
        if self.cores == 1:
            return [self.search, self.rescue, self.construct]
        if self.propose is None and self.timed and self.is_short():
            return [self.search, partial(self.follow, self.other_search), self.rescue, self.construct]
        return [self.search, partial(self.follow, self.policy), self.construct]

    def start_workers(self, start: Callable[[], None]) -> None:
        """Starts workers while the clock stands still: their start is nobody's time limit."""
        seconds = seconds_of(start)
        self.board.begin += seconds
        self.deadline = self.deadline.later(seconds)

    def load_policy(self, stop: threading.Event | None) -> None:
        if self.timed and self.propose is None:
            with suppress(ChainRouteError):  # which asking it will end in as well
                policy_process.warm_up(self.effort, Deadline.after(START_SECONDS), stop=stop)

    def sector_lanes(self, plan: Solution) -> list[Callable[[], None]]:
        """A lane for each core, in which parts of the plan are improved, by annealing at first where that can
        be. Where the time is long for the size one of several cores searches the
        whole, from the given routes or from cold, and parts that PyVRP searches are of the best plan."""
        n = self.problem.num_customers
        first, plan = plan, self.better_first(plan)
        is_annealed = anneals(self.problem)
        whole = n <= MAX_WHOLE_CUSTOMERS and rules.has_time_for_whole(n, self.limit, is_annealed)
        searches = [self.search] if whole and self.cores > 1 else []
        cores = self.cores - len(searches)
        wanted = self.deadline.earlier(judging(n))
        best = lambda: self.board.best if searches else None  # noqa: E731
        is_rough = self.start is None and plan is first
        sectors = Sectors(plan, self.seed, cores, wanted, is_rough, best, is_annealed)
        told, improved = time.monotonic(), False

        def on_better() -> None:
            nonlocal told, improved
            improved = True
            pause = TELLING_FACTOR * judging(n)
            if time.monotonic() - told > pause or wanted.passed:
                told = time.monotonic()
                self.news.put(("search", sectors.plan))

        def lane() -> None:
            if is_annealed:
                try:
                    sectors.work(on_better, self.over, self.kind)
                except ChainRouteError as error:
                    sectors.anneals = False  # from now on PyVRP searches
                    self.tell("annealing", error)
            try:
                sectors.work(on_better, self.over, self.kind)
            except ChainRouteError as error:
                self.trouble.set()
                self.tell("PyVRP", error)
                if not improved:
                    return
            self.news.put(("search", sectors.plan))

        return [*searches, *[lane] * cores]

    def better_first(self, plan: Solution) -> Solution:
        """The plan whose parts are searched, unless the caller has given one: by savings, as pieces of a tour
        cost a tenth more, or three times as much where customers have time windows. Where these allow long
        routes, by insertion, which has fewer of them: PyVRP joins routes slowly in parts."""
        if self.start is None:
            enough = Deadline.after(CONSTRUCTING_SHARE * self.deadline.left)
            over = lambda: enough.passed or self.end.is_set()  # noqa: E731
            joins_slowly = self.problem.time_windows is not None and not anneals(self.problem)
            longer = inserted_by_regions(self.problem, over) if joins_slowly else None
            if better := longer or by_savings(self.problem, over):
                self.take(CONSTRUCTION, [better])
        return self.board.best or plan

    def is_short(self) -> bool:
        """Whether the policy would have too little time."""
        customers, gpu = self.problem.num_customers, policy_process.gpu(self.effort)
        return not rules.has_time_for_policy(customers, self.limit, gpu)

    def compete(self, stop: threading.Event | None) -> None:
        """Runs all lanes until they have ended, the time is up, or the caller has had enough."""
        try:
            if stop is not None and stop.is_set():  # while a first plan was made
                self.stopped = True
                return
            lanes = self.lanes(stop)
            running = len(lanes)
            for lane in lanes:
                threads.start(lane, lambda ending: self.news.put(("ended", ending)))
            while running and (left := self.deadline.left + LATE_ANSWER_SECONDS) > 0:
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
            self.over.set()
            raise
        finally:
            if self.stopped:
                self.over.set()

    def listen(self, seconds: float) -> int:
        """Takes in what the lanes have sent, waiting for it so long; how many of them have ended."""
        try:
            news = [self.news.get(timeout=seconds)]
        except Empty:
            return 0
        while not self.news.empty():
            news.append(self.news.get())
        found: dict[str, list[Solution]] = defaultdict(list)
        ended = 0
        for source, content in news:
            if isinstance(content, Solution):
                found[source].append(content)
            elif isinstance(content, str):
                self.notes += [content] if content not in self.notes else []
            elif isinstance(content, Fault):
                self.faults += [content] if content not in self.faults else []
            else:
                ended += 1
                if isinstance(content, Exception) and not isinstance(content, ChainRouteError):
                    self.faults += unexpected(content, "solve").faults  # of one lane; the others go on
                elif isinstance(content, BaseException):
                    raise content
        for source, solutions in found.items():
            self.take(source, solutions)
        return ended

    def take(self, source: str, solutions: list[Solution]) -> None:
        """Keeps what is better and passes the judge: of several solutions from the same moment the cheapest,
        and without a clock the last, so that it does not matter what came in one moment."""
        if source == CONSTRUCTION and not self.effort.polish:
            known = [s for s in (self.last_resort, *solutions) if s is not None]
            self.last_resort = min(known, key=lambda s: s.cost)
            return
        likely = sorted(solutions, key=lambda s: s.cost) if self.timed else reversed(solutions)
        if any(self.board.offer(s, source) for s in likely) and source != CONSTRUCTION:
            self.answered.set()

    def failure(self) -> ChainRouteError:
        """Why there is no solution."""
        if self.stopped:
            return fail("no-plan-found", "stopped before any was found.", self.problem.name)
        broken_off = [fault for fault in self.faults if fault.code in BROKEN_OFF]
        if broken_off and not self.searched:
            return ChainRouteError(broken_off)
        seconds = f" within {self.limit:g} s" if self.timed else ""
        starting = "PyVRP may still have been starting, which takes a second."
        if not self.searches:
            starting = "The policy may still have been loading, which takes a new process some seconds."
        known = [*self.notes, *(f"{fault.at.field}: {fault.message}" for fault in self.faults)]
        why = " ".join(known) or ("" if self.searched else starting)
        return fail(
            "no-plan-found", f"no feasible routes were found{seconds}. {why}".rstrip(), self.problem.name
        )

    # -- in threads of their own

    def construct(self) -> None:
        """Constructs better routes, unless the searches soon have some, for as long as nobody else has any.
        Where vehicles are so few that nobody has a plan, goes on until there is one, and searches from it."""
        p, plan = self.problem, self.board.best
        if plan is None and (plan := appended(p)):
            self.news.put((CONSTRUCTION, plan))
        few_vehicles = self.timed and plan is None and p.fleet is not None and not p.extras
        if not few_vehicles or self.cores > SEARCH_LANES:
            self.core_free.set()
        if self.searches and self.timed and not few_vehicles:
            self.answered.wait(rules.head_start(p.num_customers, self.limit))
        if not few_vehicles or p.time_windows is None:  # else ejection begins with what suits best
            for plan in self.insertions:
                self.news.put((CONSTRUCTION, plan))
        if few_vehicles and plan is None and (found := squeezed(p, self.is_settled, self.seed)):
            self.news.put((CONSTRUCTION, found))
            if self.searches:
                self.improve(found, self.other_seed, "search", pyvrp.SHORT_HISTORY_SHARE)
        self.core_free.set()

    def follow(self, lane: Callable[[], None]) -> None:
        """The second lane, once ejection does not need its core: on two cores it would take twice as long."""
        while not self.core_free.wait(WATCH_SECONDS) and not self.deadline.passed and not self.over.is_set():
            pass
        if not self.deadline.passed and not self.over.is_set():
            lane()

    def is_settled(self) -> bool:
        """Whether there is no point in constructing more."""
        late = self.timed and (self.answered.is_set() or self.deadline.passed)
        return late or self.over.is_set() or self.end.is_set()

    def search(self) -> None:
        """PyVRP from the given routes, from a plan by savings where there is little time for many windows, or
        from cold, on a core of its own for the whole time."""
        polishes = self.start is not None and self.source == "policy"
        start = self.plan_by_savings() if self.start is None else self.start
        self.improve(start, self.seed, "polish" if polishes else "search", pyvrp.SHORT_HISTORY_SHARE)

    def plan_by_savings(self) -> Solution | None:
        """Such a plan, where it is ahead of what a search has in time, and takes no more vehicles than there
        are."""
        p = self.problem
        if (
            not self.timed
            or p.time_windows is None
            or not rules.begins_by_savings(p.num_customers, self.limit)
        ):
            return None
        plan = by_savings(p, lambda: self.deadline.passed or self.over.is_set())
        if plan is None or not check(p, plan).feasible:
            return None
        self.news.put((CONSTRUCTION, plan))
        return plan

    def policy(self) -> None:
        """The policy's routes, then PyVRP from them; or, if there are no good ones in time, from cold too."""
        answer, best = self.ask(), self.board.best
        if not self.searches or self.over.is_set():
            return
        if answer is not None and (
            not self.timed  # what is done must not depend on who was faster
            or best is None
            or answer.cost <= best.cost * (1 + rules.POLISHING_GAP)
        ):
            self.improve(answer, self.other_seed, "polish", pyvrp.SHORT_HISTORY_SHARE)
        elif self.timed:
            self.other_search()
            if self.trouble.is_set() and not self.answered.is_set():
                self.ask()

    def other_search(self) -> None:
        """PyVRP with another seed and more patience, on the second core: from cold, or beyond the 48 variants
        from the first plan, which with many customers is ahead."""
        start = self.first if self.start is None and self.problem.extras else self.start
        self.improve(start, self.other_seed, "search", pyvrp.LONGER_HISTORY_SHARE)

    def rescue(self) -> None:
        """Asks the policy where the search fails, or has found nothing for long."""
        if not self.timed or self.start is not None:
            return
        enough = Deadline.after(self.limit * rules.RESCUE_SHARE)
        while not (self.trouble.is_set() or enough.passed):
            if self.answered.wait(WATCH_SECONDS) or self.over.is_set():
                return
        if not self.answered.is_set() and not self.over.is_set():
            self.policy()

    def ask(self) -> Solution | None:
        """The policy's routes, if it can be expected to have some in time."""
        if not self.asks:
            return None
        alone = not self.searches or self.trouble.is_set()
        deadline = self.deadline.share(1.0 if alone else rules.POLICY_SHARE)
        if (known := self.known()) is None:
            return None

        def on_report(_: int, answer: Solution | Fault) -> None:
            if isinstance(answer, Fault):
                self.tell("policy", ChainRouteError([answer]))
            elif (plan := known.plan(answer)) is not None:
                self.news.put(("policy", plan))

        try:
            if self.propose is not None:
                found = self.propose(known, deadline)
                if found is not None:
                    on_report(0, found)
                return None if found is None else known.plan(found)
            if not alone and not policy_process.is_warm() and deadline.left < LOADING_SECONDS:
                threading.Thread(target=self.prepare, daemon=True).start()
                return None
            (best,) = policy_process.propose_many(
                [known.problem],
                self.effort,
                self.seed,
                deadline if self.timed else NEVER,
                on_answer=on_report,
                on_note=lambda note: self.news.put(("note", note)),
                at_low_priority=not alone and self.timed,
                stop=self.over,
            )
        except ChainRouteError as error:
            crashed = all(fault.code == "solver-failed" for fault in error.faults)
            if self.blames_the_caller(error) or not (self.searches or crashed):
                raise
            self.tell("policy", error)
            return None
        return None if best is None else known.plan(best)

    def known(self) -> Reduction | None:
        """The problem as the network knows it; without those whom the search leaves out by now."""
        if not self.problem.has_optional:
            return reduction(self.problem)
        self.answered.wait(self.limit * DECIDING_SHARE)
        best = self.board.best
        return None if best is None else reduction(self.problem, best.left_out)

    def prepare(self) -> None:
        """Has the policy loaded by the next call, on what is left of the cores, unless the caller stops."""
        with suppress(ChainRouteError):
            policy_process.warm_up(
                self.effort, Deadline.after(PREPARING_SECONDS), at_low_priority=True, stop=self.end
            )

    def blames_the_caller(self, error: ChainRouteError) -> bool:
        """Whether an option is wrong: that is raised even where PyVRP alone could answer."""
        codes = {fault.code for fault in error.faults}
        return "bad-option" in codes or (self.effort.weights is not None and not codes.isdisjoint(WEIGHTS))

    def improve(self, start: Solution | None, seed: int, source: str, share: float) -> None:
        """PyVRP from those routes; should it fail, the others go on."""

        def on_report(found: Found) -> None:
            self.news.put((source, Solution.of(self.problem, found.routes)))

        wanted = self.deadline.earlier(judging(self.problem.num_customers))
        routes = None if start is None else start.pairs()
        task = SearchTask(self.problem, wanted, seed, routes, self.effort.iterations, share)
        try:
            self.searched |= pyvrp.search(task, on_report, self.over, self.kind)
        except ChainRouteError as error:
            self.trouble.set()
            self.tell("PyVRP", error)

    def tell(self, who: str, error: ChainRouteError) -> None:
        for fault in error.faults:
            self.news.put((who, fault.moved(field=who)))
