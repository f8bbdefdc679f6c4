"""What people write into cells: numbers, times of day, dates, spans of time, yes and no."""

import math
import re
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

from chainroute.formats.common import parsed
from chainroute.formats.tables.grids import Cell

DAY = 86_400.0  # seconds
# By what follows a number or stands in a heading: seconds, metres, metres per second.
TIME_UNITS = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("min", "mins", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3600.0),
}
LENGTH_UNITS = {
    **dict.fromkeys(("m", "metre", "metres", "meter", "meters"), 1.0),
    **dict.fromkeys(("km", "kms", "kilometre", "kilometres", "kilometer", "kilometers"), 1000.0),
    **dict.fromkeys(("mi", "mile", "miles"), 1609.344),
}
SPEED_UNITS = {
    **dict.fromkeys(("km/h", "kmh", "kph", "kmph"), 1 / 3.6),
    **dict.fromkeys(("m/s", "mps"), 1.0),
    **dict.fromkeys(("mph", "mi/h"), 1609.344 / 3600),
}
LOAD_UNITS = {  # which of them are the same
    "g": "g",
    **dict.fromkeys(("kg", "kgs", "kilo", "kilos"), "kg"),
    **dict.fromkeys(("t", "to", "ton", "tons", "tonne", "tonnes"), "t"),
    **dict.fromkeys(("lb", "lbs"), "lb"),
    **dict.fromkeys(("l", "litre", "litres", "liter", "liters"), "l"),
    **dict.fromkeys(("m3", "m³", "cbm"), "m³"),
}
YES, NO = {"yes", "y", "true", "1", "x"}, {"no", "n", "false", "0"}

_CLOCK = re.compile(r"(\d{1,2})(?:[:hH](\d{2})(?::(\d{2}(?:\.\d+)?))?)?\s*(?:([ap])\.?m\.?)?", re.IGNORECASE)
_ISO_DAY = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})(?:[T\s]+(.*))?")
_DOTTED_DAY = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})(?:\s+(.*))?")  # day, month, year
_SPAN = re.compile(r"(\d+(?:[.,]\d+)?)\s*([a-z]+)", re.IGNORECASE)
_BETWEEN = re.compile(r"-|–|—|\bto\b|\buntil\b", re.IGNORECASE)
MAX_TIME_CHARACTERS = 200  # of a text that says a time, or two: what is longer says something else


def number(cell: Cell, comma: bool = False) -> float | None:
    """The number in a cell, or None; with `comma`, commas are decimal marks."""
    if isinstance(cell, bool) or not isinstance(cell, str | int | float):
        return None
    if not isinstance(cell, str):
        return float(cell) if abs(cell) < 1e300 else math.inf
    text = re.sub(r"(?<=\d)[\s'](?=\d{3}(?!\d))", "", cell.strip())  # 1 234 is one number, 3 4 is none
    if "," in text and "." in text:  # the last of the two is the decimal mark
        mark, other = (",", ".") if text.rfind(",") > text.rfind(".") else (".", ",")
        text = text.replace(other, "").replace(mark, ".") if text.count(mark) == 1 else ""
    elif "," in text:  # 1,234 is two numbers, depending on the country
        text = text.replace(",", ".") if comma or not re.fullmatch(r"[+-]?\d{1,3},\d{3}", text) else ""
    return parsed(text) if text else None


def yes_or_no(cell: Cell) -> bool | None:
    if isinstance(cell, bool):
        return cell
    word = text_of(cell).lower()
    return True if word in YES else False if word in NO else None


def text_of(cell: Cell) -> str:
    """A cell as a name; a whole number has no decimals."""
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 1e15:
        return str(int(cell))
    return "" if cell is None else str(cell)


@dataclass(frozen=True)
class Moment:
    """A time of day or a span: in seconds, or a bare number whose unit is said elsewhere."""

    seconds: float
    day: date | None = None
    bare: bool = False


def moment(cell: Cell, comma: bool = False) -> Moment | None:
    """The time in a cell; None where it holds nothing of the kind."""
    match cell:
        case datetime():
            return Moment((cell - datetime.combine(cell.date(), time())).total_seconds(), cell.date())
        case date():
            return Moment(0.0, cell)
        case time():
            return Moment(cell.hour * 3600 + cell.minute * 60 + cell.second + cell.microsecond / 1e6)
        case timedelta():
            return Moment(cell.total_seconds())
    if (bare := number(cell, comma)) is not None:
        return Moment(bare, bare=True)
    return _written(cell) if isinstance(cell, str) else None


def _written(text: str) -> Moment | None:
    if len(text) > MAX_TIME_CHARACTERS:
        return None
    day = None
    for pattern, order in ((_ISO_DAY, (1, 2, 3)), (_DOTTED_DAY, (3, 2, 1))):
        if found := pattern.fullmatch(text):
            try:
                day = date(*(int(found[i]) for i in order))
            except ValueError:
                return None
            text = found[4] or "0:00"
    if clock := _CLOCK.fullmatch(text):
        hours, minutes, seconds, half = clock.groups()
        if minutes is None and half is None:
            return None  # a bare number, which after a date means nothing
        hour = int(hours) % 12 + 12 * (half.lower() == "p") if half else int(hours)
        if (half and int(hours) > 12) or int(minutes or 0) > 59 or float(seconds or 0) >= 60:
            return None
        return Moment(hour * 3600 + int(minutes or 0) * 60 + float(seconds or 0), day)
    spans = _SPAN.findall(text)
    nothing_else = day is None and not _SPAN.sub("", text).strip()
    if not spans or not nothing_else or any(unit.lower() not in TIME_UNITS for _, unit in spans):
        return None
    return Moment(sum(float(n.replace(",", ".")) * TIME_UNITS[unit.lower()] for n, unit in spans))


_LISTED = re.compile(r"[,;+&|\n]|(?<=\s)(?:and|or)(?=\s)")


def words(cell: Cell) -> list[str]:
    """What a cell lists: lift, ice."""
    return [word.strip() for word in _LISTED.split(text_of(cell)) if word.strip()]


def windows(cell: Cell, comma: bool = False) -> list[Moment] | None:
    """The openings and closings of one window or more: 08:00-10:00, 14:00-16:00."""
    if (single := window(cell, comma)) is not None:
        return list(single)
    found: list[Moment] = []
    for part in words(cell):
        if (one := window(part, comma)) is None:
            return None
        found += one
    return found or None


def window(cell: Cell, comma: bool = False) -> tuple[Moment, Moment] | None:
    """Two times with a dash or a word between them: 08:00-12:00."""
    if not isinstance(cell, str) or len(cell) > MAX_TIME_CHARACTERS:
        return None
    for between in _BETWEEN.finditer(cell):
        opening = moment(cell[: between.start()].rstrip(), comma)
        closing = moment(cell[between.end() :].lstrip(), comma)
        if opening is not None and closing is not None:
            return opening, closing
    return None
