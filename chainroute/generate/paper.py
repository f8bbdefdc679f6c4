"""The law of the paper: random problems by it, and the public benchmark of the 48 variants bit for bit.

The unit square, vehicles of capacity 1, time in units of distance. The constants are named here, once; the
generator of the training data draws by the same ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from chainroute.errors import ChainRouteError, Fault
from chainroute.problem import Problem
from chainroute.problem.arrays import BACKHAUL_CLASSES, Arrays, problems_from_arrays
from chainroute.problem.budget import MAX_LOCATIONS
from chainroute.problem.variants import VARIANTS, Backhaul, Variant

# -- the law

DEPOTS = 3  # of a problem with several; uniform in the unit square, as the customers are
DEMAND = (1, 10)  # whole numbers in [1, 10), divided by `capacity`
BACKHAUL_SHARE = 0.2  # the chance that a customer is a backhaul
HORIZON = 4.6  # when the depots close; they open at 0
SERVICE = (0.15, 0.18)  # uniform between the two
WINDOW_SPAN = (0.18, 0.2)  # length of a window; uniform between the two
MAX_LIMIT = 2.8  # a route's limit lies between the longest round trip and this
LIMIT_MARGIN = 1e-6  # what the limit leaves at least above the longest round trip

# As the paper prints it, the law has other windows and limits, and depots that never close.
PRINTED_OPENING = (0.0126, 4.25)  # of a window; uniform between the two
PRINTED_SERVICE = (0.0, 0.15)
PRINTED_WINDOW = (1.8, 2.0)
PRINTED_LIMIT = 3.0

BENCHMARK = {"test": (1234, 1000), "val": (4321, 128)}  # split: seed and number of problems

Draw = Callable[[tuple[int, ...]], NDArray[Any]]


def capacity(n: int) -> float:
    """The capacity of a vehicle, in units of demand, for n customers."""
    if n <= 20:
        return 30
    if n <= 1000:
        return 30 + n // 5
    return 30 + 1000 // 5 + (n - 1000) // 33.3


# -- what is drawn by it


def benchmark(variant: Variant, n: int, split: Literal["test", "val"], count: int | None = None) -> Arrays:
    """The benchmark's arrays for a variant with n customers (50 or 100), or its first `count` problems."""
    seed, total = BENCHMARK.get(split, (0, 0))
    faults = _size_faults(n, DEPOTS if variant.multi_depot else 1)
    if not total:
        faults.append(Fault("bad-option", f"'{split}' is not one of {', '.join(BENCHMARK)}.", "split"))
    elif count is not None:
        faults += _count_faults(count, total)
    if faults:
        raise ChainRouteError(faults)
    rng = np.random.RandomState(seed)  # the published files come from this generator
    arrays = _draw(variant, n, total, rng.random_sample, lambda shape: rng.randint(*DEMAND, shape))
    return arrays if count is None else {key: array[:count] for key, array in arrays.items()}


def generate(variant: Variant, n: int, count: int, seed: int) -> list[Problem]:
    """`count` problems of a variant."""
    return problems_from_arrays(generate_arrays(variant, n, count, seed), f"{variant}-n{n}-seed{seed}")


def generate_printed(variant: Variant, n: int, count: int, seed: int) -> list[Problem]:
    """The same by the law as it is printed: places, demands and backhauls are those of the law in use."""
    arrays = generate_arrays(variant, n, count, seed)
    rng = np.random.default_rng([seed, VARIANTS.index(variant), 1])
    m = DEPOTS if variant.multi_depot else 1
    if variant.time_windows:
        opening, service, length = (
            rng.uniform(*bounds, (count, n)) for bounds in (PRINTED_OPENING, PRINTED_SERVICE, PRINTED_WINDOW)
        )
        windows = np.stack([opening, opening + length], axis=-1)
        arrays["time_windows"] = _single(np.pad(windows, ((0, 0), (m, 0), (0, 0))))
        arrays["time_windows"][:, :m, 1] = np.inf
        arrays["service_time"] = _single(np.pad(service, ((0, 0), (m, 0))))
    if variant.limit:
        arrays["distance_limit"] = np.full((count, 1), PRINTED_LIMIT, np.float32)
    return problems_from_arrays(arrays, f"{variant}-printed-n{n}-seed{seed}")


