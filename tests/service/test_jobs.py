"""Jobs from the queue to their end: what failures tell, when to come again, what is kept and counted."""

import json
import logging
import threading
import time
from pathlib import Path

import pytest
from services import TWO_STOPS, Solver, application, each, listening, together, until

from chainroute.errors import ChainRouteError, Fault
from chainroute.service import documents, jobs
from chainroute.service.app import create_app
from chainroute.service.examples import FOLDER
from chainroute.service.jobs import LONG_JOB_SECONDS
from chainroute.service.settings import Settings
from chainroute.solve import Progress, Result


def order(name="two stops", time_limit=0.1, **more):
    return {"problem": {**TWO_STOPS, "name": name}, "time_limit": time_limit, **more}


def submit(client, name="two stops", time_limit=20.0, **more):
    answer = client.post("/v1/solve", json=order(name, time_limit, **more))
    assert answer.status_code == 202, answer.text
    return answer.json()["links"]["job"]


def solved(solver, **more):
    """The document of a job that such a solver has ended."""
    with listening(application(solver)) as client:
        return client.post("/v1/solve?wait=true", json=order(**more)).json()


def figures(client):
    lines = [line for line in client.get("/metrics").text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


# -- failures


def test_a_failure_of_ours_is_in_the_log(caplog):
    """The log says where it happened: the client is told to look there."""
    with caplog.at_level(logging.ERROR, "chainroute.service"):
        job = solved(Solver(), name="broken")
    (fault,) = job["error"]["faults"]
    assert (job["status"], fault["code"]) == ("failed", "internal-error")
    assert "its log says how" in fault["message"]
    (record,) = [r for r in caplog.records if r.name == "chainroute.service"]
    assert "secret of the machine" in caplog.text
    assert record.exc_info[0] is RuntimeError


def test_a_plan_that_cannot_be_told_is_that_jobs_own(monkeypatch):
    """The job has failed, who waits is answered, and the next job runs."""
    real = documents.encoded

    def encoded(document):
        if document.get("problem_name") == "bad" and document.get("solution"):
            raise ValueError("no number")
        return real(document)

    monkeypatch.setattr(documents, "encoded", encoded)
    with listening(application()) as client:
        bad, good = (client.post("/v1/solve?wait=true", json=order(name)).json() for name in ("bad", "good"))
    assert (bad["status"], bad["solution"]) == ("failed", None)
    assert [fault["code"] for fault in bad["error"]["faults"]] == ["internal-error"]
    assert (good["status"], good["error"]) == ("done", None)


@pytest.mark.parametrize(
    ("fault", "message", "where"),
    [
        (Fault("no-solution", "none in time.", "two stops"), "none in time.", "two stops"),
        (Fault("no-solution", "none.", "x", cause="/var/log/some.txt, line 3"), "none.", "x"),
        (
            Fault("solver-failed", "it stopped.", Path("/opt/lib"), cause="in /opt/lib/x.so"),
            "it stopped.",
            "",
        ),
        (Fault("file-unreadable", "no.", Path("/opt/lib")), "no.", ""),
        (Fault("missing-extra", "install it.", Path("/usr/lib")), "install it.", ""),
        (Fault("weights-missing", "no file.", Path("/home/me/n50")), "no file.", ""),
    ],
)
def test_coded_failures_tell_their_reason_and_nothing_of_the_machine(fault, message, where):
    def fails(*_, **__):
        raise ChainRouteError([fault])

    job = solved(fails)
    assert job["status"] == "failed"
    (told,) = job["error"]["faults"]
    assert (told["code"], told["message"], told["where"]) == (fault.code, message, where)


@pytest.mark.parametrize("polish", [True, False])
def test_a_policy_that_fails_is_noted_where_there_is_another_way(polish):
    """And is the failure of the job where there is none."""

    def decode(*_, **__):
        raise ChainRouteError([Fault("weights-missing", "no such file.", Path("/opt/n50"))])

    with listening(create_app(Settings(running=2), Solver(), decode)) as client:
        job = client.post("/v1/solve?wait=true", json=order(effort={"polish": polish})).json()
    if polish:
        assert job["status"] == "done"
        assert job["without_policy"] == "it could not be used."
        assert any("[weights-missing] no such file." in note for note in job["notes"])
    else:
        assert job["status"] == "failed"
        assert [fault["code"] for fault in job["error"]["faults"]] == ["weights-missing"]
    assert "/opt" not in json.dumps(job)


# -- the queue


@pytest.mark.parametrize(("limit", "queued", "seconds"), [(20.0, 2, 10), (0.1, 2, 1), (60.0, 5, 60)])
def test_a_full_queue_says_when_to_come_again(limit, queued, seconds):
    """After a quarter of what waits, on one place; at least 1 s and at most 60."""
    with listening(application(running=1, queued=queued)) as client:
        places = [submit(client, "first", 60.0)]
        places += [submit(client, f"job {i}", limit) for i in range(queued)]
        refused = client.post("/v1/solve", json=order())
        assert (refused.status_code, refused.headers["Retry-After"]) == (503, str(seconds))
        assert figures(client)["chainroute_jobs_refused_total"] == 1
        for place in places:
            client.delete(place)


def test_two_places_clear_a_queue_twice_as_fast():
    with listening(application(running=2, queued=2)) as client:
        places = [submit(client, f"job {i}", LONG_JOB_SECONDS) for i in range(4)]
        refused = client.post("/v1/solve", json=order())
        assert refused.headers["Retry-After"] == str(round(2 * LONG_JOB_SECONDS / 2 / 4))
        for place in places:
            client.delete(place)


def test_jobs_of_just_so_long_are_short():
    """They take all places; of those that ask for more one place is kept free."""
    for limit, running in ((LONG_JOB_SECONDS, 2), (LONG_JOB_SECONDS + 0.1, 1)):
        with listening(application(running=2)) as client:
            places = [submit(client, f"job {i}", limit) for i in range(2)]
            until(
                lambda client=client, running=running: figures(client)["chainroute_jobs_running"] == running
            )
            assert figures(client)["chainroute_jobs_queued"] == 2 - running
            for place in places:
                client.delete(place)


def test_a_job_whose_routes_are_ready_takes_a_free_place_at_once():
    """One that waited while another ran, for less time than it would wait for the policy."""
    with listening(application(running=1)) as client:
        submit(client, "first", 0.5)
        second = submit(client, "second", 40.0)
        until(lambda: client.get(second).json()["status"] == "running", 15)
        client.delete(second)


@pytest.mark.parametrize(
    ("lanes", "waits"), [(2, True), (1, False)], ids=["is at work on it", "has not taken it up"]
)
def test_a_place_stays_free_while_the_policy_is_at_work(lanes, waits, monkeypatch):
    """A queued job's own routes are waited for; not those of others, for which the policy may take long."""
    monkeypatch.setattr(jobs, "LANE_WAIT_SECONDS", 0.2)
    gate = threading.Event()

    def decode(problems, *_, **__):
        gate.wait(20)
        return [each(problem) for problem in problems]

    with listening(create_app(Settings(running=1, lanes=lanes), Solver(), decode)) as client:
        submit(client, "first", 0.1)
        second = submit(client, "second", 0.1)
        if waits:
            time.sleep(1.0)  # the first ends without the policy's routes, and the second's patience does
            assert client.get(second).json()["status"] == "queued"
            gate.set()
        late = until(lambda: (job := client.get(second).json())["status"] == "done" and job)
        gate.set()
    assert (late["first"] is not None) is waits
    assert (late["without_policy"] is None) is waits


def test_the_policy_is_not_waited_for_forever(monkeypatch):
    """A policy that hangs holds up a queued job only so long."""
    monkeypatch.setattr(jobs, "LANE_WAIT_SECONDS", 0.1)
    monkeypatch.setattr(jobs, "DECODING_WAIT_SECONDS", 0.5)
    gate = threading.Event()

    def decode(problems, *_, **__):
        gate.wait(20)
        return [None] * len(problems)

    with listening(create_app(Settings(running=1, lanes=2), Solver(), decode)) as client:
        submit(client, "first", 0.1)
        second = client.post("/v1/solve?wait=1", json=order("second")).json()
        gate.set()
    assert second["status"] == "done"
    assert second["without_policy"].startswith("it had no routes within its 0.")


def test_figures_of_jobs():
    with listening(application(running=1)) as client:
        client.post("/v1/solve?wait=1", json=order(time_limit=0.4))
        first, second = submit(client, "first"), submit(client, "second")
        before = figures(client)
        assert before["chainroute_jobs_running"] == before["chainroute_jobs_queued"] == 1
        assert before["chainroute_jobs_kept"] == 3
        client.delete(second)
        client.delete(first)
        after = figures(client)
        assert after['chainroute_jobs_total{status="done"}'] == 1
        assert after['chainroute_jobs_total{status="cancelled"}'] == 2
        assert after["chainroute_job_wait_seconds_total"] > before["chainroute_job_wait_seconds_total"]
        assert (
            0.4 <= before["chainroute_job_run_seconds_total"] < after["chainroute_job_run_seconds_total"] < 10
        )


def test_who_is_left_out_has_a_reason_when_the_job_has_ended():
    """As the judge tells it, without being asked; news of a running job has names alone."""
    prizes = json.loads((FOLDER / "prizes.json").read_text())
    with listening(create_app(Settings(running=1))) as client:
        job = client.post("/v1/solve?wait=true", json={"problem": prizes, "time_limit": 1}).json()
        body = {"problem": prizes, "solution": {"routes": job["solution"]["routes"]}}
        verdict = client.post("/v1/check", json=body).json()
    reasons = {one["customer"]: one["code"] for one in job["solution"]["left_out"]}
    assert reasons == {"Cleo": "prize-too-small", "Dan": "no-room"}
    assert verdict["solution"]["left_out"] == job["solution"]["left_out"]
    assert verdict["parts"] == {"distance": 40, "time": 0, "fixed": 0, "prizes": 59}


# -- what comes late


def test_what_a_cancelled_job_still_finds_is_dropped():
    """The document of a job that has ended does not change, and its place is free again."""
    found, cancelled = threading.Event(), threading.Event()

    def solver(problem, limit, *, on_progress, **_):
        on_progress(Progress(0.1, each(problem), "search"))
        found.set()
        cancelled.wait(20)
        on_progress(Progress(0.2, together(problem), "search"))
        return Result(together(problem), 0.2, (), ())

    with listening(application(solver, running=1)) as client:
        place = submit(client)
        assert found.wait(20)
        until(lambda: client.get(place).json()["history"])
        job = client.delete(place).json()
        assert (job["status"], len(job["history"]), job["solution"]["cost"]) == ("cancelled", 1, 30)
        assert figures(client)["chainroute_jobs_running"] == 1  # its thread has not returned
        cancelled.set()
        until(lambda: figures(client)["chainroute_jobs_running"] == 0)
        assert client.get(place).json() == job


def test_the_oldest_are_forgotten_first_and_by_size():
    """As many are kept as fit into the bytes, whatever their number; a job's document is about a kilobyte."""
    with listening(application()) as client:
        size = len(client.post("/v1/solve?wait=1", json=order()).content)
    with listening(application(keep_bytes=int(2.5 * size))) as client:
        ids = [client.post("/v1/solve?wait=1", json=order()).json()["id"] for _ in range(4)]
        codes = [client.get(f"/v1/jobs/{id}").status_code for id in ids]
        assert codes == [404, 404, 200, 200]
        assert figures(client)["chainroute_jobs_kept"] == 2


def test_what_solvers_are_given():
    """The order's own seed, effort, time and start; a way to stop; and a thread that no service waits for."""
    given = {}

    def solver(problem, limit, **options):
        given["daemon"] = threading.current_thread().daemon
        given.update(options, problem=problem.name, limit=limit)
        return Solver()(problem, limit, **options)

    start = {"routes": [{"customers": ["Bob", "Ada"]}]}
    more = {"seed": 7, "effort": {"polish": True, "starts": 3}, "initial": start}
    with listening(application(solver)) as client:
        job = client.post("/v1/solve?wait=1", json=order("mine", 0.2, **more)).json()
    assert (given["problem"], given["limit"], given["seed"], given["effort"].starts) == ("mine", 0.2, 7, 3)
    assert [route.visits for route in given["initial"].routes] == [(2, 1)]
    assert given["daemon"]
    assert (job["problem_name"], job["error"], job["notes"]) == ("mine", None, ["all went well"])
