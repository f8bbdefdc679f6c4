"""plan/check.py against a second checker (second_checker.py): on plans of every feature, good and broken."""

import numpy as np
import pytest
import second_checker
from fleets import invent

from chainroute import Solution, check
from chainroute.search.own import exact


def plans(p, rng, count):
    """Plans at random: most serve each customer once, some leave out, repeat or reload."""
    m, kinds = p.num_depots, len(p.types)
    for _ in range(count):
        customers = list(rng.permutation(list(p.customers)))
        if rng.random() < 0.3:
            customers = customers[: rng.integers(len(customers) + 1)]
        if rng.random() < 0.05:
            customers += customers[:1]
        routes = []
        while customers:
            size = min(len(customers), int(rng.integers(1, 4)))
            visits, customers = [int(c) for c in customers[:size]], customers[size:]
            kind = int(rng.integers(kinds))
            t = p.types[kind]
            if t.max_trips > 1 and rng.random() < 0.5:
                visits.insert(int(rng.integers(len(visits) + 1)), int(rng.integers(m)))
            depot = int(rng.choice(t.depots)) if rng.random() < 0.9 else int(rng.integers(m))
            routes.append((depot, visits, kind))
        yield routes


def compared(seed, count):
    p = invent(seed)
    rng = np.random.default_rng(seed)
    for plan in plans(p, rng, count):
        verdict, cost = check(p, Solution.of(p, plan)), second_checker.judge(p, plan)
        assert verdict.feasible == (cost is not None), (seed, plan, verdict)
        if cost is not None:
            assert verdict.cost == pytest.approx(cost, rel=1e-9, abs=1e-9), (seed, plan)
        yield verdict.feasible


def test_both_checkers_agree(request):
    """On thousands of problems with --hypothesis-profile thorough."""
    thorough = request.config.getoption("hypothesis_profile") == "thorough"
    verdicts = [v for seed in range(3000 if thorough else 120) for v in compared(seed, 12)]
    assert 0.05 < np.mean(verdicts) < 0.95


def test_the_search_of_every_plan_finds_what_brute_force_finds(request):
    """Of up to three customers of invented problems, and vehicles that go out once."""
    thorough = request.config.getoption("hypothesis_profile") == "thorough"
    tried = 0
    for seed in range(1000 if thorough else 60):
        p = invent(seed)
        if any(t.max_trips > 1 for t in p.types) or len(p.types) * p.num_depots > 4:
            continue
        p = p.part(list(p.customers)[:3])
        least, found = second_checker.best(p), exact.optimum(p)
        assert (least is None) == (found is None), seed
        if found is not None:
            assert found.cost == pytest.approx(least, rel=1e-9, abs=1e-9), seed
        tried += 1
    assert tried > 9
