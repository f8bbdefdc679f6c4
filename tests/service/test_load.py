"""`chainroute serve` as it is, under load and in trouble: on loopback, bounded in count and time."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from problems import invent
from services import TWO_STOPS, Service, judged, until

from chainroute import VARIANTS
from chainroute.formats import json as our_json
from chainroute.generate import generate
from chainroute.problem.variants import variant
from chainroute.service import documents
from chainroute.service.app import create_app
from chainroute.service.server import Server, configured
from chainroute.service.settings import Settings

ALONE = {"polish": False, "starts": 4, "augmentations": 1}  # the policy alone, and soon done
AMPLE = 5.0  # seconds for a job that ends much earlier


@pytest.fixture(scope="module")
def service():
    with Service() as service:
        ready(service)
        yield service


def ready(service):
    until(lambda: service.client.get("/v1/health").json()["ready"], 180)


def document(problem):
    return documents.problem(problem)


def watched(service, problem, enough, effort=None, time_limit=40.0):
    """The job, cancelled as soon as there is enough: on a busy machine that takes longer."""
    body = {"problem": document(problem), "time_limit": time_limit, "effort": effort or {}}
    place = service.client.post("/v1/solve", json=body).json()["links"]["job"]
    while not enough(job := service.client.get(place).json()):
        assert job["status"] in ("queued", "running"), job
        time.sleep(0.05)
    return service.client.delete(place).json()


def many(service, orders):
    """All at once, each on a connection of its own; the answers in the order of the orders."""

    async def ask():
        limits = httpx.Limits(max_connections=None)
        async with httpx.AsyncClient(base_url=service.client.base_url, limits=limits, timeout=100) as client:
            asked = (client.post("/v1/solve?wait=true", json=order) for order in orders)
            return await asyncio.gather(*asked)

    return asyncio.run(ask())


def figure(service, name):
    lines = service.client.get("/metrics").text.splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith(f"chainroute_{name}"))


def test_of_200_requests_at_once_none_is_lost_and_none_answered_wrong(service):
    """All variants, with and without search: every answer is about its own problem, and judged here."""
    problems = [invent(VARIANTS[i % 48], i, customers=5 + i % 2) for i in range(200)]
    orders = [
        {"problem": document(p), "time_limit": AMPLE, "effort": ALONE}
        if i % 40
        else {"problem": document(p), "time_limit": 2.0}
        for i, p in enumerate(problems)
    ]
    before = figure(service, "batches_total")
    answers = many(service, orders)
    assert [answer.status_code for answer in answers] == [200] * 200
    for problem, answer in zip(problems, answers, strict=True):
        job = answer.json()
        assert (job["status"], job["problem_name"]) == ("done", problem.name), job["error"]
        judged(problem, job["solution"])
    assert figure(service, "batches_total") - before < 100  # they were decoded together
    assert figure(service, "jobs_queued") == figure(service, "jobs_running") == 0


def test_short_jobs_that_come_together_are_decoded_together(service):
    """The default effort, 0.5 s each: fewer batches than half of the jobs, and nearly all have the policy's
    routes. The others are told that they do not: those that found a free place and were begun at once."""
    problems = generate(variant("CVRP"), 15, 30, seed=5)
    before = figure(service, "batches_total")
    orders = [{"problem": document(p), "time_limit": 0.5} for p in problems]
    jobs = [answer.json() for answer in many(service, orders)]
    assert figure(service, "batches_total") - before < 15
    with_routes = [job for job in jobs if job["first"]]
    assert len(with_routes) >= 25
    for problem, job in zip(problems, jobs, strict=True):
        judged(problem, job["solution"])
        assert (job["without_policy"] is not None) == (job["first"] is None)


def test_the_policys_routes_are_kept_beside_the_better_ones(service):
    (problem,) = generate(variant("VRPTW"), 30, 1, seed=3)
    job = watched(service, problem, lambda job: job["first"] and job["solution"] != job["first"])
    assert judged(problem, job["solution"]) <= judged(problem, job["first"])
    costs = [point["cost"] for point in job["history"]]
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] == job["solution"]["cost"]


def test_a_large_job_does_not_starve_small_ones(service):
    """Beside a job of 1,000 customers and two more behind it, small ones are done in their own time."""
    (large,) = generate(variant("CVRP"), 1000, 1, seed=1)
    body = {"problem": document(large), "time_limit": 30.0}
    places = [service.client.post("/v1/solve", json=body).json()["links"]["job"] for _ in range(3)]
    (small,) = generate(variant("OVRP"), 20, 1, seed=1)
    for effort in ({}, ALONE, {}):
        begin = time.monotonic()
        job = watched(service, small, lambda job: job["solution"], effort, time_limit=AMPLE)
        judged(small, job["solution"])
        assert time.monotonic() - begin < 2 * AMPLE  # far less than the large ones ask for
    # The last first: one that got the place of another would soon have routes.
    jobs = [service.client.delete(place).json() for place in reversed(places)][::-1]
    assert [job["status"] for job in jobs] == ["cancelled"] * 3
    judged(large, jobs[0]["solution"])
    assert jobs[1]["solution"] is None  # it had to wait: of two places one is for the small


def test_a_cancelled_job_ends_its_workers(service):
    """What they have used of the processor no longer grows."""
    (large,) = generate(variant("CVRP"), 500, 1, seed=1)
    body = {"problem": document(large), "time_limit": 30.0}
    place = service.client.post("/v1/solve", json=body).json()["links"]["job"]
    until(lambda: service.client.get(place).json()["solution"])
    assert service.client.delete(place).json()["status"] == "cancelled"

    def idle():
        used = processor_seconds(service.workers())
        time.sleep(0.5)
        return processor_seconds(service.workers()) - used < 0.1

    until(idle, 15)


def processor_seconds(pids):
    ticks = 0
    for pid in pids:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError), open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def test_killed_workers_are_reported_and_the_service_goes_on(service):
    """Whoever works for the job is killed until nobody is left: it ends before its time, and says why."""
    (problem,) = generate(variant("CVRP"), 100, 1, seed=2)
    body = {"problem": document(problem), "time_limit": 60.0}
    place = service.client.post("/v1/solve", json=body).json()["links"]["job"]
    until(lambda: service.client.get(place).json()["solution"])

    def ended():
        for pid in service.workers():
            with contextlib.suppress(ProcessLookupError):  # it has just ended
                os.kill(pid, signal.SIGKILL)
        job = service.client.get(place).json()
        return job if job["status"] != "running" else None

    job = until(ended)
    assert any("died" in text for text in [*job["notes"], str(job["error"])]), job
    judged(problem, job["solution"])
    for effort in ({}, {**ALONE, "starts": 2}):
        judged(problem, watched(service, problem, lambda job: job["solution"], effort)["solution"])


def memory_after(service, requests):
    orders = [
        {"problem": {**TWO_STOPS, "name": f"problem {i}"}, "time_limit": AMPLE, "effort": ALONE}
        for i in range(requests)
    ]
    for i in range(0, requests, 50):
        answers = many(service, orders[i : i + 50])
        assert all(answer.json()["status"] == "done" for answer in answers)
    return service.memory()


def test_memory_is_flat():
    """Once as many jobs are kept as may be, more of them cost nothing: the first 60 fill what is kept."""
    with small_keep() as service:
        before = memory_after(service, 60)
        assert memory_after(service, 80) - before < 3_000_000


@pytest.mark.slow
def test_memory_is_flat_over_2000_requests():
    with small_keep() as service:
        before = memory_after(service, 200)
        assert memory_after(service, 2000) - before < 5_000_000


def small_keep():
    service = Service(keep_jobs=50, running=2)
    ready(service)
    return service


LISTENING = "import signal; signal.signal(signal.SIGHUP, signal.SIG_DFL)"  # also where tests run under nohup


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_who_waits_for_a_job_is_answered_when_a_signal_ends_the_service(number):
    with Service(before=LISTENING) as service, ThreadPoolExecutor(1) as pool:
        body = {"problem": document(generate(variant("CVRP"), 50, 1, seed=2)[0]), "time_limit": 30.0}
        waiting = pool.submit(service.client.post, "/v1/solve?wait=true", json=body)
        until(lambda: service.client.get("/v1/health").json()["running"], 60)
        service.process.send_signal(number)
        assert waiting.result(20).json()["status"] == "cancelled"
        assert service.process.wait(10) == 128 + number


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_service_and_its_workers_and_leaves_no_files(number, tmp_path):
    (problem,) = generate(variant("CVRP"), 200, 1, seed=2)
    home = {"TMPDIR": str(tmp_path), "HOME": str(tmp_path)}
    with Service(cwd=tmp_path, env=home, before=LISTENING) as service:
        body = {"problem": document(problem), "time_limit": 30.0}
        assert service.client.post("/v1/solve", json=body).status_code == 202
        workers = until(service.workers)
        for _ in range(2):  # as impatient people press Ctrl-C, and a shell signals a process and its group
            service.process.send_signal(number)
        assert service.process.wait(10) == 128 + number
        until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in workers), 15)
        assert "Traceback" not in service.logged()
    assert list(tmp_path.iterdir()) == []


def test_a_signal_that_comes_before_the_service_runs_ends_it():
    server = Server(configured(create_app(Settings())))
    server.handle_exit(signal.SIGTERM, None)
    assert server.should_exit


def test_a_port_that_is_taken_is_a_coded_error(service):
    port = str(service.client.base_url.port)
    command = [sys.executable, "-c", "from chainroute.cli import main; main()", "serve", "--port", port]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr.startswith("[bad-option] --port:")


def test_a_document_of_ours_is_read_back(service):
    """What the service says of an example is what the reader makes of it."""
    text = service.client.get("/v1/examples/lakeside").text
    assert our_json.read(text, "x", None).metric == "haversine"
