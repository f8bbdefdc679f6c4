"""service/: addresses, jobs and their events, who may ask and how much. The solver does as it is told."""

import base64
import hmac
import json
import re
import sys
import threading
import time
from collections import defaultdict
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import jsonschema
import pytest
from problems import invent
from prometheus_client.parser import text_string_to_metric_families
from services import TWO_STOPS, Solver, application, codes, judged, listening, until
from typer.testing import CliRunner

from chainroute import VARIANTS, formats, variant
from chainroute.cli.app import app
from chainroute.errors import Fault
from chainroute.formats import json as our_json
from chainroute.formats import read
from chainroute.formats.tables.grids import Sheet, write_workbook
from chainroute.service import documents, reading, webhook
from chainroute.service.examples import FOLDER, TITLES, example
from chainroute.service.settings import Settings

LONG = 20.0  # seconds: a job that only ends when it is cancelled, and of which one place is kept free
SHORT = 4.9  # seconds: a job that may have any place


@pytest.fixture(scope="module")
def client():
    with listening(application()) as client:
        yield client


def order(name="two stops", time_limit=0.1, **more):
    return {"problem": {**TWO_STOPS, "name": name}, "time_limit": time_limit, **more}


def submit(client, name="two stops", time_limit=LONG, **more):
    answer = client.post("/v1/solve", json=order(name, time_limit, **more))
    assert answer.status_code == 202, answer.text
    return answer.json()["links"]["job"]


def job(client, place):
    return client.get(place).json()


# -- what there is


def test_variants_are_the_48(client):
    found = client.get("/v1/variants").json()
    assert [v["name"] for v in found] == [v.name for v in VARIANTS]
    mixed = next(v for v in found if v["name"] == "MDOVRPMBLTW")
    assert mixed == {
        "name": "MDOVRPMBLTW",
        "multi_depot": True,
        "open": True,
        "backhaul": "mixed",
        "limit": True,
        "time_windows": True,
        "seen": False,
    }


def test_examples_are_problems(client):
    """Each is listed with its size and variant, and its document reads back as the problem."""
    listed = client.get("/v1/examples").json()
    assert set(TITLES) == {e["name"] for e in listed}
    assert {path.stem for path in FOLDER.iterdir() if not read(path).extras} <= set(TITLES)
    for entry in listed:
        document = client.get(f"/v1/examples/{entry['name']}").text
        problem = our_json.read(document, "x", None)
        assert problem == example(entry["name"])
        assert (entry["customers"], entry["variant"]) == (problem.num_customers, problem.kind)


def test_health_says_what_is_allowed(client):
    health = client.get("/v1/health").json()
    assert health["status"] == "ok"
    limits = {"max_bytes": 20_000_000, "max_customers": 2000, "max_name": 200, "max_time_limit": 60.0}
    assert health["limits"] == limits


@pytest.mark.parametrize("suffix", ["vrp", "json", "txt", "npz"])
def test_a_file_of_any_format_becomes_a_document(client, suffix, tmp_path):
    problem = invent(variant("VRPTW" if suffix == "txt" else "CVRP"), 1).replace(name="file")
    path = tmp_path / f"file.{suffix}"
    formats.write(problem, path)
    answer = client.post("/v1/read", files={"file": (path.name, path.read_bytes())}).json()
    assert answer["variant"] == problem.variant.name
    assert our_json.read(json.dumps(answer["problem"]), "x", None) == formats.read(path)


def test_one_problem_of_several_is_chosen_by_its_index(client, tmp_path):
    problems = [invent(variant("CVRP"), seed) for seed in range(3)]
    formats.write(problems, tmp_path / "some.npz")
    data = (tmp_path / "some.npz").read_bytes()
    answer = client.post("/v1/read", files={"file": ("some.npz", data)}, data={"index": "2"})
    assert answer.json()["problem"]["name"] == "some[2]"
    assert codes(client.post("/v1/read", files={"file": ("some.npz", data)})) == [("bad-option", "index")]


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("../../etc/passwd.json", "passwd"),
        ("..\\..\\boot.ini", "boot"),
        ("/", "upload"),
        ("..", "upload"),
        ("a\x00b\n<script>.json", "a00b0Ascript"),
        ("x" * 300, "x" * 60),
    ],
)
def test_of_a_files_name_only_a_harmless_stem_is_kept(client, name, kept):
    document = {key: value for key, value in TWO_STOPS.items() if key != "name"}
    answer = client.post("/v1/read", files={"file": (name, json.dumps(document))})
    assert answer.json()["problem"]["name"] == kept


