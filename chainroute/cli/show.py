"""How the command speaks: tables, JSON, progress, and errors without tracebacks."""

import functools
import json
import shutil
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, ParamSpec

import typer

from chainroute.errors import BROKEN_OFF, ChainRouteError, Fault, coded, fail, printable
from chainroute.runtime.numerals import number_text
from chainroute.runtime.shell import BAD_INPUT, BROKEN_PIPE, INFEASIBLE, NO_PLAN, OUR_FAULT, STOPPED
from chainroute.runtime.signals import Interrupt, discard, interrupting

if TYPE_CHECKING:
    from rich.progress import Progress

    from chainroute.plan.solution import Route, RouteFacts, Solution
    from chainroute.problem import Problem
    from chainroute.problem.fleet import Vehicle

NARROW_COLUMNS = 72  # columns of a terminal; with fewer, a table of routes is no help

P = ParamSpec("P")


def guarded(verb: Callable[P, int]) -> Callable[P, None]:
    """The verb, which returns its exit code, with every way to fail turned into a message and a code."""

    @functools.wraps(verb)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            with interrupting():
                code = verb(*args, **kwargs)
                sys.stdout.flush()
        except ChainRouteError as error:
            code = report(error, as_json=bool(kwargs.get("as_json")))
        except KeyboardInterrupt as error:
            code = stopped(error.number if isinstance(error, Interrupt) else signal.SIGINT)
        except OSError as error:  # stdout is full, or its reader, such as `head`, has had enough
            if error.errno is None:  # it does not come from the system
                code = report(coded(error), as_json=bool(kwargs.get("as_json")))
            else:
                discard()
                broken = isinstance(error, BrokenPipeError)
                code = BROKEN_PIPE if broken else report(fail("file-unwritable", f"{error}."), as_json=False)
        except Exception as error:
            code = report(coded(error), as_json=bool(kwargs.get("as_json")))
        raise typer.Exit(code)

    return run


def stopped(number: int, more: str = "") -> int:
    """Says so; returns the exit code of a command that was stopped before it had anything to show."""
    with suppress(OSError):
        print(f"Stopped.{more}", file=sys.stderr, flush=True)
    return STOPPED + number


def report(error: ChainRouteError, as_json: bool, facts: dict[str, Any] | None = None) -> int:
    """Tells every fault; returns the exit code that they stand for."""
    if as_json:
        line({**(facts or {}), "error": faults(error.faults)})
    else:
        print(error, file=sys.stderr)
    return exit_code(error.faults)


def faults(found: Sequence[Fault]) -> dict[str, Any]:
    """Faults as JSON has them."""
    return {"faults": [fault.as_dict() for fault in found]}


def exit_code(found: Sequence[Fault]) -> int:
    """The program or a solver broke off, there is no plan, none was found, or else the input is bad."""
    codes = {fault.code for fault in found}
    if codes & BROKEN_OFF:
        return OUR_FAULT
    return INFEASIBLE if codes == {"no-solution"} else NO_PLAN if codes == {"no-plan-found"} else BAD_INPUT


def line(document: dict[str, Any]) -> None:
    """One JSON object on one line, so that many can follow each other."""
    print(json.dumps(document, allow_nan=False))


def table(columns: Sequence[str], rows: Sequence[Sequence[object]], numbers: Sequence[str] = ()) -> None:
    """Framed on a terminal, plain columns elsewhere; the columns named in `numbers` are flush right.

    Columns without any name have no heading.
    """
    cells = [[plain(cell) for cell in row] for row in rows]
    if sys.stdout.isatty():
        from rich import box
        from rich.console import Console
        from rich.table import Table

        framed = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, show_header=any(columns))
        for column in columns:
            framed.add_column(column, justify="right" if column in numbers else "left", overflow="fold")
        for row in cells:
            framed.add_row(*row)
        Console(highlight=False, markup=False, emoji=False).print(framed)
        return
    widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    for row in [list(columns), *cells] if any(columns) else cells:
        fitted = [
            cell.rjust(width) if column in numbers else cell.ljust(width)
            for cell, width, column in zip(row, widths, columns, strict=True)
        ]
        print("  ".join(fitted).rstrip())


