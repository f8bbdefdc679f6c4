"""ProblemBatch: problems in the policy's units, padded, and the depots that routes start from."""

import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from problems import KINDS, invent

from chainroute import VARIANTS, Problem, Solution, check
from chainroute.neural.env import ProblemBatch, Rules, from_problems
from chainroute.neural.env import batch as batches
from chainroute.problem.measure import SLACK

variants = st.sampled_from(VARIANTS)
seeds = st.integers(0, 2**32 - 1)
STRAIGHT = ("plane", "crowded")  # kinds whose distances are those of coordinates, not rounded


def by_hand(**fields):
    """A depot and two customers in a box of 40 by 30; the longer side becomes 1."""
    base = {
        "capacity": 8,
        "delivery": [2, 0],
        "pickup": [0, 4],
        "backhaul": "mixed",
        "coords": [(10, 10), (50, 10), (10, 40)],
    }
    return Problem(**{**base, **fields})


# -- units


def test_numbers_by_hand():
    """Lengths and times divide by 40; time begins when the depot opens; loads are shares of the capacity."""
    problem = by_hand(service=[4, 8], time_windows=[(100, 300), (120, 180), (90, np.inf)], distance_limit=160)
    batch = from_problems([problem])
    assert (batch.size, batch.num_nodes, batch.num_depots, batch.num_customers) == (1, 3, 1, 2)
    assert batch.coords[0].tolist() == [[0, 0], [1, 0], [0, 0.75]]
    assert batch.distance[0].tolist() == [[0, 1, 0.75], [1, 0, 1.25], [0.75, 1.25, 0]]
    assert batch.delivery.tolist() == [[0, 0.25, 0]]
    assert batch.pickup.tolist() == [[0, 0, 0.5]]
    assert batch.opening.tolist() == [[0, 0.5, -0.25]]
    assert batch.service.tolist() == [[0, 0.1, 0.2]]
    assert batch.counted_service.tolist() == [[0, 0, 0]]
    assert batch.closing[0].tolist() == pytest.approx([5, 2, np.inf], rel=1e-9)
    assert batch.limit.tolist() == pytest.approx([4], rel=1e-9)
    assert (batch.open.tolist(), batch.backhaul.tolist(), batch.mixed.tolist()) == ([False], [True], [True])
    assert batch.start_depot.tolist() == [[0, 0, 0]]
    assert batch.padding is None


def test_bounds_carry_half_of_the_slack_on_the_problem_s_own_numbers():
    """A closing time of 300 is given 150 SLACK, of which 40 make a unit; where time begins is no matter."""
    problem = by_hand(time_windows=[(100, 300)] * 3, distance_limit=160)
    batch = from_problems([problem])
    assert ((batch.closing - 5) * 40).tolist()[0] == pytest.approx([150 * SLACK] * 3, rel=1e-3)
    assert ((batch.limit - 4) * 40).tolist() == pytest.approx([80 * SLACK], rel=1e-3)


def test_service_that_counts_towards_the_limit():
    """Counted as it is, in the unit of distances, even where durations have another unit."""
    problem = by_hand(service=[4, 8], distance_limit=160, limit_counts_service=True)
    assert from_problems([problem]).counted_service.tolist() == [[0, 0.1, 0.2]]
    minutes = problem.replace(duration_matrix=problem.distances / 2)
    batch = from_problems([minutes])
    assert batch.counted_service.tolist() == [[0, 0.1, 0.2]]
    assert batch.service[0].tolist() == pytest.approx([0, 0.2, 0.4])


@given(variants, seeds, st.sampled_from(KINDS))
def test_the_box_is_the_unit_square_in_true_proportion(variant, seed, kind):
    """Double precision throughout, and the longer side of the box is 1 (or 0 where there is no box)."""
    batch = from_problems([invent(variant, seed, kind=kind)])
    low, high = batch.coords[0].amin(0), batch.coords[0].amax(0)
    assert low.tolist() == pytest.approx([0, 0], abs=1e-12)
    assert high.max().item() in (0, pytest.approx(1))
    assert high.any() == batch.distance.any()
    for field in dataclasses.fields(batch):
        value = getattr(batch, field.name)
        assert (
            not (isinstance(value, torch.Tensor) and value.is_floating_point())
            or value.dtype == torch.float64
        )
    if kind in ("plane", "matrix", "durations"):  # where the given distances are those of a plane
        apart = (batch.coords[:, :, None] - batch.coords[:, None]).norm(dim=-1)
        torch.testing.assert_close(apart, batch.distance, rtol=1e-7, atol=1e-7)
    if kind == "lonlat":  # a city is almost a plane
        apart = (batch.coords[:, :, None] - batch.coords[:, None]).norm(dim=-1)
        torch.testing.assert_close(apart, batch.distance, rtol=1e-3, atol=1e-3)


