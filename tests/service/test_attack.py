"""service/: what one client can do to the others; on loopback, and small in count and time."""

import json
import re
import signal
import socket
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import httpx
import misbehaving
import pytest
from services import TWO_STOPS, Service, application, codes, listening, until

from chainroute.errors import ChainRouteError
from chainroute.runtime import worker
from chainroute.service import documents, frame, reading, requests, server
from chainroute.service.settings import Settings

JSON = {"Content-Type": "application/json"}


def order(**changes):
    return {"problem": TWO_STOPS, "time_limit": 0.1, **changes}


def connected(client):
    """A bare connection to the service."""
    return socket.create_connection((client.base_url.host, client.base_url.port), timeout=10)


def heard(line):
    """What comes until the other side closes."""
    answer = b""
    with suppress(ConnectionResetError):
        while piece := line.recv(10_000):
            answer += piece
    return answer


# -- for whom a request is, and from where


def test_only_requests_for_this_host_are_answered():
    """A page of evil.example that has turned its name to our address (DNS rebinding) is refused."""
    own = ["localhost", "LOCALHOST:99", "127.0.0.1", "[::1]:8000"]
    others = [
        "evil.example",
        "evil.example:8000",
        "localhost.evil.example",
        "localhost@evil.example",
        "[",
        "",
    ]
    with listening(application()) as client:
        for host in own:
            assert client.get("/v1/variants", headers={"Host": host}).status_code == 200
        for host in others:
            for answer in (
                client.get("/v1/variants", headers={"Host": host}),
                client.get("/", headers={"Host": host}),
                client.post("/v1/solve", json=order(), headers={"Host": host}),
            ):
                assert (answer.status_code, codes(answer)) == (421, [("unknown-host", "Host")])
    with listening(application(hosts=("maps.example",))) as client:
        assert client.get("/v1/health", headers={"Host": "maps.example:80"}).status_code == 200
        assert client.get("/v1/health").status_code == 421
    with listening(application(hosts=("*",))) as client:
        assert client.get("/v1/health", headers={"Host": "any.example"}).status_code == 200


def test_another_site_cannot_start_or_cancel_jobs():
    """A form that a foreign page sends needs no permission from CORS; its Origin betrays it."""
    files = {"file": ("two.json", json.dumps(TWO_STOPS))}
    with listening(application()) as client:
        address = f"http://{client.base_url.host}:{client.base_url.port}"
        place = client.post("/v1/solve", json=order(time_limit=20)).json()["links"]["job"]
        for origin in ("https://evil.example", "null", "http://[", "http://127.0.0.1:1", f"{address}.x"):
            headers = {"Origin": origin}
            for answer in (
                client.post("/v1/solve", files=files, headers=headers),
                client.delete(place, headers=headers),
            ):
                assert (answer.status_code, codes(answer)) == (403, [("foreign-origin", "Origin")])
        assert client.get(place).json()["status"] == "running"
        assert client.delete(place, headers={"Origin": address}).json()["status"] == "cancelled"
    with listening(application(origins=("https://maps.example",))) as client:
        headers = {"Origin": "https://maps.example"}
        assert client.post("/v1/solve", files=files, headers=headers).status_code == 202


# -- slow and broken-off requests


def test_answers_on_an_open_connection_come_at_once():
    """Without TCP_NODELAY each waits for the client's delayed acknowledgement, which takes 40 ms."""
    with listening(application()) as client:
        seconds = []
        for _ in range(15):
            begin = time.monotonic()
            client.get("/v1/health")
            seconds.append(time.monotonic() - begin)
    assert sorted(seconds)[7] < 0.025


