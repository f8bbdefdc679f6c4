"""What a run says while it runs."""

from __future__ import annotations

import sys
import time

QUIET_SECONDS = 30.0  # seconds between two lines where they cannot overwrite each other


class StatusLine:
    """One line on stderr that is overwritten on a terminal, and repeated now and then elsewhere."""

    def __init__(self, silent: bool = False):
        self.silent = silent
        self.terminal = sys.stderr.isatty()
        self.last = -QUIET_SECONDS
        self.open = False  # whether the line under the cursor is ours to overwrite

    def line(self, text: str) -> None:
        if self.silent:
            return
        if self.terminal:
            self._print(f"\r\x1b[2K{text}", end="")
            self.open = True
        elif time.monotonic() - self.last >= QUIET_SECONDS:
            self._print(text)
            self.last = time.monotonic()

    def end(self) -> None:
        """Leaves the line as it is, if there is one."""
        if self.open:
            self._print()
            self.open = False

    def note(self, text: str) -> None:
        """A line that stays."""
        if not self.silent:
            self._print("\n" * self.open + text)
            self.open = False

    def _print(self, text: str = "", end: str = "\n") -> None:
        """Prints for as long as it can: whoever reads may leave first, as `tee` does at Ctrl-C, or a terminal
        of which nobody told us, and what was made so far is still to be saved."""
        try:
            print(text, end=end, file=sys.stderr, flush=True)
        except OSError:
            self.silent = True


def clock(seconds: float) -> str:
    minutes, rest = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