def test_the_judge_answers_with_times_and_loads(client):
    """By hand: left at 5, 5 to Ada, who opens at 10 and takes 2, then 5 to Bob at 17, and home at 27."""
    routes = {"routes": [{"customers": ["Ada", "Bob"]}]}
    verdict = client.post("/v1/check", json={"problem": TWO_STOPS, "solution": routes}).json()
    assert (verdict["feasible"], verdict["cost"], verdict["violations"]) == (True, 20, [])
    ada = {"customer": "Ada", "arrival": 10, "waiting": 0, "start": 10, "departure": 12}
    bob = {"customer": "Bob", "arrival": 17, "waiting": 0, "start": 17, "departure": 17}
    stops = [{**ada, "load": 3, "distance": 5}, {**bob, "load": 0, "distance": 10}]
    assert verdict["solution"]["routes"][0]["stops"] == stops
    assert verdict["solution"]["routes"][0]["end"] == 27


@pytest.mark.parametrize(
    "text",
    ["Route #1: 1 2\nCost 20\n", '{"routes": [{"customers": ["Ada", "Bob"]}], "problem_document": {}}'],
)
def test_the_judge_takes_the_text_of_a_solution_file(client, text):
    """They are taken in any format; whatever else stands in a JSON solution is passed over."""
    verdict = client.post("/v1/check", json={"problem": TWO_STOPS, "solution": text}).json()
    assert (verdict["feasible"], verdict["cost"]) == (True, 20)


def test_the_judge_takes_a_workbook_of_routes(client):
    """In base64, as an address such as browsers make of a file."""
    routes = [["route", "position", "name"], [1, 1, "Ada"], [1, 2, "Bob"]]
    coded = base64.b64encode(write_workbook([Sheet(routes, "routes")])).decode()
    for kind in ("", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"):
        request = {"problem": TWO_STOPS, "solution": f"data:{kind};base64,{coded}"}
        assert client.post("/v1/check", json=request).json()["cost"] == 20


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("data:;base64,UEs!", "bad-syntax"),
        ("data:;base64,/wD/", "not-text"),
        ("data:text/plain,Route", "unknown-format"),
        ("Route #1: 1 2 9\n", "unknown-location"),
        ("Route #1: one\n", "bad-syntax"),
        ("", "file-empty"),
        ("<svg/>", "unknown-format"),
    ],
)
def test_a_text_that_is_no_solution_is_told(client, text, code):
    answer = client.post("/v1/check", json={"problem": TWO_STOPS, "solution": text})
    assert answer.status_code == 422
    assert answer.json()["error"]["faults"][0]["code"] == code


def test_broken_rules_are_an_answer_and_no_error(client):
    routes = {"routes": [{"customers": ["Bob", "Ada"]}, {"customers": []}]}
    late = {**TWO_STOPS, "capacity": 8}
    verdict = client.post("/v1/check", json={"problem": late, "solution": routes}).json()
    assert [v["code"] for v in verdict["violations"]] == ["capacity-exceeded"]
    assert [len(route["stops"]) for route in verdict["solution"]["routes"]] == [2, 0]


# -- jobs


def test_a_job_ends_with_the_best_solution_and_how_it_came(client):
    answer = client.post("/v1/solve?wait=true", json=order())
    found = answer.json()
    problem = our_json.read(json.dumps(TWO_STOPS), "", None)
    assert (answer.status_code, found["status"], found["position"]) == (200, "done", None)
    assert [point["source"] for point in found["history"]] == ["policy", "polish"]
    assert [point["cost"] for point in found["history"]] == [30, 20]
    assert judged(problem, found["solution"]) == 20
    assert judged(problem, found["first"]) == 30
    assert found["notes"] == ["all went well"]
    assert found["solution"]["routes"][0]["stops"][1]["customer"] == "Bob"
    assert "schedule" not in found["solution"]


@pytest.mark.parametrize("prefer", ["wait", "wait=10", "respond-async, wait=10; x=1", "WAIT=10"])
def test_a_header_can_ask_to_wait(client, prefer):
    answer = client.post("/v1/solve", json=order(), headers={"Prefer": prefer})
    assert (answer.status_code, answer.json()["status"]) == (200, "done")
    assert answer.headers["Preference-Applied"].lower() in prefer.lower()


