"""The decision process: the mask allows what the judge accepts, and a rollout costs what the judge says.

How boundaries are handled, in float64: the mask allows half of the slack that the judge gives (a share of
1e-10 of times and lengths, 1e-6 of loads). So whatever it allows the judge accepts, whatever the judge
refuses it refuses, and only between half the slack and the whole is it the stricter of the two.
"""

import dataclasses
import itertools
from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import KINDS, invent

from chainroute import VARIANTS, Backhaul, ChainRouteError, Problem, Solution, check
from chainroute.neural.env import Rules, State, begin, from_problems, mask, reset, step
from chainroute.problem.measure import LOAD_SLACK, SLACK

variants = st.sampled_from(VARIANTS)
seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=settings.default.max_examples // 6)  # each with all 48 variants


# -- trajectories, and what they mean for the judge


def gallery(seed, **choices):
    """A problem of each of the 48 variants."""
    return [invent(v, seed + i, **choices) for i, v in enumerate(VARIANTS)]


def at_depots(batch, trajectories):
    return reset(batch, torch.zeros(batch.size, trajectories, dtype=torch.long))


def wander(batch, state, seed, steps):
    """Random legal actions until every trajectory has finished: the states, the masks, the actions."""
    rng = torch.Generator().manual_seed(seed)
    states, masks, actions = [state], [], []
    while not states[-1].finished(batch).all() and len(actions) < steps:
        legal = mask(batch, states[-1])
        action = legal.flatten(0, 1).double().multinomial(1, generator=rng).view(state.current.shape)
        states.append(step(batch, states[-1], action))
        masks.append(legal)
        actions.append(action)
    return states, masks, actions


def replay(batch, state, actions):
    """As `wander`, for actions that are given."""
    states, masks = [state], []
    for action in actions:
        masks.append(mask(batch, states[-1]))
        states.append(step(batch, states[-1], action))
    return states, masks


def units(problem, batch, b=0):
    """What one of the problem's lengths and times is in the batch."""

    def ratio(ours, theirs):
        longest = np.unravel_index(np.where(np.isfinite(theirs), theirs, 0).argmax(), theirs.shape)
        return ours[longest].item() / theirs[longest] if theirs[longest] else 1.0

    at = torch.tensor([*range(problem.num_depots), *range(batch.num_depots, batch.num_nodes)])
    at = at[: problem.num_locations]
    own = [matrix[b][at][:, at] for matrix in (batch.distance, batch.duration)]
    return ratio(own[0], problem.distances), ratio(own[1], problem.durations)


def plan(problem, batch, states, b=0, s=0):
    """The routes of one trajectory as (depot, visits); whether the last one is still under way."""
    routes, under_way = [], False
    shift = problem.num_depots - batch.num_depots
    for state in states:
        node, depot = int(state.current[b, s]), int(state.depot[b, s])
        if node < batch.num_depots:
            under_way = False
        elif not under_way:
            routes.append((depot, [node + shift]))
            under_way = True
        else:
            routes[-1][1].append(node + shift)
    return routes, under_way


def accepted(problem, routes):
    """Whether the judge has nothing against the routes but that customers are missing."""
    verdict = check(problem, Solution.of(problem, routes))
    return all(v.code == "customer-missing" for v in verdict.violations)


def judged_mask(problem, routes, under_way):
    """What may be visited next according to the judge alone, (n,) bool, and the depot of each new route."""
    done, last = (routes[:-1], routes[-1]) if under_way else (routes, None)
    legal = np.zeros(problem.num_locations, dtype=bool)
    depots = {}
    for c in problem.customers:
        if last:
            legal[c] = accepted(problem, [*done, (last[0], [*last[1], c])])
        else:
            good = [d for d in problem.depots if accepted(problem, [*done, (d, [c])])]
            legal[c] = bool(good)
            depots[c] = min(good, key=lambda d: problem.distances[d, c], default=None)
    return legal, depots


