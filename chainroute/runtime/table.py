"""A table: for the terminal, as Markdown, CSV and JSON."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

ResultCell = str | int | float | None
# Of numbers in a column; others have three.
DECIMALS = {"s": 1, "s per 1,000": 1, "s each": 2, "memory GiB": 2, "for s": 0, "P_tr": 2}


@dataclass(frozen=True)
class Table:
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[ResultCell]]
    notes: Sequence[str] = ()

    def texts(self) -> list[list[str]]:
        """The rows as people write them."""
        decimals = [DECIMALS.get(column.rpartition(": ")[2], 3) for column in self.columns]
        return [[text(cell, places) for cell, places in zip(row, decimals, strict=True)] for row in self.rows]

    def markdown(self) -> str:
        lines = [self.columns, ["---"] * len(self.columns), *self.texts()]
        table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        return "\n\n".join([f"**{self.title}**", table, *self.notes]) + "\n"

    def csv(self) -> str:
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(self.rows)
        return buffer.getvalue()

    def as_dict(self) -> dict[str, Any]:
        rows = [dict(zip(self.columns, row, strict=True)) for row in self.rows]
        return {"title": self.title, "rows": rows, "notes": list(self.notes)}


def text(cell: ResultCell, decimals: int) -> str:
    if isinstance(cell, float):
        return f"{cell:.1f}" if abs(cell) >= 1000 else f"{cell:.{decimals}f}"
    return "" if cell is None else str(cell)