def test_who_waits_for_some_seconds_is_then_told_where_the_job_is(client):
    begin = time.monotonic()
    answer = client.post("/v1/solve", json=order(time_limit=LONG), headers={"Prefer": "wait=1"})
    assert 0.9 < time.monotonic() - begin < LONG / 2
    assert (answer.status_code, answer.json()["status"]) == (202, "running")
    assert client.delete(answer.headers["Location"]).json()["status"] == "cancelled"
    for strange in ("wait=soon", "wait=-1", "handling=lenient", "waits"):
        assert client.post("/v1/solve", json=order(), headers={"Prefer": strange}).status_code == 202


def test_a_file_can_be_solved(client):
    files = {"file": ("parcels.vrp", (FOLDER / "parcels.vrp").read_bytes())}
    answer = client.post("/v1/solve?wait=true", files=files, data={"time_limit": "0.1", "seed": "3"})
    assert (answer.json()["problem_name"], answer.json()["status"]) == ("parcels", "done")


def test_a_table_can_be_solved_as_it_is(client):
    """Stops and vehicles below each other, or as the sheets of a workbook."""
    text = "name,x,y,demand\ndepot,0,0,\nA,3,4,5\n\ncount,capacity\n1,9\n"
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
    stops, vehicles = ([row.split(",") for row in part.split("\n") if row] for part in text.split("\n\n"))
    book = write_workbook([Sheet(stops, "stops"), Sheet(vehicles, "vehicles")])
    for content, header in ((text, "text/csv; charset=utf-8"), (book, kind)):
        headers = {"Content-Type": header, "Prefer": "wait"}
        answer = client.post("/v1/solve", content=content, headers=headers).json()
        assert (answer["problem_name"], answer["cost"]) == ("stops", 10)
        read = client.post("/v1/read", content=content, headers=headers).json()
        assert (read["problem"]["capacity"], read["notes"]) == (9, [])


def test_columns_that_are_not_read_are_noted(client):
    """In the answer, and in that of a job, where nobody looks at the problem between."""
    text = "name,x,y,Cantidad,Tel\ndepot,0,0,,\nA,3,4,5,0123\n"
    headers = {"Content-Type": "text/csv", "Prefer": "wait"}
    notes = ["row 1: 'Cantidad', 'Tel' are no headings of stops, and not read."]
    assert client.post("/v1/read", content=text, headers=headers).json()["notes"] == notes
    job = client.post("/v1/solve", content=text, headers=headers).json()
    assert (job["cost"], job["notes"][:1]) == (10, notes)


def test_whole_numbers_of_an_order_may_be_written_with_a_point():
    body = json.dumps(order(seed=3.0, effort={"starts": 2.0, "samples": 4.0})).encode()
    read = reading.read_solve(body, Settings())
    assert (read.seed, read.effort.starts, read.effort.samples) == (3, 2, 4)
    assert isinstance(read.seed, int)


def test_a_given_start_reaches_the_solver():
    starts = []

    def solver(*args, initial, **options):
        starts.append(initial)
        return Solver()(*args, initial=initial, **options)

    with listening(application(solver)) as client:
        start = {"routes": [{"customers": ["Bob"]}, {"customers": ["Ada"]}]}
        client.post("/v1/solve?wait=true", json=order(initial=start))
        client.post("/v1/solve?wait=true", json=order(effort={"polish": False, "samples": 4}))
    assert [route.visits for route in starts[0].routes] == [(2,), (1,)]
    assert starts[1] is None


def test_a_cancelled_job_keeps_the_best_so_far():
    solver = Solver()
    with listening(application(solver)) as client:
        place = submit(client)
        until(lambda: job(client, place)["history"])
        found = client.delete(place).json()
        assert (found["status"], found["solution"]["cost"]) == ("cancelled", 30)
        assert client.delete(place).json() == found == job(client, place)
        until(lambda: solver.stopped)


def test_a_failure_of_ours_tells_nothing_of_the_machine(client):
    found = client.post("/v1/solve?wait=true", json=order("broken")).json()
    assert found["status"] == "failed"
    assert [fault["code"] for fault in found["error"]["faults"]] == ["internal-error"]
    assert "secret" not in json.dumps(found)


def test_the_page_begins_with_what_the_judge_says():
    """Its routes and their verdict are stored, so that they are shown before the service can judge."""
    stored = json.loads((Path(documents.__file__).parent / "page/assets/first.json").read_text())
    problem = example("dairy")
    solution = our_json.to_solution({"routes": stored["solution"]["routes"]}, problem)
    assert json.loads(documents.encoded(documents.verdict(problem, solution))) == stored
    assert stored["feasible"]


