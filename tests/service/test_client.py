"""The client against a service whose solver does as told, and the examples of docs/service.md."""

import asyncio
import json
import math
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions, requires

import numpy as np
import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from services import TWO_STOPS, application, judged, listening
from typer.testing import CliRunner
from where import ROOT

from chainroute import ChainRouteError, Solution, check
from chainroute.cli.app import app
from chainroute.formats import json as our_json
from chainroute.search.solvers import pyvrp
from chainroute.service.app import create_app
from chainroute.service.client import AsyncClient, Client
from chainroute.service.settings import Settings

PROBLEM = our_json.to_problem(TWO_STOPS, "")
LONG = 20.0  # seconds: a job that only ends when it is cancelled


@pytest.fixture(scope="module")
def address():
    with listening(application(token="sesame")) as client:
        yield str(client.base_url)


def test_a_problem_in_a_solution_out(address):
    with Client(address, "sesame") as client:
        solution = client.solve(PROBLEM, np.float32(0.2), seed=np.int64(3))
        verdict = client.check(PROBLEM, solution)
        assert client.health()["status"] == "ok"
    assert check(PROBLEM, solution).feasible
    assert (solution.cost, verdict["cost"], verdict["feasible"]) == (20, 20, True)


def test_a_job_is_followed_and_cancelled(address):
    with Client(address, "sesame") as client:
        start = Solution.of(PROBLEM, [(0, [2]), (0, [1])])
        id = client.submit(PROBLEM, 0.3, seed=3, effort={"starts": 2}, initial=start)["id"]
        events = list(client.events(id))
        assert [kind for kind, _ in events] == ["progress", "progress", "end"]
        assert events[-1][1] == client.job(id)
        long = client.submit(PROBLEM, LONG)["id"]
        assert client.cancel(long)["status"] == client.wait(long)["status"] == "cancelled"
        assert {long, id} <= {job["id"] for job in client.jobs()}


def test_the_asynchronous_client_does_the_same(address):
    async def use():
        async with AsyncClient(address, "sesame") as client:
            solutions = await asyncio.gather(*(client.solve(PROBLEM, 0.2) for _ in range(3)))
            long = (await client.submit(PROBLEM, LONG))["id"]
            await client.cancel(long)
            kinds = [kind async for kind, _ in client.events(long)]
            verdict = await client.check(PROBLEM, solutions[0])
            listed = [job["id"] for job in await client.jobs()]
            return solutions, kinds, verdict, long in listed, await client.health()

    solutions, kinds, verdict, listed, health = asyncio.run(use())
    assert [solution.cost for solution in solutions] == [20, 20, 20]
    assert kinds[-1] == "end"
    assert (verdict["feasible"], listed, health["status"]) == (True, True, "ok")


def test_faults_are_raised_as_they_are(address):
    """Those of the service, those of a job, what is no problem, and that there is no service."""

    def codes(call):
        with pytest.raises(ChainRouteError) as caught:
            call()
        return [(fault.code, fault.where) for fault in caught.value.faults]

    with Client(address, "wrong") as client:
        assert codes(client.jobs) == [("unauthorized", "Authorization")]
    with Client(address, "sesame") as client:
        assert codes(lambda: client.solve(PROBLEM, -1)) == [("bad-option", "time_limit")]
        assert codes(lambda: client.solve(PROBLEM, math.inf)) == [("not-finite", "time_limit")]
        assert codes(lambda: client.solve("dairy.json")) == [("wrong-type", "problem")]
        assert codes(lambda: client.job("x")) == [("unknown-job", "id")]
        assert codes(lambda: list(client.events("x"))) == [("unknown-job", "id")]
        for none in ("", "..", "../health", "x/events", "x?y", "é"):  # each an address of its own
            assert codes(lambda id=none: client.job(id)) == [("unknown-job", "id")]
            assert codes(lambda id=none: client.cancel(id)) == [("unknown-job", "id")]
            assert codes(lambda id=none: list(client.events(id))) == [("unknown-job", "id")]
        assert codes(lambda: client.solve(PROBLEM.replace(name="broken"), 0.1)) == [("internal-error", "")]
    assert codes(lambda: Client(address, "sésame")) == [("bad-option", "token")]
    with Client("http://127.0.0.1:1") as client:
        assert codes(client.health) == [("service-unreachable", "http://127.0.0.1:1")]


# -- the examples of the page


def blocks(language):
    """Those in `sh` run in order against one service; what needs more, or never ends, is in `bash`."""
    page = (ROOT / "docs" / "service.md").read_text()
    return re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)


