"""The job that has ended is sent to an address that its order named and the service allows."""

from __future__ import annotations

import hashlib
import hmac
import http.client
import logging
import threading
import time
from collections import defaultdict
from urllib.parse import SplitResult, urlsplit

from chainroute.runtime.deadline import Deadline

ATTEMPT_SECONDS = 10.0  # seconds that one attempt may take, from its first byte to the answer's first line
PAUSES = (1.0, 5.0)  # seconds before the second and third attempt
AT_ONCE = 4  # deliveries under way to one place
WAITING = 64  # deliveries to one place that are under way or wait, each in a thread
STATUS_BYTES = 1000  # of an answer, in which its first line ends; the rest is not read
LATE = "no answer within {:g} s"
SIGNATURE = "ChainRoute-Signature"

log = logging.getLogger("chainroute.service")


class _Place:
    """A receiver, which holds up no other one."""

    def __init__(self) -> None:
        self.at_once, self.waiting = threading.Semaphore(AT_ONCE), threading.Semaphore(WAITING)


_places: defaultdict[str, _Place] = defaultdict(_Place)  # no more than the service allows


def is_allowed(address: str, origins: tuple[str, ...]) -> bool:
    """Whether the address is at an allowed place: a scheme and a host, with its port if it has one."""
    try:
        parts = urlsplit(address)
        _ = parts.port
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and f"{parts.scheme}://{parts.netloc}" in origins


def send(address: str, document: bytes, key: str | None = None) -> None:
    """Delivers in a thread of its own, up to three times; what cannot be delivered is logged."""
    parts = urlsplit(address)
    place = _places[parts.netloc]
    if not place.waiting.acquire(blocking=False):
        log.warning("A webhook could not be delivered: too many wait for the same receiver.")
        return
    try:
        threading.Thread(target=_deliver, args=(place, parts, document, key), daemon=True).start()
    except RuntimeError as error:
        place.waiting.release()
        log.warning("A webhook could not be delivered: %s", error)


def signature(document: bytes, key: str, seconds: int) -> str:
    """Signs the document and the time: a receiver that has the key can verify both."""
    digest = hmac.new(key.encode(), b"%d.%s" % (seconds, document), hashlib.sha256).hexdigest()
    return f"t={seconds},v1={digest}"


def _deliver(place: _Place, parts: SplitResult, document: bytes, key: str | None) -> None:
    reason = ""
    try:
        for pause in (*PAUSES, None):
            with place.at_once:
                reason = _attempt(parts, document, key)
            if not reason:
                return
            if pause is not None:
                time.sleep(pause)
        log.warning("A webhook could not be delivered: %s", reason)
    finally:
        place.waiting.release()


def _attempt(parts: SplitResult, document: bytes, key: str | None) -> str:
    """Sends the document once; why that failed, or nothing. No redirect is followed: an allowed place could
    send us on to one that is not."""
    deadline = Deadline.after(ATTEMPT_SECONDS)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    headers = {"Content-Type": "application/json", "User-Agent": "ChainRoute", "Connection": "close"}
    if key:
        headers[SIGNATURE] = signature(document, key, int(time.time()))
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        connection = kind(parts.hostname or "", parts.port, timeout=ATTEMPT_SECONDS)
        try:
            connection.request("POST", target, document, headers)
            return _refusal(connection, deadline)
        finally:
            connection.close()
    except TimeoutError:
        return LATE.format(ATTEMPT_SECONDS)
    except (OSError, ValueError, http.client.HTTPException) as error:
        return str(error) or type(error).__name__


def _refusal(connection: http.client.HTTPConnection, deadline: Deadline) -> str:
    """Reads the first line of the answer, however slowly it comes; nothing where it says that all is well."""
    answer = b""
    while b"\n" not in answer and len(answer) < STATUS_BYTES:
        if deadline.left <= 0:
            return LATE.format(ATTEMPT_SECONDS)
        connection.sock.settimeout(deadline.left)
        more = connection.sock.recv(STATUS_BYTES)
        if not more:
            return "the connection was closed without an answer"
        answer += more
    status = answer.split(b"\n")[0].split()[1:2]
    return "" if status and status[0][:1] == b"2" else f"answered {b' '.join(status).decode('latin-1')[:20]}"
