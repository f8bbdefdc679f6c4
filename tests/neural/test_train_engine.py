"""The plain engine: its gradient is REINFORCE's, an update is what it should be, and it learns."""

import math
from types import SimpleNamespace

import pytest
import torch
from training import TINY, alone, plain, same, tiny

from chainroute.errors import ChainRouteError
from chainroute.neural.env import Mixture, sample
from chainroute.neural.policy.store import random_policy
from chainroute.neural.train import engines
from chainroute.neural.train.engine import PlainEngine, Tally
from chainroute.neural.train.engines import _obstacle, make_engine
from chainroute.neural.train.learner import Learner
from chainroute.neural.train.objective import variant_index
from chainroute.neural.train.ranks import Ranks
from chainroute.neural.train.rollout import longest, sample_trajectories
from chainroute.neural.train.streams import choices, patterns, rates, reseed
from chainroute.neural.train.validation import evaluate_tasks
from chainroute.problem.variants import VARIANTS, variant


def trajectories(learner, n=4, count=3, refine=True):
    generator = torch.Generator().manual_seed(11)
    batch = sample(count, n, Mixture.of(learner.config.mixture), generator)
    return batch, sample_trajectories(learner.policy, batch, [refine] * longest(n), generator)


@pytest.mark.parametrize("objective", ["scaled", "relative"])
def test_gradient_is_reinforce_written_out(objective):
    """Instance by instance, trajectory by trajectory: the mean of (baseline - cost) / scale * grad log p."""
    learner, engine = plain(tiny(objective=objective, policy={"score_noise": 0.0}))
    batch, made = trajectories(learner)
    forced = sample_trajectories(learner.policy, batch, [True] * len(made.actions), actions=made.actions)
    engine.gradients(batch, forced)
    found = {name: p.grad.clone() for name, p in learner.policy.named_parameters()}

    again = sample_trajectories(learner.policy, batch, [True] * len(made.actions), actions=made.actions)
    means = {}
    for v in variant_index(batch).tolist():
        costs = [again.cost[i].mean().item() for i in range(3) if variant_index(batch)[i] == v]
        means[v] = sum(costs) / len(costs)
    expected = {name: torch.zeros_like(p) for name, p in learner.policy.named_parameters()}
    names, weights = zip(*learner.policy.named_parameters(), strict=True)
    for i in range(3):
        baseline = again.cost[i].mean().item()
        scale = baseline if objective == "relative" else means[int(variant_index(batch)[i])]
        for s in range(4):
            advantage = (baseline - again.cost[i, s].item()) / scale
            slopes = torch.autograd.grad(
                again.log_likelihood[i, s], weights, retain_graph=True, allow_unused=True
            )
            for name, slope in zip(names, slopes, strict=True):
                if slope is not None:
                    expected[name] -= advantage * slope / 12
    assert any(g.abs().max() > 1e-3 for g in found.values())
    for name in names:
        assert torch.allclose(found[name], expected[name], atol=1e-6), name


def test_gradient_agrees_with_finite_differences():
    """They agree in double precision, along a random direction, with actions and advantages held fixed."""
    learner, engine = plain(tiny(objective="relative", policy={"score_noise": 0.0}))
    learner.policy.double()
    for p in learner.policy.parameters():
        p.grad = torch.zeros_like(p)
    learner.means = learner.means.double()
    batch, made = trajectories(learner)
    batch = batch.map(lambda t: t.double() if t.is_floating_point() else t)
    refine = [True] * len(made.actions)

    def forced():
        return sample_trajectories(learner.policy, batch, refine, actions=made.actions)

    def move(shift):
        with torch.no_grad():
            for p, d in zip(weights, direction, strict=True):
                p += shift * d

    weights = list(learner.policy.parameters())
    generator = torch.Generator().manual_seed(0)
    direction = [torch.randn(p.shape, generator=generator, dtype=torch.float64) for p in weights]
    engine.gradients(batch, forced())
    slope = sum((p.grad * d).sum().item() for p, d in zip(weights, direction, strict=True))
    cost = made.cost.double()
    advantage = (cost.mean(1, keepdim=True) - cost) / cost.mean(1, keepdim=True)
    losses = []
    for shift in (1e-5, -2e-5):  # first to one side, then to the other
        move(shift)
        losses.append(-(advantage * forced().log_likelihood.detach()).mean().item())
    assert slope == pytest.approx((losses[0] - losses[1]) / 2e-5, rel=1e-4)


