"""The wide law: sound problems, the same by NumPy and by tensors, and of the kinds it promises."""

import dataclasses

import numpy as np
import pytest
import torch
from problems import one_route_each

from chainroute import VARIANTS, check
from chainroute.generate import generate, wide
from chainroute.neural.env import Mixture, from_problems, sample
from chainroute.problem.variants import variant

ALL = Mixture.of(VARIANTS, law="wide")


@pytest.fixture
def wide_alone(monkeypatch):
    """No instance follows the paper's law."""
    monkeypatch.setattr(wide, "PAPER_SHARE", 0.0)


def drawn(count, n, seed=0, depots=8, which=None):
    """Instances of all variants in turn, or of one, as NumPy draws them, with their kinds."""
    rng = np.random.default_rng(seed)
    row = np.arange(count) % len(VARIANTS) if which is None else np.full(count, VARIANTS.index(which))
    kind = wide.DrawnVariants(*ALL.table.numpy()[row].T)
    chance = wide.Chance.of(rng.random, count, depots, n)
    return chance, kind, wide.draw(np, chance, kind, np.array(wide.DEMANDS, float))


def as_tensors(record):
    return type(record)(
        *(torch.from_numpy(getattr(record, f.name).copy()) for f in dataclasses.fields(record))
    )


def ks(a, b):
    """The largest distance between two empirical distributions."""
    a, b = np.sort(np.ravel(a)), np.sort(np.ravel(b))
    at = np.concatenate([a, b])
    return np.abs(np.searchsorted(a, at, "right") / len(a) - np.searchsorted(b, at, "right") / len(b)).max()


# -- two ways to draw


def test_the_same_random_numbers_make_the_same_instances_by_numpy_and_by_tensors():
    """Every field, in double precision."""
    chance, kind, by_numpy = drawn(96, 12)
    table = torch.tensor(wide.DEMANDS, dtype=torch.float64)
    by_torch = wide.draw(torch, as_tensors(chance), as_tensors(kind), table)
    for field in dataclasses.fields(by_numpy):
        ours, theirs = getattr(by_numpy, field.name), getattr(by_torch, field.name).numpy()
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9, err_msg=field.name)


def test_every_random_number_is_used():
    """One column less of any kind, and there are not enough."""
    chance, kind, _ = drawn(2, 3)
    for name in ("instance", "customer", "location"):
        poorer = dataclasses.replace(chance, **{name: getattr(chance, name)[..., :-1]})
        with pytest.raises(IndexError):
            wide.draw(np, poorer, kind, np.array(wide.DEMANDS, float))


def test_nothing_looks_at_a_value():
    """The whole becomes one graph, without a branch on data; tensors without data pass through."""
    chance, kind, _ = drawn(6, 5)
    chance, kind = as_tensors(chance), as_tensors(kind)
    table = torch.tensor(wide.DEMANDS, dtype=torch.float64)
    torch._dynamo.reset()
    compiled = torch.compile(wide.draw, fullgraph=True, backend="aot_eager")
    eager = wide.draw(torch, chance, kind, table)
    for field, value in dataclasses.asdict(compiled(torch, chance, kind, table)).items():
        torch.testing.assert_close(value, getattr(eager, field))
    chance, kind = (
        type(r)(*(getattr(r, f.name).to("meta") for f in dataclasses.fields(r))) for r in (chance, kind)
    )
    assert wide.draw(torch, chance, kind, table.to("meta")).limit.shape == (6,)


def statistics(batch):
    """Numbers by which two sets of instances can be compared, each as one array."""
    m = batch.num_depots
    real = torch.ones_like(batch.delivery, dtype=torch.bool) if batch.padding is None else ~batch.padding
    windows, limits = batch.flags[:, 3], batch.flags[:, 1]
    day = batch.closing[windows, 0]
    straight = (batch.coords[:, :, None] - batch.coords[:, None]).norm(dim=-1)[:, m:, m:].mean((1, 2))
    asymmetry = (batch.distance - batch.distance.mT).abs()[:, m:, m:].mean((1, 2))
    slow = (batch.duration / batch.distance.clamp(min=1e-9))[:, m, m + 1 :].std(1)
    numbers = {
        "depots": real[:, :m].sum(1),
        "x": batch.coords[:, m:, 0],
        "y": batch.coords[:, m:, 1],
        "depot": batch.coords[:, 0, 0],
        "nearest": (batch.distance + 9 * torch.eye(batch.num_nodes))[:, m:, m:].amin(1),
        "detour": batch.distance[:, m:, m:].mean((1, 2)) / straight,
        "asymmetry": asymmetry,
        "slow": slow,
        "delivery": batch.delivery[:, m:],
        "load": batch.delivery.sum(1),
        "pickup": batch.pickup.sum(1),
        "share of pickups": (batch.pickup > 0).double().sum(1),
        "both": ((batch.pickup > 0) & (batch.delivery > 0)).double().sum(1),
        "day": day,
        "opening": batch.opening[windows, m:] / day[:, None],
        "width": (batch.closing - batch.opening)[windows, m:] / day[:, None],
        "service": batch.service[:, m:],
        "counted": batch.counted_service[:, m:].mean(1),
        "limit": batch.limit[limits],
    }
    return {name: value.double().numpy() for name, value in numbers.items()}


