"""options/: each option is declared once, and where it is left open one rule chooses."""

import re

import pytest
from where import DOCS

from chainroute.errors import ChainRouteError
from chainroute.options import MAPS, DecodeOptions, Effort, limit_faults, parameters
from chainroute.options.rules import (
    BATCH_STARTS,
    SECTOR_CUSTOMERS,
    WHOLE_CUSTOMERS,
    default_limit,
    has_time_for_policy,
    has_time_for_whole,
    head_start,
    in_batch,
    is_open,
    options_for,
    work,
)

PAGE = DOCS / "solving.md"


def messages(make, **given):
    with pytest.raises(ChainRouteError) as error:
        make(**given)
    return {fault.where: fault.message for fault in error.value.faults}


# -- declarations


@pytest.mark.parametrize("holder", [Effort, DecodeOptions], ids=lambda holder: holder.__name__)
def test_every_option_says_what_it_is(holder):
    """The help is a sentence, and the default is in its range."""
    for parameter in parameters(holder):
        assert parameter.about.help.endswith("."), parameter.name
        assert parameter.faults(parameter.default) == []


def test_the_two_classes_declare_what_they_share_alike():
    """An option that both have differs in its default alone."""
    decoding = {p.name: p for p in parameters(DecodeOptions)}
    shared = [p for p in parameters(Effort) if p.name in decoding]
    assert len(shared) == 6
    assert [p.about for p in shared] == [decoding[p.name].about for p in shared]


def test_the_page_lists_every_option_of_effort():
    """The fault has the name that the option has on the command line."""
    rows = dict(re.findall(r"^\| `(\w+)` \| `(--[a-z-]+)", PAGE.read_text(), re.MULTILINE))
    assert rows == {p.name: p.names[0] for p in parameters(Effort)}


def test_all_faults_are_told_with_the_range_that_was_missed():
    told = messages(Effort, iterations=-1, starts=0, augmentations=9, update_rates=(0.5, 2), polish=1)
    assert told == {
        "polish": "must be true or false, not 1.",
        "iterations": "must be a whole number of at least 0, not -1.",
        "starts": "must be a whole number of at least 1, not 0.",
        "augmentations": "must be a whole number from 1 to 8, not 9.",
        "update_rates[1]": "must be a number from 0 to 1, not 2.",
    }
    assert list(messages(Effort, update_rates=[0.5])) == ["update_rates"]
    assert list(messages(Effort, update_rates=())) == ["update_rates"]
    assert list(messages(Effort, starts=True, samples=1.0)) == ["starts", "samples"]


@pytest.mark.parametrize("limit", [0, -1, float("nan"), float("inf"), True, "2"])
def test_a_time_limit_is_a_number_of_seconds(limit):
    (fault,) = limit_faults(limit, 0)
    assert (fault.code, fault.where) == ("bad-option", "time_limit")
    assert fault.message == f"must be a number of seconds above 0, not {limit!r}."


def test_limits_and_seeds_have_one_range():
    assert limit_faults(None, 0) == limit_faults(1e-9, 2**32 - 1) == limit_faults(10**400, 7) == []
    (fault,) = limit_faults(1, 2**32)
    assert fault.message == "must be a whole number from 0 to 2^32 - 1, not 4294967296."


def test_labels_say_what_is_not_as_usual():
    assert DecodeOptions().marks == ""
    options = DecodeOptions(augmentations=1, update_rates=(0.5, 1.0), samples=2, seed=7)
    assert options.marks == "-P0.5-P1-x1-samples2-seed7"
    assert DecodeOptions(recombine=True, rounds=3, sector=100).marks == "-recombined-rounds3-sector100"


# -- rules


def test_options_are_the_callers_or_suit_the_size():
    """There is no clock to look at, so they depend on nothing else."""
    assert options_for(Effort(), 20).augmentations == 1
    assert options_for(Effort(polish=False), 20).augmentations == MAPS
    assert [options_for(Effort(), n).sector for n in (WHOLE_CUSTOMERS, WHOLE_CUSTOMERS + 1)] == [
        None,
        SECTOR_CUSTOMERS,
    ]
    asked = Effort(starts=3, augmentations=2, samples=1, update_rates=(0.5, 1), rounds=4)
    assert options_for(asked, 500, 9.0, seed=7) == DecodeOptions(
        starts=3, augmentations=2, samples=1, update_rates=(0.5, 1), rounds=4, seed=7
    )


def test_with_a_clock_they_are_the_most_that_is_expected_in_time():
    """Half of the time for the first answer: a second too little, and the next cheaper rung is taken."""
    whole = work(DecodeOptions(augmentations=4), 20, (50.0,))
    chosen = [
        options_for(Effort(), 20, seconds, lambda: 1.0, (50.0,)) for seconds in (2 * whole, 2 * whole - 1)
    ]
    assert [options.augmentations for options in chosen] == [4, 2]
    assert all(options.recombine and options.rounds is None for options in chosen)


def test_sectors_of_one_size_have_the_same_update_rate_with_and_without_a_clock():
    """It is the policy's own."""
    timed = options_for(Effort(), 500, 1e9, lambda: 1e-9, (33.0,))
    for options in (timed, options_for(Effort(), 500)):
        assert (options.sector, options.update_rates) == (SECTOR_CUSTOMERS, None)
        assert options.rates(SECTOR_CUSTOMERS, (33.0,)) == (33 / SECTOR_CUSTOMERS,)


def test_in_a_batch_only_what_is_left_open_is_chosen():
    assert is_open(Effort(polish=False, device="cpu"))
    assert in_batch(Effort()) == Effort(starts=BATCH_STARTS, augmentations=1, recombine=True)
    assert in_batch(Effort(samples=3)) == Effort(samples=3)


def test_searches_have_a_head_start_by_their_size_and_the_limit():
    """0.5 ms for each customer, and no more than 0.4 of the limit."""
    assert [head_start(600, limit) for limit in (10.0, 0.5)] == pytest.approx([0.3, 0.2])


def test_the_policy_needs_time_for_each_customer_or_a_gpu():
    assert has_time_for_policy(50, 4.0, gpu=False)
    assert not has_time_for_policy(50, 3.9, gpu=False)
    assert has_time_for_policy(5000, 0.1, gpu=True)


def test_a_minute_is_much_for_1000_customers_and_little_for_2000():
    assert [has_time_for_whole(n, 60.0, False) for n in (1000, 1095, 1096)] == [True, True, False]
    assert [has_time_for_whole(2000, limit, False) for limit in (199.0, 200.0)] == [False, True]
    assert [has_time_for_whole(2000, limit, True) for limit in (599.0, 600.0)] == [False, True]


def test_the_default_limit_grows_with_the_size():
    assert default_limit(1) < default_limit(100) < default_limit(400) <= default_limit(5000) == 10
