"""Cordeau's format for several depots, type 2 (MDVRP) and type 6 (MDVRPTW), and its solutions (.res).

The file does not say how distances are rounded: they are exact unless the caller says otherwise. Its number
of vehicles is a limit at each depot, which is none at all where there are as many as customers. The limit of
a route counts travel and service; with time windows it counts waiting, too, which is outside the 48 variants.
"""

import numpy as np

from chainroute.errors import Place, fail
from chainroute.formats.common import Faults, Lines, build, lines_of, parsed, plain
from chainroute.plan.solution import Solution
from chainroute.problem import Problem
from chainroute.problem.budget import MAX_LOCATIONS
from chainroute.problem.features import require
from chainroute.problem.measure import Rounding
from chainroute.runtime.files import encode

HOLDS = {
    "several depots", "time windows", "no time windows", "service times", "a distance limit",
    "a limit with service", "a fleet size",
}  # fmt: skip

MDVRP, MDVRPTW = 2, 6
OTHERS = {0: "VRP", 1: "PVRP", 3: "SDVRP", 4: "VRPTW", 5: "PVRPTW", 7: "SDVRPTW"}


# -- problems


def recognises(lines: list[str]) -> bool:
    """Whether the first line has four whole numbers."""
    words = lines[0].split()
    return len(words) == 4 and all(word.isdecimal() and len(word) < 10 for word in words)


def read(text: str, name: str, rounding: Rounding | None) -> Problem:
    faults = Faults()
    lines = lines_of(text)
    kind, fleet, n, depots = (int(word) for word in lines[0][1])
    if kind not in (MDVRP, MDVRPTW):
        message = f"type {kind} ({OTHERS.get(kind, 'unknown')}); only 2 (MDVRP) and 6 (MDVRPTW) are read."
        raise fail("unsupported-feature", message, f"line {lines[0][0]}")
    if not n or not depots:
        what = "customers" if depots else "depots"
        raise fail(f"no-{what[:-1]}", f"the file promises no {what}.", f"line {lines[0][0]}")
    if n + depots > MAX_LOCATIONS:
        message = f"{n + depots} locations; at most {MAX_LOCATIONS}."
        raise fail("too-large", message, f"line {lines[0][0]}")
    if len(lines) != 1 + depots + n + depots:
        message = (
            f"the file has {len(lines)} lines; {n} customers and {depots} depots need {1 + n + 2 * depots}."
        )
        raise fail("wrong-count", message, f"line {lines[0][0]}")
    limit, capacity = _vehicle(lines[1 : 1 + depots], kind, faults)
    body = lines[1 + depots :]
    rows = [
        _location(number, words, i, i > n, kind, depots, faults) for i, (number, words) in enumerate(body, 1)
    ]
    faults.stop()
    table = np.roll(rows, depots, axis=0)  # depots come last in the file
    order = [*range(n, n + depots), *range(n)]

    def spot(place: Place) -> str:
        if place.location is not None:
            return f"line {body[order[place.location]][0]}"
        line = {"fleet": 0, "capacity": 1, "distance_limit": 1}.get(place.field)
        return place.field if line is None else f"line {lines[line][0]}"

    service = table[depots:, 2]
    return build(
        spot,
        name=name,
        num_depots=depots,
        coords=table[:, :2],
        capacity=capacity,
        delivery=table[depots:, 3],
        service=service,
        time_windows=table[:, 4:] if kind == MDVRPTW else None,
        distance_limit=limit or None,
        limit_counts_service=bool(limit and service.any()),
        fleet=None if fleet >= n else fleet,
        rounding=rounding or Rounding.EXACT,
    )


def _vehicle(lines: Lines, kind: int, faults: Faults) -> tuple[float, float]:
    """Limit (0 for none) and capacity, which must be the same at all depots."""
    given = set()
    for number, words in lines:
        where = f"line {number}"
        if len(words) != 2:
            faults.add("bad-syntax", f"has {len(words)} entries, not a limit and a capacity.", where)
            continue
        given.add(tuple(faults.numbers(words, where)))
    if len(given) > 1:
        message = "vehicles that differ from depot to depot, which JSON has as vehicle types."
        faults.add("unsupported-feature", message, f"line {lines[0][0]}")
    limit, capacity = given.pop() if given else (0.0, 1.0)
    if kind == MDVRPTW and limit > 0:
        faults.add("unsupported-feature", "a limit that waiting counts towards.", f"line {lines[0][0]}")
    return limit, capacity