def test_all_locations_at_one_place():
    batch = from_problems(
        [by_hand(coords=[(7, 7)] * 3), by_hand(coords=None, distance_matrix=np.zeros((3, 3)))]
    )
    assert not batch.coords.any()
    assert not batch.distance.any()


def test_flags():
    """B, L, O, TW of each variant, whether or not mixed and wherever the depots."""
    problems = [invent(v, i, kind=KINDS[i % len(KINDS)]) for i, v in enumerate(VARIANTS)]
    expected = [[v.backhaul != "none", v.limit, v.open, v.time_windows] for v in VARIANTS]
    assert from_problems(problems).flags.tolist() == expected


def test_windows_that_only_open_are_windows():
    """Nobody closes, but one customer has to be waited for; windows that bind nobody are none."""
    late, never = (by_hand(time_windows=[(0, np.inf), (t, np.inf), (0, np.inf)]) for t in (9, 0))
    assert from_problems([late, never]).flags[:, 3].tolist() == [True, False]


# -- matrices


def test_a_matrix_alone_gives_coordinates_up_to_rotation():
    """Classical scaling of a Euclidean matrix is the map again: all distances agree."""
    plane = by_hand()
    batch = from_problems([plane.replace(coords=None, distance_matrix=plane.distances)])
    apart = (batch.coords[0, :, None] - batch.coords[0]).norm(dim=-1)
    truth = torch.tensor([[0, 40, 30], [40, 0, 50], [30, 50, 0]], dtype=torch.float64)
    for matrix in (apart, batch.distance[0]):
        torch.testing.assert_close(matrix / matrix[0, 1], truth / 40)
    assert batch.coords.amax() == pytest.approx(1)


def test_an_asymmetric_matrix_stays_as_it_is_but_for_the_unit():
    """Rows are where from, columns where to; the mean distance is that of the picture."""
    matrix = np.array([[0, 40, 30], [80, 0, 50], [30, 10, 0]], dtype=float)
    batch = from_problems([by_hand(coords=None, distance_matrix=matrix)])
    ratio = (batch.distance[0] / torch.from_numpy(matrix))[~torch.eye(3, dtype=torch.bool)]
    assert ratio.tolist() == pytest.approx([ratio[0].item()] * 6)
    apart = (batch.coords[0, :, None] - batch.coords[0]).norm(dim=-1)
    assert batch.distance.mean().item() == pytest.approx(apart.mean().item())
    assert batch.duration is batch.distance


def test_a_matrix_in_other_units_than_the_coordinates():
    """Kilometres beside degrees, say: distances are scaled to the picture, the picture is not."""
    plane = by_hand()
    batch, twin = (
        from_problems([plane]),
        from_problems([plane.replace(distance_matrix=plane.distances * 777)]),
    )
    torch.testing.assert_close(batch.coords, twin.coords)
    torch.testing.assert_close(batch.distance, twin.distance)


def test_durations_of_their_own_are_scaled_to_the_distances():
    """Minutes beside kilometres: travel typically takes as long as it is far; windows go along."""
    minutes = np.array([[0, 10, 20], [30, 0, 10], [10, 40, 0]], dtype=float)
    problem = by_hand(duration_matrix=minutes, service=[6, 0], time_windows=[(0, 100), (0, 60), (0, 60)])
    batch = from_problems([problem, by_hand()])
    unit = 30 / 10 / 40  # of a minute: the median distance is 30, the median duration 10, the longer side 40
    assert batch.duration[0].flatten().tolist() == pytest.approx((minutes * unit).flatten().tolist())
    assert batch.service[0, 1].item() == pytest.approx(6 * unit)
    assert batch.closing[0].tolist() == pytest.approx([100 * unit, 60 * unit, 60 * unit])
    assert batch.distance[0, 0].tolist() == [0, 1, 0.75]
    assert torch.equal(batch.duration[1], batch.distance[1])


# -- padding and slicing


def test_padded_depots_come_before_the_first_customer():
    """Two depots and one customer beside one depot and two: 2 + 2 nodes each."""
    two = Problem(capacity=1, delivery=[1], num_depots=2, coords=[(0, 0), (0, 4), (2, 0)])
    batch = from_problems([two, by_hand()])
    assert (batch.num_depots, batch.num_customers) == (2, 2)
    assert (batch.depot_counts.tolist(), batch.customer_counts.tolist()) == ([[2], [1]], [[1], [2]])
    alone = from_problems([two])
    assert alone.padding is None
    assert (alone.depot_counts.tolist(), alone.customer_counts.tolist()) == ([[2]], [[1]])
    assert batch.padding.tolist() == [[False, False, False, True], [False, True, False, False]]
    assert batch.coords[0].tolist() == [[0, 0], [0, 1], [0.5, 0], [0, 0]]
    assert batch.coords[1].tolist() == [[0, 0], [0, 0], [1, 0], [0, 0.75]]
    assert batch.delivery.tolist() == [[0, 0, 1, 0], [0, 0, 0.25, 0]]
    assert batch.distance[1, 2].tolist() == [1, 0, 0, 1.25]
    assert batch.closing.isinf().all()