def test_an_update_clips_steps_and_counts():
    """The weights move by AdamW along the clipped gradient, computed here with a second optimiser."""
    config = tiny(clip=0.01, weight_decay=0.1)
    learner, engine = plain(config)
    other = Learner.fresh(config)
    theirs = torch.optim.AdamW(other.policy.parameters(), lr=0.5, weight_decay=0.1)
    generator = torch.Generator()
    reseed(generator, config.seed, 0, 0)
    n, refine = choices(config, 0)
    batch = sample(config.batch, n, engine.mixture, generator)
    made = sample_trajectories(other.policy, batch, refine, generator)
    PlainEngine(other, alone()).gradients(batch, made)
    norm = math.sqrt(sum(p.grad.square().sum().item() for p in other.policy.parameters()))
    for p in other.policy.parameters():
        p.grad *= 0.01 / norm
    theirs.step()

    engine.update(0.5)
    stats = engine.stats()
    assert stats.grad_norm == pytest.approx(norm, rel=1e-4)
    assert stats.cost == pytest.approx(made.cost.mean().item(), rel=1e-5)
    assert stats.unfinished == 0
    assert (learner.step, learner.instances) == (1, 4)
    for p, q in zip(learner.policy.parameters(), other.policy.parameters(), strict=True):
        assert torch.allclose(p, q, atol=1e-4)
        assert p.grad is not None
        assert not p.grad.any()  # cleared for the next update


def test_updates_repeat_whatever_the_global_random_state():
    """The same seed gives the same run, another seed another."""
    runs = []
    for seed, noise in ((1, 5), (1, 6), (2, 5)):
        torch.manual_seed(noise)
        learner, engine = plain(tiny(seed=seed))
        for _ in range(3):
            engine.update(1e-2)
        runs.append(learner)
    assert same(runs[0], runs[1])
    assert not same(runs[0], runs[2])


def test_size_and_refinement_of_an_update():
    """Sizes are drawn evenly, P_tr is the share of refining steps of the largest.

    Both depend on seed and step only.
    """
    config = tiny(sizes=(4, 7), update_rate=0.3)
    drawn = [choices(config, step) for step in range(400)]
    assert drawn == [choices(config, step) for step in range(400)]
    assert sum(n == 4 for n, _ in drawn) == pytest.approx(200, abs=50)
    flags = [flag for n, refine in drawn for flag in refine if n == 7]
    assert sum(flags) / len(flags) == pytest.approx(0.3, abs=0.03)
    assert all(len(refine) == longest(n) for n, refine in drawn)


def test_rates_spread_around_their_mean():
    """Spread 0.3 means 0.7, 0.9, 1.1 and 1.3 times P_tr; re-embeddings are as many on average."""
    config = tiny(sizes=(30,), update_rate=0.25, update_spread=0.3)
    assert rates(config, 30) == pytest.approx([0.175, 0.225, 0.275, 0.325])
    assert [sum(flags) for flags in patterns(config, 30, 200)] == pytest.approx([35, 45, 55, 65], abs=1)
    even = [sum(flags) for flags in patterns(tiny(sizes=(30,), update_rate=0.25), 30, 200)]
    assert even == [50] * 4
    drawn = [sum(choices(config, step)[1]) / 60 for step in range(400)]
    assert sum(drawn) / 400 == pytest.approx(0.25, abs=0.01)
    for rate in rates(config, 30):  # each is drawn about as often as the others
        assert sum(abs(share - rate) < 0.02 for share in drawn) == pytest.approx(100, abs=35)


def test_sizes_have_equally_many_reembeddings():
    """Twice the customers re-embed at half the rate, and a rate never exceeds 1."""
    config = tiny(sizes=(5, 20, 40), update_rate=0.25)
    assert [config.at_size(config.update_rate, n) for n in config.sizes] == [1.0, 0.5, 0.25]
    for step in range(20):
        n, refine = choices(config, step)
        expected = config.at_size(0.25, n) * len(refine)
        assert abs(sum(refine) - expected) <= 1


def test_ranks_and_steps_have_different_data():
    seeds = set()
    for step in range(20):
        for rank in range(3):
            generator = torch.Generator()
            reseed(generator, 1, step, rank)
            seeds.add(torch.rand(1, generator=generator).item())
    assert len(seeds) == 60


def test_mixed_sizes_depots_and_networks_train():
    """All 48 variants with one and several depots in one batch, two sizes, and an unusual network."""
    policy = {"scores": "random", "reembedding": "self", "reld": False, "decoder_depth": 2}
    config = tiny(variants=tuple(v.name for v in VARIANTS), sizes=(3, 5), batch=8, policy=policy)
    learner, engine = plain(config)
    before = [p.detach().clone() for p in learner.policy.parameters()]
    for _ in range(4):
        engine.update(1e-3)
    stats = engine.stats()
    assert math.isfinite(stats.loss)
    assert stats.unfinished == 0
    assert any(not torch.equal(a, b) for a, b in zip(before, learner.policy.parameters(), strict=True))
    assert (~learner.means.isnan()).any(1).all()  # both sizes were drawn


def test_cost_falls():
    """Forty updates on CVRP with 6 customers lower the greedy cost of unseen problems by at least 15 %."""
    policy = {"hidden": 16, "logit_distance_bias": False}  # without the bias it has more to learn
    learner, engine = plain(
        tiny(variants=("CVRP",), sizes=(6,), batch=16, objective="relative", policy=policy)
    )

    def cost():
        return evaluate_tasks(learner.policy, 6, [variant("CVRP")], "val", 128)[0].cost

    before = cost()
    for _ in range(40):
        engine.update(5e-3)
    assert cost() < 0.85 * before


