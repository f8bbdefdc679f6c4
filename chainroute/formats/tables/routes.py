"""Routes as tables, CSV or Excel, one row a stop; and as pages to print, one for each driver.

The tables are read back, so that a plan can be changed by hand in a spreadsheet and judged.
"""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from itertools import pairwise

from chainroute.errors import fail
from chainroute.formats.common import Faults, short
from chainroute.formats.tables import cells
from chainroute.formats.tables.cells import DAY
from chainroute.formats.tables.grids import Cell, Row, Sheet, require_names, write_csv, write_workbook
from chainroute.formats.tables.headings import SheetTable, found
from chainroute.plan.solution import Route, RouteFacts, Solution
from chainroute.problem import Problem
from chainroute.problem.measure import ANY_DAY, Metric
from chainroute.runtime.files import encode
from chainroute.runtime.numerals import number_text, time_of_day

MOST_SECONDS = 8e13  # that Python has a length of time for; more stays a number
COLUMNS = ("route", "position", "name", "arrival", "wait", "start", "departure", "load", "distance")


@dataclass(frozen=True)
class Visit:
    """One row: a stop or, at either end, the depot. What does not happen there is None."""

    location: int
    arrival: float | None
    wait: float | None
    start: float | None
    departure: float | None
    load: float | None  # on leaving
    distance: float  # driven since the depot
    trip: int = 1  # of the vehicle, counted from 1; a depot where it reloads ends one


def visits(problem: Problem, route: Route, facts: RouteFacts) -> list[Visit]:
    """All rows of a route: the depot, unless it begins at its first stop, the stops, and the depot where it
    ends, unless that is at its last."""
    vehicle = problem.types[route.vehicle]
    begins = Visit(route.depot, None, None, None, facts.start, facts.initial_load, 0.0)
    rows = [begins] if vehicle.leaves_depot or len(vehicle.depots) > 1 else []
    trip = 1
    for s in facts.stops:
        rows.append(Visit(s.location, s.arrival, s.waiting, s.start, s.departure, s.load, s.distance, trip))
        trip += s.location in problem.depots
    if (end := vehicle.end_of(route.depot)) is not None:
        rows.append(Visit(end, facts.end, None, None, None, None, facts.length, trip))
    return rows


def routes(solution: Solution) -> list[tuple[int, Route, RouteFacts]]:
    """The routes that visit anybody, numbered as in every other output."""
    pairs = enumerate(zip(solution.routes, solution.facts, strict=True), 1)
    return [(number, route, facts) for number, (route, facts) in pairs if route.visits]


# -- tables


def write(solution: Solution) -> bytes:
    """The routes as a CSV."""
    return write_csv([_sheet(solution, as_text=True)])


def write_excel(solution: Solution) -> bytes:
    return write_workbook([_sheet(solution, as_text=False)])


def require_readable(problem: Problem) -> None:
    """Raises what keeps the names of the problem from being written into cells."""
    require_names((*problem.names, *(t.name for t in problem.vehicle_types)))


def _sheet(solution: Solution, as_text: bool) -> Sheet:
    p = solution.problem
    require_readable(p)
    typed, trips = _typed(p), "several trips" in p.extras
    more = ["vehicle"] * typed + ["trip"] * trips
    rows: list[Row] = [[COLUMNS[0], *more, *COLUMNS[1:-1], "distance (m)" if _in_metres(p) else "distance"]]
    for number, route, facts in routes(solution):
        vehicle = [p.types[route.vehicle].name] * typed
        for position, visit in enumerate(visits(p, route, facts)):
            times = (moment(p, visit.arrival, as_text), span(p, visit.wait, as_text),
                     moment(p, visit.start, as_text), moment(p, visit.departure, as_text))  # fmt: skip
            rows.append(
                [
                    number,
                    *vehicle,
                    *[visit.trip] * trips,
                    position,
                    p.names[visit.location],
                    *times,
                    _short(visit.load),
                    _short(visit.distance),
                ]
            )
    return Sheet(rows, "routes")


def _typed(p: Problem) -> bool:
    """Whether a route says which vehicle it is for."""
    return bool(p.vehicle_types)


def moment(p: Problem, seconds: float | None, as_text: bool) -> Cell:
    """A time as a cell: of the day where the problem has one, else the number."""
    if seconds is None or p.day is None or abs(seconds) > MOST_SECONDS:
        return seconds
    whole = round(seconds)
    if p.day != ANY_DAY and (at := _date(p.day, whole)):
        return at.isoformat(" ") if as_text else at
    if 0 <= whole < DAY and not as_text:
        return (datetime.min + timedelta(seconds=whole)).time()
    return hours(whole) if as_text else timedelta(seconds=whole)


