"""Numbers and times for readers."""

import numpy as np
import pytest

from chainroute.runtime.numerals import duration_text, number_text, time_of_day


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (-0.0, "0"),
        (60.0, "60"),
        (12.3456789, "12.3457"),
        (123456.789, "123456.79"),  # the whole part in full, and two decimals
        (1700030123.0, "1700030123"),
        (1700030123.25, "1700030123.25"),
        (-10_000_008.0, "-10000008"),
        (1700030123456.0, "1700030123456"),
        (2.0**53 - 1, "9007199254740991"),
        (1e-7, "1e-07"),
        (1e100, "1e+100"),
        (float("inf"), "inf"),
    ],
)
def test_whole_parts_are_told_in_full(value, text):
    assert number_text(value) == text


def test_more_digits_where_they_are_asked_for():
    assert number_text(27.591234567891, 10) == "27.59123457"


@pytest.mark.parametrize(
    ("seconds", "moment", "span"),
    [
        (0, "00:00", "0 s"),
        (29, "00:00:29", "29 s"),
        (30_071.4, "08:21:11", "8 h 21 min 11 s"),
        (359.9, "00:06", "6 min"),
        (3600, "01:00", "1 h"),
        (86_400 + 5400, "25:30", "25 h 30 min"),  # past midnight
        (-90, "-00:01:30", "-1 min 30 s"),
        (float("inf"), "inf", "inf"),
    ],
)
def test_times_and_lengths_of_time(seconds, moment, span):
    for number in (seconds, np.float64(seconds)):
        assert (time_of_day(number), duration_text(number)) == (moment, span)