def test_faults_that_others_made_up_for_are_told_without_the_machine():
    """What a library said is in the log."""
    fault = Fault(
        "solver-failed", "the solver stopped.", "PyVRP", "Try again.", "no file /opt/some/where.json"
    )

    def solver(*args, **options):
        return replace(Solver()(*args, **options), faults=(fault,))

    with listening(application(solver)) as client:
        notes = client.post("/v1/solve?wait=1", json=order()).json()["notes"]
    assert notes == ["all went well", "[solver-failed] PyVRP: the solver stopped. Try again."]


def test_a_job_that_nobody_searched_has_failed_and_keeps_its_plan():
    fault = Fault("solver-failed", "the solver stopped.", "PyVRP", "Try again.")

    def solver(*args, **options):
        return replace(Solver()(*args, **options), faults=(fault,), failed=True)

    with listening(application(solver)) as client:
        found = client.post("/v1/solve?wait=1", json=order()).json()
    assert found["status"] == "failed"
    assert [(f["code"], f["field"]) for f in found["error"]["faults"]] == [("solver-failed", "PyVRP")]
    assert found["solution"]["routes"]


def test_jobs_wait_in_line_and_the_line_is_bounded():
    with listening(application(running=1, queued=2)) as client:
        places = [submit(client, f"job {i}") for i in range(3)]
        assert [job(client, place)["position"] for place in places] == [None, 1, 2]
        full = client.post("/v1/solve", json=order())
        assert (full.status_code, codes(full)) == (503, [("busy", "")])
        assert 1 <= int(full.headers["Retry-After"]) <= 60
        client.delete(places[1])
        assert job(client, places[2])["position"] == 1
        client.delete(places[0])
        until(lambda: job(client, places[2])["status"] == "running")


def test_short_jobs_overtake_long_ones_and_long_ones_leave_a_place():
    """Three long jobs on three places: two run, and the short one goes past the third."""
    solver = Solver()
    with listening(application(solver, running=3)) as client:
        long = [submit(client, f"long {i}") for i in range(3)]
        short = client.post("/v1/solve?wait=true", json=order("short")).json()
        assert short["status"] == "done"
        assert sorted(solver.begun) == ["long 0", "long 1", "short"]
        assert job(client, long[2])["status"] == "queued"
        client.delete(long[0])
        until(lambda: "long 2" in solver.begun)


def test_a_long_job_is_not_overtaken_for_ever():
    """It asks for ten seconds, and is overtaken only by those that could end before it had its own."""
    solver = Solver()
    with listening(application(solver, running=1)) as client:
        first = submit(client, "first", LONG)
        ten = submit(client, "ten", 10.0)
        time.sleep(0.2)
        submit(client, "five", 5.0)
        late = submit(client, "late", 9.9)
        client.delete(first)
        until(lambda: len(solver.begun) == 2)
        assert solver.begun == ["first", "five"]
        assert [job(client, place)["position"] for place in (ten, late)] == [1, 2]


def test_old_jobs_are_forgotten():
    with listening(application(keep_jobs=2)) as client:
        places = [f"/v1/jobs/{client.post('/v1/solve?wait=1', json=order()).json()['id']}" for _ in range(3)]
        assert [client.get(place).status_code for place in places] == [404, 200, 200]
        assert codes(client.get(places[0])) == [("unknown-job", "id")]
    with listening(application(keep_seconds=0.2)) as client:
        place = f"/v1/jobs/{client.post('/v1/solve?wait=1', json=order()).json()['id']}"
        assert client.get(place).status_code == 200
        until(lambda: client.get(place).status_code == 404)
    with listening(application(keep_bytes=1)) as client:
        place = f"/v1/jobs/{client.post('/v1/solve?wait=1', json=order()).json()['id']}"
        assert client.get(place).status_code == 404


def test_jobs_are_listed_newest_first_with_their_times():
    with listening(application(running=1, keep_seconds=100)) as client:
        done = client.post("/v1/solve?wait=1", json=order("done")).json()
        running, queued = submit(client, "running"), submit(client, "queued")
        jobs = client.get("/v1/jobs").json()["jobs"]
        assert [(j["problem_name"], j["status"], j["position"]) for j in jobs] == [
            ("queued", "queued", 1),
            ("running", "running", None),
            ("done", "done", None),
        ]
        assert jobs[2] == {key: done[key] for key in jobs[2]}
        assert (jobs[0]["started"], jobs[1]["ended"], jobs[1]["expires"]) == (None, None, None)
        moments = [datetime.fromisoformat(done[key]) for key in ("created", "started", "ended", "expires")]
        assert moments == sorted(moments)
        assert abs(datetime.now(UTC) - moments[0]).total_seconds() < 60
        assert (moments[3] - moments[2]).total_seconds() == pytest.approx(100, abs=0.01)
        assert [j["status"] for j in client.get("/v1/jobs?status=queued").json()["jobs"]] == ["queued"]
        assert len(client.get("/v1/jobs?limit=2").json()["jobs"]) == 2
        assert codes(client.get("/v1/jobs?limit=0")) == [("wrong-type", "limit")]
        assert codes(client.get("/v1/jobs?status=ready")) == [("wrong-type", "status")]
        for place in (queued, running):
            client.delete(place)


