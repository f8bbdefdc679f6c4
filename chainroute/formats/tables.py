"""Problems as tables: CSV and Excel. docs/spreadsheets.md is the guide for those who write them.

A table of stops, and beside it one of vehicles, settings and, in place of straight lines, matrices. Times of
day and units make time a matter of seconds; without any of these, numbers are taken as they are, in the
user's own units. Nothing is guessed: where a unit decides and none is said, the heading is asked for it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import numpy as np

from chainroute.errors import fail
from chainroute.features import require
from chainroute.formats import cells
from chainroute.formats.cells import DAY, LENGTH_UNITS, SPEED_UNITS, TIME_UNITS, Moment
from chainroute.formats.common import (
    IS_SOLUTION,
    Faults,
    Roads,
    build,
    durations_at,
    measured,
    short,
    speed_of,
)
from chainroute.formats.grids import Cell, Row, Sheet, require_names, write_csv, write_workbook
from chainroute.formats.headings import Table, checked, letters
from chainroute.measure import ANY_DAY, FloatArray, Metric, Rounding
from chainroute.problem import Problem
from chainroute.validate import MAX_LOCATIONS
from chainroute.variants import Backhaul

HOLDS = {
    "several depots", "open routes", "linehauls first", "mixed backhauls", "time windows", "no time windows",
    "windows that never close", "service times", "a distance limit", "a limit with service",
    "a limit without service", "a fleet size", "no coordinates", "longitude and latitude",
    "a distance matrix", "a duration matrix", "rounding to integers", "rounding to one decimal",
    "times of day", "names",
}  # fmt: skip
NOT_STOPS = "is a table that goes with one of stops, not a problem by itself."
DEPOT_WORDS = {"depot", "hub", "warehouse", "yard", "base"}
SETTINGS = {
    "name": "name", "problem": "name", "timeunit": "time unit", "backhaul": "backhaul",
    "backhauls": "backhaul", "rounding": "rounding", "day": "day", "date": "day",
    "limitcountsservice": "limit counts service",
}  # fmt: skip
PLAIN = "none"  # the time unit of numbers that are kept as they are


# -- reading


@dataclass
class Book:
    """The tables of a problem by kind, its settings, and what is wrong with them."""

    tables: dict[str, Table]
    faults: Faults
    settings: dict[str, tuple[Cell, str]] = field(
        default_factory=dict
    )  # by name: the value, and where it stands

    def setting(self, name: str) -> Cell:
        return self.settings.get(name, (None, ""))[0]

    @property
    def time_unit(self) -> str:
        return cells.text_of(self.setting("time unit")).lower()

    def number(self, table: Table, number: int, row: Row, name: str) -> float | None:
        """The number in a cell, None for an empty or a faulty one."""
        if (cell := table.cell(row, name)) is None:
            return None
        value = cells.number(cell, table.sheet.comma)
        where = table.where(number, name)
        if value is None:
            self.faults.add("bad-syntax", not_a_number(cell), where)
        elif not math.isfinite(value):
            self.faults.add("not-finite", f"'{short(str(cell))}' is not a finite number.", where)
        else:
            return value
        return None


def not_a_number(cell: Cell) -> str:
    text = short(str(cell))
    if isinstance(cell, str) and re.fullmatch(r"[+-]?\d{1,3},\d{3}", cell):
        return f"'{text}' may be {text.replace(',', '.')} or {text.replace(',', '')}; write one of these."
    return f"'{text}' is not a number."


def read(
    sheets: Sequence[Sheet], name: str, rounding: Rounding | None, roads: Roads | None = None
) -> Problem:
    """The problem that the tables of these sheets describe, on straight lines unless roads are given."""
    faults = Faults()
    found = checked(sheets, faults)
    book = Book({table.kind: table for table in reversed(found)}, faults)
    if "stops" not in book.tables and "routes" in book.tables:
        raise fail("unknown-format", IS_SOLUTION)
    if "stops" not in book.tables:
        raise fail("unknown-format", NOT_STOPS)
    _read_settings(book)
    faults.stop()
    depots, customers = _places(book)
    places = depots + customers
    if len(places) > MAX_LOCATIONS:
        raise fail("too-large", f"{len(places)} locations; at most {MAX_LOCATIONS}.", "stops")
    if not customers:
        raise fail("no-customer", "there is no row for a customer.", "stops")
    times = _Times(book)
    vehicles = _Vehicles(book, len(depots))
    coords, metric, length_unit = _coords(book, places)
    names = _names(depots, customers)
    delivery, pickup = (_amounts(book, places, key)[len(depots) :] for key in ("delivery", "pickup"))
    service = times.spans(places, "service")
    windows = times.windows(places)
    given = {key: _matrix(book, key, names, times) for key in ("distances", "durations")}
    rule = rounding or _choice(book, "rounding", Rounding, Rounding.EXACT)
    backhaul = _choice(book, "backhaul", Backhaul, Backhaul.MIXED if any(pickup) else Backhaul.NONE)
    if (lengths := book.tables.get("distances")) is not None:
        length_unit = LENGTH_UNITS.get(lengths.columns["corner"].unit)
    speed = None
    if roads is None:  # which know better
        speed = _speed(book, vehicles, times, metric, length_unit, given["durations"] is not None)
    limit = _limit(book, vehicles, metric, length_unit)
    needs_capacity = any(delivery) or any(pickup)
    capacity = _capacity(book, vehicles, needs_capacity)
    fleet = _fleet(book, vehicles, names[: len(depots)])
    counts = _flag(book, "limit counts service")
    faults.stop()
    if rounding is not None and given["distances"] is not None:
        raise fail("bad-option", "the file gives a matrix, which is not rounded.", "rounding")
    day = times.day
    faults.stop()
    distances, durations = given["distances"], given["durations"]
    if speed is not None:
        durations = durations_at(speed, coords, metric, rule, distances)
    if roads is not None:
        matrix, timed = distances is not None or durations is not None, windows is not None or any(service)
        distances, durations = measured(roads, coords, metric, matrix, timed, day)
        day = day or ANY_DAY

    def spot(key: str, location: int | None) -> str:
        if key == "day" and "day" in book.settings:
            return book.settings["day"][1]
        if location is not None:
            table, number, _ = places[location]
            return table.where(number, _COLUMNS.get(key, key))
        table = book.tables.get("vehicles", book.tables["stops"])
        return table.where(None, _COLUMNS.get(key, key)) if key in _VEHICLE_FIELDS else key

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
        capacity=capacity,
        fleet=fleet,
        open=vehicles.returns is False,
        backhaul=backhaul,
        distance_limit=limit,
        limit_counts_service=counts,
        delivery=delivery,
        pickup=pickup,
        service=service[len(depots) :],
        time_windows=windows,
        day=day,
        names=names,
    )


Place = tuple[Table, int, Row]  # the table, the number of the row, the row
_COLUMNS = {"distance_limit": "limit", "fleet": "count", "time_windows": "opening"}
_VEHICLE_FIELDS = {"capacity", "fleet", "distance_limit", "open"}


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


def _places(book: Book) -> tuple[list[Place], list[Place]]:
    """The rows of depots, and those of customers."""
    stops = book.tables["stops"]
    every: list[Place] = [(stops, number, row) for number, row in stops.rows]
    if (table := book.tables.get("depots")) is not None:
        return [(table, number, row) for number, row in table.rows], every
    words = "kind" if "kind" in stops.columns else "name"
    depots = [place for place in every if _is_depot(stops.cell(place[2], words), exact=words == "name")]
    if not depots and words == "name" and every and not _demand(every[0]):
        depots = every[:1]
    if not depots:
        message = "no row is a depot: write 'depot' into a column 'kind', or put it first, without a demand."
        raise fail("no-depot", message, stops.where(None))
    return depots, [place for place in every if place not in depots]


def _is_depot(cell: Cell, exact: bool) -> bool:
    word = cells.text_of(cell).lower()
    return bool(re.fullmatch(r"depot(\s+\d+)?", word)) if exact else word in DEPOT_WORDS


def _demand(place: Place) -> bool:
    table, _, row = place
    amounts = (cells.number(table.cell(row, key), table.sheet.comma) for key in ("delivery", "pickup"))
    return any(amounts)


def _names(depots: Sequence[Place], customers: Sequence[Place]) -> list[str]:
    """As they are written; unwritten ones are counted."""
    count = len(depots)
    defaults = ["depot"] if count == 1 else [f"depot {d}" for d in range(1, count + 1)]
    defaults += [str(i) for i in range(1, len(customers) + 1)]
    written = [cells.text_of(table.cell(row, "name")) for table, _, row in (*depots, *customers)]
    return [name or default for name, default in zip(written, defaults, strict=True)]


def _coords(
    book: Book, places: Sequence[Place]
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


def _amounts(book: Book, places: Sequence[Place], name: str) -> list[float]:
    found = []
    for table, number, row in places:
        value = book.number(table, number, row, name) or 0.0
        depot = table.kind == "depots" or _is_depot(table.cell(row, "kind"), exact=False)
        if value and depot:
            book.faults.add("unsupported-feature", "a depot has no demand.", table.where(number, name))
        found.append(value)
    return found


# -- times


class _Times:
    """Times in seconds after the first midnight, or numbers as they are where nothing says what time is."""

    def __init__(self, book: Book) -> None:
        self.book = book
        self.asked: set[str] = set()  # columns whose unit has been asked for
        stops = [book.tables[kind] for kind in ("stops", "depots") if kind in book.tables]
        self.read = {
            (table.kind, number, name): self._parsed(table, number, row, name)
            for table in stops
            for number, row in table.rows
            for name in ("service", "opening", "closing", "window")
            if table.cell(row, name) is not None
        }
        moments = [m for pair in self.read.values() for m in pair]
        units = {table.columns[name].unit for table in stops for name in table.columns if name in _TIMED}
        vehicles = book.tables.get("vehicles")
        rated = vehicles is not None and "speed" in vehicles.columns and vehicles.columns["speed"].unit != ""
        said = bool(units - {""}) or any(not m.bare for m in moments) or rated or book.time_unit in TIME_UNITS
        self.clock = said and book.time_unit != PLAIN
        self.days = sorted({m.day for m in moments if m.day is not None})

    @property
    def day(self) -> str | None:
        """What the problem calls the day whose midnight is time 0."""
        given, where = self.book.settings.get("day", (None, ""))
        if given is not None and self.days:
            self.book.faults.add("duplicate-section", "the stops have dates of their own.", where)
        if isinstance(given, date):
            return given.isoformat()[:10]
        if given is not None:
            return str(given)
        if self.clock:
            return self.days[0].isoformat() if self.days else ANY_DAY
        return None

    def _parsed(self, table: Table, number: int, row: Row, name: str) -> tuple[Moment, ...]:
        cell, comma = table.cell(row, name), table.sheet.comma
        found = cells.window(cell, comma) if name == "window" else cells.moment(cell, comma)
        if found is None:
            such = "two times, such as 08:00-12:00" if name == "window" else "a time, such as 08:30"
            self.book.faults.add(
                "bad-syntax", f"'{short(str(cell))}' is not {such}.", table.where(number, name)
            )
            return ()
        return (found,) if isinstance(found, Moment) else found

    def value(self, table: Table, number: int | None, name: str, found: Moment) -> float:
        """In seconds after the first midnight, or the bare number."""
        where = table.where(number, name)
        if not math.isfinite(found.seconds):
            self.book.faults.add("not-finite", "is not a finite number.", where)
            return 0.0
        if not self.clock:
            if not found.bare:
                message = f"a time of day does not go together with the time unit '{PLAIN}'."
                self.book.faults.add("unknown-value", message, where)
            return found.seconds
        if found.bare:
            return found.seconds * self.scale(table, name, found.seconds != 0)
        if found.day is not None:
            return (found.day - self.days[0]).days * DAY + found.seconds
        if len(self.days) > 1 and name != "service":
            self.book.faults.add("bad-syntax", "the others have a date; this one needs one, too.", where)
        return found.seconds

    def scale(self, table: Table, name: str, needed: bool = True) -> float:
        """Seconds in the unit of a column; asks for it, once, where it is not said."""
        unit = table.columns[name].unit or self.book.time_unit
        where = table.where(None, name)
        if unit in TIME_UNITS:
            return TIME_UNITS[unit]
        if needed and where not in self.asked:
            self.asked.add(where)
            heading = table.columns[name].heading
            message = f"are these minutes or seconds? Write '{heading} (min)', or '{heading} (s)'."
            self.book.faults.add("unit-missing", message, where)
        return 1.0

    def spans(self, places: Sequence[Place], name: str) -> list[float]:
        found = []
        for table, number, _ in places:
            moments = self.read.get((table.kind, number, name), ())
            if any(m.day is not None for m in moments):
                self.book.faults.add("bad-syntax", "a date is no length of time.", table.where(number, name))
                moments = ()
            found.append(self.value(table, number, name, moments[0]) if moments else 0.0)
        return found

    def windows(self, places: Sequence[Place]) -> list[tuple[float, float]] | None:
        """Opening and closing of every place, None where no cell says anything of it."""
        if not any(name in ("opening", "closing", "window") for _, _, name in self.read):
            return None
        found = []
        for table, number, _ in places:
            bounds = [0.0, math.inf]
            both = self.read.get((table.kind, number, "window"), ())
            for i, name in enumerate(("opening", "closing")):
                single = self.read.get((table.kind, number, name), ())
                if both and single:
                    message = f"says again what column '{table.columns['window'].heading}' says."
                    self.book.faults.add("duplicate-section", message, table.where(number, name))
                if single:
                    bounds[i] = self.value(table, number, name, single[0])
                elif both:
                    bounds[i] = self.value(table, number, "window", both[i])
            found.append((bounds[0], bounds[1]))
        return found


_TIMED = ("service", "opening", "closing", "window")


# -- vehicles


class _Vehicles:
    """What the rows of vehicles say: today, all vehicles are alike."""

    def __init__(self, book: Book, depots: int) -> None:
        self.table = table = book.tables.get("vehicles")
        self.depots = depots
        self.capacity = self.limit = self.speed = None
        self.returns: bool | None = None
        self.counts: list[tuple[int, str, int | None]] = []  # the row, the depot, how many
        if table is None:
            return
        if not table.rows:
            book.faults.add("missing-field", "there is no row for a vehicle.", table.where(table.head + 1))
        self.capacity = self._common(book, "capacity", lambda n, row: book.number(table, n, row, "capacity"))
        self.limit = self._common(book, "limit", lambda n, row: book.number(table, n, row, "limit"))
        self.speed = self._common(book, "speed", lambda n, row: book.number(table, n, row, "speed"))
        self.returns = self._common(book, "returns", lambda n, row: self._yes(book, n, row))
        for number, row in table.rows:
            self.counts.append(
                (number, cells.text_of(table.cell(row, "depot")), self._count(book, number, row))
            )

    def says(self, name: str) -> bool:
        """Whether any row has something in this column, be it faulty."""
        rows = () if self.table is None else self.table.rows
        return any(self.table is not None and self.table.cell(row, name) is not None for _, row in rows)

    def _common(self, book: Book, name: str, read: Callable[[int, Row], Any]) -> Any:
        assert self.table is not None
        if name not in self.table.columns:
            return None
        values = [(number, read(number, row)) for number, row in self.table.rows]
        for number, value in values[1:]:
            if value != values[0][1]:
                message = "differs from the first vehicle's; vehicles that differ are not supported."
                book.faults.add("unsupported-feature", message, self.table.where(number, name))
        return values[0][1] if values else None

    def _yes(self, book: Book, number: int, row: Row) -> bool | None:
        assert self.table is not None
        if (cell := self.table.cell(row, "returns")) is None:
            return None
        if (answer := cells.yes_or_no(cell)) is None:
            message = f"'{short(str(cell))}' is neither yes nor no."
            book.faults.add("unknown-value", message, self.table.where(number, "returns"))
        return answer

    def _count(self, book: Book, number: int, row: Row) -> int | None:
        """How many such vehicles there are; None for as many as needed."""
        table = self.table
        assert table is not None
        if "count" not in table.columns:  # named vehicles are one each
            return 1 if table.cell(row, "name") is not None else None
        value = book.number(table, number, row, "count")
        if value is None:
            return None
        if not value.is_integer() or value < 0:
            book.faults.add(
                "bad-syntax", f"'{value:g}' is not a number of vehicles.", table.where(number, "count")
            )
            return None
        return int(value)


def _capacity(book: Book, vehicles: _Vehicles, needed: bool) -> float:
    if vehicles.capacity is not None:
        return float(vehicles.capacity)
    if needed and not vehicles.says("capacity"):
        if vehicles.table is None:
            message = "there is no table of vehicles; its column 'capacity' says what one holds."
            book.faults.add("missing-field", message, "vehicles")
        else:
            book.faults.add("missing-field", "there is no capacity.", vehicles.table.where(None, "capacity"))
    return 1.0


def _fleet(book: Book, vehicles: _Vehicles, depots: Sequence[str]) -> int | None:
    """Vehicles at each depot. A row that names no depot speaks of every one."""
    at: dict[str, int | None] = dict.fromkeys(depots, 0)
    table = vehicles.table
    if table is None or not vehicles.counts:
        return None
    for number, depot, count in vehicles.counts:
        if depot and depot not in at:
            book.faults.add(
                "unknown-location", f"there is no depot '{short(depot)}'.", table.where(number, "depot")
            )
        for name in [depot] if depot in at else depots:
            before = at[name]
            at[name] = None if before is None or count is None else before + count
    if len(set(at.values())) > 1:
        told = ", ".join(f"{name}: {'any' if n is None else n}" for name, n in at.items())
        message = f"depots have different numbers of vehicles, which is not supported ({told[:100]})."
        book.faults.add("unsupported-feature", message, table.where(None, "depot"))
    return next(iter(at.values()))


def _speed(
    book: Book, vehicles: _Vehicles, times: _Times, metric: Metric, length: float | None, matrix: bool
) -> float | None:
    """In units of length per unit of time; None where time is distance, or has a matrix."""
    table, speed = vehicles.table, vehicles.speed
    if speed is None:
        if times.clock and not matrix and not vehicles.says("speed"):
            message = (
                "times of day need a speed: a column 'speed (km/h)' of the vehicles, or a table of durations."
            )
            book.faults.add("missing-field", message, "vehicles" if table is None else table.where(None))
        return None
    assert table is not None
    where = table.where(None, "speed")
    if matrix:
        book.faults.add("unknown-field", "does not go together with durations.", where)
    if speed <= 0:
        book.faults.add("not-positive", f"is {speed:g}.", where)
    unit = SPEED_UNITS.get(table.columns["speed"].unit)
    if unit is None:
        if times.clock or (metric is Metric.HAVERSINE and book.time_unit != PLAIN):
            heading = table.columns["speed"].heading
            book.faults.add("unit-missing", f"is this km/h? Write '{heading} (km/h)'.", where)
        return float(speed)
    if length is None:
        message = "a speed with a unit needs lengths with one: 'x (km)' and 'y (km)', or 'distances (km)'."
        book.faults.add("unit-missing", message, where)
        return None
    return float(speed) * unit / length


def _limit(book: Book, vehicles: _Vehicles, metric: Metric, length: float | None) -> float | None:
    """In the problem's unit of length."""
    table, limit = vehicles.table, vehicles.limit
    if limit is None or table is None:
        return None
    unit = LENGTH_UNITS.get(table.columns["limit"].unit)
    where, heading = table.where(None, "limit"), table.columns["limit"].heading
    if (unit is None) != (length is None):
        message = (
            f"is this km? Write '{heading} (km)'."
            if unit is None
            else "x and y have no unit, but this one has."
        )
        book.faults.add("unit-missing", message, where)
    return float(limit) * (unit or 1.0) / (length or 1.0)


