"""Options: each declared once, and what is chosen where the caller leaves one open."""

from chainroute.options.declare import Argument, Group, Option, Parameter, parameters
from chainroute.options.effort import (
    MAPS,
    SEEDS,
    DecodeOptions,
    Effort,
    Seed,
    TimeLimit,
    limit_faults,
    require_limits,
)

__all__ = [
    "MAPS",
    "SEEDS",
    "Argument",
    "DecodeOptions",
    "Effort",
    "Group",
    "Option",
    "Parameter",
    "Seed",
    "TimeLimit",
    "limit_faults",
    "parameters",
    "require_limits",
]
