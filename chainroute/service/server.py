"""The service listens, from its first socket to Ctrl-C."""

from __future__ import annotations

import asyncio
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from types import FrameType
from typing import Any, NoReturn

import h11
import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from chainroute.errors import ChainRouteError, fail
from chainroute.runtime.signals import handling
from chainroute.search.solvers import pyvrp
from chainroute.service import policy, requests
from chainroute.service.app import create_app
from chainroute.service.settings import LOOPBACK, Settings

GRACE_SECONDS = 2  # seconds that open requests are given when the service ends
FREE_CHUNKS = 1000  # of a body, which may be of any size
LEAST_CHUNK_BYTES = 64  # that chunks beyond these must have on average
BUSY = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
HEAD_SECONDS = 10.0  # seconds within which a request's first line and headers must have come
BACKLOG_CONNECTIONS = 1024  # connections that wait to be taken


def serve(settings: Settings, host: str, port: int, on_start: Callable[[str], None]) -> None:
    """Answers requests until a signal ends it; `on_start` is told the address."""
    signal.signal(signal.SIGTERM, _leave)  # through Python's own exit, which ends the workers
    with bound(host, port) as listener:
        _raise_open_files()
        app = create_app(settings)
        app.state.ready = False
        threading.Thread(target=_warm_up, args=(app, settings), daemon=True).start()
        shown = f"[{host}]" if ":" in host else host
        on_start(f"http://{shown}:{listener.getsockname()[1]}")
        Server(configured(app)).run(sockets=[listener])


def _raise_open_files() -> None:
    """Has the system allow as many open files as it will: a connection is one, and so is a worker's pipe."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def configured(app: FastAPI, log_level: str = "warning") -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=Connection,
        ws="none",
        lifespan="off",  # two signals at once would break it off, with a traceback; `Server` closes the app
        log_level=log_level,
        access_log=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
        server_header=False,
    )


def bound(host: str, port: int) -> socket.socket:
    """A socket that listens there."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.create_server((host, port), family=family, backlog=BACKLOG_CONNECTIONS)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # or the end of an answer waits 40 ms
        return listener
    except (OSError, OverflowError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        message, remedy = f"{host}:{port} cannot be listened on: {reason}.", "Choose another host or port."
        raise fail("bad-option", message, "--port", remedy) from None


def _warm_up(app: FastAPI, settings: Settings) -> None:
    """Has the processes started before they are asked for; where that fails, the notes of jobs say so."""

    def start(what: Callable[[], object]) -> threading.Thread:
        def quietly() -> None:
            with suppress(ChainRouteError):
                what()

        thread = threading.Thread(target=quietly, daemon=True)
        thread.start()
        return thread

    # Each job searches twice, from nothing and from the policy's routes.
    searches = [partial(pyvrp.warm_up, count=2 * settings.running)]
    readers = [partial(requests.warm_up, reader) for reader in requests.READERS]
    for tasks in (readers, [policy.warm_up] * settings.lanes + searches):
        for thread in [start(task) for task in tasks]:
            thread.join()
    app.state.ready = True


def _leave(signal_number: int, _: FrameType | None) -> NoReturn:
    raise SystemExit(128 + signal_number)


class Connection(H11Protocol):
    """Is closed when a request's head has not come in time, the first or a later one; when there are too
    many connections; and when a body comes in thousands of chunks of a few bytes, which all take time."""

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if self._is_one_too_many():
            transport.write(BUSY)
            transport.close()
            return
        self._chunks = self._bytes = 0
        self._next_event = self.conn.next_event
        setattr(self.conn, "next_event", self._counted)  # noqa: B010 uvicorn asks for events by this name
        self._watch()

    def _is_one_too_many(self) -> bool:
        app: Any = self.config.app
        settings: Settings = app.state.settings
        if len(self.connections) > settings.connections:
            return True
        mine = self.client and self.client[0]
        others = (c.client and c.client[0] for c in self.connections)  # type: ignore[union-attr]
        return mine not in LOOPBACK and sum(other == mine for other in others) > settings.client_connections

    def _counted(self) -> Any:
        """The next event of the connection's parser."""
        event = self._next_event()
        if isinstance(event, h11.Request):
            self._chunks = self._bytes = 0
        elif isinstance(event, h11.Data):
            self._chunks, self._bytes = self._chunks + 1, self._bytes + len(event.data)
            if self._chunks > FREE_CHUNKS + self._bytes // LEAST_CHUNK_BYTES:
                raise h11.RemoteProtocolError("chunks of a few bytes", error_status_hint=400)
        return event

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._late is not None:
            self._late.cancel()

    def _watch(self) -> None:
        """Starts the clock when a head is waited for, and stops it when that is there."""
        if self.conn.their_state is not h11.IDLE:
            if self._late is not None:
                self._late.cancel()
            self._late = None
        elif self._late is None:
            self._late = self.loop.call_later(HEAD_SECONDS, self.transport.close)


class Server(uvicorn.Server):
    """Jobs end as soon as the signal comes, so that those who wait for them are answered and leave."""

    _loop: asyncio.AbstractEventLoop | None = None  # once it runs

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Also that the terminal is closed, which is not among uvicorn's."""
        with super().capture_signals(), handling(lambda number: self.handle_exit(number, None)):
            yield

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        app: Any = self.config.app
        if self._loop is not None:
            with suppress(RuntimeError):  # it does not run any more
                self._loop.call_soon_threadsafe(app.state.close)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        app: Any = self.config.app
        app.state.close()
        await super().shutdown(sockets)