def test_an_order_with_a_key_is_one_job_however_often_it_is_sent():
    solver = Solver()
    with listening(application(solver, keep_jobs=3)) as client:

        def send(key, body, **headers):
            return client.post("/v1/solve", json=body, headers={"Idempotency-Key": key, **headers})

        first = send("monday", order("a"))
        assert send("monday", order("a")).json()["id"] == first.json()["id"]
        assert send("tuesday", order("a")).json()["id"] != first.json()["id"]
        again = send("monday", order("a"), Prefer="wait")
        assert (again.status_code, again.json()["id"]) == (200, first.json()["id"])
        other = send("monday", order("b"))
        assert (other.status_code, codes(other)) == (422, [("key-reused", "Idempotency-Key")])
        assert send("x" * 201, order("a")).status_code == 422
        # One who waited and lost the connection finds the job again.
        with pytest.raises(Exception, match="timed out"):
            client.post(
                "/v1/solve?wait=1", json=order("c", 1.0), headers={"Idempotency-Key": "lost"}, timeout=0.5
            )
        assert send("lost", order("c", 1.0), Prefer="wait").json()["status"] == "done"
        # With the job its key is forgotten.
        for i in range(3):
            client.post("/v1/solve?wait=1", json=order(f"more {i}"))
        assert send("monday", order("a")).json()["id"] != first.json()["id"]
    assert solver.begun.count("c") == 1


def test_large_answers_are_compressed_and_events_are_not(client):
    whole = client.get("/v1/examples/city", headers={"Accept-Encoding": "identity"})
    small = client.get("/v1/examples/city", headers={"Accept-Encoding": "gzip"})
    assert small.headers["content-encoding"] == "gzip"
    assert "content-encoding" not in whole.headers
    assert small.json() == whole.json()
    place = submit(client, time_limit=0.1)
    stream = client.get(f"{place}/events", headers={"Accept-Encoding": "gzip"})
    assert "content-encoding" not in stream.headers


def test_an_ended_job_is_sent_to_where_its_order_said():
    """Only to places that are allowed by name; a redirect leads nowhere, and a failure is tried again."""
    heard, answers = [], [500, 302, 200]

    class Listener(BaseHTTPRequestHandler):
        def do_POST(self):
            heard.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(answers.pop(0))
            self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Listener) as listener:
        threading.Thread(target=listener.serve_forever, daemon=True).start()
        allowed = f"http://127.0.0.1:{listener.server_port}"
        with listening(application(webhooks=(allowed,))) as client, pytest.MonkeyPatch.context() as patched:
            patched.setattr("chainroute.service.webhook.PAUSES", (0.05, 0.05))
            for wrong in (
                "http://127.0.0.1:1/x",
                f"{allowed}.evil.example/x",
                f"http://u@127.0.0.1:{listener.server_port}/x",
                "file:///etc/passwd",
                "http://[",
            ):
                answer = client.post("/v1/solve", json=order(webhook=wrong))
                assert (answer.status_code, codes(answer)) == (422, [("webhook-not-allowed", "webhook")])
            body = order(webhook=f"{allowed}/done?for=me")
            job = client.post("/v1/solve?wait=1", json=body).json()
            until(lambda: len(heard) == 3)
        listener.shutdown()
    assert heard == [job] * 3


@pytest.mark.parametrize("work", ["_run", "_lane", "_deliver"])
def test_a_thread_that_is_not_to_be_had_at_the_moment_loses_no_job(work, monkeypatch):
    """Neither this one, nor its place for the next."""
    start, refused = threading.Thread.start, []

    def refuse_once(thread):
        if getattr(thread._target, "__name__", "") == work and not refused:
            refused.append(thread)
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse_once)
    monkeypatch.setattr(webhook, "PAUSES", ())
    place = "http://127.0.0.1:1"
    with listening(application(running=1, lanes=1, webhooks=(place,))) as client:
        for _ in range(2):
            answer = client.post("/v1/solve?wait=1", json=order(webhook=f"{place}/done"))
            assert (answer.status_code, answer.json()["status"]) == (200, "done")
    assert len(refused) == 1
    until(lambda: not any("(_deliver)" in thread.name for thread in threading.enumerate()))


