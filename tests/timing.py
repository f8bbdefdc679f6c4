"""Whether time limits hold, on a machine that may be busy with something else."""

import time
from contextlib import suppress
from pathlib import Path


def within(limit, call, margin=0.2, before=lambda: None):
    """Whether the call keeps its limit, less what this thread waited for a core; it has three chances, each
    after what comes before it."""
    for _ in range(3):
        before()
        begin, waited = time.perf_counter(), waiting()
        call()
        if time.perf_counter() - begin - (waiting() - waited) <= limit + margin:
            return True
    return False


def waiting():
    """Seconds for which this thread could have run and had no core; 0 where the system does not tell."""
    with suppress(OSError):
        return int(Path("/proc/thread-self/schedstat").read_text().split()[1]) / 1e9
    return 0.0
