"""In a worker, before the clock starts: loads a solver. A module of its own, since workers load it, too."""

import importlib
import time


def load(module: str, report: object) -> None:
    """Stays long enough that a second call at the same time reaches another worker."""
    importlib.import_module(module)
    time.sleep(0.05)
