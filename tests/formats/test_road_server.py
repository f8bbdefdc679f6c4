"""Roads from a routing server: what is asked, what is kept, what fails, and plans on streets."""

import json
import math
import sqlite3
import sys
import threading
import time
from contextlib import closing, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from road_servers import METRES, STEP, Roads, serving
from typer.testing import CliRunner

from chainroute import ChainRouteError, check
from chainroute.cli.app import app
from chainroute.formats import read, read_solution, road_server
from chainroute.formats.road_server import RoadServer

CORNERS = np.array([(0, 0), (2, 0), (1, 2), (9, 9)]) * STEP  # the last on the island
# From corner to corner in streets: (1, 2) is left by the outer columns, since the middle one goes north only.
STREETS = np.array([[0, 2, 3, np.inf], [2, 0, 3, np.inf], [3, 3, 0, np.inf], [np.inf, np.inf, np.inf, 0]])


@pytest.fixture
def roads(monkeypatch, tmp_path):
    monkeypatch.setattr(road_server, "FIRST_PAUSE_SECONDS", 0.01)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return Roads()


@pytest.fixture
def url(roads):
    with serving(roads) as address:
        yield address


def fault_of(call):
    with pytest.raises(ChainRouteError) as caught:
        call()
    (fault,) = caught.value.faults
    return fault


# -- matrices


@pytest.mark.parametrize("kind", ["osrm", "valhalla", "ors"])
def test_metres_and_seconds_of_every_pair(kind, url):
    distances, durations = RoadServer(kind, url).matrices(CORNERS)
    assert np.allclose(distances, STREETS * METRES)
    assert np.allclose(durations, STREETS * METRES / 10)


def test_miles_are_not_taken_for_kilometres(roads, url):
    roads.units = "miles"
    distances, _ = RoadServer("valhalla", url).matrices(CORNERS)
    assert np.allclose(distances, STREETS * METRES)