def _date(day: str, seconds: int) -> datetime | None:
    """The date and time so long after midnight of the day; None beyond the calendar, which ends in 9999."""
    try:
        return datetime.combine(date.fromisoformat(day), time()) + timedelta(seconds=seconds)
    except OverflowError:
        return None


def span(p: Problem, seconds: float | None, as_text: bool) -> Cell:
    """A length of time as a cell."""
    if seconds is None or p.day is None or seconds > MOST_SECONDS:
        return seconds
    return hours(round(seconds)) if as_text else timedelta(seconds=round(seconds))


def hours(seconds: int) -> str:
    """A time such as 08:30:00; more than a day is told in hours."""
    sign, seconds = "-" * (seconds < 0), abs(seconds)
    return f"{sign}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def _short(value: float | None) -> float | None:
    """A number for readers, who have no use for a millionth of a metre."""
    return None if value is None else round(value, 3)


# -- reading


def read(sheets: Sequence[Sheet], problem: Problem) -> Solution:
    """The routes in the first table that has any. Times and loads beside them are not read."""
    table = next((table for table in found(sheets) if table.kind == "routes"), None)
    if table is None:
        raise fail("unknown-format", "has no table of routes, whose headings are route, position and name.")
    faults = Faults()
    number = {name: i for i, name in enumerate(problem.names)}
    by_route: dict[str, list[_Stop]] = {}
    for row_number, row in table.rows:
        name, route = (cells.text_of(table.cell(row, key)) for key in ("name", "route"))
        if name not in number:
            faults.add(
                "unknown-location", f"the problem has no '{short(name)}'.", table.where(row_number, "name")
            )
        if not route:
            message = "has no route; each row has one, and who is left out has no row."
            faults.add("missing-field", message, table.where(row_number, "route"))
        position = _position(table, row_number, row, faults)
        trip = cells.text_of(table.cell(row, "trip"))
        by_route.setdefault(route, []).append(_Stop(position, number.get(name, 0), trip, row_number, row))
    plan: list[tuple[int, list[int], int]] = []
    for route, stops in by_route.items():
        _require_order(table, stops, faults)
        vehicle = _vehicle(table, stops, problem, faults)
        path = _path(sorted(stops, key=lambda stop: stop.position), problem)
        if path[0] in problem.depots:
            depot, *path = path
        elif len(homes := problem.types[vehicle].depots) == 1:
            depot = homes[0]
        else:
            faults.add(
                "missing-field", f"route '{short(route)}' does not begin with a depot.", table.where(None)
            )
            continue
        end = problem.types[vehicle].end_of(depot)
        reloads = problem.types[vehicle].reloads  # an open route may end by a trip to nobody
        if path and path[-1] in problem.depots and not (end is None and reloads):
            if path[-1] != end:
                there = "at its last customer" if end is None else f"at {problem.names[end]}"
                message = f"route '{short(route)}' ends at {problem.names[path[-1]]}, its vehicle {there}."
                faults.add("unknown-location", message, table.where(stops[-1].number, "name"))
            path.pop()
        plan.append((depot, path, vehicle))
    faults.stop()
    return Solution.of(problem, plan)


@dataclass(frozen=True)
class _Stop:
    position: float
    location: int
    trip: str
    number: int  # of the row
    row: Row


def _path(stops: Sequence[_Stop], problem: Problem) -> list[int]:
    """The places of a route; between two trips without a depot, it goes by the one where it started."""
    first = stops[0].location
    path = [first]
    for before, stop in pairwise(stops):
        if before.trip != stop.trip and not {before.location, stop.location} & set(problem.depots):
            path.append(first if first in problem.depots else 0)
        path.append(stop.location)
    return path


def _vehicle(table: SheetTable, stops: Sequence[_Stop], problem: Problem, faults: Faults) -> int:
    """The type that a route says in one of its rows, or in all."""
    types = {vehicle.name: i for i, vehicle in enumerate(problem.types)}
    told = {cells.text_of(cell): s for s in stops if (cell := table.cell(s.row, "vehicle")) is not None}
    if not problem.vehicle_types:
        return 0  # where all are alike, the column is a name that people gave
    for name, stop in told.items():
        if name not in types:
            where = table.where(stop.number, "vehicle")
            faults.add("unknown-vehicle", f"there is no '{short(name)}'.", where)
    if len(told) > 1:
        where = table.where(list(told.values())[1].number, "vehicle")
        faults.add("conflicting-fields", "a route has one vehicle.", where)
    if not told and len(types) > 1:
        message = "the problem has several vehicle types; a column 'vehicle' says which."
        faults.add("missing-field", message, table.where(stops[0].number, "vehicle"))
    return types.get(next(iter(told), ""), 0)


