"""Grids of cells: CSV and the sheets of Excel workbooks, read and written. What the cells mean is for others.

Several tables may stand below each other in one CSV, as they stand in the sheets of a workbook.
"""

import csv
import io
import math
import re
import warnings
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import IO, Any

from chainroute.errors import ChainRouteError, fail
from chainroute.formats.common import plain, short
from chainroute.problem.budget import MAX_CELLS, MAX_LOCATIONS
from chainroute.runtime.files import MAX_BYTES, encode

Cell = str | float | bool | date | datetime | time | timedelta | None
Row = Sequence[Cell]

DELIMITERS = ",;\t|"
MAX_ROWS = 4 * (MAX_LOCATIONS + 100)  # of one sheet: stops, both matrices and the rest
MAX_COLUMNS = MAX_LOCATIONS + 100
MAX_CELL_CHARACTERS = 32_000  # Excel has room for a few more
MAX_TOKEN_BYTES = 1_000_000  # bytes of a workbook's XML without a tag; a cell has up to 32,767 characters
MAX_OTHER_ELEMENTS = 2_000_000  # tags of a part that belong to no cell, such as texts that cells share
TAGS_OF_CELL = 8  # tags that a cell has: itself, its value, its formula, its text, each with an end
MAX_UNPACKED_BYTES = 4 * MAX_BYTES  # bytes of a workbook's parts together


@dataclass(frozen=True)
class Sheet:
    """The cells of a CSV or of one sheet. An empty cell is None; rows may differ in length."""

    rows: Sequence[Row]
    name: str = ""  # of the sheet; a CSV has none
    place: str = ""  # what errors call it
    delimiter: str = ""  # what separates the cells of a CSV

    @property
    def comma(self) -> bool:
        """Whether a comma in a number is its decimal mark, since another mark separates the cells."""
        return self.delimiter not in ("", ",")


def read_csv(text: str, delimiter: str, name: str = "", place: str = "") -> Sheet:
    rows: list[Row] = []
    cell_count = 0
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        for cells in reader:
            cell_count += len(cells)
            _require_size(len(rows) + 1, len(cells), place, cell_count)
            rows.append([_unguarded(cell.strip()) or None for cell in cells])
    except csv.Error as error:
        where = f"{place}, row {len(rows) + 1}".removeprefix(", ")
        raise fail(
            "bad-syntax", f"the quotes do not match, or a cell is too long ({error}).", where
        ) from None
    return Sheet(rows, name, place, delimiter)


def _require_size(rows: int, columns: int, where: str, cells: int = 0) -> None:
    if cells > MAX_CELLS:
        raise fail("too-large", f"has more than {MAX_CELLS:,} cells.", where)
    if rows > MAX_ROWS:
        raise fail("too-large", f"has more than {MAX_ROWS} rows.", where)
    if columns > MAX_COLUMNS:
        raise fail("too-large", f"row {rows} has more than {MAX_COLUMNS} cells.", where)


def is_workbook(data: bytes) -> bool:
    """Whether this is an Excel workbook (.xlsx, .xlsm), by what the archive contains."""
    if not data.startswith(b"PK"):
        return False
    try:
        return "xl/workbook.xml" in zipfile.ZipFile(io.BytesIO(data)).namelist()
    except (zipfile.BadZipFile, ValueError, EOFError, NotImplementedError):
        return False


def read_workbook(data: bytes, where: str) -> list[Sheet]:
    """All sheets that have cells, hidden ones left out; of formulas, the values that Excel last computed, and
    the formulas themselves where it never did."""
    from openpyxl import load_workbook  # takes a while to import

    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            _require_bounded(archive, where)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about fonts, styles and print settings
            book = load_workbook(io.BytesIO(data), read_only=True, data_only=True)
            shown = [sheet for sheet in book.worksheets if sheet.sheet_state == "visible"]
            for sheet in shown:
                sheet.reset_dimensions()  # that a file claims: rows would be filled up to them
            formulas = _formulas(data)
            sheets = [(s.title, _rows(_computed(s, formulas.get(s.title, ())), s.title)) for s in shown]
    except ChainRouteError:
        raise
    except Exception as error:  # of a damaged workbook, openpyxl raises whatever its parts raise
        reason = str(error).splitlines()[0][:100] if str(error) else type(error).__name__
        raise fail("bad-syntax", f"is a damaged Excel workbook: {reason}.", where) from None
    return [Sheet(rows, name, f"sheet '{name}'") for name, rows in sheets if rows]


def _formulas(data: bytes) -> dict[str, Iterable[Row]]:
    """The rows of each sheet with formulas in place of their values; nothing where there are no formulas."""
    from openpyxl import load_workbook

    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        parts = [name for name in archive.namelist() if name.startswith("xl/worksheets/")]
        if not any(_has_formulas(archive, part) for part in parts):
            return {}
    book = load_workbook(io.BytesIO(data), read_only=True)
    for sheet in book.worksheets:
        sheet.reset_dimensions()
    return {sheet.title: sheet.iter_rows(values_only=True) for sheet in book.worksheets}


def _require_bounded(archive: zipfile.ZipFile, where: str) -> None:
    """Looks at the parts as bytes before they are parsed: what is kept of XML grows with its elements, the
    time with the longest of its tags, comments and texts."""
    members = archive.infolist()
    if sum(member.file_size for member in members) > MAX_UNPACKED_BYTES:
        raise fail("file-too-large", f"unpacks to more than {MAX_UNPACKED_BYTES // 1_000_000} MB.", where)
    for member in members:
        if member.filename.endswith((".xml", ".rels")):
            with archive.open(member) as part:
                _require_plain(part, where)


