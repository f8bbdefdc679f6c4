"""What came out of the problems: told one after the other, or by workers where there are very many."""

import io
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chainroute.cli import show
from chainroute.errors import ChainRouteError, coded
from chainroute.runtime.shell import INFEASIBLE
from chainroute.runtime.spread import on_all_cores

if TYPE_CHECKING:
    from chainroute.formats.road_server import RoadServer
    from chainroute.plan.solution import Solution
    from chainroute.problem import Problem
    from chainroute.solve import Explanation, Outcome

Found = tuple["Outcome", Path | None, Path | None]  # and where its routes and its picture go
Tell = Callable[..., int]  # tells of what was found; returns the exit code

UNSOLVED = {"no-solution", "no-plan-found"}  # codes of what --explain looks into


def tell(outcome: "Outcome", out: Path | None, picture: Path | None, **how: Any) -> int:
    """Prints and writes the routes; returns the exit code that they stand for.

    An error is reported and ends nothing else. Only if nothing can be printed it is raised, since no other
    outcome could be printed either.
    """
    try:
        return _tell(outcome, out, picture, **how)
    except OSError:
        raise
    except Exception as error:
        name = outcome.problem.name
        return show.report(coded(error, name), how["as_json"], {"problem": name, **how["facts"]})


def _tell(
    outcome: "Outcome",
    out: Path | None,
    picture: Path | None,
    *,
    facts: dict[str, Any],
    as_json: bool,
    explain: bool,
    server: "RoadServer | None",
) -> int:
    from chainroute.formats.plot import draw
    from chainroute.plan.check import check
    from chainroute.plan.reasons import explained
    from chainroute.plan.solution import Solution

    problem, result = outcome.problem, outcome.result
    if result is None:
        assert outcome.error is not None
        empty = Solution(problem, ()).as_dict() | {"cost": None, "feasible": False}
        why = _explained(outcome) if explain else None
        if why is not None:
            empty["explanation"] = why.as_dict()
        code = show.report(outcome.error, as_json, {**empty, **facts})
        if why is not None and not as_json:
            print(why)
        return code
    verdict = check(problem, result.solution)
    unwritten: ChainRouteError | None = None
    try:
        if out:
            _write(result.solution, out, server)
        if picture:
            draw(problem, picture, result.solution)
    except Exception as error:  # the plan is printed all the same, and the next problem is solved
        unwritten = coded(error, problem.name)
    if as_json:
        more = {
            "seconds": result.seconds,
            "source": result.source,
            "notes": [*result.notes, *map(str, result.faults)],
        }
        if result.failed:
            more["error"] = show.faults(result.faults)
        show.line({**explained(result.solution), **verdict.as_dict(), **facts, **more})
    else:
        show.routes(result.solution, f"{facts['solver']}, {result.source}, {result.seconds:.1f} s")
        if explain:
            show.explain(result.solution)
        for note in result.notes:
            print(f"Note: {note}", file=sys.stderr)
        for fault in result.faults:
            print(fault if result.failed else f"Note: {fault}", file=sys.stderr)
        if not verdict.feasible:
            print(verdict)
    if unwritten is not None:
        return show.report(unwritten, as_json, {"problem": problem.name})
    if result.failed:
        return show.exit_code(result.faults)
    return 0 if verdict.feasible else INFEASIBLE


def are_done(problems: Sequence["Problem"], outs: Sequence[Path | None]) -> list[bool]:
    """Whether each problem has a plan of its own in its file already: one that is whole, and keeps the rules.
    A map or a picture cannot be read, and counts if it is there."""
    from chainroute.cli.files import MANY

    calls = [(problem, out) for problem, out in zip(problems, outs, strict=True) if out is not None]
    if len(calls) < MANY:
        return [_is_done(*call) for call in calls]
    return [is_done for _, is_done in on_all_cores(_is_done, calls, lambda *_: False)]


def _is_done(problem: "Problem", out: Path) -> bool:
    from chainroute.formats import READABLE_SOLUTIONS, read_solution
    from chainroute.plan.check import check

    if not out.exists():
        return False
    if out.suffix.lower().removeprefix(".") not in READABLE_SOLUTIONS:
        return out.stat().st_size > 0
    try:
        return check(problem, read_solution(out, problem)).feasible
    except Exception:  # whatever it is, it is no plan
        return False


def told_here(told: Tell, every: Iterable[Found]) -> Iterator[tuple["Outcome", Callable[[], int]]]:
    """Yields outcomes, each with what tells of it."""
    for outcome, out, picture in every:
        yield outcome, partial(told, outcome, out, picture)


def told_by_workers(told: Tell, every: Iterable[Found]) -> Iterator[tuple["Outcome", Callable[[], int]]]:
    """Yields the same once a worker has written the files; what is left is to print."""
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    calls = ((told, columns, *found) for found in every)
    for (_, _, outcome, *_), words in on_all_cores(_words, calls, _lost):
        yield outcome, partial(_say, *words)


def _words(told: Tell, columns: int | None, *found: Any) -> tuple[int, str, str]:
    """The exit code, and what is printed on a terminal of so many columns, or elsewhere (None)."""
    if columns is not None:
        os.environ["COLUMNS"] = str(columns)
    with redirect_stdout(_Page()) as out, redirect_stderr(io.StringIO()) as err:
        out.terminal = columns is not None
        code = told(*found)
    return code, out.getvalue(), err.getvalue()


def _lost(call: tuple[Any, ...], death: ChainRouteError) -> tuple[int, str, str]:
    """What stands for an outcome that a process died of."""
    tell, _, outcome, *_ = call
    name = outcome.problem.name
    error = ChainRouteError(fault.moved(field=name) for fault in death.faults)
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        code = show.report(error, tell.keywords["as_json"], {"problem": name})
    return code, out.getvalue(), err.getvalue()


class _Page(io.StringIO):
    """Keeps what is printed as if on a terminal, or not."""

    terminal = False

    def isatty(self) -> bool:
        return self.terminal


def _say(code: int, out: str, err: str) -> int:
    print(out, end="")
    print(err, end="", file=sys.stderr)
    return code


def _explained(outcome: "Outcome") -> "Explanation | None":
    """Why there is no plan, where that is what the error says."""
    from chainroute.solve import explain

    assert outcome.error is not None
    unsolved = {fault.code for fault in outcome.error.faults} <= UNSOLVED
    return explain(outcome.problem) if unsolved else None


def _write(solution: "Solution", out: Path, server: "RoadServer | None") -> None:
    """Writes the routes; on a map along the roads, or straight where the server does not tell these."""
    from chainroute.formats import write_solution

    try:
        write_solution(solution, out, lines=None if server is None else server.lines)
    except ChainRouteError as error:
        if not all(fault.code.startswith("roads-") for fault in error.faults):
            raise
        write_solution(solution, out)
        print(f"Note: the lines are straight, since the roads are not told. {error}", file=sys.stderr)
