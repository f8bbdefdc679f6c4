"""The classical solvers by name, as `--solver` and `evaluate` know them."""

from chainroute.classical import lkh, milp, ortools, pyvrp, vroom
from chainroute.classical.library import Solver

SOLVERS: dict[str, Solver] = {
    "pyvrp": pyvrp.SOLVER,
    "ortools": ortools.SOLVER,
    "vroom": vroom.SOLVER,
    "milp": milp.SOLVER,
    "lkh": lkh.SOLVER,
}
