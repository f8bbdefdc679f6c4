"""ChainRoute's own JSON and its published schema."""

import json
import math
import time
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from where import DATA, DOCS

from chainroute import Backhaul, ChainRouteError, Metric, Problem, Route, Solution, VehicleType, check
from chainroute.formats import json as our_json
from chainroute.formats import read, read_solution, write, write_solution
from chainroute.formats.schema import publish

SCHEMAS = {
    name: json.loads((DOCS / "schema" / f"{name}.json").read_text()) for name in ("problem", "solution")
}


def test_customers_by_name() -> None:
    assert read(DATA / "named.json") == Problem(
        name="named",
        capacity=10,
        fleet=2,
        backhaul=Backhaul.MIXED,
        names=["yard", "Anna", "Ben", "Chloé"],
        coords=[[0, 0], [3, 4], [6, 8], [-1, 1]],
        delivery=[7, 0, 3],
        pickup=[0, 4, 0],
        service=[2, 0, 0],
        time_windows=[[0, 100], [8, 20], [0, math.inf], [0, math.inf]],
    )


def test_longitude_and_latitude_are_measured_along_the_globe() -> None:
    problem = read(DATA / "globe.json")
    assert problem.metric is Metric.HAVERSINE
    degree = math.radians(1) * 6_371_008.8
    assert problem.distance(0, 1) == pytest.approx(degree)
    assert problem.distance(0, 2) == pytest.approx(degree)


def globe(path: Path, **fields: object) -> Path:
    """Two customers one degree from the depot, with windows that close after 8,000 units of time."""
    document = json.loads((DATA / "globe.json").read_text())
    for place in (*document["depots"], *document["customers"]):
        place["window"] = [0, 8000]
    path.write_text(json.dumps(document | fields))
    return path


def test_a_speed_makes_times_of_distances(tmp_path: Path) -> None:
    """111 km take 8,000 s at 50 km/h, and 133 minutes; at a metre a second nobody is back in time."""
    degree = math.radians(1) * 6_371_008.8
    for speed in (13.9 * 2, 833.0):
        problem = read(globe(tmp_path / "p.json", speed=speed))
        assert problem.duration(0, 1) == pytest.approx(degree / speed, rel=1e-15)
        assert problem.distance(0, 1) == pytest.approx(degree)
    with pytest.raises(ChainRouteError) as caught:
        read(globe(tmp_path / "p.json"))
    assert {fault.code for fault in caught.value.faults} == {"window-unreachable"}


def test_a_speed_goes_with_a_matrix_and_with_rounding(tmp_path: Path) -> None:
    document = json.loads((DATA / "asymmetric.json").read_text())
    del document["durations"]
    (tmp_path / "p.json").write_text(json.dumps(document | {"speed": 0.5}))
    assert read(tmp_path / "p.json").duration(2, 0) == 10
    rounded = globe(tmp_path / "q.json", rounding="round", speed=100)
    assert read(rounded).duration(0, 1) == pytest.approx(1111.95, abs=1e-9)


@pytest.mark.parametrize("speed", [13.9, 1 / 3, 833, 1e-3 * math.pi])
def test_a_speed_comes_back_from_a_written_file(speed: float, tmp_path: Path) -> None:
    """It is written as one number, not as a matrix; a matrix that is none stays one."""
    problem = read(globe(tmp_path / "p.json", speed=max(speed, 30.0)))
    problem = problem.replace(duration_matrix=problem.distances / speed, time_windows=None)
    write(problem, tmp_path / "q.json")
    document = json.loads((tmp_path / "q.json").read_text())
    assert document["speed"] == pytest.approx(speed, rel=1e-12)
    assert "durations" not in document
    assert read(tmp_path / "q.json") == problem.replace(name=document["name"])
    uneven = problem.duration_matrix.copy()
    uneven[0, 1] += 1
    write(problem.replace(duration_matrix=uneven), tmp_path / "q.json")
    assert "speed" not in json.loads((tmp_path / "q.json").read_text())


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"speed": 0}, "not-positive"),
        ({"speed": -3}, "not-positive"),
        ({"speed": "fast"}, "wrong-type"),
        ({"speed": 2, "durations": [[0, 1, 1], [1, 0, 1], [1, 1, 0]]}, "unknown-field"),
    ],
)
def test_a_speed_that_makes_no_sense_is_refused(fields: dict[str, object], code: str, tmp_path: Path) -> None:
    with pytest.raises(ChainRouteError) as caught:
        read(globe(tmp_path / "p.json", **fields))
    assert [(fault.code, fault.where) for fault in caught.value.faults] == [(code, "speed")]


