"""Training data: random instances drawn on the device by a law of `generate`, without touching the host."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from chainroute.generate import Law, paper, wide
from chainroute.neural.env.batch import ProblemBatch, straight_lines
from chainroute.problem.variants import SEEN, Backhaul, Variant

Uniform = Callable[[tuple[int, ...]], Tensor]


@dataclass(frozen=True)
class Mixture:
    """The variants to draw from, as a table on the device, and the law."""

    depots: int  # of the instances, padding included
    padded: bool  # whether some have fewer depots than others
    table: Tensor  # (variants, 6) bool: backhaul, mixed, limit, open, time windows, several depots
    law: Law
    demands: Tensor  # the wide law's table

    @staticmethod
    def of(
        variants: Sequence[Variant] = SEEN, device: torch.device | str = "cpu", law: Law = "paper"
    ) -> Mixture:
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
        most = wide.DEPOTS[1] if law == "wide" else paper.DEPOTS
        depots = most if any(several) else 1
        return Mixture(
            depots,
            depots > 1 and (law == "wide" or not all(several)),
            torch.tensor(rows, device=device),
            law,
            torch.tensor(wide.DEMANDS, dtype=torch.float32, device=device),
        )


def sample(count: int, n: int, mixture: Mixture, generator: torch.Generator | None = None) -> ProblemBatch:
    """`count` float32 instances of n customers, each of a variant drawn uniformly from the mixture.

    Every number is drawn for every instance and dropped where its variant has no use for it, so that nothing
    depends on data and the whole can be captured.
    """
    device = mixture.table.device

    def uniform(shape: tuple[int, ...]) -> Tensor:
        return torch.rand(shape, device=device, generator=generator)

    which = (len(mixture.table) * uniform((count,))).long().clamp(max=len(mixture.table) - 1)
    kind = wide.DrawnVariants(*mixture.table[which].unbind(1))
    draw = _by_wide_law if mixture.law == "wide" else _by_paper
    return draw(n, kind, mixture, uniform)


def _by_wide_law(n: int, kind: wide.DrawnVariants, mixture: Mixture, uniform: Uniform) -> ProblemBatch:
    count, depots = len(kind.open), mixture.depots
    drawn = wide.draw(torch, wide.Chance.of(uniform, count, depots, n), kind, mixture.demands)
    zero = drawn.delivery.new_zeros(count, depots)
    service = torch.cat([zero, drawn.service], 1)
    return ProblemBatch.of(
        depots,
        coords=drawn.coords,
        distance=drawn.distance,
        duration=drawn.duration,
        delivery=torch.cat([zero, drawn.delivery / drawn.capacity[:, None]], 1),
        pickup=torch.cat([zero, drawn.pickup / drawn.capacity[:, None]], 1),
        opening=torch.cat([zero, drawn.opening], 1),
        closing=torch.cat([drawn.day[:, None].expand(-1, depots), drawn.closing], 1),
        service=service,
        counted_service=service * drawn.counted[:, None],
        limit=drawn.limit,
        open=kind.open,
        backhaul=kind.backhaul,
        mixed=kind.mixed,
        padding=F.pad(drawn.padding, (0, n)) if mixture.padded else None,
        fleet=drawn.fleet * (~drawn.padding).sum(1),
    )


def _by_paper(n: int, kind: wide.DrawnVariants, mixture: Mixture, uniform: Uniform) -> ProblemBatch:
    count, depots = len(kind.open), mixture.depots

    def between(low: float, high: float, *shape: int) -> Tensor:
        return low + (high - low) * uniform((count, *shape))

    coords = uniform((count, depots + n, 2))
    distance = straight_lines(coords)
    far = distance[:, 0, depots:]  # of each customer from depot 0, by which windows and limits go

    demand = between(*paper.DEMAND, n).floor() / paper.capacity(n)
    returns = (uniform((count, n)) < paper.BACKHAUL_SHARE) & kind.backhaul[:, None]

    windows = kind.windows[:, None]
    service, window = between(*paper.SERVICE, n), between(*paper.WINDOW_SPAN, n)
    latest = (paper.HORIZON - service - window) / far - 1
    opening = (1 + (latest - 1) * uniform((count, n))) * far
    day = torch.where(windows, paper.HORIZON, torch.inf)
    if mixture.law == "printed":
        service, window = between(*paper.PRINTED_SERVICE, n), between(*paper.PRINTED_WINDOW, n)
        opening, day = between(*paper.PRINTED_OPENING, n), torch.full_like(day, torch.inf)
    closing = torch.where(windows, opening + window, torch.inf)

    shortest = 2 * distance[:, 0].amax(1) + paper.LIMIT_MARGIN
    longest = (shortest + paper.LIMIT_MARGIN).clamp(min=paper.MAX_LIMIT)
    limit = shortest + (longest - shortest) * uniform((count,))
    if mixture.law == "printed":
        limit = torch.full_like(limit, paper.PRINTED_LIMIT)
    limit = torch.where(kind.limit, limit, torch.inf)

    zero = coords.new_zeros(count, depots)
    padding = None
    if mixture.padded:
        padding = torch.zeros_like(distance[:, 0], dtype=torch.bool)
        padding[:, 1:depots] = ~kind.several[:, None]
    return ProblemBatch.of(
        depots,
        coords=coords,
        distance=distance,
        delivery=torch.cat([zero, torch.where(returns, 0.0, demand)], 1),
        pickup=torch.cat([zero, torch.where(returns, demand, 0.0)], 1),
        opening=torch.cat([zero, torch.where(windows, opening, 0.0)], 1),
        closing=torch.cat([day.expand(-1, depots), closing], 1),
        service=torch.cat([zero, torch.where(windows, service, 0.0)], 1),
        limit=limit,
        open=kind.open,
        backhaul=kind.backhaul,
        mixed=kind.mixed,
        padding=padding,
    )
