"""Recombination of a whole batch on its device: against that of single problems in NumPy, and all plans."""

import itertools
from dataclasses import fields, replace

import numpy as np
import pytest
import torch
from problems import KINDS, invent

from chainroute import VARIANTS, Problem, Solution
from chainroute.neural.assembly import incumbent, recombine
from chainroute.neural.assembly.incumbent import Draft, assembled
from chainroute.neural.decode import DecodeOptions, api, batch_drafts, beam, drafts, prices, rollouts
from chainroute.neural.decode.pools import Pools, pools_of
from chainroute.neural.decode.recombine import bytes_each, partition, recombined
from chainroute.neural.decode.rollout import Rollout
from chainroute.neural.env import from_problems
from chainroute.neural.policy import PolicyConfig
from chainroute.neural.policy.store import random_policy

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
ENOUGH = 2**40  # bytes
RECOMBINED = DecodeOptions(augmentations=2, recombine=True)


@pytest.fixture(scope="module")
def policy():
    return random_policy(PolicyConfig(dim=16, heads=2, layers=1, hidden=16)).to(DEVICE)


@pytest.fixture(scope="module")
def decoded(policy):
    """Problems of all variants and kinds in one padded batch, trajectories, which of them are whole plans,
    and which have finished, whatever the fleet."""
    problems = [
        invent(v, i, 7 + i % 6, kind=KINDS[i % len(KINDS)], fleet=i % 4 == 3) for i, v in enumerate(VARIANTS)
    ]
    batch = from_problems(problems).to(DEVICE)
    ((_, result),) = rollouts(policy, batch, RECOMBINED)
    actions, whole, finished = (
        x.reshape(batch.size, -1, *x.shape[2:])
        for x in (result.actions, result.costs.isfinite(), result.finished)
    )
    return problems, batch, actions, whole, finished


def own_nodes(problem, batch, actions):
    """Actions by the locations of the problem: a batch has its padded depots between depots and customers."""
    actions = actions.cpu().numpy().astype(int)
    return np.where(actions < batch.num_depots, 0, actions - batch.num_depots + problem.num_depots)


def unit(problem, batch, i):
    """What a distance of the problem is in the batch."""
    roads = np.where(np.isfinite(problem.distances), problem.distances, 0)
    j, k = np.unravel_index(roads.argmax(), roads.shape)
    m, more = problem.num_depots, batch.num_depots - problem.num_depots
    return batch.distance[i, j + more * (j >= m), k + more * (k >= m)].item() / roads[j, k]


def test_pools_have_the_same_routes_at_the_same_costs(decoded):
    """Of every instance: open and closed routes, several depots, no road, asymmetric matrices."""
    problems, batch, actions, _, _ = decoded
    pool, least = pools_of(batch, actions)
    for i, problem in enumerate(problems):
        known, scale = recombine.Pool(problem), unit(problem, batch, i)
        known.add(own_nodes(problem, batch, actions[i]))
        wanted = {
            frozenset(t): c for c, t in zip(known.costs, known.tours(range(len(known.costs))), strict=True)
        }
        there = pool.costs[i].isfinite().cpu()
        assert not pool.holds[i].cpu()[~there].any()
        found = {}
        for cost, visits, holds in zip(
            *(x[i].cpu()[there] for x in (pool.costs, pool.visits, pool.holds)), strict=True
        ):
            tour = own_nodes(problem, batch, visits[visits > 0])
            assert sorted(own_nodes(problem, batch, holds.nonzero().flatten())) == sorted(tour)
            found[frozenset(tour.tolist())] = cost.item() / scale
        assert len(found) == int(there.sum())
        assert found == pytest.approx(wanted, rel=1e-9)
        costs = incumbent.least_costs(replace(problem, fleet=None), own_nodes(problem, batch, actions[i]))
        assert least[i].cpu().numpy() / scale == pytest.approx(costs, rel=1e-9)


def plans(decoded, kept=8, memory=ENOUGH):
    """What is made of each problem here, and in NumPy; and what the best trajectory alone gives."""
    problems, batch, actions, whole, finished = decoded
    found, there = recombined(batch, actions, whole, kept, memory)
    for i, problem in enumerate(problems):
        every = own_nodes(problem, batch, actions[i]), finished[i].cpu().numpy()
        here = own_nodes(problem, batch, found[i]), there[i].cpu().numpy()
        yield [
            assembled(problem, Draft((piece,), 1, again))
            for piece, again in ((here, False), (every, True), (every, False))
        ]


