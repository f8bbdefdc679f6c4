"""Decoding: every way to make trajectories ends in judged solutions, and more ways never in worse ones."""

import itertools
import math
from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from problems import KINDS, invent

from chainroute import VARIANTS, ChainRouteError, Fault, Problem, check, variant
from chainroute.generate import generate
from chainroute.neural.decode import (
    DecodeOptions,
    attempt,
    best_costs,
    capture,
    decode,
    rollout,
    rollouts,
    search,
)
from chainroute.neural.decode import memory as estimate
from chainroute.neural.decode.engine import begin_chain
from chainroute.neural.decode.noise import Noise
from chainroute.neural.decode.rollout import _replayed, _starts, _stepped, longest, pattern
from chainroute.neural.decode.search import on_maps
from chainroute.neural.env import Rules, from_problems
from chainroute.neural.policy import PolicyConfig
from chainroute.neural.policy.store import random_policy
from chainroute.options.rules import work
from chainroute.runtime.deadline import NEVER, Deadline

TINY = PolicyConfig(dim=16, heads=2, layers=1, hidden=16)
PLAIN = DecodeOptions(augmentations=1)


@pytest.fixture(scope="module")
def policy():
    return random_policy(TINY)


def judged(problems, solutions):
    """The costs, after the judge has accepted every solution."""
    for problem, solution in zip(problems, solutions, strict=True):
        assert solution.problem is problem
        verdict = check(problem, solution)
        assert verdict.feasible, verdict
    return [solution.cost for solution in solutions]


def costs(policy, problems, **options):
    return judged(problems, decode(policy, problems, DecodeOptions(**options)))


def routes(solutions):
    return [solution.routes for solution in solutions]


def faults(*call, **named):
    with pytest.raises(ChainRouteError) as error:
        call[0](*call[1:], **named)
    return error.value.faults


# -- feasible, always


@pytest.mark.parametrize(
    "options",
    [
        DecodeOptions(augmentations=2, starts=3),
        DecodeOptions(augmentations=1, samples=2, temperature=2.0, update_rates=(0.3,)),
    ],
    ids=["greedy", "sampled"],
)
def test_every_variant_gets_a_judged_solution(policy, options):
    """One call has distances of every kind, one to four depots and three to seven customers."""
    problems = [invent(v, i, 3 + i % 5, kind=KINDS[i % len(KINDS)]) for i, v in enumerate(VARIANTS)]
    judged(problems, decode(policy, problems, options))


def test_the_network_of_the_paper_and_a_deeper_one_decode():
    problems = generate([variant("OVRPBLTW"), variant("MDVRPMB")], 6, 1, seed=3)
    for config in (PolicyConfig(), PolicyConfig(dim=16, heads=2, layers=1, hidden=16, decoder_depth=2)):
        judged(problems, decode(random_policy(config), problems, PLAIN))


# -- the same answer


def test_same_seed_same_routes_and_global_chance_untouched(policy):
    problems = generate([variant("CVRP"), variant("MDVRPTW")], 8, 2, seed=1)
    state = torch.get_rng_state()
    options = DecodeOptions(augmentations=2, samples=2, update_rates=(0.5,), seed=2**31 + 5)
    first, again = (routes(decode(policy, problems, options)) for _ in range(2))
    assert first == again
    assert torch.equal(torch.get_rng_state(), state)
    other = DecodeOptions(augmentations=2, samples=2, update_rates=(0.5,), seed=5)
    assert routes(decode(policy, problems, other)) != first


@pytest.mark.parametrize("samples", [0, 2])
def test_a_problem_alone_is_solved_as_among_others(policy, samples):
    """Beside problems of other variants and sizes, in any order, at every update rate."""
    problems = [invent(v, i, 5 + i % 3) for i, v in enumerate(VARIANTS[::4])]
    options = DecodeOptions(augmentations=2, samples=samples, update_rates=(0.4,))
    together = routes(decode(policy, problems, options))
    assert routes(decode(policy, problems[::-1], options))[::-1] == together
    assert [routes(decode(policy, [p], options))[0] for p in problems[::3]] == together[::3]


