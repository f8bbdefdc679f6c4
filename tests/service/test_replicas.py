"""Several replicas of the service: what a load balancer must do, and need not (docs/scaling.md)."""

import zlib
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle

import pytest
from services import TWO_STOPS, application, listening, until

CLIENTS, JOBS = 16, 2  # and jobs of each client


@pytest.fixture(scope="module")
def replicas():
    with listening(application()) as one, listening(application()) as other:
        yield one, other


def ask(choose, name):
    """What a client sees of its jobs: the states they end in, 404 where its replica does not know one."""
    seen = []
    for _ in range(JOBS):
        order = {"problem": {**TWO_STOPS, "name": name}, "time_limit": 0.05}
        place = choose(name).post("/v1/solve", json=order).json()["links"]["job"]
        answer = until(lambda place=place: _ended(choose(name).get(place)))
        seen.append(answer.json().get("status", answer.status_code))
    return seen


def _ended(answer):
    return answer if answer.status_code == 404 or answer.json()["status"] == "done" else None


def test_clients_that_stay_with_a_replica_lose_no_job(replicas):
    """A hash of who they are decides, as load balancers do; both replicas have clients, and all jobs are
    done."""

    def choose(name):
        return replicas[zlib.crc32(name.encode()) % 2]

    names = [f"10.0.0.{i}" for i in range(CLIENTS)]
    assert {choose(name) for name in names} == set(replicas)
    with ThreadPoolExecutor(4) as pool:
        seen = list(pool.map(lambda name: ask(choose, name), names))
    assert seen == [["done"] * JOBS] * CLIENTS


def test_clients_that_change_replicas_at_every_request_lose_theirs(replicas):
    """Which is why they must not, unless they wait for the answer, where one request is all there is."""
    turns = cycle(replicas)
    assert ask(lambda _: next(turns), "10.0.0.1") == [404] * JOBS
    order = {"problem": TWO_STOPS, "time_limit": 0.05}
    answers = [next(turns).post("/v1/solve?wait=true", json=order).json() for _ in range(4)]
    assert [answer["status"] for answer in answers] == ["done"] * 4
