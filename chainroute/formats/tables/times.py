"""Times in tables: of the day, with units, or as bare numbers whose unit is asked for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date

from chainroute.formats.common import short
from chainroute.formats.tables import cells
from chainroute.formats.tables.book import PLAIN, Book, StopRow, not_computed
from chainroute.formats.tables.cells import DAY, TIME_UNITS, Moment
from chainroute.formats.tables.grids import Row, is_formula
from chainroute.formats.tables.headings import SheetTable
from chainroute.problem import Problem, VehicleType
from chainroute.problem.attributes import BOTH, Attribute, Kind, attributes
from chainroute.problem.measure import ANY_DAY


class Times:
    """Times in seconds after the first midnight, or numbers as they are where nothing says what time is."""

    def __init__(self, book: Book) -> None:
        self.book = book
        self.asked: set[str] = set()  # columns whose unit has been asked for
        timed = [(table, _TIMED[kind]) for kind, table in book.tables.items() if kind in _TIMED]
        self.read = {
            (table.kind, number, name): self._parsed(table, number, row, name)
            for table, names in timed
            for number, row in table.rows
            for name in names
            if table.cell(row, name) is not None
        }
        moments = [m for pair in self.read.values() for m in pair]
        used = [table.columns[name] for table, names in timed for name in names if name in table.columns]
        columns = book.tables["vehicles"].columns if "vehicles" in book.tables else {}
        rated = any(columns[name].unit != "" for name in _RATES if name in columns)
        said = (
            any(column.unit for column in used)
            or any(not m.bare for m in moments)
            or rated
            or book.time_unit in TIME_UNITS
        )
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

    def _parsed(self, table: SheetTable, number: int, row: Row, name: str) -> tuple[Moment, ...]:
        cell, comma = table.cell(row, name), table.sheet.comma
        found: Sequence[Moment] | None = None
        if name == "window":
            found = cells.windows(cell, comma)
        elif name in _TWO_TIMES:
            found = cells.window(cell, comma)
        elif (single := cells.moment(cell, comma)) is not None:
            found = (single,)
        if found is None:
            two = name in ("window", *_TWO_TIMES)
            such = "two times, such as 08:00-12:00" if two else "a time, such as 08:30"
            text = short(str(cell))
            message = not_computed(text) if is_formula(cell) else f"'{text}' is not {such}."
            self.book.faults.add("bad-syntax", message, table.where(number, name))
            return ()
        return tuple(found)

    def value(self, table: SheetTable, number: int | None, name: str, found: Moment) -> float:
        """The time in seconds after the first midnight, or the bare number."""
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
        if len(self.days) > 1 and name not in _SPANS:
            self.book.faults.add("bad-syntax", "the others have a date; this one needs one, too.", where)
        return found.seconds

    def scale(self, table: SheetTable, name: str, needed: bool = True) -> float:
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

    def spans(self, places: Sequence[StopRow], name: str) -> list[float]:
        found = []
        for table, number, _ in places:
            found.append(self.single(table, number, name) or 0.0)
        return found

    def single(self, table: SheetTable, number: int, name: str) -> float | None:
        """The time or length of time in a cell, None where there is none."""
        moments = self.read.get((table.kind, number, name), ())
        if name in _SPANS and any(m.day is not None for m in moments):
            self.book.faults.add("bad-syntax", "a date is no length of time.", table.where(number, name))
            return None
        return self.value(table, number, name, moments[0]) if moments else None

    def windows(self, places: Sequence[StopRow]) -> list[list[tuple[float, float]]] | None:
        """All windows of every place, None where no cell says anything of them."""
        if not any(name in ("opening", "closing", "window") for _, _, name in self.read):
            return None
        return [self._windows(table, number) for table, number, _ in places]

    def _windows(self, table: SheetTable, number: int) -> list[tuple[float, float]]:
        bounds = [self.single(table, number, name) for name in ("opening", "closing")]
        if not (moments := self.read.get((table.kind, number, "window"), ())):
            return [(0.0 if bounds[0] is None else bounds[0], math.inf if bounds[1] is None else bounds[1])]
        for name, bound in zip(("opening", "closing"), bounds, strict=True):
            if bound is not None:
                message = f"says again what column '{table.columns['window'].heading}' says."
                self.book.faults.add("duplicate-section", message, table.where(number, name))
        ends = [self.value(table, number, "window", moment) for moment in moments]
        return list(zip(ends[::2], ends[1::2], strict=True))


def _timed(those: Sequence[Attribute]) -> list[str]:
    return [c.heading for a in those if a.unit == "time" for c in a.columns]


_OF_CUSTOMERS, _OF_VEHICLES = attributes(Problem, "customer"), attributes(VehicleType)
_PLACES = (*_timed(_OF_CUSTOMERS), "opening", "closing", "window")
_TIMED = {"stops": _PLACES, "depots": _PLACES, "vehicles": tuple(_timed(_OF_VEHICLES))}
# Columns with lengths of time, with two times, and with what is paid or driven per unit of time.
_SPANS = _timed([a for a in (*_OF_CUSTOMERS, *_OF_VEHICLES) if a.kind is not Kind.WINDOW])
_TWO_TIMES = [a.columns[BOTH].heading for a in _OF_VEHICLES if a.kind is Kind.WINDOW]
_RATES = [c.heading for a in _OF_VEHICLES if a.unit in ("speed", "money per time") for c in a.columns]