@pytest.mark.usefixtures("wide_alone")
def test_problems_and_training_data_are_alike():
    """All 48 variants, by both ways to draw, from seeds of their own: no attribute is spread differently.

    Without those of the paper's law, whose maps become a little larger on the way from a problem to a batch.
    """
    per_variant, n = 12, 15
    problems = generate(VARIANTS, n, per_variant, seed=1, law="wide")
    ours = statistics(from_problems(problems))
    generator = torch.Generator().manual_seed(2)
    theirs = statistics(sample(per_variant * len(VARIANTS), n, ALL, generator))
    for name, values in ours.items():
        a, b = len(values), len(theirs[name])  # instances, which their customers are not independent of
        assert ks(values, theirs[name]) < 1.9 * np.sqrt((a + b) / (a * b)), name


# -- what is drawn


def test_problems_of_every_variant_are_sound():
    """They pass validation and have their variant; with vehicles enough, one for each customer serves it."""
    for v in VARIANTS:
        for problem in generate(v, 8, 3, seed=5, law="wide"):
            assert problem.variant == v
            free = problem.replace(fleet=None)
            assert check(free, one_route_each(free)).feasible


def test_problems_depend_on_seed_variant_size_and_count_alone():
    several = generate([VARIANTS[3], VARIANTS[40]], 9, 2, seed=4, law="wide")
    assert generate(VARIANTS[40], 9, 2, seed=4, law="wide") == several[2:]
    assert generate(VARIANTS[40], 9, 2, seed=5, law="wide") != several[2:]


def test_half_follows_the_paper_s_law(monkeypatch):
    """Where all do, nothing can be told from the paper's own instances."""
    monkeypatch.setattr(wide, "PAPER_SHARE", 1.0)
    generator = torch.Generator().manual_seed(3)
    ours = statistics(sample(960, 15, ALL, generator))
    theirs = statistics(sample(960, 15, Mixture.of(VARIANTS), generator))
    for name, values in ours.items():
        a, b = len(values), len(theirs[name])
        assert ks(values, theirs[name]) < 1.9 * np.sqrt((a + b) / (a * b)), name
    monkeypatch.undo()
    fleets = np.isfinite(drawn(4800, 4)[2].fleet)  # half of the others have one
    assert abs(fleets.mean() - 0.25) < 0.03


@pytest.mark.usefixtures("wide_alone")
def test_route_lengths_are_triangular_or_long():
    """Capacity over mean demand: 3 to 25 with its peak at 6 for most, more for three in ten."""
    _, _, made = drawn(4000, 40, depots=1, which=variant("CVRP"))
    length = made.capacity / made.delivery.mean(1)
    assert 0.25 < (length > 25.5).mean() < 0.35
    usual = length[(length < 25) & (length > 3)]
    assert abs(np.median(usual) - 10.8) < 0.6  # of the triangular law: 25 - sqrt(22 * 19 / 2) = 10.54
    assert length.max() < 82


@pytest.mark.usefixtures("wide_alone")
def test_demands_have_seven_laws():
    """Unit, four plain ranges, by quarter of the map, and many small with few large."""
    _, _, made = drawn(3000, 60, depots=1, which=variant("CVRP"))
    low, high = made.delivery.min(1), made.delivery.max(1)
    unit = ((low == 1) & (high == 1)).mean()
    assert abs(unit - 1 / 7) < 0.03
    assert (made.delivery >= 1).all()
    assert made.delivery.max() == 100
    middle = ((made.delivery > 10) & (made.delivery < 50)).any(1)
    small_and_large = ((low <= 10) & (high >= 50) & ~middle).mean()
    assert abs(small_and_large - 1 / 7) < 0.03


