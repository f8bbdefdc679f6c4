"""Around every request: for whom it is, from where it comes, how large and how slow it may be."""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from chainroute.errors import Fault, fail
from chainroute.formats.common import short
from chainroute.service import documents
from chainroute.service.metrics import Metrics
from chainroute.service.settings import Settings

ARRIVAL_SECONDS = 60.0  # seconds within which a body must have come
HARMLESS = ("GET", "HEAD", "OPTIONS")  # methods that change nothing
UNFINISHED = (408, 413, 503)  # answers that come before the body's end: the rest is not waited for


class Frame:
    """Refuses requests for other hosts and from other sites, bounds bodies as they come, counts answers."""

    def __init__(self, app: ASGIApp, settings: Settings, metrics: Metrics) -> None:
        self.app, self.settings, self.metrics = app, settings, metrics
        self.arriving = 0  # bytes of bodies in memory

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                self.metrics.requests.labels(message["status"]).inc()
                message["headers"] = [*message["headers"], (b"x-content-type-options", b"nosniff")]
                if message["status"] in UNFINISHED:
                    message["headers"].append((b"connection", b"close"))
            await send(message)

        if refusal := self._refusal(scope["method"], Headers(scope=scope)):
            await refusal(scope, receive, counted)
        else:
            body = _Body(receive, self)
            if scope["method"] == "HEAD" and has_head(scope["path"]):
                scope = {**scope, "method": "GET"}  # the server leaves out what follows the head
            try:
                await self.app(scope, body.receive, counted)
            finally:
                self.arriving -= body.size

    def _refusal(self, method: str, headers: Headers) -> Response | None:
        """The answer to a request that is not for us: a page from elsewhere must not use the service, neither
        by a form of its own nor under a name that it has turned to our address (DNS rebinding)."""
        hosts, origins = self.settings.hosts, self.settings.origins
        host, origin = headers.get("host", ""), headers.get("origin", "")
        if "*" not in hosts and _name(f"//{host}") not in hosts:
            return _answer(421, "unknown-host", f"this service is not called '{short(host)}'.", "Host")
        own = not origin or _netloc(origin) == host
        if method not in HARMLESS and not own and origin not in origins and "*" not in origins:
            return _answer(403, "foreign-origin", f"the request comes from '{short(origin)}'.", "Origin")
        return None


class _Body:
    """The body of one request as it comes in; all bodies together are bounded in size, each in time."""

    def __init__(self, receive: Receive, frame: Frame) -> None:
        self._receive, self._frame = receive, frame
        self._end: float | None = asyncio.get_running_loop().time() + ARRIVAL_SECONDS
        self.size = 0

    async def receive(self) -> Message:
        try:
            async with asyncio.timeout_at(self._end):
                message = await self._receive()
        except TimeoutError:
            raise fail("too-slow", f"it did not come within {ARRIVAL_SECONDS:g} s.", "body") from None
        if not message.get("more_body"):
            self._end = None  # what follows is only that the client goes away
        more, settings = len(message.get("body", b"")), self._frame.settings
        self.size += more
        self._frame.arriving += more
        if self.size > settings.max_bytes:
            raise fail("file-too-large", f"has more than {settings.max_bytes:,} bytes.", "body")
        if self._frame.arriving > settings.arriving_bytes:
            raise fail("busy", "too much is being sent at once.", "body")
        return message


def has_head(path: str) -> bool:
    """Whether GET implies HEAD there: everywhere but at streams, which have no end of their own."""
    return not path.endswith("/events")


def _name(address: str) -> str | None:
    try:
        return urlsplit(address).hostname
    except ValueError:
        return None


def _netloc(address: str) -> str | None:
    try:
        return urlsplit(address).netloc
    except ValueError:
        return None


def _answer(status: int, code: str, message: str, where: str) -> Response:
    content = documents.encoded(documents.failure([Fault(code, message, where)]))
    return Response(content, status, media_type="application/json")