def test_plans_are_as_good_as_those_in_numpy(decoded):
    """Judged by `assembled`. Seldom is one of them better, since prices differ by rounding; on the mean they
    are equal, and none is worse than the best trajectory."""
    ratios, better = [], 0
    for (here, there, best), whole in zip(plans(decoded), decoded[3], strict=True):
        if not whole.any():
            continue
        assert all(isinstance(one, Solution) for one in (here, there, best))
        assert here.cost <= best.cost * (1 + 1e-9)
        ratios.append(1.0 if here.cost == there.cost else here.cost / there.cost)
        better += here.cost < best.cost * 0.999
    assert len(ratios) > 40
    assert better > 10
    assert np.mean(ratios) <= 1 + 1e-6
    assert np.mean(np.abs(np.array(ratios) - 1) < 1e-9) > 0.9


def test_memory_cuts_batches_and_changes_nothing(decoded):
    """One by one, a few together and all at once; and twice the same is the same."""
    batch, actions, whole = (x[:12] for x in decoded[1:4])
    each = bytes_each(batch.num_nodes, *actions.shape[1:])
    at_once, there = recombined(batch, actions, whole, 2, ENOUGH)
    for memory in (1, 5 * each, ENOUGH):
        found, here = recombined(batch, actions, whole, 2, memory)
        assert torch.equal(here, there)
        assert torch.equal(found[here], at_once[there])


def test_an_instance_without_a_finished_trajectory_has_no_plan(decoded):
    """Beside others it changes nothing for them; alone there is nothing at all."""
    _, batch, actions, whole, _ = decoded
    one = int(whole.any(1).nonzero()[0])
    stuck = whole.clone()
    stuck[one] = False
    (found, there), (before, known) = (recombined(batch, actions, w, 1, ENOUGH) for w in (stuck, whole))
    assert not there[one].any()
    assert known[one].any()
    others = torch.arange(batch.size, device=DEVICE) != one
    assert torch.equal(there[others], known[others])
    assert torch.equal(found[others][there[others]], before[others][known[others]])
    _, there = recombined(batch[one : one + 1], actions[one : one + 1], stuck[one : one + 1], 3, ENOUGH)
    assert there.tolist() == [[False] * 4]


def test_plans_by_hand():
    """Customers at 1, 2, -1 and -2 on a line. Trajectories have 1 and 2 together, or -1 and -2, never both:
    each costs 4 + 2 + 4, the plan of both pairs 8. It comes after the best trajectory."""
    problem = Problem(capacity=2, delivery=[1] * 4, coords=[(0, 0), (1, 0), (2, 0), (-1, 0), (-2, 0)])
    actions = torch.tensor([[[1, 2, 0, 3, 0, 4, 0], [3, 4, 0, 1, 0, 2, 0]]], dtype=torch.int16)
    batch = from_problems([problem])
    found, there = recombined(batch, actions, torch.ones(1, 2).bool(), 1, ENOUGH)
    assert there.tolist() == [[True, True]]
    assert found[0, 0].tolist() == actions[0, 0].tolist()
    assert (found.dtype, sorted(incumbent.tours(problem, found[0, 1].numpy()))) == (
        torch.int16,
        [(1, 2), (3, 4)],
    )
    found, there = recombined(batch, actions[:, :1], torch.ones(1, 1).bool(), 4, ENOUGH)
    assert there.tolist() == [[True, False]]


def test_the_cheapest_of_several_rollouts_by_hand():
    """Two instances with a row in each of two rollouts, in another order and of other lengths: of four
    trajectories each the three cheapest, the earlier first where they cost the same."""

    def rows(costs, steps):
        actions = torch.tensor(costs).to(torch.int16)[..., None].expand(-1, -1, steps)
        return Rollout(torch.tensor(costs), actions, torch.tensor(costs) < 7)

    first, second = rows([[3.0, 5.0], [9.0, 1.0]], 2), rows([[2.0, 8.0], [5.0, 4.0]], 3)
    made = [(torch.tensor([0, 1]), first), (torch.tensor([1, 0]), second)]
    actions, costs, finished = api.cheapest(made, 2, 3)
    assert costs.tolist() == [[3, 4, 5], [1, 2, 8]]
    assert finished.tolist() == [[True, True, True], [True, True, False]]
    assert actions.tolist() == [[[3, 3, 0], [4, 4, 4], [5, 5, 0]], [[1, 1, 0], [2, 2, 2], [8, 8, 8]]]


