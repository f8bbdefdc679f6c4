"""The shortest schedule of a small shop, proven by HiGHS: a mixed-integer program with an order for each pair
of jobs at each stage."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from chainroute.errors import fail
from chainroute.research.scheduling.shop import FlowShop, Schedule, check, list_schedule

OPTIMAL = 0  # among the statuses of scipy.optimize.milp


def optimum(shop: FlowShop, seconds: float = 60.0) -> Schedule:
    """Raises where it is not proven in that time."""
    stages, machines, jobs = shop.times.shape
    longest = check(shop, list_schedule(shop)).makespan
    on = np.arange(stages * machines * jobs).reshape(stages, machines, jobs)  # whether a job is on a machine
    start = on.size + np.arange(stages * jobs).reshape(stages, jobs)
    pairs = {pair: i for i, pair in enumerate(combinations(range(jobs), 2))}
    first = on.size + start.size + np.arange(stages * len(pairs)).reshape(stages, -1)  # the first goes first
    end = on.size + start.size + first.size
    rows: list[dict[int, float]] = []
    least: list[float] = []

    def row(coefficients: dict[int, float], bound: float) -> None:
        """The sum is at least the bound."""
        rows.append(coefficients)
        least.append(bound)

    def spent(s: int, j: int, sign: float) -> dict[int, float]:
        """What the job takes at the stage, on whichever machine."""
        return {int(on[s, m, j]): sign * float(shop.times[s, m, j]) for m in range(machines)}

    for s in range(stages):
        for j in range(jobs):
            row({int(on[s, m, j]): 1.0 for m in range(machines)}, 1)
            row({int(on[s, m, j]): -1.0 for m in range(machines)}, -1)
            later = end if s + 1 == stages else int(start[s + 1, j])
            row({later: 1.0, int(start[s, j]): -1.0, **spent(s, j, -1)}, 0)
        for (i, j), pair in pairs.items():
            for m in range(machines):
                for before, after, sign, slack in ((i, j, -1.0, 3.0), (j, i, 1.0, 2.0)):
                    both = {int(on[s, m, k]): -float(longest) for k in (before, after)}
                    ahead = {int(first[s, pair]): sign * longest}
                    both[int(on[s, m, before])] -= float(shop.times[s, m, before])
                    apart = {int(start[s, after]): 1.0, int(start[s, before]): -1.0}
                    row({**apart, **both, **ahead}, -slack * longest)
    matrix = np.zeros((len(rows), end + 1))
    for i, coefficients in enumerate(rows):
        matrix[i, list(coefficients)] = list(coefficients.values())
    upper = np.ones(end + 1)
    upper[on.size : on.size + start.size], upper[end] = longest, longest
    cost = np.zeros(end + 1)
    cost[end] = 1
    found = milp(
        cost,
        constraints=LinearConstraint(matrix, np.array(least)),
        integrality=np.ones(end + 1),
        bounds=Bounds(np.zeros(end + 1), upper),
        options={"time_limit": seconds},
    )
    if found.status != OPTIMAL:
        raise fail("no-solution", f"HiGHS has not proven the shortest schedule in {seconds:g} s.", "shop")
    values = np.round(found.x).astype(int)
    return Schedule(values[on].argmax(1), values[start])
