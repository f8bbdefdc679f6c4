"""Stacked arrays, as the benchmark's files have them, as a batch."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from chainroute.arrays import BACKHAUL_CLASSES, Arrays
from chainroute.env.batch import ProblemBatch
from chainroute.measure import SLACK
from chainroute.variants import Backhaul


def from_arrays(arrays: Arrays) -> ProblemBatch:
    """The benchmark's problems as they are: they need no other units, and costs stay comparable."""
    coords = torch.from_numpy(arrays["locs"]).double()
    count, nodes = coords.shape[:2]
    n = arrays["demand_linehaul"].shape[1]
    depots = nodes - n

    def column(name: str, missing: float) -> Tensor:
        return torch.from_numpy(arrays.get(name, np.full((count, 1), missing)).astype(np.float64)).squeeze(1)

    def demand(name: str) -> Tensor:
        values = torch.from_numpy(arrays.get(name, np.zeros((count, n)))).double()
        return torch.nn.functional.pad(values, (depots, 0))

    windows = service = None
    if "time_windows" in arrays:
        windows = torch.from_numpy(arrays["time_windows"]).double()
        service = torch.from_numpy(arrays["service_time"]).double()
    kind = column("backhaul_class", 0)
    slack = 1 + SLACK / 2
    return ProblemBatch.of(
        depots,
        coords=coords,
        distance=torch.linalg.vector_norm(coords[:, :, None] - coords[:, None], dim=-1),
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
