"""Numbers, times and lists for readers."""

import math
from collections.abc import Sequence


def number_text(value: float, digits: int = 6) -> str:
    """The whole part in full and two decimals, or as many digits as asked for: 1700030000, 12.3457."""
    value = float(value) + 0.0  # which is never -0.0
    if not abs(value) < 1e16:
        return f"{value:.{digits}g}"
    return f"{value:.{max(digits, len(str(int(abs(value)))) + 2)}g}"


def number_texts_apart(value: float, bound: float) -> tuple[str, str]:
    """Two different numbers, with as many digits as it takes to see the difference."""
    for digits in range(6, 17):
        words = number_text(value, digits), number_text(bound, digits)
        if words[0] != words[1]:
            break
    return words


def time_of_day(seconds: float) -> str:
    """A time of day, 08:05, or 08:05:30 if it is no whole minute; past midnight it is counted on, 25:30."""
    if not math.isfinite(seconds):
        return number_text(seconds)
    whole = round(abs(float(seconds)))
    rest = f":{whole % 60:02}" if whole % 60 else ""
    sign = "-" if seconds < 0 else ""
    return f"{sign}{whole // 3600:02}:{whole // 60 % 60:02}{rest}"


def duration_text(seconds: float) -> str:
    """A length of time to the second: 40 s, 12 min, 1 h 20 min."""
    if not math.isfinite(seconds):
        return number_text(seconds)
    whole = round(abs(float(seconds)))
    parts = {"h": whole // 3600, "min": whole // 60 % 60, "s": whole % 60}
    words = [f"{value} {unit}" for unit, value in parts.items() if value]
    return ("-" if seconds < 0 else "") + (" ".join(words) or "0 s")


def listed(words: Sequence[str], most: int) -> str:
    """Words in a row, 'a, b and c'; of more than `most` the first, and how many more there are."""
    if len(words) > most:
        words = [*words[: most - 1], f"{len(words) - most + 1} more"]
    return ", ".join(words[:-1]) + " and " + words[-1] if len(words) > 1 else words[0]