def _require_plain(part: IO[bytes], where: str) -> None:
    elements, cells = 0, 0
    while block := part.read(MAX_TOKEN_BYTES):
        elements += block.count(b"<")
        cells += block.count(b"<c ") + block.count(b"<c>")
        if b"<!DOCTYPE" in block or b"<!ENTITY" in block:
            raise fail("bad-syntax", "a workbook declares no entities.", where)
        if len(block) == MAX_TOKEN_BYTES and b"<" not in block:
            raise fail("too-large", f"has a cell or tag of more than {MAX_TOKEN_BYTES:,} bytes.", where)
    if cells > MAX_CELLS:
        raise fail("too-large", f"has more than {MAX_CELLS:,} cells.", where)
    if elements > MAX_OTHER_ELEMENTS + TAGS_OF_CELL * cells:
        raise fail("too-large", f"has more than {MAX_OTHER_ELEMENTS:,} elements beside its cells.", where)


def _has_formulas(archive: zipfile.ZipFile, part: str) -> bool:
    with archive.open(part) as file:
        before = b""
        while block := file.read(1_000_000):
            if re.search(b"<f[ >]", before + block):
                return True
            before = block[-2:]
    return False


def _computed(sheet: Any, formulas: Iterable[Row]) -> Iterator[Row]:
    """The rows of a sheet. A program that writes formulas does not compute them: they are no empty cells."""
    if not formulas:
        yield from sheet.iter_rows(values_only=True)
        return
    for row, written in zip(sheet.iter_rows(), formulas, strict=False):
        yield [
            text if cell.value is None and cell.data_type == "n" and is_formula(text) else cell.value
            for cell, text in zip(row, written, strict=False)
        ]


def is_formula(cell: Cell) -> bool:
    """Whether a cell has a formula in place of its value."""
    return isinstance(cell, str) and cell.startswith("=")


def _rows(rows: Iterable[Row], name: str) -> list[Row]:
    found: list[Row] = []
    cell_count = 0
    for row in rows:
        cell_count += len(row)
        cells = [(cell.strip() or None) if isinstance(cell, str) else cell for cell in row]
        while cells and cells[-1] is None:
            cells.pop()
        _require_size(len(found) + 1, len(cells), f"sheet '{name}'", cell_count)
        found.append(cells)
    while found and not found[-1]:
        found.pop()
    return found


# -- writing


def require_names(names: Iterable[str]) -> None:
    """Raises the first name that a cell cannot hold, or would not give back."""
    for name in names:
        if not name or not name.isprintable() or name != name.strip() or len(name) > MAX_CELL_CHARACTERS:
            raise fail("cannot-express", f"a table cannot hold the name {short(name)!r}.", "name")


def write_csv(sheets: Sequence[Sheet]) -> bytes:
    """The sheets below each other, a blank line between them."""
    parts = []
    for sheet in sheets:
        text = io.StringIO(newline="")
        csv.writer(text, lineterminator="\n").writerows(
            [_guarded(cell) for cell in row] for row in sheet.rows
        )
        parts.append(text.getvalue())
    return encode("\n".join(parts))


def _guarded(cell: Cell) -> str:
    """A cell of a CSV. A text that a spreadsheet would take for a formula gets a quote before it, as does one
    that begins with such a quote, so that each is read back as it was."""
    text = _text(cell)
    return f"'{text}" if isinstance(cell, str) and _FORMULA.match(text) else text


def _unguarded(text: str) -> str:
    return text[1:] if text.startswith("'") and _FORMULA.match(text[1:]) else text


# What spreadsheets compute; numbers are none, and what is quoted already is quoted once more.
_FORMULA = re.compile(r"'*[=+@\t\r-](?![\d.]+(?:e[+-]?\d+)?$)", re.IGNORECASE)


def write_workbook(sheets: Sequence[Sheet]) -> bytes:
    """A workbook with bold headings that stay in sight."""
    from openpyxl import Workbook
    from openpyxl.cell import WriteOnlyCell
    from openpyxl.styles import Font
    from openpyxl.utils import get_column_letter

    book = Workbook(write_only=True)
    for sheet in sheets:
        page = book.create_sheet(sheet.name)
        page.freeze_panes = "A2"
        for column, width in enumerate(_widths(sheet), 1):
            page.column_dimensions[get_column_letter(column)].width = width
        for r, row in enumerate(sheet.rows):
            cells = []
            for value in row:
                cell = WriteOnlyCell(page, value=_number_text(value))
                if isinstance(value, str):
                    cell.data_type = "s"  # a name that begins with = is no formula
                elif _is_number(value):
                    cell.data_type = "n"  # with all digits: as a number, openpyxl would write 16 of 17
                if r == 0:
                    cell.font = Font(bold=True)
                cells.append(cell)
            page.append(cells)
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


def _widths(sheet: Sheet) -> list[int]:
    columns = max(map(len, sheet.rows), default=0)
    lengths = [10] * min(columns, 30)
    for row in sheet.rows[:200]:
        for i, cell in enumerate(row[:30]):
            lengths[i] = max(lengths[i], min(len(_text(cell)) + 2, 40))
    return lengths


def _is_number(value: Cell) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _number_text(value: Cell) -> Cell:
    return plain(value) if _is_number(value) else value  # type: ignore[arg-type]


def _text(value: Cell) -> str:
    if value is None:
        return ""
    if isinstance(value, time):
        return value.isoformat("auto" if value.second or value.microsecond else "minutes")
    return str(_number_text(value))