@pytest.mark.usefixtures("wide_alone")
def test_windows_leave_time_to_come_and_to_go_home():
    """A quarter to all of the customers have one; widths from 2 % of the day to most of it; days of 2 to 60
    stops beside the longest round trip."""
    _, _, made = drawn(2000, 30, depots=1, which=variant("VRPTW"))
    go, back = made.duration[:, 0, 1:], made.duration[:, 1:, 0]
    assert (np.maximum(made.opening, go) <= made.closing + 1e-9).all()
    end = np.maximum(made.opening, go) + made.service + back
    assert (end <= made.day[:, None] + 1e-9).all()
    windowed = made.closing < made.day[:, None] * (1 - 1e-9)
    share = windowed.mean(1)
    assert abs((share < 0.4).mean() - 1 / 4) < 0.05
    width = ((made.closing - made.opening) / made.day[:, None])[windowed]
    assert np.quantile(width, 0.05) < 0.04
    assert np.quantile(width, 0.95) > 0.4
    round_trip = (go + back).max(1)
    assert np.quantile(made.day / round_trip, 0.05) < 1.7
    assert np.quantile(made.day / round_trip, 0.95) > 10
    assert 0.1 < (made.service.max(1) == 0).mean() < 0.22


@pytest.mark.usefixtures("wide_alone")
def test_ways_on_roads_are_longer_one_way_than_the_other():
    """Three tenths of the instances; the others are straight; means stay comparable."""
    _, _, made = drawn(1500, 20, depots=1, which=variant("CVRP"))
    straight = np.linalg.norm(made.coords[:, :, None] - made.coords[:, None], axis=-1)
    assert abs(made.roads.mean() - 0.3) < 0.04
    np.testing.assert_allclose(made.distance[~made.roads], straight[~made.roads], atol=1e-12)
    np.testing.assert_allclose(made.distance.sum((1, 2)), straight.sum((1, 2)))
    asymmetric = np.abs(made.distance - made.distance.mT).max((1, 2)) > 1e-6
    assert (asymmetric == made.roads).all()
    assert (np.diagonal(made.distance, axis1=1, axis2=2) == 0).all()
    assert (made.distance >= 0).all()
    assert (made.slow <= made.roads).all()
    np.testing.assert_allclose(made.duration[~made.slow], made.distance[~made.slow])


@pytest.mark.usefixtures("wide_alone")
def test_places():
    """Maps of every shape whose longer side is 1; depots in the centre, in a corner, anywhere; clusters."""
    _, _, made = drawn(2000, 60, depots=1, which=variant("CVRP"))
    extent = np.ptp(made.coords, axis=1)
    full = np.isclose(extent.max(1), 1)
    assert full.all()
    assert np.quantile(extent.min(1), 0.05) < 0.45
    depot = made.coords[:, 0]
    corner = np.isclose(depot, 0).all(1)
    assert abs(corner.mean() - 1 / 3) < 0.04
    apart = made.distance + 9 * np.eye(61)
    nearest = apart[:, 1:, 1:].min(1).mean(1)
    assert np.quantile(nearest, 0.9) > 2 * np.quantile(nearest, 0.1)  # evenly spread ones and crowded ones


def test_depots():
    """One, or two to eight where there are several."""
    _, kind, made = drawn(1920, 4)
    count = (~made.padding).sum(1)
    assert (count[~kind.several] == 1).all()
    assert np.unique(count[kind.several]).tolist() == [2, 3, 4, 5, 6, 7, 8]


@pytest.mark.usefixtures("wide_alone")
def test_fleets_suffice_for_the_load():
    """None for half; the others can carry everything, tight ones little more."""
    _, kind, made = drawn(4800, 20)
    some = np.isfinite(made.fleet)
    assert abs(some.mean() - 0.5) < 0.03
    load = np.maximum(made.delivery.sum(1), made.pickup.sum(1)) / made.capacity
    vehicles = made.fleet * (~made.padding).sum(1)
    assert (vehicles >= load - 1e-9).all()
    plain = some & ~kind.windows & ~kind.limit & ~kind.several
    assert np.quantile((vehicles / np.ceil(load))[plain], 0.3) <= 1.25
    assert np.quantile((vehicles / np.ceil(load))[plain], 0.9) >= 1.7


@pytest.mark.usefixtures("wide_alone")
@pytest.mark.parametrize(("n", "most"), [(40, 60), (150, 90)])
def test_long_routes_have_long_days(n, most):
    """Beside the longest round trip there is time for 2 to 60 stops, or for 0.6 of the customers; where
    vehicles are large, for 25 or more."""
    _, _, made = drawn(400, n, depots=1, which=variant("VRPTW"))
    go, back = made.duration[:, 0, 1:], made.duration[:, 1:, 0]
    spare = made.day - (go + back + made.service).max(1)
    rest = made.service.max(1) == 0  # where the mean service is known, not only the drawn ones
    stops = (spare / wide.hop(n))[rest]
    long = (made.capacity / made.delivery.mean(1) > 26)[rest]
    assert rest.sum() > 50
    assert 1.9 < stops.min() < 5
    assert 0.8 * most < stops.max() < most + 0.1
    assert long.any()
    assert stops[long].min() > 24.9