def test_the_examples_of_the_page_work(tmp_path, capsys, monkeypatch):
    """Every line, as it stands there, but for the port; solved by PyVRP."""
    monkeypatch.chdir(tmp_path)
    pyvrp.warm_up()
    with listening(create_app(Settings(), decode=lambda problems, *_: [None] * len(problems))) as client:
        port = str(client.base_url.port)
        for block in blocks("sh"):
            subprocess.run(["bash", "-euc", block.replace("8000", port)], check=True, timeout=60)
        for block in blocks("python"):
            exec(block.replace("8000", port), {})
    problem = our_json.read((tmp_path / "dairy.json").read_text(), "", None)
    judged(problem, json.loads((tmp_path / "job.json").read_text())["solution"])
    first, second = (json.loads((tmp_path / f"{name}.json").read_text())["id"] for name in "ab")
    assert first == second
    assert "event: end" in (tmp_path / "events.txt").read_text()
    assert len(json.loads((tmp_path / "jobs.json").read_text())["jobs"]) == 2
    assert capsys.readouterr().out.strip().endswith("True")


# -- the container


def test_the_container_is_looked_after_and_not_root():
    """What can be told without building it: the last user, the health check, and what is copied."""
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    user = [line.split()[1] for line in lines if line.startswith("USER")][-1]
    assert int(user) > 0  # by number: who runs the image can tell that it is not root
    assert f"useradd --uid {user} " in "\n".join(lines)
    assert any(line.startswith("HEALTHCHECK") for line in lines)
    for line in lines:
        if line.startswith("COPY"):
            *sources, _ = line.split()[1:]
            assert all((ROOT / source).exists() for source in sources)
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"][
        "wheel"
    ]
    let_in = (ROOT / ".dockerignore").read_text().splitlines()
    for package in packages["packages"]:  # without one of them the command is not there
        assert f"COPY {package} {package}" in lines
        assert f"!{package}" in let_in
    for line in lines:
        if line.startswith("COPY"):
            assert {f"!{source}" for source in line.split()[1:-1]} <= set(let_in)
    compose = (ROOT / "compose.yaml").read_text()
    for part in ("healthcheck:", "/v1/health", "127.0.0.1:8000:8000", "read_only: true", "no-new-privileges"):
        assert part in compose


def test_the_container_starts_a_service_and_knows_whether_it_is_well(monkeypatch):
    """Its command is one that the program takes; its health check answers for a service and for none."""
    recipe = (ROOT / "Dockerfile").read_text()
    (program, *arguments) = json.loads(re.search(r"^ENTRYPOINT (.*)$", recipe, re.M)[1])
    started = []
    monkeypatch.setattr("chainroute.service.server.serve", lambda _, *place: started.append(place[:2]))
    done = CliRunner().invoke(app, arguments)
    assert (program, done.exit_code, started) == ("chainroute", 0, [("0.0.0.0", 8000)]), done.output
    check = json.loads(re.search(r"^HEALTHCHECK .*\\\n\s+CMD (.*)$", recipe, re.M)[1])
    compose = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]["chainroute"]
    assert compose["healthcheck"]["test"] == ["CMD", *check]

    def is_well(port):
        line = [sys.executable, *(part.replace("8000", port) for part in check[1:])]
        return subprocess.run(line, capture_output=True, timeout=20).returncode == 0

    with listening(application()) as client:
        port = str(client.base_url.port)
        assert is_well(port)
    assert not is_well(port)


def test_the_container_installs_all_that_the_service_imports():
    """Every library that the server loads is required by the package with the extras of the install line."""
    (extras,) = re.findall(r"'\.\[([\w,]+)\]'", (ROOT / "Dockerfile").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = [line for extra in extras.split(",") for line in project["optional-dependencies"][extra]]
    installed = {"chainroute"}.union(*(required(line) for line in [*project["dependencies"], *lines]))
    code = "import sys, chainroute.service.server; print(*{name.partition('.')[0] for name in sys.modules})"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    owners = packages_distributions()
    used = {canonicalize_name(owners[name][0]) for name in loaded.stdout.split() if name in owners}
    assert used >= {"fastapi", "uvicorn", "numpy"}
    assert used <= installed
    assert installed >= {"torch", "safetensors"}  # which the policy's process loads


def required(line, seen=()):
    """What is installed for a requirement, by the names of distributions."""
    requirement = Requirement(line)
    found = {*seen, canonicalize_name(requirement.name)}
    for further in map(Requirement, requires(requirement.name) or []):
        wanted = not further.marker or any(
            further.marker.evaluate({"extra": extra}) for extra in (*requirement.extras, "")
        )
        if wanted and canonicalize_name(further.name) not in found:
            found |= required(str(further), found)
    return found
