"""The fast engine's gradient is autograd's: same instances, same noise, same actions, every parameter."""

from dataclasses import replace

import pytest
import torch
from networks import COMBINED, SWITCHED, named
from torch.utils._python_dispatch import TorchDispatchMode

from chainroute.neural.env import Mixture, begin, mask, sample, step
from chainroute.neural.fast.chain import Chain
from chainroute.neural.fast.ops import plain as ops_plain
from chainroute.neural.fast.ops.situation import groups
from chainroute.neural.policy import Policy, PolicyConfig
from chainroute.neural.train.objective import PREFERENCE, excess_length, preferences
from chainroute.neural.train.rollout import sample_trajectories
from chainroute.problem.variants import SEEN, VARIANTS, variant

B, N, STEPS = 4, 8, 16
MIXED = [variant("OVRPTW"), variant("MDVRPBL")]  # of which a batch is padded


def policy_with(**changes):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        policy = Policy(
            PolicyConfig(**{"dim": 32, "heads": 2, "layers": 2, "hidden": 48, **changes})
        ).double()
        for p in policy.parameters():
            p.data += 0.05 * torch.randn_like(p)
    return policy


def noises(n, nodes, seed=2):
    chance = torch.Generator().manual_seed(seed)
    draws = -torch.log(torch.rand(STEPS, B, n, nodes, generator=chance, dtype=torch.float64))
    return draws, torch.randn(STEPS, B, n, 4, generator=chance, dtype=torch.float64)


def instances(variants, count=B, n=N, law="paper"):
    """Some problems, with distances that differ by direction."""
    chance = torch.Generator().manual_seed(1)
    batch = sample(count, n, Mixture.of(variants, law=law), chance)
    if law == "wide":
        return batch.map(lambda t: t.double() if t.is_floating_point() else t)
    distance = batch.distance * (0.9 + 0.2 * torch.rand(batch.distance.shape, generator=chance))
    batch = replace(batch, distance=distance, duration=distance)
    assert batch.padding is None or batch.padding.any(1).unique().numel() == 2  # instances of both kinds
    return batch.map(lambda t: t.double() if t.is_floating_point() else t)


def wide_instances():
    """Problems by the wide law: roads and hours of their own, goods both ways, fleets, one depot and
    several."""
    mixture = Mixture.of(VARIANTS, law="wide")
    batch = sample(B, N, mixture, torch.Generator().manual_seed(4))
    assert batch.padding is not None
    assert batch.fleet is not None
    assert batch.duration is not batch.distance
    return batch.map(lambda t: t.double() if t.is_floating_point() else t)


def advantage(cost, finished):
    return (cost.mean(1, keepdim=True) - cost) * finished


def by_autograd(policy, batch, refine, draws, noise, starts=0):
    scene, nodes = policy.encode(batch)
    state, likelihood, actions = begin(batch, starts or None), 0, []
    for j, refines in enumerate(refine):
        logits, nodes = policy.step(batch, scene, nodes, state, mask(batch, state), refines, noise[j])
        actions.append((logits - draws[j].log()).argmax(-1))
        likelihood = likelihood + logits.log_softmax(-1).gather(-1, actions[-1][..., None]).squeeze(-1)
        state = step(batch, state, actions[-1])
    loss = -(advantage(state.cost(batch), state.finished(batch)).detach() * likelihood).mean()
    loss.backward()
    return state, torch.stack(actions), loss.detach()


@pytest.mark.parametrize("rate", [1.0, 0.7, 0.0])
@pytest.mark.parametrize(
    "variants",
    [SEEN, [v for v in VARIANTS if v.multi_depot], MIXED],
    ids=["seen", "several depots", "one and several depots"],
)
def test_gradient_equals_autograd(rate, variants):
    gradient_equals_autograd(policy_with(), variants, rate)


@pytest.mark.parametrize("switches", [{"reembedding": "self"}, {"node_attention": False}], ids=named)
def test_gradient_of_padded_batches_in_other_networks_equals_autograd(switches):
    """Padding is hidden from contexts, too."""
    gradient_equals_autograd(policy_with(**switches), MIXED, 0.7)


@pytest.mark.parametrize("switches", [*SWITCHED, *COMBINED], ids=named)
def test_gradient_of_other_networks_equals_autograd(switches):
    """Also where some of the parameters have none."""
    gradient_equals_autograd(policy_with(**switches), SEEN, 0.7)


def test_gradient_with_an_encoder_of_ones_own_equals_autograd():
    gradient_equals_autograd(policy_with(encoder="toys:FlatEncoder"), MIXED, 0.7)
    gradient_equals_autograd(policy_with(encoder="chainroute.neural.policy.graph:GraphEncoder"), MIXED, 0.7)


