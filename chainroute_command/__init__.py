"""The first lines of the command `chainroute`, outside the package: importing that takes a moment, in which
Ctrl-C is to end quietly too."""

import os
import signal


def main() -> None:
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _leave)
    from chainroute.cli import main

    main()


def _leave(number: int, _: object) -> None:
    """At once: before a verb begins, and after it has ended, there is nothing to lose."""
    try:
        os.write(2, b"Stopped.\n")
    finally:
        os._exit(128 + number)
