"""A routing server on loopback that answers as OSRM, Valhalla and OpenRouteService are documented to, from
streets of its own, and fails as told."""

import contextlib
import heapq
import json
import re
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from urllib.parse import parse_qs, urlsplit

STEP = 0.01  # degrees between two crossings
PROBLEM = {  # two customers at crossings
    "name": "streets",
    "capacity": 9,
    "depots": [{"name": "depot", "lon": 0, "lat": 0}],
    "customers": [
        {"name": "A", "lon": 2 * STEP, "lat": 0, "delivery": 4},
        {"name": "B", "lon": STEP, "lat": 2 * STEP, "delivery": 4},
    ],
}
METRES = 700.0  # of every street, at 10 m/s
NEAR = 0.5  # of a step, within which a place is on a street


class Streets:
    """Crossings in a square of three by three, whose middle column goes north only; and an island of one."""

    crossings = [(x, y) for x in range(3) for y in range(3)] + [(9, 9)]

    def __init__(self):
        self.ways = {c: [] for c in self.crossings}
        self.known = {}
        for x, y in self.crossings[:-1]:
            for there in ((x + 1, y), (x, y + 1)):
                if there in self.ways:
                    self.ways[x, y].append(there)
                    if not x == there[0] == 1:
                        self.ways[there].append((x, y))

    def crossing(self, lon, lat):
        """The one at which a place lies; None off the streets."""
        place = (round(lon / STEP), round(lat / STEP))
        off = max(abs(lon / STEP - place[0]), abs(lat / STEP - place[1]))
        return place if place in self.ways and off <= NEAR else None

    def path(self, start, end):
        """Crossings along a shortest way; None where there is none."""
        queue, seen = [(0, start, [start])], set()
        while queue:
            length, here, path = heapq.heappop(queue)
            if here == end:
                return path
            if here not in seen:
                seen.add(here)
                for there in self.ways[here]:
                    heapq.heappush(queue, (length + 1, there, [*path, there]))
        return None

    def metres(self, start, end):
        if (start, end) not in self.known:
            path = self.path(start, end)
            self.known[start, end] = None if path is None else METRES * (len(path) - 1)
        return self.known[start, end]