@pytest.mark.parametrize("samples", [0, 2])
def test_parts_that_fit_in_memory_give_what_the_whole_gives(policy, samples):
    problems = generate([variant("VRPB"), variant("OVRPL")], 5, 2, seed=4)
    batch = from_problems(problems)
    whole = DecodeOptions(augmentations=2, samples=samples, update_rates=(0.0, 0.6))
    one = estimate.per_copy(TINY, batch.num_nodes, 5, 10)
    parts = [len(list(rollouts(policy, batch, whole)))]
    found, least = routes(decode(policy, problems, whole)), best_costs(policy, batch, whole)
    for copies in (1, 3):
        cut = DecodeOptions(**{**vars(whole), "memory": copies * one})
        results = list(rollouts(policy, batch, cut))
        assert all(len(instance) <= copies for instance, _ in results)
        parts.append(len(results))
        assert routes(decode(policy, problems, cut)) == found
        torch.testing.assert_close(best_costs(policy, batch, cut), least)
    rows = 4 * whole.copies
    assert parts == [2, 2 * rows, 2 * math.ceil(rows / 3)]


def test_costs_without_routes_are_those_of_the_routes(policy):
    problems = [invent(v, i, 7) for i, v in enumerate(VARIANTS) if not v.multi_depot]
    batch = from_problems(problems)
    unit = batch.distance.flatten(1).sum(1).numpy() / [p.distances.sum() for p in problems]
    fast = best_costs(policy, batch, DecodeOptions(augmentations=2)).numpy() / unit
    assert fast == pytest.approx(costs(policy, problems, augmentations=2), rel=1e-9)


# -- more is never worse


@pytest.fixture(scope="module")
def varied():
    return [invent(v, 40 + i, 9) for i, v in enumerate(VARIANTS[::5])]


def test_eight_maps_are_never_worse_than_one(policy, varied):
    one, eight = (costs(policy, varied, augmentations=a) for a in (1, 8))
    assert all(b <= a * (1 + 1e-9) for a, b in zip(one, eight, strict=True))
    assert sum(eight) < sum(one)


def test_more_starts_samples_and_rates_are_never_worse(policy, varied):
    """An ensemble over P is the best of its members. More starts share their contexts, so only without
    re-embedding are the others as they were."""
    each = [costs(policy, varied, augmentations=1, update_rates=(p,)) for p in (0.0, 0.5, 1.0)]
    ensemble = costs(policy, varied, augmentations=1, update_rates=(0.0, 0.5, 1.0))
    assert ensemble == pytest.approx(np.min(each, axis=0))
    assert len({tuple(c) for c in each}) == 3
    few = costs(policy, varied, augmentations=1, update_rates=(0.0,), starts=3)
    assert all(a <= b * (1 + 1e-9) for a, b in zip(each[0], few, strict=True))
    sampled = [costs(policy, varied, augmentations=1, samples=k, update_rates=(0.5,)) for k in (1, 4)]
    assert all(b <= a * (1 + 1e-9) for a, b in zip(*sampled, strict=True))
    assert sum(sampled[1]) < sum(sampled[0])


def test_cold_samples_are_greedy(policy, varied):
    greedy = decode(policy, varied, PLAIN)
    cold = decode(policy, varied, DecodeOptions(augmentations=1, samples=1, temperature=1e-6))
    assert routes(cold) == routes(greedy)
    hot = decode(policy, varied, DecodeOptions(augmentations=1, samples=1, temperature=5.0))
    assert routes(hot) != routes(greedy)


def test_samples_follow_the_softmax():
    """60,000 visits drawn from known logits, with a node that may not be visited."""
    logits = torch.tensor([1.0, 0.0, -torch.inf, 2.0, -1.0])
    for temperature in (1.0, 0.5, 3.0):
        noise = Noise.of(7, torch.arange(300), 20, 5, temperature)
        drawn = torch.cat([(logits + noise(step)).argmax(-1).flatten() for step in range(10)])
        share = torch.bincount(drawn, minlength=5) / len(drawn)
        torch.testing.assert_close(share, (logits / temperature).softmax(-1), rtol=0, atol=0.008)


