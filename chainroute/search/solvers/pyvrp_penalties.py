"""What PyVRP's search pays for breaking a bound, at the beginning.

PyVRP begins halfway up to its largest penalty, which must outweigh anything, and comes down by a tenth every
500 iterations. Until it is down, the search never passes through plans that break a bound, as the best ways
to better plans often do. Here it begins at the price of some legs, and a search that has few iterations
looks more often at how many plans are valid: where there are time windows above all, the same seconds lead to
better plans (docs/results.md).
"""

from __future__ import annotations

import numpy as np
import pyvrp

NEIGHBOUR_LEGS = 30  # legs to a neighbour that a typical excess costs; 20 to 70 do alike
UPDATE_SHARE = 1 / 100  # of all iterations, between looks at how many plans were valid
LEAST_UPDATE_ITERATIONS, UPDATE_ITERATIONS = 20, 500  # there; the latter is PyVRP's own
SAMPLED_PLACES = 100  # at most, whose legs tell how long one is


class NeighbourPenalties(pyvrp.PenaltyParams):
    """PyVRP's parameters, with a beginning at which a bound may be broken on the way."""

    def __init__(self, max_penalty: float, iterations: float):
        between = round(min(max(iterations * UPDATE_SHARE, LEAST_UPDATE_ITERATIONS), UPDATE_ITERATIONS))
        super().__init__(solutions_between_updates=between, max_penalty=max_penalty)

    def midpoint_penalties(self, data: pyvrp.ProblemData) -> tuple[list[float], float, float]:
        """The first penalties of a unit of each load, of time and of length: the price of some legs for a
        typical demand, or for as many legs' time or length. Where legs cost nothing, PyVRP's own."""
        cost, length, duration = _neighbour_leg(data)
        if cost == 0:
            return super().midpoint_penalties(data)
        price = NEIGHBOUR_LEGS * cost
        demands = [
            np.array([max(client.delivery[d], client.pickup[d]) for client in data.clients()])
            for d in range(data.num_load_dimensions)
        ]
        loads = [price / max(float(some[some > 0].mean()) if some.any() else 0.0, 1.0) for some in demands]
        return loads, price / max(duration, 1.0), price / max(length, 1.0)


def _neighbour_leg(data: pyvrp.ProblemData) -> tuple[float, float, float]:
    """What a leg between neighbours costs, its length and its duration, about: if n customers are spread
    evenly, that is the median leg of all over the root of n. The median does not see forbidden legs."""
    places = np.unique(np.linspace(0, data.num_locations - 1, SAMPLED_PLACES).astype(int))
    vehicle = data.vehicle_type(0)
    length = np.median(data.distance_matrix(vehicle.profile)[places])
    duration = np.median(data.duration_matrix(vehicle.profile)[places])
    cost = vehicle.unit_distance_cost * length + vehicle.unit_duration_cost * duration
    per_leg = 1 / np.sqrt(data.num_clients)
    return float(cost * per_leg), float(length * per_leg), float(duration * per_leg)
