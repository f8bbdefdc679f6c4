"""What the command does for a problem beside solving it, by one process and by all cores.

python -m benchmarks.command
python -m benchmarks.command --problems 4000 --variant CVRP

It draws problems of 50 customers and writes a file for each. Then it lets `chainroute solve --solver neural`
read them and write and tell their routes, which are constructed beforehand, so that no time goes into
decoding. It prints milliseconds for a problem: to read the files, to tell and write the routes, and how much
of the latter the command's own process computes, which is what limits it on a machine with many cores.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from unittest.mock import patch

from chainroute.classical.construct import construct
from chainroute.cli import files
from chainroute.cli import solve as command
from chainroute.cli.app import app
from chainroute.formats import write
from chainroute.generate import generate
from chainroute.problem import Problem
from chainroute.runtime.cores import cores
from chainroute.solution import Solution
from chainroute.solve import Outcome, Progress, Result
from chainroute.variants import variant

NEVER = sys.maxsize  # files from which on workers read them: one process does all


def plans(folder: Path, name: str, count: int) -> dict[str, Solution]:
    """Draws problems, writes each to a file of the folder, and constructs routes for it."""
    found = {}
    for i, problem in enumerate(generate(variant(name), 50, count, seed=1)):
        write(problem, folder / f"{i}.json")
        plan = construct(problem, lambda: False)
        assert plan is not None
        found[problem.name] = plan
    return found


def measured(folder: Path, out: Path, plans: dict[str, Solution], many: int) -> list[float]:
    """Milliseconds for a problem to be read and to be told, and of these in the command's own process."""
    began, marks = time.perf_counter(), []

    def known(problems: Sequence[Problem], *_: object) -> Iterator[Outcome]:
        marks.extend((time.perf_counter(), time.process_time()))
        for i, problem in enumerate(problems):
            plan = Solution(problem, plans[problem.name].routes)
            yield Outcome(i, problem, Result(plan, 0.0, (Progress(0.0, plan, "policy"),)))

    with (
        patch.object(files, "MANY", many),
        patch.object(command, "_engine", lambda *_: known),
        redirect_stdout(StringIO()),
    ):
        app(
            ["solve", str(folder), "--solver", "neural", "-o", str(out / "{name}.json")],
            standalone_mode=False,
        )
    ended, computed = time.perf_counter(), time.process_time()
    return [
        1000 * seconds / len(plans) for seconds in (marks[0] - began, ended - marks[0], computed - marks[1])
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", type=int, default=1000)
    parser.add_argument("--variant", default="VRPTW")
    args = parser.parse_args()
    print("| ms for a problem | read | told | of these in the command's process |\n| --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as place:
        folder, out = Path(place, "problems"), Path(place, "out")
        folder.mkdir()
        out.mkdir()
        found = plans(folder, args.variant, args.problems)
        for many, who in ((NEVER, "one process"), (1, f"{cores()} cores")) * 4:
            cells = " | ".join(f"{cell:.2f}" for cell in measured(folder, out, found, many))
            print(f"| {args.variant}-50, {who} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
