"""Which lanes run: the table, row by row, and what the caller is told of lanes that do not run."""

import pytest

from chainroute.solve.lanes import (
    MAX_CUSTOMERS,
    MAX_WHOLE_CUSTOMERS,
    NO_ANNEALING,
    NO_NETWORK,
    NO_SEARCH,
    NO_SOLVER,
    Facts,
    Lane,
    lanes_for,
    notes_for,
    refusal,
    search_workers,
)

# A hundred customers, two cores, ten seconds, with all that can be installed.
USUAL = {
    **dict.fromkeys(
        ("timed", "polish", "searches", "asks", "reducible", "has_plan", "has_time_for_whole"), True
    ),
    **dict.fromkeys(("by_parts", "anneals", "annealing_missing", "is_short"), False),
    "customers": 100,
    "cores": 2,
}


def facts(**changes):
    return Facts(**{**USUAL, **changes})


@pytest.mark.parametrize(
    ("changes", "lanes"),
    [
        ({}, [Lane.SEARCH, Lane.NETWORK_FIRST, Lane.CONSTRUCT]),
        ({"cores": 8}, [Lane.SEARCH, Lane.NETWORK_FIRST, Lane.CONSTRUCT]),
        ({"is_short": True}, [Lane.SEARCH, Lane.OTHER_SEARCH, Lane.RESCUE, Lane.CONSTRUCT]),
        ({"is_short": True, "timed": False}, [Lane.SEARCH, Lane.NETWORK_FIRST, Lane.CONSTRUCT]),
        ({"cores": 1}, [Lane.SEARCH, Lane.RESCUE, Lane.CONSTRUCT]),
        ({"cores": 1, "is_short": True}, [Lane.SEARCH, Lane.RESCUE, Lane.CONSTRUCT]),
        ({"searches": False}, [Lane.CONSTRUCT, Lane.NETWORK]),
        ({"searches": False, "polish": False}, [Lane.CONSTRUCT, Lane.NETWORK]),
        ({"searches": False, "polish": False, "asks": False}, [Lane.CONSTRUCT, Lane.NETWORK]),
        ({"searches": False, "asks": False}, [Lane.CONSTRUCT]),
        ({"by_parts": True, "customers": 1000}, [Lane.SEARCH, Lane.PARTS]),
        ({"by_parts": True, "customers": 1000, "cores": 4}, [Lane.SEARCH, *[Lane.PARTS] * 3]),
        ({"by_parts": True, "customers": 1000, "cores": 1}, [Lane.PARTS]),
        ({"by_parts": True, "customers": 1000, "has_time_for_whole": False}, [Lane.PARTS] * 2),
        ({"by_parts": True, "customers": MAX_WHOLE_CUSTOMERS + 1}, [Lane.PARTS] * 2),
        ({"by_parts": True, "has_plan": False}, [Lane.SEARCH, Lane.NETWORK_FIRST, Lane.CONSTRUCT]),
    ],
)
def test_the_table_of_lanes(changes, lanes):
    assert lanes_for(facts(**changes)) == lanes


def test_as_many_workers_search_as_lanes_do():
    """Two search the whole; parts have all cores."""
    assert [search_workers(facts(cores=cores)) for cores in (1, 2, 8)] == [1, 2, 2]
    assert search_workers(facts(cores=8, by_parts=True)) == 8


@pytest.mark.parametrize(
    ("changes", "notes"),
    [
        ({}, []),
        ({"searches": False}, [NO_SEARCH]),
        ({"searches": False, "asks": False}, [NO_SOLVER]),
        ({"asks": False}, [NO_NETWORK]),
        ({"asks": False, "reducible": False}, []),  # the network could not hold it anyway
        ({"searches": False, "polish": False}, []),  # as the caller wants it
        ({"annealing_missing": True}, [NO_ANNEALING]),
        ({"annealing_missing": True, "searches": False}, [NO_SEARCH]),
    ],
)
def test_what_is_missing_is_noted(changes, notes):
    assert notes_for(facts(**changes)) == notes


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({}, None),
        ({"customers": MAX_WHOLE_CUSTOMERS}, None),
        ({"customers": MAX_WHOLE_CUSTOMERS + 1}, "too-large"),
        ({"customers": MAX_WHOLE_CUSTOMERS + 1, "by_parts": True}, None),
        ({"customers": MAX_WHOLE_CUSTOMERS + 1, "by_parts": True, "has_plan": False}, "no-plan-found"),
        ({"customers": MAX_CUSTOMERS, "by_parts": True}, None),
        ({"customers": MAX_CUSTOMERS + 1, "by_parts": True}, "too-large"),
    ],
)
def test_what_is_too_large_is_refused(changes, code):
    refused = refusal(facts(**changes))
    assert (refused and refused[0]) == code