# -- matrices


def _matrix(book: Book, kind: str, names: Sequence[str], times: _Times) -> FloatArray | None:
    """From row to column, by name; an empty cell is no road."""
    if (table := book.tables.get(kind)) is None:
        return None
    comma = table.sheet.comma
    heads = [cells.text_of(cell) for cell in table.sheet.rows[table.head][1:]]
    place = {name: i for i, name in enumerate(names)}
    found = np.full((len(names), len(names)), np.inf)
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
            else:
                found[place[name], place[head]] = value * scale
    missing = [name for name in names if name not in seen or name not in heads]
    if missing:
        message = f"there is no row or no column for '{short(missing[0])}'."
        book.faults.add("wrong-count", message, table.where(table.head + 1))
    return found


# -- writing


def write(problem: Problem) -> bytes:
    """As a CSV, its tables below each other."""
    return write_csv(sheets(problem))


def write_excel(problem: Problem) -> bytes:
    return write_workbook(sheets(problem))


def sheets(problem: Problem) -> list[Sheet]:
    """The tables that a problem is read back from."""
    p = problem
    require(p, "a table", HOLDS)
    require_names((p.name, *p.names))
    speed = None if p.duration_matrix is None else speed_of(p)
    found = [Sheet(_stop_rows(p), "stops"), Sheet(_vehicle_rows(p, speed), "vehicles"),
             Sheet(_setting_rows(p), "settings")]  # fmt: skip
    if p.distance_matrix is not None:
        found.append(Sheet(_matrix_rows(p, "distances", p.distance_matrix), "distances"))
    if p.duration_matrix is not None and speed is None:
        found.append(Sheet(_matrix_rows(p, "durations", p.duration_matrix), "durations"))
    return found


