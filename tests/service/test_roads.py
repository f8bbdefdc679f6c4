"""The service on roads: measured and drawn by the routing server that its operator has named."""

import json
import sys

import numpy as np
import pytest
from road_servers import METRES, PROBLEM, STEP, Roads, serving
from services import application, codes, listening
from typer.testing import CliRunner

from chainroute.cli.app import app
from chainroute.formats import road_server
from chainroute.formats.road_server import RoadServer
from chainroute.service import requests

ROUTES = {"routes": [{"customers": ["A", "B"]}]}
BOTH = {"problem": PROBLEM, "solution": ROUTES}
TABLE = f"name,lon,lat,delivery\ndepot,0,0,\nA,{2 * STEP},0,4\nB,{STEP},{2 * STEP},4\n\ncount,capacity\n1,9\n"


@pytest.fixture(scope="module")
def roads():
    return Roads()


@pytest.fixture(scope="module")
def url(roads):
    with serving(roads) as address:
        yield address


@pytest.fixture(scope="module")
def client(url, tmp_path_factory):
    server = RoadServer("osrm", url, cache=tmp_path_factory.mktemp("roads"))
    with listening(application(roads=server)) as client:
        yield client


@pytest.fixture(scope="module")
def without():
    with listening(application()) as client:
        yield client


def test_roads_are_asked_for_and_else_not_used(client):
    """8 streets in a round trip by A and B; or what the globe measures, 7197 m, as a street has only 700."""
    assert client.get("/v1/health").json()["roads"] == "osrm"
    on_roads = client.post("/v1/check?roads=true", json=BOTH).json()
    assert (on_roads["feasible"], on_roads["cost"]) == (True, 8 * METRES)
    assert client.post("/v1/check", json=BOTH).json()["cost"] == pytest.approx(7197, abs=1)


def test_a_job_on_roads(client):
    """As JSON, as a file, and as a table by itself."""
    order = {"problem": PROBLEM, "time_limit": 0.1}
    place, kind = "/v1/solve?wait=true&roads=true", {"Content-Type": "text/csv"}
    form = {"files": {"file": ("stops.csv", TABLE)}, "data": {"time_limit": "0.1"}}
    for body in ({"json": order}, form, {"content": TABLE, "headers": kind}):
        job = client.post(place, **body).json()
        assert (job["status"], job["cost"]) == ("done", 8 * METRES)


def test_an_order_on_roads_is_another_one(client):
    """The same key for straight lines and for roads would be one job for two."""
    key, order = {"Idempotency-Key": "monday"}, {"problem": PROBLEM, "time_limit": 0.1}
    assert client.post("/v1/solve?roads=true", json=order, headers=key).status_code == 202
    assert codes(client.post("/v1/solve", json=order, headers=key)) == [("key-reused", "Idempotency-Key")]


def test_a_file_is_read_with_the_matrices_of_the_roads(client):
    found = client.post("/v1/read?roads=true", content=TABLE, headers={"Content-Type": "text/csv"}).json()
    assert found["problem"]["distances"][0] == [0, 2 * METRES, 3 * METRES]
    assert found["problem"]["speed"] == 10  # as the durations are a tenth of the distances


def line(answer):
    assert answer.status_code == 200, answer.text
    features = answer.json()["features"]
    (found,) = (f["geometry"]["coordinates"] for f in features if f["properties"]["kind"] == "route")
    return np.array(found)


def test_lines_follow_the_streets_or_are_straight(client):
    streets = line(client.post("/v1/geojson?roads=true", json=BOTH))
    assert np.allclose(np.abs(np.diff(streets, axis=0)).sum(axis=1), STEP)
    assert len(streets) == 9
    assert len(line(client.post("/v1/geojson", json=BOTH))) == 4


def test_a_server_that_tells_no_lines(client, roads):
    roads.tells_lines = False
    try:
        answer = client.post("/v1/geojson?roads=true", json=BOTH)
    finally:
        roads.tells_lines = True
    assert (answer.status_code, codes(answer)) == (502, [("roads-not-understood", "roads")])