def _location(
    number: int, words: list[str], due: int, depot: bool, kind: int, depots: int, faults: Faults
) -> list[float]:
    """x, y, service, demand, and the window if there is one."""
    where = f"line {number}"
    window = 2 if kind == MDVRPTW else 0
    values = faults.numbers(words, where)
    choices = len(values) - 7 - window
    if choices < 0:
        faults.add("bad-syntax", f"has {len(words)} entries; at least {7 + window} are needed.", where)
        return [0.0] * (4 + window)
    if values[0] != due:
        faults.add("bad-syntax", f"location {words[0]} stands where {due} is due.", where)
    if depot and (values[3] or values[4]):
        faults.add("unsupported-feature", "a depot has a demand or service time.", where)
    if choices != values[6]:
        faults.add("wrong-count", f"promises {words[6]} depots to choose from and lists {choices}.", where)
    elif not depot and (values[5] != 1 or choices != depots):
        message = "a customer that not every depot may serve once; in JSON it has a skill of their vehicles."
        faults.add("unsupported-feature", message, where)
    return [*values[1:5], *values[len(values) - window :]]


def write(problem: Problem) -> bytes:
    require(problem, "Cordeau's format", HOLDS)
    p = problem
    assert p.coords is not None  # `require` has seen to it
    if p.time_windows is not None and p.distance_limit is not None:
        message = "Cordeau's format cannot hold a limit that waiting does not count towards."
        raise fail("cannot-express", message, p.name)
    kind = MDVRP if p.time_windows is None else MDVRPTW
    limit = 0.0 if p.distance_limit is None else p.distance_limit
    lines = [f"{kind} {p.fleet or p.num_customers} {p.num_customers} {p.num_depots}"]
    lines += [f"{plain(limit)} {plain(p.capacity)}"] * p.num_depots
    choices = [1, p.num_depots, *(2**d for d in p.depots)]  # once, by any of the depots
    for i, location in enumerate([*p.customers, *p.depots], 1):
        place = [*p.coords[location], p.services[location], p.deliveries[location]]
        window = [] if p.time_windows is None else p.time_windows[location]
        values = [i, *place, *(choices if location in p.customers else (0, 0)), *window]
        lines.append(" ".join(map(plain, values)))
    return encode("\n".join(lines) + "\n")


# -- solutions


def recognises_solution(lines: list[str]) -> bool:
    """Whether the first line has one number, the cost."""
    return parsed(lines[0].strip()) is not None


def read_solution(text: str, problem: Problem) -> Solution:
    """The cost, then per route: depot, vehicle, duration, load, and the customers between two depot marks."""
    faults = Faults()
    depots, n = problem.num_depots, problem.num_customers
    lines = lines_of(text)
    routes = []
    for number, words in lines[1:]:
        where = f"line {number}"
        values = faults.numbers(words, where)
        if len(values) < 6:
            faults.add("bad-syntax", f"has {len(values)} entries; a route has at least 6.", where)
            continue
        depot, customers = values[0], values[5:-1]
        if depot not in range(1, depots + 1):
            faults.add("unknown-location", f"there is no depot {words[0]}; they are 1 to {depots}.", where)
        if values[4] != values[-1] or values[4] not in (0, n + depot):
            faults.add("bad-syntax", f"does not run from mark to mark, 0 or {n + depot:g}.", where)
        for word, customer in zip(words[5:-1], customers, strict=True):
            if customer not in range(1, n + 1):
                faults.add("unknown-location", f"there is no customer {word}; they are 1 to {n}.", where)
        routes.append((int(depot) - 1, [depots - 1 + int(customer) for customer in customers]))
    cost = faults.number(lines[0][1][0], f"line {lines[0][0]}")
    faults.stop()
    return Solution.of(problem, routes, cost)


def require_closed(problem: Problem) -> None:
    if problem.open:
        raise fail("cannot-express", "a .res file cannot hold open routes.", problem.name)


def write_solution(solution: Solution) -> bytes:
    p = solution.problem
    require_closed(p)
    lines, used = [f"{solution.cost:.2f}"], dict.fromkeys(p.depots, 0)
    for route, facts in zip(solution.routes, solution.facts, strict=True):
        used[route.depot] += 1
        duration = facts.length + sum(p.services[v] for v in route.visits)
        customers = [v - p.num_depots + 1 for v in route.visits]
        head = f"{route.depot + 1} {used[route.depot]} {duration:.2f} {plain(facts.max_load)}"
        lines.append(" ".join([head, "0", *map(str, customers), "0"]))
    return encode("\n".join(lines) + "\n")
