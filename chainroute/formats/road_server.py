"""Roads from a routing server (OSRM, Valhalla, OpenRouteService): distances, durations and lines for maps.

What is known is kept on the disk, pair by pair, so that a plan of tomorrow asks only about new stops. Servers
are asked in blocks that they accept, again where they fail, and less often where they say so.
"""

from __future__ import annotations

import json
import math
import os
import re
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

import numpy as np

from chainroute.errors import ChainRouteError, fail
from chainroute.problem.measure import EARTH_RADIUS, FloatArray, Metric, Rounding, distance
from chainroute.runtime.deadline import Deadline
from chainroute.runtime.extras import loading
from chainroute.runtime.files import PathLike

PROFILES = {"osrm": "driving", "valhalla": "auto", "ors": "driving-car"}  # of each kind of server, for cars
KEY_VARIABLE = "CHAINROUTE_ROADS_KEY"  # the variable with the key of OpenRouteService
BLOCK_PLACES = 50  # origins and destinations of one request, which all servers accept as they come
WAYPOINTS = 20  # of one request for a line
ANSWER_SECONDS = 30.0  # that an answer may take, from the first byte sent to the last received
ANSWER_BYTES = 20_000_000  # that an answer may have; a block has some 100 kB, a line some megabytes
PIECE_BYTES = 1_000_000  # of an answer that are unpacked at once
REDIRECTS = 3  # of one request, which lead to no other host
MAX_METRES, MAX_SECONDS = 1e8, 1e8  # of a road, be it twice around the earth and three years on it
FAR_METRES = 10_000.0  # from which on a road is no shorter than a hundredth of the straight line
LEAST_DETOUR = 0.01  # of the straight line: both places may have been moved to the nearest road
MAX_SPEED = 1000.0  # metres per second, on a road that is far
REQUEST_TRIES = 5  # of one request
FIRST_PAUSE_SECONDS = 1.0  # seconds before the second try; doubled before each further one
MAX_PAUSE_SECONDS = 60.0  # seconds, whatever a server says
KEPT_SECONDS = 30 * 86_400  # seconds after which a pair is asked for again
KEPT_PAGES = 250_000  # pages of 4 KiB on the disk, some eight million pairs; more are not kept
MILE_METRES = 1609.344  # metres
DECIMALS = 6  # decimals of a degree, about 0.1 m, by which a place is known

Pairs = tuple[FloatArray, FloatArray]  # metres and seconds; infinite where there is no road
Ask = Callable[[Sequence[Sequence[float]], list[int], list[int]], Pairs]
Told = Callable[[int, int], None]  # pairs that are known, of how many


