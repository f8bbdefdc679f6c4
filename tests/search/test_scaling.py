"""Problems in whole numbers: by hand, and held to the judge on random routes of every variant and kind."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import KINDS, invent

from chainroute import VARIANTS, Problem, Solution, check, variant
from chainroute.search.solvers import scaling
from chainroute.search.solvers.scaling import FORBIDDEN_FACTOR, UNBOUNDED, lengths, loads, scale, times


def line(*at, **fields):
    """A depot at 0 and customers at these places of a line."""
    delivery = fields.pop("delivery", [1] * len(at))
    return Problem(capacity=10, delivery=delivery, coords=[(x, 0) for x in (0, *at)], **fields)


class Whole:
    """A problem as an integer solver sees it."""

    def __init__(self, problem):
        self.length, self.limit = lengths(problem)
        self.travel, self.service, self.early, self.late = times(problem)
        self.delivery, self.pickup, self.capacity = loads(problem)

    def allows(self, depot, visits):
        """Whether a route keeps limit, windows and capacity, added up in whole numbers."""
        path = [depot, *visits, depot]
        if sum(self.length[a, b] for a, b in pairwise(path)) > self.limit:
            return False
        now = self.early[depot]
        for a, b in zip(path, visits, strict=False):
            now = max(now + self.service[a] + self.travel[a, b], self.early[b])
            if now > self.late[b]:
                return False
        if now + self.service[visits[-1]] + self.travel[visits[-1], depot] > self.late[depot]:
            return False
        load = most = sum(self.delivery[v] for v in visits)
        for v in visits:
            load += self.pickup[v] - self.delivery[v]
            most = max(most, load)
        return most <= self.capacity


def allowed(problem, depot, visits):
    """The judge decides, without the order of backhauls, which is no matter of numbers."""
    verdict = check(problem, Solution.of(problem, [(depot, visits)]))
    return not any(v.route for v in verdict.violations if v.code != "linehaul-after-backhaul")


@given(st.sampled_from(VARIANTS), st.integers(0, 10**6), st.sampled_from(KINDS))
def test_what_whole_numbers_allow_the_judge_allows_and_no_customer_is_lost(variant, seed, kind):
    """Random routes, short ones mostly. A customer that can be served alone can be in whole numbers too."""
    problem = invent(variant, seed, 6, kind=kind)
    model, rng = Whole(problem), np.random.default_rng(seed)
    for _ in range(12):
        visits = rng.permutation(problem.customers)[: rng.integers(1, 5)].tolist()
        depot = int(rng.integers(problem.num_depots))
        if len(visits) == 1:
            assert model.allows(depot, visits) == allowed(problem, depot, visits)
        elif model.allows(depot, visits):
            assert allowed(problem, depot, visits)


@pytest.mark.parametrize("name", ["VRPLTW", "OVRPMBLTW", "MDVRPBLTW"])
def test_hardly_anything_is_lost_to_rounding(name):
    """Whole numbers refuse at most one of 600 random routes that the judge allows."""
    lost = 0
    for seed in range(60):
        problem = invent(variant(name), seed, 6)
        model, rng = Whole(problem), np.random.default_rng(seed)
        for _ in range(10):
            visits = rng.permutation(problem.customers)[: rng.integers(1, 4)].tolist()
            depot = int(rng.integers(problem.num_depots))
            lost += allowed(problem, depot, visits) and not model.allows(depot, visits)
    assert lost <= 1


def test_lengths_by_hand():
    """Up to 100: 3 and 25 are multiplied by 1, as 250 would be too long; fractions are rounded up."""
    length, limit = lengths(line(3, 24.5, distance_limit=55.9), 100)
    assert length.tolist() == [[0, 3, 25], [3, 0, 22], [25, 22, 0]]
    assert limit == 55
    length, limit = lengths(line(3, 24.5), 1000)
    assert length.tolist() == [[0, 30, 245], [30, 0, 215], [245, 215, 0]]
    assert limit == UNBOUNDED


def test_a_trip_that_just_fits_is_not_lost_to_rounding():
    """There and back is 2 x 24.6 = 49.2, in whole numbers 50; the limit is raised to that. Where the limit is
    too short by far nothing is raised: such a problem would have been refused."""
    _, limit = lengths(line(3, 24.6, distance_limit=49.2), 100)
    assert limit == 50


def two_depots(near, out, back, **fields):
    """A customer at that distance from one depot, and on the ways out from and back to another."""
    matrix = [[0, 1, near], [1, 0, out], [near, back, 0]]
    return Problem(capacity=10, delivery=[1], num_depots=2, distance_matrix=matrix, **fields)


def test_whole_lengths_are_bounded_exactly():
    """From one depot 2 x 10 is all that the limit allows, from the other 2 x 11 is too long. With tenths, the
    limit is raised by as much as rounding up may add, 4 units, and no more."""
    assert lengths(two_depots(10, 11, 11, distance_limit=20), 11)[1] == 20
    assert lengths(two_depots(10.5, 12.5, 12.5, distance_limit=22.5), 100)[1] == 26
    assert lengths(two_depots(10.5, 13.2, 12.5, distance_limit=22.5), 100)[1] == 22


def test_whole_times_are_bounded_exactly():
    """A customer that closes at 10, 10 from one depot and 11 from another."""
    problem = two_depots(10, 11, 11, time_windows=[(0, 90), (0, 90), (0, 10)])
    assert times(problem, 100)[3][2] == 10


def test_service_in_the_length_of_a_leg_and_of_the_way_home():
    """Where it counts towards the limit it is paid once, wherever the route goes."""
    problem = line(3, 4, service=[10, 20], distance_limit=70.5, limit_counts_service=True)
    length, limit = lengths(problem, 100)
    there_and_back = length[0, 1] + length[1, 2] + length[2, 0]
    assert there_and_back == 8 + 30
    assert limit == 70
    free = problem.replace(limit_counts_service=False)
    assert lengths(free, 10)[0].tolist() == [[0, 3, 4], [3, 0, 1], [4, 1, 0]]


def test_an_open_route_ends_for_nothing():
    problem = line(3, 4, open=True, distance_limit=9, time_windows=[(0, 5)] + [(0, 90)] * 2, service=[7, 8])
    assert lengths(problem, 10)[0].tolist() == [[0, 3, 4], [0, 0, 1], [0, 1, 0]]
    travel, service, early, late = times(problem, 10)
    assert travel.tolist() == [[0, 3, 4], [0, 0, 1], [0, 1, 0]]
    assert service.tolist() == [0, 7, 8]
    assert early.tolist() == [0, 0, 0]
    assert late[0] >= 4 + 7 + 8 + 1  # the depot's closing is nobody's concern


def test_times_by_hand():
    """The clock starts when the first window opens, here at 100; closings are rounded down, all else up. What
    never closes does so after the last opening, all service and the longest way from everywhere."""
    windows = [(100, 118.3), (110.2, 120.9), (104.5, np.inf)]
    problem = line(3, 4.5, time_windows=windows, service=[1.5, 0])
    travel, service, early, late = times(problem, 100)
    assert travel.tolist() == [[0, 3, 5], [3, 0, 2], [5, 2, 0]]
    assert (service.tolist(), early.tolist()) == ([0, 2, 0], [0, 11, 5])
    assert late.tolist() == [18, 20, 11 + 2 + (5 + 3 + 5)]


def test_ways_that_outlast_all_windows_do_not_set_the_scale():
    """All windows close by 100: a way of 5,000, or none at all, is one of twice that."""
    windows = [(0, 100)] * 3
    for long in (5000, np.inf):
        matrix = [[0, 3, 4], [3, 0, long], [4, 1, 0]]
        problem = Problem(capacity=10, delivery=[1, 1], distance_matrix=matrix, time_windows=windows)
        assert times(problem, 1000)[0].tolist() == [[0, 3, 4], [3, 0, 200], [4, 1, 0]]


def test_a_window_that_closes_as_the_day_begins_is_not_open_to_those_who_come_later():
    """Here at 0; from the other customer, 5 away, nobody is there in time."""
    problem = line(0, 5, time_windows=[(0, np.inf), (0, 0), (0, np.inf)])
    travel, _, _, late = times(problem, 10)
    assert (travel[2, 1], late[1]) == (5, 0)


@pytest.mark.parametrize(("opening", "way"), [(1e6, 100), (1.1e6, 10**7)])
def test_times_have_more_digits_where_short_ways_need_them(opening, way):
    """A millionth of the longest time is the shortest way that eight digits will do for."""
    windows = [(0, np.inf), (opening, np.inf), (opening, np.inf)]
    assert times(line(1, 2, time_windows=windows))[0][0, 1] == way


def test_waiting_and_rounding_do_not_shut_a_customer_out():
    """Out 2.5, waiting until 10.5, service of 1.5, back at 14.5 when the depot closes. Rounded up, 11, 2 and
    3 make 16: the depot stays open till then."""
    problem = line(2.5, time_windows=[(0, 14.5), (10.5, 10.5)], service=[1.5])
    _, _, early, late = times(problem, 20)
    assert early.tolist() == [0, 11]
    assert late.tolist() == [16, 11]


def test_no_windows_no_time():
    travel, service, early, late = times(line(3, 4, service=[5, 6]))
    assert not travel.any()
    assert not service.any()
    assert not early.any()
    assert set(late.tolist()) == {UNBOUNDED}


def test_loads_by_hand():
    """Up to 200: tenths are whole numbers; a capacity that all fits into is no bound. Half of the slack of a
    millionth is in the others."""
    problem = line(1, 2, 3, delivery=[2.5, 0, 9.9], pickup=[0, 3.1, 0], backhaul="mixed")
    delivery, pickup, capacity = loads(problem, 200)
    assert delivery.tolist() == [0, 25, 0, 99]
    assert pickup.tolist() == [0, 0, 31, 0]
    assert capacity == 100
    assert loads(line(1, 2, delivery=[5, 5]))[2] == UNBOUNDED
    assert loads(line(1, 2, delivery=[5, 5.5]))[2] == 10_000_005


def test_whole_loads_by_hand():
    """Counted in twos, of which the vehicle holds five; those too large are rounded up, the room down."""
    problem = line(1, 2, 3, delivery=[4, 0, 6], pickup=[0, 8, 0], backhaul="mixed")
    delivery, pickup, capacity = loads(problem, 5)
    assert (delivery.tolist(), pickup.tolist(), capacity) == ([0, 2, 0, 3], [0, 0, 4, 0], 5)
    problem = Problem(capacity=115, delivery=[23, 45, 114], coords=np.eye(4, 2))
    delivery, _, capacity = loads(problem, 20)
    assert (delivery.tolist(), capacity) == ([0, 3, 5, 12], 12)
    delivery, _, capacity = loads(problem.replace(delivery=[23, 45, 104]), 20)
    assert (delivery.tolist(), capacity) == ([0, 3, 5, 11], 11)


@pytest.mark.parametrize(
    ("most", "factor"), [(1, 100), (0.5, 100), (99, 1), (100, 1), (101, 0.1), (0, 1), (3e-320, 1e300)]
)
def test_scale_is_the_power_of_ten_that_fits(most, factor):
    assert scale(100, np.array([0.0, most]), most / 2) == pytest.approx(factor)


def test_rounding_up_forgives_errors_of_double_precision():
    """1.1 * 10 is a little more than 11, and 11 is meant."""
    assert scaling.up(np.array([1.1, 1.11]), 10).tolist() == [11, 12]


def test_arcs_that_stand_for_no_road_are_forbidden_and_do_not_set_the_scale():
    matrix = np.array([[0, 3, 4], [3, 0, 1e15], [4, 1, 0]])
    problem = Problem(capacity=10, delivery=[1, 1], distance_matrix=matrix)
    length, _ = lengths(problem, 100)
    assert length[1, 2] >= FORBIDDEN_FACTOR
    assert length[[0, 0, 2], [1, 2, 1]].tolist() == [30, 40, 10]
