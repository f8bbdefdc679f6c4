"""Addresses and errors."""

from __future__ import annotations

import asyncio
import hmac
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, FastAPI, Header, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.middleware.cors import CORSMiddleware
from fastapi.middleware.gzip import GZipMiddleware
from fastapi.responses import FileResponse, Response, StreamingResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import BaseRoute, Match, Route

from chainroute import __version__
from chainroute.errors import ChainRouteError, Fault, fail
from chainroute.formats.schema import ProblemFile
from chainroute.problem.variants import VARIANTS
from chainroute.service import attributes, documents, openapi
from chainroute.service.batch import Batcher, Decode
from chainroute.service.examples import TITLES, example
from chainroute.service.frame import Frame, has_head
from chainroute.service.jobs import Job, Jobs, Solve
from chainroute.service.metrics import CONTENT_TYPE, Metrics
from chainroute.service.policy import decode
from chainroute.service.reading import read_check, read_geojson, read_problem, read_solve
from chainroute.service.requests import Readers, fingerprint
from chainroute.service.settings import Settings
from chainroute.solve import solve

PAGE = Path(__file__).parent / "page"
HEARTBEAT_SECONDS = 5.0  # seconds between comments on a stream that has nothing to say
GONE = 499  # a status for our figures alone: the client broke off
PAUSE_SECONDS = 0.1  # seconds between looks at a job that changes all the time
POLICY = "default-src 'self'; img-src * data: blob:; style-src 'self' 'unsafe-inline'; frame-ancestors 'none'"

STATUS = {
    "unauthorized": 401,
    "unknown-address": 404,
    "unknown-job": 404,
    "too-slow": 408,
    "unknown-content-type": 415,
    "file-too-large": 413,
    "roads-unreachable": 502,
    "roads-not-understood": 502,
    "busy": 503,
    "internal-error": 500,
}

PREFER_WAIT = re.compile(r"(?<![\w-])wait(?:\s*=\s*(\d{1,6}))?(?=\s*(?:[,;]|$))", re.IGNORECASE)

BEARER = HTTPBearer(auto_error=False)

ByRoads = Annotated[
    bool, Query(alias="roads", description="Measure roads by the routing server, not straight lines.")
]


def create_app(
    settings: Settings,
    solve: Solve = solve,
    decode: Decode = decode,
) -> FastAPI:
    metrics = Metrics()
    batcher = Batcher(settings.batch, settings.lanes, decode, metrics)
    jobs = Jobs(settings, solve, batcher, metrics)
    readers = Readers(settings)

    def close() -> None:
        readers.close()
        jobs.close()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        close()

    app = FastAPI(
        title="ChainRoute",
        version=__version__,
        description="Solves 48 kinds of vehicle routing problems.",
        openapi_url=None,  # it is one of the addresses that ask for the token
        docs_url=None,  # its scripts would come from elsewhere
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.close = close
    app.state.ready = True
    app.state.settings = settings
    app.openapi = lambda: openapi.complete(app)  # type: ignore[method-assign]
    public, api = _public(settings, jobs), _api(jobs, readers, metrics, settings.listeners)
    _answer_errors(app, jobs, [*public.routes, *api.routes])
    app.include_router(public)
    guards = [Depends(_guard(settings.token))] if settings.token else []
    app.include_router(api, dependencies=guards)
    _serve_attributes(app)
    app.mount("/assets", _Assets(directory=PAGE / "assets", check_dir=False))
    app.add_middleware(GZipMiddleware, minimum_size=1000, compresslevel=4)  # but not of streams of events
    app.add_middleware(Frame, settings=settings, metrics=metrics)
    if settings.origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.origins,
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["Authorization", "Content-Type", "Idempotency-Key", "Last-Event-ID", "Prefer"],
            expose_headers=["Location", "Preference-Applied", "Retry-After"],
        )
    return app


class _Assets(StaticFiles):
    """The page's files; a browser asks each time whether they are still the same."""

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        response = super().file_response(*args, **kwargs)
        response.headers["Cache-Control"] = "no-cache"
        return response


# -- addresses


def _serve_attributes(app: FastAPI) -> None:
    """Serves the module of the page that the declared attributes make."""
    content = attributes.module()

    @app.get("/assets/attributes.js", include_in_schema=False)
    async def declared() -> Response:
        return Response(content, media_type="text/javascript", headers={"Cache-Control": "no-cache"})


def _public(settings: Settings, jobs: Jobs) -> APIRouter:
    """What needs no token."""
    router = APIRouter()

    @router.get("/", include_in_schema=False)
    async def page() -> Response:
        index = PAGE / "index.html"
        if not index.is_file():
            raise fail("unknown-address", "this installation has no page.")
        return FileResponse(index, headers={"Content-Security-Policy": POLICY, "Cache-Control": "no-cache"})

    @router.get("/v1/health", response_model=documents.HealthDocument)
    async def health(request: Request) -> Response:
        """Whether the service is there, and what it allows."""
        limits = {name: getattr(settings, name) for name in documents.LimitsDocument.model_fields}
        return _json(
            {
                "status": "ok",
                "version": __version__,
                "ready": request.app.state.ready,
                "queued": jobs.queued,
                "running": jobs.running,
                "limits": limits,
                "roads": settings.roads and settings.roads.kind,
            }
        )

    return router


