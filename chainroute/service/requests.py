"""Bodies from the wire: bounded before they are read, then taken apart in a process that can be ended."""

from __future__ import annotations

import hashlib
import logging
import threading
from contextlib import suppress
from dataclasses import replace
from typing import Any

import anyio
from anyio import to_thread
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect, Request

from chainroute.errors import ChainRouteError, fail
from chainroute.formats.common import short
from chainroute.runtime import worker
from chainroute.runtime.deadline import START_SECONDS, Deadline
from chainroute.service import reading
from chainroute.service.reading import CSV, FORM, XLSX, Body
from chainroute.service.settings import Settings

READERS = (
    "reader 1",
    "reader 2",
)  # kinds of workers, of each of which there is one: two bodies are read at once
READ_SECONDS = 10.0  # that reading one body may take
READER_BYTES = 3_000_000_000  # of memory that one reader may take
ROAD_READERS = (
    "reader of roads 1",
    "reader of roads 2",
)  # who wait for the routing server, and keep up nobody
ROADS_SECONDS = 60.0  # that reading may take where roads are measured

TABLES = {CSV: "stops.csv", XLSX: "stops.xlsx"}  # bodies that are a file by themselves: what they are called

log = logging.getLogger("chainroute.service")


class Readers:
    """Processes that make problems and answers of bodies. None is held for longer than `READ_SECONDS`."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._plain, self._by_roads = _Idle(READERS), _Idle(ROAD_READERS)
        self._closing = threading.Event()

    async def body(self, request: Request, *, forms_only: bool = False) -> Body:
        """The whole body, if it is of a kind that we take; its size is watched by the application."""
        return await _body(request, self._settings, forms_only)

    async def read(self, request: Request, task: reading.Reader, given: Body, roads: bool = False) -> Any:
        """What the task makes of the request's body, on roads if that is asked for."""
        if roads and self._settings.roads is None:
            raise fail("no-road-server", "this service knows of no routing server.", "roads")
        idle = self._by_roads if roads else self._plain
        async with idle.limit:
            if await request.is_disconnected():  # nobody waits for it any more
                raise ClientDisconnect
            reader = idle.readers.pop()
            try:
                return await to_thread.run_sync(self._run, reader, task, given, roads)
            finally:
                idle.readers.append(reader)

    def _run(self, reader: str, task: reading.Reader, given: Body, roads: bool) -> Any:
        answers: list[Any] = []
        settings = self._settings if roads else replace(self._settings, roads=None)
        args = (task, given, settings)
        warm_up(reader, self._closing)
        deadline = Deadline.after(ROADS_SECONDS if roads else READ_SECONDS)
        try:
            ended = worker.run(
                reading.run,
                args,
                deadline,
                answers.append,
                kind=reader,
                stop=self._closing,
                memory=READER_BYTES,
            )
        except ChainRouteError as error:
            if error.faults[0].code != "solver-failed":
                raise
            log.error("A reader failed: %s", error)
            raise fail("internal-error", "the service failed to read this; its log says how.") from None
        if self._closing.is_set():
            raise fail("busy", "the service is about to end.")
        if not ended and roads:
            message = f"has not told all roads within {ROADS_SECONDS:g} s; those it has told are kept."
            raise fail("roads-unreachable", message, "roads", "Ask again, which goes on from there.")
        if not ended:
            raise fail("reading-too-long", f"reading it takes more than {READ_SECONDS:g} s.", "body")
        return answers[0]

    def close(self) -> None:
        """Ends what is being read."""
        self._closing.set()


class _Idle:
    """Readers of one kind that have nothing to do."""

    def __init__(self, kinds: tuple[str, ...]) -> None:
        self.readers, self.limit = list(kinds), anyio.CapacityLimiter(len(kinds))


def warm_up(reader: str, stop: threading.Event | None = None) -> None:
    """Has a reader started, by asking for what it refuses."""
    with suppress(ChainRouteError):
        args, deadline = (reading.read_check, b"", Settings()), Deadline.after(START_SECONDS)
        worker.run(reading.run, args, deadline, print, kind=reader, stop=stop, memory=READER_BYTES)


def fingerprint(given: Body, roads: bool) -> bytes:
    """The same for the same order, and for no other."""
    parts = [given] if isinstance(given, bytes) else [repr(item).encode() for item in sorted(given.items())]
    return hashlib.sha256(b"\0".join([*parts, b"roads" * roads])).digest()


async def _body(request: Request, settings: Settings, forms_only: bool) -> Body:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "multipart/form-data":
        return await _form(request, settings)
    if kind in TABLES:
        return {"file": (TABLES[kind], await request.body())}
    if kind == "application/json" and not forms_only:
        return await request.body()
    wanted = ", ".join([*(["application/json"] * (not forms_only)), "multipart/form-data", *TABLES])
    raise fail(
        "unknown-content-type",
        f"the body is '{short(kind)}'." if kind else "is missing.",
        "Content-Type",
        f"Send one of {wanted}.",
    )


async def _form(request: Request, settings: Settings) -> Body:
    parser = MultiPartParser(request.headers, request.stream(), max_files=1, max_fields=2 * len(FORM))
    parser.spool_max_size = settings.max_bytes + 1  # in memory, never on disk
    try:
        form = await parser.parse()
    except (MultiPartException, KeyError, ValueError) as error:
        message = error.message if isinstance(error, MultiPartException) else "it has no boundary."
        raise fail("bad-syntax", f"the form cannot be read: {message[:100]}", "body") from None
    found: dict[str, str | tuple[str, bytes]] = {}
    for key, value in form.multi_items():
        if key in found:
            raise fail("duplicate-section", "the field is given more than once.", short(key))
        found[key] = (value.filename or "", await value.read()) if isinstance(value, UploadFile) else value
    await form.close()
    return found