def test_noise_depends_on_what_it_should_and_nothing_else():
    """A copy's noise is the same among other copies, with more trajectories, and with more nodes."""
    large = Noise.of(3, torch.tensor([5, 0, 9]), 6, 8, 1.0)
    small = Noise.of(3, torch.tensor([9]), 4, 7, 1.0)
    assert torch.equal(large(2)[2:, :4, :7], small(2))
    numbers = torch.cat([large(step).flatten() for step in range(3)])
    assert len(numbers.unique()) == len(numbers)
    assert not torch.equal(Noise.of(3 + 2**32, torch.tensor([9]), 4, 7, 1.0)(2), small(2))


# -- which trajectories


def test_maps_keep_every_distance_and_are_eight():
    batch = from_problems([invent(variant("CVRP"), 2, 5, kind=kind) for kind in ("plane", "matrix")])
    pictures = [on_maps(batch, torch.tensor([i, i])) for i in range(8)]
    assert torch.equal(pictures[0].coords, batch.coords)
    apart = [torch.cdist(p.coords, p.coords) for p in pictures]
    for picture, d in zip(pictures, apart, strict=True):
        torch.testing.assert_close(d, apart[0], rtol=1e-9, atol=1e-7)
        assert picture.distance is batch.distance
        assert 0 <= picture.coords.min() <= picture.coords.max() <= 1
    for a, b in itertools.combinations(pictures, 2):
        assert ((a.coords - b.coords).abs().flatten(1).amax(1) > 1e-3).all()
    mixed = on_maps(batch, torch.tensor([3, 6]))
    assert torch.equal(mixed.coords[0], pictures[3].coords[0])
    assert torch.equal(mixed.coords[1], pictures[6].coords[1])


def test_starts_are_spread_evenly(policy):
    batch = from_problems(generate(variant("CVRP"), 10, 2, seed=0))
    for count, first in ((None, range(1, 11)), (10, range(1, 11)), (99, range(1, 11)), (4, (1, 3, 6, 8))):
        result = rollout(policy, batch, pattern(1.0, 0, longest(batch)), count)
        assert result.actions[:, :, 0].tolist() == [list(first)] * 2
        assert result.finished.all()
    assert [DecodeOptions().trajectories(n) for n in (7, 100, 1000)] == [7, 100, 100]
    assert [DecodeOptions(starts=5).trajectories(n) for n in (3, 1000)] == [3, 5]


def test_patterns_of_refinement():
    """Never at rate 0, always at rate 1; evenly spread, whatever the number of steps. Seeds that follow each
    other shift them apart: at rate 1/4, which has four patterns, any four have one each."""
    assert pattern(0.0, 1, 50) == [False] * 50
    assert pattern(1.0, 1, 50) == [True] * 50
    assert pattern(0.25, 0, 9) == [False, False, False, True, False, False, False, True, False]
    for seed in range(5):
        steps = [j for j, refines in enumerate(pattern(0.3, seed, 1000)) if refines]
        assert 299 <= len(steps) <= 301
        assert {b - a for a, b in itertools.pairwise(steps)} == {3, 4}
        assert pattern(0.3, seed, 60) == pattern(0.3, seed, 1000)[:60]
    for first in (0, 1, 6, 999):
        for rate, count in ((0.5, 2), (0.25, 4), (0.3, 4), (0.28, 4)):
            seeds = range(first, first + count)
            assert len({tuple(pattern(rate, seed, 100)) for seed in seeds}) == count, (rate, seeds)


@pytest.mark.parametrize(("maps", "rates"), [(4, (0.0, 1.0)), (5, (0.0, 0.5, 1.0)), (1, (0.5, 1.0))])
def test_maps_take_rates_in_turn(policy, varied, maps, rates):
    """Each map has one of them, and the best of all counts; a map alone has the first. In parts as in one."""
    batch = from_problems([problem for problem in varied if not problem.variant.multi_depot])
    options = DecodeOptions(augmentations=maps, update_rates=rates, rates_in_turn=True)
    expected = [
        best_costs(
            policy,
            on_maps(batch, torch.full((batch.size,), which)),
            DecodeOptions(augmentations=1, update_rates=(rates[which % len(rates)],)),
        )
        for which in range(maps)
    ]
    for given in (options, replace(options, memory=2**22)):
        found = best_costs(policy, batch, given)
        torch.testing.assert_close(found, torch.stack(expected).amin(0))