def test_what_is_not_given_is_absent_and_padding_wants_nothing():
    """A depot at the origin, a customer at (3, 4) and padding that was given numbers of its own."""
    coords = torch.tensor([[[0.0, 0.0], [3.0, 4.0], [7.0, 7.0]]])
    distance = (coords[:, :, None] - coords[:, None]).norm(dim=-1)
    ones = torch.ones(1, 3)
    batch = ProblemBatch.of(
        1, coords, distance, ones * 0.5, closing=ones * 9, padding=torch.tensor([[False, False, True]])
    )
    assert batch.coords.tolist() == [[[0, 0], [3, 4], [0, 0]]]
    assert batch.distance.tolist() == [[[0, 5, 0], [5, 0, 0], [0, 0, 0]]]
    assert batch.duration is batch.distance
    assert batch.delivery.tolist() == [[0.5, 0.5, 0]]
    assert batch.closing.tolist() == [[9, 9, np.inf]]
    for absent in (batch.pickup, batch.opening, batch.service, batch.counted_service, batch.start_depot):
        assert absent.tolist() == [[0, 0, 0]]
    assert batch.limit.tolist() == [np.inf]
    for flag in (batch.open, batch.backhaul, batch.mixed):
        assert flag.tolist() == [False]


@given(
    st.lists(st.tuples(variants, seeds, st.sampled_from(KINDS)), min_size=1, max_size=5),
    st.sampled_from([None, 1, 2]),
)
def test_each_problem_of_a_batch_is_as_alone(choices, depots):
    """A problem has the same numbers in a batch as alone, padded among other sizes or stacked."""
    if depots is None:
        problems = [invent(v, s, 1 + s % 7, kind=k) for v, s, k in choices]
    else:
        ours = [(v, s, k) for v, s, k in choices if v.multi_depot == (depots > 1)]
        assume(ours)
        problems = [invent(v, s, 4, depots=depots, kind=k) for v, s, k in ours]
    batch = from_problems(problems)
    assert depots is None or batch.padding is None
    for b, p in enumerate(problems):
        alone = from_problems([p])
        at = torch.tensor([*p.depots, *(batch.num_depots + i for i in range(p.num_customers))])
        for field in dataclasses.fields(batch):
            one, many = getattr(alone, field.name), getattr(batch, field.name)
            if field.name in ("num_depots", "rules", "padding", "fleet"):
                continue
            if field.name == "blocked":  # None stands for roads everywhere
                missing = torch.zeros_like(batch.distance, dtype=torch.bool) if many is None else many
                one, many = torch.from_numpy(np.isinf(p.distances))[None], missing
            many = many[b]
            if field.name in ("distance", "duration", "blocked"):
                many = many[at][:, at]
            elif many.ndim:
                many = many[at]
            assert torch.equal(one[0], many), field.name
        if batch.padding is not None:
            assert (~batch.padding[b]).nonzero().flatten().tolist() == at.tolist()


@given(st.lists(st.tuples(variants, seeds, st.sampled_from(KINDS)), min_size=1, max_size=4))
def test_a_fast_device_measures_the_same_distances(choices):
    """Straight lines alone, whatever the unit; every other kind is as it was."""
    problems = [invent(v, seed, kind=kind) for v, seed, kind in choices]
    plain = from_problems(problems)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batches, "_is_fast", lambda device: True)
        measured = from_problems(problems)
        patch.setattr(batches, "straight_lines", lambda coords: torch.full_like(plain.distance, 7.0))
        marked = from_problems(problems)
    torch.testing.assert_close(measured.distance, plain.distance, rtol=1e-12, atol=1e-12)
    assert bool((marked.distance == 7).any()) is all(kind in STRAIGHT for *_, kind in choices)


def test_slices_and_copies_keep_one_tensor_one():
    """Where durations are distances they stay the very same tensor, which halves memory and work."""
    batch = from_problems([invent(v, i, 3 + i % 3) for i, v in enumerate(VARIANTS)], Rules.PUBLISHED)
    for other in (batch[4:9], batch.to("cpu"), batch.map(torch.clone)):
        assert other.duration is other.distance
        assert other.rules is Rules.PUBLISHED
    part = batch[4:9]
    assert part.size == 5
    assert torch.equal(part.start_depot, batch.start_depot[4:9])
    assert torch.equal(part.padding, batch.padding[4:9])
    separate = from_problems([invent(VARIANTS[0], 0, kind="durations")])
    assert separate[:1].duration is not separate[:1].distance


