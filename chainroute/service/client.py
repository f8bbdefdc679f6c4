"""A client of the service (docs/service.md), plain and asynchronous: problems in, solutions out.

with Client(token="...") as client:
    solution = client.solve(problem, time_limit=2.0)
"""

from __future__ import annotations

import asyncio
import json
import re
import time
import uuid
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any, Self

import httpx
import numpy as np

from chainroute.errors import CODES, ChainRouteError, Fault, fail
from chainroute.formats import json as our_json
from chainroute.plan.solution import Solution
from chainroute.problem import Problem, require_problem

ADDRESS = "http://127.0.0.1:8000"
TIMEOUT = httpx.Timeout(30.0, read=120.0)  # seconds
PAUSES = (0.05, 0.1, 0.2, 0.5, 1.0)  # seconds between polls of a job, the last for as long as it takes
OPEN = ("queued", "running")  # states of a job that has not ended

Document = dict[str, Any]


@dataclass(frozen=True)
class _Call:
    """One request."""

    method: str
    path: str
    body: Document | None = None
    headers: dict[str, str] = field(default_factory=dict)

    def arguments(self) -> dict[str, Any]:
        """What httpx sends. Infinity is written: it is for the service to say what is wrong with it."""
        headers = {"Content-Type": "application/json", **self.headers}
        content = None if self.body is None else json.dumps(self.body, default=_plain)
        return {"method": self.method, "url": self.path, "content": content, "headers": headers}


def _plain(value: Any) -> Any:
    """A number of NumPy's as Python's own."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} cannot be sent")


def _submit(
    problem: Problem,
    time_limit: float,
    seed: int,
    effort: Document | None,
    initial: Solution | None,
    webhook: str | None,
) -> _Call:
    body: Document = {"problem": _document(problem), "time_limit": time_limit, "seed": seed}
    given = {"effort": effort, "initial": initial and initial.as_dict(), "webhook": webhook}
    body |= {key: value for key, value in given.items() if value is not None}
    return _Call("POST", "/v1/solve", body, {"Idempotency-Key": str(uuid.uuid4())})


def _check(problem: Problem, solution: Solution) -> _Call:
    return _Call("POST", "/v1/check", {"problem": _document(problem), "solution": solution.as_dict()})


def _document(problem: Problem) -> Document:
    document: Document = json.loads(our_json.write(require_problem(problem)))
    return document


def _job(id: str) -> str:
    """The address of a job. What is no id of any would be a way to another address."""
    if not re.fullmatch(r"[\w-]+", str(id), re.ASCII):
        raise fail("unknown-job", "there is no such job.", "id")
    return f"/v1/jobs/{id}"


def _answer(response: httpx.Response) -> Document:
    """What was answered; faults are raised as the error that they are."""
    try:
        if response.is_success:
            document: Document = response.json()
            return document
        faults = response.json()["error"]["faults"]
    except (ValueError, KeyError, TypeError):
        message = f"it answered with status {response.status_code}."
        raise fail("service-unreachable", message, str(response.url)) from None
    raise _error(faults)


def _error(faults: list[Document]) -> ChainRouteError:
    """Codes that a newer service may have are told in the message."""
    return ChainRouteError(
        Fault(f["code"], f["message"], f["where"], f["remedy"])
        if f["code"] in CODES
        else Fault("internal-error", f"{f['code']}: {f['message']}", f["where"], f["remedy"])
        for f in faults
    )


def _solution(problem: Problem, job: Document) -> Solution:
    """The solution of a job that has ended, or why it has none."""
    if job["error"]:
        raise _error(job["error"]["faults"])
    if job["solution"] is None:
        raise fail("no-solution", f"the job was {job['status']} before any was found.", problem.name)
    return our_json.to_solution(job["solution"], problem)


def _events(lines: list[str]) -> Iterator[tuple[str, Document]]:
    """The message in a stream's lines up to an empty one: (event, data), or nothing for a heartbeat."""
    fields = dict(line.split(": ", 1) for line in lines if not line.startswith(":"))
    if fields:
        yield fields["event"], json.loads(fields["data"])


def _unreachable(error: httpx.HTTPError, address: object) -> ChainRouteError:
    return fail("service-unreachable", f"{type(error).__name__}: {error}".rstrip(": ") + ".", str(address))


def _headers(token: str | None) -> dict[str, str]:
    if token and not re.fullmatch(r"[!-~]+", token):  # others cannot stand in a header; no service has them
        raise fail("bad-option", "must be printable ASCII characters without spaces.", "token")
    return {"Authorization": f"Bearer {token}"} if token else {}


