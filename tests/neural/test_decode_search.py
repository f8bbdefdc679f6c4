"""Searches beyond the best trajectory: recombination, sectors, rounds, deadlines, and options that fit."""

import itertools
import time

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from problems import KINDS, invent, judged_costs

from chainroute import VARIANTS, ChainRouteError, Fault, Problem, Solution, check, variant
from chainroute.generate import generate
from chainroute.neural.decode import DecodeOptions, api, attempt, decode, engine, fit, rollout
from chainroute.neural.decode.parts import parts, sectors, turned
from chainroute.neural.decode.rollout import drawn, longest, pattern
from chainroute.neural.decode.speed import unit_seconds
from chainroute.neural.env import Rules, from_problems
from chainroute.neural.policy import PolicyConfig
from chainroute.neural.policy.store import random_policy
from chainroute.options.rules import FIRST_SHARE_SECTORS, work
from chainroute.runtime.deadline import Deadline

TINY = PolicyConfig(dim=16, heads=2, layers=1, hidden=16)
PLAIN = DecodeOptions(augmentations=1)
RECOMBINED = DecodeOptions(augmentations=1, recombine=True)
ROUNDS = DecodeOptions(augmentations=1, starts=4, recombine=True, rounds=3)


@pytest.fixture(scope="module")
def policy():
    return random_policy(TINY)


def routes(solutions):
    return [solution.routes for solution in solutions]


# -- parts


def test_parts_are_the_problems_that_their_customers_make():
    """Field by field against problems that were built from those customers, for many variants."""
    for i, v in enumerate(VARIANTS[::3]):
        whole = invent(v, i, 7, kind=("plane", "rounded", "tenths")[i % 3])
        m = whole.num_depots
        chosen = [np.array([m + 5, m + 1, m + 2]), np.array([m + 6, m, m + 3, m + 4])]
        small, nodes = parts(from_problems([whole]), [0, 0], chosen)
        assert (small.padding is not None) == (len(chosen[0]) != len(chosen[1]))
        for row, customers in enumerate(chosen):
            own = np.r_[np.arange(m), customers]
            assert nodes[row, : len(own)].tolist() == own.tolist()
            alone = part_of(whole, own)
            scale = small.distance[row, 0, m] / alone.distance[0, 0, m]  # a part keeps its problem's map
            for name in ("delivery", "pickup", "opening", "closing", "service", "counted_service"):
                mine, its = getattr(small, name)[row, : len(own)], getattr(alone, name)[0]
                factor = 1 if name in ("delivery", "pickup") else scale
                torch.testing.assert_close(mine, its * factor, rtol=1e-9, atol=1e-12)
            torch.testing.assert_close(small.limit[row], alone.limit[0] * scale)
            torch.testing.assert_close(small.start_depot[row, : len(own)], alone.start_depot[0])
            torch.testing.assert_close(small.distance[row, : len(own), : len(own)], alone.distance[0] * scale)
            assert small.flags[row].tolist() == alone.flags[0].tolist()


def part_of(whole, own):
    """The batch of the problem that has these locations only."""
    customers = own[whole.num_depots :] - whole.num_depots
    fields = {name: getattr(whole, name)[customers] for name in ("delivery", "pickup", "service")}
    if whole.coords is not None:
        fields["coords"] = whole.coords[own]
    for name in ("distance_matrix", "duration_matrix"):
        matrix = getattr(whole, name)
        fields[name] = None if matrix is None else matrix[np.ix_(own, own)]
    if whole.time_windows is not None:
        fields["time_windows"] = whole.time_windows[own]
    return from_problems([whole.replace(names=(), **fields)])


