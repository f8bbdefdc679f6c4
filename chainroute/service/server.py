"""From a socket to Ctrl-C."""

from __future__ import annotations

import asyncio
import signal
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any, NoReturn

import uvicorn
from fastapi import FastAPI

from chainroute.classical import pyvrp
from chainroute.errors import ChainRouteError, fail
from chainroute.service import policy, requests
from chainroute.service.app import create_app
from chainroute.service.settings import Settings

GRACE = 2  # seconds that open requests are given when the service ends
BACKLOG = 1024  # connections that wait to be taken


def serve(settings: Settings, host: str, port: int, on_start: Callable[[str], None]) -> None:
    """Answers requests until a signal ends it; `on_start` is told the address."""
    signal.signal(signal.SIGTERM, _leave)  # through Python's own exit, which ends the workers
    with bound(host, port) as listener:
        app = create_app(settings)
        app.state.ready = False
        threading.Thread(target=_warm_up, args=(app, settings), daemon=True).start()
        config = uvicorn.Config(
            app, log_level="warning", access_log=False, timeout_graceful_shutdown=GRACE, server_header=False
        )
        shown = f"[{host}]" if ":" in host else host
        on_start(f"http://{shown}:{listener.getsockname()[1]}")
        Server(config).run(sockets=[listener])


def bound(host: str, port: int) -> socket.socket:
    """A socket that listens there."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except (OSError, OverflowError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise fail("bad-option", f"{host}:{port} cannot be listened on: {reason}.", "--port") from None


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
    searches = [pyvrp.warm_up] * (2 * settings.running)
    for tasks in ([requests.warm_up] * requests.READERS, [policy.warm_up] * settings.lanes + searches):
        for thread in [start(task) for task in tasks]:
            thread.join()
    app.state.ready = True


def _leave(signal_number: int, _: FrameType | None) -> NoReturn:
    raise SystemExit(128 + signal_number)


class Server(uvicorn.Server):
    """Jobs end as soon as the signal comes, so that those who wait for them are answered and leave."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        app: Any = self.config.app
        with suppress(RuntimeError):  # not running yet, or not any more
            self._loop.call_soon_threadsafe(app.state.close)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)
