"""Problems as tables: CSV and Excel. docs/spreadsheets.md is the guide for those who write them.

A table of stops, and beside it one of vehicles, settings and, in place of straight lines, matrices. Times of
day and units make time a matter of seconds; without any of these, numbers are taken as they are, in the
user's own units. Nothing is guessed: where a unit decides and none is said, the heading is asked for it.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from chainroute.errors import ChainRouteError, Place, fail
from chainroute.formats.common import (
    CostObjective,
    Faults,
    Roads,
    build,
    costs_of,
    durations_at,
    measured,
    short,
)
from chainroute.formats.tables import cells
from chainroute.formats.tables import vehicles as table_vehicles
from chainroute.formats.tables.book import PLAIN, Book, StopRow, not_a_number
from chainroute.formats.tables.cells import LENGTH_UNITS, TIME_UNITS
from chainroute.formats.tables.grids import Cell, Sheet
from chainroute.formats.tables.headings import SPELLINGS, SheetTable, checked, letters
from chainroute.formats.tables.times import Times
from chainroute.formats.tables.vehicles import DECLARED, Vehicles
from chainroute.problem import EXTRAS, Problem
from chainroute.problem.attributes import Attribute, Kind, attributes
from chainroute.problem.budget import MAX_LOCATIONS, too_many_matrices
from chainroute.problem.measure import ANY_DAY, FloatArray, Metric, Rounding
from chainroute.problem.variants import Backhaul

HOLDS = {
    "several depots", "open routes", "linehauls first", "mixed backhauls", "time windows", "no time windows",
    "windows that never close", "service times", "a distance limit", "a limit with service",
    "a limit without service", "a fleet size", "no coordinates", "longitude and latitude",
    "a distance matrix", "a duration matrix", "rounding to integers", "rounding to one decimal",
    "times of day", "names",
    *EXTRAS,
}  # fmt: skip
DEPOT_WORDS = {"depot", "hub", "warehouse", "yard", "base", "lager", "zentrale", "entrepot"}
NO_PLACES_REMEDY = "Give one of them; of addresses, longitude and latitude must be looked up first."
LIKE_A_DEPOT = 0.8  # likeness to one of these from which a kind is taken for a mistake
SETTINGS = {
    "name": "name", "problem": "name", "timeunit": "time unit", "backhaul": "backhaul",
    "backhauls": "backhaul", "rounding": "rounding", "day": "day", "date": "day",
    "limitcountsservice": "limit counts service", "objective": "objective",
}  # fmt: skip


# -- reading


def read(
    sheets: Sequence[Sheet], name: str, rounding: Rounding | None, roads: Roads | None = None
) -> Problem:
    """The problem that the tables of these sheets describe, on straight lines unless roads are given."""
    faults = Faults()
    found = checked(sheets, faults)
    book = Book({table.kind: table for table in reversed(found) if not table.whose}, faults)
    book.own = {(table.kind, table.whose): table for table in reversed(found) if table.whose}
    if "stops" not in book.tables and "routes" in book.tables:
        raise fail("not-a-problem", "is a solution, not a problem.")
    if "stops" not in book.tables:
        raise fail("not-a-problem", "is a table that goes with one of stops, not a problem by itself.")
    _read_settings(book)
    faults.stop()
    depots, customers = _places(book)
    places = depots + customers
    if len(places) > MAX_LOCATIONS:
        raise fail("too-large", f"{len(places)} locations; at most {MAX_LOCATIONS}.", "stops")
    if not customers:
        raise fail("no-customer", "there is no row for a customer.", "stops")
    _doubt_kinds(book, customers)
    times = Times(book)
    coords, metric, length_unit = _coords(book, places)
    names = _names(depots, customers)
    delivery, pickup = (_amounts(book, places, key)[len(depots) :] for key in ("delivery", "pickup"))
    service = times.spans(places, "service")
    windows = times.windows(places)
    for (table, number, _), several in zip(depots, windows or (), strict=False):
        if len(several) > 1:
            faults.add("unsupported-feature", "a depot has one window.", table.where(number, "window"))
    more = [a for a in attributes(Problem, "customer") if a.columns and a.name not in LOADED]
    wishes = {a.name: _values(book, customers, a) for a in more}
    kinds = [kind for kind in ("distances", "durations") if kind in book.tables]
    _require_matrices(len(places), len(kinds) + len(book.own))
    given = {kind: _matrix(book, book.tables[kind], names, times) for kind in kinds}
    own = {key: _matrix(book, table, names, times) for key, table in book.own.items()}
    rule = rounding or _choice(book, "rounding", Rounding, Rounding.EXACT)
    backhaul = _choice(book, "backhaul", Backhaul, Backhaul.MIXED if any(pickup) else Backhaul.NONE)
    if (lengths := book.tables.get("distances")) is not None:
        length_unit = LENGTH_UNITS.get(lengths.columns["corner"].unit)
    units = table_vehicles.Units(times, metric, length_unit, "durations" in given, roads is not None)
    vehicles = table_vehicles.read(book, names[: len(depots)], units, any(delivery) or any(pickup), own)
    costs = _costs(book, vehicles)
    counts = _flag(book, "limit counts service")
    faults.stop()
    if rounding is not None and "distances" in given:
        raise fail("bad-option", "the file gives a matrix, which is not rounded.", "rounding")
    day = times.day
    faults.stop()
    distances, durations = given.get("distances"), given.get("durations")
    if vehicles.speed is not None:
        durations = durations_at(vehicles.speed, coords, metric, rule, distances)
    if roads is not None:
        matrix, timed = distances is not None or durations is not None, windows is not None or any(service)
        distances, durations = measured(roads, coords, metric, matrix, timed, day)
        day = day or ANY_DAY

    def spot(place: Place) -> str:
        field = place.field
        if field == "day" and "day" in book.settings:
            return book.settings["day"][1]
        if place.location is not None:
            table, number, _ = places[place.location]
            return table.where(number, _COLUMNS.get(field, field))
        if place.owner is not None or field == "vehicle_types":
            return vehicles.where(place)
        table = book.tables.get("vehicles", book.tables["stops"])
        return table.where(None, "count") if field == "fleet" else field

    title = cells.text_of(book.setting("name"))
    return build(
        spot,
        name=title or name,
        num_depots=len(depots),
        coords=coords,
        metric=metric,
        rounding=rule,
        distance_matrix=distances,
        duration_matrix=durations,
        vehicle_types=vehicles.types,
        **costs,
        **wishes,
        **{WINDOWS: _several(windows, len(depots))},
        backhaul=backhaul,
        limit_counts_service=counts,
        delivery=delivery,
        pickup=pickup,
        service=service[len(depots) :],
        time_windows=None if windows is None else [w[0] for w in windows],
        day=day,
        names=names,
    )


def _several(windows: Sequence[Any] | None, depots: int) -> Sequence[Any]:
    """The windows of customers that have more than one."""
    every = [w if len(w) > 1 else () for w in (windows or ())[depots:]]
    return every if any(every) else ()


(WINDOWS,) = (a.name for a in attributes(Problem, "customer") if a.kind is Kind.WINDOWS)
LOADED = ("delivery", "pickup", "service")  # of depots, too, which have none
_COLUMNS = {a.name: a.columns[0].heading for a in attributes(Problem, "customer") if a.columns} | {
    "time_windows": "opening",
    WINDOWS: "window",
}


def _read_settings(book: Book) -> None:
    if (table := book.tables.get("settings")) is None:
        return
    for number, row in table.rows:
        key = cells.text_of(table.cell(row, "setting"))
        name = SETTINGS.get(letters(key))
        if name is None:
            message = (
                f"'{short(key)}' is no setting; there are {', '.join(dict.fromkeys(SETTINGS.values()))}."
            )
            book.faults.add("unknown-field", message, table.where(number, "setting"))
        elif name in book.settings:
            book.faults.add("duplicate-section", f"'{name}' is set twice.", table.where(number, "setting"))
        elif (value := table.cell(row, "value")) is not None:
            book.settings[name] = (value, table.where(number, "value"))
    units = (PLAIN, *TIME_UNITS)
    if book.time_unit and book.time_unit not in units:
        message = f"'{short(book.time_unit)}' is not one of {', '.join(units)}."
        book.faults.add("unknown-value", message, book.settings["time unit"][1])


def _choice(book: Book, name: str, kind: Any, default: Any) -> Any:
    value, where = book.settings.get(name, (None, ""))
    if value is None:
        return default
    word = re.sub(r"[\s_]+", "-", cells.text_of(value).lower())
    try:
        return kind(word)
    except ValueError:
        book.faults.add("unknown-value", f"'{short(word)}' is not one of {', '.join(kind)}.", where)
        return default


def _flag(book: Book, name: str) -> bool:
    value, where = book.settings.get(name, (None, ""))
    if value is None:
        return False
    if (answer := cells.yes_or_no(value)) is None:
        book.faults.add("unknown-value", f"'{short(str(value))}' is neither yes nor no.", where)
    return bool(answer)


# -- places


def _places(book: Book) -> tuple[list[StopRow], list[StopRow]]:
    """The rows of depots, and those of customers."""
    stops = book.tables["stops"]
    every: list[StopRow] = [(stops, number, row) for number, row in stops.rows]
    if (table := book.tables.get("depots")) is not None:
        return [(table, number, row) for number, row in table.rows], every
    words = "kind" if "kind" in stops.columns else "name"
    depots = [place for place in every if _is_depot(stops.cell(place[2], words), exact=words == "name")]
    if not depots and words == "name" and every and not _demand(every[0]):
        depots = every[:1]
    if not depots:
        message = "no row is a depot: write 'depot' into a column 'kind', or put it first, without a demand."
        raise fail("no-depot", message, stops.where(None))
    rows = {number for _, number, _ in depots}
    return depots, [place for place in every if place[1] not in rows]


def _is_depot(cell: Cell, exact: bool) -> bool:
    text = cells.text_of(cell)
    if exact:
        return bool(re.fullmatch(r"depot\d*", letters(text)))
    return letters(text).rstrip("0123456789") in DEPOT_WORDS


def _doubt_kinds(book: Book, customers: Sequence[StopRow]) -> None:
    """Asks about a kind that looks like a misspelt depot, and about a pickup whose amount is a delivery."""
    for table, number, row in customers:
        kind = cells.text_of(table.cell(row, "kind"))
        near = difflib.get_close_matches(letters(kind), DEPOT_WORDS, 1, LIKE_A_DEPOT)
        if near and not _is_depot(kind, exact=False):
            message = f"'{short(kind)}' is no kind of stop; is '{near[0]}' meant?"
            book.faults.add("unknown-value", message, table.where(number, "kind"))
        picks_up = letters(kind) in SPELLINGS["stops"]["pickup"].split()
        if picks_up and table.cell(row, "pickup") is None and _demand((table, number, row)):
            heading = table.columns["delivery"].heading
            message = f"is a {kind}, but '{short(heading)}' is what a stop receives; write a column 'pickup'."
            book.faults.add("conflicting-fields", message, table.where(number, "kind"))


def _demand(place: StopRow) -> bool:
    table, _, row = place
    amounts = (cells.number(table.cell(row, key), table.sheet.comma) for key in ("delivery", "pickup"))
    return any(amounts)


def _names(depots: Sequence[StopRow], customers: Sequence[StopRow]) -> list[str]:
    """The names as they are written; unwritten ones are counted."""
    count = len(depots)
    defaults = ["depot"] if count == 1 else [f"depot {d}" for d in range(1, count + 1)]
    defaults += [str(i) for i in range(1, len(customers) + 1)]
    written = [cells.text_of(table.cell(row, "name")) for table, _, row in (*depots, *customers)]
    return [name or default for name, default in zip(written, defaults, strict=True)]


def _coords(
    book: Book, places: Sequence[StopRow]
) -> tuple[list[tuple[float, float]] | None, Metric, float | None]:
    """The coordinates, what they measure, and the metres in one unit of length, if that is known."""
    tables = {id(table): table for table, *_ in places}.values()
    columns = {name for table in tables for name in table.columns}
    if ({"lon", "lat"} & columns and not {"lon", "lat"} <= columns) or (
        {"x", "y"} & columns and not {"x", "y"} <= columns
    ):
        missing = next(
            b
            for a, b in (("lon", "lat"), ("lat", "lon"), ("x", "y"), ("y", "x"))
            if a in columns and b not in columns
        )
        raise fail("missing-field", f"there is no column '{missing}'.", next(iter(tables)).where(None))
    globe = "lon" in columns
    if not globe and "x" not in columns:
        if "distances" not in {*book.tables, *(kind for kind, _ in book.own)}:
            message = "there are neither columns lon and lat, or x and y, nor a table of distances."
            raise fail("no-distances", message, next(iter(tables)).where(None), NO_PLACES_REMEDY)
        return None, Metric.EUCLIDEAN, None
    keys = ("lon", "lat") if globe else ("x", "y")
    found = []
    for table, number, row in places:
        pair = []
        for key in keys:
            if table.cell(row, key) is None:
                book.faults.add("missing-field", f"has no {key}.", table.where(number, key))
            pair.append(book.number(table, number, row, key) or 0.0)
        found.append((pair[0], pair[1]))
    if globe:
        return found, Metric.HAVERSINE, 1.0
    units = {table.columns[key].unit for table in tables for key in keys if key in table.columns}
    if len(units) > 1:
        book.faults.add("unknown-value", "x and y have different units.", next(iter(tables)).where(None, "x"))
    unit = next(iter(units), "")
    return found, Metric.EUCLIDEAN, LENGTH_UNITS.get(unit)


def _amounts(book: Book, places: Sequence[StopRow], name: str) -> list[float]:
    found = []
    for table, number, row in places:
        value = book.number(table, number, row, name) or 0.0
        depot = table.kind == "depots" or _is_depot(table.cell(row, "kind"), exact=False)
        if value and depot:
            book.faults.add("unsupported-feature", "a depot has no demand.", table.where(number, name))
        found.append(value)
    return found


def _values(book: Book, customers: Sequence[StopRow], a: Attribute) -> list[Any]:
    """The value of an attribute for each customer, or nothing where no customer has one."""
    heading = a.columns[0].heading
    if a.kind is Kind.TEXTS:
        found = [cells.words(table.cell(row, heading)) for table, _, row in customers]
        return found if any(found) else []
    numbers = [_number(book, place, a) for place in customers]
    return numbers if any(value != a.missing for value in numbers) else []


def _number(book: Book, place: StopRow, a: Attribute) -> float:
    """The number of a customer. Columns of yes or no may say whether it is needed, or does not count."""
    table, number, row = place
    heading = a.columns[0].heading
    value = book.number(table, number, row, heading)
    answers = {yes: book.answer(table, number, row, column.heading) for yes, column in a.switches.items()}
    wanted, unwanted = answers.get(True), answers.get(False)
    if unwanted is not None and wanted is unwanted:
        message = f"contradicts column '{table.columns[a.switches[False].heading].heading}'."
        where = table.where(number, a.switches[True].heading)
        book.faults.add("conflicting-fields", message, where)
    if (wanted is True or unwanted is False) and value is None and table.cell(row, heading) is None:
        message = f"may be left out, but what does that cost? Write it into a column '{heading}'."
        book.faults.add("missing-field", message, table.where(number, heading))
    off = unwanted is True or wanted is False
    return float(a.missing) if value is None or off else value


def _costs(book: Book, vehicles: Vehicles) -> dict[str, float]:
    """The costs of all vehicles. Where ways or times have a price, that is the objective, or the one set."""
    usual = CostObjective.MONEY if vehicles.priced else CostObjective.DISTANCE
    objective = _choice(book, "objective", CostObjective, usual)
    fields = [
        a for t in vehicles.types for a in DECLARED.values() if a.is_cost and getattr(t, a.name) is not None
    ]
    if objective is CostObjective.TIME and fields:
        where = book.settings["objective"][1]
        book.faults.add("conflicting-fields", "does not go together with costs; say money.", where)
    return costs_of(objective, {})


# -- matrices


def _require_matrices(locations: int, matrices: int) -> None:
    if faults := too_many_matrices(locations, matrices, "distances"):
        raise ChainRouteError(faults)


def _matrix(book: Book, table: SheetTable, names: Sequence[str], times: Times) -> FloatArray:
    """The matrix from row to column, by name; an empty cell is no road."""
    kind = table.kind
    comma = table.sheet.comma
    heads = [cells.text_of(cell) for cell in table.sheet.rows[table.head][1:]]
    place = {name: i for i, name in enumerate(names)}
    listed = {cells.text_of(row[0]) for _, row in table.rows} & set(heads)
    missing = next((name for name in names if name not in listed), None)
    if missing is not None:
        message = f"there is no row or no column for '{short(missing)}'."
        book.faults.add("wrong-count", message, table.where(table.head + 1))
    found = np.full((len(names), len(names)) if missing is None else (0, 0), np.inf)
    seen = set()
    for name in heads:
        if name not in place:
            message = f"'{short(name)}' is none of the stops."
            book.faults.add("unknown-location", message, table.where(table.head + 1))
    units, unit = TIME_UNITS if kind == "durations" else LENGTH_UNITS, table.columns["corner"].unit
    if unit and unit not in units:
        message = f"'{short(unit)}' is not one of {', '.join(units)}."
        book.faults.add("unknown-value", message, table.where(table.head + 1, "corner"))
    scale = times.scale(table, "corner") if kind == "durations" and times.clock else 1.0
    for number, row in table.rows:
        name = cells.text_of(row[0])
        if name not in place or name in seen:
            message = f"'{short(name)}' {'has two rows' if name in seen else 'is none of the stops'}."
            book.faults.add("unknown-location", message, table.where(number))
            continue
        seen.add(name)
        for head, cell in zip(heads, row[1:], strict=False):
            if cell is None or head not in place:
                continue
            value = cells.number(cell, comma)
            if value is None or math.isnan(value):
                where = f"{table.where(number)}, column '{short(head)}'"
                book.faults.add("bad-syntax", not_a_number(cell), where)
            elif missing is None:
                found[place[name], place[head]] = value * scale
    return found