def test_parts_fill_the_unit_square_and_turns_keep_distances():
    problem = generate(variant("CVRP"), 12, 1, seed=1)[0]
    chosen = [np.array([1, 2, 3]), np.array([4, 5, 6, 7, 8])]
    maps = turned(2, np.random.default_rng(3))
    small, _ = parts(from_problems([problem]), [0, 0], chosen, maps)
    for row, count in ((0, 4), (1, 6)):
        coords = small.coords[row, :count]
        assert coords.amin() == pytest.approx(0)
        assert coords.amax() == pytest.approx(1)
        torch.testing.assert_close(torch.cdist(coords, coords), small.distance[row, :count, :count])
    assert not torch.allclose(small.coords[1], parts(from_problems([problem]), [0, 0], chosen)[0].coords[1])


@given(st.integers(0, 10**6), st.integers(1, 3), st.integers(1, 40), st.integers(1, 12))
def test_sectors_hold_every_customer_once(seed, depots, customers, size):
    rng = np.random.default_rng(seed)
    home = rng.integers(depots, size=depots + customers)
    cut = sectors(rng.random((depots + customers, 2)), home, depots, size)
    assert sorted(np.concatenate(cut)) == list(range(depots, depots + customers))
    assert max(map(len, cut)) <= size
    assert all(len(np.unique(home[part])) == 1 for part in cut)


def test_starts_of_padded_parts_are_spread_over_their_own_customers(policy):
    problem = generate(variant("CVRP"), 12, 1, seed=1)[0]
    small, _ = parts(
        from_problems([problem]), [0, 0, 0], [np.arange(1, 13), np.arange(1, 9), np.arange(1, 4)]
    )
    result = rollout(policy, small, [True] * 24, 4)
    assert result.actions[:, :, 0].tolist() == [[1, 4, 7, 10], [1, 3, 5, 7], [1, 2, 3, 1]]
    assert result.finished.all()


@pytest.mark.parametrize("rules", list(Rules))
@pytest.mark.parametrize("obstacle", ["", "knows no such network"], ids=["folded", "plain"])
def test_instances_that_have_ended_are_left_out(monkeypatch, obstacle, rules):
    """Problems of three sizes, most of which end early: as each by itself, greedy and drawn by chance."""
    monkeypatch.setattr(engine, "obstacle", lambda policy: obstacle)
    policy, sizes = random_policy(TINY).double(), itertools.cycle([3, 3, 3, 6, 3, 3, 10])
    batch = from_problems([invent(v, i, next(sizes)) for i, v in enumerate(VARIANTS)], rules)
    refine = pattern(0.5, 0, longest(batch))
    chance = torch.Generator().manual_seed(1)
    shape = (len(refine), batch.size, batch.num_customers, batch.num_nodes)
    for noise in (torch.zeros(shape), torch.randn(shape, generator=chance)):
        made = rollout(policy, batch, refine, noise=noise.__getitem__)
        assert made.finished.any(1).all()
        for i in range(0, batch.size, 5):  # of every size
            one = torch.tensor([i])
            alone = rollout(policy, batch[one], refine, noise=noise[:, one].__getitem__)
            steps = alone.actions.shape[2]
            assert torch.equal(made.actions[i, :, :steps], alone.actions[0])
            assert (made.actions[i, :, steps:] == alone.actions[0, :, -1:]).all()
            assert torch.equal(made.costs[i], alone.costs[0])
            assert torch.equal(made.finished[i], alone.finished[0])


# -- sectors and rounds


def test_sectors_and_rounds_are_judged_and_rounds_never_worse(policy):
    """Every variant and kind of distance, some with a fleet; large enough that sectors have several parts."""
    problems = [
        invent(v, i, 14, kind=KINDS[i % len(KINDS)], fleet=i % 4 == 0) for i, v in enumerate(VARIANTS)
    ]
    cut = DecodeOptions(starts=3, augmentations=1, sector=6, recombine=True)
    first = attempt(policy, problems, cut)
    then = attempt(policy, problems, DecodeOptions(**{**vars(cut), "rounds": 2}))
    found = [i for i, one in enumerate(first) if isinstance(one, Solution)]
    assert len(found) > 40
    some = [problems[i] for i in found]
    a, b = (judged_costs(some, [outcomes[i] for i in found]) for outcomes in (first, then))
    assert (b <= a * (1 + 1e-9)).all()
    assert (b < a * 0.999).sum() > 20


