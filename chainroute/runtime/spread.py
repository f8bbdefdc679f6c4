"""Many short calls on all cores, by workers."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from chainroute.runtime import worker
from chainroute.runtime.cores import cores
from chainroute.runtime.deadline import Deadline

A = TypeVar("A", bound=tuple[Any, ...])
R = TypeVar("R")

AHEAD = 2  # calls for each core that are under way or answered before the first of them is heard


def on_all_cores(call: Callable[..., R], each: Iterable[A]) -> Iterator[tuple[A, R]]:
    """Yields the arguments with what the call, a function of a module, returns for them, in their order.

    They are taken as cores are free. What the call raises is raised here.
    """
    lanes = cores()
    under_way: deque[tuple[A, Future[R]]] = deque()
    pool = ThreadPoolExecutor(lanes)
    try:
        for args in each:
            under_way.append((args, pool.submit(_answer, call, args)))
            while under_way and (len(under_way) >= AHEAD * lanes or under_way[0][1].done()):
                first, answer = under_way.popleft()
                yield first, answer.result()
        for first, answer in under_way:
            yield first, answer.result()
    finally:
        pool.shutdown(cancel_futures=True)


def _answer(call: Callable[..., R], args: tuple[Any, ...]) -> R:
    heard: list[tuple[R, Exception | None]] = []
    worker.run(_call, (call, args), Deadline(), heard.append, kind=worker.FILES)
    ((answer, error),) = heard
    if error is not None:
        raise error
    return answer


def _call(
    call: Callable[..., R],
    args: tuple[Any, ...],
    report: Callable[[tuple[R | None, Exception | None]], None],
) -> None:
    """Reports what the call returns or raises: a failure is the caller's, not a solver's."""
    try:
        report((call(*args), None))
    except Exception as error:
        report((None, error))