def test_gradient_with_experts_equals_autograd():
    """In the encoder and in place of the pointer's projection, with the penalty on their unequal use."""
    names = {part: f"chainroute.research.rivals.mvmoe:MoE{part.title()}" for part in ("encoder", "pointer")}
    gradient_equals_autograd(
        policy_with(**names, reld=False, reembedding="off", scores="attributes"), MIXED, 0.7
    )


def test_gradient_by_the_wide_law_equals_autograd():
    gradient_equals_autograd(policy_with(), VARIANTS, 0.7, wide_instances())


@pytest.mark.parametrize("switches", [{}, {"decoder_depth": 2}], ids=named)
def test_gradient_of_preferences_equals_autograd(switches):
    """The pairs' loss itself, log-likelihoods and all, also where half of the instances go on."""
    batch, refine = instances(SEEN), [j % 3 != 1 for j in range(STEPS)]
    draws, noise = noises(N, batch.num_nodes)
    policy = policy_with(**switches)

    given = (batch, refine, draws, noise, preferences)
    made = Chain(policy, torch.float64).gradients(*given, halvings=[13], sees_likelihoods=True)
    have = [p.grad.clone() for p in policy.parameters() if p.grad is not None]
    policy.zero_grad()
    forced = sample_trajectories(policy, batch, refine, actions=made.actions, noise=noise)
    assert 0.5 < made.finished.float().mean() < 1
    i, j = torch.triu_indices(N, N, 1)
    sign = torch.sign(forced.cost[:, j] - forced.cost[:, i])
    ahead = forced.log_likelihood[:, i] - forced.log_likelihood[:, j]
    both = made.finished[:, i] & made.finished[:, j] & (sign != 0)
    pairs = -torch.nn.functional.logsigmoid(PREFERENCE * sign * ahead) / PREFERENCE * both
    each = (made.finished.sum(1) - 1).clamp(min=1)
    ((pairs.sum(1) / each).sum() / forced.cost.numel()).backward()
    want = [p.grad for p in policy.parameters() if p.grad is not None]
    for a, b in zip(have, want, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-10)


class FromHost(TorchDispatchMode):
    """Counts tensors made of Python's numbers: a graph that is captured cannot hold them."""

    count = 0

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        self.count += operation is torch.ops.aten.lift_fresh.default
        return operation(*args, **(kwargs or {}))


@pytest.mark.parametrize("switches", [{}, {"scores": "cosine"}, *COMBINED], ids=named)
def test_nothing_comes_from_the_host_once_it_has_run(switches):
    policy, batch = policy_with(**switches), instances(SEEN)
    chain, refine, chance = (
        Chain(policy, torch.float64),
        [j % 2 == 0 for j in range(STEPS)],
        noises(N, batch.num_nodes),
    )
    groups.cache_clear()
    with FromHost() as first:
        chain.gradients(batch, refine, *chance, advantage)
    with FromHost() as second:
        chain.gradients(batch, refine, *chance, advantage)
    assert first.count > second.count == 0


def test_gradient_by_the_wide_law_from_few_customers_equals_autograd():
    """All 48 variants in one padded batch with roads and fleets; fewer trajectories than customers."""
    policy, batch = policy_with(features="wide", spacing=True), instances(VARIANTS, law="wide")
    assert batch.fleet.isfinite().any()
    gradient_equals_autograd(policy, VARIANTS, 0.7, batch, starts=5)


def gradient_equals_autograd(policy, variants, rate, batch=None, starts=0):
    """In double precision, to 1e-9 of each parameter's gradient; actions, costs and loss are the same too."""
    batch = instances(variants) if batch is None else batch
    draws, noise = noises(starts or N, batch.num_nodes)
    refine = (torch.rand(STEPS, generator=torch.Generator().manual_seed(3)) < rate).tolist()
    made = Chain(policy, torch.float64).gradients(batch, refine, draws, noise, advantage)
    fast = {name: None if p.grad is None else p.grad.clone() for name, p in policy.named_parameters()}
    policy.zero_grad()
    state, actions, loss = by_autograd(policy, batch, refine, draws, noise, starts)

    assert torch.equal(made.actions, actions)
    assert made.finished.any()
    assert torch.equal(made.finished, state.finished(batch))
    torch.testing.assert_close(made.costs, state.cost(batch))
    torch.testing.assert_close(made.loss, loss)
    scale = max(p.grad.norm() for p in policy.parameters() if p.grad is not None)
    for name, p in policy.named_parameters():
        if p.grad is None:
            assert fast[name] is None or not fast[name].any(), name
        else:
            found = torch.zeros_like(p) if fast[name] is None else fast[name]
            assert (found - p.grad).norm() <= 1e-9 * p.grad.norm() + 1e-12 * scale, name


