"""generate.py: the published benchmark to the byte, and random problems by the same law."""

import csv
import hashlib
import time

import numpy as np
import pytest
import torch
from where import TESTS

from chainroute import SEEN, VARIANTS, Backhaul, ChainRouteError, Solution, check, variant
from chainroute.generate import BENCHMARK, HORIZON, benchmark, capacity, generate, generate_arrays
from chainroute.neural.env import Mixture, sample
from chainroute.problem.arrays import problems_from_arrays
from chainroute.problem.variants import FLAGS

HERE = TESTS
PUBLISHED = HERE.parents[1] / "shared" / "benchmark48" / "checksums.csv"


def sets():
    return [(v, n, split) for v in VARIANTS for n in (50, 100) for split in BENCHMARK]


@pytest.fixture(scope="module")
def checksums():
    """dtype, shape and SHA-256 of every array, by (variant, n, split, array)."""
    found = {}
    begin = time.process_time()
    for v, n, split in sets():
        for name, a in benchmark(v, n, split).items():
            digest = hashlib.sha256(a.tobytes()).hexdigest()
            found[v.name, n, split, name] = (str(a.dtype), "x".join(map(str, a.shape)), digest)
    assert time.process_time() - begin < 10  # with the hashing; a plain script needs 2 s
    return found


def test_the_benchmark_is_the_published_one(checksums):
    """Each set's digest, over the published checksums of its arrays by name, is the stored one."""
    with (HERE / "data" / "benchmark48.csv").open() as file:
        stored = {(r["variant"], int(r["n"]), r["split"]): r["digest"] for r in csv.DictReader(file)}
    digests = {}
    for v, n, split in sets():
        lines = sorted(
            f"{array} {checksum[2]}\n"
            for (*which, array), checksum in checksums.items()
            if which == [v.name, n, split]
        )
        digests[v.name, n, split] = hashlib.sha256("".join(lines).encode()).hexdigest()[:16]
    assert len(stored) == 192
    assert digests == stored


@pytest.mark.skipif(not PUBLISHED.exists(), reason="needs the folder 'shared' beside the checkout")
def test_every_published_checksum_matches(checksums):
    with PUBLISHED.open() as file:
        rows = list(csv.DictReader(file))
    published = {
        (r["variant"], int(r["n"]), r["split"], r["array"]): (r["dtype"], r["shape"], r["sha256"])
        for r in rows
    }
    assert len(published) == 1600
    assert checksums == published


def test_count_gives_the_first_problems_of_a_set():
    whole, first = (benchmark(variant("MDVRPMBLTW"), 50, "val", count) for count in (None, 5))
    assert whole.keys() == first.keys()
    for key, array in first.items():
        assert np.array_equal(array, whole[key][:5])


def test_benchmark_problems_are_sound():
    """All 48 variants become problems of that variant; validation would refuse any that cannot be served."""
    for v in VARIANTS:
        for p in problems_from_arrays(benchmark(v, 50, "val", 8), v.name):
            assert p.variant == v
            assert p.num_customers == 50


def test_no_global_random_state_is_used():
    def state():
        return repr(np.random.get_state(legacy=False))  # noqa: NPY002

    before = state()
    benchmark(variant("VRPTW"), 50, "val")
    generate(variant("VRPTW"), 5, 2, 0)
    assert state() == before


# -- random problems


@pytest.mark.parametrize("n", [1, 2, 17, 130])
def test_every_variant_and_size_is_sound(n):
    problems = generate(VARIANTS, n, 2, seed=n)
    assert [p.variant for p in problems] == [v for v in VARIANTS for _ in range(2)]
    assert {p.num_customers for p in problems} == {n}
    assert len({p.name for p in problems}) == len(problems)


def test_large_problems():
    """Far beyond the sizes of training, with the capacity that goes with them."""
    (p,) = generate(variant("MDVRPBLTW"), 3000, 1, seed=0)
    assert p.num_customers == 3000
    assert p.delivery.max() == pytest.approx(9 / (30 + 200 + 60))


def test_the_seed_decides_and_nothing_else():
    """The same seed gives the same problems, whatever other variants are asked for; another seed others."""
    alone = generate(variant("OVRPB"), 10, 3, seed=4)
    among = [p for p in generate(SEEN, 10, 3, seed=4) if p.variant.name == "OVRPB"]
    other = generate(variant("OVRPB"), 10, 3, seed=5)
    assert alone == among
    assert all(a != b for a, b in zip(alone, other, strict=True))
    assert alone[0] != alone[1]


def test_variants_share_no_draws():
    """Problems of two variants with the same seed are at different places."""
    a, b = (generate(variant(name), 10, 1, seed=4)[0] for name in ("CVRP", "OVRP"))
    assert not np.isclose(a.coords, b.coords).any()


@pytest.mark.parametrize(
    ("n", "expected"),
    [(1, 30), (20, 30), (21, 34), (50, 40), (100, 50), (1000, 230), (1033, 230), (1100, 233)],
)
def test_capacity(n, expected):
    """The rule of the public benchmark, at its corners."""
    assert capacity(n) == expected


