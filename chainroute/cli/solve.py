"""The verb `solve`."""

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from chainroute.cli import declared, show
from chainroute.cli.app import Files, Plot, ReadingOptions, app
from chainroute.cli.live import Live
from chainroute.errors import FOR_ALL, USE_LISTED, ChainRouteError, coded, fail
from chainroute.options import Effort, Group, Option, Seed, TimeLimit, parameters, require_limits
from chainroute.options.declare import refuse
from chainroute.runtime.shell import BROKEN_PIPE, NO_PLAN, Json
from chainroute.runtime.signals import StopRequest, discard, interruptible, leave_unread
from chainroute.runtime.threads import begun

if TYPE_CHECKING:
    from chainroute.cli.files import ProblemReader
    from chainroute.plan.solution import Solution
    from chainroute.problem import Problem
    from chainroute.search.library import Solver
    from chainroute.solve import Outcome, Progress, Result

SolveAll = Callable[  # of the problems, a start for the only one, who hears of progress, and what stops it
    [Sequence["Problem"], "Solution | None", Callable[["Progress"], None], StopRequest], Iterator["Outcome"]
]

AUTO, NEURAL = "auto", "neural"  # the policy and PyVRP together; the policy alone
EFFORT = tuple(p.name for p in parameters(Effort))
DEFAULT_SECONDS = 10.0  # for each problem, unless the user says otherwise, with the solvers that are neither
NO_PROBLEMS = "there are no problems in this folder."
NOT_PROBLEMS = {".sol", ".res", ".geojson", ".html", ".md", ".png", ".svg", ".pdf"}  # passed over in a folder


@app.command()
@show.guarded
@declared.translated
def solve(
    files: Files,
    solver: Annotated[str, typer.Option(help="auto (policy and PyVRP), neural, pyvrp, ortools, ...")] = AUTO,
    time_limit: TimeLimit = None,
    seed: Seed = 0,
    initial: Annotated[Path | None, Option("Routes to start from: .sol, .res, .csv, .xlsx or .json.")] = None,
    effort: Annotated[dict[str, Any], Group(Effort, EFFORT)] = {},  # noqa: B006 never changed
    reading: ReadingOptions = {},  # noqa: B006 never changed
    as_json: Json = False,
    output: Annotated[
        str | None,
        typer.Option(
            "--output", "-o", help="Write the routes: .csv, .xlsx, .html, .sol, .res, .json, .geojson."
        ),
    ] = None,
    plot: Plot = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Print the facts of every stop; or, without a plan, why.")
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Skip problems whose --output holds a plan.")
    ] = False,
    shard: Annotated[
        str | None, typer.Option("--shard", help="Solve one share of the problems: 1/8, 2/8, ... 8/8.")
    ] = None,
    cluster: Annotated[
        str | None, typer.Option("--cluster", help="Solve on a Ray cluster: its address, or auto.")
    ] = None,
) -> int:
    """Find good routes.

    FILE may be a folder. Several problems are solved side by side, one on each core, and told as they are
    ready; {name} in --output and --plot stands for the name of each: -o 'out/{name}.sol'. Many machines take
    a --shard each, and `chainroute collect` joins what they wrote.
    """
    from chainroute.cli import policies
    from chainroute.cli.files import MANY, ProblemReader, outputs, plots, together
    from chainroute.cli.outcomes import are_done, tell, told_by_workers, told_here
    from chainroute.cli.shards import share

    is_ours, reader = share(shard), ProblemReader(reading)
    loaded = begun(partial(_engine, solver, time_limit, seed, effort, cluster))  # while files are read
    found, others, unreadable, inputs = read_problems(files, reader, is_ours)
    if not found:
        print(f"Shard {shard} has none of the {others} problems.", file=sys.stderr)
        return max((show.report(e, as_json, {"file": str(file)}) for file, e in unreadable), default=0)
    inputs += [initial] if initial else []
    inputs += policies.files(effort.get("weights"))
    steps = (
        partial(_start, initial, found),
        loaded,
        partial(outputs, output, found, inputs),
        partial(plots, plot, found, inputs),
        partial(_resumable, resume, output),
        partial(_without_start, cluster, initial),
    )
    start, engine, outs, pictures, *_ = together(*steps)
    codes = [show.report(error, as_json, {"file": str(file)}) for file, error in unreadable]
    jobs = list(zip(found, outs, pictures, strict=True))
    if resume:
        done = are_done(found, outs)
        jobs = [job for job, is_done in zip(jobs, done, strict=True) if not is_done]
    if skipped := len(found) - len(jobs):
        print(f"Skipped {skipped} of {len(found)} problems: their outputs are there.", file=sys.stderr)
    facts = {"solver": solver, "seed": seed}
    told = partial(tell, facts=facts, as_json=as_json, explain=explain, server=reader.server)
    # A search keeps all cores busy, and the policy alone only one of them.
    aside = solver == NEURAL and len(jobs) >= MANY and not explain and reader.server is None
    results = []
    with interruptible() as stop, Live(len(jobs)) as live:
        outcomes = engine([problem for problem, *_ in jobs], start, live.progress, stop)
        ready = ((outcome, jobs[outcome.index][1], jobs[outcome.index][2]) for outcome in outcomes)
        for outcome, say in (told_by_workers if aside else told_here)(told, ready):
            with live.aside():
                codes.append(_said(say, stop))
            results.append(outcome.result)
    undone = len(jobs) - len(results)
    if undone or any(result and result.stopped for result in results):
        more = f" {undone} of {len(jobs)} problems were not begun, or had no plan yet."
        code = show.stopped(stop.number, more if undone and results else "")
        codes.append(code if not results else NO_PLAN if undone else 0)
    return max(codes, default=0)


