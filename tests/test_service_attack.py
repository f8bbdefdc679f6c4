"""service/: what one client can do to the others; on loopback, and small in count and time."""

import signal
import threading
import time
from contextlib import suppress

import httpx
from services import TWO_STOPS, Service, application, listening

from chainroute.service import requests

JSON = {"Content-Type": "application/json"}


def order(**changes):
    return {"problem": TWO_STOPS, "time_limit": 0.1, **changes}


def codes(answer):
    return [(fault["code"], fault["where"]) for fault in answer.json()["error"]["faults"]]


# -- reading


def test_a_body_made_to_take_long_holds_a_reader_only_so_long(monkeypatch):
    """Two bodies would be read for ever; a third is read as soon as the first two have had their time."""
    monkeypatch.setattr(requests, "TASK", "tasks:read_slowly")
    monkeypatch.setattr(requests, "SECONDS", 3.0)
    with listening(application()) as client:
        client.post("/v1/check", json={"problem": TWO_STOPS, "solution": {"routes": []}})  # a reader starts
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


def test_a_service_ends_at_once_while_it_reads():
    """Without this, a reader that is not done kept the process from ending."""
    slow = "from chainroute.service import requests; requests.TASK = 'tasks:read_slowly'"
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