def _api(jobs: Jobs, readers: Readers, metrics: Metrics, listeners: int) -> APIRouter:
    router = APIRouter(responses=openapi.FAILURES)

    @router.get("/metrics", responses={200: {"content": {"text/plain": {}}}}, response_class=Response)
    async def figures() -> Response:
        """Figures as Prometheus text."""
        return Response(metrics.text(), media_type=CONTENT_TYPE)

    @router.get("/openapi.json", include_in_schema=False)
    async def interface(request: Request) -> Response:
        return _json(request.app.openapi())

    @router.get("/v1/variants", response_model=list[documents.VariantDocument])
    async def variants() -> Response:
        """The 48 variants."""
        return _json([{"name": v.name, **vars(v), "seen": v.seen} for v in VARIANTS])

    @router.get("/v1/examples", response_model=list[documents.ExampleDocument])
    def examples() -> Response:
        """Problems to try."""
        found = [(name, title, p) for name, title in TITLES.items() if (p := example(name))]
        return _json(
            [
                {"name": name, "title": title, "customers": p.num_customers, "variant": p.kind}
                for name, title, p in found
            ]
        )

    @router.get("/v1/examples/{name}", response_model=ProblemFile)
    def one_example(name: str) -> Response:
        """One of them, as a JSON document."""
        problem = example(name)
        if problem is None:
            raise fail("unknown-address", f"the examples are {', '.join(TITLES)}.", "name")
        return _json(documents.problem(problem))

    @router.post("/v1/read", response_model=documents.ReadDocument, openapi_extra=openapi.READ)
    async def read(request: Request, by_roads: ByRoads = False) -> Response:
        """A problem file of any format, as a JSON document."""
        given = await readers.body(request, forms_only=True)
        return _json(await readers.read(request, read_problem, given, by_roads))

    @router.post("/v1/check", response_model=documents.VerdictDocument, openapi_extra=openapi.CHECK)
    async def check(request: Request, by_roads: ByRoads = False) -> Response:
        """What the judge says of a solution."""
        return _json(await readers.read(request, read_check, await readers.body(request), by_roads))

    @router.post("/v1/geojson", response_model=documents.GeoDocument, openapi_extra=openapi.GEOJSON)
    async def geojson(request: Request, by_roads: ByRoads = False) -> Response:
        """A solution for a map; its lines follow the roads where these are asked for."""
        found = await readers.read(request, read_geojson, await readers.body(request), by_roads)
        return Response(found, media_type="application/json")

    @router.post(
        "/v1/solve",
        status_code=202,
        response_model=documents.Accepted,
        responses=openapi.SOLVED,
        openapi_extra=openapi.SOLVE,
    )
    async def submit(
        request: Request,
        wait: Annotated[bool, Query(description="Answer when the job has ended.")] = False,
        prefer: Annotated[
            str, Header(description="`wait` is the same as ?wait=true; `wait=10` waits for 10 s at most.")
        ] = "",
        idempotency_key: Annotated[
            str,
            Header(max_length=200, description="Orders with the same key are one job."),
        ] = "",
        by_roads: ByRoads = False,
    ) -> Response:
        """A new job."""
        given = await readers.body(request)
        mark = (idempotency_key, fingerprint(given, by_roads)) if idempotency_key else None
        job = mark and jobs.known(mark)
        if not job:
            job = jobs.submit(await readers.read(request, read_solve, given, by_roads), mark)
        wished = PREFER_WAIT.search(prefer)
        applied = {"Preference-Applied": wished[0].strip()} if wished else {}
        if wait or wished:
            most = float(wished[1]) if wished and wished[1] else None
            if await _ended(request, job, jobs, most, keep=bool(mark)):
                return _json(jobs.document(job), headers=applied)
        place = f"/v1/jobs/{job.id}"
        links = {"job": place, "events": f"{place}/events"}
        accepted = {"id": job.id, "status": job.status, "links": links}
        return _json(accepted, status=202, headers={"Location": place, **applied})

    @router.get("/v1/jobs", response_model=documents.JobList)
    async def listed(
        status: Annotated[
            Literal["", "queued", "running", "done", "failed", "cancelled"],
            Query(description="Only those of this status."),
        ] = "",
        limit: Annotated[int, Query(ge=1, le=1000, description="At most so many.")] = 100,
    ) -> Response:
        """The jobs that can be asked for, newest first."""
        return _json({"jobs": jobs.listed(status, limit)})

    @router.get("/v1/jobs/{id}", response_model=documents.JobDocument)
    async def job(id: str) -> Response:
        """A job, with the best solution so far."""
        return _json(jobs.document(jobs.get(id)))

    @router.delete("/v1/jobs/{id}", response_model=documents.JobDocument)
    async def cancel(id: str) -> Response:
        """Ends a job; the best so far is kept."""
        found = jobs.get(id)
        jobs.cancel(found)
        return _json(jobs.document(found))

    @router.get("/v1/jobs/{id}/events", responses=openapi.EVENTS, response_class=StreamingResponse)
    async def events(
        id: str,
        cancel_on_disconnect: Annotated[
            bool, Query(description="Cancel the job when its last listener goes away.")
        ] = False,
        last_event_id: Annotated[str, Header(description="Go on after this event.")] = "",
    ) -> Response:
        """The progress of a job, as server-sent events."""
        found = jobs.get(id)
        if jobs.listeners >= listeners:
            raise fail("busy", f"{listeners} clients listen to events already; ask for the job itself.")
        seen = int(last_event_id) if last_event_id.isdecimal() and last_event_id.isascii() else 0
        stream = _events(jobs, found, seen, cancel_on_disconnect)
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(stream, media_type="text/event-stream", headers=headers)

    return router


