"""The tables of a problem together: by kind, with their settings, and all that is wrong with them."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

from chainroute.formats.common import Faults, short
from chainroute.formats.tables import cells
from chainroute.formats.tables.grids import Cell, Row, is_formula
from chainroute.formats.tables.headings import SheetTable

PLAIN = "none"  # the time unit of numbers that are kept as they are
StopRow = tuple[SheetTable, int, Row]  # the table, the number of the row, the row


@dataclass
class Book:
    """The tables of a problem by kind, its settings, and what is wrong with them."""

    tables: dict[str, SheetTable]
    faults: Faults
    own: dict[tuple[str, str], SheetTable] = field(default_factory=dict)  # matrices of single vehicle types
    settings: dict[str, tuple[Cell, str]] = field(
        default_factory=dict
    )  # by name: the value, and where it stands

    def setting(self, name: str) -> Cell:
        return self.settings.get(name, (None, ""))[0]

    @property
    def time_unit(self) -> str:
        return cells.text_of(self.setting("time unit")).lower()

    def number(self, table: SheetTable, number: int, row: Row, name: str) -> float | None:
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

    def answer(self, table: SheetTable, number: int, row: Row, name: str) -> bool | None:
        """Yes or no, None for an empty or a faulty cell."""
        if (cell := table.cell(row, name)) is None:
            return None
        if (answer := cells.yes_or_no(cell)) is None:
            message = f"'{short(str(cell))}' is neither yes nor no."
            self.faults.add("unknown-value", message, table.where(number, name))
        return answer


def not_a_number(cell: Cell) -> str:
    text = short(str(cell))
    if is_formula(cell):
        return not_computed(text)
    if isinstance(cell, str) and re.fullmatch(r"[+-]?\d{1,3},\d{3}", cell):
        return f"'{text}' may be {text.replace(',', '.')} or {text.replace(',', '')}; write one of these."
    return f"'{text}' is not a number."


def not_computed(text: str) -> str:
    return f"'{text}' is a formula without its value: open and save it in Excel, or write the value."