class Client:
    """Keeps connections open; to be closed, or used in a `with`."""

    def __init__(self, address: str = ADDRESS, token: str | None = None) -> None:
        self._http = httpx.Client(base_url=address, headers=_headers(token), timeout=TIMEOUT)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def solve(
        self,
        problem: Problem,
        time_limit: float = 2.0,
        *,
        seed: int = 0,
        effort: Document | None = None,
        initial: Solution | None = None,
    ) -> Solution:
        """The best solution found within the time limit, counted from when the job runs."""
        job = self.submit(problem, time_limit, seed=seed, effort=effort, initial=initial)
        return _solution(problem, self.wait(job["id"]))

    def submit(
        self,
        problem: Problem,
        time_limit: float = 2.0,
        *,
        seed: int = 0,
        effort: Document | None = None,
        initial: Solution | None = None,
        webhook: str | None = None,
    ) -> Document:
        """A new job: its `id`, `status` and `links`."""
        return self._do(_submit(problem, time_limit, seed, effort, initial, webhook))

    def wait(self, id: str) -> Document:
        """The job when it has ended."""
        polls = 0
        while (job := self.job(id))["status"] in OPEN:
            time.sleep(PAUSES[min(polls, len(PAUSES) - 1)])
            polls += 1
        return job

    def events(self, id: str) -> Iterator[tuple[str, Document]]:
        """The progress of a job as it is made: ("progress", point) each time, then ("end", job)."""
        lines: list[str] = []
        try:
            with self._http.stream("GET", f"{_job(id)}/events") as response:
                if not response.is_success:
                    response.read()
                    _answer(response)
                for line in response.iter_lines():
                    if line:
                        lines.append(line)
                    else:
                        yield from _events(lines)
                        lines = []
        except httpx.HTTPError as error:
            raise _unreachable(error, self._http.base_url) from None

    def job(self, id: str) -> Document:
        return self._do(_Call("GET", _job(id)))

    def jobs(self) -> list[Document]:
        """The jobs that the service knows of, newest first."""
        found: list[Document] = self._do(_Call("GET", "/v1/jobs"))["jobs"]
        return found

    def cancel(self, id: str) -> Document:
        """The job, ended with the best so far."""
        return self._do(_Call("DELETE", _job(id)))

    def check(self, problem: Problem, solution: Solution) -> Document:
        """What the judge says."""
        return self._do(_check(problem, solution))

    def health(self) -> Document:
        return self._do(_Call("GET", "/v1/health"))

    def _do(self, call: _Call) -> Document:
        try:
            return _answer(self._http.request(**call.arguments()))
        except httpx.HTTPError as error:
            raise _unreachable(error, self._http.base_url) from None


class AsyncClient:
    """The same for asyncio."""

    def __init__(self, address: str = ADDRESS, token: str | None = None) -> None:
        self._http = httpx.AsyncClient(base_url=address, headers=_headers(token), timeout=TIMEOUT)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._http.aclose()

    async def solve(
        self,
        problem: Problem,
        time_limit: float = 2.0,
        *,
        seed: int = 0,
        effort: Document | None = None,
        initial: Solution | None = None,
    ) -> Solution:
        """The best solution found within the time limit, counted from when the job runs."""
        job = await self.submit(problem, time_limit, seed=seed, effort=effort, initial=initial)
        return _solution(problem, await self.wait(job["id"]))

    async def submit(
        self,
        problem: Problem,
        time_limit: float = 2.0,
        *,
        seed: int = 0,
        effort: Document | None = None,
        initial: Solution | None = None,
        webhook: str | None = None,
    ) -> Document:
        """A new job: its `id`, `status` and `links`."""
        return await self._do(_submit(problem, time_limit, seed, effort, initial, webhook))

    async def wait(self, id: str) -> Document:
        """The job when it has ended."""
        polls = 0
        while (job := await self.job(id))["status"] in OPEN:
            await asyncio.sleep(PAUSES[min(polls, len(PAUSES) - 1)])
            polls += 1
        return job

    async def events(self, id: str) -> AsyncIterator[tuple[str, Document]]:
        """The progress of a job as it is made: ("progress", point) each time, then ("end", job)."""
        lines: list[str] = []
        try:
            async with self._http.stream("GET", f"{_job(id)}/events") as response:
                if not response.is_success:
                    await response.aread()
                    _answer(response)
                async for line in response.aiter_lines():
                    if line:
                        lines.append(line)
                    else:
                        for event in _events(lines):
                            yield event
                        lines = []
        except httpx.HTTPError as error:
            raise _unreachable(error, self._http.base_url) from None

    async def job(self, id: str) -> Document:
        return await self._do(_Call("GET", _job(id)))

    async def jobs(self) -> list[Document]:
        """The jobs that the service knows of, newest first."""
        found: list[Document] = (await self._do(_Call("GET", "/v1/jobs")))["jobs"]
        return found

    async def cancel(self, id: str) -> Document:
        """The job, ended with the best so far."""
        return await self._do(_Call("DELETE", _job(id)))

    async def check(self, problem: Problem, solution: Solution) -> Document:
        """What the judge says."""
        return await self._do(_check(problem, solution))

    async def health(self) -> Document:
        return await self._do(_Call("GET", "/v1/health"))

    async def _do(self, call: _Call) -> Document:
        try:
            return _answer(await self._http.request(**call.arguments()))
        except httpx.HTTPError as error:
            raise _unreachable(error, self._http.base_url) from None
