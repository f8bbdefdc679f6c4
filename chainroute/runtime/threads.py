"""Work in threads of their own, whose end is told."""

import threading
from collections.abc import Callable


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
