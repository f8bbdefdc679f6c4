"""ChainRoute: one neural policy that solves 48 vehicle routing problems.

Here are the problem, its solution, their judge, and `solve`. Beside them:

    chainroute.formats           read, read_many, read_solution, write, write_solution
    chainroute.solve             solve_many; Effort: how hard to try; explain: why there is no plan
    chainroute.classical.pyvrp   solve: PyVRP alone within a time limit
    chainroute.policy.store      load_policy, save_policy
    chainroute.decode            decode: solutions of many problems by a policy
    chainroute.generate          generate: random problems of any variant
    chainroute.plot              draw: a picture of a problem or a solution
    chainroute.train             train: a new policy
"""

from chainroute.check import Verdict, Violation, check
from chainroute.errors import ChainRouteError, Fault
from chainroute.fleet import VehicleType
from chainroute.measure import Metric, Rounding
from chainroute.problem import Problem
from chainroute.solution import Route, Solution
from chainroute.solve import solve
from chainroute.variants import SEEN, VARIANTS, ZERO_SHOT, Backhaul, Variant, variant

__version__ = "0.2.0"

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
    "VehicleType",
    "Verdict",
    "Violation",
    "check",
    "solve",
    "variant",
]