def test_what_sectors_cannot_do_is_decoded_whole(policy):
    """Two sectors need two vehicles, and there is one, which can carry all; it comes from far away."""
    coords = np.vstack([(99, 99), np.random.default_rng(0).random((5, 2))])
    problem = Problem(capacity=5, delivery=[1] * 5, coords=coords, fleet=1)
    judged_costs([problem], decode(policy, [problem], DecodeOptions(sector=3, samples=2)))


def test_large_problems_recombine_part_by_part(policy, monkeypatch):
    """So it is beyond 200 customers."""
    monkeypatch.setattr("chainroute.neural.decode.neighbourhood.JOINT_POOL_CUSTOMERS", 0)
    problems = [invent(v, i, 16) for i, v in enumerate(VARIANTS[::8])]
    first, then = (judged_costs(problems, decode(policy, problems, o)) for o in (PLAIN, ROUNDS))
    start = decode(policy, problems, PLAIN)
    better = judged_costs(problems, attempt(policy, problems, ROUNDS, initial=start))
    assert (better <= first * (1 + 1e-9)).all()
    assert (better < first * 0.999).sum() > 3
    assert then.shape == first.shape


def test_rounds_are_the_same_again_and_alone(policy):
    problems = [invent(v, i, 10 + i % 2) for i, v in enumerate(VARIANTS[::8])]
    together = routes(decode(policy, problems, ROUNDS))
    assert routes(decode(policy, problems, ROUNDS)) == together
    assert [routes(decode(policy, [p], ROUNDS))[0] for p in problems[::3]] == together[::3]
    small = DecodeOptions(**{**vars(ROUNDS), "memory": 200_000})
    assert routes(decode(policy, problems, small)) == together


def test_initial_solutions_are_where_rounds_begin(policy):
    """One is worsened on purpose; without rounds it is returned as it is, empty routes left out."""
    problems = generate(variant("CVRP"), 12, 2, seed=5)
    poor = Solution.of(problems[0], [(0, []), *((0, [c]) for c in problems[0].customers)])
    same, other = attempt(policy, problems, PLAIN, initial=[poor, None])
    assert same.routes == poor.routes[1:]
    assert check(problems[1], other).feasible
    heard = []
    (better,) = attempt(
        policy, problems[:1], ROUNDS, initial=[poor], on_better=lambda i, s: heard.append((i, s.cost))
    )
    assert check(problems[0], better).feasible
    assert [i for i, _ in heard] == [0] * len(heard)
    costs = [poor.cost, *(cost for _, cost in heard)]
    assert all(b < a for a, b in itertools.pairwise(costs))
    assert costs[-1] == better.cost < poor.cost


def test_an_initial_solution_must_be_feasible_and_there_must_be_one_for_each(policy):
    problem = generate(variant("CVRP"), 5, 1, seed=5)[0]
    short = Solution.of(problem, [(0, [1, 2])])
    for initial, code in (([short], "infeasible-start"), ([], "bad-option")):
        with pytest.raises(ChainRouteError) as error:
            attempt(policy, [problem], ROUNDS, initial=initial)
        assert [f.code for f in error.value.faults] == [code]
        assert error.value.faults[0].where.startswith("initial")


# -- time


def test_a_deadline_that_has_passed_gives_what_there_is(policy):
    problems = generate(variant("CVRP"), 8, 2, seed=5)
    given = decode(policy, problems[:1], PLAIN)
    kept, fault = attempt(policy, problems, ROUNDS, deadline=Deadline.after(-1), initial=[*given, None])
    assert kept.routes == given[0].routes
    assert isinstance(fault, Fault)
    assert (fault.code, fault.where) == ("no-plan-found", problems[1].name)
    assert "time was over" in fault.message


