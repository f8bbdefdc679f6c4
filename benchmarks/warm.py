"""In a worker, before the clock starts: loads a solver. A module of its own, since workers load it, too."""

import time

from chainroute.classical.library import Load


def load(library: Load | None, report: object) -> None:
    """Stays long enough that a second call at the same time reaches another worker."""
    if library is not None:
        library()
    time.sleep(0.05)
