"""How hard to try, and for how long."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass

from chainroute.errors import ChainRouteError, Fault

SEEDS = 2**32


@dataclass(frozen=True)
class Effort:
    """What is tried within the time limit; None leaves the choice to the size and the time."""

    polish: bool = True  # False: the policy alone, no PyVRP
    iterations: int | None = None  # of each search; without a time limit, same seed, same routes
    starts: int | None = None  # first customers that the policy tries
    augmentations: int | None = None  # turned and mirrored maps, 1 to 8
    samples: int | None = None  # sampled trajectories for each start and map; 0: greedy
    update_rates: tuple[float, ...] | None = None  # the paper's P; several are CCL-Ens. None: the policy's
    recombine: bool | None = None  # the best plan of the routes of all trajectories
    rounds: int | None = None  # in which the policy solves neighbouring routes anew
    weights: str | os.PathLike[str] | None = None  # None: those shipped for the size; "random": untrained
    device: str | None = None  # None: a GPU where there is one

    def __post_init__(self) -> None:
        faults = [
            *_whole("iterations", self.iterations, 0),
            *_whole("starts", self.starts, 1),
            *_whole("augmentations", self.augmentations, 1, 8),
            *_whole("samples", self.samples, 0),
            *_whole("rounds", self.rounds, 0),
        ]
        rates = self.update_rates
        if rates is not None and not (isinstance(rates, tuple) and rates and all(map(_is_share, rates))):
            message = f"must be a tuple of numbers from 0 to 1, not {rates!r}."
            faults.append(Fault("bad-option", message, "update_rates"))
        if faults:
            raise ChainRouteError(faults)


def default_limit(customers: int) -> float:
    """Seconds, where none are given."""
    return min(10.0, 1 + customers / 50)


def option_faults(time_limit: object, seed: object) -> list[Fault]:
    faults = []
    number = isinstance(time_limit, int | float) and not isinstance(time_limit, bool)
    if time_limit is not None and not (number and 0 < time_limit < math.inf):  # type: ignore[operator]
        message = f"must be a number of seconds above 0, not {time_limit!r}."
        faults.append(Fault("bad-option", message, "time_limit"))
    if not (isinstance(seed, int) and 0 <= seed < SEEDS):
        message = f"must be a whole number from 0 to 2^32 - 1, not {seed!r}."
        faults.append(Fault("bad-option", message, "seed"))
    return faults


def _whole(name: str, value: object, least: int, most: int | None = None) -> list[Fault]:
    if value is None or (type(value) is int and least <= value and (most is None or value <= most)):
        return []
    span = f"of at least {least}" if most is None else f"from {least} to {most}"
    return [Fault("bad-option", f"must be a whole number {span}, not {value!r}.", name)]


def _is_share(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1