def _said(say: Callable[[], int], stop: StopRequest) -> int:
    """Tells of an outcome; returns its exit code. Where nothing can be printed any more, since the disk is
    full or, after Ctrl-C, the `tee` of a pipe has gone, the others are written all the same."""
    try:
        code = say()
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        if not stop.is_set():
            raise
        leave_unread()
        return BROKEN_PIPE
    except OSError as error:
        discard()
        return show.report(fail("file-unwritable", f"{error.strerror or error}.", "stdout"), as_json=False)


# -- what to solve


def read_problems(
    files: Sequence[Path], reader: "ProblemReader", is_ours: Callable[[str], bool]
) -> tuple[list["Problem"], int, list[tuple[Path, ChainRouteError]], list[Path]]:
    """The problems of a share, how many others there are, what is wrong with the files of that share that
    hold none (if none of all files holds any, it is raised), and all files that are not to be written over.
    In folders, solutions and tables that go with others are passed over."""
    found: list[Problem] = []
    unreadable, inputs, others = [], [], 0
    given = [(path, file) for path in files for file in _expanded(path)]
    read = reader.all_of([file for _, file in given], is_ours)
    for (path, file), (problems, elsewhere, companions, _) in zip(given, read, strict=True):
        if not isinstance(problems, ChainRouteError):
            found += problems
            others += elsewhere
        elif file == path or all(fault.code != "not-a-problem" for fault in problems.faults):
            unreadable.append((file, problems))
        else:
            continue
        inputs += companions
    if not inputs:
        raise fail("file-not-found", NO_PROBLEMS, ", ".join(map(str, files)))
    if not found and not others:
        raise ChainRouteError(fault for _, error in unreadable for fault in error.faults)
    return found, others, [(file, error) for file, error in unreadable if is_ours(file.name)], inputs


def _expanded(path: Path) -> Sequence[Path]:
    """The files of a folder that may be problems; a file stands for itself."""
    if not os.path.isdir(path):  # unlike Path's, it takes a name that is too long
        return [path]
    inside = [p for p in path.iterdir() if p.is_file() and p.suffix.lower() not in NOT_PROBLEMS]
    found = sorted(p for p in inside if not p.name.startswith("."))
    if not found:
        raise fail("file-not-found", NO_PROBLEMS, str(path))
    return found


def _start(file: Path | None, problems: Sequence["Problem"]) -> "Solution | None":
    from chainroute.cli.files import solution

    if file is None:
        return None
    if len(problems) > 1:
        message, remedy = (
            f"is for one problem, and there are {len(problems)}.",
            "Give one problem, or no start.",
        )
        raise fail("bad-option", message, "initial", remedy)
    return solution(file, problems[0])


def _resumable(resume: bool, output: str | None) -> None:
    if resume and output is None:
        raise fail("bad-option", "needs --output, to see what is there.", "--resume", "Add --output.")


