"""Libraries that come with an extra: what is told where one is missing, or is there and cannot be loaded."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from chainroute.errors import fail


@contextmanager
def loading(what: str, extra: str) -> Iterator[None]:
    """Around imports: one that fails is a coded error, which says that `what` needs it."""
    try:
        yield
    except ModuleNotFoundError as error:
        message = f"{what} needs {error.name}: pip install 'chainroute[{extra}]'."
        raise fail("missing-extra", message) from None
    except (ImportError, OSError) as error:  # the latter where a library of the system is not found
        message = f"{what} needs a library that is installed and cannot be loaded."
        raise fail("broken-extra", message, cause=str(error)) from None