def test_rates_make_as_many_re_embeddings_as_suit_the_policy():
    """No more of them than there are maps that take them in turn; all steps re-embed once at most."""
    assert [DecodeOptions().rates(n, (50.0,)) for n in (20, 50, 200)] == [(1.0,), (1.0,), (0.25,)]
    assert DecodeOptions(update_rates=(0.1, 0.9)).rates(200, (50.0,)) == (0.1, 0.9)
    several = (50.0, 40.0, 30.0)
    assert [DecodeOptions().rates(n, several) for n in (20, 40, 200)] == [(1,), (1, 0.75), (0.25, 0.2, 0.15)]
    assert DecodeOptions(augmentations=1).rates(200, several) == (0.25,)
    assert [DecodeOptions().rates(n, (25.0, 25.0)) for n in (20, 100)] == [(1.0,), (0.25, 0.25)]


def test_the_same_rate_again_has_other_steps(policy, varied, monkeypatch):
    """Equal rates are shifted as by the seeds that follow, another rate by its own."""
    asked = []
    monkeypatch.setattr(search, "pattern", lambda *given: asked.append(given[:2]) or pattern(*given))
    batch = from_problems([problem for problem in varied if not problem.variant.multi_depot])
    rates = (0.25, 0.5, 0.25, 0.25)
    best_costs(policy, batch, DecodeOptions(update_rates=rates, rates_in_turn=True, seed=3))
    assert asked == [(0.25, 3), (0.5, 3), (0.25, 4), (0.25, 5)]
    assert len({tuple(pattern(*given, 20)) for given in asked}) == len(asked)


def test_maps_take_in_turn_what_suits_the_policy(policy, varied, monkeypatch):
    """As if these rates were asked for in turn, which takes as much work."""
    batch = from_problems([problem for problem in varied if not problem.variant.multi_depot])
    n = batch.num_customers
    monkeypatch.setattr(policy, "reembeddings", (n, n / 2))
    asked = DecodeOptions(augmentations=4, update_rates=(1.0, 0.5), rates_in_turn=True)
    usual = DecodeOptions(augmentations=4)
    assert best_costs(policy, batch, usual).equal(best_costs(policy, batch, asked))
    assert work(usual, n, policy.reembeddings) == work(asked, n, policy.reembeddings)


def test_published_rules_give_costs(policy):
    """The same as the exact rules where the two agree; depots as actions where there are several."""
    one = generate([v for v in VARIANTS if v.seen], 6, 1, seed=5)
    exact, published = (best_costs(policy, from_problems(one, rules), PLAIN) for rules in Rules)
    torch.testing.assert_close(exact, published)
    several = generate([v for v in VARIANTS if not v.seen], 6, 1, seed=5)
    batch = from_problems(several, Rules.PUBLISHED)
    for instance, result in rollouts(policy, batch, PLAIN):
        assert result.finished.all()
        assert len(instance) == 32
    assert best_costs(policy, batch, PLAIN).isfinite().all()


# -- depots


def test_exchanged_depots_are_never_worse_than_the_nearest_to_the_first_customer(policy):
    problems = generate([v for v in VARIANTS if v.multi_depot], 8, 1, seed=6)
    batch = from_problems(problems)
    unit = batch.distance.flatten(1).sum(1).numpy() / [p.distances.sum() for p in problems]
    kept = best_costs(policy, batch, PLAIN).numpy() / unit
    exchanged = np.array(costs(policy, problems, augmentations=1))
    assert (exchanged <= kept * (1 + 1e-9)).all()
    assert (exchanged < kept * 0.999).sum() > 2


# -- vehicles


def clusters(fleet, **fields):
    """Six customers, three east and three west of two depots that stand at 0 and 1."""
    xs = [0, 1, -5, -6, -7, 6, 7, 8]
    return Problem(
        capacity=3,
        delivery=[1] * 6,
        num_depots=2,
        coords=[(x, i / 9) for i, x in enumerate(xs)],
        fleet=fleet,
        name="two clusters",
        **fields,
    )


