"""The whole policy: against the literal one, its invariances, its switches, and its fast paths."""

import dataclasses
import itertools

import literal
import numpy as np
import pytest
import torch

from chainroute import VARIANTS, Problem, variant
from chainroute.generate import generate, generate_arrays
from chainroute.neural.env import begin, from_problems, mask, reset, step
from chainroute.neural.env.stacked import from_arrays
from chainroute.neural.policy import Policy, PolicyConfig
from chainroute.neural.policy.policy import attributes

DIM, HIDDEN, LAYERS = 16, 32, 2


def config(**options):
    return PolicyConfig(**{"dim": DIM, "heads": 2, "hidden": HIDDEN, "layers": LAYERS, **options})


def make(seed=0, **options):
    return literal.drawn(Policy(config(**options)), seed)


def problems(*names, n=5, seed=0):
    return [generate(variant(name), n, 1, seed)[0] for name in names]


def directed():
    """Distances and durations that depend on direction, and a limit that counts service."""
    rng = np.random.default_rng(0)
    distances, durations = rng.uniform(1, 9, (2, 6, 6)) * (1 - np.eye(6))
    return Problem(
        capacity=10,
        delivery=[3, 0, 4, 2, 0],
        pickup=[0, 5, 0, 0, 2],
        backhaul="mixed",
        service=[1, 2, 1, 2, 1],
        distance_matrix=distances,
        duration_matrix=durations,
        distance_limit=40,
        limit_counts_service=True,
        time_windows=[(2, np.inf), *[(rng.uniform(0, 9), np.inf) for _ in range(5)]],
    )


MIXED = ("CVRP", "OVRPBLTW", "VRPMBTW", "MDVRPL", "MDOVRPMBTW")


@torch.no_grad()
def chain(policy, batch, refine=(True, True, False, True), state=None):
    """Greedy steps of the policy: what each was given and what came out."""
    scene, nodes = policy.encode(batch)
    state = begin(batch) if state is None else state
    steps = []
    for again in refine:
        legal = mask(batch, state)
        logits, after = policy.step(batch, scene, nodes, state, legal, again)
        steps.append((state, legal, logits, after))
        state, nodes = step(batch, state, logits.argmax(-1)), after
    return steps


def close(actual, expected, tolerance=1e-9):
    np.testing.assert_allclose(np.asarray(actual), np.asarray(expected), rtol=tolerance, atol=tolerance)


# -- the literal policy


def long_day():
    """Open three times as long as any in training, some customers at any time."""
    (problem,) = problems("VRPTW")
    windows = 3 * problem.windows
    windows[2:4] = 0, windows[0, 1]
    return problem.replace(time_windows=windows)


def follow(instance, start_depot, route, travelled, action):
    """The route under way and the length of the finished ones after a visit."""
    m = instance.num_depots
    if action >= m:
        return [*route, action] if route[-1] >= m else [int(start_depot[action]), action], travelled
    if len(route) > 1:
        way = [*route, *([] if instance.open else [route[0]])]
        travelled += sum(instance.distance[a, b] for a, b in itertools.pairwise(way))
    return [route[0]], travelled


CASES = [
    *[(problems(name), {}) for name in MIXED],
    ([directed()], {}),
    ([long_day()], {}),
    ([p.replace(distance_limit=5.0) for p in problems("VRPL")[:1]], {}),
    ([directed()], {"distance_bias": "raw"}),
    ([directed()], {"reembedding": "self"}),
    (problems("MDVRPMBLTW"), {"scores": "dot", "reld": False, "decoder_depth": 2, "sparse": False}),
    (problems("MDVRPMBLTW"), {"chain": False, "node_attention": False, "depot_closing": True}),
]


