"""What a problem contains, in words: each output format says which of these it can hold.

A writer refuses a problem that has more, so nothing is ever dropped on the way to a file.
"""

import re
from collections.abc import Callable, Collection

import numpy as np

from chainroute.errors import ChainRouteError, Fault
from chainroute.measure import Metric, Rounding
from chainroute.problem import Problem
from chainroute.variants import Backhaul


def _rounded(p: Problem, *roundings: Rounding) -> bool:
    return p.distance_matrix is None and p.rounding in roundings


def _limited(p: Problem, counts_service: bool) -> bool:
    """The two kinds of limit differ only where there are service times."""
    return p.distance_limit is not None and p.limit_counts_service is counts_service and bool(p.service.any())


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
}  # fmt: skip


def require(problem: Problem, holder: str, holds: Collection[str]) -> None:
    """Raises what of the problem the holder, such as a file format, has no place for."""
    missing = [name for name, has in FEATURES.items() if name not in holds and has(problem)]
    if missing:
        faults = [Fault("cannot-express", f"{holder} cannot hold {name}.", problem.name) for name in missing]
        raise ChainRouteError(faults)


# -- what lies beyond

# What problems outside the 48 variants contain, by what is in the names of their fields.
BEYOND = {
    "skill": "skills",
    "break": "breaks",
    "trips": "several trips of a vehicle",
    "multitrip": "several trips of a vehicle",
    "reload": "several trips of a vehicle",
    "release": "release times",
    "priorit": "customers that may be left out",
    "prize": "customers that may be left out",
    "penalt": "customers that may be left out",
    "optional": "customers that may be left out",
    "shipment": "pairs of pickup and delivery",
    "precedence": "pairs of pickup and delivery",
    "split": "customers that are served in parts",
    "commodit": "several kinds of goods",
    "compartment": "several kinds of goods",
    "vehicletype": "vehicles that differ from each other",
    "allowed": "customers tied to certain vehicles",
    "forbidden": "customers tied to certain vehicles",
    "exclusive": "customers that exclude each other",
    "incompatib": "customers that exclude each other",
    "fixedcost": "costs other than the distance",
    "distancecost": "costs other than the distance",
    "durationcost": "costs other than the distance",
    "costper": "costs other than the distance",
    "driver": "working hours of drivers",
    "shift": "working hours of drivers",
    "overtime": "working hours of drivers",
    "maxduration": "a limit that waiting counts towards",
    "maxstop": "a limit on the stops of a route",
    "maxtask": "a limit on the stops of a route",
    "setup": "setup times",
    "traffic": "travel times that change over the day",
    "timedependent": "travel times that change over the day",
    "charg": "charging and fuel",
    "battery": "charging and fuel",
    "fuel": "charging and fuel",
    "enddepot": "routes that end at another depot",
    "frequency": "plans of several days",
}


def beyond(field: str) -> str:
    """What a field that we do not have says, if that belongs to problems outside the 48 variants; or ""."""
    letters = re.sub(r"[^a-z]", "", field.lower())
    return next((what for part, what in BEYOND.items() if part in letters), "")