def _without_start(cluster: str | None, initial: Path | None) -> None:
    if cluster is not None and initial is not None:
        message, remedy = "solves from cold.", "Leave out --cluster, or --initial."
        raise fail("bad-option", message, "--cluster", remedy)


# -- how


def _engine(
    solver: str,
    time_limit: float | None,
    seed: int,
    asked: Mapping[str, Any],
    cluster: str | None,
) -> SolveAll:
    """The solver by name, with options that it can make use of."""
    from chainroute.cli import policies
    from chainroute.cli.files import together

    check_limits = partial(require_limits, time_limit, seed)
    if solver in (AUTO, NEURAL):
        alone = {"polish": False} if solver == NEURAL else {}
        effort, _ = together(partial(Effort, **{**asked, **alone}), check_limits)
        policies.ready(effort)
        return partial(_front_door, time_limit, seed, effort, cluster)
    from chainroute.search.solvers.table import SOLVERS

    if solver not in SOLVERS:
        names = ", ".join((AUTO, NEURAL, *SOLVERS))
        raise fail("bad-option", f"'{solver}' is not a solver; there are {names}.", "--solver", USE_LISTED)
    together(partial(refuse, {"--cluster": cluster, **asked}, f"{AUTO} or {NEURAL}"), check_limits)
    seconds = DEFAULT_SECONDS if time_limit is None else time_limit
    return partial(_one_by_one, SOLVERS[solver], seconds, seed)


def _front_door(
    time_limit: float | None,
    seed: int,
    effort: Effort,
    cluster: str | None,
    problems: Sequence["Problem"],
    start: "Solution | None",
    on_progress: Callable[["Progress"], None],
    stop: StopRequest,
) -> Iterator["Outcome"]:
    """Many side by side, a single one with all cores."""
    from chainroute.solve import solve, solve_many

    if len(problems) > 1 or cluster is not None:
        yield from solve_many(problems, time_limit, seed=seed, effort=effort, stop=stop, cluster=cluster)
        return

    def one(problem: "Problem") -> "Result":
        return solve(
            problem,
            time_limit,
            seed=seed,
            effort=effort,
            initial=start,
            on_progress=on_progress,
            stop=stop,
        )

    yield from _each(problems, one, stop)


def _one_by_one(
    solver: "Solver",
    seconds: float,
    seed: int,
    problems: Sequence["Problem"],
    start: "Solution | None",
    on_progress: Callable[["Progress"], None],
    stop: StopRequest,
) -> Iterator["Outcome"]:
    """A classical solver alone; where it has no plan in time, one of our own making."""
    from chainroute.search.own.construct import construct
    from chainroute.solve import Progress, Result

    def one(problem: "Problem") -> "Result":
        begin = time.monotonic()
        try:
            found = solver.solve(problem, seconds, seed, start, stop=stop)
        except ChainRouteError as error:
            unsolved = all(fault.code == "no-plan-found" for fault in error.faults)
            if not unsolved or (plan := construct(problem, stop.is_set)) is None:
                raise
            history = (Progress(time.monotonic() - begin, plan, "construction"),)
            notes = (f"{error.faults[0].message} These routes are only constructed.",)
            return Result(plan, history[0].seconds, history, notes, stop.is_set())
        history = (Progress(found.seconds, found.solution, "search"),)
        proven = ("Nothing better exists, as the solver has proven.",) if found.optimal else ()
        return Result(found.solution, found.seconds, history, proven, stop.is_set())

    yield from _each(problems, one, stop)


def _each(
    problems: Sequence["Problem"], solve: Callable[["Problem"], "Result"], stop: StopRequest
) -> Iterator["Outcome"]:
    """One after the other, until somebody asks to stop; a problem that has no solution does not end it, but a
    wrong option does."""
    from chainroute.solve import Outcome

    for i, problem in enumerate(problems):
        if stop.is_set():
            return
        try:
            outcome = Outcome(i, problem, solve(problem))
        except ChainRouteError as error:
            if stop.is_set():
                return  # with nothing found
            if any(fault.code in FOR_ALL for fault in error.faults):
                raise
            outcome = Outcome(i, problem, None, error)
        except Exception as error:
            outcome = Outcome(i, problem, None, coded(error, problem.name))
        yield outcome