def generate_arrays(variant: Variant, n: int, count: int, seed: int) -> Arrays:
    """The same as `generate`, in the arrays of the benchmark's files."""
    require_options(n, DEPOTS if variant.multi_depot else 1, count, seed)
    rng = np.random.default_rng([seed, VARIANTS.index(variant)])
    return _draw(variant, n, count, rng.random, lambda shape: rng.integers(*DEMAND, shape))


def _draw(variant: Variant, n: int, count: int, uniform: Draw, demand: Draw) -> Arrays:
    """Draws in the order of the published benchmark, which fixes its bytes."""
    m = DEPOTS if variant.multi_depot else 1
    coords = uniform((count, m + n, 2))
    arrays: Arrays = {
        "locs": _single(coords),
        "demand_linehaul": _single(demand((count, n))) / np.float32(capacity(n)),
        "vehicle_capacity": np.ones((count, 1), np.float32),
        "speed": np.ones((count, 1), np.float32),
        "num_depots": np.full((count, 1), m, np.int32),
    }
    if variant.backhaul is not Backhaul.NONE:
        backhaul = uniform((count, n)) < BACKHAUL_SHARE
        pickups = np.zeros((count, n), np.float32)
        pickups[backhaul] = _single(demand((int(backhaul.sum()),))) / np.float32(capacity(n))
        arrays["demand_linehaul"][backhaul] = 0
        arrays["demand_backhaul"] = pickups
        kind = BACKHAUL_CLASSES.index(variant.backhaul)
        arrays["backhaul_class"] = np.full((count, 1), kind, np.float32)
    if variant.open:
        arrays["open_route"] = np.ones((count, 1), np.bool_)
    from_depot = np.linalg.norm(coords[:, 1:] - coords[:, :1], axis=-1)  # depot 0 to everything else
    if variant.time_windows:
        windows, service = _times(from_depot[:, m - 1 :], uniform)
        arrays["time_windows"] = _single(np.pad(windows, ((0, 0), (m, 0), (0, 0))))
        arrays["time_windows"][:, :m, 1] = HORIZON
        arrays["service_time"] = _single(np.pad(service, ((0, 0), (m, 0))))
    if variant.limit:
        # The other depots count as places to be reached, too: so it is in the published files.
        lower = 2 * from_depot.max(axis=1, keepdims=True) + LIMIT_MARGIN
        upper = np.maximum(MAX_LIMIT, lower + LIMIT_MARGIN)
        arrays["distance_limit"] = _single(lower + (upper - lower) * uniform((count,))[:, None])
    return arrays


def _times(distance: NDArray[np.float64], uniform: Draw) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Windows that a vehicle can meet and still be home in time, and service times."""
    service = SERVICE[0] + (SERVICE[1] - SERVICE[0]) * uniform(distance.shape)
    length = WINDOW_SPAN[0] + (WINDOW_SPAN[1] - WINDOW_SPAN[0]) * uniform(distance.shape)
    latest = (HORIZON - service - length) / distance - 1  # start of the window, in units of the distance
    start = (1 + (latest - 1) * uniform(distance.shape)) * distance
    return np.stack([start, start + length], axis=-1), service


def _single(values: NDArray[Any]) -> NDArray[np.float32]:
    return values.astype(np.float32)


# -- options


def _is_whole(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def require_options(n: int, depots: int, count: int, seed: int) -> None:
    """Raises unless so many problems of that size can be drawn."""
    faults = _size_faults(n, depots) + _count_faults(count)
    if not _is_whole(seed) or seed < 0:
        faults.append(Fault("bad-option", f"must be a whole number of at least 0, not {seed!r}.", "seed"))
    if faults:
        raise ChainRouteError(faults)


def _size_faults(n: int, depots: int) -> list[Fault]:
    most = MAX_LOCATIONS - depots
    if _is_whole(n) and 1 <= n <= most:
        return []
    return [Fault("bad-option", f"must be a whole number from 1 to {most}, not {n!r}.", "n")]


def _count_faults(count: int, most: float = math.inf) -> list[Fault]:
    if _is_whole(count) and 1 <= count <= most:
        return []
    wanted = "of at least 1" if most == math.inf else f"from 1 to {most}"
    return [Fault("bad-option", f"must be a whole number {wanted}, not {count!r}.", "count")]
