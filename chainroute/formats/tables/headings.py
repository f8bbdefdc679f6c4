"""Tables in grids of cells: found by their headings, which people spell in many ways.

A heading is a field and, in brackets or after it, a unit: `service (min)`, `service_min`, `Max. range [km]`.
"""

import difflib
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache

from chainroute.formats.common import Faults, note, short
from chainroute.formats.tables.cells import LENGTH_UNITS, SPEED_UNITS, TIME_UNITS, moment, text_of
from chainroute.formats.tables.grids import DELIMITERS, Cell, Row, Sheet, read_csv
from chainroute.problem import Problem, VehicleType
from chainroute.problem.attributes import attributes
from chainroute.problem.features import beyond, our_name

SCANNED_ROWS = 20  # first rows of a sheet, in which its headings are looked for
NAMED_UNREAD = 8  # columns of a table that a note names
MAX_HEADING_CHARACTERS = 200  # of a text that can be a heading; a name of a sheet has 31
KEPT_HEADINGS = 4096  # texts whose reading is kept: each row is looked at as several kinds of headings
LEAST_LIKENESS = 0.85  # likeness of two spellings from which a heading is taken for a mistake

# The spellings of each column, in letters and digits alone, in English, German and French; of two columns of
# one field, that with the earlier spelling counts. Attributes declare their own.
_PLACE = {
    "name": "name stopname customername customer stop site location label id stopid customerid custno"
    " customerno locationid order orderid orderno node number no nr #"
    " kunde kundenname kundennummer kundennr stopp nom client nomclient nomduclient",
    "x": "x xcoord xcoordinate coordx xpos easting",
    "y": "y ycoord ycoordinate coordy ypos northing",
    "lon": "lon lng long longitude langengrad laengengrad",
    "lat": "lat latitude breitengrad",
    "kind": "kind type role stoptype locationtype art typ",
    "opening": "opens opening open openingtime ready readytime earliest earlieststart earliesttime from start"
    " starttime windowstart twstart twopen twearly timewindowstart notbefore after"
    " von offnet beginn fruhestens debut ouverture auplustot",
    "closing": "closes closing close closingtime due duedate duetime latest lateststart latesttime until till"
    " to end endtime windowend twend twclose twlate timewindowend notafter before"
    " bis schliesst ende spatestens fin fermeture auplustard",
    "window": "window timewindow tw openinghours hours slot timeslot windows timewindows slots timeslots"
    " zeitfenster offnungszeiten creneau creneauhoraire fenetrehoraire horaires",
    **{c.heading: c.spellings for a in attributes(Problem, "customer") for c in a.every_column},
}
SPELLINGS: dict[str, dict[str, str]] = {
    "stops": _PLACE,
    "depots": _PLACE,
    "vehicles": {c.heading: c.spellings for a in attributes(VehicleType) for c in a.every_column},
    "routes": {
        "route": "route routeno routenumber tour",
        "position": "position sequence seq stopnumber stopno",
        "vehicle": "vehicle vehicletype vehiclename type van truck driver",
        "trip": "trip tripno round",
        "name": _PLACE["name"],
    },
    "settings": {"setting": "setting settings key option parameter", "value": "value values"},
    "distances": {"corner": "distances distance distancematrix"},
    "durations": {"corner": "durations duration durationmatrix traveltimes times timematrix"},
}
_TITLES = {  # names of sheets, where they differ from the tables'
    **dict.fromkeys(("stop", "customers", "customer", "orders", "locations", "deliveries", "jobs"), "stops"),
    **dict.fromkeys(("depot", "hubs", "warehouses"), "depots"),
    **dict.fromkeys(("vehicle", "fleet", "vans", "trucks", "drivers"), "vehicles"),
    **dict.fromkeys(("setting", "options", "parameters"), "settings"),
    **dict.fromkeys(("distance", "distancematrix"), "distances"),
    **dict.fromkeys(("duration", "durationmatrix", "traveltimes"), "durations"),
}
_OF_UNIT = {
    "time": TIME_UNITS,
    "money per time": TIME_UNITS,
    "length": LENGTH_UNITS,
    "money per length": LENGTH_UNITS,
    "speed": SPEED_UNITS,
}
_UNITS = {
    **dict.fromkeys(("opening", "closing", "window"), TIME_UNITS),
    **dict.fromkeys(("x", "y"), LENGTH_UNITS),
    **{
        c.heading: _OF_UNIT[a.unit]
        for a in (*attributes(Problem, "customer"), *attributes(VehicleType))
        for c in a.columns
        if a.unit in _OF_UNIT
    },
}
COMPANIONS = ("vehicles", "depots", "settings", "distances", "durations")  # tables that go with one of stops
SHARED = ("vehicles", "depots", "settings")  # of these, what several tables of stops may have in common