def stacked(cases):
    """Costs (R,) and sets (R, N) of several as one pool, with the nodes that each has; node 0 is a depot."""
    rows, columns = (max(contains.shape[d] for _, contains in cases) for d in (0, 1))
    costs, holds = (
        torch.full((len(cases), rows), torch.inf).double(),
        torch.zeros(len(cases), rows, 1 + columns, dtype=torch.bool),
    )
    wanted = torch.zeros(len(cases), 1 + columns, dtype=torch.bool)
    for i, (cost, contains) in enumerate(cases):
        r, n = contains.shape
        costs[i, :r], holds[i, :r, 1 : n + 1] = torch.from_numpy(cost), torch.from_numpy(contains)
        wanted[i, 1 : n + 1] = True
    numbers = torch.from_numpy(np.random.default_rng(0).integers(2**62, size=1 + columns))
    keys = (numbers * holds.long()).sum(-1)
    return Pools(costs, keys, torch.zeros(len(cases), rows, 1, dtype=torch.int16), holds), wanted


def drawn_case(seed, columns, rows):
    """Sets of customers with costs that are drawn, so that no two plans are equally good."""
    rng = np.random.default_rng(seed)
    contains = np.unique(rng.random((rows, columns)) < 0.35, axis=0)
    contains = np.unique(np.concatenate([np.eye(columns, dtype=bool), contains[contains.any(1)]]), axis=0)
    return rng.random(len(contains)) + contains.sum(1) * 0.8, contains


def test_partitions_are_the_cheapest():
    """Against all subsets, for sixty pools of different sizes at once; none is found exactly where none is
    cheaper than asked."""
    cases = [drawn_case(seed, 2 + seed % 4, 7) for seed in range(60)]
    best = []
    for costs, contains in cases:
        best.append(
            min(
                costs[list(chosen)].sum()
                for size in range(1, contains.shape[1] + 1)
                for chosen in itertools.combinations(range(len(costs)), size)
                if (contains[list(chosen)].sum(0) == 1).all()
            )
        )
    asked = np.array(best) * np.random.default_rng(0).choice([0.9, 1 - 1e-9, 1.01, 1.5], len(best))
    pool, wanted = stacked(cases)
    found = partition(pool, wanted, torch.from_numpy(asked))
    for (costs, contains), rows, least, limit in zip(cases, found.tolist(), best, asked, strict=True):
        chosen = [row for row in rows if row >= 0]
        assert bool(chosen) == (least < limit)
        if chosen:
            assert (contains[chosen].sum(0) == 1).all()
            assert costs[chosen].sum() == pytest.approx(least)


@pytest.mark.parametrize("width", [1, 4, 256])
def test_the_search_keeps_the_same_plans_as_in_numpy(monkeypatch, width):
    """Of the same rows at the same prices, also where the beam is narrow, as long as there are candidates."""
    cases = [drawn_case(seed, 6 + seed % 5, 40) for seed in range(20)]
    monkeypatch.setattr(recombine, "BEAM_WIDTH", width)
    monkeypatch.setattr(beam, "WIDTH", (width, width))
    monkeypatch.setattr(beam, "CANDIDATES", 10**4)
    pool, wanted = stacked(cases)
    price = torch.from_numpy(np.random.default_rng(1).random(wanted.shape)) * wanted
    limit = torch.stack([pool.costs[i, : w.sum()].sum() for i, w in enumerate(wanted)])
    reduced = pool.costs - (pool.holds.double() @ price[..., None]).squeeze(-1)
    extra, bound = reduced.clamp(min=0), price.sum(1) + reduced.clamp(max=0).sum(1)
    found = beam.search(pool, extra, bound, limit, wanted)
    plans = 0
    for i, (costs, contains) in enumerate(cases):
        r = len(costs)
        known = recombine._beam(costs, contains, extra[i, :r].numpy(), bound[i].item(), limit[i].item())
        plans += known is not None
        assert sorted(row for row in found[i].tolist() if row >= 0) == sorted([] if known is None else known)
    assert plans > 5


