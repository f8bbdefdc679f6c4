"""Plans that are constructed: at once, before parts of one are searched, and as long as no search has any."""

from __future__ import annotations

from chainroute.options import rules
from chainroute.plan.check import check
from chainroute.plan.solution import Solution
from chainroute.runtime.deadline import Deadline
from chainroute.search.own.construct import (
    append_hardest_first,
    assign_vehicles,
    cut_tour,
    inserted_by_regions,
)
from chainroute.search.own.ejection import squeeze_in
from chainroute.search.own.savings import by_savings
from chainroute.solve.attempt import Attempt
from chainroute.solve.lanes import SEARCH_LANES
from chainroute.solve.reduction import reduction
from chainroute.solve.result import CONSTRUCTION
from chainroute.solve.sectors import anneals

CONSTRUCTING_SHARE = 0.5  # of the time, at most, for a plan whose parts are searched


def first_plan(attempt: Attempt, by_parts: bool) -> Solution | None:
    """A plan that is there at once; if there is none, and the parts of one are to be searched, one that
    takes its time, which beyond the 48 variants is too long."""
    problem = attempt.problem
    quick = cut_tour(problem) or plan_by_variant(attempt) or assign_vehicles(problem, attempt.is_settled)
    if quick or not by_parts or problem.extras:
        return quick
    return append_hardest_first(problem) or next(attempt.insertions, None)


def plan_by_variant(attempt: Attempt) -> Solution | None:
    """The quick plan of one of the 48 variants that stands for the problem, without routes that cost more
    than leaving their customers out: with thousands of customers a search takes many seconds to its first."""
    p = attempt.problem
    copied = p.distance_matrix is not None or p.duration_matrix is not None  # which takes long
    if copied or not p.extras or not attempt.reducible:
        return None
    known = reduction(p)
    quick = None if known is None else cut_tour(known.problem)
    plan = None if known is None or quick is None else known.plan(quick)
    if plan is None:
        return None
    rate, facts = p.types[0].cost_per_distance, zip(plan.routes, plan.facts, strict=True)
    worth = (r for r, f in facts if rate * f.length < p.prizes[list(r.visits)].sum())
    return Solution(p, tuple(worth))


def plan_for_parts(attempt: Attempt) -> Solution | None:
    """A plan whose parts are worth searching: by savings, as pieces of a tour cost a tenth more, or three
    times as much where customers have time windows. Where these allow long routes, by insertion, which has
    fewer of them: PyVRP joins routes slowly in parts."""
    problem = attempt.problem
    enough = Deadline.after(CONSTRUCTING_SHARE * attempt.deadline.left)
    over = lambda: enough.passed or attempt.stop_requested.is_set()  # noqa: E731
    joins_slowly = problem.time_windows is not None and not anneals(problem)
    longer = inserted_by_regions(problem, over) if joins_slowly else None
    return longer or by_savings(problem, over)


def plan_by_savings(attempt: Attempt) -> Solution | None:
    """A plan by savings, where it is ahead of what a search has in time, and takes no more vehicles than
    there are."""
    p = attempt.problem
    if not (
        attempt.timed
        and p.time_windows is not None
        and rules.begins_by_savings(p.num_customers, attempt.limit)
    ):
        return None
    plan = by_savings(p, lambda: attempt.deadline.passed or attempt.should_stop.is_set())
    if plan is None or not check(p, plan).feasible:
        return None
    attempt.found(CONSTRUCTION, plan)
    return plan


def construct(attempt: Attempt) -> Solution | None:
    """Constructs better routes, unless the searches soon have some, for as long as there are no others.

    Where vehicles are so few that there is no plan, it goes on until there is one, and returns that.
    """
    p, plan = attempt.problem, attempt.board.best
    if plan is None and (plan := append_hardest_first(p)):
        attempt.found(CONSTRUCTION, plan)
    few_vehicles = attempt.timed and plan is None and p.fleet is not None and not p.extras
    if not few_vehicles or attempt.cores > SEARCH_LANES:
        attempt.core_free.set()
    if attempt.searches and attempt.timed and not few_vehicles:
        attempt.answered.wait(rules.head_start(p.num_customers, attempt.limit))
    if not few_vehicles or p.time_windows is None:  # else ejection begins with what suits best
        for plan in attempt.insertions:
            attempt.found(CONSTRUCTION, plan)
    if few_vehicles and plan is None and (found := squeeze_in(p, attempt.is_settled, attempt.seed)):
        attempt.found(CONSTRUCTION, found)
        return found
    return None