@dataclass(frozen=True)
class SheetColumn:
    index: int
    heading: str  # as it is written
    unit: str = ""  # in small letters


@dataclass(frozen=True)
class SheetTable:
    kind: str  # one of SPELLINGS
    sheet: Sheet
    head: int  # the row of its headings, counted from 0
    columns: dict[str, SheetColumn]  # by field
    whose: str = ""  # the vehicle type of a matrix that is not for all
    rows: list[tuple[int, Row]] = field(default_factory=list)  # numbered as a spreadsheet does, from 1

    def cell(self, row: Row, name: str) -> Cell:
        """The cell of a field, None where the table has no such column."""
        column = self.columns.get(name)
        return row[column.index] if column is not None and column.index < len(row) else None

    def where(self, number: int | None, name: str = "") -> str:
        """What errors call a place in the table."""
        column = self.columns.get(name)
        parts = [
            self.sheet.place,
            f"row {number}" if number is not None else "",
            f"column '{short(column.heading)}'" if column is not None else "",
        ]
        return ", ".join(part for part in parts if part) or self.kind


# -- headings


@lru_cache(KEPT_HEADINGS)
def letters(text: str) -> str:
    """Its letters and digits, small and without accents, as far as a heading or a word can go."""
    text = text[:MAX_HEADING_CHARACTERS]
    flat = unicodedata.normalize("NFKD", text.casefold())
    return re.sub(r"[^a-z0-9#]", "", flat)


@lru_cache(KEPT_HEADINGS)
def heading(text: str) -> tuple[str, str]:
    """A heading without its unit, and the unit; 'cost per km' is a cost per distance in kilometres."""
    if len(text) > MAX_HEADING_CHARACTERS:
        return text, ""
    if rate := re.fullmatch(r"(.*\w)\s*(?:\bper\b|/|_per_)\s*(\w+)", text, re.IGNORECASE):
        for units, measure in ((TIME_UNITS, "time"), (LENGTH_UNITS, "distance")):
            if (unit := rate[2].lower()) in units and letters(rate[1]) in _PRICES:
                return f"{rate[1]} per {measure}", unit
    if bracketed := re.fullmatch(r"(.+?)\s*[(\[]([^)\]]*)[)\]]\s*", text):
        return bracketed[1], re.sub(r"\s", "", bracketed[2].lower())
    for unit in (TIME_UNITS, LENGTH_UNITS, SPEED_UNITS):
        if (tail := re.fullmatch(r"(.*\w)[\s_,-]+([\w/]+)", text)) and tail[2].lower() in unit:
            return tail[1], tail[2].lower()
    return text, ""


_PRICES = {"cost", "costs", "price", "rate", "wage"}  # what may be paid per unit


@cache
def _ranked(kind: str) -> dict[str, tuple[str, int]]:
    """The column that each spelling is for, and its rank among the spellings of that column."""
    columns = SPELLINGS[kind].items()
    return {word: (name, rank) for name, words in columns for rank, word in enumerate(words.split())}


def _matched(row: Row, kind: str) -> dict[str, SheetColumn]:
    """The columns of a table of this kind under these headings."""
    found: dict[str, tuple[int, SheetColumn]] = {}
    spellings = _ranked(kind)
    for index, cell in enumerate(row):
        if not isinstance(cell, str):
            continue
        for text, unit in ((cell, ""), heading(cell)):
            if known := spellings.get(letters(text)):
                name, rank = known
                if name not in found or rank < found[name][0]:
                    found[name] = (rank, SheetColumn(index, cell, unit))
                break
    return {name: column for name, (_, column) in found.items()}