def test_a_speed_too_small_for_numbers_is_told(tmp_path: Path) -> None:
    with pytest.raises(ChainRouteError) as caught:
        read(globe(tmp_path / "p.json", speed=1e-300))
    assert {fault.code for fault in caught.value.faults} == {"number-too-large"}


def test_matrices_without_coordinates() -> None:
    problem = read(DATA / "asymmetric.json")
    assert problem.coords is None
    assert problem.distance(2, 0) == 5
    assert problem.duration(2, 0) == 10
    assert problem.name == "asymmetric"
    assert problem.names == ("depot", "1", "2")
    assert problem.windows.tolist() == [[0, math.inf], [0, 9], [0, math.inf]]


def test_a_file_of_the_other_kind_is_one_fault(tmp_path: Path) -> None:
    problem = read(DATA / "named.json")
    write_solution(read_solution(DATA / "named.sol.json", problem), tmp_path / "routes.json")
    with pytest.raises(ChainRouteError, match="is a solution, not a problem") as error:
        read(tmp_path / "routes.json")
    assert [fault.code for fault in error.value.faults] == ["not-a-problem"]
    with pytest.raises(ChainRouteError, match="is a problem, not a solution") as error:
        read_solution(DATA / "named.json", problem)
    assert [fault.code for fault in error.value.faults] == ["unknown-format"]


def test_an_unknown_field_is_told_with_those_there_are_and_a_wrong_value_as_it_is(tmp_path: Path) -> None:
    document = json.loads((DATA / "named.json").read_text())
    document["customers"][0]["demand"] = 3
    document["customers"][1]["pickup"] = "six"
    document["capcity"] = document.pop("capacity")
    (tmp_path / "p.json").write_text(json.dumps(document))
    with pytest.raises(ChainRouteError) as error:
        read(tmp_path / "p.json")
    messages = {fault.where: fault.message for fault in error.value.faults}
    assert messages["customers[0].demand"].endswith("service, windows, prize, skills.")
    assert messages["customers[1].pickup"].endswith('not "six".')
    assert messages["capacity"] == "is missing."
    assert messages["capcity"].startswith("is no field; there are name, capacity,")
    assert messages["capcity"].endswith("speed; is 'capacity' meant?")


def test_a_depot_of_the_whole_problem_is_taken_for_a_misspelt_one_and_that_of_a_customer_for_a_skill(
    tmp_path: Path,
) -> None:
    document = {"capacity": 9, "depot": {"x": 0, "y": 0}, "customers": [{"x": 1, "y": 2, "depot": "hub"}]}
    (tmp_path / "p.json").write_text(json.dumps(document))
    with pytest.raises(ChainRouteError) as error:
        read(tmp_path / "p.json")
    messages = {fault.where: fault.message for fault in error.value.faults}
    assert messages["depot"].endswith("is 'depots' meant?")
    assert "here that is skills" in messages["customers[0].depot"]


def test_solution_by_name() -> None:
    problem = read(DATA / "named.json")
    solution = read_solution(DATA / "named.sol.json", problem)
    assert solution.routes == (Route(0, (1, 2, 3)),)
    assert check(problem, solution).feasible


def test_a_solution_may_stand_among_other_facts(tmp_path: Path) -> None:
    """Such as those that `solve --json` adds."""
    problem = read(DATA / "named.json")
    path = tmp_path / "it.json"
    document = {"feasible": True, "seconds": 1.5, "routes": [{"customers": ["Ben", "Anna"]}]}
    path.write_text(json.dumps(document))
    assert read_solution(path, problem).routes == (Route(0, (2, 1)),)