def test_a_listener_that_does_not_answer_holds_only_so_many_webhooks(monkeypatch, caplog):
    """Each has a thread; those beyond are logged, and the next go out again once there is room."""
    heard, answers = [], threading.Event()

    def attempt(parts, document, key):
        heard.append(document)
        answers.wait(30)
        return ""

    monkeypatch.setattr(webhook, "WAITING", 2)
    monkeypatch.setattr(webhook, "_places", defaultdict(webhook._Place))
    monkeypatch.setattr(webhook, "_attempt", attempt)
    for i in range(5):
        webhook.send("http://127.0.0.1:1/", b"%d" % i)
    assert caplog.text.count("could not be delivered") == 3
    webhook.send("http://127.0.0.1:2/", b"another place")
    until(lambda: b"another place" in heard)
    answers.set()
    until(lambda: not any("(_deliver)" in thread.name for thread in threading.enumerate()))
    webhook.send("http://127.0.0.1:1/", b"5")
    until(lambda: b"5" in heard)
    assert sorted(heard) == [b"0", b"1", b"5", b"another place"]


def test_a_receiver_that_drips_is_left_in_time_and_holds_up_nobody(monkeypatch, caplog):
    """A byte every tenth of a second would keep each attempt for ever."""
    monkeypatch.setattr(webhook, "ATTEMPT_SECONDS", 1.0)
    monkeypatch.setattr(webhook, "PAUSES", ())
    done = threading.Event()

    class Dripping(BaseHTTPRequestHandler):
        def do_POST(self):
            with suppress(OSError):
                while not done.wait(0.1):
                    self.wfile.write(b"H")
                    self.wfile.flush()

    with receiving(Dripping) as slow, receiving(Hearing) as quick:
        begin = time.monotonic()
        for i in range(8):
            webhook.send(f"{slow}/", b"%d" % i)
        webhook.send(f"{quick}/", b"to another")
        until(lambda: b"to another" in [body for body, _ in Hearing.heard], 5)
        assert time.monotonic() - begin < 1
        until(lambda: caplog.text.count("no answer within 1 s") == 8, 20)
        done.set()


def test_a_webhook_is_signed_by_the_key():
    """As docs/service.md says how to verify it."""
    Hearing.heard.clear()
    with receiving(Hearing) as place:
        with listening(application(webhooks=(place,), webhook_key="secret")) as client:
            job = client.post("/v1/solve?wait=1", json=order(webhook=f"{place}/done")).json()
        until(lambda: Hearing.heard)
    ((body, headers),) = Hearing.heard
    assert json.loads(body)["id"] == job["id"]
    seconds, digest = re.fullmatch(r"t=(\d+),v1=([0-9a-f]{64})", headers[webhook.SIGNATURE]).groups()
    assert abs(time.time() - int(seconds)) < 60
    assert digest == hmac.new(b"secret", seconds.encode() + b"." + body, "sha256").hexdigest()


class Hearing(BaseHTTPRequestHandler):
    heard: ClassVar[list] = []

    def do_POST(self):
        self.heard.append((self.rfile.read(int(self.headers["Content-Length"])), dict(self.headers)))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


@contextmanager
def receiving(handler):
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


# -- events


def events(client, place, **options):
    """(id, event, data) of a job's stream until its end."""
    found = []
    with client.stream("GET", f"{place}/events", **options) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        fields = {}
        for line in stream.iter_lines():
            if line and not line.startswith(":"):
                key, _, value = line.partition(": ")
                fields[key] = value
            elif fields:
                found.append((fields.get("id"), fields["event"], json.loads(fields["data"])))
                fields = {}
    return found


@pytest.fixture(scope="module")
def live():
    """The solver, and a client of a service that listens."""
    solver = Solver()
    with listening(application(solver)) as client:
        yield solver, client


def test_events_tell_each_improvement_and_the_end(live):
    _, client = live
    place = submit(client, time_limit=1.0)
    *progress, (_, last, ended) = events(client, place)
    assert [(i, kind, data["cost"], data["source"]) for i, kind, data in progress] == [
        ("1", "progress", 30, "policy"),
        ("2", "progress", 20, "polish"),
    ]
    assert [len(data["solution"]["routes"]) for _, _, data in progress] == [2, 1]
    assert (last, ended) == ("end", job(client, place))
    # Those who come later hear the same; those who come back only what is new to them.
    assert [kind for _, kind, _ in events(client, place)] == ["progress", "progress", "end"]
    again = events(client, place, headers={"Last-Event-ID": "1"})
    assert [i for i, _, _ in again] == ["2", None]


