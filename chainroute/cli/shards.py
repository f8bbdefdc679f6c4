"""Shares of many problems, for machines that know nothing of each other.

A problem's share follows from its name alone: it stays the same when files are added, removed or split.
"""

import re
from collections.abc import Callable
from functools import partial
from hashlib import sha256

from chainroute.errors import fail


def share(text: str | None) -> Callable[[str], bool]:
    """Whether a name belongs to a share, written as 3/8: the third of eight. Without a share, all do."""
    if text is None:
        return partial(_belongs, 1, 1)
    match = re.fullmatch(r"(\d{1,9})/(\d{1,9})", text)
    number, count = map(int, match.groups()) if match else (0, 0)
    if not 1 <= number <= count:
        message = f"'{text}' is no share: write 1/8 for the first of eight, 8/8 for the last."
        raise fail("bad-option", message, "--shard")

    return partial(_belongs, number, count)


def _belongs(number: int, count: int, name: str) -> bool:
    digest = sha256(name.encode(errors="surrogateescape")).digest()
    return int.from_bytes(digest[:8], "big") % count == number - 1
