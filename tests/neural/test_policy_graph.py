"""The network that is told distances and no coordinates."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from problems import invent
from training import TINY
from where import RECIPES

from chainroute import Problem
from chainroute.neural.decode import DecodeOptions, attempt
from chainroute.neural.env import begin, from_problems, mask
from chainroute.neural.policy import PolicyConfig
from chainroute.neural.policy.graph import PIVOTS, pivot_distances
from chainroute.neural.policy.store import load_policy, random_policy
from chainroute.neural.train import read_recipe, train
from chainroute.plan.check import check
from chainroute.problem.variants import VARIANTS

GRAPH = PolicyConfig(
    dim=16, heads=2, layers=2, hidden=16, encoder="chainroute.neural.policy.graph:GraphEncoder"
)


def matrix_problem(n, seed):
    """Roads that are longer one way than the other, and no coordinates."""
    rng = np.random.default_rng(seed)
    apart = rng.uniform(1, 9, (n + 1, n + 1)) * (1 - np.eye(n + 1))
    for k, i, j in itertools.product(range(n + 1), repeat=3):
        apart[i, j] = min(apart[i, j], apart[i, k] + apart[k, j])
    return Problem(capacity=10, delivery=rng.integers(1, 5, n), distance_matrix=apart)


@torch.no_grad()
def first_logits(policy, batch):
    scene, nodes = policy.encode(batch)
    state = begin(batch)
    return policy.step(batch, scene, nodes, state, mask(batch, state), True)[0]


def test_coordinates_are_not_seen():
    """Other coordinates with the same distances change nothing, and other distances do."""
    policy = random_policy(GRAPH).double()
    batch = from_problems([invent(v, i, 4 + i % 2) for i, v in enumerate(VARIANTS[::7])])
    logits = first_logits(policy, batch)
    torch.testing.assert_close(first_logits(policy, replace(batch, coords=batch.coords.flip(1))), logits)
    farther = replace(batch, distance=batch.distance.square())
    assert not torch.allclose(first_logits(policy, farther), logits)


@torch.no_grad()
def test_the_order_of_customers_does_not_matter():
    policy, problem = random_policy(GRAPH).double(), matrix_problem(6, 1)
    order = [0, 3, 1, 6, 2, 5, 4]
    other = Problem(
        capacity=10,
        delivery=problem.delivery[np.array(order[1:]) - 1],
        distance_matrix=problem.distance_matrix[np.ix_(order, order)],
    )
    nodes, moved = (policy.encode(from_problems([p]))[1] for p in (problem, other))
    torch.testing.assert_close(moved[0], nodes[0, order])


@torch.no_grad()
def test_directions_differ():
    """With every road turned round the nodes are embedded otherwise."""
    policy, problem = random_policy(GRAPH).double(), matrix_problem(6, 1)
    turned = Problem(capacity=10, delivery=problem.delivery, distance_matrix=problem.distance_matrix.T)
    nodes, others = (policy.encode(from_problems([p]))[1] for p in (problem, turned))
    assert not torch.allclose(nodes, others)


def test_pivots_by_hand():
    """Places 0, 1, 10 and 4 on a line: the depot, then 10, then 4, then 1; then all are taken."""
    places = torch.tensor([[0.0, 1.0, 10.0, 4.0]])
    apart = (places[:, :, None] - places[:, None]).abs()
    found = pivot_distances(apart, None)
    assert found.shape == (1, 4, 2 * PIVOTS)
    assert found[0, 0, :8].tolist() == [0, 0, 10, 10, 4, 4, 1, 1]
    padding = torch.tensor([[False, False, True, False]])
    assert pivot_distances(apart, padding)[0, 0, 2:4].tolist() == [4, 4]  # nobody asks for what is not there


@pytest.mark.parametrize("name", ["graph", "graph-plain"])
def test_the_recipe_trains_in_small_form_and_plans_on_matrices(name, tmp_path):
    recipe = read_recipe(RECIPES / "rivals" / f"{name}.toml")
    assert (recipe.sizes, len(recipe.variants)) == ((50,), 16)
    small = replace(recipe.policy, dim=16, heads=2, layers=1, hidden=16)
    train(replace(TINY, policy=small, updates=4), tmp_path, device="cpu", silent=True)
    policy, problem = load_policy(tmp_path), matrix_problem(7, 2)
    (found,) = attempt(policy, [problem], DecodeOptions(augmentations=1))
    assert check(problem, found).feasible