def test_a_listener_that_goes_away_can_take_its_job_along(live):
    solver, client = live
    for query, ends in (("", False), ("?cancel_on_disconnect=true", True)):
        place = submit(client, f"listener {ends}")
        with client.stream("GET", f"{place}/events{query}") as stream:
            next(stream.iter_lines())
        if ends:
            until(lambda place=place: job(client, place)["status"] == "cancelled")
            until(lambda: "listener True" in solver.stopped)
        else:
            time.sleep(0.2)
            assert job(client, place)["status"] == "running"
            client.delete(place)


def test_the_job_of_a_client_that_waited_and_left_is_cancelled(live):
    solver, client = live
    with pytest.raises(Exception, match="timed out"):
        client.post("/v1/solve?wait=true", json=order("left alone", LONG), timeout=0.5)
    until(lambda: "left alone" in solver.stopped)


def test_a_quiet_stream_has_a_heartbeat(live, monkeypatch):
    _, client = live
    monkeypatch.setattr("chainroute.service.app.HEARTBEAT_SECONDS", 0.2)
    place = submit(client)
    with client.stream("GET", f"{place}/events") as stream:
        assert any(line.startswith(":") for line in stream.iter_lines())
    client.delete(place)


def test_a_service_that_ends_answers_those_who_wait():
    """A listener and a client that waits for its job both hear the end, soon after the signal."""
    solver, answers, threads = Solver(), [], []
    with listening(application(solver)) as client:
        place = submit(client, "listened to")
        for ask in (
            lambda: events(client, place)[-1][1],
            lambda: client.post("/v1/solve?wait=1", json=order("waited for", SHORT)).json()["status"],
        ):
            threads.append(threading.Thread(target=lambda ask=ask: answers.append(ask())))
            threads[-1].start()
        until(lambda: len(solver.begun) == 2)
        client.end()
        for thread in threads:
            thread.join(5)
    assert sorted(answers) == ["cancelled", "end"]


# -- who may ask


def test_a_token_guards_all_but_the_page_and_its_health():
    with listening(application(token="sesame")) as client:
        assert client.get("/v1/health").status_code == 200
        for ask in (client.get, client.delete):
            answer = ask("/v1/jobs/x")
            assert (answer.status_code, codes(answer)) == (401, [("unauthorized", "Authorization")])
            assert answer.headers["WWW-Authenticate"] == "Bearer"
        for place in ("/metrics", "/openapi.json", "/v1/variants", "/v1/examples", "/v1/examples/dairy"):
            assert client.get(place).status_code == 401
        for place in ("/v1/solve", "/v1/check", "/v1/read"):
            assert client.post(place, json=order()).status_code == 401
        for given in ("Bearer wrong", "Basic sesame", "sesame", "Bearer sésame".encode()):
            assert client.get("/v1/variants", headers={"Authorization": given}).status_code == 401
        assert client.get("/v1/variants", headers={"Authorization": "Bearer sesame"}).status_code == 200


def test_other_origins_are_allowed_by_name_only():
    asks = {"Origin": "https://maps.example", "Access-Control-Request-Method": "POST"}
    with listening(application()) as client:
        assert "access-control-allow-origin" not in client.options("/v1/solve", headers=asks).headers
        assert "access-control-allow-origin" not in client.get("/v1/variants", headers=asks).headers
    with listening(application(origins=("https://maps.example",))) as client:
        answer = client.options("/v1/solve", headers=asks)
        assert answer.headers["access-control-allow-origin"] == "https://maps.example"
        exposed = client.get("/v1/variants", headers=asks).headers["access-control-expose-headers"]
        assert {"Location", "Retry-After"} <= set(exposed.split(", "))
        other = client.get("/v1/variants", headers={"Origin": "https://else.example"})
        assert "access-control-allow-origin" not in other.headers


@pytest.mark.parametrize(
    ("place", "method", "allowed"),
    [
        ("/", "POST", {"GET", "HEAD"}),
        ("/v1/health", "DELETE", {"GET", "HEAD"}),
        ("/v1/solve", "GET", {"POST"}),
        ("/v1/jobs/x", "POST", {"GET", "HEAD", "DELETE"}),
        ("/v1/jobs/x/events", "HEAD", {"GET"}),
        ("/assets/app.js", "POST", {"GET", "HEAD"}),
    ],
)
def test_a_wrong_method_is_told_the_right_ones(client, place, method, allowed):
    answer = client.request(method, place)
    assert answer.status_code == 405
    assert set(answer.headers["Allow"].split(", ")) == allowed