def test_half_sent_heads_are_not_waited_for(monkeypatch):
    """30 connections with nothing, half a head, or half of a second one: all are closed."""
    monkeypatch.setattr(server, "HEAD_SECONDS", 0.5)
    whole = b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with listening(application()) as client, ExitStack() as stack:
        lines = [stack.enter_context(connected(client)) for _ in range(30)]
        for line in lines[10:]:
            line.sendall(whole[:30])
        for line in lines[20:]:
            line.sendall(whole[30:])
            assert line.recv(10_000).startswith(b"HTTP/1.1 200")
            line.sendall(whole[:30])
        assert client.get("/v1/health").status_code == 200
        assert not [line for line in lines if b"HTTP" in heard(line)]
        # One who takes longer between two requests than for a head is not cut off.
        time.sleep(1.0)
        assert client.get("/v1/health").status_code == 200


def test_a_body_that_does_not_come_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(frame, "ARRIVAL_SECONDS", 0.5)
    head = "POST /v1/solve HTTP/1.1\r\nHost: localhost\r\nContent-Type: {}\r\nContent-Length: 100\r\n\r\n-"
    with listening(application()) as client:
        for kind in ("application/json", "multipart/form-data; boundary=x"):
            with connected(client) as line:
                line.sendall(head.format(kind).encode())
                answer = heard(line)
            assert answer.startswith(b"HTTP/1.1 408")
            assert b'"code":"too-slow"' in answer
        # A job may take longer than a body: only what comes is timed, not the answer.
        assert client.post("/v1/solve?wait=true", json=order(time_limit=1.0)).json()["status"] == "done"


def test_clients_that_break_off_leave_no_trace(caplog):
    """Half a body, and nobody there any more: no error of ours, and nothing in the log."""
    head = "POST {} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {}\r\nContent-Length: 100\r\n\r\n-"
    kinds = ("application/json", "multipart/form-data; boundary=x")
    with listening(application()) as client:
        for place in ("/v1/solve", "/v1/check", "/v1/read"):
            for kind in kinds:
                with connected(client) as line:
                    line.sendall(head.format(place, kind).encode())
        until(lambda: 'requests_total{status="499"}' in client.get("/metrics").text)
    assert not [record for record in caplog.records if record.levelname in ("WARNING", "ERROR", "CRITICAL")]


# -- reading


def test_a_body_made_to_take_long_holds_a_reader_only_so_long(monkeypatch):
    """Two bodies would be read for ever; a third is read as soon as the first two have had their time."""
    monkeypatch.setattr(reading, "run", misbehaving.read_slowly)
    monkeypatch.setattr(requests, "READ_SECONDS", 1.0)
    with listening(application()) as client:
        answers = []

        def attack():
            answers.append(client.post("/v1/solve", content=b'{"slow": 0}', headers=JSON))

        threads = [threading.Thread(target=attack) for _ in range(2)]
        for thread in threads:
            thread.start()
        time.sleep(0.2)
        assert client.post("/v1/solve?wait=true", json=order()).json()["status"] == "done"
        for thread in threads:
            thread.join()
    assert [(answer.status_code, codes(answer)) for answer in answers] == [
        (422, [("reading-too-long", "body")])
    ] * 2


def test_the_start_of_a_reader_does_not_count_as_reading(monkeypatch):
    """A new process, with all that it imports, takes longer than the body may be read."""
    monkeypatch.setattr(requests, "READERS", ("new reader",))
    monkeypatch.setattr(requests, "READ_SECONDS", 0.5)
    with listening(application()) as client:
        answer = client.post("/v1/check", json={"problem": TWO_STOPS, "solution": {"routes": []}})
    assert answer.status_code == 200, answer.text


def test_a_service_ends_at_once_while_it_reads():
    """Without this, a reader that is not done kept the process from ending."""
    slow = "import misbehaving; from chainroute.service import reading; reading.run = misbehaving.read_slowly"
    with Service(before=slow, running=1) as service:

        def attack():
            with suppress(httpx.HTTPError):
                service.client.post("/v1/solve", content=b"slow", headers=JSON)

        thread = threading.Thread(target=attack)
        thread.start()
        time.sleep(1.0)
        begin = time.monotonic()
        service.process.send_signal(signal.SIGTERM)
        assert service.process.wait(10) == 128 + signal.SIGTERM
        assert time.monotonic() - begin < 4
        thread.join()
        assert "Traceback" not in service.logged()