@pytest.mark.parametrize(("instances", "options"), CASES)
def test_policy_is_the_literal_one_step_by_step(instances, options):
    """Embeddings, the 13 attributes of every trajectory, logits and the nodes each step leaves."""
    policy, batch = make(**options), from_problems(instances)
    weights, one = literal.weights_of(policy), literal.Instance(batch, 0)
    scene, encoded = policy.encode(batch)
    nodes = one.encode(weights, policy.config)
    close(encoded[0].detach(), nodes)

    start_depot = batch.start_depot[0].tolist()
    ways = [([start_depot[c], c], 0.0) for c in range(batch.num_depots, batch.num_nodes)]
    refine = [True, True, False, True, True, True, False, True]
    for again, (state, legal, logits, after) in zip(refine, chain(policy, batch, refine), strict=True):
        current = state.current[0].tolist()
        assert [route[-1] for route, _ in ways] == current
        numbers = [one.attributes(*way) for way in ways]
        close(attributes(batch, scene, state)[0], numbers)
        expected, nodes = one.step(weights, policy.config, nodes, numbers, current, legal[0].tolist(), again)
        close(logits[0], expected)
        close(after[0], nodes)
        actions = logits[0].argmax(-1).tolist()
        ways = [follow(one, start_depot, *way, action) for way, action in zip(ways, actions, strict=True)]
        assert (logits[0][legal[0]].abs() < 9.9).float().mean() > 0.5, "clipping hides what differs"
    assert any(travelled > 0 for _, travelled in ways), "no trajectory began a second route"


# -- invariances

OPTIONS = [{}, {"reembedding": "self"}, {"node_attention": False, "reld": False}, {"sparse": False}]


@pytest.mark.parametrize("options", OPTIONS)
def test_padded_is_unpadded_and_many_are_one(options):
    """Instances of several sizes and depot counts in one batch, and each alone."""
    policy = make(**options)
    together = [*problems(*MIXED, n=3), *problems(*MIXED, n=6), directed()]
    batch = from_problems(together)
    steps = chain(policy, batch)
    for i, problem in enumerate(together):
        real, starts = ~batch.padding[i], problem.num_customers
        alone = chain(policy, from_problems([problem]))
        for (_, _, logits, after), (_, _, expected, nodes) in zip(steps, alone, strict=True):
            close(logits[i, :starts][:, real], expected[0])
            assert logits[i, :starts][:, ~real].isneginf().all()
            close(after[i, real], nodes[0])


def test_all_variants_in_one_batch_are_each_alone():
    policy = make()
    batch = from_problems([generate(v, 4, 1, seed=1)[0] for v in VARIANTS])
    steps = chain(policy, batch)
    for i in range(batch.size):
        for (_, _, logits, after), (_, _, expected, nodes) in zip(
            steps, chain(policy, batch[i : i + 1]), strict=True
        ):
            close(logits[i], expected[0])
            close(after[i], nodes[0])


def test_fewer_starts_than_customers():
    """Trajectories share the nodes they leave, so with fewer of them the logits differ, but stay finite."""
    batch, policy = from_problems(problems("VRPTW")), make()
    few = chain(policy, batch, state=begin(batch, 2))
    assert all(logits.shape == (1, 2, 6) and logits[legal].isfinite().all() for _, legal, logits, _ in few)
    assert not torch.allclose(few[0][2], chain(policy, batch)[0][2][:, :2])


@pytest.mark.parametrize("name", MIXED)
def test_permuting_customers_permutes_logits(name):
    (problem,) = problems(name, n=6)
    m = problem.num_depots
    order = np.array([3, 0, 5, 1, 4, 2])
    everyone = np.r_[np.arange(m), m + order]
    windows = None if problem.time_windows is None else problem.time_windows[everyone]
    shuffled = problem.replace(
        coords=problem.coords[everyone],
        delivery=problem.delivery[order],
        pickup=problem.pickup[order],
        service=problem.service[order],
        time_windows=windows,
    )
    policy = make()
    for (_, _, logits, _), (_, _, permuted, _) in zip(
        chain(policy, from_problems([problem])), chain(policy, from_problems([shuffled])), strict=True
    ):
        close(permuted[0], logits[0][order][:, everyone])


def test_far_deadlines_do_not_break_the_numbers():
    """A deadline beyond single precision is no deadline to the policy."""
    (problem,) = problems("VRPTW")
    windows = problem.time_windows.copy()
    windows[:, 1] = 1e99
    batch = from_problems([problem.replace(time_windows=windows)])
    assert all(logits[legal].isfinite().all() for _, legal, logits, _ in chain(Policy(config()), batch))


