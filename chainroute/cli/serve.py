"""The verb `serve`."""

import os
import re
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from chainroute.cli import declared, show
from chainroute.cli.app import Reading, app
from chainroute.errors import ChainRouteError, Fault, fail
from chainroute.options import Group
from chainroute.runtime.extras import loading
from chainroute.runtime.files import load

ANY_HOSTS = ("0.0.0.0", "::", "")  # hosts that stand for every address of the machine


@app.command()
@show.guarded
@declared.translated
def serve(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 for any that is free.")] = 8000,
    token_file: Annotated[
        Path | None,
        typer.Option(
            help="File with the token that is asked of every request, as a bearer token. "
            "CHAINROUTE_TOKEN in the environment serves the same."
        ),
    ] = None,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(help="Origin of another page that may use the service; may be repeated."),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            help="Another name by which the service is reached, * for any; may be repeated. Without, only "
            "localhost and --host are answered."
        ),
    ] = None,
    allow_webhook: Annotated[
        list[str] | None,
        typer.Option(help="Place to which ended jobs may be sent, as https://host:port; may be repeated."),
    ] = None,
    webhook_key_file: Annotated[
        Path | None,
        typer.Option(
            help="File with the key by which what is sent there is signed. CHAINROUTE_WEBHOOK_KEY in the "
            "environment serves the same."
        ),
    ] = None,
    jobs: Annotated[int | None, typer.Option(help="Jobs at once; as many as cores, unless given.")] = None,
    queue: Annotated[int | None, typer.Option(help="Jobs that may wait; 256 unless given.")] = None,
    max_time_limit: Annotated[
        float | None, typer.Option(help="Seconds that one job may ask for; 60 unless given.")
    ] = None,
    max_customers: Annotated[
        int | None, typer.Option(help="Customers of one problem; 2000 unless given.")
    ] = None,
    roads: Annotated[dict[str, Any], Group(Reading, ("roads", "roads_url"))] = {},  # noqa: B006 never changed
) -> int:
    """Open the page and the HTTP API; Ctrl-C ends it."""
    from chainroute.cli.files import ProblemReader

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
    token, server = _token(token_file, "CHAINROUTE_TOKEN"), ProblemReader(roads).server
    key = _token(webhook_key_file, "CHAINROUTE_WEBHOOK_KEY")
    if faults:
        raise ChainRouteError(faults)
    with loading("the service", "serve"):
        from chainroute.service.server import serve as listen
        from chainroute.service.settings import LOOPBACK, Settings
    if server is not None:
        server.require()
    given = {
        "running": jobs,
        "queued": queue,
        "max_time_limit": max_time_limit,
        "max_customers": max_customers,
        "token": token,
        "hosts": (*LOOPBACK, host, *(allow_host or ())),
        "webhook_key": key,
        "webhooks": tuple(allow_webhook or ()) or None,
        "origins": tuple(allow_origin or ()) or None,
        "roads": server,
    }
    if host in ANY_HOSTS and not allow_host:
        print(
            f"Warning: {host} is open to all, but only requests to localhost are answered; --allow-host NAME "
            "adds the name or address by which others reach this machine.",
            file=sys.stderr,
        )
    if host not in LOOPBACK and not token:
        print(
            f"Warning: whoever reaches {host} can use this service; --token-file asks them who they are.",
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


def _token(file: Path | None, variable: str) -> str | None:
    """A secret, from the file or the environment: every user of the machine can read a command line."""
    token = load(file).decode(errors="replace").strip() if file else os.environ.get(variable)
    if not token:
        return None
    if not re.fullmatch(r"[!-~]+", token):
        message, remedy = "must be printable ASCII characters without spaces.", "Choose another token."
        raise fail("bad-option", message, "the token", remedy)
    return token