def test_prices_prove_as_much_as_in_numpy():
    """The bound is what the prices prove, and on the mean within a thousandth of the other."""
    cases = [drawn_case(seed, 12, 80) for seed in range(20)]
    pool, wanted = stacked(cases)
    limit = 1.02 * pool.costs[:, :12].sum(1)
    found, bounds = prices.prices_of(pool, wanted, limit)
    ratios = []
    for (costs, contains), price, bound, cost in zip(
        cases, found[:, 1:].numpy(), bounds.tolist(), limit.tolist(), strict=True
    ):
        assert bound == pytest.approx(price.sum() + np.minimum(costs - contains @ price, 0).sum())
        ratios.append(bound / recombine._prices(costs, contains, cost)[1])
    assert np.mean(ratios) == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("iterations", [1, 2, 60])
def test_the_kernel_climbs_the_same_way(iterations):
    """Of instances with 5, 10 and 15 customers and up to 300 routes, more than a program looks at together.
    From the second step on some prices are better than the first; after 60 all have stalled and gone on."""
    kernel = pytest.importorskip("chainroute.neural.decode.prices_triton", reason="Triton is not installed")
    cases = []
    for seed in range(3):
        rng, (_, contains) = np.random.default_rng(seed), drawn_case(seed, 5 + 5 * seed, 300)
        worth = contains @ rng.uniform(1, 2, contains.shape[1])
        cases.append((worth * rng.uniform(1, 1.3, len(worth)), contains))
    pool, wanted = stacked(cases)
    given = [pool.holds, pool.costs.float(), wanted, 1.2 * wanted.float(), 1.5 * wanted.sum(1).float()]
    given = [x.to(DEVICE) for x in given]
    assert kernel.serves(given[0])
    found, known = (one(*given, iterations, 5) for one in (kernel.climb, prices.climb))
    assert found.cpu().numpy() == pytest.approx(known.cpu().numpy(), abs=1e-5)
    assert (found != given[3]).any() == (iterations > 1)
    assert (prices.climb(*given, iterations, 10**6) != known).any(1).all() == (iterations == 60)


def test_the_kernel_branches_the_same_way():
    """The kernel gives what its twin gives. Up to 400 rows hold a node, more than it looks at together, and
    two nodes have the same; of five plans one has a node left that no row holds, one is none, and one
    has no node left."""
    kernel = pytest.importorskip("chainroute.neural.decode.beam_triton", reason="Triton is not installed")
    chance = torch.Generator().manual_seed(0)
    contains = torch.rand(2, 600, 16, generator=chance) < torch.linspace(0.5, 0.6, 16)
    contains[..., 3], contains[..., 0] = contains[..., 1], False  # 0 is a depot
    live = (torch.rand(2, 5, 600, generator=chance) < 0.6).float()
    live[1, 1:3] = 0
    counts = live @ contains.float()
    left, gap = (counts > 0).sum(-1), torch.rand(2, 5, generator=chance)
    left[1, 0] += 1
    left[1, 1], gap[1, 1] = 15, torch.inf
    holders, extra = beam._holders(contains, torch.rand(2, 600, generator=chance))
    assert holders.shape[-1] > kernel.HOLDERS
    given = [x.to(DEVICE) for x in (counts, left, gap, live, holders, extra)]
    (scores, choices), (known, nodes) = (one(*given) for one in (kernel.branches, beam.branches))
    assert torch.equal(scores, known)
    assert torch.equal(choices, nodes)
    assert scores.isfinite().any(-1).tolist() == [[True] * 5, [False] * 3 + [True] * 2]
    fewest = counts.where(counts > 0, torch.inf).amin(-1)
    assert torch.equal(scores.isfinite().sum(-1).cpu() == fewest, scores.isfinite().any(-1).cpu())
    assert (choices == 1).any()  # not 3, which is as good


def test_the_kernel_finds_the_same_followers():
    """Of 5 plans that 3 were made into, among 1,100 rows, more than a program looks at; one has no room."""
    kernel = pytest.importorskip("chainroute.neural.decode.beam_triton", reason="Triton is not installed")
    chance = torch.Generator().manual_seed(0)
    live, apart = ((torch.rand(2, n, 1_100, generator=chance) < 0.6).to(DEVICE) for n in (3, 1_100))
    plan, row = (torch.randint(most, (2, 5), generator=chance).to(DEVICE) for most in (3, 1_100))
    extra, room = (torch.rand(2, n, generator=chance).to(DEVICE) for n in (1_100, 5))
    room[1, 2] = -torch.inf
    found, known = (
        one(live.float(), plan, row, apart, extra, room) for one in (kernel.followers, beam.followers)
    )
    assert torch.equal(found, known)
    assert found.sum(-1).bool().tolist() == [[True] * 5, [True, True, False, True, True]]