def _stop_rows(p: Problem) -> list[Row]:
    columns: dict[str, Sequence[Cell]] = {
        "kind": ["depot" if i in p.depots else "customer" for i in range(p.num_locations)]
    }
    columns["name"] = list(p.names)
    if p.coords is not None:
        keys = ("x", "y") if p.metric is Metric.EUCLIDEAN else ("lon", "lat")
        columns |= zip(keys, p.coords.T.tolist(), strict=True)
    columns["delivery"] = p.deliveries.tolist()
    if p.pickup.any():
        columns["pickup"] = p.pickups.tolist()
    if p.service.any():
        columns["service"] = p.services.tolist()
    if p.time_windows is not None:
        columns["opens"] = p.time_windows[:, 0].tolist()
        columns["closes"] = [t if math.isfinite(t) else None for t in p.time_windows[:, 1].tolist()]
    return [list(columns), *zip(*columns.values(), strict=True)]


def _vehicle_rows(p: Problem, speed: float | None) -> list[Row]:
    row: dict[str, Cell] = {"count": p.fleet, "capacity": p.capacity}
    if p.distance_limit is not None:
        in_metres = p.metric is Metric.HAVERSINE and p.coords is not None and p.distance_matrix is None
        row["max distance (m)" if in_metres else "max distance"] = p.distance_limit
    if speed is not None:
        row["speed"] = speed
    if p.open:
        row["returns"] = "no"
    return [list(row), list(row.values())]


def _setting_rows(p: Problem) -> list[Row]:
    rows: list[Row] = [["setting", "value"], ["name", p.name], ["time unit", PLAIN]]
    if p.day is not None:
        rows.append(["day", p.day])
    if p.backhaul is not Backhaul.NONE:
        rows.append(["backhaul", p.backhaul.value])
    if p.rounding is not Rounding.EXACT:
        rows.append(["rounding", p.rounding.value])
    if p.limit_counts_service:
        rows.append(["limit counts service", "yes"])
    return rows


def _matrix_rows(p: Problem, corner: str, matrix: FloatArray) -> list[Row]:
    rows = ([name, *(v if math.isfinite(v) else None for v in row)]
            for name, row in zip(p.names, matrix.tolist(), strict=True))  # fmt: skip
    return [[corner, *p.names], *rows]
