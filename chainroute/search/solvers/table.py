"""The classical solvers by name, as `--solver` and `evaluate` know them."""

from chainroute.search.library import Solver
from chainroute.search.solvers import lkh, milp, ortools, pyvrp, vroom

SOLVERS: dict[str, Solver] = {
    "pyvrp": pyvrp.SOLVER,
    "ortools": ortools.SOLVER,
    "vroom": vroom.SOLVER,
    "milp": milp.SOLVER,
    "lkh": lkh.SOLVER,
}
