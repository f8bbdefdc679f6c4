"""Roads that are not there: what infinite, and absurdly long, entries of a matrix stand for.

An infinite entry says that there is no road from here to there. Where a file has no word for infinity, people
write a number that no plan could contain, such as 1e9. Taken for a length, it would spoil what solvers that
count in whole numbers see of all others; so it becomes infinite, too.
"""

from __future__ import annotations

import numpy as np

from chainroute.problem.measure import FloatArray

ABSURD_FACTOR = 100  # times as long as the longest way that could be needed


def mark_absurd(matrix: FloatArray, num_depots: int, open: bool) -> FloatArray:
    """The matrix with infinity also where an entry is absurd.

    Let every customer be reached from a depot, and left for the same one unless routes are open, along roads
    of which the longest is as short as can be. No way that follows them is longer than that road times the
    number of locations; an entry a hundred times as long is absurd. Nobody is cut off by this rule.
    """
    bound = _absurd(matrix, num_depots, open)
    return np.where(matrix > bound, np.inf, matrix) if bound > 0 else matrix


def _absurd(matrix: FloatArray, num_depots: int, open: bool) -> float:
    needed = _longest_needed(matrix, num_depots)
    if not open:
        needed = np.maximum(needed, _longest_needed(matrix.T, num_depots))
    return float(ABSURD_FACTOR * len(matrix) * needed.min(axis=0).max())


def _longest_needed(matrix: FloatArray, num_depots: int) -> FloatArray:
    """The longest road on the way from each depot (row) to each customer (column) that avoids long roads
    best; infinite where there is no way."""
    best = matrix[:num_depots].copy()
    depots, todo = np.arange(num_depots), np.ones(best.shape, dtype=bool)
    todo[:, :num_depots] = False
    for _ in range(len(matrix) - num_depots):
        at = np.where(todo, best, np.inf).argmin(axis=1)
        todo[depots, at] = False
        best = np.minimum(best, np.maximum(best[depots, at][:, None], matrix[at]))
    return best[:, num_depots:]


def as_numbers(matrix: FloatArray, num_depots: int, open: bool) -> FloatArray:
    """The matrix with an absurd power of ten where there is no road, for files that have no infinity."""
    gone = np.isinf(matrix)
    bound = _absurd(matrix, num_depots, open)
    if not gone.any() or not 0 < bound < np.inf:
        return matrix
    return np.where(gone, 10.0 ** np.ceil(np.log10(bound) + 0.1), matrix)


def with_detours(matrix: FloatArray, num_depots: int) -> FloatArray:
    """The matrix with a number where there is no road: the way round by a depot, else the longest road."""
    gone = np.isinf(matrix)
    if not gone.any():
        return matrix
    around = np.full_like(matrix, np.inf)
    for depot in range(num_depots):
        around = np.minimum(around, matrix[:, depot, None] + matrix[depot])
    longest = matrix.max(where=~gone, initial=0.0)
    return np.where(gone, np.where(np.isinf(around), longest, around), matrix)