def _require_order(table: SheetTable, stops: Sequence[_Stop], faults: Faults) -> None:
    """Finds stops of a route that have one position, or none where others have one."""
    at: dict[float, int] = {}
    placed = any(table.cell(stop.row, "position") is not None for stop in stops)
    for stop in stops:
        where = table.where(stop.number, "position")
        if placed and table.cell(stop.row, "position") is None:
            faults.add("missing-field", "has no position, which others of its route have.", where)
        elif (first := at.setdefault(stop.position, stop.number)) != stop.number:
            faults.add("bad-syntax", f"has the position of row {first} on the same route.", where)


def _position(table: SheetTable, number: int, row: Row, faults: Faults) -> float:
    """Where a row stands in its route; without such a column, where it stands in the table."""
    if (cell := table.cell(row, "position")) is None:
        return float(number)
    if (value := cells.number(cell, table.sheet.comma)) is None:
        faults.add("bad-syntax", f"'{short(str(cell))}' is not a number.", table.where(number, "position"))
    return value or 0.0


# -- pages to print

_STYLE = """
body { font: 11pt/1.35 system-ui, sans-serif; margin: 1.5cm; color: #111; }
section { break-after: page; }
section:last-child { break-after: auto; }
h1 { font-size: 16pt; margin: 0 0 .2em; }
p { margin: 0 0 .8em; }
table { border-collapse: collapse; width: 100%; }
th, td { border-bottom: 1px solid #999; padding: .35em .5em; text-align: left; vertical-align: top; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
td.done { border: 1px solid #999; width: 2em; }
"""


def write_pages(solution: Solution) -> bytes:
    """A page of HTML for each route, for its driver: where to be when, what to leave and what to take."""
    p = solution.problem
    pages = "\n".join(_page(p, *each) for each in routes(solution))
    title = html.escape(p.name)
    head = f'<meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style>'
    return encode(f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head><body>\n{pages}\n</body></html>\n')


def _page(p: Problem, number: int, route: Route, facts: RouteFacts) -> str:
    length = f"{facts.length / 1000:.1f} km" if _in_metres(p) else number_text(facts.length)
    count = sum(v in p.customers for v in route.visits)
    summary = f"{_clock(p, facts.start)} to {_clock(p, facts.end)}, {count} stop{'s' * (count > 1)}, {length}"
    columns = ("", "stop", "arrive", "window", "leave", "deliver", "pick up", "on board", "done")
    numeric = {"", "arrive", "leave", "deliver", "pick up", "on board"}
    head = "".join(f"<th{' class=n' if c in numeric else ''}>{c}</th>" for c in columns)
    rows = []
    position = 0
    for v in visits(p, route, facts):
        stop = v.location in p.customers
        position += stop
        reload = v.location in p.depots and v.arrival is not None and v.departure is not None
        row = [
            str(position) if stop else "",
            html.escape(p.names[v.location]) + " (reload)" * reload,
            _clock(p, v.arrival),
            _window(p, v.location) if stop else "",
            _clock(p, v.departure),
            _amount(p.deliveries[v.location]),
            _amount(p.pickups[v.location]),
            _amount(v.load),
            "",
        ]
        marks = ["n" if c in numeric else "done" if c == "done" and stop else "" for c in columns]
        rows.append(
            "".join(f"<td{f' class={m}' * bool(m)}>{c}</td>" for c, m in zip(row, marks, strict=True))
        )
    body = "\n".join(f"<tr>{row}</tr>" for row in rows)
    by = f", {p.types[route.vehicle].name}" if _typed(p) else ""
    title = html.escape(f"{p.name}: route {number}{by}")
    top = f"<h1>{title}</h1><p>{html.escape(summary)}</p>\n<table><tr>{head}</tr>"
    return f"<section>{top}\n{body}\n</table></section>"


def _in_metres(p: Problem) -> bool:
    return p.metric is Metric.HAVERSINE and p.distance_matrix is None


def _clock(p: Problem, seconds: float | None) -> str:
    """The time to the minute, with the date only where there is one and it is not the first."""
    if seconds is None or not math.isfinite(seconds):
        return ""
    if p.day is None:
        return number_text(seconds)
    minutes = round(seconds / 60)
    if p.day == ANY_DAY or 0 <= minutes < DAY / 60:
        return time_of_day(60 * minutes)
    at = _date(p.day, 60 * minutes) if abs(seconds) <= MOST_SECONDS else None
    return time_of_day(60 * minutes) if at is None else f"{at:%Y-%m-%d %H:%M}"


def _window(p: Problem, location: int) -> str:
    return ", ".join(_hours(p, *window) for window in p.windows_of(location))


def _hours(p: Problem, opening: float, closing: float) -> str:
    if opening <= 0 and math.isinf(closing):
        return ""
    if opening <= 0:
        return f"until {_clock(p, closing)}"
    return (
        f"from {_clock(p, opening)}" if math.isinf(closing) else f"{_clock(p, opening)}–{_clock(p, closing)}"
    )


def _amount(value: float | None) -> str:
    return "" if value is None or value == 0 else number_text(value)
