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

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

# The module of each, loaded when the name is first asked for: the command prints its help without them.
_HOMES = {
    name: home
    for home, names in {
        "check": ("Verdict", "Violation", "check"),
        "errors": ("ChainRouteError", "Fault"),
        "fleet": ("VehicleType",),
        "measure": ("Metric", "Rounding"),
        "problem": ("Problem",),
        "solution": ("Route", "Solution"),
        "solve": ("solve",),
        "variants": ("SEEN", "VARIANTS", "ZERO_SHOT", "Backhaul", "Variant", "variant"),
    }.items()
    for name in names
}


class _Package(ModuleType):
    """This package, whose `check` and `solve` are the functions, also when the modules are loaded first."""

    def __getattr__(self, name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}", name=name, obj=self)
        value = getattr(import_module(f"{self.__name__}.{_HOMES[name]}"), name)
        setattr(self, name, value)
        return value

    def __setattr__(self, name: str, value: object) -> None:
        """Sets what is set, but for a module in place of the function that it is named after."""
        if not (name in _HOMES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *__all__})


sys.modules[__name__].__class__ = _Package
