"""The verb `collect`."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from chainroute.cli import declared, show
from chainroute.cli.app import Files, ReadingOptions, app
from chainroute.errors import ChainRouteError, coded, fail, printable
from chainroute.runtime.numerals import number_text
from chainroute.runtime.shell import INFEASIBLE, NO_PLAN, Json

if TYPE_CHECKING:
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
    from chainroute.cli.files import MANY, ProblemReader
    from chainroute.cli.shards import share
    from chainroute.cli.solve import read_problems
    from chainroute.runtime.files import expanded
    from chainroute.runtime.spread import on_all_cores

    problems, _, unreadable, _ = read_problems(files, ProblemReader(reading), share(None))
    if len(problems) > 1 and "{name}" not in output:
        message = f"there are {len(problems)} problems; put {{name}} into '{output}', as solve was given."
        raise fail("bad-option", message, "--output")
    codes = [show.report(error, as_json, {"file": str(file)}) for file, error in unreadable]
    missing, costs, spoilt = [], [], 0
    places = expanded(output, [p.name for p in problems])
    calls = ((problem, place, as_json) for problem, place in zip(problems, places, strict=True))
    many = len(problems) >= MANY
    judged = on_all_cores(_found, calls, lambda _, death: death) if many else ((c, _found(*c)) for c in calls)
    for (problem, *_), found in judged:
        if found is None:
            missing.append(problem.name)
            if as_json:
                show.line({"problem": problem.name, "missing": True})
        elif isinstance(found, ChainRouteError):
            codes.append(show.report(found, as_json, {"problem": problem.name}))
            spoilt += 1
        else:
            if as_json:
                show.line(found.row)
            elif not found.feasible:
                print(found.words)
            costs += [found.cost] if found.feasible else []
            codes += [] if found.feasible else [INFEASIBLE]
    if not as_json:
        cost = number_text(sum(costs), 10)
        plans = f"{len(costs)} of {len(problems)} problems have a plan, of cost {cost} in all"
        broken = len(problems) - len(costs) - len(missing) - spoilt
        print(f"{plans}; {broken} infeasible, {spoilt} unreadable, {len(missing)} missing.")
        for name in missing[:NAMED_MISSING]:
            print(f"  missing: {printable(name)}")
        if len(missing) > NAMED_MISSING:
            print(f"  and {len(missing) - NAMED_MISSING} more")
    return max([*codes, NO_PLAN * bool(missing)], default=0)


class _Judged(NamedTuple):
    """What the judge says of a plan."""

    feasible: bool
    cost: float
    words: str
    row: dict[str, Any]  # of JSON, where that is asked for


def _found(problem: "Problem", place: Path, as_json: bool) -> _Judged | ChainRouteError | None:
    """The plan in that file, judged, or what is wrong with the file; None where there is none."""
    from chainroute.cli.files import solution
    from chainroute.plan.check import check
    from chainroute.plan.reasons import explained

    if not os.path.exists(place):
        return None
    try:
        plan = solution(place, problem)
        verdict = check(problem, plan)
    except Exception as error:
        return coded(error, place)
    row = {**explained(plan), **verdict.as_dict()} if as_json else {}
    return _Judged(verdict.feasible, verdict.cost, f"{printable(problem.name)}: {verdict}", row)