@dataclass(frozen=True)
class RoadServer:
    """Where roads are asked for. `kind` is one of PROFILES; `cache` a folder, None for that of the user."""

    kind: str
    url: str
    profile: str = ""
    cache: PathLike | None = None

    def __post_init__(self) -> None:
        if self.kind not in PROFILES:
            raise fail("unknown-value", f"'{self.kind}' is not one of {', '.join(PROFILES)}.", "--roads")
        if not re.fullmatch(r"https?://[^\s/]\S*", self.url):
            raise fail(
                "bad-option", f"'{self.url}' is not an address, such as http://localhost:5000.", "--roads-url"
            )
        object.__setattr__(self, "url", self.url.rstrip("/"))
        object.__setattr__(self, "profile", self.profile or PROFILES[self.kind])

    def require(self) -> None:
        """Raises what is missing to ask the server at all."""
        self._router()

    def matrices(self, coords: FloatArray, told: Told | None = None) -> Pairs:
        """Distances in metres and durations in seconds, from row to column, of places by longitude and
        latitude; infinite where there is no road."""
        places = [tuple(round(float(c), DECIMALS) for c in pair) for pair in coords]
        distances, durations = (np.full((len(places), len(places)), np.nan) for _ in range(2))
        with _store(self.cache) as store:
            _recall(store, self._key, places, distances, durations)
            for known in (distances, durations):
                np.fill_diagonal(known, 0.0)
            self._complete(store, places, distances, durations, told)
        return distances, durations

    def _complete(
        self,
        store: sqlite3.Connection,
        places: list[Any],
        distances: FloatArray,
        durations: FloatArray,
        told: Told | None,
    ) -> None:
        """Asks for what is not known, block by block; smaller ones where the server finds them too large."""
        ask, size = self._asker(), BLOCK_PLACES
        while (missing := np.isnan(durations)).any():
            if told:
                told(int((~missing).sum()), missing.size)
            rows, columns = _block(missing, size)
            asked = sorted({*rows, *columns})
            at = {place: i for i, place in enumerate(asked)}
            try:
                answer = ask([places[i] for i in asked], [at[i] for i in rows], [at[i] for i in columns])
            except _TooLarge as error:
                if size == 1:
                    raise error.fault from None
                size = max(1, size // 2)
                continue
            here = np.ix_(rows, columns)
            distances[here], durations[here] = answer
            same = [i for i in rows if i in columns]
            distances[same, same] = durations[same, same] = 0.0
            _remember(store, self._key, places, rows, columns, *answer)
        if told:
            told(durations.size, durations.size)

    def lines(self, paths: Sequence[FloatArray]) -> list[list[list[float]]]:
        """For each path of places, the line along the roads, as longitudes and latitudes."""
        router = self._router()
        found = []
        for path in paths:
            line: list[list[float]] = []
            for first in range(0, max(len(path) - 1, 1), WAYPOINTS - 1):
                part = path[first : first + WAYPOINTS].tolist()
                with _explained(self, part):
                    piece = [list(map(float, pair[:2])) for pair in self._directions(router, part)]
                    if not piece:
                        raise ValueError("a line without points")
                line += piece[1:] if line else piece
            found.append(line)
        return found

    # -- the servers

    @property
    def _key(self) -> str:
        return f"{self.kind} {self.url} {self.profile}"

    def _router(self) -> Any:
        with loading("a routing server", "roads"):
            import routingpy

            client = _client()
        options: dict[str, Any] = {"base_url": self.url, "timeout": ANSWER_SECONDS, "client": client}
        if self.kind == "ors":
            return routingpy.ORS(api_key=os.environ.get(KEY_VARIABLE), **options)
        return {"osrm": routingpy.OSRM, "valhalla": routingpy.Valhalla}[self.kind](**options)

    def _asker(self) -> Ask:
        router = self._router()

        def ask(places: Sequence[Sequence[float]], rows: list[int], columns: list[int]) -> Pairs:
            options: dict[str, Any] = {"metrics": ["distance", "duration"]} if self.kind == "ors" else {}
            with _explained(self, places):
                found = router.matrix(
                    locations=places, profile=self.profile, sources=rows, destinations=columns, **options
                )
                answer = _answer(self.kind, found.raw, (len(rows), len(columns)))
                _require_plausible(np.array(places, dtype=float), rows, columns, answer)
                return answer

        return ask

    def _directions(self, router: Any, places: list[list[float]]) -> Any:
        options: dict[str, Any] = {"geometries": "geojson", "overview": "full"} if self.kind == "osrm" else {}
        return router.directions(locations=places, profile=self.profile, **options).geometry


def _block(missing: Any, size: int) -> tuple[list[int], list[int]]:
    """Rows and columns to ask for next: the first row that lacks anything, and others that lack the same."""
    new = missing.sum(axis=1) == len(missing) - 1  # asked for as a whole, which makes fewer blocks
    missing = missing | np.diag(new)
    first = int(missing.any(axis=1).argmax())
    columns = np.flatnonzero(missing[first])[:size]
    rows = np.flatnonzero(missing[:, columns].any(axis=1))[:size]
    return rows.tolist(), columns.tolist()


def _answer(kind: str, raw: Any, shape: tuple[int, int]) -> Pairs:
    """Metres and seconds, from what the server sent: routingpy cuts Valhalla's metres off and mistakes its
    miles."""
    if kind == "valhalla":
        entries = raw["sources_to_targets"]
        unit = MILE_METRES if raw.get("units") == "miles" else 1000.0
        distances = _matrix([[entry.get("distance") for entry in row] for row in entries], shape) * unit
        durations = _matrix([[entry.get("time") for entry in row] for row in entries], shape)
    else:
        distances, durations = _matrix(raw["distances"], shape), _matrix(raw["durations"], shape)
    gone = np.isinf(distances) | np.isinf(durations)
    return np.where(gone, np.inf, distances), np.where(gone, np.inf, durations)


def _matrix(rows: Any, shape: tuple[int, int]) -> FloatArray:
    """The numbers, infinite for null."""
    if not all(value is None or type(value) in (int, float) for row in rows for value in row):
        raise ValueError("an entry of a matrix that is no number")
    found = np.array([[np.inf if value is None else value for value in row] for row in rows], dtype=float)
    if found.shape != shape or np.isnan(found).any() or (found < 0).any():
        raise ValueError(f"a matrix of {found.shape} where {shape} was asked for")
    return found


def _require_plausible(places: FloatArray, rows: list[int], columns: list[int], answer: Pairs) -> None:
    """Raises what no road can be, before it is kept for a month."""
    metres, seconds = answer
    straight = distance(Metric.HAVERSINE, Rounding.EXACT, places[rows][:, None], places[columns][None, :])
    bad = ~_plausible(straight, metres, seconds)
    if bad.any():
        row, column = np.argwhere(bad)[0]
        road = f"{metres[row, column]:g} m in {seconds[row, column]:g} s"
        raise ValueError(f"{road} between places that are {straight[row, column]:.0f} m apart")


def _plausible(straight: FloatArray, metres: FloatArray, seconds: FloatArray) -> Any:
    """Whether a road may be so long and take so long; infinite ones are not there."""
    possible = (metres <= MAX_METRES) & (seconds <= MAX_SECONDS)
    possible &= (straight < FAR_METRES) | (metres >= LEAST_DETOUR * straight)
    possible &= (straight < FAR_METRES) | (seconds * MAX_SPEED >= LEAST_DETOUR * straight)
    return possible | (np.isinf(metres) & np.isinf(seconds))


# -- asking, and what can go wrong


class _Failure(Exception):
    """An answer that is none: its status, 0 without one, and what it says."""

    def __init__(self, status: int, text: str, pause: float = 0.0) -> None:
        super().__init__(text)
        self.status, self.text, self.pause = status, text, pause


class _TooLarge(Exception):
    """A request with more places than the server accepts."""

    def __init__(self, fault: ChainRouteError) -> None:
        super().__init__(str(fault))
        self.fault = fault


def _client() -> type:
    """The client that routingpy sends its requests by: ours, which tries again, with pauses."""
    import requests
    from routingpy.client_default import Client

    class Patient(Client):  # type: ignore[misc]
        def _request(self, url: str, get_params: Any = (), post_params: Any = None, **_: Any) -> Any:
            for attempt in range(1, REQUEST_TRIES + 1):
                try:
                    return self._once(url, get_params, post_params)
                except _Failure as failure:
                    again = failure.status in (0, 429) or failure.status >= 500
                    if attempt == REQUEST_TRIES or not again:
                        raise
                    time.sleep(
                        min(max(failure.pause, FIRST_PAUSE_SECONDS * 2 ** (attempt - 1)), MAX_PAUSE_SECONDS)
                    )
            raise AssertionError("unreachable")

        def _once(self, url: str, get_params: Any, post_params: Any) -> Any:
            address = self.base_url + self._generate_auth_url(url, dict(get_params))
            method = "GET" if post_params is None else "POST"
            options = {"headers": self.headers, "json": post_params}
            deadline = Deadline.after(ANSWER_SECONDS)
            try:
                response = self._followed(method, address, options, deadline)
                content = _content(response, deadline)
            except requests.exceptions.Timeout:
                raise _Failure(0, f"it does not answer within {ANSWER_SECONDS:g} s") from None
            except requests.exceptions.ConnectionError:
                raise _Failure(0, "nobody answers there, or the connection broke") from None
            except requests.exceptions.RequestException as error:
                raise _Failure(-1, type(error).__name__) from None
            if response.status_code != 200:
                wait = response.headers.get("Retry-After", "")
                text = content.decode(errors="replace")
                raise _Failure(response.status_code, _said(text), float(wait) if wait.isdecimal() else 0.0)
            try:
                return json.loads(content)
            except (ValueError, RecursionError):
                raise _Failure(0, "its answer is not whole, or no JSON") from None

        def _followed(self, method: str, address: str, options: Any, deadline: Deadline) -> Any:
            """The answer, also of another address of that host; of no other one, which nobody has named."""
            host = urlsplit(address).hostname
            for _ in range(REDIRECTS + 1):
                response = self._session.request(
                    method, address, **options, timeout=deadline.left, stream=True, allow_redirects=False
                )
                if not response.is_redirect:
                    return response
                response.close()
                address = urljoin(address, response.headers["Location"])
                if urlsplit(address).hostname != host:
                    raise _Failure(-1, "it sends us on to another host")
            raise _Failure(-1, "it sends us on and on")

    return Patient


def _content(response: Any, deadline: Deadline) -> bytes:
    """The body of an answer, bounded in size and in time, however slowly it comes."""
    from urllib3.exceptions import HTTPError

    content = bytearray()
    try:
        with closing(response):
            while piece := response.raw.read1(PIECE_BYTES, decode_content=True):
                content += piece
                if len(content) > ANSWER_BYTES:
                    raise _Failure(-1, f"its answer has more than {ANSWER_BYTES:,} bytes")
                if deadline.left <= 0:
                    raise _Failure(0, f"it does not answer within {ANSWER_SECONDS:g} s")
    except (HTTPError, OSError):
        raise _Failure(0, "nobody answers there, or the connection broke") from None
    return bytes(content)


def _said(text: str) -> str:
    """What a server says of an error, in one line."""
    try:
        document = json.loads(text)
        error = document.get("error", document)
        message = error if isinstance(error, str) else error.get("message") or error.get("code") or ""
        code = (
            document.get("code")
            or document.get("error_code")
            or (error.get("code") if isinstance(error, dict) else "")
        )
        return f"{message} ({code})" if code and str(code) not in str(message) else str(message)
    except (ValueError, AttributeError, RecursionError):
        return re.sub(r"<[^>]*>|\s+", " ", text).strip()[:100]


@contextmanager
def _explained(server: RoadServer, places: Sequence[Sequence[float]]) -> Iterator[None]:
    """Around a request: what fails becomes a coded error."""
    try:
        yield
    except _Failure as failure:
        raise _error(server, failure, places) from None
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, ArithmeticError) as error:
        message = f"does not answer as {server.kind} does: {type(error).__name__}, {str(error)[:80]}."
        raise fail("roads-not-understood", message, server.url) from None