def follow_and_compare(problem, seed, trajectories=2):
    """Asks mask and judge about every customer at every step of random trajectories; have all finished?"""
    batch = from_problems([problem])
    states, masks, _ = wander(batch, at_depots(batch, trajectories), seed, 2 * problem.num_customers + 1)
    for s in range(trajectories):
        for t, legal in enumerate(masks):
            routes, under_way = plan(problem, batch, states[: t + 1], s=s)
            expected, depots = judged_mask(problem, routes, under_way)
            if under_way:
                expected[routes[-1][0]] = True  # home is always open
            elif not expected.any():
                expected[int(states[t].depot[0, s])] = True  # nothing to do but stay
            assert legal[0, s].numpy().tolist() == expected.tolist(), (t, routes)
            here = int(states[t + 1].current[0, s])
            if not under_way and here in problem.customers:
                assert int(states[t + 1].depot[0, s]) == depots[here]
    return bool(states[-1].finished(batch).all())


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_mask_and_judge_agree(variant):
    """They agree on every variant, in the plane, on the globe and on matrices of all kinds."""
    index = VARIANTS.index(variant)
    for kind in (KINDS[index % len(KINDS)], KINDS[index // 6]):
        problem = invent(variant, index, customers=7, kind=kind)
        assert follow_and_compare(problem, seed=index)


@given(variants, seeds, st.sampled_from(KINDS), st.integers(1, 8))
def test_mask_and_judge_agree_on_any_problem(variant, seed, kind, customers):
    problem = invent(variant, seed, customers, kind=kind)
    assert follow_and_compare(problem, seed, trajectories=1)


@given(seeds)
def test_mask_and_judge_agree_where_customers_receive_and_hand_over(seed):
    """Deliveries and pickups at once, in tight vehicles."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 7))
    problem = Problem(
        capacity=12.0,
        delivery=rng.integers(0, 9, n),
        pickup=rng.integers(0, 9, n),
        backhaul="mixed",
        coords=rng.uniform(0, 9, (n + 1, 2)),
    )
    assert follow_and_compare(problem, seed)


def labyrinth(seed, missing=0.0):
    """A problem on a wild matrix, where some customers may be reached only by way of others; a share of the
    roads is missing."""
    rng = np.random.default_rng(seed)
    while True:
        m, n = (int(x) for x in rng.integers((1, 3), (4, 7)))
        matrix = rng.uniform(1, 10, (m + n, m + n)) ** 2
        matrix[rng.random(matrix.shape) < missing] = np.inf
        np.fill_diagonal(matrix, 0)
        opening = rng.uniform(0, 30, m + n)
        windows = np.c_[opening, opening + rng.uniform(20, 120, m + n)]
        try:
            return Problem(
                capacity=n,
                delivery=np.ones(n),
                num_depots=m,
                distance_matrix=matrix,
                service=rng.uniform(0, 5, n),
                time_windows=windows if rng.random() < 0.7 else None,
                distance_limit=rng.uniform(50, 150) if rng.random() > missing else None,
                limit_counts_service=bool(rng.random() < 0.5),
                open=bool(rng.random() < 0.3),
            )
        except ChainRouteError:  # not sound; the next draw may be
            continue


def test_mask_and_judge_agree_where_detours_are_shorter():
    """Some trajectories get stuck here, and still every answer is the judge's."""
    finished = [follow_and_compare(labyrinth(seed), seed) for seed in range(40)]
    assert any(finished)
    assert not all(finished)


def test_mask_and_judge_agree_where_roads_are_missing():
    """To, from and between depots and customers, whether or not there are windows and a limit."""
    problems = [labyrinth(seed, missing=0.3) for seed in range(40)]
    assert not any(p.has_all_roads for p in problems)
    assert any(p.distance_limit is None and p.time_windows is None for p in problems)
    finished = [follow_and_compare(p, seed) for seed, p in enumerate(problems)]
    assert any(finished)
    assert not all(finished)


@pytest.mark.parametrize("kind", KINDS)
def test_the_state_says_what_the_route_so_far_has_done(kind):
    """Time, length and loads against the facts of the route, as if it ended here."""
    problems = gallery(7, kind=kind)
    batch = from_problems(problems)
    states, _, _ = wander(batch, begin(batch, 2), 7, 100)
    for b, problem in enumerate(problems):
        opened = problem.replace(open=True)
        length, time = units(problem, batch, b)
        epoch = problem.windows[: problem.num_depots, 0].min()
        full = from_problems([problem]).delivery.sum().item() / problem.delivery.sum()  # nearly 1 / capacity
        assert full * problem.capacity == pytest.approx(1, rel=LOAD_SLACK / 2)
        for t, state in enumerate(states):
            routes, under_way = plan(problem, batch, states[: t + 1], b)
            if under_way:
                depot, visits = routes[-1]
                facts = Solution.of(opened, [(depot, visits)]).facts[0]
                counted = sum(problem.services[visits]) if problem.limit_counts_service else 0.0
                expected = {
                    "time": (facts.end - epoch) * time,
                    "length": (facts.length + counted) * length,
                    "delivered": facts.initial_load * full,
                    "picked_up": facts.stops[-1].load * full,
                    "peak": facts.max_load * full,
                }
            else:
                opens = problem.windows[int(state.depot[b, 0]), 0]
                expected = {"time": (opens - epoch) * time}
                expected |= dict.fromkeys(("length", "delivered", "picked_up", "peak"), 0.0)
            actual = {name: getattr(state, name)[b, 0].item() for name in expected}
            assert actual == pytest.approx(expected, rel=1e-11, abs=1e-11)


# -- at the boundary


def follow(problem, visits):
    """Whether the mask allows each visit in turn of a trajectory that starts at the depot."""
    batch = from_problems([problem])
    state, legal = at_depots(batch, 1), []
    for v in visits:
        legal.append(bool(mask(batch, state)[0, 0, v]))
        state = step(batch, state, torch.tensor([[v]]))
    return legal


def accepts(problem, visits):
    """Whether mask and judge accept a route, (mask, judge)."""
    return all(follow(problem, visits)), accepted(problem, [(0, visits)])


@given(st.lists(st.integers(1, 9), min_size=2, max_size=30), st.booleans())
def test_a_load_exactly_full_fits_and_one_unit_more_does_not(demands, pickups):
    """Demands k / C in single precision, as in the benchmark, whose sum is C / C but for rounding."""
    total = sum(demands)
    for more, fits in ((0, True), (1, False)):
        units = np.array([*demands[:-1], demands[-1] + more], dtype=np.float32)
        demand = (units / np.float32(total)).astype(np.float64)
        if demand.max() > 1:
            continue
        field = (
            {"pickup": demand, "delivery": 0 * demand, "backhaul": "mixed"}
            if pickups
            else {"delivery": demand}
        )
        problem = Problem(capacity=1, coords=np.zeros((len(demand) + 1, 2)), **field)
        visits = list(problem.customers)
        assert accepts(problem, visits) == (fits, fits)
        assert follow(problem, visits)[:-1] == [True] * (len(visits) - 1)


def tight(seed, share, bound, unit=1.0, epoch=0.0):
    """A route through all customers, and the problem in which it exceeds one bound by a share of it."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 7))
    coords = rng.uniform(0, 1, (n + 1, 2)) * unit
    service = rng.uniform(0, 0.3, n) * unit
    open = bool(rng.random() < 0.5) and bound != "depot"
    windows = np.tile([epoch, np.inf], (n + 1, 1))
    windows[1:, 0] += rng.uniform(0, 0.3, n) * unit  # before the direct way would end, so some wait
    loose = Problem(
        capacity=n, delivery=np.ones(n), coords=coords, service=service, time_windows=windows, open=open
    )
    visits = [*loose.customers]
    facts = Solution.of(loose, [(0, visits)]).facts[0]
    if bound == "limit":
        return loose.replace(distance_limit=facts.length / (1 + share)), visits
    windows = loose.windows.copy()
    if bound == "depot":
        windows[0, 1] = facts.end / (1 + share)
    else:
        windows[-1, 1] = facts.stops[-1].start / (1 + share)
    return loose.replace(time_windows=windows), visits


BOUNDS = ("window", "depot", "limit")


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize(
    ("share", "verdict"),
    [
        (-1e-9, (True, True)),
        (0.0, (True, True)),
        (0.4 * SLACK, (True, True)),
        (0.75 * SLACK, (False, True)),  # here alone the mask is stricter
        (1.5 * SLACK, (False, False)),
        (1e-9, (False, False)),
    ],
)
def test_arrival_exactly_at_closing_and_length_exactly_the_limit(bound, share, verdict):
    """Exactly at the bound, and a stated share of it before and behind, in several units."""
    for seed, unit in itertools.product(range(6), (1.0, 1e-3, 1e5)):
        assert accepts(*tight(seed, share, bound, unit)) == verdict


@pytest.mark.parametrize("bound", ["window", "depot"])
def test_boundaries_hold_far_from_time_zero(bound):
    """Times counted from an epoch long ago are coarse; the slack is a share of them, not of the day."""
    for seed, share in itertools.product(range(6), (0.0, 0.4 * SLACK)):
        assert accepts(*tight(seed, share, bound, epoch=1.7e9)) == (True, True)


@pytest.mark.parametrize("bound", [*BOUNDS, "load"])
@pytest.mark.parametrize("size", [10, 10**4, 10**7, 10**10, 10**12])
def test_whole_numbers_are_exact(bound, size):
    """At the bound mask and judge accept, one unit beyond it both refuse; near zero, before it, and in
    milliseconds since 1970."""
    for seed, epoch, beyond in itertools.product(range(2), (0, -3 * size, 1_700_000_000_000), (-1, 0, 1)):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(2, 8))
        windows = np.tile([epoch, np.inf], (n + 1, 1))
        loose = Problem(
            capacity=9e15,
            delivery=rng.integers(1, size + 1, n),
            distance_matrix=rng.integers(1, size + 1, (n + 1, n + 1)) * (1 - np.eye(n + 1)),
            service=rng.integers(0, size, n),
            time_windows=windows,
            limit_counts_service=True,
        )
        visits = [*loose.customers]
        facts = Solution.of(loose, [(0, visits)]).facts[0]
        if bound == "limit":
            problem = loose.replace(distance_limit=facts.length + loose.service.sum() - beyond)
        elif bound == "load":
            problem = loose.replace(capacity=facts.max_load - beyond)
        else:
            at = 0 if bound == "depot" else n
            windows[at, 1] = (facts.end if bound == "depot" else facts.stops[-1].start) - beyond
            problem = loose.replace(time_windows=windows)
        assert (problem.load_slack, problem.time_slack, problem.length_slack) == (0, 0, 0)
        assert accepts(problem, visits) == (beyond <= 0, beyond <= 0), (seed, epoch, beyond)


@given(seeds, st.sampled_from(BOUNDS), st.floats(-3, 3))
def test_what_the_mask_allows_the_judge_accepts_however_close(seed, bound, slacks):
    """Anywhere within three slacks of a bound."""
    by_mask, by_judge = accepts(*tight(seed, slacks * SLACK, bound))
    assert by_judge or not by_mask


@given(seeds, st.floats(-3, 3))
def test_what_the_mask_allows_the_judge_accepts_however_full(seed, slacks):
    """Likewise for loads."""
    demand = np.random.default_rng(seed).uniform(0, 1, 5)
    problem = Problem(
        capacity=demand.sum() / (1 + slacks * LOAD_SLACK), delivery=demand, coords=np.zeros((6, 2))
    )
    by_mask, by_judge = accepts(problem, [1, 2, 3, 4, 5])
    assert by_judge or not by_mask
    assert by_mask == (slacks < 0.5) or abs(slacks - 0.5) < 1e-6


@given(
    st.lists(st.integers(-9, 9), min_size=1, max_size=8), st.integers(9, 20), st.sampled_from(Backhaul), seeds
)
def test_the_largest_load_rule_is_the_whole_load_profile(demands, capacity, backhaul, seed):
    """Pickups are negative here. The load is summed up again on every arc of every route tried."""
    demand = np.abs(demands) if backhaul is Backhaul.NONE else np.array(demands)
    problem = Problem(
        capacity=capacity,
        delivery=np.maximum(demand, 0),
        pickup=np.maximum(-demand, 0),
        coords=np.zeros((len(demand) + 1, 2)),
        backhaul=backhaul,
    )

    def fits(route):
        goods = [demand[v - 1] for v in route]
        loads = [
            sum(g for g in goods[i:] if g > 0) - sum(g for g in goods[:i] if g < 0)
            for i in range(len(goods) + 1)
        ]
        ordered = not any(g < 0 < h for g, h in itertools.combinations(goods, 2))
        return max(loads) <= capacity and (ordered or backhaul is not Backhaul.LINEHAULS_FIRST)

    batch = from_problems([problem])
    states, masks, _ = wander(batch, at_depots(batch, 1), seed, 2 * len(demand) + 1)
    for t, legal in enumerate(masks):
        routes, under_way = plan(problem, batch, states[: t + 1])
        served = {v for _, route in routes for v in route}
        route = routes[-1][1] if under_way else []
        for c in problem.customers:
            assert bool(legal[0, 0, c]) == (c not in served and fits([*route, c]))


# -- whole rollouts


@given(st.lists(variants, min_size=1, max_size=4), seeds, st.sampled_from(KINDS))
def test_every_rollout_ends_and_costs_what_the_judge_says(some, seed, kind):
    """After at most 2 N steps, each customer having a route to itself, from any start, in mixed batches."""
    problems = [invent(v, seed + i, 3 + (seed + i) % 5, kind=kind) for i, v in enumerate(some)]
    batch = from_problems(problems)
    assert_rollouts_are_judged(problems, batch, begin(batch), seed)


@pytest.mark.parametrize("several", [False, True])
def test_every_variant_in_one_batch(several):
    problems = [
        invent(v, i, 5 + i % 3, kind=KINDS[i % len(KINDS)])
        for i, v in enumerate(VARIANTS)
        if v.multi_depot == several
    ]
    batch = from_problems(problems)
    assert_rollouts_are_judged(problems, batch, begin(batch), seed=1)


def assert_rollouts_are_judged(problems, batch, state, seed):
    states, _, actions = wander(batch, state, seed, 2 * batch.num_customers)
    assert states[-1].finished(batch).all()
    assert len(actions) <= 2 * max(p.num_customers for p in problems)
    for b, problem in enumerate(problems):
        unit, _ = units(problem, batch, b)
        for s in range(state.current.shape[1]):
            routes, under_way = plan(problem, batch, states, b, s)
            verdict = check(problem, Solution.of(problem, routes))
            assert verdict.feasible, verdict
            assert not under_way
            assert states[-1].travelled[b, s].item() / unit == pytest.approx(verdict.cost, rel=1e-9, abs=1e-9)


def test_a_finished_trajectory_stays_as_it_is():
    problem = invent(VARIANTS[-1], 3)
    batch = from_problems([problem])
    states, _, _ = wander(batch, begin(batch), 0, 100)
    last = states[-1]
    legal = mask(batch, last)
    assert (legal.sum(-1) == 1).all()
    assert_equal_states(step(batch, last, legal.int().argmax(-1)), last)


def test_multi_start_goes_to_every_customer_once():
    """One trajectory per customer; more begin again with the first, fewer stop early."""
    batch = from_problems([invent(v, 1, 4, depots=1) for v in VARIANTS[:24]])
    assert (begin(batch).current == torch.arange(1, 5)).all()
    assert (begin(batch, 6).current == torch.tensor([1, 2, 3, 4, 1, 2])).all()
    assert (begin(batch, 2).current == torch.tensor([1, 2])).all()


# -- invariances


FIELDS = [f.name for f in dataclasses.fields(State)]


def assert_equal_states(one, other, exact=True):
    for name in FIELDS:
        a, b = getattr(one, name), getattr(other, name)
        if a is None or b is None:
            assert a is b
        elif a.is_floating_point() and not exact:
            torch.testing.assert_close(a, b, rtol=1e-11, atol=1e-11)
        else:
            assert torch.equal(a, b), name


def assert_same_process(problems, others, seed):
    """Random trajectories of the problems are as legal in the others and lead to the same states."""
    batch, twin = from_problems(problems), from_problems(others)
    states, masks, actions = wander(batch, at_depots(batch, 4), seed, 100)
    twin_states, twin_masks = replay(twin, at_depots(twin, 4), actions)
    assert all(torch.equal(a, b) for a, b in zip(masks, twin_masks, strict=True))
    for a, b in zip(states, twin_states, strict=True):
        assert_equal_states(a, b, exact=False)


def changed(problem, **factors):
    """The problem with some fields, as far as it has them, multiplied."""
    return problem.replace(
        **{f: getattr(problem, f) * x for f, x in factors.items() if getattr(problem, f) is not None}
    )


@pytest.mark.parametrize("how", ["turn", "mirror", "both"])
@pytest.mark.parametrize("seed", [0, 100])
def test_rotation_and_reflection_change_nothing(how, seed):
    def turned(problem):
        x, y = problem.coords.T
        coords = {"turn": np.c_[-y, x], "mirror": np.c_[x, -y], "both": np.c_[y, x]}[how]
        return problem.replace(coords=coords)

    problems = gallery(seed)
    assert_same_process(problems, [turned(p) for p in problems], seed)


@few
@given(seeds, st.floats(1e-3, 1e3), st.floats(-1e3, 1e3))
def test_units_and_origin_of_the_map_do_not_matter(seed, unit, shift):
    """Coordinates, limits and times in another unit; coordinates from another origin."""
    problems = gallery(seed)
    others = [changed(p, coords=unit, service=unit, time_windows=unit, distance_limit=unit) for p in problems]
    assert_same_process(problems, [p.replace(coords=p.coords + shift * unit) for p in others], seed)


@few
@given(seeds, st.floats(-1e4, 1e4))
def test_the_origin_of_time_does_not_matter(seed, shift):
    problems = [p for p in gallery(seed) if p.time_windows is not None]
    others = [p.replace(time_windows=p.time_windows + shift) for p in problems]
    assert_same_process(problems, others, seed)


@few
@given(seeds, st.floats(1e-3, 1e3))
def test_the_unit_of_demand_does_not_matter(seed, unit):
    problems = gallery(seed)
    others = [changed(p, capacity=unit, delivery=unit, pickup=unit) for p in problems]
    assert_same_process(problems, others, seed)


@few
@given(seeds, st.permutations(range(6)))
def test_customers_may_be_numbered_in_any_order(seed, order):
    """The customer `order[i]` of a problem is the i-th of its twin."""

    def renumbered(p):
        at = np.r_[p.depots, p.num_depots + np.array(order)]
        return p.replace(
            coords=p.coords[at],
            time_windows=None if p.time_windows is None else p.time_windows[at],
            **{f: getattr(p, f)[order] for f in ("delivery", "pickup", "service")},
        )

    problems = gallery(seed, customers=6)
    batch, twin = from_problems(problems), from_problems([renumbered(p) for p in problems])
    at = torch.tensor([*range(batch.num_depots), *(batch.num_depots + i for i in order)])
    place = at.argsort()
    states, masks, actions = wander(batch, at_depots(batch, 4), seed, 100)
    twin_states, twin_masks = replay(twin, at_depots(twin, 4), [place[a] for a in actions])
    assert all(torch.equal(a[..., at], b) for a, b in zip(masks, twin_masks, strict=True))
    for a, b in zip(states, twin_states, strict=True):
        moved = dataclasses.replace(a, current=place[a.current], visited=a.visited[..., at])
        assert_equal_states(moved, b)


@few
@given(seeds, st.sampled_from([1, 3]))
def test_a_far_depot_is_never_used(seed, depots):
    """A further depot, a hundred times farther away than anything else, changes no route and no cost."""

    def with_far_depot(p):
        windows = None if p.time_windows is None else np.insert(p.time_windows, depots, (0, np.inf), axis=0)
        coords = np.insert(p.coords, depots, (1e4, 1e4), axis=0)
        return p.replace(num_depots=depots + 1, coords=coords, time_windows=windows, names=())

    problems = [
        invent(v, seed + i, depots=depots) for i, v in enumerate(VARIANTS) if v.multi_depot == (depots > 1)
    ]
    batch, twin = from_problems(problems), from_problems([with_far_depot(p) for p in problems])
    states, masks, actions = wander(batch, at_depots(batch, 4), seed, 100)
    twin_states, twin_masks = replay(twin, at_depots(twin, 4), [a + (a >= depots) for a in actions])
    near = [i for i in range(twin.num_nodes) if i != depots]
    assert all(torch.equal(a, b[..., near]) for a, b in zip(masks, twin_masks, strict=True))
    assert not any(b[..., depots].any() for b in twin_masks)
    unit = batch.distance.amax((1, 2)) / twin.distance[:, near][..., near].amax((1, 2))
    a, b = states[-1], twin_states[-1]
    torch.testing.assert_close(a.travelled, b.travelled * unit[:, None], rtol=1e-9, atol=0)
    assert torch.equal(a.depot, b.depot)


# -- batches


def places(problem, batch):
    """Where the locations of a problem stand among the nodes of a batch."""
    return [*problem.depots, *range(batch.num_depots, batch.num_depots + problem.num_customers)]


@pytest.mark.parametrize("rules", Rules)
def test_padding_changes_nothing(rules):
    """All 48 variants with 1 to 4 depots and 3 to 8 customers in one batch, and each one alone."""
    problems = [invent(v, i, 3 + i % 6, kind=KINDS[i % len(KINDS)]) for i, v in enumerate(VARIANTS)]
    batch = from_problems(problems, rules)
    states, masks, actions = wander(batch, begin(batch), 5, 60)
    assert states[-1].finished(batch).all()
    for b, problem in enumerate(problems):
        alone = from_problems([problem], rules)
        at, n = torch.tensor(places(problem, batch)), problem.num_customers
        where = torch.full((batch.num_nodes,), -1).scatter(0, at, torch.arange(len(at)))
        twin_actions = [where[a[b : b + 1, :n]] for a in actions]
        twin_states, twin_masks = replay(alone, begin(alone), twin_actions)
        for a, c in zip(masks, twin_masks, strict=True):
            assert torch.equal(a[b, :n][:, at], c[0])
            assert a[b].sum() == a[b][:, at].sum()  # nobody goes to padding
        for a, c in zip(states, twin_states, strict=True):
            mine = State(*(getattr(a, f)[b : b + 1, :n] for f in FIELDS if f != "spare"))
            moved = dataclasses.replace(
                mine, current=where[mine.current], depot=where[mine.depot], visited=mine.visited[..., at]
            )
            assert_equal_states(moved, c)


def test_trajectories_that_fill_a_padded_batch_are_spare_and_repeat_others():
    batch = from_problems([invent(VARIANTS[0], 1, 3), invent(VARIANTS[0], 2, 5)])
    state = begin(batch)
    assert state.spare.tolist() == [[False, False, False, True, True], [False] * 5]
    assert state.current.tolist() == [[1, 2, 3, 1, 2], [1, 2, 3, 4, 5]]


@pytest.mark.parametrize("several", [False, True])
def test_a_batch_of_one_is_as_a_batch_of_many(several):
    problems = [
        invent(v, i, depots=3 if several else 1) for i, v in enumerate(VARIANTS) if v.multi_depot == several
    ]
    batch = from_problems(problems)
    states, masks, actions = wander(batch, begin(batch), 2, 60)
    for b in range(len(problems)):
        one = slice(b, b + 1)
        for alone in (batch[one], from_problems(problems[one])):
            twin_states, twin_masks = replay(alone, begin(alone), [a[one] for a in actions])
            assert all(torch.equal(a[one], c) for a, c in zip(masks, twin_masks, strict=True))
            mine = [State(*(getattr(s, f)[one] for f in FIELDS if f != "spare")) for s in states]
            for a, c in zip(mine, twin_states, strict=True):
                assert_equal_states(a, c)


# -- the published rules


def mixed_example():
    """The benchmark's example: a pickup of a half, then deliveries of a half and a half."""
    return Problem(
        capacity=1, delivery=[0, 0.5, 0.5], pickup=[0.5, 0, 0], coords=np.zeros((4, 2)), backhaul="mixed"
    )


def test_published_rules_overload_mixed_backhauls():
    """The vehicle would carry 1.5 when it takes the pickup. The exact rules and the judge say no."""
    problem = mixed_example()
    for rules, allowed in ((Rules.PUBLISHED, True), (Rules.EXACT, False)):
        batch = from_problems([problem], rules)
        state = at_depots(batch, 1)
        for v in (1, 2):
            assert mask(batch, state)[0, 0, v]
            state = step(batch, state, torch.tensor([[v]]))
        assert bool(mask(batch, state)[0, 0, 3]) is allowed
    assert not accepted(problem, [(0, [1, 2, 3])])
    assert accepted(problem, [(0, [1, 2]), (0, [3])])


def test_published_rules_still_look_at_what_is_on_board():
    """A delivery of 0.5 does not fit beside pickups of 0.7, nor a second pickup of 0.5; one of 0.3 does."""
    problem = Problem(
        capacity=1,
        delivery=[0, 0.5, 0, 0, 0.3],
        pickup=[0.7, 0, 0.5, 0.3, 0],
        coords=np.zeros((6, 2)),
        backhaul="mixed",
    )
    batch = from_problems([problem], Rules.PUBLISHED)
    state = step(batch, at_depots(batch, 1), torch.tensor([[1]]))
    assert mask(batch, state)[0, 0].tolist() == [True, False, False, False, True, True]


def three_depots(**fields):
    """Depots at 0, 10 and 20 on a line, customers at 1, 9 and 21."""
    xs = [0, 10, 20, 1, 9, 21]
    return Problem(capacity=3, delivery=[1, 1, 1], num_depots=3, coords=[(x, 0) for x in xs], **fields)


@pytest.mark.parametrize("open", [False, True])
def test_published_rules_choose_depots(open):
    """Customer 1 is served from depot 2 and left for depot 0: the way home goes to depot 2, from where the
    vehicle came, and the next route leaves from depot 0."""
    batch = from_problems([three_depots(open=open)], Rules.PUBLISHED)
    state = begin(batch)
    assert state.current.tolist() == [[0, 1, 2]]
    assert mask(batch, state)[0, 2].tolist() == [False, False, False, True, True, True]
    unit = 21
    state = step(batch, state, torch.tensor([[3, 3, 3]]))
    assert mask(batch, state)[0, 2].tolist() == [True, True, True, False, True, True]
    assert (state.travelled[0] * unit).tolist() == pytest.approx([1, 9, 19])
    state = step(batch, state, torch.tensor([[1, 1, 0]]))
    home = [0, 0, 0] if open else [1, 9, 19]
    assert (state.travelled[0] * unit).tolist() == pytest.approx([1 + home[0], 9 + home[1], 19 + home[2]])
    assert state.current.tolist() == state.depot.tolist() == [[1, 1, 0]]
    state = step(batch, state, torch.tensor([[4, 4, 4]]))
    legs = [1, 1, 9]
    expected = [a + b + c for a, b, c in zip([1, 9, 19], home, legs, strict=True)]
    assert (state.travelled[0] * unit).tolist() == pytest.approx(expected)


def test_published_rules_leave_a_depot_that_can_serve_nobody_for_the_next():
    """With a limit of 4, each depot reaches only its own customer."""
    batch = from_problems([three_depots(distance_limit=4)], Rules.PUBLISHED)
    state = begin(batch, 1)
    for action, legal in [
        (3, [False, False, False, True, False, False]),
        (0, [True, True, True, False, False, False]),
        (1, [False, True, False, False, False, False]),  # nobody left for depot 0
        (4, [False, False, False, False, True, False]),
        (0, [True, True, True, False, False, False]),
        (1, [False, True, False, False, False, False]),
        (2, [False, False, True, False, False, False]),  # nor for depot 1
        (5, [False, False, False, False, False, True]),
        (1, [True, True, True, False, False, False]),
        (1, [False, True, False, False, False, False]),  # finished
    ]:
        assert mask(batch, state)[0, 0].tolist() == legal
        state = step(batch, state, torch.tensor([[action]]))
    assert state.finished(batch).all()
    assert state.travelled.item() * 21 == pytest.approx(6)


@given(st.lists(variants, min_size=1, max_size=4), seeds, st.sampled_from(KINDS))
def test_published_rollouts_end(some, seed, kind):
    """Within (M + 1) N steps: each customer a route of its own, after at most M - 1 other depots. Except
    for the overload of mixed backhauls the judge has nothing against them."""
    problems = [invent(v, seed + i, 3 + (seed + i) % 5, kind=kind) for i, v in enumerate(some)]
    batch = from_problems(problems, Rules.PUBLISHED)
    state = begin(batch)
    states, masks, _ = wander(batch, state, seed, (batch.num_depots + 1) * batch.num_customers)
    assert states[-1].finished(batch).all()
    assert all(legal.any(-1).all() for legal in masks)
    for b, problem in enumerate(problems):
        unit, _ = units(problem, batch, b)
        routes, _ = plan(problem, batch, states, b)
        verdict = check(problem, Solution.of(problem, routes))
        tolerated = {"capacity-exceeded"} if problem.backhaul is Backhaul.MIXED else set()
        assert {v.code for v in verdict.violations} <= tolerated
        assert states[-1].travelled[b, 0].item() / unit == pytest.approx(verdict.cost, rel=1e-9, abs=1e-9)


# -- problems that trap a vehicle


def trap(depots=1):
    """Customer A closes at 5; the direct way takes 9, the way through customer B 2 + 2."""
    d = np.array([[0, 9, 2], [9, 0, 2], [2, 2, 0]], dtype=float)
    windows = np.array([(0, 100), (0, 5), (0, 100)], dtype=float)
    at = [0] * depots + [1, 2]
    return Problem(
        capacity=2,
        delivery=[1, 1],
        num_depots=depots,
        distance_matrix=d[np.ix_(at, at)],
        time_windows=windows[at],
    )


@pytest.mark.parametrize("rules", Rules)
@pytest.mark.parametrize("depots", [1, 2])
def test_a_trapped_trajectory_never_finishes_but_always_has_an_action(rules, depots):
    """Served alone first, B leaves A out of reach for good; B then A is a solution."""
    problem = trap(depots)
    a, b = problem.customers
    batch = from_problems([problem], rules)
    state = at_depots(batch, 1)
    assert mask(batch, state)[0, 0].tolist() == [False] * depots + [False, True]
    happy = step(batch, state, torch.tensor([[b]]))
    for node in (b, 0):
        state = step(batch, state, torch.tensor([[node]]))
    states, masks, actions = wander(batch, state, 0, 20)
    assert len(actions) == 20
    assert all(m.sum() == 1 and m[0, 0, :depots].any() for m in masks)
    assert not any(s.finished(batch).any() for s in states)
    assert states[-1].travelled == state.travelled
    for node in (a, 0):
        assert mask(batch, happy)[0, 0, node]
        happy = step(batch, happy, torch.tensor([[node]]))
    assert happy.finished(batch).all()
    assert check(problem, Solution.of(problem, [(0, [b, a])])).feasible


def test_multi_start_never_begins_with_a_customer_that_cannot_be_the_first():
    """The trajectory of customer A waits at the depot and may choose."""
    batch = from_problems([trap()])
    state = begin(batch)
    assert state.current.tolist() == [[0, 2]]
    states, _, _ = wander(batch, state, 0, 4)
    assert accepted(trap(), plan(trap(), batch, states)[0])


# -- fleets


def full_loads(vehicles, **fields):
    """Five customers at one place, each with half a load, and so many vehicles."""
    given = {"delivery": [1] * 5, "coords": [(0, 0), *[(1, 0)] * 5], **fields}
    return Problem(capacity=2, fleet=vehicles, **given)


def test_no_vehicle_goes_home_half_full_where_all_are_needed():
    """Three vehicles for two and a half loads: one of them may leave with a half, the others may not."""
    problem = full_loads(3)
    batch = from_problems([problem])
    state = at_depots(batch, 1)
    home = []
    for v in (1, 0, 2, 3, 0, 4, 5):
        home.append(bool(mask(batch, state)[0, 0, 0]))
        state = step(batch, state, torch.tensor([[v]]))
    assert home == [False, True, False, False, True, False, False]
    assert state.routes.tolist() == [[3]]
    assert state.beyond(batch).tolist() == [[0]]


def test_a_trajectory_beyond_the_fleet_goes_on_and_ends():
    """Two customers at opposite ends and a limit for one of them at a time: one vehicle cannot do it."""
    problem = Problem(
        capacity=9, delivery=[1, 1], coords=[(0, 0), (-5, 0), (5, 0)], distance_limit=10, fleet=1
    )
    batch = from_problems([problem])
    state = at_depots(batch, 1)
    for v in (1, 0, 2, 0):
        assert mask(batch, state)[0, 0, v]
        state = step(batch, state, torch.tensor([[v]]))
    assert state.finished(batch).all()
    assert state.beyond(batch).tolist() == [[1]]
    assert state.travelled.item() == pytest.approx(2)  # in units of the map, which is 10 long
    assert state.cost(batch).item() == pytest.approx(2 + 1)  # and the longest trip once more


def test_linehauls_come_before_pickups_while_deliveries_are_left_that_no_other_vehicle_holds():
    """One vehicle, two deliveries, a pickup: it must not pick up before both are delivered."""
    problem = full_loads(
        1, delivery=[1, 1, 0], pickup=[0, 0, 2], backhaul="linehauls-first", coords=[(0, 0), *[(1, 0)] * 3]
    )
    assert follow(problem, [1, 2, 3, 0]) == [True] * 4
    assert follow(problem, [1, 3]) == [True, False]
    assert follow(problem.replace(fleet=2), [1, 3]) == [True, True]
    assert follow(problem.replace(fleet=2), [3]) == [True]
    assert follow(problem, [3]) == [False]


def test_no_vehicle_goes_home_early_where_days_or_lengths_need_all():
    """Four customers 1 apart on a line, each served for 10: two days of 25, or two lengths, are needed."""
    base = full_loads(2, delivery=[0] * 4, coords=[(i, 0) for i in range(5)], service=[10] * 4)
    day = base.replace(time_windows=[(0, 30), *[(0, 30)] * 4])
    length = base.replace(distance_limit=30, limit_counts_service=True)
    for problem in (day, length):
        assert follow(problem, [1, 0]) == [True, False]  # three customers would be left: 33 of 30
        assert follow(problem, [1, 2, 0]) == [True, True, True]
        assert follow(problem.replace(fleet=3), [1, 0]) == [True, True]


def plans(problem):
    """All ways to serve all customers within the fleet that the judge accepts, as trajectories."""
    customers = [*problem.customers]
    for order in itertools.permutations(customers):
        for cuts in itertools.product((False, True), repeat=len(order) - 1):
            routes = [[order[0]]]
            for v, cut in zip(order[1:], cuts, strict=True):
                if cut:
                    routes.append([v])
                else:
                    routes[-1].append(v)
            if check(problem, Solution.of(problem, [(0, route) for route in routes])).feasible:
                yield routes


@pytest.mark.parametrize("variant", [v for v in VARIANTS if not v.multi_depot], ids=str)
def test_no_plan_within_the_fleet_is_lost(variant):
    """Every feasible plan of four customers can be made under the mask, route by route in any order."""
    index, found = VARIANTS.index(variant), 0
    for seed in range(3):
        problem = invent(variant, index + seed, customers=4)
        full = max(problem.delivery.sum(), problem.pickup.sum()) / problem.capacity
        problem = problem.replace(fleet=max(1, int(np.ceil(full))))
        for routes in plans(problem):
            assert all(follow(problem, [v for route in routes for v in (*route, 0)])), routes
            found += 1
    assert found or variant.time_windows or variant.limit


@given(st.lists(variants, min_size=1, max_size=4), seeds, st.sampled_from(KINDS))
def test_rollouts_with_fleets_end_and_break_no_other_rule(some, seed, kind):
    """As many steps as without a fleet; the judge counts the vehicles beyond it as the state does."""
    problems = [
        invent(v, seed + i, 3 + (seed + i) % 5, kind=kind, fleet=bool(i % 2 or seed % 2))
        for i, v in enumerate(some)
    ]
    batch = from_problems(problems)
    states, masks, _ = wander(batch, begin(batch), seed, 2 * batch.num_customers)
    assert states[-1].finished(batch).all()
    assert all(legal.any(-1).all() for legal in masks)
    for b, problem in enumerate(problems):
        routes, _ = plan(problem, batch, states, b)
        verdict = check(problem, Solution.of(problem, routes))
        assert {v.code for v in verdict.violations} <= {"fleet-exceeded"}
        assert states[-1].routes[b, 0] == len(routes)
        if problem.fleet is not None:
            beyond = max(0, len(routes) - problem.fleet * problem.num_depots)
            assert states[-1].beyond(batch)[b, 0] == beyond


# -- compiled, captured, pure


@cache
def some_batches():
    one = from_problems([invent(v, i) for i, v in enumerate(VARIANTS[:24])])
    many = from_problems([invent(v, i, 4 + i % 3, kind="durations") for i, v in enumerate(VARIANTS)])
    fleets = from_problems([invent(v, i, 5, fleet=i % 3 == 0) for i, v in enumerate(VARIANTS)])
    return [one, many, dataclasses.replace(many, rules=Rules.PUBLISHED), fleets]


KINDS_OF_BATCHES = ["one depot", "padded", "published", "fleets"]


@pytest.mark.parametrize(
    "index",
    [pytest.param(i, marks=() if i % 2 else pytest.mark.slow, id=KINDS_OF_BATCHES[i]) for i in range(4)],
)
def test_compiled_is_as_eager(index):
    """It compiles to one graph: nothing branches on data or waits for it."""
    batch = some_batches()[index]
    torch._dynamo.reset()
    compiled_mask = torch.compile(mask, fullgraph=True, backend="aot_eager")
    compiled_step = torch.compile(step, fullgraph=True, backend="aot_eager")
    states, masks, actions = wander(batch, begin(batch), 3, 6)
    for state, legal, action, then in zip(states, masks, actions, states[1:], strict=False):
        assert torch.equal(compiled_mask(batch, state), legal)
        assert_equal_states(compiled_step(batch, state, action), then, exact=False)


@pytest.mark.parametrize("index", range(4), ids=KINDS_OF_BATCHES)
def test_nothing_reads_a_value_back(index):
    """Tensors without data pass through: whatever needs a value on the host would fail."""
    batch = some_batches()[index].to("meta")
    state = begin(batch)
    legal = mask(batch, state)
    then = step(batch, state, legal.int().argmax(-1))
    assert then.finished(batch).shape == state.current.shape


def test_states_are_never_changed():
    for batch in some_batches():
        tensors = [
            t for f in dataclasses.fields(batch) if isinstance(t := getattr(batch, f.name), torch.Tensor)
        ]
        state = begin(batch)
        copy = dataclasses.replace(state, **{f: getattr(state, f).clone() for f in FIELDS if f != "spare"})
        before = [t.clone() for t in tensors]
        legal = mask(batch, state)
        step(batch, state, legal.int().argmax(-1))
        assert_equal_states(state, copy)
        assert all(torch.equal(a, b) for a, b in zip(tensors, before, strict=True))
        with pytest.raises(dataclasses.FrozenInstanceError):
            state.time = state.length