@pytest.mark.parametrize("switches", [{}, {"chain": False}, {"reembedding": "off"}], ids=named)
def test_going_on_with_half_of_the_instances_changes_nothing(switches):
    """Where the other half has finished: the same actions, costs and gradients, also after a second time."""
    policy, batch = policy_with(score_noise=0.5, **switches), instances(VARIANTS)
    given = (batch, [j % 3 != 1 for j in range(STEPS)], *noises(N, batch.num_nodes), advantage)
    chain = Chain(policy, torch.float64)
    whole = chain.gradients(*given)
    want = {name: p.grad.clone() for name, p in policy.named_parameters() if p.grad is not None}
    policy.zero_grad()
    visits = whole.actions >= batch.num_depots
    last = (visits * torch.arange(1, STEPS + 1)[:, None, None]).amax(0)
    ends = torch.where(whole.finished, last + 1, STEPS).amax(1).sort().values
    halvings = [int(ends[(batch.size - 1) // 2]), int(ends[batch.size - 1 - (batch.size + 1) // 4])]
    assert 0 < halvings[0] < halvings[1] < STEPS
    made = chain.gradients(*given, halvings=halvings)
    assert torch.equal(made.actions * (made.actions >= batch.num_depots), whole.actions * visits)
    for name in ("costs", "finished", "loss"):
        torch.testing.assert_close(getattr(made, name), getattr(whole, name))
    have = {name: p.grad for name, p in policy.named_parameters() if p.grad is not None}
    torch.testing.assert_close(have, want, rtol=1e-9, atol=1e-12)


def test_the_penalty_on_long_embeddings_equals_autograd():
    """The penalty is on nodes as the last re-embedding left them."""
    policy, batch = policy_with(), instances(SEEN)
    draws, noise = noises(N, batch.num_nodes)
    refine = [j % 3 != 1 for j in range(STEPS)]
    no_advantage = lambda cost, finished: torch.zeros_like(cost)  # noqa: E731
    penalty = lambda nodes: excess_length(nodes, 0.5)  # noqa: E731
    made = Chain(policy, torch.float64).gradients(batch, refine, draws, noise, no_advantage, penalty=penalty)
    have = {name: p.grad.clone() for name, p in policy.named_parameters() if p.grad is not None}
    policy.zero_grad()
    nodes = sample_trajectories(policy, batch, refine, actions=made.actions, noise=noise).nodes
    wanted = penalty(nodes)
    wanted.backward()
    assert wanted > 0
    torch.testing.assert_close(made.loss, wanted.detach())
    for name, p in policy.named_parameters():
        if p.grad is not None and p.grad.any():
            torch.testing.assert_close(have[name], p.grad, rtol=1e-6, atol=1e-12)


def test_those_who_are_left_out_have_not_finished():
    """The half with most trajectories under way goes on; the others end where they were, for nothing."""
    policy, batch = policy_with(), instances(SEEN)
    given = (batch, [True] * STEPS, *noises(N, batch.num_nodes), advantage)
    made = Chain(policy, torch.float64).gradients(*given, halvings=[3])
    assert (made.actions[3:] >= batch.num_depots).any(0).any(1).sum() == (batch.size + 1) // 2
    assert 0 < made.finished.any(1).sum() <= (batch.size + 1) // 2
    assert made.loss.isfinite()


def test_given_trajectories_stand_beside_sampled_ones():
    """Three of eight are those of another rollout, the others sampled; the gradient is autograd's for all."""
    batch, policy = instances(SEEN), policy_with()
    draws, noise = noises(N, batch.num_nodes)
    other, _ = noises(N, batch.num_nodes, seed=9)
    refine = [j % 2 == 0 for j in range(STEPS)]
    chain = Chain(policy, torch.float64)
    known = chain.gradients(batch, refine, draws, noise, advantage).actions
    given = torch.where(torch.arange(N) < 3, known, -1)
    policy.zero_grad()
    made = chain.gradients(batch, refine, other, noise, advantage, given)
    have = [p.grad.clone() for p in policy.parameters() if p.grad is not None]
    assert torch.equal(made.actions[..., :3], known[..., :3])
    assert not torch.equal(made.actions[..., 3:], known[..., 3:])
    policy.zero_grad()
    forced = sample_trajectories(policy, batch, refine, actions=made.actions, noise=noise)
    (-(advantage(forced.cost, forced.finished) * forced.log_likelihood).mean()).backward()
    want = [p.grad for p in policy.parameters() if p.grad is not None]
    for a, b in zip(have, want, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-12)


def test_forced_actions_repeat_a_rollout():
    """With other Gumbel noise but the first rollout's actions: the same costs and the same gradient."""
    batch, policy = instances(SEEN), policy_with()
    draws, noise = noises(N, batch.num_nodes)
    other, _ = noises(N, batch.num_nodes, seed=9)
    refine = [j % 2 == 0 for j in range(STEPS)]
    chain = Chain(policy, torch.float64)
    first = chain.gradients(batch, refine, draws, noise, advantage)
    gradient = [p.grad.clone() for p in policy.parameters() if p.grad is not None]
    policy.zero_grad()
    again = chain.gradients(batch, refine, other, noise, advantage, first.actions)
    torch.testing.assert_close(again.costs, first.costs)
    torch.testing.assert_close([p.grad for p in policy.parameters() if p.grad is not None], gradient)


@pytest.mark.parametrize("batch", [instances(SEEN), wide_instances()], ids=["paper", "wide"])
def test_arriving_is_compiled_once_for_each_number_of_instances(batch):
    """It compiles in the first step of each stretch, never later: a capture would end by it."""
    compiled = []

    def backend(graph, inputs):
        compiled.append(graph)
        return graph.forward

    torch.compiler.reset()
    chain = Chain(policy_with(), torch.float64)
    chain.arrive = torch.compile(chain.arrive, dynamic=False, backend=backend)
    draws, noise = noises(N, batch.num_nodes)
    for steps, halvings in ((6, [2, 4]), (STEPS, [5, 11])):
        chain.gradients(batch, [True] * steps, draws[:steps], noise[:steps], advantage, halvings=halvings)
        assert len(compiled) == 3


def test_gradients_add_up():
    """Called twice without clearing, gradients are twice those of one call."""
    batch, policy = instances(SEEN), policy_with()
    chain, given = (
        Chain(policy, torch.float64),
        (batch, [True] * STEPS, *noises(N, batch.num_nodes), advantage),
    )
    chain.gradients(*given)
    once = [p.grad.clone() for p in policy.parameters() if p.grad is not None]
    chain.gradients(*given)
    twice = [p.grad for p in policy.parameters() if p.grad is not None]
    torch.testing.assert_close(twice, [2 * g for g in once])


def by_kernels():
    """The default network in full batches and padded, and others. Without a GPU they are interpreted, which
    takes minutes: there, only the padded batch is part of every run."""
    slow = () if torch.cuda.is_available() else pytest.mark.slow
    yield pytest.param({}, MIXED, id="default-padded")
    yield pytest.param({}, SEEN, id="default", marks=slow)
    for i, switches in enumerate(COMBINED):
        yield pytest.param(switches, MIXED if i % 2 else SEEN, id=named(switches), marks=slow)


@pytest.mark.parametrize(("switches", "variants"), by_kernels())
def test_gradient_by_kernels_equals_plain(monkeypatch, switches, variants):
    """The chain of Triton kernels, with weights as they are laid out for it, in single precision, and in half
    precision with the same actions; float16, since the interpreter does not multiply bfloat16."""
    fused = pytest.importorskip("chainroute.neural.fast.ops.fused", reason="Triton is not installed")
    monkeypatch.setattr(torch, "compile", lambda function, **options: function)
    device = "cuda" if torch.cuda.is_available() else "cpu"  # there, Triton's interpreter
    policy = policy_with(score_noise=0.5, **switches).float().to(device)
    batch = instances(variants, 2, 4).map(lambda t: t.float() if t.is_floating_point() else t).to(device)
    draws, noise = (t[:8, :2].to(device, torch.float32) for t in noises(4, batch.num_nodes))
    refine = [j % 3 != 2 for j in range(8)]

    def gradient(half, ops, actions=None):
        policy.zero_grad()
        chain = Chain(policy, half, ops)
        made = chain.gradients(batch, refine, draws, noise, advantage, actions, halvings=[6])
        return made, torch.cat([p.grad.flatten() for p in policy.parameters() if p.grad is not None])

    plain, want = gradient(torch.float32, ops_plain)
    made, have = gradient(torch.float32, fused)
    assert made.finished.any()
    assert torch.equal(made.actions, plain.actions)
    assert (have - want).norm() < (1e-3 if device == "cpu" else 0.1) * want.norm()  # tf32 on a GPU
    _, have = gradient(torch.float16, fused, plain.actions)
    assert (have - want).norm() < 0.1 * want.norm()
