"""Vehicles in tables: a row is a vehicle type.

Rows that are alike but for name and depot are one fleet, unless each has both a name and a count.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chainroute.errors import Place
from chainroute.formats.common import short
from chainroute.formats.tables import cells
from chainroute.formats.tables.book import PLAIN, Book
from chainroute.formats.tables.cells import LENGTH_UNITS, LOAD_UNITS, SPEED_UNITS, TIME_UNITS
from chainroute.formats.tables.grids import Row
from chainroute.formats.tables.headings import SheetTable
from chainroute.formats.tables.times import Times
from chainroute.problem.attributes import BOTH, CLOSING, OPENING, Attribute, Kind, attributes
from chainroute.problem.fleet import VehicleType
from chainroute.problem.measure import FloatArray, Metric

DECLARED = {a.name: a for a in attributes(VehicleType)}


@dataclass(frozen=True)
class Units:
    """What decides how numbers of vehicles are read."""

    times: Times
    metric: Metric
    length: float | None  # metres in one unit of the problem's lengths, if that is known
    durations: bool  # there is a table of them
    roads: bool  # a routing server knows all ways


@dataclass(frozen=True)
class Vehicles:
    """What the rows of vehicles say."""

    table: SheetTable | None
    types: tuple[VehicleType, ...]
    rows: tuple[int, ...]  # of each type, the number of its first row
    speed: float | None  # where it is the same for all

    @property
    def priced(self) -> bool:
        """Whether any way or time has a price."""
        rates = [name for name, a in DECLARED.items() if a.unit.startswith("money per")]
        return any(getattr(t, rate) is not None for t in self.types for rate in rates)

    def where(self, place: Place) -> str:
        """Where a field of a VehicleType stands; without one, where all types do."""
        assert self.table is not None  # else there is no such field
        if place.owner is None:
            return self.table.where(None, "name")
        columns = [c.heading for c in DECLARED[place.field].columns] if place.field in DECLARED else []
        there = [heading for heading in columns if heading in self.table.columns]
        return self.table.where(self.rows[place.owner[1]], next(iter([*there, *columns]), place.field))


def read(
    book: Book,
    depots: Sequence[str],
    units: Units,
    loaded: bool,
    matrices: Mapping[tuple[str, str], FloatArray],
) -> Vehicles:
    """The types that the table of vehicles has; `matrices` by what they have and whose they are."""
    table = book.tables.get("vehicles")
    if table is None:
        _require_told(book, None, units, loaded)
        return Vehicles(None, (VehicleType(capacity=1.0),), (), None)
    if not table.rows:
        book.faults.add("missing-field", "there is no row for a vehicle.", table.where(table.head + 1))
        return Vehicles(table, (), (), None)
    _require_told(book, table, units, loaded)
    _require_one_load_unit(book, table)
    places = {name: d for d, name in reversed(list(enumerate(depots)))}
    rows = [_Row(book, table, number, row, places, units) for number, row in table.rows]
    fields = [row.fields() for row in rows]
    _capacities(book, table, rows, fields, loaded)
    speeds = {f["speed"] for f in fields}
    speed = fields[0]["speed"] if len(speeds) == 1 and not matrices else None
    kept = [(f, row.number) for f, row in zip(fields, rows, strict=True) if f["count"] != 0]
    for f, _ in kept:
        f["speed"] = None if speed is not None else f["speed"]
    _matrices(book, kept, matrices)
    types = "count" in table.columns and all(f["name"] for f, _ in kept)  # each row is one, be they alike
    alike = len(kept) == 1 or not types
    if alike and (fleet := _fleet([f for f, _ in kept], range(len(depots)))) is not None:
        number = None if fleet == math.inf else int(fleet)
        kept = [({**kept[0][0], "name": "", "depot": None, "count": number}, kept[0][1])]
    elif not kept:
        book.faults.add("not-positive", "there is no vehicle at all.", table.where(None, "count"))
    _distinguish([f for f, _ in kept], depots)
    return Vehicles(table, tuple(VehicleType(**f) for f, _ in kept), tuple(n for _, n in kept), speed)


def _says(table: SheetTable, name: str) -> bool:
    """Whether any row has something in this column, be it faulty."""
    return any(table.cell(row, name) is not None for _, row in table.rows)


def _require_told(book: Book, table: SheetTable | None, units: Units, loaded: bool) -> None:
    """A capacity where there is anything to carry, and a speed where times are of the day."""
    if loaded and (table is None or not _says(table, "capacity")):
        told = "there is no table of vehicles; its column 'capacity' says what one holds."
        message = told if table is None else "there is no capacity."
        where = "vehicles" if table is None else table.where(None, "capacity")
        book.faults.add("missing-field", message, where)
    timed = units.times.clock and not units.durations and not units.roads
    if timed and (table is None or not _says(table, "speed")):
        message = (
            "times of day need a speed: a column 'speed (km/h)' of the vehicles, or a table of durations."
        )
        book.faults.add("missing-field", message, "vehicles" if table is None else table.where(None))


def _require_one_load_unit(book: Book, table: SheetTable) -> None:
    """Capacities in tonnes do not hold deliveries in kilograms."""
    room = LOAD_UNITS.get(table.columns["capacity"].unit) if "capacity" in table.columns else None
    stops = book.tables["stops"].columns
    for column in (stops[name] for name in ("delivery", "pickup") if name in stops):
        load = LOAD_UNITS.get(column.unit)
        if room and load and room != load:
            message = f"is in {room}, but the stops' '{short(column.heading)}' in {load}; use one unit."
            book.faults.add("unknown-value", message, table.where(None, "capacity"))


def _capacities(
    book: Book, table: SheetTable, rows: Sequence[_Row], fields: Sequence[dict[str, Any]], loaded: bool
) -> None:
    """Fills in what no row needs, and asks for what one of several lacks."""
    said = _says(table, "capacity")
    for row, f in zip(rows, fields, strict=True):
        if f["capacity"] is None and table.cell(row.row, "capacity") is None and loaded and said:
            message = "other vehicles have a capacity, this one does not."
            book.faults.add("missing-field", message, table.where(row.number, "capacity"))
        f["capacity"] = 1.0 if f["capacity"] is None else f["capacity"]


def _matrices(
    book: Book,
    kept: Sequence[tuple[dict[str, Any], int]],
    matrices: Mapping[tuple[str, str], FloatArray],
) -> None:
    """Gives the matrices of single types to these."""
    names = {f["name"] for f, _ in kept}
    for (kind, whose), matrix in matrices.items():
        for f, _ in kept:
            if f["name"] == whose:
                f["distance_matrix" if kind == "distances" else "duration_matrix"] = matrix
        if whose not in names:
            where = book.own[kind, whose].where(book.own[kind, whose].head + 1, "corner")
            book.faults.add("unknown-vehicle", f"there is no vehicle '{short(whose)}'.", where)


def _fleet(fields: Sequence[dict[str, Any]], depots: range) -> float | None:
    """How many vehicles every depot has, infinite for as many as needed; None where vehicles or depots
    differ."""
    matrices = {"distance_matrix", "duration_matrix"}
    alike = [{k: v for k, v in f.items() if k not in ("name", "count", "depot")} for f in fields]
    if not fields or any(matrices & f.keys() for f in alike) or any(f != alike[0] for f in alike):
        return None
    at = dict.fromkeys(depots, 0.0)
    for f in fields:
        for depot in depots if f["depot"] is None else [f["depot"]]:
            at[depot] += math.inf if f["count"] is None else f["count"]
    return at[0] if len(set(at.values())) == 1 else None


def _distinguish(fields: Sequence[dict[str, Any]], depots: Sequence[str]) -> None:
    """Vehicles of one name at several depots are told apart by these."""
    twice = {name for name, times in Counter(f["name"] for f in fields).items() if times > 1 and name}
    for f in fields:
        if f["name"] in twice and f["depot"] is not None:
            f["name"] = f"{f['name']} ({depots[f['depot']]})"


class _Row:
    """A row of the table of vehicles, read column by column."""

    def __init__(
        self, book: Book, table: SheetTable, number: int, row: Row, depots: Mapping[str, int], units: Units
    ) -> None:
        self.book, self.table, self.number, self.row = book, table, number, row
        self.depots, self.units = depots, units

    def fields(self) -> dict[str, Any]:
        """The fields of a VehicleType."""
        return {
            a.name: self.count() if a.name == "count" else self.read(a)
            for a in DECLARED.values()
            if a.columns
        }

    def read(self, a: Attribute) -> Any:
        """The value of an attribute, its default where no cell has one."""
        value = self._value(a, a.columns[0].heading)
        return a.default if value is None else value

    def _value(self, a: Attribute, heading: str) -> Any:
        match a.kind:
            case Kind.TEXT:
                return cells.text_of(self.table.cell(self.row, heading))
            case Kind.WHOLE:
                return self.whole(heading)
            case Kind.FLAG:
                answer = self.book.answer(self.table, self.number, self.row, heading)
                return None if answer is None else answer is not a.columns[0].negated
            case Kind.TEXTS:
                return frozenset(cells.words(self.table.cell(self.row, heading)))
            case Kind.DEPOT:
                return self.depot(heading)
            case Kind.DEPOTS:
                words = cells.words(self.table.cell(self.row, heading))
                return tuple(self.number_of(name, heading) for name in words)
            case Kind.WINDOW:
                return self.window(a)
        by_unit: dict[str, Callable[[str], float | None]] = {
            "money per length": self.rate,
            "money per time": self.wage,
            "length": self.length,
            "time": lambda name: self.units.times.single(self.table, self.number, name),
            "speed": self.speed,
        }
        return by_unit.get(a.unit, self.value)(heading)

    def where(self, name: str) -> str:
        return self.table.where(self.number, name)

    def value(self, name: str) -> float | None:
        return self.book.number(self.table, self.number, self.row, name)

    def whole(self, name: str) -> int | None:
        value = self.value(name)
        if value is not None and (not value.is_integer() or value < 0):
            message = f"'{value:g}' is not a number of {'vehicles' if name == 'count' else name}."
            self.book.faults.add("bad-syntax", message, self.where(name))
            return None
        return None if value is None else int(value)

    def count(self) -> int | None:
        """How many such vehicles there are; None for as many as needed. Without a column, a name is one."""
        if "count" not in self.table.columns:
            return 1 if self.table.cell(self.row, "name") is not None else None
        return self.whole("count")

    def depot(self, name: str) -> int | None:
        word = cells.text_of(self.table.cell(self.row, name))
        return self.number_of(word, name) if word else None

    def number_of(self, depot: str, column: str) -> int:
        if depot in self.depots:
            return self.depots[depot]
        message = f"there is no depot '{short(depot)}'."
        self.book.faults.add("unknown-location", message, self.where(column))
        return 0

    def window(self, a: Attribute) -> tuple[float, float] | None:
        """Two times, in a column each or in one."""
        names = [column.heading for column in a.columns]
        times = self.units.times
        begins, ends = (times.single(self.table, self.number, names[end]) for end in (OPENING, CLOSING))
        both = times.read.get((self.table.kind, self.number, names[BOTH]), ())
        if both and (begins is not None or ends is not None):
            message = f"says again what column '{self.table.columns[names[BOTH]].heading}' says."
            where = self.where(names[CLOSING if begins is None else OPENING])
            self.book.faults.add("duplicate-section", message, where)
        if both:
            begins, ends = (times.value(self.table, self.number, names[BOTH], moment) for moment in both)
        if begins is None and ends is None:
            return None
        return 0.0 if begins is None else begins, math.inf if ends is None else ends

    def unit(self, name: str, units: Mapping[str, float]) -> float | None:
        return units.get(self.table.columns[name].unit)

    def rate(self, name: str) -> float | None:
        """The price of the problem's unit of length."""
        if (value := self.value(name)) is None:
            return None
        unit, length = self.unit(name, LENGTH_UNITS), self.units.length
        self.same(name, unit, "is this per km? Write 'cost per km'.")
        return value * (length or 1.0) / (unit or 1.0)

    def wage(self, name: str) -> float | None:
        """The price of the problem's unit of time."""
        if (value := self.value(name)) is None:
            return None
        unit = self.unit(name, TIME_UNITS)
        if self.units.times.clock and unit is None:
            self.ask(name, "is this per hour? Write 'cost per hour'.")
        return value / unit if unit is not None and self.units.times.clock else value

    def length(self, name: str) -> float | None:
        """A length in the problem's unit of length."""
        if (value := self.value(name)) is None:
            return None
        unit, length = self.unit(name, LENGTH_UNITS), self.units.length
        self.same(name, unit, f"is this km? Write '{self.table.columns[name].heading} (km)'.")
        return value * (unit or 1.0) / (length or 1.0)

    def same(self, name: str, unit: float | None, question: str) -> None:
        """Lengths have a unit here where they have one elsewhere, and not otherwise."""
        if (unit is None) != (self.units.length is None):
            self.ask(name, question if unit is None else "x and y have no unit, but this one has.")

    def ask(self, name: str, question: str) -> None:
        """Asks what the unit of a column is, once."""
        where = self.table.where(None, name)
        if where not in self.units.times.asked:
            self.units.times.asked.add(where)
            self.book.faults.add("unit-missing", question, where)

    def speed(self, name: str) -> float | None:
        """The speed in units of length per unit of time; None where time is distance, or has a matrix."""
        units, table = self.units, self.table
        if units.roads:
            return None
        if (value := self.value(name)) is None:
            needed = units.times.clock and not units.durations and _says(table, name)
            if needed and table.cell(self.row, name) is None:
                message = "other vehicles have a speed, this one does not."
                self.book.faults.add("missing-field", message, self.where(name))
            return None
        if units.durations:
            message = "does not go together with durations."
            self.book.faults.add("unknown-field", message, self.where(name))
        if value <= 0:
            self.book.faults.add("not-positive", f"is {value:g}.", self.where(name))
            return None
        unit = self.unit(name, SPEED_UNITS)
        if unit is None:
            if units.times.clock or (units.metric is Metric.HAVERSINE and self.book.time_unit != PLAIN):
                heading = table.columns[name].heading
                self.ask(name, f"is this km/h? Write '{heading} (km/h)'.")
            return value
        if units.length is None:
            message = (
                "a speed with a unit needs lengths with one: 'x (km)' and 'y (km)', or 'distances (km)'."
            )
            self.ask(name, message)
            return None
        return value * unit / units.length
