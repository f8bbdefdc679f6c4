"""Trajectories for training: they are solutions, and their likelihoods are the policy's."""

import pytest
import torch

from chainroute import Solution, check
from chainroute.generate import generate_arrays
from chainroute.neural.env import Mixture, begin, mask, sample, step
from chainroute.neural.env.stacked import from_arrays
from chainroute.neural.policy import PolicyConfig
from chainroute.neural.policy.store import random_policy
from chainroute.neural.train.rollout import longest, sample_trajectories
from chainroute.problem.arrays import problems_from_arrays
from chainroute.problem.variants import VARIANTS

POLICY = random_policy(PolicyConfig(dim=8, heads=2, layers=1, hidden=8), seed=3)


def drawn(seed=0):
    return torch.Generator().manual_seed(seed)


def routes(batch, made, i, s):
    """The routes of trajectory s of instance i as (depot, visits), replayed from the actions."""
    state = begin(batch)
    found, visits = [], [int(state.current[i, s])] if state.current[i, s] >= batch.num_depots else []
    depot = int(state.depot[i, s])
    for action in made.actions:
        state = step(batch, state, action)
        at = int(state.current[i, s])
        if at >= batch.num_depots:
            visits.append(at)
            depot = int(state.depot[i, s])
        elif visits:
            found.append((depot, visits))
            visits = []
    return found


@pytest.mark.parametrize("variant", VARIANTS[::5], ids=str)
def test_every_trajectory_is_a_solution_of_that_cost(variant):
    """The judge accepts it, and its length is the cost that training sees."""
    arrays = generate_arrays(variant, 6, 2, seed=5)
    batch, problems = from_arrays(arrays), problems_from_arrays(arrays, "p")
    made = sample_trajectories(POLICY, batch, [True, False] * longest(6), drawn())
    assert made.finished.all()
    for i, problem in enumerate(problems):
        for s in range(6):
            solution = Solution.of(problem, routes(batch, made, i, s))
            assert check(problem, solution).feasible
            assert solution.cost == pytest.approx(made.cost[i, s].item(), rel=1e-9)


def test_likelihood_is_the_product_of_the_policys_probabilities():
    """Step by step, written out, with the same noise; and forced actions repeat a trajectory."""
    batch = sample(3, 5, Mixture.of(VARIANTS[:16]), drawn())
    refine = [True, False, True] * 4
    made = sample_trajectories(POLICY, batch, refine, drawn(1))
    noise = torch.randn(*made.actions.shape, 4, generator=drawn(2))
    forced = sample_trajectories(POLICY, batch, refine, actions=made.actions, noise=noise)
    assert torch.equal(forced.cost, made.cost)
    assert torch.equal(forced.actions, made.actions)

    scene, nodes = POLICY.encode(batch)
    state = begin(batch)
    probability = torch.ones(3, 5)
    for j, action in enumerate(made.actions):
        allowed = mask(batch, state)
        logits, nodes = POLICY.step(batch, scene, nodes, state, allowed, refine[j], noise[j])
        assert allowed.gather(2, action[..., None]).all()
        probability = probability * logits.softmax(-1).gather(2, action[..., None]).squeeze(-1)
        state = step(batch, state, action)
    assert torch.allclose(forced.log_likelihood, probability.log(), atol=1e-5)


def test_actions_are_drawn_by_their_probabilities():
    """Over many copies of one instance, the first action has the frequencies that the policy gives it."""
    one = sample(1, 3, Mixture.of(VARIANTS[:1]), drawn(4))
    many = one.map(lambda t: t.expand(4000, *t.shape[1:]))
    made = sample_trajectories(POLICY, many, [False], drawn(5))
    state = begin(many)
    noise = torch.randn(4000, 3, 4, generator=drawn(6))  # RGCR's: frequencies are a mean over it
    logits, _ = POLICY.step(many, *POLICY.encode(many), state, mask(many, state), False, noise)
    found = torch.nn.functional.one_hot(made.actions[0], 4).float().mean(0)
    assert torch.allclose(found, logits.softmax(-1).mean(0), atol=0.03)


def test_stops_at_the_step_bound():
    """Trajectories that are cut off are not finished; without a bound all are."""
    batch = sample(4, 5, Mixture.of(VARIANTS[:16]), drawn())
    assert not sample_trajectories(POLICY, batch, [True] * 2, drawn()).finished.any()
    made = sample_trajectories(POLICY, batch, [True] * longest(5), drawn())
    assert made.finished.all()
    assert len(made.actions) <= longest(5)


def test_same_generator_same_trajectories_whatever_the_global_state():
    batch = sample(2, 5, Mixture.of(VARIANTS[:16]), drawn())
    torch.manual_seed(1)
    a = sample_trajectories(POLICY, batch, [True] * 10, drawn(7))
    torch.manual_seed(2)
    b = sample_trajectories(POLICY, batch, [True] * 10, drawn(7))
    assert torch.equal(a.actions, b.actions)
    assert torch.equal(a.log_likelihood, b.log_likelihood)
    assert not torch.equal(a.actions, sample_trajectories(POLICY, batch, [True] * 10, drawn(8)).actions)


def test_padded_depots_do_not_make_spare_trajectories():
    """A batch that mixes one depot and several still has a trajectory from each customer."""
    batch = sample(6, 4, Mixture.of(VARIANTS), drawn(2))
    assert batch.padding is not None
    assert sample_trajectories(POLICY, batch, [True] * longest(4), drawn()).finished.all()


def test_a_plan_that_is_given_stands_beside_sampled_trajectories():
    """Trajectory 1 goes its given way at its cost; the others are sampled, and all are whole plans."""
    batch = sample(2, 4, Mixture.of(VARIANTS[:1]), drawn())
    given = torch.full((longest(4), 2, 4), -1)
    given[:, :, 1] = 0
    given[:7, :, 1] = torch.tensor([0, 1, 0, 3, 0, 4, 0])[:, None]  # each customer alone, the second first
    made = sample_trajectories(POLICY, batch, [True] * longest(4), drawn(1), actions=given)
    assert made.finished.all()
    alone = 2 * batch.distance[:, 0, 1:].sum(1)
    torch.testing.assert_close(made.cost[:, 1], alone.to(made.cost), rtol=1e-5, atol=0)
    assert (made.actions >= 0).all()
    assert (made.cost[:, [0, 2, 3]] <= alone[:, None] * (1 + 1e-6)).all()