# -- switches

LAYER = 4 * DIM * DIM + 4 * DIM + 3 * DIM * HIDDEN + 2 * DIM  # q, k, v and out with biases, MLP, two norms
MLP = DIM + 3 * DIM * HIDDEN  # with its norm

SWITCHES = {  # field: other values, and how many parameters they add; None where all of them change
    "dim": {32: None},
    "heads": {4: 0},
    "layers": {3: 2 * LAYER + 2 * (DIM * DIM + DIM)},
    "hidden": {48: 3 * DIM * 16 * (2 * LAYERS + 2)},
    "sparse": {False: -LAYERS * (LAYER + 2 * (DIM * DIM + DIM))},
    "prompt": {False: -(4 * DIM + DIM) - 4 * DIM - (2 * DIM * DIM + DIM)},
    "fusion": {"parallel": 0},
    "depot_closing": {True: DIM},
    "features": {"wide": (4 + 2) * DIM},
    "spacing": {True: 0},
    "scores": {"dot": 0, "cosine": 0, "random": 0, "embeddings": 0, "attributes": -4 * DIM * DIM},
    "score_noise": {0.5: 0},
    "reembedding": {"self": 0, "off": -LAYER - 2 * DIM},
    "residual": {"query": 0},
    "node_attention": {False: 0},
    "chain": {False: 0},
    "distance_bias": {"raw": 0, "off": 0},
    "reld": {False: -DIM * DIM - MLP},
    "glimpse_residual": {True: 0},
    "decoder_depth": {4: 3 * (2 * DIM * DIM + MLP)},
    "logit_distance_bias": {False: 0},
    "clip": {5.0: 0},
}


def count(policy):
    return sum(p.numel() for p in policy.parameters())


def test_every_switch_is_listed():
    blocks = {"encoder", "rgcr", "tsnr", "pointer"}  # of one's own, by name
    assert set(SWITCHES) | blocks == {f.name for f in dataclasses.fields(PolicyConfig)}


@torch.no_grad()
def logits_of_two_steps(policy, batch):
    scene, nodes = policy.encode(batch)
    state, out = begin(batch), []
    noise = torch.randn(*state.current.shape, 4, generator=torch.Generator().manual_seed(0)).double()
    for _ in range(2):
        legal = mask(batch, state)
        logits, nodes = policy.step(batch, scene, nodes, state, legal, True, noise)
        out.append(logits[legal])
        state = step(batch, state, legal.int().argmax(-1))  # the same walk for all
    return torch.cat(out)


@pytest.mark.parametrize(
    ("field", "value", "added"), [(f, v, a) for f, values in SWITCHES.items() for v, a in values.items()]
)
def test_every_switch_switches(field, value, added):
    """With the same weights it gives other logits, and it has as many parameters as it should."""
    plain, switched = make(), make(**{field: value})
    if added is None:
        assert count(switched) > count(plain)
        return
    assert count(switched) - count(plain) == added
    shared = {k: v for k, v in plain.state_dict().items() if k in switched.state_dict()}
    fitting = {k: v for k, v in shared.items() if v.shape == switched.state_dict()[k].shape}
    switched.load_state_dict(fitting, strict=False)
    batch = from_problems(problems("MDVRPMBLTW", "OVRPBLTW"))
    a, b = logits_of_two_steps(plain, batch), logits_of_two_steps(switched, batch)
    assert (a - b).abs().max() > 1e-6


def test_chain_starts_from_what_the_last_step_left():
    """The first step is the same with and without the chain; the second is not."""
    batch = from_problems(problems(*MIXED))
    chained, restarted = make(chain=True), make(chain=False)
    (_, _, a1, h1), (_, _, a2, _) = chain(chained, batch, (True, True))
    (_, _, b1, h0), (_, _, b2, _) = chain(restarted, batch, (True, True))
    assert torch.equal(a1, b1)
    assert torch.equal(h0, restarted.encode(batch)[1])
    assert not torch.allclose(h1, h0)
    assert not torch.allclose(a2, b2)


