"""The verb `collect`."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from chainroute.cli import declared, show
from chainroute.cli.app import Files, ReadingOptions, app
from chainroute.commands.shell import INFEASIBLE, NO_PLAN, Json
from chainroute.errors import ChainRouteError, fail, printable
from chainroute.numerals import told

if TYPE_CHECKING:
    from chainroute.check import Verdict
    from chainroute.problem import Problem

NAMED_MISSING = 20  # problems without a result that are named, unless asked for JSON


@app.command()
@show.guarded
@declared.translated
def collect(
    files: Files,
    output: Annotated[str, typer.Option("--output", "-o", help="Where solve wrote: as given to it.")],
    reading: ReadingOptions = {},  # noqa: B006 never changed
    as_json: Json = False,
) -> int:
    """Join the results of many runs of solve, and say what is missing.

    Takes the problems and the --output that solve was given, by one machine or by one --shard on each. Every
    plan is judged. With --json, each problem is a line with its plan, or with "missing".
    """
    from chainroute.cli.files import ProblemReader
    from chainroute.cli.solve import read_problems
    from chainroute.files import expanded

    problems, unreadable, _ = read_problems(files, ProblemReader(reading))
    if len(problems) > 1 and "{name}" not in output:
        message = f"there are {len(problems)} problems; put {{name}} into '{output}', as solve was given."
        raise fail("bad-option", message, "--output")
    codes = [show.report(error, as_json, {"file": str(file)}) for file, error in unreadable]
    missing, costs, spoilt = [], [], 0
    for problem, place in zip(problems, expanded(output, [p.name for p in problems]), strict=True):
        if not os.path.exists(place):
            missing.append(problem.name)
            if as_json:
                show.line({"problem": problem.name, "missing": True})
            continue
        try:
            verdict = _judged(problem, place, as_json)
        except ChainRouteError as error:
            codes.append(show.report(error, as_json, {"problem": problem.name}))
            spoilt += 1
            continue
        costs += [verdict.cost] if verdict.feasible else []
        codes += [] if verdict.feasible else [INFEASIBLE]
    if not as_json:
        plans = f"{len(costs)} of {len(problems)} problems have a plan, of cost {told(sum(costs), 10)} in all"
        broken = len(problems) - len(costs) - len(missing) - spoilt
        print(f"{plans}; {broken} infeasible, {spoilt} unreadable, {len(missing)} missing.")
        for name in missing[:NAMED_MISSING]:
            print(f"  missing: {printable(name)}")
        if len(missing) > NAMED_MISSING:
            print(f"  and {len(missing) - NAMED_MISSING} more")
    return max([*codes, NO_PLAN * bool(missing)], default=0)


def _judged(problem: "Problem", place: Path, as_json: bool) -> "Verdict":
    """What the judge says of the plan in that file; told where it is asked for, or broken."""
    from chainroute.check import check
    from chainroute.cli.files import solution
    from chainroute.left_out import explained

    plan = solution(place, problem)
    verdict = check(problem, plan)
    if as_json:
        show.line({**explained(plan), **verdict.as_dict()})
    elif not verdict.feasible:
        print(f"{printable(problem.name)}: {verdict}")
    return verdict