def _error(server: RoadServer, failure: _Failure, places: Sequence[Sequence[float]]) -> Exception:
    status, text = failure.status, failure.text
    if status == 429:
        return fail(
            "roads-unreachable", f"asks for fewer requests, also after {REQUEST_TRIES} tries.", server.url
        )
    if status == 0 or status >= 500:
        told = (
            f"{text}, in {REQUEST_TRIES} tries."
            if status == 0
            else f"fails ({status}, {text}), in {REQUEST_TRIES} tries."
        )
        return fail("roads-unreachable", told, server.url)
    if found := re.search(r"coordinate:? (\d+)", text):
        index = int(found[1])
        if "segment" in text and index < len(places):
            text += f", which is {', '.join(map(str, places[index]))}"
    fault = fail("roads-refused", f"refuses ({status}): {text}.", server.url)
    large = re.search(r"too ?big|too many|exceed|\(6004\)|\(150\)", text, re.IGNORECASE)
    return _TooLarge(fault) if large else fault


# -- what is known already

_TABLE = """create table if not exists pairs (
    server text, start text, end text, metres real, seconds real, at real,
    primary key (server, start, end)) without rowid"""


@contextmanager
def _store(folder: PathLike | None) -> Iterator[sqlite3.Connection]:
    """The database of pairs. Where none can be kept, one that is forgotten afterwards."""
    try:
        if folder is None:
            folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "chainroute"
        Path(folder).mkdir(parents=True, exist_ok=True)
        opened = sqlite3.connect(Path(folder) / "roads.sqlite", timeout=ANSWER_SECONDS)
        opened.execute(_TABLE)
        opened.execute(f"pragma max_page_count = {KEPT_PAGES}")
        opened.execute("delete from pairs where at < ?", (time.time() - KEPT_SECONDS,))
        opened.commit()
    except (OSError, RuntimeError, sqlite3.Error):  # RuntimeError: a user without a home
        opened = sqlite3.connect(":memory:")
        opened.execute(_TABLE)
    with closing(opened) as store:
        yield store


