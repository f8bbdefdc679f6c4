"""The verb `serve`."""

import sys
from typing import Annotated

import typer

from chainroute.cli import show
from chainroute.cli.app import app
from chainroute.errors import ChainRouteError, Fault, fail

LOOPBACK = ("127.0.0.1", "::1", "localhost")


@app.command()
@show.guarded
def serve(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 for any that is free.")] = 8000,
    token: Annotated[
        str | None, typer.Option(envvar="CHAINROUTE_TOKEN", help="Asked of every request, as a bearer token.")
    ] = None,
    allow_origin: Annotated[
        list[str] | None, typer.Option(help="Of another page that may use the service; may be repeated.")
    ] = None,
    jobs: Annotated[int | None, typer.Option(help="Jobs at once; as many as cores, unless given.")] = None,
    queue: Annotated[int | None, typer.Option(help="Jobs that may wait; 256 unless given.")] = None,
    max_time_limit: Annotated[
        float | None, typer.Option(help="Seconds that one job may ask for; 60 unless given.")
    ] = None,
    max_customers: Annotated[
        int | None, typer.Option(help="Customers of one problem; 2000 unless given.")
    ] = None,
) -> int:
    """Open the page and the HTTP API; Ctrl-C ends it."""
    given = {
        "running": jobs,
        "queued": queue,
        "max_time_limit": max_time_limit,
        "max_customers": max_customers,
        "token": token or None,
        "origins": tuple(allow_origin or ()) or None,
    }
    low = {
        "--jobs": jobs,
        "--queue": queue,
        "--max-time-limit": max_time_limit,
        "--max-customers": max_customers,
    }
    faults = [
        Fault("bad-option", f"must be above 0, not {value:g}.", name)
        for name, value in low.items()
        if value is not None and not 0 < value < 1e9
    ]
    if faults:
        raise ChainRouteError(faults)
    try:
        from chainroute.service.server import serve as listen
        from chainroute.service.settings import Settings
    except ModuleNotFoundError as error:
        message = f"the service needs {error.name}: pip install 'chainroute[serve]'."
        raise fail("missing-extra", message) from None
    if host not in LOOPBACK and not token:
        print(
            f"Warning: whoever reaches {host} can use this service; --token asks them who they are.",
            file=sys.stderr,
        )
    settings = Settings(**{key: value for key, value in given.items() if value is not None})  # type: ignore[arg-type]
    listen(
        settings,
        host,
        port,
        lambda address: print(f"ChainRoute is at {address} (Ctrl-C ends it)", flush=True),
    )
    return 0
