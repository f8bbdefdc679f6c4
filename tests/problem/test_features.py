"""What a problem contains, in words."""

import math

import pytest

from chainroute import Backhaul, ChainRouteError, Metric, Problem, Rounding
from chainroute.problem.features import FEATURES, beyond, our_name, require

PLAIN = Problem(capacity=9, delivery=[1, 2], coords=[[0, 0], [3, 4], [6, 8]])
MATRIX = [[0, 1, 2], [1, 0, 1], [2, 1, 0]]


def contents(problem: Problem) -> set[str]:
    return {name for name, has in FEATURES.items() if has(problem)}


@pytest.mark.parametrize(
    ("changes", "added"),
    [
        ({}, set()),
        ({"num_depots": 2, "delivery": [1], "pickup": (), "service": (), "names": ()}, {"several depots"}),
        ({"open": True}, {"open routes"}),
        ({"backhaul": Backhaul.LINEHAULS_FIRST}, {"linehauls first"}),
        ({"backhaul": Backhaul.MIXED}, {"mixed backhauls"}),
        ({"time_windows": [[0, 9], [0, math.inf], [0, 40]], "open": True},
         {"time windows", "windows that never close", "open routes"}),
        ({"service": [0, 1]}, {"service times"}),
        ({"distance_limit": 30}, {"a distance limit"}),
        ({"distance_limit": 30, "limit_counts_service": True}, {"a distance limit"}),
        ({"distance_limit": 30, "service": [1, 1]},
         {"a distance limit", "service times", "a limit without service"}),
        ({"distance_limit": 30, "service": [1, 1], "limit_counts_service": True},
         {"a distance limit", "service times", "a limit with service"}),
        ({"fleet": 2}, {"a fleet size"}),
        ({"distance_matrix": MATRIX}, {"a distance matrix"}),
        ({"distance_matrix": MATRIX, "coords": None}, {"a distance matrix", "no coordinates"}),
        ({"duration_matrix": MATRIX}, {"a duration matrix"}),
        ({"metric": Metric.HAVERSINE}, {"longitude and latitude"}),
        ({"rounding": Rounding.CEIL}, {"rounding to integers"}),
        ({"rounding": Rounding.TRUNC1}, {"rounding to one decimal"}),
        ({"rounding": Rounding.TRUNC1, "distance_matrix": MATRIX}, {"a distance matrix"}),
        ({"names": ["depot", "1", "two"]}, {"names"}),
    ],
)  # fmt: skip
def test_each_attribute_has_its_word(changes: dict[str, object], added: set[str]) -> None:
    expected = added if "time windows" in added else added | {"no time windows"}
    assert contents(PLAIN.replace(**changes)) == expected


def test_what_a_holder_lacks_is_refused_all_at_once() -> None:
    with pytest.raises(ChainRouteError) as caught:
        require(PLAIN.replace(open=True, fleet=1), "a sieve", {"no time windows"})
    assert [fault.code for fault in caught.value.faults] == ["cannot-express"] * 2
    assert "a sieve cannot hold open routes" in str(caught.value)
    assert "a sieve cannot hold a fleet size" in str(caught.value)


def test_what_a_holder_has_place_for_passes() -> None:
    require(PLAIN.replace(open=True), "a sieve", {"no time windows", "open routes"})


@pytest.mark.parametrize(
    ("field", "what"),
    [
        ("driver_breaks", "breaks"),
        ("RELEASE_TIME", "release times"),
        ("max_stops", "a limit on the stops of a route"),
        ("sevrice", ""),
        ("capacty", ""),
        ("windows", ""),
        ("time_window", ""),
        ("distance", ""),
        ("demand", ""),
    ],
)
def test_fields_of_other_problems_are_told_from_spelling_mistakes(field: str, what: str) -> None:
    """What is not supported is named, and never a spelling mistake; then follows what comes nearest."""
    assert beyond(field).partition(", which is not supported; nearest comes ")[0] == what


@pytest.mark.parametrize(
    ("field", "ours"),
    [
        ("requiredSkills", "skills"),
        ("numTrips", "max_trips of a vehicle type"),
        ("VEHICLES_RELOAD_DEPOT", "max_trips of a vehicle type"),
        ("PRIZE", "prize"),
        ("priority", "prize"),
        ("vehicleTypes", "vehicles"),
        ("VEHICLES_FIXED_COST", "fixed_cost"),
        ("time_window", ""),
        ("demand", ""),
    ],
)
def test_what_has_another_name_elsewhere_is_told_by_ours(field: str, ours: str) -> None:
    """Names that other tools have for what is here lead to our own."""
    assert our_name(field) == ours
