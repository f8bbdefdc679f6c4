"""Times in tables: of the day, with units, or as bare numbers whose unit is asked for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date

from chainroute.formats import cells
from chainroute.formats.cells import DAY, TIME_UNITS, Moment
from chainroute.formats.common import short
from chainroute.formats.grids import Row
from chainroute.formats.headings import Table
from chainroute.formats.table_book import PLAIN, Book, Place
from chainroute.measure import ANY_DAY


class Times:
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
