"""The job that has ended is sent to an address that its order named and the service allows."""

from __future__ import annotations

import logging
import threading
import time
import urllib.request
from urllib.parse import urlsplit

TIMEOUT_SECONDS = 10.0  # seconds of one attempt
PAUSES = (1.0, 5.0)  # seconds before the second and third attempt
AT_ONCE = threading.BoundedSemaphore(8)  # deliveries under way
WAITING = threading.BoundedSemaphore(256)  # the same with those that wait for them, each in a thread

log = logging.getLogger("chainroute.service")


def is_allowed(address: str, origins: tuple[str, ...]) -> bool:
    """Whether the address is at an allowed place: a scheme and a host, with its port if it has one."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and f"{parts.scheme}://{parts.netloc}" in origins


def send(address: str, document: bytes) -> None:
    """Delivers in a thread of its own, up to three times; what cannot be delivered is logged."""
    if not WAITING.acquire(blocking=False):
        log.warning("A webhook could not be delivered: too many wait for theirs.")
        return
    try:
        threading.Thread(target=_deliver, args=(address, document), daemon=True).start()
    except RuntimeError as error:
        WAITING.release()
        log.warning("A webhook could not be delivered: %s", error)


def _deliver(address: str, document: bytes) -> None:
    try:
        _try(address, document)
    finally:
        WAITING.release()


def _try(address: str, document: bytes) -> None:
    with AT_ONCE:
        for pause in (*PAUSES, None):
            try:
                headers = {"Content-Type": "application/json", "User-Agent": "ChainRoute"}
                request = urllib.request.Request(address, document, headers, method="POST")
                with _opener.open(request, timeout=TIMEOUT_SECONDS):
                    return
            except (OSError, ValueError) as error:  # HTTP errors are OSErrors
                reason = error
            if pause is not None:
                time.sleep(pause)
        log.warning("A webhook could not be delivered: %s", reason)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """An allowed place cannot send us on to one that is not."""

    def redirect_request(self, *_: object) -> None:
        return None


_opener = urllib.request.build_opener(_NoRedirects, urllib.request.ProxyHandler({}))