def test_long_embeddings_become_shorter_where_they_are_penalised():
    """After the same few updates the nodes at the end of the chain are shorter than without the penalty."""

    def length(bound):
        learner, engine = plain(tiny(longest_embedding=bound))
        for _ in range(6):
            engine.update(3e-3)
        batch = sample(8, TINY.sizes[0], Mixture.of(), torch.Generator().manual_seed(1))
        refine = [True] * 6
        with torch.no_grad():
            nodes = sample_trajectories(learner.policy, batch, refine, torch.Generator().manual_seed(1)).nodes
        return nodes.norm(dim=-1).mean().item()

    assert length(0.5) < 0.98 * length(0.0)


def test_fast_engine_is_refused_where_it_cannot_run():
    learner = Learner.fresh(TINY)
    assert make_engine("auto", learner, alone())[1] == "plain (the fast engine needs a GPU)"
    assert make_engine("plain", learner, alone())[1] == "plain (as asked)"
    with pytest.raises(ChainRouteError, match="needs a GPU"):
        make_engine("fast", learner, alone())


SERVED = {"dim": 32, "heads": 2, "hidden": 32}  # sizes that kernels take


@pytest.mark.parametrize(
    ("capability", "changes", "reason"),
    [
        ((7, 5), {}, "needs a GPU of compute capability 8.0, and Old One has 7.5"),
        ((9, 0), {"policy": {"dim": 12, "heads": 2}}, "needs a dim that is a power of two"),
        ((9, 0), {"policy": {**SERVED, "pointer": "toys:DotPointer"}}, "has no version of toys.DotPointer"),
        ((9, 0), {"policy": SERVED, "sizes": (4, 700)}, "holds at most 510 customers, not 700"),
        ((9, 0), {"policy": SERVED, "variants": tuple(v.name for v in VARIANTS)}, ""),
    ],
)
def test_what_the_fast_engine_lacks_on_a_gpu_is_one_sentence(monkeypatch, capability, changes, reason):
    """An old GPU, or what kernels do not hold; all 48 variants mixed are none. The GPU is pretended."""
    pytest.importorskip("triton")
    config = tiny(**changes)
    learner = SimpleNamespace(device=torch.device("cuda"), policy=random_policy(config.policy), config=config)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "Old One")
    found = _obstacle(learner)
    assert found.startswith(reason) if reason else found == ""


def test_a_network_that_cannot_be_captured_is_trained_plainly(monkeypatch):
    """The choice says why; whoever asks for the fast engine, or lacks memory, gets the error. GPU and engine
    are pretended."""
    error, closed = RuntimeError("CUDA error: operation not permitted when stream is capturing\nmore."), []

    class Failing:
        def __init__(self, learner, ranks):
            pass

        def prepare(self):
            learner.policy.pointer.out.weight.grad.fill_(1.0)  # half of an update
            raise error

        def close(self):
            closed.append(True)

    learner = Learner.fresh(TINY)
    monkeypatch.setattr(engines, "_obstacle", lambda learner: "")
    monkeypatch.setattr(engines, "Fast", Failing)
    engine, words = make_engine("auto", learner, alone())
    reason = "RuntimeError: CUDA error: operation not permitted when stream is capturing"
    assert words == f"plain (the fast engine failed to capture an update, {reason})"
    assert closed
    assert not learner.policy.pointer.out.weight.grad.any()
    engine.update(1e-3)
    assert isinstance(make_engine("fast", learner, alone())[0], Failing)
    error = torch.OutOfMemoryError("CUDA out of memory")
    with pytest.raises(torch.OutOfMemoryError):
        make_engine("auto", learner, alone())


def test_batch_must_divide_among_ranks():
    with pytest.raises(ChainRouteError, match="4 instances do not divide among 3 ranks"):
        PlainEngine(Learner.fresh(TINY), Ranks(torch.device("cpu"), 0, 3))


def test_means_of_loss_and_gradient_are_of_the_updates_that_were_made():
    """Two of three updates were left out, which tell neither; of costs and trajectories all count."""
    tally = Tally(alone())
    for numbers in ([-0.3, 6.0, 0.1, 2.0, 0.0], [0.0, 9.0, 0.1, 0.0, 1.0], [0.0, 9.0, 0.1, 0.0, 1.0]):
        tally.add(torch.tensor(numbers))
    stats = tally.take()
    assert (stats.loss, stats.grad_norm) == pytest.approx((-0.3, 2.0))
    assert (stats.cost, stats.unfinished, stats.left_out) == pytest.approx((8.0, 0.1, 2 / 3))
    tally.add(torch.tensor([0.0, 9.0, 0.1, 0.0, 1.0]))
    assert (stats := tally.take()).loss == stats.grad_norm == 0.0
    assert stats.left_out == 1.0