def test_vehicles_that_suffice_do(policy):
    problem = clusters(fleet=1)
    for samples in (0, 4):
        (solution,) = decode(policy, [problem], DecodeOptions(samples=samples))
        assert check(problem, solution).feasible
        assert sorted(route.depot for route in solution.routes) == [0, 1]


def test_too_few_vehicles_are_named(policy):
    """Four customers, each too heavy to share a vehicle, and three vehicles, which could carry them all."""
    heavy = Problem(capacity=10, delivery=[6, 6, 6, 6], coords=np.eye(5, 2), fleet=3, name="heavy")
    (fault,) = faults(decode, policy, [heavy], PLAIN)
    assert (fault.code, fault.where) == ("no-plan-found", "heavy")
    assert "none of 4 trajectories" in fault.message
    assert "depot sends out 4 vehicles and has 3." in fault.message
    fine = heavy.replace(fleet=4)
    solution, failure = attempt(policy, [fine, heavy], PLAIN)
    assert check(fine, solution).feasible
    assert isinstance(failure, Fault)


# -- problems without a solution


def trap(**fields):
    """Customer A closes at 5; the direct way takes 9, the way through customer B 2 + 2."""
    return Problem(
        **{
            "capacity": 2,
            "delivery": [1, 1],
            "distance_matrix": [[0, 9, 2], [9, 0, 2], [2, 2, 0]],
            "time_windows": [(0, 100), (0, 5), (0, 100)],
            "names": ["depot", "A", "B"],
            "name": "trap",
            **fields,
        }
    )


def test_a_way_out_of_a_trap_is_found(policy):
    """B then A is a solution; trajectories that serve B alone are stuck and are not chosen."""
    problem = trap()
    assert costs(policy, [problem], samples=16) == [2 + 2 + 9]


def test_stuck_problems_say_what_is_missing_and_all_are_told_at_once(policy):
    """The vehicle is too small for the only way: nothing leads out, and the rollout ends by itself."""
    stuck = [trap(capacity=1), trap(capacity=1, name="trap too")]
    fine = trap(time_windows=None, name="fine")
    found = faults(decode, policy, [stuck[0], fine, stuck[1]])
    assert [(f.code, f.where) for f in found] == [("no-plan-found", "trap"), ("no-plan-found", "trap too")]
    assert found[0].message == "none of 16 trajectories keeps all rules. The nearest: A is not visited."
    batch = from_problems(stuck)
    result = rollout(policy, batch, [True] * longest(batch))
    assert not result.finished.any()
    assert result.costs.isinf().all()
    assert result.actions.shape[-1] <= 2 * batch.num_customers + 1


def test_a_long_list_of_what_is_missing_is_cut_short(policy):
    """A chain of ten customers, of which only the first can be reached directly, and no room for two."""
    n = 10
    ways = np.full((n + 1, n + 1), 99.0)
    for i in range(n):
        ways[i, i + 1] = ways[i + 1, i] = 1
    np.fill_diagonal(ways, 0)
    windows = [(0, 1000), *[(0, 20)] * n]
    chain = Problem(capacity=1, delivery=[1] * n, distance_matrix=ways, time_windows=windows, name="chain")
    (fault,) = faults(decode, policy, [chain], PLAIN)
    assert fault.message.endswith("6 is not visited. And 4 more.")


# -- bad input


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("starts", 0),
        ("starts", 2.5),
        ("starts", True),
        ("augmentations", 0),
        ("augmentations", 9),
        ("samples", -1),
        ("temperature", 0),
        ("temperature", -1.0),
        ("temperature", math.nan),
        ("temperature", math.inf),
        ("temperature", "warm"),
        ("update_rates", ()),
        ("update_rates", 0.5),
        ("update_rates", (1.01,)),
        ("update_rates", (-0.1,)),
        ("update_rates", (0.5, math.nan)),
        ("sector", 0),
        ("rounds", -1),
        ("rounds", 1.5),
        ("seed", -1),
        ("memory", 0),
    ],
)
def test_options_out_of_range(field, value):
    (fault,) = faults(DecodeOptions, **{field: value})
    assert fault.code == "bad-option"
    assert fault.where.startswith(field)


