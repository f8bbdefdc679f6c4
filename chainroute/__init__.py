"""ChainRoute: one neural policy that solves 48 vehicle routing problems.

Here are the problem, its solution, their checker, and `solve`. Beside them:

    chainroute.formats           read, read_many, read_solution, write, write_solution
    chainroute.solve             solve_many; Effort: how hard to try; explain: why there is no plan
    chainroute.classical.pyvrp   solve: PyVRP alone within a time limit
    chainroute.policy.store      load_policy, save_policy
    chainroute.decode            decode: solutions of many problems by a policy
    chainroute.generate          generate: random problems of any variant
    chainroute.plot              draw: a picture of a problem or a solution
    chainroute.train             train: a new policy
    chainroute.client            Client: of a running service

Some of these are short names for modules that lie deeper; `chainroute/runtime/aliases.py` lists them.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from chainroute.runtime import aliases

if TYPE_CHECKING:
    from chainroute.errors import ChainRouteError, Fault
    from chainroute.plan.check import Verdict, Violation, check
    from chainroute.plan.solution import Route, Solution
    from chainroute.problem import Problem, VehicleType
    from chainroute.problem.measure import Metric, Rounding
    from chainroute.problem.variants import SEEN, VARIANTS, ZERO_SHOT, Backhaul, Variant, variant
    from chainroute.solve import solve

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
        "errors": ("ChainRouteError", "Fault"),
        "plan.check": ("Verdict", "Violation", "check"),
        "plan.solution": ("Route", "Solution"),
        "problem": ("Problem", "VehicleType"),
        "problem.measure": ("Metric", "Rounding"),
        "problem.variants": ("SEEN", "VARIANTS", "ZERO_SHOT", "Backhaul", "Variant", "variant"),
        "solve": ("solve",),
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
        """Sets the attribute, but never a module in place of the function of that name."""
        if not (name in _HOMES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *__all__})


sys.modules[__name__].__class__ = _Package
aliases.install()
