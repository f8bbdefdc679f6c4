"""What a problem contains, in words: each output format says which of these it can hold.

A writer refuses a problem that has more, so nothing is ever dropped on the way to a file.
"""

import re
from collections.abc import Callable, Collection, Sequence
from functools import partial

import numpy as np

from chainroute.errors import ChainRouteError, Fault, fail
from chainroute.problem import EXTRAS, Problem
from chainroute.problem.measure import Metric, Rounding
from chainroute.problem.variants import Backhaul


def _rounded(p: Problem, *roundings: Rounding) -> bool:
    return p.distance_matrix is None and p.rounding in roundings


def _limited(p: Problem, counts_service: bool) -> bool:
    """The two kinds of limit differ only where there are service times."""
    return p.distance_limit is not None and p.limit_counts_service is counts_service and bool(p.service.any())


def _beyond(extra: str, p: Problem) -> bool:
    return extra in p.extras


FEATURES: dict[str, Callable[[Problem], bool]] = {
    "several depots": lambda p: p.num_depots > 1,
    "open routes": lambda p: p.open,
    "linehauls first": lambda p: p.backhaul is Backhaul.LINEHAULS_FIRST,
    "mixed backhauls": lambda p: p.backhaul is Backhaul.MIXED,
    "time windows": lambda p: p.time_windows is not None,
    "no time windows": lambda p: p.time_windows is None,
    "windows that never close": lambda p: p.time_windows is not None and bool(np.isinf(p.windows).any()),
    "service times": lambda p: bool(p.service.any()),
    "a distance limit": lambda p: p.distance_limit is not None,
    "a limit with service": lambda p: _limited(p, counts_service=True),
    "a limit without service": lambda p: _limited(p, counts_service=False),
    "a fleet size": lambda p: p.fleet is not None,
    "no coordinates": lambda p: p.coords is None,
    "longitude and latitude": lambda p: p.coords is not None and p.metric is Metric.HAVERSINE,
    "a distance matrix": lambda p: p.distance_matrix is not None,
    "a duration matrix": lambda p: p.duration_matrix is not None,
    "rounding to integers": lambda p: _rounded(p, Rounding.ROUND, Rounding.CEIL, Rounding.TRUNC),
    "rounding to one decimal": lambda p: _rounded(p, Rounding.TRUNC1),
    "times of day": lambda p: p.day is not None,
    "names": lambda p: p.names != p.replace(names=()).names,
    **{extra: partial(_beyond, extra) for extra in EXTRAS},
}  # fmt: skip


def require(problem: Problem, holder: str, holds: Collection[str]) -> None:
    """Raises what of the problem the holder, such as a file format, has no place for."""
    missing = [name for name, has in FEATURES.items() if name not in holds and has(problem)]
    if missing:
        faults = [Fault("cannot-express", f"{holder} cannot hold {name}.", problem.name) for name in missing]
        raise ChainRouteError(faults)


def require_known(name: str, problem: Problem, knows: Collection[str], more: Sequence[str] = ()) -> None:
    """Raises what the problem has beyond the 48 variants that a solver does not name among what it holds, and
    `more` that it cannot hold."""
    if missing := [*(extra for extra in problem.extras if extra not in knows), *more]:
        raise fail("unsupported-feature", f"{name} cannot hold: {', '.join(missing)}.", problem.name)


# -- what is not there, or has another name here

# What is not supported, by what is in the names of fields that ask for it; and what comes nearest.
BEYOND = {
    "break": (
        "breaks",
        "vehicle types with a shift each, or a customer for the break",
    ),
    "release": ("release times", "a window that opens when the goods are there and the vehicle has arrived"),
    "shipment": ("pairs of pickup and delivery", "mixed backhauls, where goods go from or to the depot"),
    "precedence": ("pairs of pickup and delivery", "windows of which one closes before the other opens"),
    "split": ("customers that are served in parts", "two customers at one place"),
    "commodit": ("several kinds of goods", "a capacity in the unit that is scarcest"),
    "compartment": ("several kinds of goods", "a capacity in the unit that is scarcest"),
    "exclusive": ("customers that exclude each other", "skills, which tie them to different vehicle types"),
    "incompatib": ("customers that exclude each other", "skills, which tie them to different vehicle types"),
    "overtime": ("overtime", "a cost per time, and a shift as long as can be"),
    "balance": ("balanced routes", "a max_duration or distance_limit that no vehicle exceeds"),
    "fairness": ("balanced routes", "a max_duration or distance_limit that no vehicle exceeds"),
    "maxstop": ("a limit on the stops of a route", "a capacity in stops, if nothing else binds"),
    "maxtask": ("a limit on the stops of a route", "a capacity in stops, if nothing else binds"),
    "setup": ("setup times", "service times"),
    "traffic": ("travel times that change over the day", "durations of the busiest hour"),
    "timedependent": ("travel times that change over the day", "durations of the busiest hour"),
    "charg": ("charging and fuel", "a distance_limit"),
    "battery": ("charging and fuel", "a distance_limit"),
    "fuel": ("charging and fuel", "a distance_limit, and a cost_per_distance"),
    "frequency": ("plans of several days", "a problem for each day"),
}

# Common names of what is here, by what is in them.
OUR_NAMES = {
    "skill": "skills",
    "trips": "max_trips of a vehicle type",
    "reload": "max_trips of a vehicle type",
    "priorit": "prize",
    "penalt": "prize",
    "optional": "prize",
    "prize": "prize",
    "vehicletype": "vehicles",
    "allowed": "skills",
    "forbidden": "skills",
    "fixedcost": "fixed_cost",
    "distancecost": "cost_per_distance",
    "durationcost": "cost_per_time",
    "timecost": "cost_per_time",
    "costper": "cost_per_distance or cost_per_time",
    "shift": "shift of a vehicle type",
    "driver": "shift of a vehicle type",
    "maxduration": "max_duration of a vehicle type",
    "enddepot": "end of a vehicle type",
    "timewindows": "windows",
}


# The same by whole names: as a part of others, such as a column of notes, they mean nothing.
_PAIRS = "pairs of pickup and delivery", "mixed backhauls, where goods go from or to the depot"
BEYOND_WHOLE = {
    **dict.fromkeys(("pairs", "pickupof", "deliveryof", "pickupdelivery", "pickupsdeliveries"), _PAIRS),
    "lunch": BEYOND["break"],
    "equalize": BEYOND["balance"],
    "rushhours": BEYOND["traffic"],
    "durationsbyhour": BEYOND["traffic"],
}
OUR_WHOLE_NAMES = {
    "start": "depot of a vehicle type, or open_start where it begins at its first customer",
    "depot": "skills, which only the vehicle types at that depot have",
    "depots": "skills, which only the vehicle types at those depots have",
    "maxdistance": "distance_limit",
    "distancematrix": "distances",
    "durationmatrix": "durations",
    "profile": "speed, or distances and durations, of a vehicle type",
}


def _letters(field: str) -> str:
    return re.sub(r"[^a-z]", "", field.lower())


def beyond(field: str) -> str:
    """What a field that we do not have asks for, if that is not supported, and what comes nearest; or ""."""
    name = _letters(field)
    found = BEYOND_WHOLE.get(name) or next((words for part, words in BEYOND.items() if part in name), None)
    return "" if found is None else f"{found[0]}, which is not supported; nearest comes {found[1]}."


def our_name(field: str) -> str:
    """What a field is called here that has another name elsewhere; or ""."""
    name = _letters(field)
    return OUR_WHOLE_NAMES.get(name) or next((ours for part, ours in OUR_NAMES.items() if part in name), "")
