"""A run's ledger: `log.csv`, a row per stretch, `curve.csv`, one per validation, and `curve.png`."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path

from chainroute.errors import fail
from chainroute.runtime.files import save as write

MOST_DIGITS = 19  # of a number of updates or instances
LOG, CURVE, PICTURE = "log.csv", "curve.csv", "curve.png"

LedgerRow = Mapping[str, str | int | float | None]


def record(path: Path, row: LedgerRow, key: str) -> None:
    """Adds a row, or replaces the last one if the two agree in the column `key`."""
    rows = read(path)
    if rows and rows[-1].get(key) == _text(row[key]):
        rows.pop()
    _put(path, [*rows, {name: _text(value) for name, value in row.items()}])


def forget(path: Path, step: int) -> None:
    """Drops rows of updates after `step`: a run that was killed makes those again."""
    rows = read(path)
    kept = [row for row in rows if not row["step"] or int(row["step"]) <= step]
    if len(kept) < len(rows):
        _put(path, kept)


def read(path: Path) -> list[dict[str, str]]:
    try:
        with open(path, newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file, restval=""))
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise fail("file-unreadable", f"{error}.", str(path)) from None
    if rows and not {"step", "instances"} <= rows[0].keys():
        raise fail("missing-field", "is not a ledger: it has no columns step and instances.", str(path))
    for number, row in enumerate(rows, 2):
        _require_sound(row, f"{path}, row {number}")
    return rows


def _require_sound(row: Mapping[str | None, str], where: str) -> None:
    """Raises what drawing and going on would stumble over."""
    if None in row:
        raise fail("wrong-count", "has more cells than there are columns.", where)
    for name in ("step", "instances"):
        if (word := row[name]) and not (word.isascii() and word.isdecimal() and len(word) < MOST_DIGITS):
            raise fail("bad-syntax", f"'{word[:40]}' in column {name} is not a whole number.", where)
    for name in ("cost", "estimated_gap"):
        try:
            float(row.get(name) or 0)
        except ValueError:
            raise fail("bad-syntax", f"'{row[name][:40]}' is not a number.", where) from None


def draw(folder: Path) -> None:
    """The curve as a picture: gap, or else cost, over instances. Without Matplotlib there is none."""
    rows = read(folder / CURVE)
    what = "estimated_gap" if any(row.get("estimated_gap") for row in rows) else "cost"
    points = [(int(row["instances"]), float(row[what])) for row in rows if row.get(what) and row["instances"]]
    if not points:
        return
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.add_subplot()
    axes.plot(*zip(*points, strict=True), marker=".")
    axes.set_xlabel("instances")
    axes.set_ylabel(f"{what.replace('_', ' ')} on the validation sets" + " [%]" * (what != "cost"))
    if what != "cost" and all(y > 0 for _, y in points):
        axes.set_yscale("log")
    axes.grid(alpha=0.3, which="both")
    data = io.BytesIO()
    figure.savefig(data, format="png")
    write(folder / PICTURE, data.getvalue())


def _put(path: Path, rows: Sequence[Mapping[str, str]]) -> None:
    columns = list(dict.fromkeys(name for row in rows for name in row))  # as they first appear
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write(path, text.getvalue().encode())


def _text(value: str | int | float | None) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
