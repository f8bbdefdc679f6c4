"""GeoJSON: what stands on the map is what the solution says."""

import json
import math

import pytest

from chainroute import ChainRouteError, Problem, Solution, VehicleType, check
from chainroute.formats import read, read_solution, write_solution


def town(**fields):
    """Three customers in Zurich; a depot that never closes."""
    return Problem(
        capacity=5,
        delivery=[2, 0, 3],
        pickup=[0, 4, 0],
        backhaul="mixed",
        metric="haversine",
        coords=[[8.54, 47.37], [8.55, 47.37], [8.55, 47.38], [8.53, 47.36]],
        names=["yard", "Anna", "Böb", "Cleo"],
        service=[60, 60, 60],
        time_windows=[[0, math.inf], [3600, 7200], [0, 9000], [0, 9000]],
        **fields,
    )


def features(solution, path):
    write_solution(solution, path)
    document = json.loads(path.read_text(encoding="utf-8"))
    assert document["type"] == "FeatureCollection"
    assert all(feature["type"] == "Feature" for feature in document["features"])
    return [
        (f["geometry"]["type"], f["geometry"]["coordinates"], f["properties"]) for f in document["features"]
    ]


@pytest.mark.parametrize("open_routes", [False, True])
def test_routes_are_lines_and_locations_points(open_routes, tmp_path):
    """A closed route comes back to its depot, an open one does not."""
    problem = town(open=open_routes)
    solution = Solution.of(problem, [(0, [1, 2]), (0, []), (0, [3])])
    assert check(problem, solution).feasible
    found = features(solution, tmp_path / "it.geojson")
    assert [kind for kind, _, _ in found] == ["LineString"] * 2 + ["Point"] * 4
    back = [] if open_routes else [[8.54, 47.37]]
    assert found[0][1] == [[8.54, 47.37], [8.55, 47.37], [8.55, 47.38], *back]
    assert [place for _, place, _ in found[2:]] == problem.coords.tolist()


def test_facts_are_those_of_the_solution(tmp_path):
    solution = Solution.of(town(), [(0, [1, 2]), (0, [3])])
    assert check(solution.problem, solution).feasible
    _, _, first = features(solution, tmp_path / "it.geojson")[0]
    facts = solution.facts[0]
    assert (first["kind"], first["route"], first["depot"]) == ("route", 1, "yard")
    assert first["customers"] == ["Anna", "Böb"]
    assert (first["length"], first["max_load"], first["waiting"]) == (facts.length, 4, facts.waiting)
    by_name = {facts["name"]: facts for _, _, facts in features(solution, tmp_path / "it.geojson")[2:]}
    assert by_name["yard"] == {"kind": "depot", "name": "yard", "window": [0, None]}
    second = by_name["Böb"]
    assert (second["route"], second["stop"], second["pickup"], second["load"]) == (1, 2, 4, 4)
    assert second["window"] == [0, 9000]
    assert second["arrival"] == facts.stops[1].arrival


def test_a_depot_is_no_stop_where_vehicles_reload(tmp_path):
    problem = town(vehicle_types=[VehicleType(max_trips=2)])
    found = features(Solution.of(problem, [(0, [1, 2, 0, 3])]), tmp_path / "it.geojson")
    assert found[1][2] == {"kind": "depot", "name": "yard", "window": [0, None]}
    assert [facts["stop"] for _, _, facts in found[2:]] == [1, 2, 4]


def test_several_windows_are_all_told(tmp_path):
    windows = [[(3600, 5000), (6000, 7200)], [(0, 9000)], [(0, 9000)]]
    found = features(Solution.of(town(customer_windows=windows), [(0, [1, 2])]), tmp_path / "it.geojson")
    anna, bob = (facts for _, _, facts in found[2:4])
    assert ("window" in anna, anna["windows"]) == (False, [[3600, 5000], [6000, 7200]])
    assert (bob["window"], "windows" in bob) == ([0, 9000], False)


def test_who_stays_where_it_begins_has_a_line_of_two_ends(tmp_path):
    """By RFC 7946 a line has two or more positions."""
    problem = town(vehicle_types=[VehicleType(open=True, open_start=True)])
    kind, line, _ = features(Solution.of(problem, [(0, [1])]), tmp_path / "it.geojson")[0]
    assert (kind, line) == ("LineString", [[8.55, 47.37]] * 2)


def test_who_is_not_visited_is_on_the_map_all_the_same(tmp_path):
    solution = Solution.of(town(), [(0, [1])])
    assert not check(solution.problem, solution).feasible
    cleo = features(solution, tmp_path / "it.geojson")[-1][2]
    assert cleo["name"] == "Cleo"
    assert "route" not in cleo


@pytest.mark.parametrize("changes", [{"metric": "euclidean"}, {"coords": None}])
def test_without_longitude_and_latitude_there_is_no_map(changes, tmp_path):
    problem = town()
    problem = problem.replace(distance_matrix=problem.distances, **changes)
    with pytest.raises(ChainRouteError) as error:
        write_solution(Solution.of(problem, [(0, [1, 2]), (0, [3])]), tmp_path / "it.geojson")
    assert [fault.code for fault in error.value.faults] == ["cannot-express"]
    assert not list(tmp_path.iterdir())


def test_it_is_not_read(tmp_path):
    solution = Solution.of(town(), [(0, [1, 2]), (0, [3])])
    assert check(solution.problem, solution).feasible
    path = tmp_path / "it.geojson"
    write_solution(solution, path)
    for attempt in (lambda: read(path), lambda: read_solution(path, solution.problem)):
        with pytest.raises(ChainRouteError, match="is GeoJSON") as error:
            attempt()
        assert [fault.code for fault in error.value.faults] == ["unknown-format"]
