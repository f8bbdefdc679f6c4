"""Timetables: the departure that takes least time, against all departures."""

import math

from hypothesis import given, settings
from hypothesis import strategies as st

from chainroute.plan.timetable import Course

moments = st.integers(0, 30)


@st.composite
def courses(draw):
    """One to four stops with one to three windows each, all in whole numbers."""
    stops = draw(st.integers(1, 4))
    windows = [
        sorted((a, a + draw(st.integers(0, 8))) for a in draw(st.lists(moments, min_size=1, max_size=3)))
        for _ in range(stops)
    ]
    small = st.lists(st.integers(0, 9), min_size=stops, max_size=stops)
    shift_end = draw(st.integers(0, 60) | st.just(math.inf))
    opening = draw(st.integers(0, 5))
    hours = (
        opening,
        opening + draw(st.integers(0, 40)),
    )
    return Course(hours, draw(small), windows, draw(small), 0.0, shift_end)


@settings(max_examples=5 * settings.default.max_examples)
@given(courses())
def test_no_departure_takes_less_time(course):
    """All whole departures are tried; where each misses a window, the best is the earliest. Where each ends
    after the shift, it ends no later than the earliest."""
    best = course.best()
    tables = [course.run(departure) for departure in range(course.hours[0], course.hours[1] + 1)]
    in_time = [table for table in tables if not table.late and table.end <= course.shift_end]
    if all(table.late for table in tables):
        assert best == tables[0]
    elif not in_time:
        assert best.end == tables[0].end
    else:
        least = min((table.duration, table.end) for table in in_time)
        assert not best.late
        assert (best.duration, best.end) == least


def test_a_vehicle_waits_for_the_first_window_no_longer_than_it_must():
    """The stop is 5 away and open in [10, 12] and [20, 22]: left at 5, back there at 15 after 5 more."""
    course = Course((0, math.inf), [5, 5], [[(10, 12), (20, 22)], [(0, math.inf)]], [0, 0], 0.0)
    table = course.best()
    assert (table.departure, table.arrivals, table.starts, table.end) == (5, (10, 15), (10, 15), 15)


def test_a_later_window_is_taken_where_it_saves_time():
    """The first is open in [0, 1] and [20, 30], the second, 5 away, from 22: served at 0, it waits 17."""
    course = Course((0, 99), [0, 5], [[(0, 1), (20, 30)], [(22, 40)]], [0, 0], 0.0)
    table = course.best()
    assert (table.departure, table.end, table.duration) == (20, 25, 5)


def test_a_vehicle_leaves_as_late_as_its_depot_lets_it():
    """The stop is 1 away and opens at 57; the depot closes at 4, so that 52 are waited there."""
    course = Course((0, 4), [1], [[(57, 70), (78, 88)]], [0], 0.0)
    table = course.best()
    assert (table.departure, table.end, table.duration) == (4, 57, 53)


def test_a_vehicle_whose_shift_begins_after_its_depot_has_closed_leaves_no_earlier():
    """That it may not leave is for the judge to say."""
    for windows in ([(200, 250)], [(200, 250), (300, 310)]):
        course = Course((100, 50), [5], [windows], [0], 0.0)
        assert course.best().departure == 100


def test_a_later_window_is_not_taken_after_the_shift():
    """As above, but the shift is over at 24: the first is served at 0 or 1, and the second at 22."""
    course = Course((0, 99), [0, 5], [[(0, 1), (20, 30)], [(22, 40)]], [0, 0], 0.0, 24)
    table = course.best()
    assert (table.departure, table.end, table.duration) == (1, 22, 21)


def test_of_windows_in_which_a_route_takes_as_long_the_first_is_taken():
    """From 08:00 or from 12:00 on, all takes the same time, but for its rounding."""
    ways = [125.68003115891392, 125.68003115891392, 277.98768470, 277.98768470]
    always = [(0, 72_000)]
    windows = [[(28_800, 32_400), (43_200, 50_000)], always, always, always]
    course = Course((25_200, 72_000), ways, windows, [300, 0, 300, 0], 1e-10, 64_800)
    assert course.run(43_200 - ways[0]).duration < course.run(28_800 - ways[0]).duration
    assert course.best().starts[0] == 28_800
