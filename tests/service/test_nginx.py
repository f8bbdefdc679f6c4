"""docs/service.md: the configuration of nginx, run before a service as it stands there."""

import re
import shutil
import socket
import subprocess
import time
from contextlib import ExitStack, contextmanager, suppress

import httpx
import pytest
from services import TWO_STOPS, application, listening, until
from where import ROOT

NGINX = shutil.which("nginx") or shutil.which("/usr/sbin/nginx")
pytestmark = pytest.mark.skipif(NGINX is None, reason="nginx is not installed")


@contextmanager
def proxy(folder, service):
    """The block of the page, with a port and a folder of its own, and no certificate; gives its address."""
    (block,) = re.findall(r"```nginx\n(.*?)```", (ROOT / "docs" / "service.md").read_text(), re.DOTALL)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    changes = {
        "listen 443 ssl;": f"listen 127.0.0.1:{port};",
        "http://127.0.0.1:8000": str(service).rstrip("/"),
        "rate=20r/s": "rate=100r/s",
    }
    for old, new in changes.items():
        assert block.count(old) == 1
        block = block.replace(old, new)
    block = re.sub(r"    ssl_certificate.*\n", "", block)
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    places = "".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
    file = folder / "nginx.conf"
    file.write_text(
        f"daemon off; master_process off; pid {folder}/pid; error_log {folder}/errors;"
        f"events {{}} http {{ access_log off; {places} {block} }}"
    )
    process = subprocess.Popen([NGINX, "-p", str(folder), "-c", str(file)], stderr=subprocess.DEVNULL)
    try:
        address = f"http://127.0.0.1:{port}"

        def is_there():
            with suppress(httpx.TransportError):
                return httpx.get(f"{address}/v1/health").status_code

        until(is_there, 10)
        yield address
    finally:
        process.terminate()
        process.wait(10)


def test_the_service_works_behind_nginx_as_the_page_configures_it(tmp_path):
    order = {"problem": TWO_STOPS, "time_limit": 1.0}
    with ExitStack() as stack:
        service = stack.enter_context(listening(application()))
        address = stack.enter_context(proxy(tmp_path, service.base_url))
        with httpx.Client(base_url=address, timeout=30) as client:
            own = {"Origin": address}
            job = client.post("/v1/solve", json=order, headers=own).json()["links"]
            begin = time.monotonic()
            with client.stream("GET", job["events"]) as events:
                lines = [(time.monotonic() - begin, line) for line in events.iter_lines()]
            first = next(seconds for seconds, line in lines if line == "event: progress")
            last = next(seconds for seconds, line in lines if line == "event: end")
            assert first + 0.3 < last  # nothing is kept back until the end
            assert client.get(job["job"]).json()["status"] == "done"
            foreign = {"Origin": "https://evil.example"}
            assert client.post("/v1/solve", json=order, headers=foreign).status_code == 403
            assert client.post("/v1/solve", content=b" " * 21_000_000).status_code == 413
            answers = [client.get("/v1/health").status_code for _ in range(300)]
            assert answers[0] == 200
            assert set(answers) <= {200, 503}