class Roads:
    """What the server has been asked, and how it fails: `faults` are used up one by one."""

    def __init__(self):
        self.streets, self.faults, self.asked = Streets(), [], []
        self.most = 100  # places of one request
        self.units = "kilometers"
        self.tells_lines = True

    def answer(self, method, address, body):
        """The status and the document."""
        split = urlsplit(address)
        query = {key: value[0] for key, value in parse_qs(split.query).items()}
        if found := re.fullmatch(r"/(table|route)/v1/\w+/([-\d.,;e]+)", split.path):
            places = [tuple(map(float, pair.split(","))) for pair in found[2].split(";")]
            return self.osrm(found[1], places, query)
        if split.path == "/sources_to_targets" and method == "POST":
            return self.valhalla(json.loads(body))
        if split.path == "/route" and method == "POST":
            return self.valhalla_route(json.loads(body))
        if re.fullmatch(r"/v2/directions/([\w-]+)/geojson", split.path):
            return self.ors_route(json.loads(body))
        if found := re.fullmatch(r"/v2/matrix/([\w-]+)/json", split.path):
            return self.ors(json.loads(body))
        return 404, {"code": "InvalidUrl", "message": "URL string malformed"}

    def osrm(self, service, places, query):
        if len(places) > self.most:
            return 400, {"code": "TooBig", "message": "Too many table coordinates"}
        at = [self.streets.crossing(*place) for place in places]
        if None in at:
            message = f"Could not find a matching segment for coordinate {at.index(None)}"
            return 400, {"code": "NoSegment", "message": message}
        if service == "route":
            route = {"geometry": self.line(at), "duration": 1.0, "distance": 2.0}
            return 200, {"code": "Ok", "routes": [route], "waypoints": []}
        rows, columns = ([int(i) for i in query[key].split(";")] for key in ("sources", "destinations"))
        self.asked.append((len(rows), len(columns)))
        metres = [[self.streets.metres(at[i], at[j]) for j in columns] for i in rows]
        seconds = [[None if m is None else m / 10 for m in row] for row in metres]
        return 200, {
            "code": "Ok",
            "distances": metres,
            "durations": seconds,
            "sources": [],
            "destinations": [],
        }

    def line(self, at):
        """Along the crossings, as GeoJSON; without a point where lines are not told."""
        legs = [self.streets.path(a, b) for a, b in pairwise(at)]
        line = [at[0], *(crossing for leg in legs for crossing in leg[1:])] if self.tells_lines else []
        return {"type": "LineString", "coordinates": [[x * STEP, y * STEP] for x, y in line]}

    def valhalla_route(self, body):
        """A leg between two places each, its shape encoded."""
        at = [self.streets.crossing(p["lon"], p["lat"]) for p in body["locations"]]
        shapes = [polyline(self.line(pair)["coordinates"]) for pair in pairwise(at)]
        legs = [{"shape": shape, "summary": {"time": 1.0, "length": 2.0}} for shape in shapes]
        return 200, {"trip": {"legs": legs, "status": 0, "units": self.units}}

    def ors_route(self, body):
        at = [self.streets.crossing(*place) for place in body["coordinates"]]
        summary = {"summary": {"distance": 2.0, "duration": 1.0}}
        features = [{"type": "Feature", "geometry": self.line(at), "properties": summary}]
        return 200, {"type": "FeatureCollection", "features": features}

    def valhalla(self, body):
        rows, columns = (
            [self.streets.crossing(p["lon"], p["lat"]) for p in body[key]] for key in ("sources", "targets")
        )
        if len(rows) * len(columns) > self.most**2:
            return 400, {"error_code": 150, "error": "Exceeded max locations: 50", "status_code": 400}
        self.asked.append((len(rows), len(columns)))
        unit = 1000 if self.units == "kilometers" else 1609.344

        def entry(i, j, a, b):
            metres = self.streets.metres(a, b)
            gone = metres is None
            return {"from_index": i, "to_index": j, "time": None if gone else metres / 10,
                    "distance": None if gone else metres / unit}  # fmt: skip

        table = [[entry(i, j, a, b) for j, b in enumerate(columns)] for i, a in enumerate(rows)]
        return 200, {"sources_to_targets": table, "units": self.units, "algorithm": "costmatrix"}

    def ors(self, body):
        at = [self.streets.crossing(*place) for place in body["locations"]]
        rows, columns = body["sources"], body["destinations"]
        if len(rows) * len(columns) > self.most**2:
            message = "Request parameters exceed the server configuration limits."
            return 400, {"error": {"code": 6004, "message": message}}
        self.asked.append((len(rows), len(columns)))
        metres = [[self.streets.metres(at[int(i)], at[int(j)]) for j in columns] for i in rows]
        return 200, {"distances": metres, "durations": [[m and m / 10 for m in row] for row in metres]}


def polyline(coordinates):
    """The points in Google's encoding with six decimals: differences of latitude and longitude, their sign in
    the last bit, five bits a character."""
    text, last = "", (0, 0)
    for lon, lat in coordinates:
        here = (round(lat * 1e6), round(lon * 1e6))
        for change in (here[0] - last[0], here[1] - last[1]):
            bits = ~(change << 1) if change < 0 else change << 1
            while bits >= 0x20:
                text += chr((bits & 0x1F | 0x20) + 63)
                bits >>= 5
            text += chr(bits + 63)
        last = here
    return text


@contextlib.contextmanager
def serving(roads):
    """The address at which the roads are served."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.reply(b"")

        def do_POST(self):
            self.reply(self.rfile.read(int(self.headers["Content-Length"])))

        def reply(self, body):
            fault = roads.faults.pop(0) if roads.faults else None
            status, document = roads.answer(self.command, self.path, body)
            data, headers = json.dumps(document).encode(), {}
            if fault == "slow":
                time.sleep(1.0)
            elif fault == "half":
                data = data[: len(data) // 2]
            elif fault == "rows":
                document["durations"] = document["durations"][:-1]
                data = json.dumps(document).encode()
            elif fault == "hang up":
                self.connection.close()
                return
            elif isinstance(fault, tuple):
                status, headers = fault
                data = b"<html><body>busy</body></html>"
            with contextlib.suppress(OSError):  # somebody who has not waited
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                for key, value in headers.items():
                    self.send_header(key, value)
                self.end_headers()
                self.wfile.write(data)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
