"""The shares by which bounds may be exceeded: zero if all numbers are whole, otherwise rounding errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from chainroute.problem import measure

if TYPE_CHECKING:
    from chainroute.problem import Problem


def load_slack(p: Problem) -> float:
    """Returns the share by which a load may exceed a capacity."""
    capacities = [vehicle.capacity for vehicle in p.types]
    whole = measure.is_whole(np.array(capacities), p.delivery, p.pickup)
    return 0.0 if whole else measure.LOAD_SLACK


def time_slack(p: Problem) -> float:
    """Returns the share by which a time may exceed a bound."""
    travel = p.duration_matrix
    whole = _whole_distances(p) if travel is None else measure.is_whole(travel)
    others = [np.array([*t.shift, t.max_duration]) for t in p.types]
    others += [np.array(w) for w in p.customer_windows if w]
    whole = whole and measure.is_whole(p.windows, p.service, *others)
    own = dict.fromkeys(t.times for t in p.types if t.times is not None)
    whole = whole and all(measure.is_whole(row) for ways in own for row in ways.rows)
    return 0.0 if whole else measure.SLACK


def length_slack(p: Problem) -> float:
    """Returns the share by which a length may exceed a limit."""
    limits = np.array([vehicle.distance_limit for vehicle in p.types])
    counted = p.service if p.limit_counts_service else 0.0
    own = dict.fromkeys(vehicle.lengths for vehicle in p.types if vehicle.lengths is not None)
    whole = _whole_distances(p) and measure.is_whole(limits, counted)
    whole = whole and all(measure.is_whole(row) for ways in own for row in ways.rows)
    return 0.0 if whole else measure.SLACK


def _whole_distances(p: Problem) -> bool:
    """Whether all distances are whole numbers."""
    if p.distance_matrix is not None:
        return measure.is_whole(p.distance_matrix)
    if p.rounding not in measure.TO_INTEGERS:
        return False
    apart = 0.0 if p.coords is None else np.ptp(p.coords, axis=0).max()
    return bool(apart < measure.EXACT_BELOW / 2)