# -- the depot a route starts from


def single_trip(problem, depot, customer):
    """Whether the judge accepts a route to one customer."""
    verdict = check(problem, Solution.of(problem, [(depot, [customer])]))
    return all(v.code == "customer-missing" for v in verdict.violations)


@given(variants.filter(lambda v: v.multi_depot), seeds, st.sampled_from(KINDS))
def test_a_route_starts_at_the_nearest_depot_that_can_serve_its_first_customer(variant, seed, kind):
    problem = invent(variant, seed, kind=kind)
    batch = from_problems([problem, by_hand(), invent(variant, seed, depots=5)])  # padded to five depots
    for c in problem.customers:
        good = [d for d in problem.depots if single_trip(problem, d, c)]
        nearest = min(good, key=lambda d: problem.distances[d, c])
        assert batch.start_depot[0, c + 5 - problem.num_depots].item() == nearest


def two_depots(**fields):
    """Depots at -4 and 5, a customer at 0."""
    base = {"capacity": 1, "delivery": [1], "num_depots": 2, "coords": [(-4, 0), (5, 0), (0, 0)]}
    return Problem(**{**base, **fields})


@pytest.mark.parametrize(
    ("fields", "depot"),
    [
        ({}, 0),
        ({"distance_limit": 8}, 0),
        ({"time_windows": [(0, 8), (0, 99), (0, 4)]}, 0),
        ({"time_windows": [(2, 99), (0, 99), (0, 5)]}, 1),  # the nearer one opens too late
        ({"time_windows": [(0, 7), (0, 10), (0, 99)]}, 1),  # or closes too early
        ({"time_windows": [(0, 7), (0, 10), (0, 99)], "open": True}, 0),
        ({"time_windows": [(0, 9), (0, 12), (0, 99)], "service": [2]}, 1),
        (
            {
                "duration_matrix": [[0, 9, 9], [9, 0, 2], [9, 2, 0]],
                "time_windows": [(0, 99), (0, 99), (0, 5)],
            },
            1,
        ),
        (
            {
                "distance_matrix": [[0, 9, 4], [9, 0, 5], [6, 4, 0]],
                "distance_limit": 11,
                "service": [2],
                "limit_counts_service": True,
            },
            1,
        ),
        # A long way home and a short one, on a matrix; and a limit exactly as long as the trip
        ({"distance_matrix": [[0, 9, 4], [9, 0, 5], [9, 5, 0]], "distance_limit": 10}, 1),
        ({"distance_matrix": [[0, 9, 0.3], [9, 0, 0.1], [9, 0.5, 0]], "distance_limit": 0.6}, 1),
    ],
)
def test_start_depots_by_hand(fields, depot):
    problem = two_depots(**fields)
    assert from_problems([problem]).start_depot[0, 2].item() == depot
    assert single_trip(problem, depot, 2)


def test_a_trip_exactly_at_its_bounds_is_good():
    """Rounding must not send the vehicle to the other depot, or to one that cannot serve at all."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        coords = rng.uniform(0, 1, (3, 2))
        free = Problem(capacity=1, delivery=[1], num_depots=2, coords=coords)
        far = int(free.distances[:2, 2].argmax())
        trips = [2 * free.distances[d, 2] for d in (0, 1)]
        windows = np.array([(0.0, t) for t in trips] + [(0.0, trips[far] / 2)])
        exact = free.replace(time_windows=windows, distance_limit=trips[far])
        assert from_problems([exact]).start_depot[0, 2].item() == 1 - far
        windows[1 - far, 1] *= 0.99  # now the nearer one cannot
        assert from_problems([exact.replace(time_windows=windows)]).start_depot[0, 2].item() == far


def test_where_no_depot_serves_a_customer_directly_the_nearest_stands_in():
    """Only a detour reaches customer A in time; its depot is then a real one of the same instance."""
    windows = [(0, 99), (0, 99), (0, 5), (0, 99)]
    d = np.array([[0, 9, 9, 2], [9, 0, 8, 3], [9, 9, 0, 9], [9, 9, 2, 0]], dtype=float)
    problem = Problem(capacity=2, delivery=[1, 1], num_depots=2, distance_matrix=d, time_windows=windows)
    batch = from_problems([problem, invent(VARIANTS[-1], 0, depots=4)])
    assert batch.start_depot[0, 4:6].tolist() == [1, 0]


def test_fleets_are_those_of_all_depots_together():
    """Three vehicles at each of two depots; as many as needed beside them; none given at all."""
    some, many = two_depots(fleet=3), two_depots()
    assert from_problems([some, many]).fleet.tolist() == [6, np.inf]
    assert from_problems([some]).fleet.dtype == torch.float64
    assert from_problems([many, many]).fleet is None
