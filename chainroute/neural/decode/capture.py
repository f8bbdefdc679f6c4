"""Work on a GPU captured once and replayed, so that hundreds of small kernels cost the host one launch.

What is captured reads and writes tensors that stay where they are. All it needs in between comes from one
pool of memory for each stream, which replays of that stream share: they follow one another.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import Any

import torch

_refused: list[str] = []  # why a capture failed, once one did


def works() -> bool:
    """Whether captures are possible, as far as is known."""
    return not _refused


def refuse(why: str) -> None:
    """Nothing is captured from now on."""
    _refused.append(why)


def capture(work: Callable[[], None]) -> Callable[[], None]:
    """Replays the work, which is not run before; where it cannot be captured, the work itself."""
    stream = torch.cuda.current_stream()
    side, pool, _ = _pool(stream.device, stream.cuda_stream)
    side.wait_stream(stream)
    try:
        return _captured(work, side, pool).replay
    except RuntimeError as error:
        if isinstance(error, torch.OutOfMemoryError):
            raise
        refuse(str(error))
        logging.getLogger(__name__).warning("steps are launched one by one, which is slower: %s", error)
        return work


@functools.cache
def _pool(device: torch.device, stream: int) -> tuple[torch.cuda.Stream, Any, torch.cuda.CUDAGraph]:
    """A stream to capture on, memory for captures, and a graph that keeps this memory from being freed."""
    side = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    pool = torch.cuda.graph_pool_handle()
    place = torch.zeros(1, device=device)
    return side, pool, _captured(place.zero_, side, pool)


def _captured(work: Callable[[], object], side: torch.cuda.Stream, pool: Any) -> torch.cuda.CUDAGraph:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.stream(side):
        # Other threads may use the GPU meanwhile; the usual context manager would also empty all caches.
        graph.capture_begin(pool=pool, capture_error_mode="thread_local")
        try:
            work()
        finally:
            graph.capture_end()
    return graph