def test_all_bad_options_are_told_at_once():
    found = faults(DecodeOptions, starts=0, temperature=math.nan, update_rates=(2, 0.5, 3))
    assert [f.where for f in found] == ["starts", "update_rates[0]", "update_rates[2]", "temperature"]


def test_no_problems(policy):
    """Nothing to decode is a wrong option, not an empty answer."""
    (fault,) = faults(decode, policy, [])
    assert (fault.code, fault.where) == ("bad-option", "problems")


def test_devices_that_are_not_there(policy):
    for name in ("abacus", "cuda:99"):
        (fault,) = faults(decode, policy, [trap()], device=name)
        assert (fault.code, fault.where) == ("bad-option", "device")


def test_problems_beyond_the_memory_are_refused_before_any_work(policy):
    small, large = generate(variant("CVRP"), 5, 2, seed=0), generate(variant("CVRP"), 60, 1, seed=0)
    larger = generate(variant("CVRP"), 61, 1, seed=0)
    memory = estimate.per_copy(TINY, 6, 5, 10)
    judged(small, decode(policy, small, DecodeOptions(memory=memory)))
    found = faults(decode, policy, [*large, *small, *larger], DecodeOptions(memory=memory))
    assert [(f.code, f.where) for f in found] == [("too-large", p.name) for p in (*large, *larger)]
    assert "61 locations with 60 starts" in found[0].message
    (fault,) = faults(best_costs, policy, from_problems(large), DecodeOptions(memory=memory))
    assert (fault.code, fault.where) == ("too-large", "batch")


def test_a_thousand_customers_fit_in_the_default_memory():
    options = DecodeOptions()
    needed = estimate.per_copy(PolicyConfig(), 1001, options.trajectories(1000), 2000)
    assert needed < estimate.budget(torch.device("cpu")) / 4


# -- captured steps


@pytest.mark.parametrize(("rules", "rate"), [(Rules.EXACT, 0.4), (Rules.EXACT, 1.0), (Rules.PUBLISHED, 0.4)])
def test_replayed_steps_do_what_single_ones_do(policy, rules, rate):
    """All variants with padding, fleets and several depots; here a replay calls what it was given again."""
    problems = [invent(v, i, 3 + i % 5, kind=KINDS[i % len(KINDS)]) for i, v in enumerate(VARIANTS)]
    batch = from_problems(problems, rules)
    refine, calls = pattern(rate, 0, longest(batch)), []

    def capture(work):
        calls.append(work)
        return work

    with torch.inference_mode():
        state = _starts(batch, None)
        stepped = _stepped(begin_chain(policy, batch), batch, state, refine, None, NEVER)
        replayed = _replayed(begin_chain(policy, batch), batch, state, refine, NEVER, capture)
    assert len(calls) == len(set(refine))
    torch.testing.assert_close(replayed.costs, stepped.costs)
    steps = min(stepped.actions.shape[-1], replayed.actions.shape[-1])
    assert replayed.actions[..., :steps].equal(stepped.actions[..., :steps])
    assert replayed.finished.equal(stepped.finished)


def test_replayed_steps_end_at_the_deadline(policy):
    """After the first step where it has passed before; nobody is served then."""
    batch = from_problems(generate(variant("CVRP"), 6, 2, seed=0))
    with torch.inference_mode():
        chain = begin_chain(policy, batch)
        found = _replayed(chain, batch, _starts(batch, None), [True] * 9, Deadline.after(0.0), lambda f: f)
    assert found.actions.shape[-1] == 2
    assert not found.finished.any()
    assert found.costs.isinf().all()


def test_without_a_capture_the_work_itself_is_done_and_said_to_be_slower(monkeypatch, caplog):
    """A device that refuses is not asked again."""

    def refuse(*_):
        raise RuntimeError("no graphs here")

    monkeypatch.setattr(capture, "_refused", [])
    monkeypatch.setattr(capture, "_captured", refuse)
    monkeypatch.setattr(capture, "_pool", lambda *_: (Mock(), None, None))
    monkeypatch.setattr(torch.cuda, "current_stream", Mock())
    assert capture.works()
    assert capture.capture(refuse) is refuse
    assert not capture.works()
    assert "no graphs here" in caplog.text