@pytest.mark.parametrize("options", [{}, {"reembedding": "self"}, {"reembedding": "off"}])
def test_without_refining_nodes_stay_untouched(options):
    batch, policy = from_problems(problems(*MIXED)), make(**options)
    nodes = policy.encode(batch)[1]
    for _, _, _, after in chain(policy, batch, (False, False)):
        assert torch.equal(after, nodes)


# -- gradients


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"reembedding": "self"},
        {"reembedding": "off", "decoder_depth": 4},
        {"sparse": False, "depot_closing": True},
        *({"scores": scores, "reld": False} for scores in ("dot", "cosine", "embeddings", "attributes")),
    ],
)
def test_gradients_reach_every_parameter(options):
    """All but the last fusion into the sparse branch, which nothing reads; the paper has it, too.

    The gradient of a bias on keys is zero by nature: it shifts all scores of a query alike.
    """
    policy, batch = make(**options), from_problems(problems(*MIXED))
    scene, nodes = policy.encode(batch)
    state, total = begin(batch), 0.0
    for _ in range(3):
        legal = mask(batch, state)
        logits, nodes = policy.step(batch, scene, nodes, state, legal, True)
        total = total + logits.log_softmax(-1)[legal].square().sum()
        state = step(batch, state, logits.argmax(-1))
    total.backward()
    grads = {name: p.grad for name, p in policy.named_parameters()}
    unread = {f"encoder.to_sparse.{LAYERS - 1}.{kind}" for kind in ("weight", "bias")}
    assert {name for name, grad in grads.items() if grad is None} == unread & set(grads)
    assert all(grad.isfinite().all() for grad in grads.values() if grad is not None)
    zero = {name for name, grad in grads.items() if grad is not None and grad.abs().max() < 1e-12}
    assert zero <= {"tsnr.k.bias"}


# -- fast paths and precision


