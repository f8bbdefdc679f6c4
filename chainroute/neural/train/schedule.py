"""The learning rate: warm-up, a stable stretch of any length, and a cool-down when the end is known.

A stable run can be continued for ever; release weights are made by cooling it down.
"""

from __future__ import annotations

from typing import Literal

Decay = Literal["linear", "steps"]


def factor(since: int, warmup: int, left: float, decay: Decay) -> float:
    """By what the peak rate is multiplied in the update that comes `since` updates after the moments began.

    `left` is the part of the cool-down still ahead: 1 before it begins, 0 at its end.
    """
    return min(1.0, (since + 1) / (warmup + 1)) * _cooled(left, decay)


def _cooled(left: float, decay: Decay) -> float:
    match decay:
        case "linear":
            return left
        case "steps":  # the paper's: a tenth, and for the last sixth a hundredth
            return 1.0 if left >= 1 else 0.1 if left > 1 / 6 else 0.01


def share(ahead: float, length: float) -> float:
    """The part of a cool-down of that length which is ahead when its end is `ahead` away."""
    return min(1.0, max(0.0, ahead / length)) if length else 1.0
