"""Stacked arrays, as the benchmark's files have them, as a batch."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from chainroute.arrays import BACKHAUL_CLASSES, Arrays
from chainroute.env.batch import ProblemBatch, start_depots
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

    windows = torch.tensor([0.0, torch.inf], dtype=torch.float64).expand(count, nodes, 2)
    service = torch.zeros(count, nodes, dtype=torch.float64)
    if "time_windows" in arrays:
        windows = torch.from_numpy(arrays["time_windows"]).double()
        service = torch.from_numpy(arrays["service_time"]).double()
    kind = column("backhaul_class", 0)
    distance = torch.linalg.vector_norm(coords[:, :, None] - coords[:, None], dim=-1)
    slack = 1 + SLACK / 2
    batch = ProblemBatch(
        num_depots=depots,
        coords=coords,
        distance=distance,
        duration=distance,
        delivery=demand("demand_linehaul"),
        pickup=demand("demand_backhaul"),
        opening=windows[..., 0],
        closing=windows[..., 1] * slack,
        service=service,
        counted_service=torch.zeros_like(service),
        limit=column("distance_limit", torch.inf) * slack,
        open=column("open_route", 0).bool(),
        backhaul=kind > 0,
        mixed=kind == BACKHAUL_CLASSES.index(Backhaul.MIXED),
        start_depot=torch.zeros(count, nodes, dtype=torch.long),
    )
    return replace(batch, start_depot=start_depots(batch))