def _name(place: Sequence[float]) -> str:
    return f"{place[0]:.{DECIMALS}f},{place[1]:.{DECIMALS}f}"


def _recall(
    store: sqlite3.Connection, key: str, places: Sequence[Any], distances: FloatArray, durations: FloatArray
) -> None:
    """Fills in the pairs that are known."""
    columns: dict[str, list[int]] = {}
    for i, place in enumerate(places):
        columns.setdefault(_name(place), []).append(i)
    for start, rows in columns.items():
        query = "select end, metres, seconds from pairs where server = ? and start = ?"
        for end, metres, seconds in store.execute(query, (key, start)):
            road = np.inf if metres is None else metres, np.inf if seconds is None else seconds
            for row in rows:
                for column in columns.get(end, ()):
                    if _is_sound(places[row], places[column], *road):
                        distances[row, column], durations[row, column] = road


def _is_sound(start: Sequence[float], end: Sequence[float], metres: object, seconds: object) -> bool:
    """Whether what was kept may be a road: a server may have told nonsense, or a file may be damaged."""
    if not all(isinstance(value, float) and value >= 0 for value in (metres, seconds)):
        return False
    x, y = (math.radians(end[i] - start[i]) for i in (0, 1))
    straight = EARTH_RADIUS * math.hypot(x * math.cos(math.radians(start[1] + end[1]) / 2), y)
    return bool(_plausible(np.array(straight), np.array(metres), np.array(seconds)))


def _remember(
    store: sqlite3.Connection,
    key: str,
    places: Sequence[Any],
    rows: list[int],
    columns: list[int],
    distances: FloatArray,
    durations: FloatArray,
) -> None:
    now = time.time()
    known = [
        (key, _name(places[row]), _name(places[column]), *_finite(distances[i, j], durations[i, j]), now)
        for i, row in enumerate(rows)
        for j, column in enumerate(columns)
    ]
    try:
        store.executemany("insert or replace into pairs values (?, ?, ?, ?, ?, ?)", known)
        store.commit()
    except sqlite3.Error:  # a full disk: it is asked for again next time
        store.rollback()


def _finite(metres: float, seconds: float) -> tuple[float | None, float | None]:
    return (None, None) if np.isinf(metres) else (float(metres), float(seconds))
