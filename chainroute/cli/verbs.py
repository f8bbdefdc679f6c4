"""The verbs. Each returns its exit code; `show.guarded` turns what goes wrong into a message and a code."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain, product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from chainroute.cli import show
from chainroute.errors import ChainRouteError, fail

if TYPE_CHECKING:
    from chainroute.problem import Problem
    from chainroute.solution import Solution
    from chainroute.variants import Variant

app = typer.Typer(
    name="chainroute",
    help="Solves 48 kinds of vehicle routing problems.",
    epilog="Exit codes: 0 feasible, 1 infeasible, 2 bad input; docs/errors.md lists the errors.",
    add_completion=False,
    rich_markup_mode=None,  # rich takes longer to import than all that --help needs
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Files = Annotated[list[Path], typer.Argument(help="Problems, in any format.", metavar="FILE")]
File = Annotated[Path, typer.Argument(help="A problem, in any format.", metavar="FILE")]
Rounding = Annotated[
    str | None,
    typer.Option("--rounding", help="Of distances: exact, round, ceil, trunc, trunc1; else the file's own."),
]
Index = Annotated[int | None, typer.Option("--index", help="Which problem of an .npz, counted from 0.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, one object per line.")]
Plot = Annotated[str | None, typer.Option("--plot", help="Draw a picture: .png, .svg or .pdf.")]

Solver = Callable[["Problem", int], "Solution"]  # of the problem and the seed
SECONDS = 10.0  # for each problem, unless the user says otherwise


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        from chainroute import __version__

        print(f"chainroute {__version__}")
    elif context.invoked_subcommand is None:
        print(context.get_help())


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
    from chainroute.cli.files import problems, together
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
    run, outputs, plots = together(
        choose,
        partial(_outputs, output, every, files),
        partial(_plots, plot, every),
    )
    code = 0
    for i, (problem, out, picture) in enumerate(zip(every, outputs, plots, strict=True), 1):
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


@app.command()
@show.guarded
def check(
    file: File,
    routes: Annotated[Path, typer.Argument(help="Its routes: .sol, .res or JSON.", metavar="SOLUTION")],
    rounding: Rounding = None,
    index: Index = None,
    as_json: Json = False,
    plot: Plot = None,
) -> int:
    """Judge a solution: its cost, and every rule it breaks."""
    from chainroute.check import check
    from chainroute.cli.files import problem, solution
    from chainroute.plot import draw

    the_problem = problem(file, rounding, index)
    the_solution = solution(routes, the_problem)
    (picture,) = _plots(plot, [the_problem])
    verdict = check(the_problem, the_solution)
    if picture:
        draw(the_problem, picture, the_solution)
    if as_json:
        show.line(verdict.as_dict())
    else:
        print(verdict)
    return 0 if verdict.feasible else show.INFEASIBLE


@app.command()
@show.guarded
def generate(
    names: Annotated[
        list[str] | None, typer.Argument(help="Variants by name, or all, seen, zero-shot.", metavar="VARIANT")
    ] = None,
    n: Annotated[int | None, typer.Option("-n", help="Customers.  [default: 50]")] = None,
    count: Annotated[int | None, typer.Option(help="Problems of each variant.  [default: 1]")] = None,
    seed: Annotated[int, typer.Option(help="Same seed, same problems.")] = 0,
    output: Annotated[str | None, typer.Option("--output", "-o", help="A folder or a file.")] = None,
    benchmark: Annotated[bool, typer.Option("--benchmark", help="Write the public test sets.")] = False,
) -> int:
    """Draw random problems, or the public benchmark.

    Without an ending, --output is a folder for one JSON file per problem. With one, it is the file to write;
    {name} in it stands for the variant (.npz holds all its problems) or for the problem (other formats).

    With --benchmark, --output is a folder for the .npz files of the published test and validation sets, bit
    for bit: of all variants, with 50 and 100 customers, in full, unless you say otherwise.
    """
    from chainroute.cli.files import write_all
    from chainroute.generate import generate

    variants = _variants(names or (["all"] if benchmark else []))
    if not variants:
        raise fail("bad-option", "name a variant, or all.", "VARIANT")
    if output is None:
        raise fail("bad-option", "say where to write to.", "--output")
    if benchmark:
        return _benchmark(variants, [50, 100] if n is None else [n], count, Path(output))
    n, count = 50 if n is None else n, 1 if count is None else count
    write_all({v.name: generate(v, n, count, seed) for v in variants}, output, None, "--output")
    return 0


@app.command()
@show.guarded
def convert(
    file: File,
    target: Annotated[str, typer.Argument(help="The file to write.", metavar="TARGET")],
    rounding: Rounding = None,
    index: Index = None,
    format: Annotated[
        str | None, typer.Option(help="vrplib, lkh, solomon, cordeau, json or npz; else by TARGET's ending.")
    ] = None,
) -> int:
    """Write a problem in another format.

    The problems of an .npz go to one file each where {name} is in TARGET, or, as JSON, to a folder.
    """
    from chainroute.cli.files import problems, write_all

    write_all({file.stem: problems([file], rounding, index)}, target, format, "TARGET")
    return 0


@app.command()
@show.guarded
def info(
    file: Annotated[Path | None, typer.Argument(help="A problem, in any format.", metavar="FILE")] = None,
    rounding: Rounding = None,
    index: Index = None,
    as_json: Json = False,
    plot: Plot = None,
    policy: Annotated[
        bool, typer.Option("--policy", help="FILE is a policy; without it, the shipped one.")
    ] = False,
) -> int:
    """Say what is in a file, or how many parameters a policy has."""
    from chainroute.cli.files import problems
    from chainroute.plot import draw

    if policy:
        return _parameters(None if file is None else str(file), as_json)
    if file is None:
        raise fail("bad-option", "name a file.", "FILE")
    every = problems([file], rounding, index)
    for problem, picture in zip(every, _plots(plot, every), strict=True):
        if picture:
            draw(problem, picture)
    facts = [_facts(problem) for problem in every]
    if as_json:
        for each in facts:
            show.line(each)
    elif len(facts) == 1:
        show.table(("", ""), [(key.replace("_", " "), value) for key, value in facts[0].items()])
    else:
        keys = ("name", "variant", "customers", "depots", "capacity", "delivery", "pickup")
        show.table(keys, [[each[key] for key in keys] for each in facts], numbers=keys[2:])
    return 0


@app.command()
@show.guarded
def train(
    run: Annotated[Path, typer.Argument(help="Folder of the run; it goes on from the snapshot there.")],
    recipe: Annotated[
        Path | None, typer.Option(help="TOML or JSON, such as recipes/toy.toml; needed for a new run.")
    ] = None,
    weights: Annotated[Path | None, typer.Option(help="Policy that a new run begins with.")] = None,
    seconds: Annotated[float | None, typer.Option(help="How long to train, from call to return.")] = None,
    updates: Annotated[int | None, typer.Option(help="How many updates to make.")] = None,
    cooldown: Annotated[
        float | None, typer.Option(help="The last seconds, over which the rate falls to zero.")
    ] = None,
    engine: Annotated[str, typer.Option(help="auto, plain or fast.")] = "auto",
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, ...")] = "auto",
) -> int:
    """Train a policy, or go on training it; Ctrl-C saves and ends."""
    try:
        from chainroute import train as training
    except ModuleNotFoundError as error:
        message = f"training needs {error.name}: pip install 'chainroute[neural]'."
        raise fail("missing-extra", message) from None
    config = training.read_recipe(recipe) if recipe else None
    training.train(
        config,
        run,
        weights=weights,
        seconds=seconds,
        updates=updates,
        cooldown=cooldown,
        engine=engine,
        device=device,
    )
    return 0


@app.command()
@show.guarded
def variants(as_json: Json = False) -> int:
    """List the 48 variants."""
    from chainroute.variants import VARIANTS

    if as_json:
        for v in VARIANTS:
            show.line({"name": v.name, **vars(v), "seen": v.seen})
        return 0
    show.table(
        ("variant", "depots", "open", "backhaul", "limit", "time windows", "in training"),
        [
            (
                v.name,
                "several" if v.multi_depot else "one",
                v.open,
                v.backhaul,
                v.limit,
                v.time_windows,
                v.seen,
            )
            for v in VARIANTS
        ],
    )
    return 0


def _parameters(weights: str | None, as_json: bool) -> int:
    from chainroute.cli import neural

    the_policy = neural.policy(weights)
    from chainroute.policy.store import describe

    counts = describe(the_policy)
    if as_json:
        show.line({"parameters": counts, "config": the_policy.config.as_dict()})
    else:
        show.table(("part", "parameters"), list(counts.items()), numbers=("parameters",))
    return 0


# -- solvers


def _solver(name: str, time_limit: float) -> Solver:
    """By name."""
    if name == "pyvrp":
        from chainroute.classical import pyvrp

        return lambda problem, seed: pyvrp.solve(problem, time_limit, seed).solution
    raise fail("bad-option", f"'{name}' is not a solver; there are pyvrp and neural.", "--solver")


# -- where to write


def _plots(pattern: str | None, problems: Sequence["Problem"]) -> Sequence[Path | None]:
    from chainroute.cli.files import paths
    from chainroute.plot import SUFFIXES

    return (
        paths(pattern, [p.name for p in problems], "--plot", SUFFIXES) if pattern else [None] * len(problems)
    )


def _outputs(
    pattern: str | None, problems: Sequence["Problem"], files: Sequence[Path]
) -> Sequence[Path | None]:
    from chainroute.cli.files import paths
    from chainroute.formats import SOLUTION_FORMATS

    endings = [f".{format}" for format in SOLUTION_FORMATS]
    if pattern is None:
        return [None] * len(problems)
    return paths(pattern, [p.name for p in problems], "--output", endings, keep=files)


def _benchmark(variants: Sequence["Variant"], sizes: Sequence[int], count: int | None, to: Path) -> int:
    import io

    import numpy as np

    from chainroute.cli.files import folder
    from chainroute.files import save
    from chainroute.generate import benchmark

    folder(to)
    splits: tuple[Literal["test", "val"], ...] = ("test", "val")
    sets = list(product(variants, sizes, splits))
    for i, (variant, n, split) in enumerate(sets, 1):
        path = to / f"{variant}-n{n}-{split}.npz"
        with show.working(f"{i}/{len(sets)} {path}"):
            arrays: dict[str, Any] = benchmark(variant, n, split, count)
            file = io.BytesIO()
            np.savez(file, **arrays)
            save(path, file.getvalue())
    print(f"Wrote {len(sets)} files to {to}")
    return 0


# -- what there is


def _variants(names: Sequence[str]) -> list["Variant"]:
    """By name or group, each once, in the order given."""
    from chainroute.cli.files import together
    from chainroute.variants import SEEN, VARIANTS, ZERO_SHOT, variant

    groups = {"all": VARIANTS, "seen": SEEN, "zero-shot": ZERO_SHOT}

    def named(name: str) -> Sequence["Variant"]:
        return groups.get(name.lower()) or [variant(name)]

    return list(dict.fromkeys(chain(*together(*(partial(named, name) for name in names)))))


def _facts(p: "Problem") -> dict[str, Any]:
    """What `info` tells."""
    import math

    import numpy as np

    loads = (float(p.delivery.sum()), float(p.pickup.sum()))
    ends = p.windows[np.isfinite(p.windows)]
    return {
        "name": p.name,
        "variant": p.variant.name,
        "customers": p.num_customers,
        "depots": p.num_depots,
        "capacity": p.capacity,
        "delivery": loads[0],
        "pickup": loads[1],
        "vehicles_needed": math.ceil(max(loads) / p.capacity - 1e-6),
        "vehicles_per_depot": p.fleet,
        "open": p.open,
        "backhaul": str(p.backhaul),
        "time_windows": p.time_windows is not None,
        "first_opening": float(ends.min()) if p.time_windows is not None else None,
        "last_closing": float(ends.max()) if p.time_windows is not None else None,
        "service": float(p.service.sum()),
        "distance_limit": p.distance_limit,
        "limit_counts_service": p.limit_counts_service,
        "distances": str(p.metric) if p.distance_matrix is None else "matrix",
        "durations": "distances" if p.duration_matrix is None else "matrix",
        "rounding": str(p.rounding),
    }
