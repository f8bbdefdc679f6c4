"""Work in threads of their own, whose end is told."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


def start(work: Callable[[], None], on_end: Callable[[BaseException | None], None]) -> None:
    """Starts the work; `on_end` is called once it has ended, with the error that it ended in, if any."""

    def run() -> None:
        ending: BaseException | None = None
        try:
            work()
        except BaseException as error:
            ending = error
        on_end(ending)

    threading.Thread(target=run, daemon=True).start()


def begun(work: Callable[[], T]) -> Callable[[], T]:
    """Starts the work, and gives what waits for its end, and then returns or raises what it did."""
    ended: Future[T] = Future()
    start(lambda: ended.set_result(work()), lambda error: ended.set_exception(error) if error else None)
    return ended.result
