"""The arrays of the benchmark's files: many problems of one size and variant, stacked.

With B problems of M depots and N customers: locs (B, M + N, 2), demands (B, N), windows (B, M + N, 2),
service times (B, M + N), and one number per problem (B, 1). An array a variant does not need is left out.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chainroute.errors import ChainRouteError, Fault, fail, more
from chainroute.problem import Problem
from chainroute.problem.features import require
from chainroute.problem.fields import MAX_FAULTS
from chainroute.problem.measure import FloatArray
from chainroute.problem.variants import Backhaul

Arrays = dict[str, NDArray[Any]]

HOLDS = {
    "several depots", "open routes", "linehauls first", "mixed backhauls", "time windows", "no time windows",
    "windows that never close", "service times", "a distance limit", "a limit without service",
}  # fmt: skip

BACKHAUL_CLASSES = (Backhaul.NONE, Backhaul.LINEHAULS_FIRST, Backhaul.MIXED)  # numbered 0, 1, 2
REQUIRED = ("locs", "demand_linehaul", "vehicle_capacity")


def problems_from_arrays(arrays: Arrays, name: str) -> list[Problem]:
    """The problems in the arrays, in double precision; several are called name[0], name[1], ..."""
    faults = _faults(arrays)
    if faults:
        raise ChainRouteError(faults)
    a = {key: np.asarray(array, np.float64) for key, array in arrays.items()}
    count, n = a["demand_linehaul"].shape
    depots = a["locs"].shape[1] - n
    problems = []
    for i in range(count):
        called = name if count == 1 else f"{name}[{i}]"
        try:
            problems.append(_problem({key: array[i] for key, array in a.items()}, depots, called))
        except ChainRouteError as error:
            faults += [fault.moved(file=called) for fault in error.faults]
    if beyond := faults[MAX_FAULTS:]:
        raise ChainRouteError([*faults[:MAX_FAULTS], more(beyond[0].code, len(beyond), name)])
    if faults:
        raise ChainRouteError(faults)
    return problems


def _problem(a: dict[str, FloatArray], depots: int, name: str) -> Problem:
    def scalar(key: str, default: float) -> float:
        return float(a[key].item()) if key in a else default

    return Problem(
        name=name,
        num_depots=depots,
        coords=a["locs"],
        capacity=scalar("vehicle_capacity", 1),
        delivery=a["demand_linehaul"],
        pickup=a.get("demand_backhaul", np.zeros(0)),
        backhaul=BACKHAUL_CLASSES[int(scalar("backhaul_class", 0))],
        open=bool(scalar("open_route", 0)),
        time_windows=a.get("time_windows"),
        service=a["service_time"][depots:] if "service_time" in a else np.zeros(0),
        distance_limit=scalar("distance_limit", np.inf),
    )


def _faults(arrays: Arrays) -> list[Fault]:
    """Arrays that are missing, unknown, of the wrong kind or shape, or outside the 48 variants."""
    faults = [Fault("missing-field", "the array is missing.", key) for key in REQUIRED if key not in arrays]
    faults += [
        Fault("wrong-type", f"must be numbers, not {a.dtype}.", key)
        for key, a in arrays.items()
        if a.dtype.kind not in "biuf"
    ]
    if faults:
        return faults
    locs, demand = arrays["locs"].shape, arrays["demand_linehaul"].shape
    if len(locs) != 3 or len(demand) != 2 or locs[2] != 2 or locs[0] != demand[0]:
        message = f"locs has shape {locs} and demand_linehaul {demand}; (B, M + N, 2) and (B, N) are needed."
        return [Fault("wrong-shape", message, "locs")]
    (count, n), depots = demand, locs[1] - demand[1]
    if depots < 1:
        return [Fault("no-depot", f"{locs[1]} locations for {n} customers leave no depot.", "locs")]
    if count < 1:
        return [Fault("no-customer", "there are no problems in the arrays.", "locs")]
    shapes = _shapes(count, depots, n)
    for key, a in arrays.items():
        if key not in shapes:
            faults.append(Fault("unknown-field", "is not an array of the benchmark.", key))
        elif a.shape not in shapes[key]:
            faults.append(Fault("wrong-shape", f"has shape {a.shape}, not {shapes[key][0]}.", key))
    return faults or list(_meanings(arrays, depots))


def _shapes(count: int, depots: int, n: int) -> dict[str, tuple[tuple[int, ...], ...]]:
    scalar = ((count, 1), (count,))
    return {
        "locs": ((count, depots + n, 2),),
        "demand_linehaul": ((count, n),),
        "demand_backhaul": ((count, n),),
        "time_windows": ((count, depots + n, 2),),
        "service_time": ((count, depots + n),),
        **dict.fromkeys(("backhaul_class", "open_route", "distance_limit"), scalar),
        **dict.fromkeys(("num_depots", "vehicle_capacity", "speed"), scalar),
    }


def _meanings(arrays: Arrays, depots: int) -> Iterable[Fault]:
    if (arrays.get("num_depots", np.array(depots)) != depots).any():
        yield Fault("wrong-count", f"must be {depots}, as locs and demand_linehaul say.", "num_depots")
    if (arrays.get("speed", np.array(1)) != 1).any():
        yield Fault("unsupported-feature", "a speed other than 1.", "speed")
    if "service_time" in arrays and (arrays["service_time"][:, :depots] != 0).any():
        yield Fault("unsupported-feature", "a service time at a depot.", "service_time")
    if not np.isin(arrays.get("backhaul_class", np.array(0)), (0, 1, 2)).all():
        yield Fault("unknown-value", "must be 0 (none), 1 (linehauls first) or 2 (mixed).", "backhaul_class")
    if not np.isin(arrays.get("open_route", np.array(0)), (0, 1)).all():
        yield Fault("unknown-value", "must be true or false.", "open_route")


def arrays_from_problems(problems: Sequence[Problem]) -> Arrays:
    """The inverse of `problems_from_arrays`, in single precision where that loses nothing."""
    if not problems:
        raise fail("no-customer", "there are no problems to put into arrays.")
    first = problems[0]
    for p in problems:
        require(p, "an npz", HOLDS)
        if (p.num_depots, p.num_customers, p.variant) != (
            first.num_depots,
            first.num_customers,
            first.variant,
        ):
            message = f"an npz holds problems of one size and variant; '{first}' comes first."
            raise fail("cannot-express", message, p.name)

    def stack(values: Iterable[Any]) -> NDArray[Any]:
        exact = np.array(list(values), np.float64)
        exact = exact[:, None] if exact.ndim == 1 else exact
        with np.errstate(over="ignore"):
            single = exact.astype(np.float32)
        return single if (single == exact).all() else exact

    arrays: Arrays = {
        "locs": stack(p.coords for p in problems),
        "demand_linehaul": stack(p.delivery for p in problems),
        "vehicle_capacity": stack(p.capacity for p in problems),
        "speed": stack(1.0 for _ in problems),
        "num_depots": np.full((len(problems), 1), first.num_depots, np.int32),
    }
    if first.backhaul is not Backhaul.NONE:
        arrays["demand_backhaul"] = stack(p.pickup for p in problems)
        arrays["backhaul_class"] = stack(BACKHAUL_CLASSES.index(p.backhaul) for p in problems)
    if first.open:
        arrays["open_route"] = np.ones((len(problems), 1), np.bool_)
    if first.time_windows is not None:
        arrays["time_windows"] = stack(p.windows for p in problems)
    if first.time_windows is not None or any(p.service.any() for p in problems):
        arrays["service_time"] = stack(p.services for p in problems)
    if first.distance_limit is not None:
        arrays["distance_limit"] = stack(p.distance_limit for p in problems)
    return arrays