def test_a_million_unknown_fields_are_one_fault():
    fields = ",".join(f'"{i}":0' for i in range(100_000))
    with listening(application()) as client:
        for place in ("/v1/solve", "/v1/check"):
            answer = client.post(place, content=f'{{"problem":{{}},"solution":{{}},{fields}}}', headers=JSON)
            assert answer.status_code == 422
            assert len(answer.content) < 20_000


# -- memory


def test_the_queue_is_bounded_in_bytes():
    """300 locations with a matrix are 0.7 MB: two fit into two megabytes, and two hundred small ones do."""
    places = [{"delivery": 1}] * 299
    large = {"capacity": 9, "depots": [{}], "customers": places, "distances": [[0] * 300] * 300}
    with listening(application(running=1, queued_bytes=2_000_000)) as client:

        def submit(problem):
            return client.post("/v1/solve", json={"problem": problem, "time_limit": 20})

        assert [submit(large).status_code for _ in range(4)] == [202, 202, 503, 503]
        assert {submit(TWO_STOPS).status_code for _ in range(50)} == {202}
        full = submit(large)
        assert codes(full) == [("busy", "")]
        assert full.headers["Retry-After"]
    with listening(application(queued_bytes=1000)) as client:  # one alone is never too large to wait
        assert client.post("/v1/solve", json={"problem": large, "time_limit": 0.1}).status_code == 202


def test_bodies_that_come_at_once_are_bounded_together():
    """Each of three is within its bound, but the third is one too many; when they are gone, there is room."""
    head = "POST /v1/solve HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with listening(application(max_bytes=100_000, arriving_bytes=200_000)) as client:
        with ExitStack() as stack:
            for _ in range(2):
                line = stack.enter_context(connected(client))
                line.sendall(f"{head}Content-Length: 90000\r\n\r\n{' ' * 80_000}".encode())
            time.sleep(0.3)
            answer = client.post("/v1/solve", content=b" " * 90_000, headers=JSON)
            assert (answer.status_code, codes(answer)) == (503, [("busy", "body")])
        until(lambda: client.post("/v1/solve", content=b" " * 90_000, headers=JSON).status_code == 422)


def test_a_long_name_is_refused():
    """It would come back in every answer, several times."""
    ada, bob = TWO_STOPS["customers"]
    long = "A" * 1_000_000
    with listening(application()) as client:
        for problem in (
            {**TWO_STOPS, "name": long},
            {**TWO_STOPS, "customers": [{**ada, "name": long}, bob]},
        ):
            answer = client.post("/v1/solve", json=order(problem=problem))
            assert (answer.status_code, codes(answer)) == (422, [("text-too-long", "name")])
        named = {**TWO_STOPS, "name": "A" * 200}
        assert client.post("/v1/solve", json=order(problem=named)).status_code == 202


def test_a_solution_is_encoded_once_for_all_who_listen(monkeypatch):
    """Ten listeners and ten who ask, while it runs: as many encodings as there are solutions to tell of."""
    encoded = []
    whole = documents.solution
    monkeypatch.setattr(documents, "solution", lambda solution: encoded.append(solution) or whole(solution))
    with listening(application()) as client:
        place = client.post("/v1/solve", json=order(time_limit=1.0)).json()["links"]["job"]
        heard = []
        threads = [
            threading.Thread(target=lambda: heard.append(client.get(f"{place}/events").text))
            for _ in range(10)
        ]
        for thread in threads:
            thread.start()
        time.sleep(0.3)
        for _ in range(10):
            client.get(place)
        for thread in threads:
            thread.join()
    assert len(heard) == 10
    assert all(text.count("event: progress") == 2 and "event: end" in text for text in heard)
    # Two improvements, what was asked for in between, and the end: each with at most the best and the first.
    assert len(encoded) <= 2 + 2 * 3 + 2


