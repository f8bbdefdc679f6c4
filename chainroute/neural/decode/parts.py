"""Parts of problems as problems of their own: some of the customers and all depots, on a map of their own.

A part is scaled to the unit square, so that the policy meets it as it met the problems it was trained on.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from chainroute.neural.assembly.routes import Nodes
from chainroute.neural.env import ProblemBatch
from chainroute.problem.measure import FloatArray


def parts(
    batch: ProblemBatch, instance: Sequence[int], customers: Sequence[Nodes], maps: FloatArray | None = None
) -> tuple[ProblemBatch, Nodes]:
    """Part i has these customers of that instance of an unpadded batch, turned by the matrix maps[i], (2, 2).

    Returns the batch of parts and which node of the instance each of its nodes is, (parts, n).
    """
    depots, longest = np.arange(batch.num_depots), max(map(len, customers))
    nodes = np.zeros((len(customers), len(depots) + longest), dtype=np.intp)
    fill = np.ones(nodes.shape, dtype=bool)
    for i, part in enumerate(customers):
        own = np.concatenate([depots, part])
        nodes[i, : len(own)], fill[i, : len(own)] = own, False
    of, at, padding = torch.as_tensor(instance), torch.from_numpy(nodes), torch.from_numpy(fill)

    coords = batch.coords[of[:, None], at]
    if maps is not None:
        coords = coords @ torch.from_numpy(maps).mT
    low = coords.masked_fill(padding[..., None], torch.inf).amin(1, keepdim=True)
    high = coords.masked_fill(padding[..., None], -torch.inf).amax(1, keepdim=True)
    extent = (high - low).amax(-1)[:, 0]
    scale = torch.where(extent > 0, 1 / extent, 1.0)

    def vector(values: Tensor) -> Tensor:
        return values[of[:, None], at]

    def square(values: Tensor) -> Tensor:
        return values[of[:, None, None], at[:, :, None], at[:, None]]

    def matrix(values: Tensor) -> Tensor:
        return square(values) * scale[:, None, None]

    small = ProblemBatch.of(
        batch.num_depots,
        coords=(coords - low) * scale[:, None, None],
        distance=matrix(batch.distance),
        duration=None if batch.duration is batch.distance else matrix(batch.duration),
        delivery=vector(batch.delivery),
        pickup=vector(batch.pickup),
        opening=vector(batch.opening) * scale[:, None],
        closing=vector(batch.closing) * scale[:, None],
        service=vector(batch.service) * scale[:, None],
        counted_service=vector(batch.counted_service) * scale[:, None],
        blocked=None if batch.blocked is None else square(batch.blocked),
        limit=batch.limit[of] * scale,
        open=batch.open[of],
        backhaul=batch.backhaul[of],
        mixed=batch.mixed[of],
        padding=padding if fill.any() else None,
        rules=batch.rules,
    )
    return small, nodes


def turned(count: int, rng: np.random.Generator) -> FloatArray:
    """Random turns of the plane, half of them mirrored, (count, 2, 2)."""
    angle, mirror = rng.random(count) * 2 * np.pi, rng.choice([-1.0, 1.0], count)
    cos, sin = np.cos(angle), np.sin(angle)
    return np.stack([np.stack([cos, -sin * mirror], -1), np.stack([sin, cos * mirror], -1)], -2)


def sectors(coords: FloatArray, start_depot: Nodes, num_depots: int, size: int) -> list[Nodes]:
    """Customers in parts of about `size`, at most: those of one depot side by side as seen from there.

    coords (n, 2) and start_depot (n,) are those of all nodes, depots first.
    """
    found = []
    home = start_depot[num_depots:]
    for depot in np.unique(home):
        own = num_depots + np.flatnonzero(home == depot)
        x, y = (coords[own] - coords[depot]).T
        order = own[np.argsort(np.arctan2(y, x), kind="stable")]
        found += np.array_split(order, -(-len(order) // size))
    return found
