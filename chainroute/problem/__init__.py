"""A routing problem: its fields, what makes them sound, which customers can be served, and what it contains.

problem.py     Problem: one immutable, validated instance in the user's units
fleet.py       VehicleType as given, and vehicles as the checker and the solvers read them
validate.py    fields in; fields in their final form out, or all errors at once
fields.py      kinds of fields: numbers, choices, arrays and matrices
reachable.py   which customers of a problem can be served: its trips and requirements
servable.py    which vehicles can serve a customer by a route of its own, and why the others cannot
infeasible.py  what is proven impossible
variants.py    the 48 variants as sets of attributes
features.py    what a problem contains, in words: what each format can hold
measure.py     metrics, rounding conventions, and the slack for rounding errors
slack.py       the shares by which bounds may be exceeded
roads.py       legs without a road: infinite and absurdly long entries of a matrix
arrays.py      many problems stacked in arrays, as the benchmark stores them
"""

from chainroute.problem.fleet import VehicleType
from chainroute.problem.problem import EXTRAS, Problem, require_problem

__all__ = ["EXTRAS", "Problem", "VehicleType", "require_problem"]