@pytest.mark.parametrize("kind", ["osrm", "valhalla", "ors"])
def test_blocks_that_the_server_accepts(kind, roads, url):
    """70 places: by blocks of 50, or smaller ones where these are refused."""
    many = np.array([(i % 3, i // 3 % 3) for i in range(70)]) * STEP + np.arange(70)[:, None] * 1e-6
    distances, _ = RoadServer(kind, url).matrices(many)
    assert max(map(max, roads.asked)) == 50
    assert sum(a * b for a, b in roads.asked) == pytest.approx(70 * 70, rel=0.02)
    roads.asked.clear()
    roads.most = 40
    again, _ = RoadServer(kind, f"{url}/").matrices(many + 2e-6)
    assert max(map(max, roads.asked)) <= 40
    assert np.array_equal(distances, again)


def test_what_is_known_is_not_asked_again(roads, url):
    server = RoadServer("osrm", url)
    first = server.matrices(CORNERS)
    roads.asked.clear()
    assert all(map(np.array_equal, server.matrices(CORNERS[::-1]), (m[::-1, ::-1] for m in first)))
    assert roads.asked == []
    told = []
    server.matrices(
        np.vstack([CORNERS, [[2 * STEP, 2 * STEP]]]), lambda known, every: told.append((known, every))
    )
    assert sum(a * b for a, b in roads.asked) <= 10  # the new place, from and to the others
    assert (told[0], told[-1]) == ((17, 25), (25, 25))
    RoadServer("osrm", url, "cycling").matrices(CORNERS)
    assert roads.asked[-1] == (4, 4)


def test_what_is_old_is_asked_again(roads, url, monkeypatch):
    server = RoadServer("osrm", url)
    server.matrices(CORNERS)
    now = time.time()
    monkeypatch.setattr(road_server.time, "time", lambda: now + road_server.KEPT_SECONDS + 1)
    roads.asked.clear()
    server.matrices(CORNERS)
    assert roads.asked == [(4, 4)]


def test_without_a_place_to_keep_them(roads, url, tmp_path):
    (tmp_path / "file").write_text("")
    server = RoadServer("osrm", url, cache=tmp_path / "file" / "folder")
    assert np.allclose(server.matrices(CORNERS)[0], STREETS * METRES)
    (tmp_path / "roads.sqlite").write_bytes(b"no database" * 100)
    assert np.allclose(RoadServer("osrm", url, cache=tmp_path).matrices(CORNERS)[0], STREETS * METRES)


def test_a_user_without_a_home_keeps_none(url, monkeypatch):
    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(road_server.Path, "home", homeless)
    assert np.allclose(RoadServer("osrm", url).matrices(CORNERS)[0], STREETS * METRES)


def test_two_stops_at_one_door(url):
    distances, _ = RoadServer("osrm", url).matrices(np.repeat(CORNERS[:2], 2, axis=0))
    assert np.allclose(distances, np.kron(STREETS[:2, :2], np.ones((2, 2))) * METRES)


# -- faults


@pytest.mark.parametrize(
    "fault", ["slow", "half", "hang up", (429, {"Retry-After": "0"}), (503, {}), (500, {})]
)
def test_a_fault_that_passes(fault, roads, url, monkeypatch):
    monkeypatch.setattr(road_server, "ANSWER_SECONDS", 0.4)
    roads.faults = [fault, fault]
    assert np.allclose(RoadServer("osrm", url).matrices(CORNERS)[0], STREETS * METRES)


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ("slow", "does not answer within"),
        ("half", "not whole"),
        ("hang up", "nobody answers there"),
        ((429, {}), "fewer requests"),
        ((502, {}), "fails (502, busy)"),
    ],
)
def test_a_fault_that_stays(fault, told, roads, url, monkeypatch):
    monkeypatch.setattr(road_server, "ANSWER_SECONDS", 0.2)
    monkeypatch.setattr(road_server, "REQUEST_TRIES", 2)
    roads.faults = [fault] * 2
    found = fault_of(lambda: RoadServer("osrm", url).matrices(CORNERS))
    assert (found.code, found.where) == ("roads-unreachable", url)
    assert told in found.message


def test_a_server_that_says_when_is_not_asked_before(roads, url):
    roads.faults = [(429, {"Retry-After": "1"})]
    begin = time.monotonic()
    RoadServer("osrm", url).matrices(CORNERS)
    assert time.monotonic() - begin >= 1


def test_an_address_where_nobody_answers(monkeypatch, roads):
    monkeypatch.setattr(road_server, "REQUEST_TRIES", 2)
    found = fault_of(lambda: RoadServer("osrm", "http://127.0.0.1:9").matrices(CORNERS))
    assert found.code == "roads-unreachable"


def test_a_place_off_the_map_is_named(url):
    places = np.vstack([CORNERS, [[5.5, 5.25]]])
    found = fault_of(lambda: RoadServer("osrm", url).matrices(places))
    assert found.code == "roads-refused"
    assert "which is 5.5, 5.25" in found.message


def test_another_kind_of_server(roads, url):
    found = fault_of(lambda: RoadServer("osrm", f"{url}/elsewhere").matrices(CORNERS))
    assert (found.code, "404" in found.message) == ("roads-refused", True)
    roads.faults = ["rows"]
    assert fault_of(lambda: RoadServer("osrm", url).matrices(CORNERS)).code == "roads-not-understood"
    roads.answer = lambda *_: (200, {"hello": "world"})
    for kind in ("osrm", "valhalla", "ors"):
        assert (
            fault_of(lambda kind=kind: RoadServer(kind, url).matrices(CORNERS)).code == "roads-not-understood"
        )


def test_one_place_is_too_many(roads, url):
    roads.most = 0
    found = fault_of(lambda: RoadServer("osrm", url).matrices(CORNERS))
    assert (found.code, "Too many table coordinates" in found.message) == ("roads-refused", True)


def test_options_that_are_none():
    assert fault_of(lambda: RoadServer("google", "http://there")).where == "--roads"
    assert fault_of(lambda: RoadServer("osrm", "localhost:5000")).where == "--roads-url"


def test_without_its_library_the_extra_is_named(monkeypatch, roads):
    monkeypatch.setitem(sys.modules, "routingpy", None)
    found = fault_of(lambda: RoadServer("osrm", "http://127.0.0.1:9").matrices(CORNERS))
    assert (found.code, "chainroute[roads]" in found.message) == ("missing-extra", True)


# -- lines


@pytest.mark.parametrize("kind", ["osrm", "valhalla", "ors"])
def test_lines_follow_the_streets(kind, url):
    """Two streets, then three, each from crossing to crossing."""
    (line,) = RoadServer(kind, url).lines([CORNERS[:3]])
    assert (line[0], line[-1]) == (CORNERS[0].tolist(), CORNERS[2].tolist())
    steps = np.abs(np.diff(line, axis=0)).sum(axis=1)
    assert np.allclose(steps[steps > 0], STEP)
    assert (steps > 0).sum() == 5


@pytest.mark.parametrize("kind", ["osrm", "valhalla", "ors"])
def test_a_server_without_lines(kind, roads, url):
    roads.tells_lines = False
    found = fault_of(lambda: RoadServer(kind, url).lines([CORNERS[:3]]))
    assert (found.code, "without points" in found.message) == ("roads-not-understood", True)


def test_a_long_line_is_asked_for_in_parts(url):
    path = np.array([(i % 2, 0) for i in range(50)]) * STEP
    (line,) = RoadServer("osrm", url).lines([path])
    assert np.allclose(line, path)


# -- from the command

STOPS = """name,lon,lat,delivery,service (min),opens,closes
depot,0,0,,,08:00,12:00
A,0.02,0,4,5,08:02,09:00
B,0.01,0.02,4,5,,11:00
"""


@pytest.fixture
def stops(tmp_path):
    (tmp_path / "stops.csv").write_text(STOPS)
    (tmp_path / "vehicles.csv").write_text("capacity,speed (km/h)\n9,999\n")
    return tmp_path / "stops.csv"


def run(*args):
    result = CliRunner().invoke(app, [str(arg) for arg in args])
    assert "Traceback" not in result.output
    return result


def test_a_plan_on_streets(stops, url, tmp_path):
    """8 streets of 700 m in a round trip of A and B; 70 s each, whatever speed the table has."""
    options = ("--roads", "osrm", "--roads-url", url)
    result = run("solve", stops, *options, "--solver", "milp", "-o", tmp_path / "it.geojson", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["cost"] == 8 * METRES
    features = json.loads((tmp_path / "it.geojson").read_text())["features"]
    line = next(f["geometry"]["coordinates"] for f in features if f["properties"]["kind"] == "route")
    assert len(line) == 9
    (tmp_path / "plan.json").write_text(result.stdout)
    assert run("check", stops, tmp_path / "plan.json", *options).exit_code == 0
    assert run("convert", stops, tmp_path / "it.json", *options).exit_code == 0
    p = read(tmp_path / "it.json")
    assert (p.day, p.durations[0, 1]) == ("any", 140)
    assert check(p, read_solution(tmp_path / "plan.json", p)).feasible


def test_lines_are_straight_where_none_are_told(stops, roads, url, tmp_path):
    """What was found is written all the same, and a note says why."""
    roads.tells_lines = False
    result = run("solve", stops, "--roads", "osrm", "--roads-url", url, "-o", tmp_path / "it.geojson")
    assert result.exit_code == 0, result.output
    assert "Note: the lines are straight" in result.stderr
    features = json.loads((tmp_path / "it.geojson").read_text())["features"]
    line = next(f["geometry"]["coordinates"] for f in features if f["properties"]["kind"] == "route")
    assert len(line) == 4  # the depot, two stops, the depot


def test_no_road_is_no_road(stops, url):
    """A stop on the island is refused by name."""
    stops.write_text(STOPS + "Robinson,0.09,0.09,1,,,\n")
    result = run("solve", stops, "--roads", "valhalla:truck", "--roads-url", url)
    assert result.exit_code == 2
    assert "no-road" in result.stderr
    assert "Robinson" in result.stderr


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("plane.csv", "name,x,y\ndepot,0,0\nA,1,1\n", "bad-option"),
        ("plain.csv", "name,lon,lat,opens\ndepot,0,0,\nA,0.01,0,5\n", "unit-missing"),
        ("own.csv", "name,lon,lat\ndepot,0,0\nA,1,1\n\ndistances,depot,A\ndepot,0,1\nA,1,0\n", "bad-option"),
        ("it.vrp", "NAME : x\nTYPE : CVRP\nDIMENSION : 1\n", "bad-option"),
        (
            "it.json",
            '{"capacity": 1, "depots": [{"lon": 0, "lat": 0}],'
            ' "customers": [{"lon": 0, "lat": 0, "window": [0, 9]}]}',
            "unit-missing",
        ),
    ],
)
def test_problems_that_are_not_on_the_map(name, content, code, tmp_path, url, roads):
    (tmp_path / name).write_text(content)
    result = run("info", tmp_path / name, "--roads", "osrm", "--roads-url", url)
    assert (result.exit_code, code in result.stderr) == (2, True), result.output
    assert roads.asked == []


