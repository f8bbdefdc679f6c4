"""The 48 variants: names, attributes, groups."""

import pytest

from chainroute import ChainRouteError
from chainroute.problem.variants import BY_NAME, SEEN, VARIANTS, ZERO_SHOT, Backhaul, Variant, variant

# The 16 variants the paper trains on, in its spelling.
PAPER_SEEN = [
    *("CVRP", "OVRP", "VRPB", "VRPL", "VRPTW", "OVRPB", "OVRPL", "OVRPTW"),
    *("VRPBL", "VRPBTW", "VRPLTW", "OVRPBL", "OVRPBTW", "OVRPLTW", "VRPBLTW", "OVRPBLTW"),
]


def test_there_are_48_with_distinct_names():
    assert len(VARIANTS) == len(set(VARIANTS)) == len(BY_NAME) == 48


def test_seen_variants_are_the_papers_16():
    assert {v.name for v in SEEN} == set(PAPER_SEEN)
    assert len(SEEN) == 16


def test_zero_shot_variants_are_the_same_16_with_mixed_backhauls_or_several_depots():
    """8 single-depot MB variants, the 16 seen ones with MD, and the 8 MB ones with MD."""
    mixed = {name.replace("VRPB", "VRPMB") for name in PAPER_SEEN if "B" in name}
    depots = {f"MD{name}" for name in {*PAPER_SEEN, *mixed}}
    assert {v.name for v in ZERO_SHOT} == mixed | depots
    assert len(ZERO_SHOT) == 32


def test_groups_split_the_variants():
    assert sorted(map(str, SEEN + ZERO_SHOT)) == sorted(map(str, VARIANTS))


@pytest.mark.parametrize("v", VARIANTS, ids=str)
def test_name_and_attributes_go_both_ways(v):
    assert variant(v.name) == v
    assert variant(f" {v.name.lower()} ") == v
    rest = v.name.removeprefix("MD")
    assert v.multi_depot == v.name.startswith("MD")
    assert v.open == rest.startswith("O")
    assert v.time_windows == rest.endswith("TW")
    assert v.limit == ("L" in rest)
    assert (v.backhaul is Backhaul.MIXED) == ("MB" in rest)
    assert (v.backhaul is not Backhaul.NONE) == ("B" in rest)


@pytest.mark.parametrize(
    ("attributes", "name"),
    [
        ({}, "CVRP"),
        ({"multi_depot": True}, "MDCVRP"),
        ({"open": True}, "OVRP"),
        ({"limit": True}, "VRPL"),
        ({"open": True, "multi_depot": True}, "MDOVRP"),
        (
            {"backhaul": Backhaul.MIXED, "limit": True, "time_windows": True, "multi_depot": True},
            "MDVRPMBLTW",
        ),
    ],
)
def test_name_of(attributes, name):
    """Names are put together as in the literature."""
    assert Variant(**attributes).name == name == str(Variant(**attributes))


def test_unknown_name_is_a_coded_error_with_near_names():
    with pytest.raises(ChainRouteError, match="VRPTW") as error:
        variant("VRTPW")
    assert [f.code for f in error.value.faults] == ["unknown-variant"]


def test_hopeless_name_gets_no_hint():
    with pytest.raises(ChainRouteError) as error:
        variant("xyzzy")
    assert "Did you mean" not in str(error.value)
