"""By when something has to be done, and the margins that are kept on the way there."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

LONGEST_SECONDS = 1e9  # longer times are the same to us, and no clock overflows

START_SECONDS = 60.0  # that a worker may take to start and load what it needs, on top of any time limit

# Margins, in seconds.
LAST_REPORT_SECONDS = 0.02  # before the policy's deadline: its last report is on the way
ENDING_SECONDS = 0.05  # before a deadline: a library that cannot be interrupted comes to its end
OVERRUN_SECONDS = 0.1  # past a deadline: a search that does not stop in time is waited for
LATE_SECONDS = (
    1.0  # past that: its worker may finish for nobody; a new one takes longer to start on a busy machine
)
LATE_ANSWER_SECONDS = 0.05  # past a time limit: an answer that is on the way is waited for
ORPHAN_SECONDS = 2.0  # past a deadline: a worker that nobody has ended ends itself


@dataclass(frozen=True, order=True)
class Deadline:
    """A moment on the monotonic clock, which all processes of a machine share; infinite: there is none."""

    at: float = math.inf

    @classmethod
    def after(cls, seconds: float | None, begin: float | None = None) -> Deadline:
        """So many seconds from now, or from when something began; None: never."""
        if seconds is None:
            return cls()
        return cls((time.monotonic() if begin is None else begin) + min(seconds, LONGEST_SECONDS))

    @property
    def left(self) -> float:
        """Seconds until then; negative once it has passed."""
        return min(self.at - time.monotonic(), LONGEST_SECONDS)

    @property
    def passed(self) -> bool:
        return time.monotonic() >= self.at

    @property
    def never(self) -> bool:
        return self.at == math.inf

    def earlier(self, seconds: float) -> Deadline:
        return Deadline(self.at - seconds)

    def later(self, seconds: float) -> Deadline:
        return Deadline(self.at + seconds)

    def share(self, part: float) -> Deadline:
        """When that part of the time that is left will have passed."""
        return self if self.never else Deadline.after(part * self.left)


NEVER = Deadline()


def seconds_of(work: Callable[[], None]) -> float:
    """Does the work; returns the seconds that it took."""
    begin = time.monotonic()
    work()
    return time.monotonic() - begin


def judging(customers: int) -> float:
    """Seconds that the judge takes, at the end of a time limit."""
    return 0.01 + 2e-5 * customers