@pytest.mark.parametrize(
    ("document", "codes"),
    [
        ({}, {"missing-field"}),
        ({"routes": 3}, {"wrong-type"}),
        ({"routes": [{"depot": "yard"}]}, {"missing-field"}),
        ({"routes": [{"customers": ["Anna", "Zoe"]}]}, {"unknown-location"}),
        ({"routes": [{"depot": "Anna", "customers": ["Ben"]}]}, {"unknown-location"}),
        ({"routes": [{"depot": "yard", "customers": ["yard"]}]}, {"unknown-location"}),
        ({"routes": [{"customers": ["Anna"], "driver": "Ben"}]}, {"unknown-field"}),
        ({"routes": [{"customers": [1]}]}, {"wrong-type"}),
    ],
)
def test_broken_solutions(document: object, codes: set[str], tmp_path: Path) -> None:
    """Each fault has its code."""
    path = tmp_path / "it.json"
    path.write_text(json.dumps(document))
    with pytest.raises(ChainRouteError) as caught:
        read_solution(path, read(DATA / "named.json"))
    assert {fault.code for fault in caught.value.faults} == codes


def test_a_single_type_may_be_named_by_routes() -> None:
    """It is the same as the problem's own fields, which have no name; to name it is not wrong for that."""
    document = {
        "capacity": 5,
        "vehicles": [{"name": "van", "count": 2}],
        "depots": [{"x": 0, "y": 0}],
        "customers": [{"x": 3, "y": 4, "delivery": 1}],
    }
    problem = our_json.to_problem(document, "x")
    plan = our_json.to_solution({"routes": [{"vehicle": "van", "customers": ["1"]}]}, problem)
    assert (problem.vehicle_types, plan.cost) == ((), 10)


def test_several_depots_must_be_named(tmp_path: Path) -> None:
    path = tmp_path / "it.json"
    path.write_text('{"routes": [{"customers": ["1"]}]}')
    with pytest.raises(ChainRouteError) as caught:
        read_solution(path, read(DATA / "mdvrp.txt"))
    assert [(f.code, f.where) for f in caught.value.faults] == [("missing-field", "routes[0].depot")]


def test_faults_name_the_place_in_the_document(tmp_path: Path) -> None:
    document = json.loads((DATA / "named.json").read_text(encoding="utf-8"))
    document["customers"][0] |= {"delivery": -1, "window": [9, 8]}
    document["fleet"] = 0
    path = tmp_path / "it.json"
    path.write_text(json.dumps(document))
    with pytest.raises(ChainRouteError) as caught:
        read(path)
    assert {(f.code, f.where) for f in caught.value.faults} == {
        ("negative", "customers[0].delivery"),
        ("window-reversed", "customers[0].window"),
        ("not-positive", "fleet"),
    }


# -- speeds and plans


OWN = [[0, 10, 20], [10, 0, 10], [20, 10, 0]]


def timed(**fields: Any) -> Problem:
    """Two stops 5 and 10 away, which a vehicle drives by 10 and 20."""
    places = [{"x": 3, "y": 4}, {"x": 6, "y": 8}]
    document = {"capacity": 10, "objective": "time", "depots": [{"x": 0, "y": 0}], "customers": places}
    vehicle = {"name": "v", "distances": OWN} | fields.pop("vehicle", {})
    return our_json.to_problem(document | fields | {"vehicles": [vehicle]}, "timed")


@pytest.mark.parametrize(
    ("fields", "time"),
    [
        ({}, 40),
        ({"speed": 1}, 40),
        ({"speed": 2}, 20),
        ({"speed": 2, "vehicle": {"speed": 4}}, 10),
        ({"vehicle": {"speed": 4}}, 10),
        ({"speed": 2, "vehicle": {"distances": None}}, 10),
        ({"vehicle": {"distances": None}}, 20),
        ({"durations": [[0, 1, 1], [1, 0, 1], [1, 1, 0]]}, 3),
        ({"durations": [[0, 1, 1], [1, 0, 1], [1, 1, 0]], "vehicle": {"speed": 4}}, 10),
        ({"speed": 2, "vehicle": {"durations": [[0, 3, 3], [3, 0, 3], [3, 3, 0]]}}, 9),
    ],
)
def test_the_speed_is_that_of_the_vehicle_on_its_own_roads(fields: dict[str, Any], time: float) -> None:
    """Its own durations, its own speed, the problem's durations, the problem's speed: in this order; also
    when the problem has been written and read again."""
    problem = timed(**fields)
    again = our_json.read(our_json.write(problem).decode(), "timed", None)
    for p in (problem, again):
        assert check(p, Solution.of(p, [(0, [1, 2])])).cost == time