def _json(content: object, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    data = content if isinstance(content, bytes) else documents.encoded(content)
    return Response(data, status, headers, media_type="application/json")


async def _ended(request: Request, job: Job, jobs: Jobs, most: float | None, keep: bool) -> bool:
    """Whether the job has ended, within so many seconds at most. If the client goes away before, so does its
    job, unless it is to be kept for a client that comes back."""

    async def left() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    gone = asyncio.create_task(left())
    try:
        async with asyncio.timeout(most):
            while job.work is not None and not gone.done():
                change = asyncio.create_task(job.changed.wait())
                await asyncio.wait((gone, change), return_when=asyncio.FIRST_COMPLETED)
                change.cancel()
    except TimeoutError:
        return False
    except BaseException:
        if not keep:
            jobs.cancel(job)
        raise
    finally:
        gone.cancel()
    if not keep:
        jobs.cancel(job)  # which does nothing to one that has ended
    return True


async def _events(jobs: Jobs, job: Job, seen: int, cancel_on_disconnect: bool) -> AsyncIterator[bytes]:
    job.listeners += 1
    try:
        while True:
            changed, total = job.changed, len(job.history)
            for i in range(min(seen, total), total):
                yield b"id: %d\nevent: progress\ndata: %s\n\n" % (i + 1, jobs.progress(job, i))
            seen = total
            if job.work is None:
                if len(job.history) == seen:
                    yield b"event: end\ndata: %s\n\n" % job.final
                    return
                continue
            try:
                await asyncio.wait_for(changed.wait(), HEARTBEAT_SECONDS)
                await asyncio.sleep(PAUSE_SECONDS)
            except TimeoutError:
                yield b": still here\n\n"
    finally:
        job.listeners -= 1
        if cancel_on_disconnect and not job.listeners:
            jobs.cancel(job)


# -- who may, and what goes wrong


def _guard(token: str) -> Callable[..., Any]:
    async def authorised(given: Annotated[HTTPAuthorizationCredentials | None, Depends(BEARER)]) -> None:
        if given is None or not hmac.compare_digest(given.credentials.encode(), token.encode()):
            raise fail("unauthorized", "the token is missing or wrong.", "Authorization")

    return authorised


def _answer_errors(app: FastAPI, jobs: Jobs, routes: Sequence[BaseRoute]) -> None:
    def answer(faults: tuple[Fault, ...], status: int, headers: dict[str, str] | None = None) -> Response:
        return _json(documents.failure(faults), status, headers)

    @app.exception_handler(ChainRouteError)
    async def coded(_: Request, error: ChainRouteError) -> Response:
        first = error.faults[0]
        status = STATUS.get(first.code, 422)
        headers = {401: {"WWW-Authenticate": "Bearer"}, 503: {"Retry-After": str(jobs.patience())}}
        return answer(error.faults, status, headers.get(status))

    @app.exception_handler(ClientDisconnect)
    async def gone(_: Request, __: ClientDisconnect) -> Response:
        return Response(status_code=GONE)

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> Response:
        faults = tuple(
            Fault("wrong-type", f"{e['msg'][:1].lower()}{e['msg'][1:]}.", str(e["loc"][-1])[:60])
            for e in error.errors()
        )
        return answer(faults, 422)

    @app.exception_handler(HTTPException)
    async def other(request: Request, error: HTTPException) -> Response:
        message, headers = "there is nothing here.", {}
        if error.status_code == 405:
            message = f"{request.method[:20]} is not a method of this address."
            headers["Allow"] = ", ".join(_methods(routes, request))
        return answer((Fault("unknown-address", message),), error.status_code, headers)

    @app.exception_handler(Exception)
    async def ours(_: Request, __: Exception) -> Response:
        return answer((Fault("internal-error", "the service failed; its log says how."),), 500)


def _methods(routes: Sequence[BaseRoute], request: Request) -> list[str]:
    """The methods of all routes that share the address; the page's files, beside them, are only read."""
    found = {"GET"} if request.url.path.startswith("/assets/") else set()
    for route in routes:
        if isinstance(route, Route) and route.matches(request.scope)[0] is not Match.NONE:
            found |= route.methods or set()
    if "GET" in found and has_head(request.url.path):
        found.add("HEAD")
    return sorted(found)
