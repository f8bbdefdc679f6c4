"""Many short calls on all cores, by workers."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import Any, TypeVar

from chainroute.errors import ChainRouteError
from chainroute.runtime import worker
from chainroute.runtime.cores import cores
from chainroute.runtime.deadline import Deadline

A = TypeVar("A", bound=tuple[Any, ...])
R = TypeVar("R")

TOGETHER = 8  # calls that a worker is given at a time: to send each by itself costs this process 0.5 ms more
AHEAD = 2  # such groups of calls for each core, under way or answered before the first of them is heard


def on_all_cores(
    call: Callable[..., R],
    each: Iterable[A],
    lost: Callable[[A, ChainRouteError], R] | None = None,
) -> Iterator[tuple[A, R]]:
    """Yields the arguments with what the call, a function of a module, returns for them, in their order.

    They are taken as cores are free. What the call raises is raised here, and so is the death of a worker,
    unless something stands for what is `lost` by it: that is the one call that it dies of.
    """
    lanes, rest = cores(), iter(each)
    under_way: deque[tuple[list[A], Future[tuple[list[R], Exception | None]]]] = deque()
    pool = ThreadPoolExecutor(lanes)
    try:
        while some := list(islice(rest, TOGETHER)):
            under_way.append((some, pool.submit(_answers, call, some, lost)))
            while under_way and (len(under_way) >= AHEAD * lanes or under_way[0][1].done()):
                yield from _heard(*under_way.popleft())
        while under_way:
            yield from _heard(*under_way.popleft())
    finally:
        pool.shutdown(cancel_futures=True)


def _heard(some: list[A], asked: Future[tuple[list[R], Exception | None]]) -> Iterator[tuple[A, R]]:
    answers, error = asked.result()
    yield from zip(some, answers, strict=error is None)
    if error is not None:
        raise error


def _answers(
    call: Callable[..., R], some: list[A], lost: Callable[[A, ChainRouteError], R] | None
) -> tuple[list[R], Exception | None]:
    heard: list[tuple[list[R], Exception | None]] = []
    try:
        worker.run(_call, (call, some), Deadline(), heard.append, kind=worker.FILES)
    except ChainRouteError as death:
        if lost is None:
            raise
        if len(some) == 1:
            return [lost(some[0], death)], None
        each = [_answers(call, [args], lost) for args in some]
        return [answer for answers, _ in each for answer in answers], next((e for _, e in each if e), None)
    return heard[0]


def _call(
    call: Callable[..., R],
    some: list[tuple[Any, ...]],
    report: Callable[[tuple[list[R], Exception | None]], None],
) -> None:
    """Reports what the call returns for each until it raises, and what that is: the caller's failure, not a
    solver's."""
    answers: list[R] = []
    try:
        for args in some:
            answers.append(call(*args))  # noqa: PERF401 those before a failure are kept
        report((answers, None))
    except Exception as error:
        report((answers, error))
