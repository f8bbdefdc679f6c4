"""The 48 variants now and as they were at an earlier commit: what they take, and what they cost.

One problem of each variant is read, searched by PyVRP for a fixed number of iterations, and its plan judged,
in processes of either version by turns. Prints the processor time of each part, the least of all turns, now
and before; and how many plans cost less, the same and more.

    python -m benchmarks.before fafd51e^
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PARTS = ("read", "search", "judge")
TIMES = {"read": 5, "search": 1, "judge": 20}  # for which each is done in a turn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("commit", help="what to compare with, such as fafd51e^")
    parser.add_argument("--customers", type=int, default=100)
    parser.add_argument("--iterations", type=int, default=200)
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        problems, old = Path(folder) / "problems.json", Path(folder) / "before"
        problems.write_text(json.dumps(invented(options.customers)))
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--detach", "--quiet", str(old), options.commit], check=True)
        try:
            turns: dict[str, list[Any]] = {"before": [], "now": []}
            for _ in range(options.turns):
                for name, tree in (("before", old), ("now", ROOT)):
                    turns[name].append(measured(tree, problems, options.iterations))
        finally:
            subprocess.run([*git, "remove", "--force", str(old)], check=True)
    report(turns["before"], turns["now"])


def invented(customers: int) -> dict[str, str]:
    """A problem of each variant, as JSON."""
    from chainroute.formats.json import write
    from chainroute.generate import generate
    from chainroute.problem.variants import VARIANTS

    return {v.name: write(generate(v, customers, 1, seed=1)[0]).decode() for v in VARIANTS}


def measured(tree: Path, problems: Path, iterations: int) -> dict[str, dict[str, float]]:
    """What the version in that folder makes of the problems: its times and costs by variant."""
    script = str(Path(__file__))
    code = f"import runpy; runpy.run_path({script!r})['work']({str(problems)!r}, {iterations})"
    environment = {**os.environ, "PYTHONPATH": str(tree), "OMP_NUM_THREADS": "1"}
    said = subprocess.run(
        [sys.executable, "-P", "-c", code], env=environment, cwd=tree, stdout=subprocess.PIPE, check=True
    )
    found: dict[str, dict[str, float]] = json.loads(said.stdout)
    return found


def work(problems: str, iterations: int) -> None:
    """Prints times and costs, in a process of its own and by names that both versions have."""
    from chainroute.check import check
    from chainroute.solution import Solution

    from chainroute.formats import json as our_json

    found = {}
    for name, text in json.loads(Path(problems).read_text()).items():
        taken = dict.fromkeys(PARTS, 0.0)
        for _ in range(TIMES["read"]):
            begin = time.process_time()
            problem = our_json.read(text, name, None)
            taken["read"] += time.process_time() - begin
        begin = time.process_time()
        routes = searched(problem, iterations)
        taken["search"] = time.process_time() - begin
        for _ in range(TIMES["judge"]):
            plan = Solution.of(problem, routes)
            begin = time.process_time()
            verdict = check(problem, plan)
            taken["judge"] += time.process_time() - begin
        assert verdict.feasible
        found[name] = {**{part: taken[part] / TIMES[part] for part in PARTS}, "cost": verdict.cost}
    print(json.dumps(found))


def searched(problem: Any, iterations: int) -> Any:
    """The routes that PyVRP has after so many iterations, in this process."""
    from chainroute.classical.library import SearchTask

    from chainroute.runtime.deadline import Deadline

    try:
        from chainroute.search.solvers import pyvrp_search
    except ImportError:  # where it lay before the rooms were moved
        from chainroute.classical import pyvrp_search

    found: list[Any] = []
    task = SearchTask(problem, Deadline.after(3600), max_iterations=iterations)
    pyvrp_search.search(task, found.append)
    return found[-1].routes


def report(before: list[Any], now: list[Any]) -> None:
    """Prints a line for each part, and one on the costs."""
    names = list(now[0])

    def least(turns: list[Any], part: str) -> float:
        return sum(min(turn[name][part] for turn in turns) for name in names)

    print(f"processor time of all {len(names)} variants, seconds")
    for part in (*PARTS, "all"):
        parts = PARTS if part == "all" else (part,)
        old, new = (sum(least(turns, each) for each in parts) for turns in (before, now))
        print(f"  {part:6}  before {old:7.3f}  now {new:7.3f}  ratio {new / old:.3f}")
    costs = [(now[0][name]["cost"], before[0][name]["cost"]) for name in names]
    same = sum(abs(a - b) <= 1e-9 * b for a, b in costs)
    less = sum(a < b for a, b in costs if abs(a - b) > 1e-9 * b)
    print(f"costs: {less} lower, {same} the same, {len(costs) - less - same} higher")


if __name__ == "__main__":
    main()