@pytest.mark.parametrize("options", [["--roads", "osrm"], ["--roads-url", "http://there"], ["--roads", "x"]])
def test_half_of_the_options(options, stops):
    result = run("info", stops, *options)
    assert (result.exit_code, "--roads" in result.stderr) == (2, True)


def test_a_json_problem_on_roads(tmp_path, url):
    document = {
        "capacity": 9,
        "day": "any",
        "depots": [{"lon": 0, "lat": 0}],
        "customers": [{"lon": 2 * STEP, "lat": 0, "delivery": 1, "window": [100, 200]}],
    }
    (tmp_path / "it.json").write_text(json.dumps(document))
    p = read(tmp_path / "it.json", roads=RoadServer("osrm", url).matrices)
    assert p.distances.tolist() == [[0, 2 * METRES], [2 * METRES, 0]]
    assert math.isclose(p.durations[0, 1], 140)


# -- answers are judged before they are kept

FAR = np.array([[0.0, 0.0], [1.0, 0.0]])  # 111 km apart


def table(metres, seconds):
    return {"code": "Ok", "distances": [[0, metres], [metres, 0]], "durations": [[0, seconds], [seconds, 0]]}


EVIL = {
    "absurdly long": table(1e308, 1),
    "no way at all": table(0, 0),
    "faster than anything": table(120_000, 1),
    "true": table(True, 5000),
    "a text": table("120000", 5000),
    "negative": table(-5, 5000),
    "a long whole number": table(10**400, 5000),
    "nested": "[" * 200_000,
    "a list": [],
    "another shape": {"distances": [[0]], "durations": [[0]]},
    "large": " " * 1_100_000 + "{}",
}


