"""What the command does for a problem beside solving it, by one process and by all cores; and all it does.

python -m benchmarks.command
python -m benchmarks.command --problems 4000 --variant CVRP
python -m benchmarks.command --problems 8192 --device cuda --shares 1 4

It draws problems of 50 customers and writes a file for each. Then it lets `chainroute solve --solver neural`
read them and write and tell their routes, which are constructed beforehand, so that no time goes into
decoding. It prints milliseconds for a problem: to read the files, to tell and write the routes, and how much
of the latter the command's own process computes, which is what limits it on a machine with many cores.

With a device the policy decodes them on it, with two maps, 20 re-embeddings and recombined routes. It prints
how many seconds a process of its own takes for all files, or several, each with a share; the first has made
kernels beforehand. Then it prints when one process had read the files, had loaded the policy, had the first
routes, those of 1,024 problems, and all of them.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any
from unittest.mock import patch

from chainroute.cli import files
from chainroute.cli import solve as command
from chainroute.cli.app import app
from chainroute.formats import write
from chainroute.generate import generate
from chainroute.plan.solution import Solution
from chainroute.problem import Problem
from chainroute.problem.variants import variant
from chainroute.runtime.cores import cores
from chainroute.search.own.construct import construct
from chainroute.solve import Outcome, Progress, Result

NEVER = sys.maxsize  # files from which on workers read them: one process does all
RECOMBINED = ("--augment", "2", "--update-rate", "0.4", "--recombine")
COMMAND = (sys.executable, "-c", "from chainroute_command import main; main()")
STEADY = 1_024  # problems after which all that is done once has been done


def drawn(folder: Path, name: str, count: int) -> Iterator[Problem]:
    """Draws problems, and writes each to a file of the folder."""
    for i, problem in enumerate(generate(variant(name), 50, count, seed=1)):
        write(problem, folder / f"{i}.json")
        yield problem


def plans(problems: Iterator[Problem]) -> dict[str, Solution]:
    """Constructs routes for each problem."""
    found = {}
    for problem in problems:
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


def arguments(folder: Path, out: Path, device: str) -> list[str]:
    """How the policy is asked to solve all files."""
    output = str(out / "{name}.json")
    return ["solve", str(folder), "--solver", "neural", "--device", device, "-o", output, *RECOMBINED]


def empty(out: Path) -> None:
    """Removes the routes of a run before."""
    for file in out.iterdir():
        file.unlink()


def shared(given: Sequence[str], shares: int) -> float:
    """Seconds that so many processes side by side take, each with its share."""
    began = time.perf_counter()
    parts = [["--shard", f"{i}/{shares}"] for i in range(1, shares + 1)] if shares > 1 else [[]]
    start = partial(subprocess.Popen, stdout=subprocess.DEVNULL)
    codes = [process.wait() for process in [start([*COMMAND, *given, *part]) for part in parts]]
    assert not any(codes), codes
    return time.perf_counter() - began


def stages(given: Sequence[str]) -> dict[str, float]:
    """Seconds after which the command in this process had done each part of its work."""
    began, found, read, engine = time.perf_counter(), {}, command.read_problems, command._engine

    def reached(stage: str) -> None:
        found[stage] = time.perf_counter() - began

    def reading(*args: Any) -> Any:
        problems = read(*args)
        reached("files read")
        return problems

    def loading(*args: Any) -> Any:
        solved = engine(*args)
        reached("policy loaded")

        def each(*asked: Any) -> Iterator[Outcome]:
            for i, outcome in enumerate(solved(*asked), 1):
                if i in (1, STEADY):
                    reached(f"{i} solved")
                yield outcome
            reached("all solved")

        return each

    with (
        patch.object(command, "read_problems", reading),
        patch.object(command, "_engine", loading),
        redirect_stdout(StringIO()),
    ):
        app(list(given), standalone_mode=False)
    reached("all told")
    return found


def on_a_device(args: argparse.Namespace, folder: Path, out: Path) -> None:
    """Prints what the command takes for all files, by processes of its own and stage by stage."""
    deque(drawn(folder, args.variant, args.problems), 0)
    given = arguments(folder, out, args.device)
    shared(given, 1)  # makes kernels
    for shares in args.shares:
        empty(out)
        seconds = shared(given, shares)
        assert len(list(out.iterdir())) == args.problems
        speed = args.problems / seconds
        print(f"{args.variant}-50, {shares} processes: {seconds:.1f} s, {speed:.0f} problems/s", flush=True)
    empty(out)
    for stage, after in stages(given).items():
        print(f"{stage} after {after:.1f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--problems", type=int, default=1000)
    parser.add_argument("--variant", default="VRPTW")
    parser.add_argument("--device", help="on which the policy decodes; none: routes are constructed ahead")
    parser.add_argument("--shares", type=int, nargs="+", default=[1], help="processes side by side")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder, out = Path(place, "problems"), Path(place, "out")
        folder.mkdir()
        out.mkdir()
        if args.device:
            on_a_device(args, folder, out)
            return
        print("| ms for a problem | read | told | of these in the command's process |")
        print("| --- | --- | --- | --- |")
        found = plans(drawn(folder, args.variant, args.problems))
        for many, who in ((NEVER, "one process"), (1, f"{cores()} cores")) * 4:
            cells = " | ".join(f"{cell:.2f}" for cell in measured(folder, out, found, many))
            print(f"| {args.variant}-50, {who} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
