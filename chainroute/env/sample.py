"""Training data: random instances drawn on the device by the law of `generate`, without touching the host."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from chainroute import generate as law
from chainroute.env.batch import ProblemBatch
from chainroute.variants import SEEN, Backhaul, Variant


@dataclass(frozen=True)
class Mixture:
    """The variants to draw from, as a table on the device."""

    depots: int  # of the instances, padding included
    padded: bool  # whether some have one depot among others with several
    table: Tensor  # (variants, 6) bool: backhaul, mixed, limit, open, time windows, several depots

    @staticmethod
    def of(variants: Sequence[Variant] = SEEN, device: torch.device | str = "cpu") -> Mixture:
        several = [v.multi_depot for v in variants]
        rows = [
            (
                v.backhaul is not Backhaul.NONE,
                v.backhaul is Backhaul.MIXED,
                v.limit,
                v.open,
                v.time_windows,
                md,
            )
            for v, md in zip(variants, several, strict=True)
        ]
        depots = law.DEPOTS if any(several) else 1
        return Mixture(depots, depots > 1 and not all(several), torch.tensor(rows, device=device))


def sample(count: int, n: int, mixture: Mixture, generator: torch.Generator | None = None) -> ProblemBatch:
    """`count` float32 instances of n customers, each of a variant drawn uniformly from the mixture.

    Every number is drawn for every instance and dropped where its variant has no use for it, so that nothing
    depends on data and the whole can be captured.
    """
    depots, device = mixture.depots, mixture.table.device

    def uniform(low: float, high: float, *shape: int) -> Tensor:
        return low + (high - low) * torch.rand(count, *shape, device=device, generator=generator)

    which = uniform(0, len(mixture.table)).long().clamp(max=len(mixture.table) - 1)
    backhaul, mixed, limited, opened, windows, several = mixture.table[which].unbind(1)

    coords = uniform(0, 1, depots + n, 2)
    distance = torch.linalg.vector_norm(coords[:, :, None] - coords[:, None], dim=-1)
    far = distance[:, 0, depots:]  # of each customer from depot 0, by which windows and limits go

    demand = uniform(*law.DEMAND, n).floor() / law.capacity(n)
    returns = (uniform(0, 1, n) < law.BACKHAUL_SHARE) & backhaul[:, None]

    service, window = uniform(*law.SERVICE, n), uniform(*law.WINDOW, n)
    latest = (law.HORIZON - service - window) / far - 1
    opening = (1 + (latest - 1) * uniform(0, 1, n)) * far
    closing = torch.where(windows[:, None], opening + window, torch.inf)

    shortest = 2 * distance[:, 0].amax(1) + law.LIMIT_MARGIN
    longest = (shortest + law.LIMIT_MARGIN).clamp(min=law.MAX_LIMIT)
    limit = torch.where(limited, shortest + (longest - shortest) * uniform(0, 1), torch.inf)

    zero = coords.new_zeros(count, depots)
    horizon = torch.where(windows, law.HORIZON, torch.inf)[:, None].expand(-1, depots)
    padding = None
    if mixture.padded:
        padding = torch.zeros_like(distance[:, 0], dtype=torch.bool)
        padding[:, 1:depots] = ~several[:, None]
    return ProblemBatch.of(
        depots,
        coords=coords,
        distance=distance,
        delivery=torch.cat([zero, torch.where(returns, 0.0, demand)], 1),
        pickup=torch.cat([zero, torch.where(returns, demand, 0.0)], 1),
        opening=torch.cat([zero, torch.where(windows[:, None], opening, 0.0)], 1),
        closing=torch.cat([horizon, closing], 1),
        service=torch.cat([zero, torch.where(windows[:, None], service, 0.0)], 1),
        limit=limit,
        open=opened,
        backhaul=backhaul,
        mixed=mixed,
        padding=padding,
    )