class Answering(BaseHTTPRequestHandler):
    content, status, headers_, drip = b"", 200, (), 0.0

    def do_GET(self):
        self.send_response(self.status)
        for header in self.headers_:
            self.send_header(*header)
        self.end_headers()
        with suppress(OSError):
            for i in range(len(self.content) if self.drip else 1):
                time.sleep(self.drip)
                self.wfile.write(self.content[i : i + 1] if self.drip else self.content)

    def log_message(self, *_):
        pass


@contextmanager
def answering(**how):
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Evil", (Answering,), how))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


def kept(folder):
    with closing(sqlite3.connect(folder / "roads.sqlite")) as store:
        return store.execute("select count(*) from pairs").fetchone()[0]


@pytest.mark.parametrize("what", EVIL)
def test_nonsense_is_refused_and_not_kept(what, tmp_path, monkeypatch):
    monkeypatch.setattr(road_server, "ANSWER_BYTES", 1_000_000)
    monkeypatch.setattr(road_server, "FIRST_PAUSE_SECONDS", 0.001)
    given = EVIL[what] if isinstance(EVIL[what], str) else json.dumps(EVIL[what])
    with answering(content=given.encode()) as url, pytest.raises(ChainRouteError) as caught:
        RoadServer("osrm", url, cache=tmp_path).matrices(FAR)
    assert caught.value.faults[0].code in ("roads-not-understood", "roads-unreachable", "roads-refused")
    assert kept(tmp_path) == 0


def test_what_was_kept_is_judged_again(tmp_path):
    with answering(content=json.dumps(table(120_000, 5000)).encode()) as url:
        server = RoadServer("osrm", url, cache=tmp_path)
        assert server.matrices(FAR)[0].tolist() == [[0, 120_000], [120_000, 0]]
        for poison in (1e308, 0.0, "text", -1.0, b"x"):
            with closing(sqlite3.connect(tmp_path / "roads.sqlite")) as store:
                store.execute("update pairs set metres = ?", (poison,))
                store.commit()
            assert server.matrices(FAR)[0].tolist() == [[0, 120_000], [120_000, 0]]


def test_an_answer_that_drips_is_not_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(road_server, "ANSWER_SECONDS", 0.5)
    monkeypatch.setattr(road_server, "REQUEST_TRIES", 1)
    begin = time.monotonic()
    with (
        answering(content=b"[" * 100, drip=0.1) as url,
        pytest.raises(ChainRouteError, match="does not answer within"),
    ):
        RoadServer("osrm", url, cache=tmp_path).matrices(FAR)
    assert time.monotonic() - begin < 5


def test_a_redirect_leads_to_no_other_host(tmp_path):
    with answering(content=json.dumps(table(120_000, 5000)).encode()) as good:
        elsewhere = good.replace("127.0.0.1", "localhost")
        away = answering(status=302, headers_=[("Location", elsewhere)])
        with away as url, pytest.raises(ChainRouteError, match="another host"):
            RoadServer("osrm", url, cache=tmp_path).matrices(FAR)
        with answering(status=302, headers_=[("Location", good)]) as url:
            assert RoadServer("osrm", url, cache=tmp_path).matrices(FAR)[0][0, 1] == 120_000
    again = answering(status=302, headers_=[("Location", "/again")])
    with again as url, pytest.raises(ChainRouteError, match="on and on"):
        RoadServer("osrm", url, cache=tmp_path / "new").matrices(FAR)