def test_durations_that_are_the_distances_at_a_speed_stay_durations_of_all_types() -> None:
    """Written as a speed they would be divided anew for a type with distances of its own."""
    p = Problem(
        capacity=9,
        delivery=[1, 1],
        coords=[(0, 0), (3, 4), (6, 8)],
        duration_matrix=[[0, 2.5, 5], [2.5, 0, 2.5], [5, 2.5, 0]],
        vehicle_types=[VehicleType(distance_matrix=OWN, shift=(0, 99))],
    )
    assert our_json.read(our_json.write(p).decode(), p.name, None) == p


@pytest.mark.parametrize("cost", ["fixed_cost", "cost_per_distance", "cost_per_time"])
@pytest.mark.parametrize("of_type", [False, True])
def test_least_time_and_costs_do_not_go_together(cost: str, of_type: bool) -> None:
    with pytest.raises(ChainRouteError, match=r"conflicting-fields.*say money"):
        timed(**{"vehicle": {cost: 1}} if of_type else {cost: 1})


def test_costs_of_types_beside_least_time_are_written_as_money() -> None:
    p = Problem(capacity=9, delivery=[1], coords=[(0, 0), (3, 4)], cost_per_distance=0, cost_per_time=1,
                vehicle_types=[VehicleType(fixed_cost=3, shift=(0, 99))])  # fmt: skip
    assert our_json.read(our_json.write(p).decode(), p.name, None) == p


@pytest.mark.parametrize(
    ("vehicle", "end", "fits"),
    [
        ({}, "hub", True),
        ({}, "far", False),
        ({"end": "far"}, "far", True),
        ({"end": "far"}, "hub", False),
        ({"open": True}, "hub", False),
        ({"open": True}, None, True),
        ({"end": "far"}, None, True),
    ],
)
def test_a_plan_ends_where_its_vehicle_does(vehicle: dict[str, Any], end: str | None, fits: bool) -> None:
    depots = [{"name": "hub", "x": 0, "y": 0}, {"name": "far", "x": 9, "y": 9}]
    customers = [{"name": "a", "x": 3, "y": 4}]
    document = {
        "capacity": 9,
        "depots": depots,
        "customers": customers,
        "vehicles": [{"name": "v"} | vehicle],
    }
    problem = our_json.to_problem(document, "ends")
    plan = {"routes": [{"depot": "hub", "vehicle": "v", "end_depot": end, "customers": ["a"]}]}
    if fits:
        assert check(problem, our_json.to_solution(plan, problem)).feasible
    else:
        with pytest.raises(ChainRouteError, match=r"conflicting-fields.*routes\[0\].end_depot"):
            our_json.to_solution(plan, problem)


# -- the schema


def test_the_published_schema_is_that_of_the_code(tmp_path: Path) -> None:
    """If not: `python -c "from chainroute.formats import json as our_json
    from chainroute.formats.schema import publish; publish('docs/schema')"`."""
    publish(tmp_path)
    for name, schema in SCHEMAS.items():
        assert json.loads((tmp_path / f"{name}.json").read_text()) == schema
        jsonschema.Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize(
    "name", ["five.vrp", "depots.vrp", "matrix.vrp", "mixed.vrpmpd", "named.json", "globe.json"]
)
def test_what_is_written_obeys_the_schema(name: str, tmp_path: Path) -> None:
    write(read(DATA / name), tmp_path / "it.json")
    jsonschema.validate(json.loads((tmp_path / "it.json").read_text()), SCHEMAS["problem"])


