"""Stacked arrays, as the benchmark's files have them, as a batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from chainroute.neural.env.batch import ProblemBatch, straight_lines
from chainroute.problem.arrays import BACKHAUL_CLASSES, Arrays
from chainroute.problem.measure import SLACK
from chainroute.problem.variants import Backhaul


def from_arrays(arrays: Arrays, device: torch.device | str = "cpu") -> ProblemBatch:
    """The benchmark's problems as they are, on a device, which measures their distances, too: they need no
    other units, and costs stay comparable."""

    def tensor(array: NDArray[Any]) -> Tensor:
        return torch.from_numpy(array).to(device).double()

    coords = tensor(arrays["locs"])
    count, nodes = coords.shape[:2]
    n = arrays["demand_linehaul"].shape[1]
    depots = nodes - n

    def column(name: str, missing: float) -> Tensor:
        return tensor(arrays.get(name, np.full((count, 1), missing))).squeeze(1)

    def demand(name: str) -> Tensor:
        return torch.nn.functional.pad(tensor(arrays.get(name, np.zeros((count, n)))), (depots, 0))

    windows = service = None
    if "time_windows" in arrays:
        windows = tensor(arrays["time_windows"])
        service = tensor(arrays["service_time"])
    kind = column("backhaul_class", 0)
    slack = 1 + SLACK / 2
    return ProblemBatch.of(
        depots,
        coords=coords,
        distance=straight_lines(coords),
        delivery=demand("demand_linehaul"),
        pickup=demand("demand_backhaul"),
        opening=None if windows is None else windows[..., 0],
        closing=None if windows is None else windows[..., 1] * slack,
        service=service,
        limit=column("distance_limit", torch.inf) * slack,
        open=column("open_route", 0).bool(),
        backhaul=kind > 0,
        mixed=kind == BACKHAUL_CLASSES.index(Backhaul.MIXED),
    )
