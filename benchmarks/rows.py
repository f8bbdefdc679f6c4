"""Results as rows of a CSV file, so that a benchmark that was stopped goes on where it was."""

import csv
from dataclasses import astuple, fields
from pathlib import Path
from typing import Any, TypeVar

R = TypeVar("R")


def read_rows(path: Path, kind: type[R]) -> list[R]:
    """The rows of a file, of a dataclass of plain values; none where there is no file yet."""
    if not path.exists():
        return []
    columns: Any = fields(kind)  # type: ignore[arg-type]
    with path.open(newline="") as file:
        return [kind(**{f.name: f.type(row[f.name]) for f in columns}) for row in csv.DictReader(file)]


def append_row(path: Path, row: Any) -> None:
    """Writes a row behind the others, below a line of names where it is the first."""
    first = not path.exists()
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", newline="") as file:
        writer = csv.writer(file)
        if first:
            writer.writerow(field.name for field in fields(row))
        writer.writerow(astuple(row))
