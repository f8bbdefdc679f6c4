"""ChainRoute: one neural policy that solves 48 vehicle routing problems."""

from chainroute.check import Verdict, Violation, check
from chainroute.errors import ChainRouteError, Fault
from chainroute.measure import Metric, Rounding
from chainroute.problem import Problem
from chainroute.solution import Route, Solution
from chainroute.variants import SEEN, VARIANTS, ZERO_SHOT, Backhaul, Variant, variant

__version__ = "0.1.0"

__all__ = [
    "SEEN",
    "VARIANTS",
    "ZERO_SHOT",
    "Backhaul",
    "ChainRouteError",
    "Fault",
    "Metric",
    "Problem",
    "Rounding",
    "Route",
    "Solution",
    "Variant",
    "Verdict",
    "Violation",
    "check",
    "variant",
]