def test_the_law():
    """What the paper says of each quantity, on 500 problems."""
    a = generate_arrays(variant("MDVRPMBLTW"), 100, 500, seed=1)
    assert a["locs"].shape == (500, 103, 2)
    assert 0 <= a["locs"].min() < 0.001
    assert 0.999 < a["locs"].max() <= 1
    assert a["locs"].mean() == pytest.approx(0.5, abs=0.01)

    line, back = a["demand_linehaul"] * 50, a["demand_backhaul"] * 50
    assert np.isin((line + back).round(4), range(1, 10)).all()
    assert (line + back).mean() == pytest.approx(5, abs=0.05)
    assert ((line > 0) ^ (back > 0)).all()
    assert (back > 0).mean() == pytest.approx(0.2, abs=0.01)
    assert (a["backhaul_class"] == 2).all()

    service, (opening, closing) = a["service_time"][:, 3:], np.moveaxis(a["time_windows"][:, 3:], -1, 0)
    assert (a["time_windows"][:, :3] == np.float32([0, HORIZON])).all()
    assert (a["service_time"][:, :3] == 0).all()
    assert 0.15 <= service.min() < 0.1501 < 0.1799 < service.max() <= 0.18001
    assert 0.1799 <= (closing - opening).min() < 0.1801 < 0.1999 < (closing - opening).max() <= 0.2001
    from_depot = np.linalg.norm(a["locs"][:, 3:] - a["locs"][:, :1], axis=-1)
    assert (opening >= from_depot - 1e-6).all()
    assert (closing + service + from_depot <= HORIZON + 1e-5).all()

    everything = np.linalg.norm(a["locs"][:, 1:] - a["locs"][:, :1], axis=-1)
    longest = 2 * everything.max(axis=1)
    assert (a["distance_limit"][:, 0] >= longest).all()
    assert (a["distance_limit"][:, 0] <= np.maximum(2.8, longest + 1e-5)).all()


@pytest.mark.parametrize("name", ["MDVRPBLTW", "OVRPLTW"])
def test_random_problems_follow_the_benchmarks_law(name):
    """Deciles of every array agree with those of the published one."""
    published, random = benchmark(variant(name), 50, "test"), generate_arrays(variant(name), 50, 4000, seed=2)
    assert published.keys() == random.keys()
    for key, array in random.items():
        assert array.dtype == published[key].dtype
        assert array.shape[1:] == published[key].shape[1:]
        deciles = np.linspace(0.1, 0.9, 9)
        spread = max(float(np.ptp(array.astype(float))), 1e-9)
        a, b = (np.quantile(x.astype(float), deciles) for x in (array, published[key]))
        assert np.abs(a - b).max() < 0.03 * spread, key


def test_backhauls_follow_the_rule_of_the_variant():
    first, mixed = (generate(variant(name), 30, 1, seed=0)[0] for name in ("VRPB", "VRPMB"))
    assert first.backhaul is Backhaul.LINEHAULS_FIRST
    assert mixed.backhaul is Backhaul.MIXED


# -- options


@pytest.mark.parametrize("wrong", [0, -3, 1.5, True, "10", None, 20_001])
def test_sizes_out_of_range_are_refused(wrong):
    for draw in (
        lambda: generate(variant("CVRP"), wrong, 1, 0),
        lambda: benchmark(variant("CVRP"), wrong, "val"),
    ):
        with pytest.raises(ChainRouteError) as caught:
            draw()
        assert [(f.code, f.where) for f in caught.value.faults] == [("bad-option", "n")]


def test_all_faults_are_told_at_once():
    with pytest.raises(ChainRouteError) as caught:
        generate(variant("CVRP"), 0, -1, seed=-1)
    assert [(f.code, f.where) for f in caught.value.faults] == [
        ("bad-option", "n"),
        ("bad-option", "count"),
        ("bad-option", "seed"),
    ]


def test_a_set_has_so_many_problems_and_no_more():
    with pytest.raises(ChainRouteError, match="from 1 to 128"):
        benchmark(variant("CVRP"), 50, "val", 129)
    with pytest.raises(ChainRouteError, match="not one of test, val"):
        benchmark(variant("CVRP"), 50, "train")


@pytest.mark.parametrize("name", ["VRPTW", "MDOVRPMBLTW", "VRPL", "CVRP"])
def test_the_printed_law(name):
    """Windows, service and limits lie in the printed bounds; depots never close; everybody can be served."""
    for problem in generate(variant(name), 12, 5, seed=3, law="printed"):
        m, v = problem.num_depots, variant(name)
        assert problem.variant == v
        if v.time_windows:
            opening, closing = problem.windows[m:].T
            assert (opening >= 0.0126).all()
            assert (opening <= 4.2501).all()
            assert ((closing - opening > 1.7999) & (closing - opening < 2.0001)).all()
            assert np.isinf(problem.windows[:m, 1]).all()
            assert (problem.service[m:] < 0.1501).all()
        if v.limit:
            assert problem.distance_limit == 3
        if m == 1:
            assert check(problem, Solution.of(problem, [(0, [c]) for c in range(1, 13)])).feasible


def test_training_data_by_the_printed_law():
    """The same bounds, drawn on the device."""
    batch = sample(200, 6, Mixture.of(VARIANTS, law="printed"), torch.Generator().manual_seed(1))
    limit, length = batch.limit, (batch.closing - batch.opening)[:, batch.num_depots :]
    assert set(limit.tolist()) == {3.0, torch.inf}
    timed = batch.flags[:, FLAGS.index("TW")] > 0
    assert 60 < timed.sum() < 140
    assert ((length[timed] > 1.7999) & (length[timed] < 2.0001)).all()
    assert length[~timed].isinf().all()
    assert batch.closing[:, : batch.num_depots].isinf().all()
