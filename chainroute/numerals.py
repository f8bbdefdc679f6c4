"""Numbers and times for readers."""

import math


def told(value: float, digits: int = 6) -> str:
    """The whole part in full and two decimals, or as many digits as asked for: 1700030000, 12.3457."""
    value = float(value) + 0.0  # which is never -0.0
    if not abs(value) < 1e16:
        return f"{value:.{digits}g}"
    return f"{value:.{max(digits, len(str(int(abs(value)))) + 2)}g}"


def of_day(seconds: float) -> str:
    """A time of day to the minute, 08:05; what is past midnight is counted on, 25:30."""
    if not math.isfinite(seconds):
        return told(seconds)
    minutes = round(seconds / 60)
    return f"{'-' * (minutes < 0)}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"


def lasting(seconds: float) -> str:
    """A length of time: 40 s, 12 min, 1 h 20 min."""
    if not math.isfinite(seconds):
        return told(seconds)
    minutes = round(abs(seconds) / 60)
    if minutes == 0:
        return f"{told(seconds, 3)} s"
    words = [f"{minutes // 60} h"] * (minutes >= 60) + [f"{minutes % 60} min"] * (minutes % 60 > 0)
    return "-" * (seconds < 0) + " ".join(words)
