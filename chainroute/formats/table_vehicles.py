"""Vehicles in tables: what their rows say of capacity, number, speed and limit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from chainroute.formats import cells
from chainroute.formats.cells import LENGTH_UNITS, SPEED_UNITS
from chainroute.formats.common import short
from chainroute.formats.grids import Row
from chainroute.formats.table_book import PLAIN, Book
from chainroute.formats.table_times import Times
from chainroute.measure import Metric


class Vehicles:
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


def capacity(book: Book, vehicles: Vehicles, needed: bool) -> float:
    if vehicles.capacity is not None:
        return float(vehicles.capacity)
    if needed and not vehicles.says("capacity"):
        if vehicles.table is None:
            message = "there is no table of vehicles; its column 'capacity' says what one holds."
            book.faults.add("missing-field", message, "vehicles")
        else:
            book.faults.add("missing-field", "there is no capacity.", vehicles.table.where(None, "capacity"))
    return 1.0


def fleet(book: Book, vehicles: Vehicles, depots: Sequence[str]) -> int | None:
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


def speed(
    book: Book, vehicles: Vehicles, times: Times, metric: Metric, length: float | None, matrix: bool
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


def limit(book: Book, vehicles: Vehicles, metric: Metric, length: float | None) -> float | None:
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
