"""One live line on the terminal while problems are being solved: how many are done, the best cost so far and
where it came from."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from chainroute.cli import show

if TYPE_CHECKING:
    from chainroute.solve import Progress


class Live:
    def __init__(self, total: int):
        self.total, self.done = total, 0
        self.bar: Any = None
        self.task: Any = None

    def __enter__(self) -> "Live":
        if sys.stderr.isatty():
            self.bar = show.progress()
            self.task = self.bar.add_task("")
            self.show("solving")
            self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar:
            self.bar.stop()

    def progress(self, news: "Progress") -> None:
        self.show(f"cost {news.solution.cost:.8g} by {news.source} after {news.seconds:.1f} s")

    def show(self, what: str) -> None:
        if self.bar:
            count = f"{self.done}/{self.total} done, " if self.total > 1 else ""
            self.bar.update(self.task, description=count + what)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Room to print a result."""
        self.done += 1
        if self.bar:
            self.bar.stop()
        yield
        if self.bar:
            self.show("solving")
            self.bar.start()
