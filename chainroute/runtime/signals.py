"""Signals that ask to stop: Ctrl-C, a polite kill, a terminal that is closed.

Those that the caller has switched off stay off, as nohup does with the last, and a shell with Ctrl-C for jobs
in the background.
"""

from __future__ import annotations

import os
import select
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SIGNAL_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")


class StopRequest(threading.Event):
    """Set once somebody has asked to stop."""

    number = int(signal.SIGINT)  # of the signal that asked


class Interrupt(KeyboardInterrupt):
    """What a signal other than Ctrl-C becomes where nobody waits for it."""

    def __init__(self, number: int):
        self.number = number


@contextmanager
def interruptible() -> Iterator[StopRequest]:
    """While it lasts, the first signal only asks to stop, and a second Ctrl-C interrupts. Others may come
    twice by themselves: to the process and to its group, or from a terminal and from its shell."""
    stop = StopRequest()
    asked = False  # another signal may come while this one sets the event, which has a lock

    def ask(number: int) -> None:
        nonlocal asked
        if not asked:
            asked = True
            stop.number = number
            stop.set()
        elif number == signal.SIGINT:
            raise KeyboardInterrupt

    with handling(ask):
        yield stop


@contextmanager
def interrupting() -> Iterator[None]:
    """While it lasts, every signal interrupts as Ctrl-C does; a polite kill once is enough."""
    heard: set[int] = set()

    def interrupt(number: int) -> None:
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        if not heard:
            heard.add(number)
            raise Interrupt(number)

    with handling(interrupt):
        yield


@contextmanager
def handling(handle: Callable[[int], None]) -> Iterator[None]:
    """Signals are handled so. Outside the main thread, which alone receives them, nothing changes."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def on_signal(number: int, _: object) -> None:
        if number != signal.SIGINT:
            leave_unread()
        handle(number)

    numbers = [getattr(signal, name) for name in SIGNAL_NAMES if hasattr(signal, name)]
    before = {n: signal.getsignal(n) for n in numbers if signal.getsignal(n) not in (signal.SIG_IGN, None)}
    for number in before:
        signal.signal(number, on_signal)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def leave_unread() -> None:
    """What is written to a terminal that is gone, or to a pipe that nobody reads, goes nowhere, so that files
    are written all the same."""
    for stream in (1, 2):
        look = select.poll()
        look.register(stream, 0)  # no event but that it cannot be written to any more
        if look.poll(0):
            discard(stream)


def discard(stream: int = 1) -> None:
    """Sends nowhere what is written to the stream from now on, also what Python still has to flush."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream)
    os.close(nowhere)