def plain(value: object) -> str:
    """A fact as people write it."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return number_text(value, 10) if isinstance(value, float) else printable(str(value))


def routes(solution: "Solution", note: str) -> None:
    heading, *lines = str(solution).splitlines()
    print(f"{heading} ({note})")
    if not sys.stdout.isatty() or shutil.get_terminal_size().columns < NARROW_COLUMNS:
        print(*lines, sep="\n")
    else:
        _table_of_routes(solution)
        print(*lines[len(solution.routes) :], sep="\n", end="\n" * (len(lines) > len(solution.routes)))
    left_out(solution)


def left_out(solution: "Solution") -> None:
    """Who is left out, and why."""
    if solution.left_out:
        from chainroute.plan.reasons import reasons

        print("Left out:", *(f"  {printable(str(reason))}" for reason in reasons(solution)), sep="\n")


def _table_of_routes(solution: "Solution") -> None:
    p = solution.problem
    timed, typed = p.time_windows is not None, len(p.types) > 1
    rows = []
    for number, (route, f) in enumerate(zip(solution.routes, solution.facts, strict=True), 1):
        visits = " - ".join(p.names[v] for v in route.visits)
        times = [p.moment(f.start), p.moment(f.end), p.span(f.waiting)] if timed else []
        whose = [*[p.types[route.vehicle].name] * typed, p.names[route.depot]]
        rows.append([number, *whose, number_text(f.length), number_text(f.max_load), *times, visits])
    numbers = ["length", "load", *(["starts", "ends", "waits"] if timed else [])]
    words = [*["vehicle"] * typed, "depot"]
    table(["route", *words, *numbers, "customers"], rows, numbers=["route", *numbers])


def explain(solution: "Solution") -> None:
    """Every stop of every route: when, how far along, with what load, and how much later it could be."""
    p = solution.problem
    timed = p.time_windows is not None
    times = ["arrives", "waits", "service", "leaves", "spare"] if timed else []
    numbers = ["stop", *times, "demand", "load", "distance"]
    for number, (route, f) in enumerate(zip(solution.routes, solution.facts, strict=True), 1):
        vehicle = p.types[route.vehicle]
        by = f" by {printable(vehicle.name)}" if len(p.types) > 1 else ""
        words = _in_words(p, vehicle, f)
        whose = "from" if vehicle.leaves_depot else "of"
        print(f"\nRoute {number} {whose} {printable(p.names[route.depot])}{by}: {words}")
        spare = _spare(p, route, f)
        rows: list[list[str]] = []
        for place, stop in enumerate(f.stops, 1):
            v = stop.location
            when = [
                p.moment(stop.arrival),
                p.span(stop.waiting),
                p.span(float(p.services[v])),
                p.moment(stop.departure),
                _span(p, spare[place - 1]),
            ]
            more = float(p.pickups[v] - p.deliveries[v])
            demand = f"+{number_text(more)}" if more > 0 else number_text(more)
            carried = [demand, number_text(stop.load), number_text(stop.distance)]
            rows.append([str(place), p.names[v], *(when if timed else []), *carried])
        if (end := vehicle.end_of(route.depot)) is not None and f.stops:
            home = [p.moment(f.end), "", "", "", _span(p, spare[-1])] if timed else []
            rows.append(["", p.names[end], *home, "", number_text(f.stops[-1].load), number_text(f.length)])
        table(["stop", "place", *numbers[1:]], rows, numbers=numbers)


def _in_words(p: "Problem", vehicle: "Vehicle", f: "RouteFacts") -> str:
    """What a route uses of what it may."""
    limited = vehicle.distance_limit < float("inf")
    limit = f" of {number_text(vehicle.distance_limit)}" if limited else ""
    if limited and p.limit_counts_service:
        limit += f" with {number_text(sum(p.services[s.location] for s in f.stops))} of service"
    words = [f"{len(f.stops)} stop{'s' * (len(f.stops) != 1)}", f"length {number_text(f.length)}{limit}"]
    words.append(f"load up to {number_text(f.max_load)} of {number_text(vehicle.capacity)}")
    if p.time_windows is not None:
        words.append(f"from {p.moment(f.start)} to {p.moment(f.end)}, waiting {p.span(f.waiting)}")
    return ", ".join(words)


def _spare(p: "Problem", route: "Route", f: "RouteFacts") -> list[float]:
    """By how much later each stop, and the return, may be reached with all windows from there on met."""
    vehicle = p.types[route.vehicle]
    end = vehicle.end_of(route.depot)
    last = float("inf") if end is None else float(p.windows[end, 1])
    spare = [min(last, vehicle.shift[1]) - f.end]
    for stop in reversed(f.stops):
        closings = [closing for _, closing in p.windows_of(stop.location)]
        here = next((b for b in closings if stop.start <= b), closings[-1]) - stop.start
        spare.append(min(here, spare[-1]) + stop.waiting)
    return [*spare[:0:-1], spare[0]]


def _span(p: "Problem", time: float) -> str:
    """A length of time in words, which may have no bound."""
    return "any" if time == float("inf") else p.span(time)


@contextmanager
def working(what: str) -> Iterator[None]:
    """Says on the terminal what is being done, and for how long, until it is done."""
    if not sys.stderr.isatty():
        yield
        return
    with progress() as bar:
        bar.add_task(printable(what))
        yield


def progress() -> "Progress":
    """A line on the terminal, gone when it is done, that takes no part of a name for markup."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False)