@pytest.mark.parametrize(
    ("names", "options"),
    [
        (MIXED, {}),
        pytest.param(
            *(MIXED[:2], {"reembedding": "self", "scores": "cosine", "distance_bias": "raw"}),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_compiled_is_eager(names, options):
    """One graph without breaks, forward and backward, from unpadded and padded batches."""
    torch.compiler.reset()
    policy = make(**options)
    batch = from_problems(problems(*names))
    with torch.no_grad():
        scene, nodes = policy.encode(batch)
    state = begin(batch)
    legal = mask(batch, state)
    compiled = torch.compile(policy.step, backend="aot_eager", fullgraph=True)
    results = []
    for run in (policy.step, compiled):
        leaf = nodes.clone().requires_grad_()
        logits, after = run(batch, scene, leaf, state, legal, True)
        logits[legal].sum().backward()
        results.append((logits.detach(), after.detach(), leaf.grad))
    for eager, fast in zip(*results, strict=True):
        close(fast, eager, 1e-12)


def test_single_precision_is_close_to_double():
    double, batch = make(), from_problems(problems(*MIXED))
    single = Policy(config()).eval()
    single.load_state_dict(double.state_dict())
    for (_, legal, logits, _), (_, _, expected, _) in zip(
        chain(single, batch), chain(double, batch), strict=True
    ):
        assert logits.dtype is torch.float32
        close(logits[legal], expected[legal], 1e-3)


@pytest.mark.filterwarnings("ignore:mkldnn_matmul")
def test_logits_are_single_precision_under_autocast():
    torch.manual_seed(0)
    policy, batch = Policy(config()).eval(), from_problems(problems(*MIXED))
    with torch.autocast("cpu", torch.bfloat16):
        steps = chain(policy, batch)
    for (_, legal, logits, _), (_, _, expected, _) in zip(steps, chain(policy, batch), strict=True):
        assert logits.dtype is torch.float32
        assert logits[legal].isfinite().all()
        if torch.equal(legal, mask(batch, begin(batch))):  # later steps may have chosen otherwise
            assert (logits - expected)[legal].abs().mean() < 0.1


# -- what wide networks are told


def line(n=4, **fields):
    """A depot at 0 and customers at 10, 20, .. along a line."""
    base = {"capacity": 4, "delivery": [1] * n, "coords": [(10 * i, 0) for i in range(n + 1)]}
    return Problem(**{**base, **fields})


def test_nearness_in_units_of_the_spacing_is_the_same_at_any_size():
    """Neighbours on a line of 4 and of 40 customers are equally near: as far apart as 50 customers' are."""
    policy = make(spacing=True)
    usual = 0.5 / np.sqrt(50)
    for n in (4, 40):
        near = policy.observe(from_problems([line(n)])).near[0]
        assert near[1, 2].item() == pytest.approx(-np.log(usual), rel=1e-5)
        assert near[1, 3].item() == pytest.approx(-np.log(2 * usual), rel=1e-5)
        assert near[1, 1].item() == 0
    plain = make().observe(from_problems([line(4)])).near[0]
    assert plain[1, 2].item() == pytest.approx(-np.log(0.25), rel=1e-5)


def test_nodes_at_one_place_and_padding_do_not_count_as_neighbours():
    """Beside a longer line; and with a second depot where the first is."""
    policy = make(spacing=True)
    doubled = line(4, num_depots=2, coords=[(0, 0), (0, 0), *[(10 * i, 0) for i in range(1, 5)]])
    for problem in (line(4), doubled):
        near = policy.observe(from_problems([problem, line(9)])).near[0]
        at = from_problems([problem, line(9)]).num_depots
        assert near[at, at + 1].item() == pytest.approx(-np.log(0.5 / np.sqrt(50)), rel=1e-5)


def test_a_day_of_any_length_looks_like_one_day():
    """A day of 4 and one of 400 in units of the map: all times in shares of it, and how long it is beside."""
    short, long = (
        line(time_windows=[(0, day), *[(day / 4, day / 2)] * 4], service=[day / 40] * 4)
        for day in (160, 16000)
    )
    scene = make(features="wide").observe(from_problems([short, long]))
    for times in scene.features[..., 4:]:
        assert times[0].tolist() == pytest.approx([0, 4.6, 0])
        assert times[1].tolist() == pytest.approx([1.15, 2.3, 0.115])
    assert scene.instance[:, 1].tolist() == pytest.approx(np.log([4.6 / 4, 4.6 / 400]))
    assert scene.instance[:, 0].tolist() == pytest.approx([np.log(4 / 50)] * 2)
    assert make().observe(from_problems([short])).instance is None


def test_vehicles_to_spare_and_customers_served_are_told():
    """Four quarter loads in two vehicles: one load to spare at first, told as 1 - 2; none without a fleet."""
    batch = from_problems([line(fleet=2), line(fleet=9), line()])
    policy = make(features="wide")
    scene, state = policy.observe(batch), reset(batch, torch.zeros(3, 1, dtype=torch.long))
    assert scene.instance[:, 3].tolist() == [-2, 0, 0]  # of the vehicles left when the first is on its way
    for action, vehicles, served in ((1, -1.75, 0.25), (2, -1.5, 0.5), (0, -2.5, 0.5), (3, -2.25, 0.75)):
        state = step(batch, state, torch.full((3, 1), action))
        more = attributes(batch, scene, state)[:, 0, 13:]
        assert more[0].tolist() == pytest.approx([vehicles, served])
        assert more[2].tolist() == pytest.approx([0, served])


@torch.no_grad()
def test_what_is_new_changes_nothing_on_days_and_sizes_of_the_paper():
    """Weights of a paper network with zeros for the new inputs: equal logits on 50 customers by its law."""
    batch = from_arrays(generate_arrays(variant("VRPTW"), 50, 2, 0))
    paper, wide = make(), make(features="wide")
    given = dict(paper.named_parameters())
    for name, parameter in wide.named_parameters():
        parameter.zero_()
        if name in given:
            parameter[tuple(slice(size) for size in given[name].shape)] = given[name]
    state = begin(batch)
    legal = mask(batch, state)
    ours, theirs = (p.step(batch, *p.encode(batch), state, legal, True)[0] for p in (wide, paper))
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)
