"""The kernel that says what may be visited next: the same as the decision process itself."""

import pytest
import torch
from problems import KINDS, invent

from chainroute import VARIANTS
from chainroute.neural.env import Rules, begin, from_problems, mask, servable, step

kernel = pytest.importorskip("chainroute.neural.fast.ops.mask_triton", reason="Triton is not installed")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_customers_by_the_kernel(kind):
    """Along random trajectories of padded batches of many variants, distances of every kind, with fleets."""
    chance = torch.Generator().manual_seed(len(kind))
    variants = VARIANTS[KINDS.index(kind) % 5 :: 7]
    problems = [invent(v, i, 4 + i % 3, kind=kind, fleet=i % 3 == 0) for i, v in enumerate(variants)]
    same_along(from_problems(problems).to(DEVICE), chance)


@pytest.mark.parametrize("rules", Rules)
def test_the_same_customers_of_one_depot_or_several(rules):
    """Batches that are not padded, by either rules; more nodes than there are rows in a tile."""
    chance = torch.Generator().manual_seed(2)
    for v in VARIANTS[::11]:
        problems = [invent(v, seed, 33, depots=3 if v.multi_depot else 1) for seed in range(2)]
        same_along(from_problems(problems, rules=rules).to(DEVICE), chance)


def same_along(batch, chance):
    state = begin(batch)
    for _ in range(3):
        found, legal = kernel.servable(batch, state), kernel.legal(batch, state)
        assert torch.equal(found, servable(batch, state))
        assert torch.equal(legal, mask(batch, state))
        for rows in (found, legal):
            width = rows.stride(1)
            behind = rows.as_strided((*rows.shape[:2], width), rows.stride())[..., rows.shape[2] :]
            assert not behind.any()
        written = torch.zeros_like(found)
        for into in (written, written.contiguous()):
            kernel.mask(batch, state, into)
            assert torch.equal(into, legal)
        draws = torch.rand(legal.shape, generator=chance).to(DEVICE)
        state = step(batch, state, (draws * legal).argmax(-1))