def kind_of(row: Row, name: str = "") -> str:
    """Which table has such a row of headings, or ""; `name` is that of the sheet."""
    cells = [cell for cell in row if cell is not None]
    if not cells or not isinstance(cells[0], str):
        return ""
    corner = letters(owner(cells[0])[0])
    for kind in ("distances", "durations"):
        if len(cells) > 1 and cells[0] is row[0] and corner in SPELLINGS[kind]["corner"].split():
            return kind
    if not all(isinstance(cell, str) for cell in cells):
        return ""
    titled = _TITLES.get(letters(name), letters(name))
    if titled in SPELLINGS and _matched(row, titled):
        return titled
    known = {kind: _matched(row, kind) for kind in ("stops", "vehicles", "settings", "routes")}
    if {"route", "name"} <= known["routes"].keys() and not {"x", "lon"} & known["stops"].keys():
        return "routes"
    if len(known["settings"]) == 2 and len(cells) <= 3:
        return "settings"
    if {"x", "y"} <= known["stops"].keys() or {"lon", "lat"} <= known["stops"].keys():
        return "stops"
    if "capacity" in known["vehicles"] and len(known["vehicles"]) > 1:
        return "vehicles"
    best = max(("stops", "vehicles"), key=lambda kind: len(known[kind]))
    return best if len(known[best]) > 1 else ""


# -- tables


def delimiter_of(lines: Sequence[str]) -> str:
    """What separates the cells of a table that begins with these lines; "" where they are no table."""
    for line in lines[:SCANNED_ROWS]:
        for mark in sorted(DELIMITERS, key=line.count, reverse=True):
            if mark in line and kind_of([cell.strip().strip('"') or None for cell in line.split(mark)]):
                return mark
    return ""


def checked(sheets: Sequence[Sheet], faults: Faults) -> list[SheetTable]:
    """All tables of all sheets, and what is wrong with their headings."""
    every = found(sheets)
    seen: dict[tuple[str, str], SheetTable] = {}
    for table in every:
        key = (table.kind, table.whose)
        if key in seen:
            first = seen[key].where(seen[key].head + 1)
            message = f"is a second table of {table.kind}; the first begins at {first}."
            faults.add("duplicate-section", message, table.where(table.head + 1))
        seen.setdefault(key, table)
        _doubt(table, faults)
        _doubt_length(table, faults)
    return every


def found(sheets: Sequence[Sheet]) -> list[SheetTable]:
    """All tables of all sheets. A sheet without one is passed over: people keep notes there."""
    return [table for sheet in sheets for table in _tables(sheet)]


def _tables(sheet: Sheet) -> Iterator[SheetTable]:
    """Headings begin a table at the top, below a title, or after a blank row."""
    table = None
    blank, scanned = True, 0
    for index, row in enumerate(sheet.rows):
        empty = all(cell is None for cell in row)
        if not empty and (table is None or blank) and scanned < SCANNED_ROWS:
            scanned += table is None
            name = sheet.name if table is None else ""
            if (kind := kind_of(row, name)) and not _is_above(row, sheet.rows[index + 1 : index + 2], kind):
                if table is not None:
                    yield table
                if kind in ("distances", "durations"):
                    table = SheetTable(kind, sheet, index, {"corner": _corner(row)}, owner(str(row[0]))[1])
                else:
                    table = SheetTable(kind, sheet, index, _matched(row, kind))
                blank = False
                continue
        if table is not None and not empty:
            table.rows.append((index + 1, row))
        blank = empty
    if table is not None:
        yield table


def _is_above(row: Row, below: Sequence[Row], kind: str) -> bool:
    """Whether these are titles of groups of headings, such as 'window' above 'from' and 'to'."""
    known = len(_matched(row, kind))
    return any(kind_of(heads) == kind and len(_matched(heads, kind)) > known for heads in below)


def owner(corner: str) -> tuple[str, str]:
    """What a matrix has, and whose it is: 'distances of boat' are for that vehicle type alone."""
    text = heading(corner)[0].strip()
    words = text.split(maxsplit=2)
    named = len(words) == 3 and words[1] in ("of", "for")
    return (words[0], words[2]) if named else (text, "")


