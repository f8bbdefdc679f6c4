"""How soon `solve` has a plan where vehicles are few.

python -m benchmarks.fleets out/fleets.csv                             # all sets; ends and goes on at will
python -m benchmarks.fleets out/fleets.csv --sets solomon mdvrp        # some of them
python -m benchmarks.fleets out/fleets.csv --table                     # Markdown, of what there is

The fleet is the file's own, or (sets with =) that of the stored best plan, which proves that it suffices: at
each depot as many vehicles as that plan uses at the busiest. `solve` is stopped at its first plan, or ends
after ten seconds without one; the judge accepts every plan that it tells of. Workers are loaded before the
clock starts. On a machine that others use, ten seconds are fewer.

Sets with + are made of every eighth problem of Solomon's: every second or third customer a backhaul, or open
routes. Their fleet is that of PyVRP's best plan after half a minute without a bound, kept in one file.
"""

import argparse
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple, dataclass
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.compare import CORES, LIBRARY
from benchmarks.rows import append_row, read_rows
from chainroute import ChainRouteError, Problem, Solution, check
from chainroute.formats import read_solution
from chainroute.problem.variants import Backhaul
from chainroute.research.evaluate import real
from chainroute.search.solvers import pyvrp
from chainroute.solve import solve
from chainroute.solve.result import SOURCES

FLEETS = Path(__file__).with_suffix(".json")  # vehicles of the made problems, by their names
ENDINGS = {"mdvrp": ".res"}  # of stored plans, where it is not .sol
EVERY = 8  # of Solomon's problems, one is made into others


@dataclass(frozen=True)
class Row:
    """One call."""

    set: str
    instance: str
    vehicles: int  # at each depot; 0 for any number
    seconds: float  # until the first plan, or the end
    source: str  # of that plan; the error's code where there is none


def backhauls(every: int, problem: Problem) -> Problem:
    """The problem with every second or third customer a backhaul."""
    back = np.arange(problem.num_customers) % every == every - 1
    demand = problem.delivery
    return problem.replace(
        delivery=np.where(back, 0, demand),
        pickup=np.where(back, demand, 0),
        backhaul=Backhaul.LINEHAULS_FIRST,
    )


MADE: dict[str, Callable[[Problem], Problem]] = {
    "solomon+B2": partial(backhauls, 2),
    "solomon+B3": partial(backhauls, 3),
    "solomon+O": lambda problem: problem.replace(open=True),
}
BEST = "="  # after the name of a library: with the fleet of the stored plan
SETS = (*real.LIBRARIES, *(name + BEST for name in real.LIBRARIES), *MADE)


def problems(name: str, data: Path, bound_seconds: float) -> Iterator[Problem]:
    """The problems of a set, each with the fleet that is known to suffice."""
    base = name.partition("+")[0].removesuffix(BEST)
    (task,) = real.tasks(data, [base])
    folder = data / real.LIBRARIES[base].folder
    for i, instance in enumerate(task.names):
        problem = task.problem(i)
        if name in MADE and i % EVERY == 0:
            free = MADE[name](problem).replace(fleet=None, name=f"{instance}{name[len(base) :]}")
            yield free.replace(fleet=bound(free, bound_seconds))
        elif name.endswith(BEST):
            stored = read_solution(folder / f"{instance}{ENDINGS.get(base, '.sol')}", problem)
            yield problem.replace(fleet=vehicles(stored), name=instance)
        elif name == base:
            yield problem.replace(name=instance)


def vehicles(plan: Solution) -> int:
    """How many leave the busiest depot."""
    return int(np.bincount([route.depot for route in plan.routes if route.visits]).max())


def bound(problem: Problem, seconds: float) -> int:
    """The number of routes of PyVRP's best plan, found once."""
    known: dict[str, int] = json.loads(FLEETS.read_text()) if FLEETS.exists() else {}
    if problem.name not in known:
        known[problem.name] = vehicles(pyvrp.solve(problem, seconds).solution)
        FLEETS.write_text(json.dumps(known, indent=1) + "\n")
    return known[problem.name]


def first_plan(name: str, problem: Problem, limit: float) -> Row:
    """Calls `solve` until it tells of a plan."""
    with ThreadPoolExecutor(CORES) as pool:
        list(pool.map(lambda _: pyvrp.warm_up(), range(CORES)))
    found = threading.Event()
    begin = time.perf_counter()
    try:
        result = solve(problem, limit, on_progress=lambda _: found.set(), stop=found)
        source = result.history[0].source if check(problem, result.solution).feasible else "infeasible"
    except ChainRouteError as error:
        source = error.faults[0].code
    return Row(name, problem.name, problem.fleet or 0, round(time.perf_counter() - begin, 2), source)


def run(args: argparse.Namespace) -> None:
    done = {(row.set, row.instance) for row in read_rows(args.csv, Row)}
    for name in args.sets:
        for problem in problems(name, args.data, args.bound_seconds):
            if (name, problem.name) not in done and problem.num_customers <= args.customers:
                row = first_plan(name, problem, args.limit)
                append_row(args.csv, row)
                print(*astuple(row), flush=True)


def table(rows: Sequence[Row]) -> str:
    """Markdown: per set, how many are solved, by whom the first plan is, and how soon."""
    lines = ["| set | problems | solved | first plan by | median seconds | longest | unsolved |"]
    lines.append("| --- | --- | --- | --- | --- | --- | --- |")
    for name in dict.fromkeys(row.set for row in rows):
        group = [row for row in rows if row.set == name]
        solved = [row for row in group if row.source in SOURCES]
        by = ", ".join(f"{source} {count}" for source, count in Counter(r.source for r in solved).items())
        seconds = [row.seconds for row in solved]
        times = f"{np.median(seconds):.2f} | {max(seconds):.2f}" if solved else "- | -"
        left = " ".join(row.instance for row in group if row not in solved)
        lines.append(f"| {name} | {len(group)} | {len(solved)} | {by} | {times} | {left} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("csv", type=Path, help="where rows are kept")
    parser.add_argument("--table", action="store_true", help="print Markdown and run nothing")
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS)
    parser.add_argument("--limit", type=float, default=10.0, help="seconds of each call")
    parser.add_argument("--customers", type=int, default=1_000, help="at most, of a problem")
    parser.add_argument("--bound-seconds", type=float, default=30.0, help="of PyVRP, for a fleet")
    parser.add_argument("--data", type=Path, default=LIBRARY, help="folder of the libraries")
    args = parser.parse_args(arguments)
    if not args.table:
        run(args)
    print(table(read_rows(args.csv, Row)))


if __name__ == "__main__":
    main()
