"""Numbers for readers."""


def told(value: float, digits: int = 6) -> str:
    """The whole part in full and two decimals, or as many digits as asked for: 1700030000, 12.3457."""
    value = float(value) + 0.0  # which is never -0.0
    if not abs(value) < 1e16:
        return f"{value:.{digits}g}"
    return f"{value:.{max(digits, len(str(int(abs(value)))) + 2)}g}"