@pytest.mark.parametrize("place", ["/", "/v1/health", "/v1/examples/dairy", "/metrics", "/openapi.json"])
def test_a_head_is_that_of_the_answer(client, place):
    """What a load balancer asks: the same status and length as GET, and no body."""
    whole, head = client.get(place), client.head(place)
    assert (head.status_code, head.content) == (200, b"")
    if place != "/metrics":  # which has grown meanwhile
        assert head.headers["content-length"] == whole.headers["content-length"]
    assert client.head("/v1/jobs/x").status_code == 404


def test_figures_count_what_happened():
    with listening(application(running=1, queued=1)) as client:
        client.post("/v1/solve?wait=1", json=order())
        client.delete(submit(client))
        client.get("/nowhere")
        text = client.get("/metrics").text
    for line in (
        'chainroute_jobs_total{status="done"} 1.0',
        'chainroute_jobs_total{status="cancelled"} 1.0',
        'chainroute_requests_total{status="404"} 1.0',
        "# TYPE chainroute_jobs_running gauge",
    ):
        assert line in text.splitlines()
    families = {family.name for family in text_string_to_metric_families(text)}
    assert {"chainroute_jobs", "chainroute_requests", "chainroute_jobs_kept"} <= families


# -- the description


def test_examples_in_the_description_fit_it_and_work(client):
    description = client.get("/openapi.json").json()
    for place in ("/v1/solve", "/v1/check", "/v1/geojson"):
        content = description["paths"][place]["post"]["requestBody"]["content"]["application/json"]
        schema = {**content["schema"], "components": description["components"]}
        jsonschema.validate(content["example"], schema)
        assert client.post(place, json=content["example"]).status_code in (200, 202)
    assert "HTTPValidationError" not in json.dumps(description)


def test_the_description_has_every_kind_of_body_that_is_taken(client):
    description = client.get("/openapi.json").json()
    for place in ("/v1/solve", "/v1/read"):
        refusal = client.post(place, content=b"?", headers={"Content-Type": "odd/kind"}).json()
        kinds = ", ".join(description["paths"][place]["post"]["requestBody"]["content"])
        assert refusal["error"]["faults"][0]["remedy"] == f"Send one of {kinds}."


def test_the_page_may_load_only_what_is_ours(client):
    page = client.get("/")
    assert page.status_code == 200
    assert "default-src 'self'" in page.headers["content-security-policy"]
    assert client.get("/assets/app.js").headers["cache-control"] == "no-cache"
    assert client.get("/assets/../app.py").status_code == 404
    assert client.get("/assets/..%2f..%2fapp.py").status_code == 404


# -- the command


def run(*options):
    return CliRunner().invoke(app, ["serve", *options])


def test_options_of_the_command_are_checked():
    found = run("--jobs", "0", "--max-time-limit", "-1")
    assert found.exit_code == 2
    assert "[bad-option] --jobs: must be above 0" in found.stderr
    assert "[bad-option] --max-time-limit: must be above 0" in found.stderr
    unknown = run("--host", "no such host")
    assert unknown.exit_code == 2
    assert "[bad-option] --port: no such host:8000 cannot be listened on" in unknown.stderr


def test_the_token_comes_from_a_file_or_the_environment(tmp_path, monkeypatch):
    """Never from the command line, which every user of the machine can read."""
    given = []
    monkeypatch.setattr("chainroute.service.server.serve", lambda settings, *_: given.append(settings.token))
    file = tmp_path / "token"
    file.write_text("sesame\n")
    assert run("--token-file", str(file)).exit_code == 0
    monkeypatch.setenv("CHAINROUTE_TOKEN", "open")
    assert run().exit_code == 0
    assert given == ["sesame", "open"]
    assert run("--token", "x").exit_code == 2
    for wrong in ("sésame", "two words"):
        file.write_text(wrong)
        assert "[bad-option] the token: must be" in run("--token-file", str(file)).stderr
    assert "[file-not-found]" in run("--token-file", str(tmp_path / "none")).stderr


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.delitem(sys.modules, "chainroute.service.server")
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    found = run()
    assert found.exit_code == 2
    assert "[missing-extra] the service needs uvicorn: pip install 'chainroute[serve]'." in found.stderr
