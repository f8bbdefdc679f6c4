"""Why a problem has no plan, and what would give it one.

First what is proven (problem/infeasible.py, and for a handful of customers all plans). Then each kind of rule
is relaxed for itself, briefly solved, and tightened as long as a plan is found: with more vehicles, later
closings, larger vehicles, longer routes; beyond the 48 variants, with more vehicles of a type or without some
customers. What a relaxation asks for is read off its plan by the judge: it is
sure to do, and may not be the least. The nearest plan is the one of them that breaks the rules least.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from chainroute.errors import ChainRouteError, printable
from chainroute.plan.check import Violation, check
from chainroute.plan.insertion import insertions
from chainroute.plan.reasons import MOST_TRIES, reasons
from chainroute.plan.solution import Solution
from chainroute.problem import Problem
from chainroute.problem.infeasible import Finding, proofs
from chainroute.runtime.deadline import Deadline
from chainroute.runtime.numerals import number_text
from chainroute.search.library import Found, SearchTask
from chainroute.search.own.exact import ALL_TRIED, is_tiny, optimum
from chainroute.search.solvers import pyvrp

ALL_SECONDS = 6.0  # for all relaxations together
TRY_SECONDS = 0.6  # for one try, at most
TRY_ITERATIONS = 500
TIGHTENINGS = 6  # to tighten one relaxation
SUSPECTS = 6  # customers of whom each is tried as the only one to close later
NAMED_CHANGES = 5  # changes that a message names
AFTER_ALL = "nothing"  # is relaxed where a plan keeps all rules: a search before had too little time
LEFT_OUT_FACTOR = 1e4  # times the longest way: what it costs to leave out whoever must be served


@dataclass(frozen=True)
class Relaxation:
    """A change of the problem that gives it a plan."""

    kind: str  # "vehicles", "windows", "capacity" or "limit"; beyond the variants "vehicles", "customers"
    message: str  # "with 3 vehicles instead of 2"
    changes: dict[str, Any]  # for JSON: the fields that change; windows by the name of the location
    problem: Problem  # with the change
    solution: Solution  # its plan, judged

    def as_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "message": self.message,
            "changes": self.changes,
            "cost": self.solution.cost,
        }


@dataclass(frozen=True)
class Explanation:
    proven: bool  # that there is no plan
    findings: tuple[Finding, ...]  # why
    nearest: Solution | None  # the plan that breaks the rules least, of those seen
    violations: tuple[Violation, ...]  # what it breaks, and by how much
    relaxations: tuple[Relaxation, ...]

    def as_dict(self) -> dict[str, Any]:
        return {
            "proven": self.proven,
            "findings": [finding.as_dict() for finding in self.findings],
            "nearest": None
            if self.nearest is None
            else {**self.nearest.as_dict(), "violations": [asdict(v) for v in self.violations]},
            "relaxations": [relaxation.as_dict() for relaxation in self.relaxations],
        }

    def __str__(self) -> str:
        if self.nearest is not None and not self.violations:
            return (
                f"A plan was found after all, of cost {number_text(self.nearest.cost, 10)}: give more time."
            )
        unproven = "No plan was found; that there is none is not proven."
        lines = ["There is no plan." if self.proven else unproven]
        lines += [f"  Proven: {finding.message}" for finding in self.findings]
        if self.proven and not self.findings:
            lines.append(f"  Proven: {ALL_TRIED}")
        if self.violations:
            lines.append("The nearest plan seen breaks these rules:")
            lines += [f"  {violation.message}" for violation in self.violations[:NAMED_CHANGES]]
            if len(self.violations) > NAMED_CHANGES:
                lines.append(f"  and {len(self.violations) - NAMED_CHANGES} more.")
        if self.relaxations:
            lines.append("There would be a plan")
            lines += [f"  {relaxation.message}" for relaxation in self.relaxations]
        return "\n".join(map(printable, lines))


def explain(problem: Problem, seconds: float = ALL_SECONDS, seed: int = 0) -> Explanation:
    """What is known about a problem without a plan, after about so many seconds."""
    if pyvrp.installed() and not is_tiny(problem):
        pyvrp.warm_up()
    deadline = Deadline.after(seconds)
    findings = tuple(proofs(problem))
    proven = bool(findings) or (is_tiny(problem) and optimum(problem) is None)
    relaxer = _Relaxer(problem, findings, deadline, seed)
    relaxations = tuple(relaxer.relaxations())
    plans = [relaxation.solution for relaxation in relaxations] or relaxer.anything()
    nearest = min(
        (Solution(problem, plan.routes) for plan in plans),
        key=lambda plan: _badness(problem, plan),
        default=None,
    )
    violations = () if nearest is None else check(problem, nearest).violations
    if nearest is not None and not violations:  # no rule binds
        relaxations = ()
    return Explanation(proven, findings, nearest, violations, relaxations)


def _badness(p: Problem, plan: Solution) -> tuple[float, int]:
    """How much of the rules a plan breaks, each kind measured by its bound."""
    finite = p.windows[np.isfinite(p.windows)]
    scales = {
        "capacity-exceeded": p.capacity,
        "limit-exceeded": p.distance_limit or 1.0,
        "window-missed": float(np.ptp(finite)) or 1.0 if finite.size else 1.0,
        "fleet-exceeded": float(p.fleet or 1),
    }
    scales["depot-closed"] = scales["window-missed"]
    violations = check(p, plan).violations
    return math.fsum(v.amount / scales.get(v.code, 1.0) for v in violations), len(violations)


class _Relaxer:
    """Problems like the given one with one kind of rule relaxed, and their plans."""

    def __init__(self, problem: Problem, findings: tuple[Finding, ...], deadline: Deadline, seed: int):
        self.problem, self.deadline, self.seed = problem, deadline, seed
        self.suspects = {name for finding in findings for name in finding.customers}

    def relaxations(self) -> Iterator[Relaxation]:
        p = self.problem
        kinds = (self.vehicles, self.windows, self.limit, self.capacity)
        for relax in (self.types, self.customers) if p.extras else kinds:
            if found := relax():
                kind, message, changes, fields, plan = found
                problem = p.replace(**fields)
                plan = Solution(problem, plan.routes)
                if check(problem, plan).feasible:
                    yield Relaxation(kind, message, changes, problem, plan)

    def anything(self) -> list[Solution]:
        """Where no relaxation does, a plan with all but the vehicles relaxed."""
        if self.problem.extras:
            return []
        plan = self.plan(capacity=self.enough(), distance_limit=None, time_windows=None)
        return [] if plan is None else [plan]

    # -- kinds beyond the 48 variants

    def types(self) -> tuple[Any, ...] | None:
        """Says of which vehicles there would have to be more."""
        p = self.problem
        if p.vehicles is None:
            return None
        free = [replace(given, count=None) for given in p.vehicle_types]
        if (plan := self.plan(fleet=None, vehicle_types=free)) is None:
            return None
        used = Counter((route.vehicle, route.depot) for route in plan.routes if route.visits)
        kinds = range(len(p.types))
        most = [max((n for (k, _), n in used.items() if k == kind), default=1) for kind in kinds]
        needs = {t.name: need for t, need in zip(p.types, most, strict=True) if need > t.count}
        if not needs:
            return AFTER_ALL, "", {}, {}, plan
        counts = [int(max(need, min(t.count, 1e9))) for t, need in zip(p.types, most, strict=True)]
        fields: dict[str, Any] = {"fleet": counts[0]}
        if p.vehicle_types:
            pairs = zip(p.vehicle_types, counts, strict=True)
            fields = {"vehicle_types": [replace(given, count=count) for given, count in pairs]}
        spread = {t.name for t in p.types if len(t.depots) > 1}
        told_of = ", ".join(
            f"{need} of '{name}'" + " at each depot" * (name in spread) for name, need in needs.items()
        )
        return "vehicles", f"with {told_of}.", {"vehicles": needs}, fields, plan

    def customers(self) -> tuple[Any, ...] | None:
        """Says who could not be served beside the others, and why."""
        p = self.problem
        prizes = p.prizes[p.num_depots :]
        ways = [p.distances, *(t.distances for t in p.types if t.distances is not None)]
        longest = max(float(np.max(way, where=np.isfinite(way), initial=1.0)) for way in ways)
        cost = LEFT_OUT_FACTOR * longest + float(prizes[np.isfinite(prizes)].sum())
        fields = {"prize": np.where(np.isinf(prizes), cost, prizes)}
        if (plan := self.plan(**fields)) is None:
            return None
        plan = self.filled(plan)
        optional = Solution(p.replace(**fields), plan.routes)
        lost = [r for r in reasons(optional) if p.prizes[p.names.index(r.customer)] == math.inf]
        if not lost:
            return AFTER_ALL, "", {}, {}, plan
        names = [reason.customer for reason in lost]
        more = f", and {len(lost) - NAMED_CHANGES} more" * (len(lost) > NAMED_CHANGES)
        words = ", ".join(f"'{name}'" for name in names[:NAMED_CHANGES])
        message = f"without {words}{more}: {lost[0].message}"
        return "customers", message, {"left_out": names}, fields, plan

    def filled(self, plan: Solution) -> Solution:
        """The plan with those who must be served and have a place on it all the same."""
        p, routes = self.problem, plan.routes
        visited = {v for route in routes for v in route.visits}
        lost = [c for c in p.customers if p.prizes[c] == math.inf and c not in visited]
        for customer in lost:
            ways = insertions(p, routes, customer, 1 + MOST_TRIES // len(lost))
            _, before, after = min(ways, key=lambda way: way[0], default=(0.0, None, None))
            if after is not None:
                routes = (*(route for route in routes if route is not before), after)
        return Solution(p, routes)

    # -- kinds

    def vehicles(self) -> tuple[Any, ...] | None:
        """Says with how many vehicles at each depot there would be a plan."""
        p = self.problem
        if p.fleet is None or (plan := self.plan(fleet=None)) is None:
            return None

        def most(plan: Solution) -> int:
            depots = [route.depot for route in plan.routes if route.visits]
            return max(map(depots.count, depots))

        plan, fleet = self.tightened(plan, most, p.fleet, lambda bound: {"fleet": math.floor(bound)}, 1)
        more = fleet - p.fleet
        each = "" if p.num_depots == 1 else " at each depot"
        message = (
            f"with {'one more vehicle' if more == 1 else f'{more} more vehicles'}{each}: {fleet} of them."
        )
        return "vehicles", message, {"fleet": fleet}, {"fleet": fleet}, plan

    def windows(self) -> tuple[Any, ...] | None:
        """Says by how much later customers and depots would have to close."""
        p = self.problem
        if p.time_windows is None:
            return None
        opens, closes = p.time_windows.T

        def widened(later: float) -> dict[str, Any]:
            return {"time_windows": np.c_[opens, closes + later]}

        def latest(plan: Solution) -> float:
            return max(_lateness(p, plan).values(), default=0.0)

        plan = self.plan(time_windows=np.c_[opens, np.full(len(opens), math.inf)])
        if plan is None:
            return None
        plan, _ = self.tightened(plan, latest, 0.0, widened)
        plan = min(self.with_one_late(plan), key=latest, default=plan)
        late = _lateness(p, plan)
        until = {p.names[v]: [float(opens[v]), float(closes[v] + by)] for v, by in late.items()}
        words = [
            f"'{p.names[v]}' closed {p.span(by)} later, at {p.moment(closes[v] + by)}"
            for v, by in late.items()
        ]
        more = f", and {len(words) - NAMED_CHANGES} more closed later" * (len(words) > NAMED_CHANGES)
        fields = p.time_windows.copy()
        for v, by in late.items():
            fields[v, 1] = np.nextafter(closes[v] + by, math.inf)
        message = f"if {', '.join(words[:NAMED_CHANGES])}{more}."
        return "windows", message, {"windows": until}, {"time_windows": fields}, plan

    def with_one_late(self, plan: Solution) -> Iterator[Solution]:
        """Plans for which a single customer would have to close later, where there are such."""
        p = self.problem
        late = _lateness(p, plan)
        proven = [v for v in p.customers if p.names[v] in self.suspects]
        for v in [*proven, *sorted(late.keys() - set(proven), key=lambda v: -late[v])][:SUSPECTS]:
            windows = p.windows.copy()
            windows[v, 1] = math.inf
            if len(late) > 1 and (found := self.plan(time_windows=windows)):
                yield found

    def limit(self) -> tuple[Any, ...] | None:
        """How long routes would have to be."""
        p = self.problem
        if p.distance_limit is None or (plan := self.plan(distance_limit=None)) is None:
            return None

        def longest(plan: Solution) -> float:
            over = [v.amount for v in check(p, plan).violations if v.code == "limit-exceeded"]
            return limit + max(over, default=0.0)

        limit = p.distance_limit
        plan, need = self.tightened(plan, longest, limit, lambda bound: {"distance_limit": bound})
        message = f"if routes could be {number_text(need - limit)} longer, up to {number_text(need)}."
        fields = {"distance_limit": float(np.nextafter(need, math.inf))}
        return "limit", message, {"distance_limit": need}, fields, plan

    def capacity(self) -> tuple[Any, ...] | None:
        """How much vehicles would have to carry."""
        p = self.problem
        if self.enough() <= p.capacity or (plan := self.plan(capacity=self.enough())) is None:
            return None

        def heaviest(plan: Solution) -> float:
            return max(facts.max_load for facts in plan.facts)

        plan, need = self.tightened(plan, heaviest, p.capacity, lambda bound: {"capacity": bound})
        message = f"if vehicles carried {number_text(need - p.capacity)} more, up to {number_text(need)}."
        return "capacity", message, {"capacity": need}, {"capacity": need}, plan

    # -- plans

    def tightened(
        self,
        plan: Solution,
        need: Callable[[Solution], Any],
        given: float,
        fields: Callable[[float], dict[str, Any]],
        least: float = 0.0,
    ) -> tuple[Solution, Any]:
        """A plan that asks for as little above what is given as a few tries find, and what that is."""
        low = given
        for _ in range(TIGHTENINGS):
            best = need(plan)
            middle = (low + best) / 2 if not least else max((low + best) // 2, given + least)
            if middle >= best or best - low <= 1e-3 * abs(best) or self.deadline.passed:
                break
            better = self.plan(**fields(middle))
            if better is None:
                low = middle
            elif need(better) < best:
                plan = better
            else:
                break
        return plan, need(plan)

    def plan(self, **fields: Any) -> Solution | None:
        """Some plan of the problem with other fields, if one is soon found."""
        try:
            problem = self.problem.replace(**fields)
        except ChainRouteError:  # too tight
            return None
        if is_tiny(problem):
            found = optimum(problem)
            return None if found is None else Solution(self.problem, found.routes)
        until = min(Deadline.after(TRY_SECONDS), self.deadline)
        if not pyvrp.installed() or until.passed:
            return None
        reports: list[Found] = []
        try:
            pyvrp.search(SearchTask(problem, until, self.seed, None, TRY_ITERATIONS), reports.append)
        except ChainRouteError:
            return None
        plans = (Solution.of(self.problem, found.routes) for found in reversed(reports))
        return next((plan for plan in plans if check(problem, plan).feasible), None)

    def enough(self) -> float:
        """What one vehicle would carry if it carried all."""
        p = self.problem
        return float(max(p.delivery.sum() + p.pickup.sum(), p.capacity))


def _lateness(p: Problem, plan: Solution) -> dict[int, float]:
    """By how much later each location would have to close for the plan, by number."""
    late: dict[int, float] = {}
    number = {name: i for i, name in enumerate(p.names)}
    for violation in check(p, plan).violations:
        if violation.code in ("window-missed", "depot-closed") and violation.location is not None:
            place = number[violation.location]
            late[place] = max(late.get(place, 0.0), violation.amount)
    return late