def test_solutions_that_are_written_obey_the_schema(tmp_path: Path) -> None:
    problem = read(DATA / "named.json")
    write_solution(read_solution(DATA / "named.sol.json", problem), tmp_path / "it.json")
    document = json.loads((tmp_path / "it.json").read_text())
    jsonschema.validate(document, SCHEMAS["solution"])
    assert document["routes"][0]["customers"] == ["Anna", "Ben", "Chloé"]


def test_the_schema_refuses_what_the_code_refuses() -> None:
    good = json.loads((DATA / "named.json").read_text(encoding="utf-8"))
    for change in ({"colour": "red"}, {"capacity": "ten"}, {"backhaul": "sometimes"}, {"customers": 3}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(good | change, SCHEMAS["problem"])


# -- documents made to take long


BARE = {"capacity": 1, "depots": [{"x": 0, "y": 0}], "customers": [{"x": 1, "y": 1, "delivery": 1}]}


def faults_of(text):
    """The faults of a document, which are found soon, however many there are."""
    begin = time.process_time()
    with pytest.raises(ChainRouteError) as caught:
        our_json.read(text, "problem", None)
    assert time.process_time() - begin < 3.0
    return caught.value.faults


def test_keys_given_twice_are_found_in_one_pass():
    """Comparing each of 60,000 keys with each takes a minute; one pass takes a twentieth of a second."""
    keys = ",".join(f'"{i}":0' for i in range(60_000))
    faults = faults_of(f'{{{keys},"7":0,"59999":0,"7":0}}')
    assert [(fault.code, fault.where) for fault in faults] == [
        ("duplicate-section", "7"),
        ("duplicate-section", "59999"),
    ]


@pytest.mark.parametrize(
    ("changes", "code", "where"),
    [
        ({f"{i}": 0 for i in range(100_000)}, "unknown-field", ""),
        ({"customers": [{f"{i}": 0 for i in range(1000)}] * 200}, "unknown-field", "customers[0]"),
        ({"distances": [["far"] * 500] * 500}, "wrong-type", "distances[0][0]"),
        ({"distances": [["far"]] * 100_000}, "too-large", "distances"),
    ],
    ids=["fields", "fields of customers", "entries", "rows"],
)
def test_what_is_wrong_throughout_is_told_in_few_faults(changes, code, where):
    """The number of faults that are made, not only that are shown, is bounded by the locations."""
    faults = faults_of(json.dumps({**BARE, **changes}))
    assert len(faults) <= 21  # the last says how many more there are
    assert (faults[0].code, faults[0].where) == (code, where)


def test_a_long_text_is_quoted_in_part():
    faults = faults_of(json.dumps({**BARE, "k" * 100_000: 0, "backhaul": "b" * 100_000}))
    assert [fault.code for fault in faults] == ["unknown-value", "unknown-field"]
    assert all(len(str(fault)) < 500 for fault in faults)


@pytest.mark.parametrize("key", ["name", "\\ud83d"])
def test_half_a_character_is_refused(key):
    """A lone surrogate can be written in JSON and nowhere else."""
    faults = faults_of('{"%s": "\\ud83d", %s' % (key, json.dumps(BARE)[1:]))  # noqa: UP031
    assert [fault.code for fault in faults] == ["not-text"]
    whole = our_json.read('{"name": "\\ud83d\\ude00", %s' % json.dumps(BARE)[1:], "", None)  # noqa: UP031
    assert whole.name == "😀"


def test_whole_numbers_may_be_written_with_a_point() -> None:
    """As some languages write all of their numbers; 2.5 vehicles are none."""
    vehicles = [{"count": 2.0, "max_trips": 3.0}]
    problem = our_json.to_problem({**BARE, "fleet": 4.0, "vehicles": vehicles}, "")
    (given,) = problem.vehicle_types
    assert [(type(n), n) for n in (problem.fleet, given.count, given.max_trips)] == [
        (int, 4),
        (int, 2),
        (int, 3),
    ]
    for fleet in (2.5, True, "2", 1e300):
        with pytest.raises(ChainRouteError) as caught:
            our_json.to_problem({**BARE, "fleet": fleet}, "")
        (fault,) = caught.value.faults
        assert (fault.code, fault.where) == (
            "number-too-large" if fleet == 1e300 else "wrong-type",
            "fleet",
        )
