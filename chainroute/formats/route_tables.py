"""Routes as tables, CSV or Excel, one row a stop; and as pages to print, one for each driver.

The tables are read back, so that a plan can be changed by hand in a spreadsheet and judged.
"""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

from chainroute.errors import fail
from chainroute.files import encode
from chainroute.formats import cells
from chainroute.formats.cells import DAY
from chainroute.formats.common import Faults, short
from chainroute.formats.grids import Cell, Row, Sheet, require_names, write_csv, write_workbook
from chainroute.formats.headings import Table, found
from chainroute.measure import ANY_DAY, Metric
from chainroute.numerals import told
from chainroute.problem import Problem
from chainroute.solution import Route, RouteFacts, Solution

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


def visits(problem: Problem, route: Route, facts: RouteFacts) -> list[Visit]:
    """All rows of a route: the depot, the stops and, unless the route is open, the depot again."""
    rows = [Visit(route.depot, None, None, None, facts.start, facts.initial_load, 0.0)]
    rows += [
        Visit(s.location, s.arrival, s.waiting, s.start, s.departure, s.load, s.distance) for s in facts.stops
    ]
    if not problem.open:
        rows.append(Visit(route.depot, facts.end, None, None, None, None, facts.length))
    return rows


def routes(solution: Solution) -> list[tuple[int, Route, RouteFacts]]:
    """The routes that visit anybody, numbered as in every other output."""
    pairs = enumerate(zip(solution.routes, solution.facts, strict=True), 1)
    return [(number, route, facts) for number, (route, facts) in pairs if route.visits]


# -- tables


def write(solution: Solution) -> bytes:
    """As a CSV."""
    return write_csv([_sheet(solution, as_text=True)])


def write_excel(solution: Solution) -> bytes:
    return write_workbook([_sheet(solution, as_text=False)])


def require_readable(problem: Problem) -> None:
    """Raises what keeps the names of the problem from being written into cells."""
    require_names(problem.names)


def _sheet(solution: Solution, as_text: bool) -> Sheet:
    p = solution.problem
    require_readable(p)
    rows: list[Row] = [[*COLUMNS[:-1], "distance (m)" if _in_metres(p) else "distance"]]
    for number, route, facts in routes(solution):
        for position, visit in enumerate(visits(p, route, facts)):
            times = (moment(p, visit.arrival, as_text), span(p, visit.wait, as_text),
                     moment(p, visit.start, as_text), moment(p, visit.departure, as_text))  # fmt: skip
            rows.append(
                [
                    number,
                    position,
                    p.names[visit.location],
                    *times,
                    _short(visit.load),
                    _short(visit.distance),
                ]
            )
    return Sheet(rows, "routes")


def moment(p: Problem, seconds: float | None, as_text: bool) -> Cell:
    """A time as a cell: of the day where the problem has one, else the number."""
    if seconds is None or p.day is None or not math.isfinite(seconds):
        return seconds
    whole = round(seconds)
    if p.day != ANY_DAY:
        at = datetime.combine(date.fromisoformat(p.day), time()) + timedelta(seconds=whole)
        return at.isoformat(" ") if as_text else at
    if 0 <= whole < DAY and not as_text:
        return (datetime.min + timedelta(seconds=whole)).time()
    return hours(whole) if as_text else timedelta(seconds=whole)


def span(p: Problem, seconds: float | None, as_text: bool) -> Cell:
    """A length of time as a cell."""
    if seconds is None or p.day is None:
        return seconds
    return hours(round(seconds)) if as_text else timedelta(seconds=round(seconds))


def hours(seconds: int) -> str:
    """Such as 08:30:00; more than a day is told in hours."""
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
    by_route: dict[str, list[tuple[float, int]]] = {}
    for row_number, row in table.rows:
        name, route = (cells.text_of(table.cell(row, key)) for key in ("name", "route"))
        if name not in number:
            faults.add(
                "unknown-location", f"the problem has no '{short(name)}'.", table.where(row_number, "name")
            )
        by_route.setdefault(route, []).append(
            (_position(table, row_number, row, faults), number.get(name, 0))
        )
    plan = []
    for route, stops in by_route.items():
        path = [location for _, location in sorted(stops, key=lambda stop: stop[0])]
        if path[0] in problem.depots:
            depot, *path = path
        elif problem.num_depots == 1:
            depot = 0
        else:
            faults.add(
                "missing-field", f"route '{short(route)}' does not begin with a depot.", table.where(None)
            )
            continue
        if path and path[-1] in problem.depots:
            path.pop()
        plan.append((depot, path))
    faults.stop()
    return Solution.of(problem, plan)


def _position(table: Table, number: int, row: Row, faults: Faults) -> float:
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
    length = f"{facts.length / 1000:.1f} km" if _in_metres(p) else told(facts.length)
    count = len(route.visits)
    summary = f"{_clock(p, facts.start)} to {_clock(p, facts.end)}, {count} stop{'s' * (count > 1)}, {length}"
    columns = ("", "stop", "arrive", "window", "leave", "deliver", "pick up", "on board", "done")
    numeric = {"", "arrive", "leave", "deliver", "pick up", "on board"}
    head = "".join(f"<th{' class=n' if c in numeric else ''}>{c}</th>" for c in columns)
    rows = []
    for position, v in enumerate(visits(p, route, facts)):
        stop = v.location in p.customers
        row = [
            str(position) if stop else "",
            html.escape(p.names[v.location]),
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
    title = html.escape(f"{p.name}: route {number}")
    top = f"<h1>{title}</h1><p>{html.escape(summary)}</p>\n<table><tr>{head}</tr>"
    return f"<section>{top}\n{body}\n</table></section>"


def _in_metres(p: Problem) -> bool:
    return p.metric is Metric.HAVERSINE and p.distance_matrix is None


def _clock(p: Problem, seconds: float | None) -> str:
    """To the minute, with the date only where there is one and it is not the first."""
    if seconds is None or not math.isfinite(seconds):
        return ""
    if p.day is None:
        return told(seconds)
    minutes = round(seconds / 60)
    if p.day == ANY_DAY or 0 <= minutes < DAY / 60:
        return f"{minutes // 60:02}:{minutes % 60:02}"
    return (
        f"{datetime.combine(date.fromisoformat(p.day), time()) + timedelta(minutes=minutes):%Y-%m-%d %H:%M}"
    )


def _window(p: Problem, location: int) -> str:
    opening, closing = p.windows[location].tolist()
    if opening <= 0 and math.isinf(closing):
        return ""
    if opening <= 0:
        return f"until {_clock(p, closing)}"
    return (
        f"from {_clock(p, opening)}" if math.isinf(closing) else f"{_clock(p, opening)}–{_clock(p, closing)}"
    )


def _amount(value: float | None) -> str:
    return "" if value is None or value == 0 else told(value)
