"""A module that is run by itself."""

import sys
from collections.abc import Callable
from typing import NoReturn

from chainroute.errors import ChainRouteError


def exit_with(main: Callable[[], int | None]) -> NoReturn:
    """Ends the process with the code that main returns; what the user can correct is told, and the code 2."""
    try:
        sys.exit(main())
    except ChainRouteError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