def test_a_speed_for_each_vehicle_type_takes_no_memory_and_no_time_of_others():
    """What the types' matrices would take is priced when the problem is read; they are not made here."""
    place = {"depots": [{"x": 0, "y": 0}], "capacity": 99}
    place["customers"] = [{"x": i, "y": 1} for i in range(1500)]
    vehicles = [{"speed": 1 + i} for i in range(60)]
    with listening(application()) as client:
        begin = time.monotonic()
        answer = client.post("/v1/solve", json=order(problem={**place, "vehicles": vehicles}))
        assert (answer.status_code, codes(answer)) == (422, [("too-large", "vehicles")])
        answer = client.post("/v1/solve?wait=true", json=order(problem={**place, "vehicles": vehicles[:9]}))
        assert answer.json()["status"] == "done"
        assert time.monotonic() - begin < 30


def test_a_reader_has_a_bound_of_memory_and_what_does_not_fit_is_a_fault():
    requests.warm_up("bounded reader")
    (reader,) = worker._idle["bounded reader"]
    limits = Path(f"/proc/{reader.process.pid}/limits").read_text()
    assert re.search(rf"Max data size\s+{requests.READER_BYTES}\s", limits)
    with pytest.raises(ChainRouteError) as caught:
        reading.run(lambda *_: bytearray(10**14), b"", Settings(), print)
    assert [(fault.code, fault.where) for fault in caught.value.faults] == [("too-large", "body")]


# -- connections


def test_connections_are_bounded_and_others_are_told_to_come_back():
    with listening(application(connections=20)) as client, ExitStack() as open_:
        lines = [open_.enter_context(connected(client)) for _ in range(30)]
        answers = [heard(line) for line in lines[20:]]
        assert all(answer.startswith(b"HTTP/1.1 503") and b"Retry-After" in answer for answer in answers)
        for line in lines:
            line.close()
        assert until(lambda: client.get("/v1/health").status_code == 200)


def test_one_client_of_several_cannot_have_all_connections(monkeypatch):
    monkeypatch.setattr(server, "LOOPBACK", ())
    with listening(application(client_connections=3)) as client, ExitStack() as open_:
        lines = [open_.enter_context(connected(client)) for _ in range(5)]
        assert [heard(line)[:12] for line in lines[3:]] == [b"HTTP/1.1 503"] * 2


def test_listeners_are_bounded_and_leave_the_service_to_others():
    with listening(application(listeners=3)) as client, ExitStack() as open_:
        job = client.post("/v1/solve", json=order(time_limit=5)).json()["links"]
        for _ in range(3):
            assert open_.enter_context(client.stream("GET", job["events"])).status_code == 200
        until(lambda: client.get(job["events"]).status_code == 503)
        assert client.get("/v1/health").status_code == 200
        client.delete(job["job"])


def test_a_body_in_chunks_of_one_byte_is_refused_and_one_in_pieces_is_not():
    head = "POST /v1/check HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    head += "Transfer-Encoding: chunked\r\n\r\n"
    with listening(application()) as client:
        with connected(client) as line:
            with suppress(OSError):
                line.sendall(head.encode() + b"1\r\n{\r\n" * 100_000)
            assert heard(line).startswith(b"HTTP/1.1 400")
        pieces = (text.encode() for text in json.dumps(order()))
        assert client.post("/v1/solve?wait=true", content=pieces, headers=JSON).json()["status"] == "done"
        large = json.dumps(order(problem={**TWO_STOPS, "name": "x" * 200}, seed=1)) + " " * 200_000
        pieces = (large[i : i + 100].encode() for i in range(0, len(large), 100))
        assert client.post("/v1/solve?wait=true", content=pieces, headers=JSON).json()["status"] == "done"