def _corner(row: Row) -> SheetColumn:
    return SheetColumn(0, str(row[0]), heading(str(row[0]))[1])


def _doubt(table: SheetTable, faults: Faults) -> None:
    """Finds what is wrong with the headings. Unknown columns are passed over with a note, unless they look
    like a mistake, ask for what we do not have, or have a unit that we do not know."""
    if "corner" in table.columns:
        return
    used = {column.index for column in table.columns.values()}
    rivals = _rivals(table, used)
    spellings = [word for words in SPELLINGS[table.kind].values() for word in words.split()]
    unread = []
    for index, cell in enumerate(table.sheet.rows[table.head]):
        if index in used or cell is None:
            continue
        where = f"{table.where(table.head + 1)}, column '{short(str(cell))}'"
        word = letters(heading(text_of(cell))[0])
        if what := beyond(word):
            faults.add("unsupported-feature", f"asks for {what}", where)
        elif ours := our_name(word):
            message = f"is no heading of {table.kind}; here that is {ours}."
            faults.add("unknown-field", message, where)
        elif index in rivals:
            name, number = rivals[index]
            first = table.columns[name].heading
            message = f"means the same as column '{short(first)}', but says something else in row {number}."
            faults.add("conflicting-fields", message, where)
        elif word not in spellings and (
            near := difflib.get_close_matches(word, spellings, 1, LEAST_LIKENESS)
        ):
            faults.add("unknown-field", f"is no heading of {table.kind}; is '{near[0]}' meant?", where)
        elif word not in spellings:
            unread.append(f"'{short(str(cell))}'")
    if unread:
        others = [f"{len(unread) - NAMED_UNREAD} others"] if len(unread) > NAMED_UNREAD else []
        which = ", ".join(unread[:NAMED_UNREAD] + others)
        are = "is no heading" if len(unread) == 1 else "are no headings"
        note(f"{table.where(table.head + 1)}: {which} {are} of {table.kind}, and not read.")
    for name, column in table.columns.items():
        units = _UNITS.get(name, {})
        if units and column.unit and column.unit not in units:
            message = f"'{short(column.unit)}' is not one of {', '.join(units)}."
            faults.add("unknown-value", message, table.where(table.head + 1, name))


def _doubt_length(table: SheetTable, faults: Faults) -> None:
    """Finds rows of a CSV that go on after the last heading: 1,5 is two cells where commas separate them."""
    most, mark = len(table.sheet.rows[table.head]), table.sheet.delimiter
    for number, row in table.rows if mark else ():
        if any(cell is not None for cell in row[most:]):
            message = f"has more cells than there are headings; put quotes around what holds a '{mark}'."
            faults.add("wrong-count", message, table.where(number))


def _rivals(table: SheetTable, used: set[int]) -> dict[int, tuple[str, int]]:
    """The unused columns that share a field with a used one: the field, and the first row where their numbers
    or times differ. Of names people have several."""
    comma = table.sheet.comma
    shared: dict[int, str] = {}
    for index, head in enumerate(table.sheet.rows[table.head]):
        name = next(iter(_matched([head], table.kind)), "name")
        if index not in used and name != "name":
            shared[index] = name
    found: dict[int, tuple[str, int]] = {}
    for number, row in table.rows if shared else ():
        for index, cell in enumerate(row):
            if index in shared and index not in found and (other := moment(cell, comma)) is not None:
                name = shared[index]
                if moment(table.cell(row, name), comma) not in (None, other):
                    found[index] = name, number
    return found


def csv_sheets(text: str, name: str = "", place: str = "") -> list[Sheet]:
    """The only sheet of a CSV, by whichever mark its cells are separated."""
    lines = [line for line in text.splitlines()[: 10 * SCANNED_ROWS] if line.strip()]
    return [read_csv(text, delimiter_of(lines) or _most(lines), name, place)]


def _most(lines: Sequence[str]) -> str:
    """The mark that the first line has most of."""
    return max(DELIMITERS, key=lambda mark: lines[0].count(mark) if lines else 0)