@pytest.mark.parametrize("rounds", [None, 10**6])
def test_rounds_end_at_the_deadline(policy, rounds):
    problems = [*generate(variant("CVRP"), 12, 1, seed=5), *generate(variant("VRPTW"), 9, 1, seed=5)]
    options = DecodeOptions(**{**vars(ROUNDS), "rounds": rounds})
    spent = time.process_time()
    outcomes = attempt(policy, problems, options, deadline=Deadline.after(1.5))
    assert time.process_time() - spent < 3
    judged_costs(problems, outcomes)


def test_a_rollout_ends_at_the_deadline(policy):
    batch = from_problems(generate(variant("CVRP"), 30, 1, seed=0))
    result = rollout(policy, batch, [True] * 60, deadline=Deadline.after(-1))
    assert result.actions.shape[-1] == 2
    assert not result.finished.any()


def test_rounds_without_end_need_a_deadline(policy):
    with pytest.raises(ChainRouteError) as error:
        decode(policy, generate(variant("CVRP"), 5, 1, seed=5), DecodeOptions(rounds=None))
    assert [(f.code, f.where) for f in error.value.faults] == [("bad-option", "rounds")]


@pytest.mark.parametrize(
    "options",
    [
        PLAIN,
        ROUNDS,
        DecodeOptions(starts=2, augmentations=1, sector=6, rounds=1),
        DecodeOptions(starts=2, augmentations=1, rounds=1, memory=10**6),
    ],
    ids=["plain", "rounds", "sectors", "little-memory"],
)
def test_a_problem_becomes_tensors_once(policy, options, monkeypatch):
    """Whatever is done with it, also where problems are decoded one after the other."""
    made = []

    def counted(problems, **where):
        made.extend(problems)
        return from_problems(problems, **where)

    monkeypatch.setattr(api, "from_problems", counted)
    problems = [*generate(variant("CVRP"), 10, 2, seed=5), *generate(variant("VRPTW"), 8, 1, seed=5)]
    judged_costs(problems, attempt(policy, problems, options))
    assert sorted(map(id, made)) == sorted(map(id, problems))


# -- options that fit


@pytest.mark.parametrize("customers", [20, 150, 1000])
def test_more_time_is_never_used_for_less_work(policy, customers):
    """And a first answer is expected within the time, where any is."""
    unit = unit_seconds(policy)
    assert 0 < unit == unit_seconds(policy)
    budgets = [1000 * unit * 4**i for i in range(10)]
    chosen = [fit(policy, customers, seconds, seed=7) for seconds in budgets]
    works = [work(options, customers, policy.reembeddings) for options in chosen]
    assert works == sorted(works)
    assert works[0] < works[-1]
    for seconds, options, amount in zip(budgets, chosen, works, strict=True):
        assert amount * unit <= FIRST_SHARE_SECTORS * seconds or amount == works[0]
        assert (options.recombine, options.rounds, options.seed) == (True, None, 7)


def test_fitting_options_solve(policy):
    problem = generate(variant("VRPBTW"), 30, 1, seed=5)[0]
    (outcome,) = attempt(policy, [problem], fit(policy, 30, 1.0), deadline=Deadline.after(5))
    assert check(problem, outcome).feasible


def test_steps_may_be_drawn_as_in_the_paper(policy):
    """So many of them on average, the same for the same seed, others for another; plans are feasible."""
    flags = drawn(0.3, 1, 2000)
    assert sum(flags) == pytest.approx(600, abs=60)
    assert flags == drawn(0.3, 1, 2000)
    assert flags != drawn(0.3, 2, 2000)
    apart = [b - a for a, b in itertools.pairwise(i for i, flag in enumerate(flags) if flag)]
    assert max(apart) > 6  # evenly spread it would be 4
    problems = [invent(variant("OVRPTW"), 1, 8)]
    judged_costs(
        problems, decode(policy, problems, DecodeOptions(starts=2, update_rates=(0.5,), drawn_steps=True))
    )
