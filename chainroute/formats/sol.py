"""CVRPLIB's solution files (.sol), by location number: depots first, from 0, then the customers.

Several depots are no part of that format, so a comment at the end, which other readers skip, names the depot
of each route: `# Depots: 0 0 1`. The stated cost is kept, not believed: a Solution computes its own.

Those that SINTEF publishes for Solomon's and Homberger's problems have such routes below a head, which says
whose they are and is not read.
"""

import re

from chainroute.formats.common import Faults, parsed, plain
from chainroute.plan.solution import Solution
from chainroute.problem import Problem
from chainroute.runtime.files import encode

# What solvers add, and the library vrplib writes: `Time 12.3`, `Iterations: 500`. It is not read.
_FACT = re.compile(r"(?!route)[a-z][a-z _-]*[: ] ?(\S+)", re.IGNORECASE)
_ROUTE = re.compile(r"route ?#? ?\d+ ?:(.*)", re.IGNORECASE)
# What SINTEF's files say first: `Instance name : ...`, `Authors`, `Date`, `Reference`, `Solution`.
_HEAD = re.compile(r"instance name ?:", re.IGNORECASE)


def recognises(lines: list[str]) -> bool:
    """Whether the first line has a route or a cost, or begins the head of a published solution."""
    return re.match(r"\s*(route\b|cost\b|instance\s+name\s*:)", lines[0], re.IGNORECASE) is not None


def read(text: str, problem: Problem) -> Solution:
    """The solution in lines such as `Route #1: 3 1 2` and `Cost 27591`."""
    faults = Faults()
    routes: list[list[int]] = []
    depots: list[int] | None = None
    cost: float | None = None

    def numbers(words: str, where: str) -> list[int]:
        return [n for word in words.split() if (n := faults.whole(word, where)) is not None]

    for number, line in _lines(text):
        where = f"line {number}"
        if match := _ROUTE.fullmatch(line):
            routes.append(numbers(match[1], where))
        elif match := re.fullmatch(r"# ?depots ?:(.*)", line, re.IGNORECASE):
            depots = numbers(match[1], where)
        elif match := re.fullmatch(r"cost\b ?:?(.*)", line, re.IGNORECASE):
            cost = faults.number(match[1].strip(), where)
        elif (match := _FACT.fullmatch(line)) and parsed(match[1]) is not None:
            continue
        elif not line.startswith("#"):
            faults.add("bad-syntax", "is neither a route nor a cost.", where)
    if depots is None and problem.num_depots > 1:
        message = (
            "the problem has several depots; add a line '# Depots: ...' with one number per route, "
            f"0 to {problem.num_depots - 1}, or give the solution as JSON."
        )
        faults.add("missing-field", message, "Depots")
    elif depots is not None and len(depots) != len(routes):
        faults.add("wrong-count", f"names {len(depots)} depots for {len(routes)} routes.", "Depots")
    faults.stop()
    return Solution.of(problem, zip(depots or [0] * len(routes), routes, strict=True), cost)


def _lines(text: str) -> list[tuple[int, str]]:
    """The lines with their numbers, single spaces in place of longer ones; without the head of a published
    solution, which ends where the routes begin."""
    split = ((number, " ".join(line.split())) for number, line in enumerate(text.splitlines(), 1))
    lines = [(number, line) for number, line in split if line]
    if lines and _HEAD.match(lines[0][1]):
        first = next((i for i, (_, line) in enumerate(lines) if _ROUTE.fullmatch(line)), 0)
        return lines[first:]
    return lines


def write(solution: Solution) -> bytes:
    lines = [f"Route #{r}: {' '.join(map(str, route.visits))}" for r, route in enumerate(solution.routes, 1)]
    lines.append(f"Cost {plain(solution.cost)}")
    if solution.problem.num_depots > 1:
        lines.append(f"# Depots: {' '.join(str(route.depot) for route in solution.routes)}")
    return encode("\n".join(lines) + "\n")