def test_without_a_routing_server_it_is_said(without):
    assert without.get("/v1/health").json()["roads"] is None
    for place in ("check", "geojson", "solve", "read"):
        body = {"files": {"file": ("a.json", json.dumps(PROBLEM))}} if place == "read" else {"json": BOTH}
        answer = without.post(f"/v1/{place}?roads=true", **body)
        assert (answer.status_code, codes(answer)) == (422, [("no-road-server", "roads")])


def test_the_address_of_the_server_is_no_part_of_a_request(client, url):
    """Whoever could name one could have the service look into places that only it can reach."""
    for field in ("roads", "roads_url", "roads-url"):
        answer = client.post("/v1/solve", json={"problem": PROBLEM, field: "http://127.0.0.1:9"})
        assert codes(answer) == [("unknown-field", field)]
        assert client.post("/v1/check?roads=http://127.0.0.1:9", json=BOTH).status_code == 422


@pytest.mark.parametrize(
    ("problem", "code", "status"),
    [
        ({**PROBLEM, "customers": [{"x": 1, "y": 1}], "depots": [{"x": 0, "y": 0}]}, "bad-option", 422),
        ({**PROBLEM, "customers": [{"lon": 5.5, "lat": 5.5}]}, "roads-refused", 422),
        ({**PROBLEM, "customers": [{"lon": 0, "lat": 0.01, "service": 5}]}, "unit-missing", 422),
    ],
)
def test_what_roads_cannot_be_measured_of(client, url, problem, code, status):
    """A plane, a place off the map, times without a unit; told without the server's address."""
    answer = client.post("/v1/solve?roads=true", json={"problem": problem})
    assert (answer.status_code, codes(answer)[0][0]) == (status, code)
    assert url not in answer.text


def test_a_server_that_is_gone_or_slow(monkeypatch, url, tmp_path):
    """It is told within its time, without its address; and meanwhile others are served."""
    gone = RoadServer("osrm", "http://127.0.0.1:9", cache=tmp_path)
    monkeypatch.setattr(requests, "ROADS_SECONDS", 0.5)  # its five tries take longer
    with listening(application(roads=gone)) as client:
        answer = client.post("/v1/check?roads=true", json=BOTH)
        assert (answer.status_code, codes(answer)) == (502, [("roads-unreachable", "roads")])
        assert "127.0.0.1:9" not in answer.text
        assert client.post("/v1/check", json=BOTH).status_code == 200


def test_the_command_says_which_server(monkeypatch):
    """The options are those of `solve`; what is wrong with them, or missing, is told before it begins."""
    given = []
    monkeypatch.setattr("chainroute.service.server.serve", lambda settings, *_: given.append(settings.roads))

    def run(*options):
        return CliRunner().invoke(app, ["serve", *options])

    options = ("--roads", "valhalla:truck", "--roads-url", "http://localhost:8002/")
    assert run(*options).exit_code == 0
    assert run().exit_code == 0
    assert given == [RoadServer("valhalla", "http://localhost:8002", "truck"), None]
    assert "[bad-option] --roads: needs --roads-url" in run(*options[:2]).stderr
    assert "[bad-option] --roads-url: needs --roads" in run(*options[2:]).stderr
    monkeypatch.setitem(sys.modules, "routingpy", None)
    assert "chainroute[roads]" in run(*options).stderr


def test_what_is_kept_is_bounded(url, roads, tmp_path, monkeypatch):
    """Beyond its bound nothing more is kept, and every request is answered all the same."""
    monkeypatch.setattr(road_server, "KEPT_PAGES", 3)
    server = RoadServer("osrm", url, cache=tmp_path)
    places = np.array([(i % 3, i // 3 % 3) for i in range(40)]) * STEP + np.arange(40)[:, None] * 1e-6
    first, _ = server.matrices(places)
    assert (tmp_path / "roads.sqlite").stat().st_size <= 3 * 4096
    roads.asked.clear()
    again, _ = server.matrices(places)
    assert roads.asked == [(40, 40)]
    assert np.array_equal(first, again)
