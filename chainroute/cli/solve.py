"""The verb `solve`."""

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from chainroute.cli import show
from chainroute.cli.app import Files, Index, Json, Plot, Rounding, app
from chainroute.errors import ChainRouteError, fail

if TYPE_CHECKING:
    from chainroute.problem import Problem
    from chainroute.solution import Solution

Solver = Callable[["Problem", int], "Solution"]  # of the problem and the seed
SECONDS = 10.0  # for each problem, unless the user says otherwise


@app.command()
@show.guarded
def solve(
    files: Files,
    solver: Annotated[str, typer.Option(help="pyvrp or neural.")] = "pyvrp",
    time_limit: Annotated[
        float | None, typer.Option(help="pyvrp: seconds for each problem; 10 unless given.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the search.")] = 0,
    weights: Annotated[str | None, typer.Option(help="neural: a policy's path, or random.")] = None,
    starts: Annotated[int | None, typer.Option(help="neural: first customers to try.")] = None,
    augment: Annotated[int | None, typer.Option(help="neural: turned and mirrored maps, 1 to 8.")] = None,
    samples: Annotated[
        int | None, typer.Option(help="neural: samples per start and map; 0 is greedy.")
    ] = None,
    device: Annotated[str | None, typer.Option(help="neural: cpu, cuda, cuda:1, ...")] = None,
    rounding: Rounding = None,
    index: Index = None,
    as_json: Json = False,
    output: Annotated[
        str | None, typer.Option("--output", "-o", help="Write the routes: .sol, .res or .json.")
    ] = None,
    plot: Plot = None,
) -> int:
    """Find good routes.

    With several problems, {name} in --output and --plot stands for the name of each: -o 'out/{name}.sol'.
    """
    from chainroute.check import check
    from chainroute.cli import neural
    from chainroute.cli.files import outputs, plots, problems, together
    from chainroute.formats import write_solution
    from chainroute.plot import draw
    from chainroute.solution import Solution

    every = problems(files, rounding, index)
    options = {"--starts": starts, "--augment": augment, "--samples": samples}
    choose: Callable[[], Solver]
    if solver == "neural":
        choose, span = partial(neural.solver, weights, device, options), ""
        neural.refuse({"--time-limit": time_limit}, "pyvrp: a policy takes the time it takes")
    else:
        seconds = SECONDS if time_limit is None else time_limit
        choose, span = partial(_solver, solver, seconds), f", up to {seconds:g} s"
        neural.refuse({"--weights": weights, "--device": device, **options}, "neural")
    run, outs, pictures = together(
        choose,
        partial(outputs, output, every, files),
        partial(plots, plot, every),
    )
    code = 0
    for i, (problem, out, picture) in enumerate(zip(every, outs, pictures, strict=True), 1):
        started = time.perf_counter()
        try:
            with show.working(f"{i}/{len(every)} {problem.name}{span}"):
                solution = run(problem, seed)
        except ChainRouteError as error:
            if any(fault.code != "no-solution" for fault in error.faults):
                raise
            empty = Solution(problem, ()).as_dict() | {"cost": None, "feasible": False}
            code = show.report(error, as_json, {**empty, "seconds": time.perf_counter() - started})
            continue
        facts = {"solver": solver, "seed": seed, "seconds": time.perf_counter() - started}
        verdict = check(problem, solution)
        code = code if verdict.feasible else show.INFEASIBLE
        try:
            if out:
                write_solution(solution, out)
            if picture:
                draw(problem, picture, solution)
        finally:  # what was found is told even where it could not be written
            if as_json:
                show.line({**solution.as_dict(), **verdict.as_dict(), **facts})
            else:
                show.routes(solution, f"{solver}, {facts['seconds']:.1f} s")
                if not verdict.feasible:
                    print(verdict)
    return code


def _solver(name: str, time_limit: float) -> Solver:
    """By name."""
    if name == "pyvrp":
        from chainroute.classical import pyvrp

        return lambda problem, seed: pyvrp.solve(problem, time_limit, seed).solution
    raise fail("bad-option", f"'{name}' is not a solver; there are pyvrp and neural.", "--solver")
