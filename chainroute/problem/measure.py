"""How things are measured: metrics, rounding conventions, and the slack that rounding errors are given."""

from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

EARTH_RADIUS = 6_371_008.8  # metres, the mean radius of the IUGG
# Where numbers have fractions, so much of a bound may be exceeded. Whole numbers are judged exactly.
LOAD_SLACK = 1e-6  # share of the capacity: benchmark demands are quotients in single precision
SLACK = 1e-10  # relative, for times and lengths: only what rounding in double precision explains
ANY_DAY = "any"  # the day of a problem whose times are seconds after midnight, whatever the date
EXACT_BELOW = 2.0**53  # below it, double precision adds whole numbers without rounding


class Metric(StrEnum):
    """What the distance between two coordinates is."""

    EUCLIDEAN = "euclidean"
    HAVERSINE = "haversine"  # coordinates are (longitude, latitude) in degrees, distances metres


class Rounding(StrEnum):
    """How the distance between two coordinates is rounded. A given matrix is never rounded."""

    EXACT = "exact"
    ROUND = "round"  # to the nearest integer, halves up: VRPLIB's EUC_2D
    CEIL = "ceil"  # up to an integer: VRPLIB's CEIL_2D
    TRUNC = "trunc"  # down to an integer: VRPLIB's FLOOR_2D
    TRUNC1 = "trunc1"  # down to one decimal: the DIMACS rule for Solomon's instances


TO_INTEGERS = (Rounding.ROUND, Rounding.CEIL, Rounding.TRUNC)


def distance(metric: Metric, rounding: Rounding, a: FloatArray, b: FloatArray) -> FloatArray:
    """Between the coordinates (..., 2) of a and b, which broadcast."""
    return rounded(_euclidean(a, b) if metric is Metric.EUCLIDEAN else _haversine(a, b), rounding)


def rounded(d: FloatArray, rounding: Rounding) -> FloatArray:
    match rounding:
        case Rounding.EXACT:
            return d
        case Rounding.ROUND:
            return np.floor(d + 0.5)
        case Rounding.CEIL:
            return np.ceil(d)
        case Rounding.TRUNC:
            return np.floor(d)
        case Rounding.TRUNC1:
            return np.floor(10 * d) / 10


def _euclidean(a: FloatArray, b: FloatArray) -> FloatArray:
    dx, dy = a[..., 0] - b[..., 0], a[..., 1] - b[..., 1]
    return np.sqrt(dx * dx + dy * dy)


def _haversine(a: FloatArray, b: FloatArray) -> FloatArray:
    (lon_a, lat_a), (lon_b, lat_b) = np.moveaxis(np.radians(a), -1, 0), np.moveaxis(np.radians(b), -1, 0)
    h = np.sin((lat_b - lat_a) / 2) ** 2 + np.cos(lat_a) * np.cos(lat_b) * np.sin((lon_b - lon_a) / 2) ** 2
    return np.asarray(2 * EARTH_RADIUS * np.arcsin(np.sqrt(np.minimum(h, 1.0))))


def at_most(value: FloatArray, bound: FloatArray | float, slack: float) -> NDArray[np.bool_]:
    """value <= bound, up to a share of it; an infinite bound holds anything."""
    return np.asarray(value <= bound + slack * np.where(np.isfinite(bound), np.abs(bound), 0.0))


def is_whole(*values: FloatArray | float) -> bool:
    """Whether all finite values are whole numbers that can be added up exactly."""

    def whole(row: FloatArray) -> bool:
        if not (row == np.floor(row)).all():  # infinity is its own floor
            return False
        return bool((np.abs(row) < EXACT_BELOW).all(where=np.isfinite(row)))

    return all(whole(row) for each in values for row in np.atleast_2d(each))


def layout(distances: FloatArray) -> FloatArray:
    """Coordinates (n, 2) whose distances come near the given ones: classical multidimensional scaling."""
    squared = ((distances + distances.T) / 2) ** 2
    centred = squared - squared.mean(0) - squared.mean(1)[:, None] + squared.mean()
    values, vectors = np.linalg.eigh(-centred / 2)
    axes = vectors[:, -2:][:, ::-1] * np.sqrt(np.maximum(values[-2:][::-1], 0.0))
    if axes.shape[1] < 2:  # a single location has no second axis
        axes = np.pad(axes, ((0, 0), (0, 1)))
    # The sign of an eigenvector is arbitrary; fix it so that the same matrix gives the same picture.
    return np.asarray(axes * np.where(axes[np.abs(axes).argmax(0), [0, 1]] < 0, -1.0, 1.0))


def planar(metric: Metric, coords: FloatArray) -> FloatArray:
    """Where the locations lie on a plane, (n, 2)."""
    if metric is Metric.EUCLIDEAN:
        return coords
    lon, lat = np.radians(coords).T  # equirectangular about the middle: true to scale for a city or a country
    return EARTH_RADIUS * np.stack([(lon - lon.mean()) * np.cos(lat.mean()), lat], axis=1)