def test_kernels_give_the_same_plans(monkeypatch):
    """Where kernels run, prices and beam are theirs: here in Triton's interpreter, of little work."""
    pytest.importorskip("triton", reason="Triton is not installed")
    monkeypatch.setattr(recombine, "PRICE_ITERATIONS", (3, 3))
    monkeypatch.setattr(beam, "WIDTH", (8, 8))
    pool, wanted = stacked([drawn_case(seed, 6, 20) for seed in range(3)])
    pool, wanted = Pools(*(getattr(pool, f.name).to(DEVICE) for f in fields(pool))), wanted.to(DEVICE)
    limit = 1.02 * pool.costs[:, :6].sum(1)
    called, known = [], None
    kernels = (
        (prices.prices_triton, "climb"),
        (beam.beam_triton, "branches"),
        (beam.beam_triton, "followers"),
    )
    for module, name in kernels:
        kernel = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *x, kernel=kernel: called.append(kernel) or kernel(*x))
    for reason in ("is tired", ""):
        for module in (prices, beam):
            monkeypatch.setattr(module, "failure", lambda device, reason=reason: reason)
        found = partition(pool, wanted, limit)
        assert bool(called) == (reason == "")
        assert known is None or torch.equal(found, known)
        known = found
    assert len(set(called)) == 3
    assert (known >= 0).any()


def test_drafts_that_are_recombined_give_the_same_plans(monkeypatch, policy):
    """Also of several depots, at two rates, and in parts; what goes to the cores is small. Where vehicles are
    too few for every trajectory, all of them go."""
    problems = [invent(VARIANTS[i], i, 9, fleet=i % 8 == 3) for i in range(0, len(VARIANTS), 3)]
    coords = np.random.default_rng(0).random((10, 2))
    problems.append(Problem(capacity=10, delivery=[6] * 9, coords=coords, fleet=6))
    options = replace(RECOMBINED, update_rates=(0.0, 1.0))
    plain = dict(drafts(policy, problems, options)) if DEVICE == "cpu" else None
    monkeypatch.setattr(api, "on_device", lambda device: True)
    short = replace(options, memory=4 * 2**20)
    for given in (options, short):
        made = dict(drafts(policy, problems, given))
        assert made[len(problems) - 1].recombine
        assert "none of 36 trajectories" in assembled(problems[-1], made[len(problems) - 1]).message
        assert len(made) == len(problems)
        for i, problem in enumerate(problems[:-1]):
            ((actions, there),) = made[i].pieces
            found = assembled(problem, made[i])
            assert (made[i].tried, made[i].recombine) == (2 * 2 * 9, False)
            assert len(actions) == len(there) <= 9
            if plain is not None:
                assert found.cost == pytest.approx(assembled(problem, plain[i]).cost, rel=1e-9)


def test_cores_recombine_where_the_device_fails(monkeypatch, policy):
    """Nothing is lost: they get the promising trajectories, as if there were no such device."""

    def lacking(*args):
        raise torch.OutOfMemoryError("not enough")

    problem = invent(VARIANTS[0], 0, 9)
    ((_, expected),) = drafts(policy, [problem], RECOMBINED)
    monkeypatch.setattr(api, "on_device", lambda device: True)
    monkeypatch.setattr(api, "recombined", lacking)
    with pytest.warns(UserWarning, match="recombined on cores, since the device failed: not enough"):
        ((_, draft),) = drafts(policy, [problem], RECOMBINED)
    assert draft.recombine
    found, plan = (assembled(problem, one) for one in (draft, expected))
    assert found.cost == pytest.approx(plan.cost, rel=1e-9)


def test_rounds_keep_all_routes(monkeypatch, policy):
    """Where rounds follow, the pool is theirs, whatever the device."""
    monkeypatch.setattr(api, "on_device", lambda device: True)
    batch = from_problems([invent(VARIANTS[0], 0, 6)]).to(DEVICE)
    for rounds, again in ((0, False), (2, True)):
        found = list(batch_drafts(policy, batch, replace(RECOMBINED, rounds=rounds)))
        assert {draft.recombine for _, draft in found} == {again}
