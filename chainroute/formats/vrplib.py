"""VRPLIB: the format of CVRPLIB, with the sections that PyVRP adds and the backhauls of LKH-3.

Nodes count from 1, depots first. Two dialects differ in how they state pickups: PyVRP gives each node an
amount in BACKHAUL_SECTION; LKH-3 lists the backhaul nodes there, ended by -1, their amounts being in
DEMAND_SECTION, or it has mixed pickups and deliveries in PICKUP_AND_DELIVERY_SECTION. A third, that of the
backhaul sets on VRP-REP, has TYPE CVRP and a type for each node before its coordinates.
"""

import dataclasses
import json
import re
from collections import Counter
from typing import Any

import numpy as np

from chainroute.formats.common import build, plain, title
from chainroute.formats.sections import Sections
from chainroute.problem import EXTRAS, Problem
from chainroute.problem.budget import MAX_LOCATIONS
from chainroute.problem.features import FEATURES, beyond, our_name, require
from chainroute.problem.measure import FloatArray, Rounding
from chainroute.problem.roads import as_numbers
from chainroute.problem.variants import BY_NAME, Backhaul, Variant
from chainroute.runtime.files import encode

HOLDS = set(FEATURES) - set(EXTRAS) - {
    "windows that never close", "longitude and latitude", "a duration matrix", "rounding to one decimal",
    "times of day",
}  # fmt: skip

# What is read; for a section with one row per node, the number of its columns after the node.
HEADERS = {
    "NAME", "TYPE", "DIMENSION", "CAPACITY", "DISTANCE", "VEHICLES", "SERVICE_TIME", "VEHICLES_MAX_DISTANCE",
    "VEHICLES_MAX_DURATION", "EDGE_WEIGHT_TYPE", "EDGE_WEIGHT_FORMAT", "NODE_COORD_TYPE", "DISPLAY_DATA_TYPE",
}  # fmt: skip
TABLES = {
    "NODE_COORD": 2, "DISPLAY_DATA": 2, "DEMAND": 1, "LINEHAUL": 1, "BACKHAUL": 1, "TIME_WINDOW": 2,
    "SERVICE_TIME": 1, "PICKUP_AND_DELIVERY": 6,
}  # fmt: skip
VEHICLES = {"CAPACITY", "VEHICLES_DEPOT", "VEHICLES_MAX_DISTANCE", "VEHICLES_MAX_DURATION"}
SECTIONS = {*TABLES, *VEHICLES, "DEPOT", "EDGE_WEIGHT"}

# Other people's names for some of our variants; beside these, VRPMPD and VRPSPD stand for mixed backhauls.
TYPES = {
    "VRP": "CVRP", "ACVRP": "CVRP", "DCVRP": "VRPL", "ADCVRP": "VRPL", "CVRPTW": "VRPTW", "MDVRP": "MDCVRP",
}  # fmt: skip
LKH_TYPES = {"VRPTW": "CVRPTW", "MDCVRP": "MDVRP"}
ROUNDINGS = {
    "EUC_2D": Rounding.ROUND,
    "CEIL_2D": Rounding.CEIL,
    "FLOOR_2D": Rounding.TRUNC,
    "EXACT_2D": Rounding.EXACT,
}
# Which half of a symmetric matrix is listed row by row, and whether with the diagonal. Listing it column by
# column is the same as listing the other half row by row.
HALVES = {
    "UPPER_ROW": ("upper", False), "LOWER_COL": ("upper", False),
    "UPPER_DIAG_ROW": ("upper", True), "LOWER_DIAG_COL": ("upper", True),
    "LOWER_ROW": ("lower", False), "UPPER_COL": ("lower", False),
    "LOWER_DIAG_ROW": ("lower", True), "UPPER_DIAG_COL": ("lower", True),
}  # fmt: skip
NO_WINDOW = (0.0, 10_000_000.0)  # how LKH-3's files say that a node has none
NAMES = "chainroute names "  # a COMMENT that begins so goes on with all names as a JSON list


# -- reading


def recognises(lines: list[str]) -> bool:
    """Whether a header or a section is among the first lines."""
    keys = (re.match(r"\s*([A-Z_]+?)(_SECTION)?\s*(:|$)", line) for line in lines)
    return any(key and (key[1] in HEADERS or key[2]) for key in keys)


def read(text: str, name: str, rounding: Rounding | None) -> Problem:
    file = Sections(text)
    _known(file)
    n = _dimension(file)
    variant, depots = _variant(file), _depots(file, n)
    coords, backhauls = _coords(file, n, depots)
    if backhauls and variant.backhaul is Backhaul.NONE:
        variant = dataclasses.replace(variant, backhaul=Backhaul.LINEHAULS_FIRST)
    nodes = _nodes(file, n, depots, variant, backhauls)
    places = _places(file, n, coords, rounding)
    limit = _limit(file, nodes)
    _promises(file, variant, depots, nodes, limit)
    for field in ("delivery", "pickup", "service"):
        if nodes[field][:depots].any():
            message = "a depot has a demand or service time."
            file.faults.add("unsupported-feature", message, _spot(file, field, 0))
        nodes[field] = nodes[field][depots:]
    fields = {
        "name": file.word("NAME", name),
        "num_depots": depots,
        "capacity": _capacity(file),
        "fleet": _fleet(file, depots),
        "open": variant.open,
        "backhaul": variant.backhaul,
        "names": _names(file),
        **nodes,
        **places,
        **limit,
    }
    file.faults.stop()
    return build(lambda place: _spot(file, place.field, place.location), **fields)


def _known(file: Sections) -> None:
    """Nothing is skipped: what has no meaning here is refused."""
    unknown = [k for k in file.headers if k not in HEADERS] + [k for k in file.sections if k not in SECTIONS]
    for key in unknown:
        message = "says something that is not known here."
        if what := beyond(key):
            message = f"asks for {what}"
        elif ours := our_name(key):
            message = f"is not read from this format; our JSON has it as {ours}."
        file.faults.add("unsupported-feature", message, file.where(key))
    for key in file.sections.keys() & file.headers.keys():
        file.faults.add("duplicate-section", "is given by a header, too.", file.where(key))
    if file.word("NODE_COORD_TYPE") == "THREED_COORDS":
        message = "coordinates in three dimensions."
        file.faults.add("unsupported-feature", message, file.where("NODE_COORD_TYPE"))


def _dimension(file: Sections) -> int:
    """All else is measured by it, so the reading ends here if it is unsound."""
    n = file.whole("DIMENSION")
    if n is not None and 1 <= n <= MAX_LOCATIONS:
        return n
    if "DIMENSION" not in file:
        file.faults.add("missing-field", "there is no such line.", "DIMENSION")
    elif n is not None and n < 1:
        file.faults.add("not-positive", f"is {n}.", file.where("DIMENSION"))
    elif n is not None:
        message = f"{n} locations; at most {MAX_LOCATIONS} are possible."
        file.faults.add("too-large", message, file.where("DIMENSION"))
    raise file.faults.error()


def _variant(file: Sections) -> Variant:
    """What TYPE says, in our own names or those of CVRPLIB and LKH-3."""
    given = file.word("TYPE", "CVRP").upper()
    name = re.sub("VRP[MS]PD", "VRPMB", TYPES.get(given, given))
    if name not in BY_NAME:
        file.faults.add(
            "unsupported-feature", f"'{given}' is not one of the 48 variants.", file.where("TYPE")
        )
    return BY_NAME.get(name, Variant())


def _promises(
    file: Sections, variant: Variant, depots: int, nodes: dict[str, Any], limit: dict[str, Any]
) -> None:
    """What TYPE promises must be there; it need not promise all there is."""
    pickups = file.sections.keys() & {"BACKHAUL", "PICKUP_AND_DELIVERY"} or nodes["pickup"].any()
    for promised, kept, what in (
        (variant.time_windows, nodes["time_windows"] is not None, "TIME_WINDOW_SECTION"),
        (variant.backhaul is not Backhaul.NONE, pickups, "BACKHAUL_SECTION"),
        (variant.limit, limit, "DISTANCE"),
        (variant.multi_depot, depots > 1, "a second depot in DEPOT_SECTION"),
    ):
        if promised and not kept:
            file.faults.add("missing-section", f"promises {what}, which is missing.", file.where("TYPE"))


def _depots(file: Sections, n: int) -> int:
    if "DEPOT" not in file.sections:
        file.faults.add("missing-section", "there is no such section.", "DEPOT_SECTION")
        return 1
    depots = file.nodes("DEPOT", n)
    if not depots:
        file.faults.add("no-depot", "lists no depot.", file.where("DEPOT"))
    elif depots != list(range(len(depots))):
        message = "the depots must be the first nodes: 1, 2, ..."
        file.faults.add("unsupported-feature", message, file.where("DEPOT"))
    return max(1, len(depots))


def _coords(file: Sections, n: int, depots: int) -> tuple[FloatArray | None, list[int]]:
    """The coordinates, and the backhauls if a type stands before them: -1 depot, 0 linehaul, 1 backhaul."""
    key = "DISPLAY_DATA" if "NODE_COORD" not in file.sections else "NODE_COORD"
    if key not in file.sections:
        return None, []
    rows = file.sections[key].rows
    if key == "DISPLAY_DATA" or not rows or len(rows[0][1]) != TABLES[key] + 2:
        return file.table(key, n, TABLES[key]), []
    types, *places = file.table(key, n, TABLES[key] + 1).T
    for location in file.lines[key]:
        wanted = (-1,) if location < depots else (0, 1)
        if types[location] not in wanted:
            kind = "a depot" if location < depots else "a customer"
            message = (
                f"'{types[location]:g}' is not the type of {kind}: -1 depot, 0 linehaul, 1 backhaul. "
                "Coordinates in three dimensions are not read."
            )
            file.faults.add("unknown-value", message, file.where(key, location))
    return np.stack(places, axis=1), np.flatnonzero(types == 1).tolist()


def _places(file: Sections, n: int, coords: FloatArray | None, rounding: Rounding | None) -> dict[str, Any]:
    """Coordinates or matrix, or both, and the rounding."""
    kind = file.word("EDGE_WEIGHT_TYPE").upper()
    if kind == "EXPLICIT":
        if rounding is not None:
            file.faults.add("bad-option", "the file gives a matrix, which is not rounded.", "rounding")
        return {"coords": coords, "distance_matrix": _matrix(file, n)}
    if not kind:
        file.faults.add("missing-field", "there is no such line.", "EDGE_WEIGHT_TYPE")
    elif kind not in ROUNDINGS:
        message = f"'{kind}' is not one of {', '.join(ROUNDINGS)}, EXPLICIT."
        file.faults.add("unsupported-feature", message, file.where("EDGE_WEIGHT_TYPE"))
    elif "EDGE_WEIGHT" in file.sections:
        message = f"there is a matrix, but EDGE_WEIGHT_TYPE is {kind}, not EXPLICIT."
        file.faults.add("unknown-value", message, file.where("EDGE_WEIGHT"))
    if "NODE_COORD" not in file.sections:
        file.faults.add("missing-section", "there is no such section.", "NODE_COORD_SECTION")
    return {"coords": coords, "rounding": rounding or ROUNDINGS.get(kind, Rounding.EXACT)}


def _matrix(file: Sections, n: int) -> FloatArray | None:
    form = file.word("EDGE_WEIGHT_FORMAT").upper()
    if "EDGE_WEIGHT" not in file.sections:
        file.faults.add("missing-section", "there is no such section.", "EDGE_WEIGHT_SECTION")
        return None
    if form not in (*HALVES, "FULL_MATRIX"):
        message = f"'{form}' is not one of FULL_MATRIX, {', '.join(HALVES)}."
        file.faults.add("unknown-value", message, file.where("EDGE_WEIGHT_FORMAT"))
        return None
    values = file.stream("EDGE_WEIGHT")
    half, diagonal = HALVES.get(form, ("", True))
    entries = (n * (n + 1) // 2 if half else n * n) - (0 if diagonal else n)
    if len(values) != entries:
        message = f"has {len(values)} entries; a {form} of {n} nodes has {entries}."
        file.faults.add("wrong-count", message, file.where("EDGE_WEIGHT"))
        return None
    if not half:
        return values.reshape(n, n)
    matrix = np.zeros((n, n))
    listed = np.tril_indices(n, diagonal - 1) if half == "lower" else np.triu_indices(n, 1 - diagonal)
    matrix[listed] = matrix.T[listed] = values
    return matrix


def _nodes(file: Sections, n: int, depots: int, variant: Variant, backhauls: list[int]) -> dict[str, Any]:
    """Deliveries, pickups, service times and time windows of all nodes, some of which are backhauls."""
    for key in ("PICKUP_AND_DELIVERY", "BACKHAUL"):
        if backhauls and key in file:
            message = "says again what the types in NODE_COORD_SECTION say."
            file.faults.add("duplicate-section", message, file.where(key))
    if "PICKUP_AND_DELIVERY" in file.sections:
        return _pickups_and_deliveries(file, n, variant)
    key = "LINEHAUL" if "LINEHAUL" in file.sections else "DEMAND"
    if key not in file.sections:
        file.faults.add("missing-section", "there is no such section.", "DEMAND_SECTION")
    delivery = file.table(key, n, TABLES[key])[:, 0]
    service = file.table("SERVICE_TIME", n, TABLES["SERVICE_TIME"])[:, 0]
    if "SERVICE_TIME" in file.headers:  # the same for every customer
        service[depots:] = file.number("SERVICE_TIME")
    windows = file.table("TIME_WINDOW", n, TABLES["TIME_WINDOW"]) if "TIME_WINDOW" in file.sections else None
    if "BACKHAUL" in file.sections:
        pickup = _backhauls(file, delivery, variant)
    else:
        pickup = _exchanged(delivery, backhauls)
    return {"delivery": delivery, "pickup": pickup, "service": service, "time_windows": windows}


def _backhauls(file: Sections, delivery: FloatArray, variant: Variant) -> FloatArray:
    """The pickups in either dialect; those that LKH-3 lists are taken out of the deliveries."""
    if variant.backhaul is Backhaul.NONE:
        message = "there are backhauls, but TYPE does not say whether they come last or mixed."
        file.faults.add("backhaul-rule-missing", message, file.where("BACKHAUL"))
    n, rows = len(delivery), file.sections["BACKHAUL"].rows
    if not rows or rows[-1][1][-1] != "-1":
        return file.table("BACKHAUL", n, TABLES["BACKHAUL"])[:, 0]
    return _exchanged(delivery, file.nodes("BACKHAUL", n))


def _exchanged(delivery: FloatArray, backhauls: list[int]) -> FloatArray:
    """The pickups of those nodes, which are taken out of the deliveries."""
    pickup = np.zeros(len(delivery))
    pickup[backhauls], delivery[backhauls] = delivery[backhauls], 0
    return pickup


def _pickups_and_deliveries(file: Sections, n: int, variant: Variant) -> dict[str, Any]:
    """LKH-3's columns: demand (unused), earliest, latest, service time, pickup, delivery."""
    key = "PICKUP_AND_DELIVERY"
    if variant.backhaul is not Backhaul.MIXED:
        message = "is read for TYPE VRPMPD; pairs of pickup and delivery are not."
        file.faults.add("unsupported-feature", message, file.where(key))
    for other in ("DEMAND", "LINEHAUL", "BACKHAUL", "TIME_WINDOW", "SERVICE_TIME"):
        if other in file:
            file.faults.add("duplicate-section", f"says again what {key}_SECTION says.", file.where(other))
    _, earliest, latest, service, pickup, delivery = file.table(key, n, TABLES[key]).T
    windows = np.stack([earliest, latest], axis=1)
    none = not variant.time_windows and bool((windows == NO_WINDOW).all())
    return {
        "delivery": delivery,
        "pickup": pickup,
        "service": service,
        "time_windows": None if none else windows,
    }


def _limit(file: Sections, nodes: dict[str, Any]) -> dict[str, Any]:
    """DISTANCE and VEHICLES_MAX_DURATION count service times, VEHICLES_MAX_DISTANCE does not."""
    given = [k for k in ("DISTANCE", "VEHICLES_MAX_DISTANCE", "VEHICLES_MAX_DURATION") if k in file]
    if not given:
        return {}
    for key in given[1:]:
        file.faults.add("duplicate-section", f"is a second limit beside {given[0]}.", file.where(key))
    if "VEHICLES_MAX_DURATION" in given and nodes["time_windows"] is not None:
        message = "a limit that waiting counts towards."
        file.faults.add("unsupported-feature", message, file.where("VEHICLES_MAX_DURATION"))
    counts_service = given[0] != "VEHICLES_MAX_DISTANCE" and bool(nodes["service"].any())
    return {"distance_limit": _uniform(file, given[0]), "limit_counts_service": counts_service}


def _capacity(file: Sections) -> float | None:
    if "CAPACITY" not in file:
        file.faults.add("missing-field", "there is no such line.", "CAPACITY")
    return _uniform(file, "CAPACITY")


def _uniform(file: Sections, key: str) -> float | None:
    """A number that a header gives, or a section with one row per vehicle, all the same."""
    if key not in file.sections:
        return file.number(key)
    values = {value for _, value in file.column(key)}
    if not values:
        file.faults.add("wrong-count", "has no rows.", file.where(key))
    if len(values) > 1:
        file.faults.add("unsupported-feature", "vehicles that differ from each other.", file.where(key))
    return values.pop() if values else None


def _fleet(file: Sections, depots: int) -> int | None:
    """Vehicles at each depot."""
    total = file.whole("VEHICLES")
    if "VEHICLES_DEPOT" not in file.sections:
        if total is not None and depots > 1:
            message = f"the file does not say where its {total} vehicles stand."
            file.faults.add("missing-section", message, "VEHICLES_DEPOT_SECTION")
        return total
    stand = file.column("VEHICLES_DEPOT")
    for where, depot in stand:
        if depot not in range(1, depots + 1):
            file.faults.add("bad-syntax", f"there is no depot {depot:g}.", where)
    where, fleets = file.where("VEHICLES_DEPOT"), Counter(depot for _, depot in stand)
    if total is not None and total != len(stand):
        file.faults.add("wrong-count", f"has {len(stand)} rows for {total} vehicles.", where)
    if len({fleets[d] for d in range(1, depots + 1)}) > 1:
        file.faults.add("unsupported-feature", "depots with fleets of different size.", where)
    return fleets[1]


def _names(file: Sections) -> list[str]:
    for line, comment in file.comments:
        if comment.startswith(NAMES):
            try:
                names = json.loads(comment.removeprefix(NAMES))
            except (ValueError, RecursionError):
                names = None
            if isinstance(names, list) and all(isinstance(name, str) for name in names):
                return names
            file.faults.add("bad-syntax", "the names are not a list of texts.", f"COMMENT, line {line}")
    return []


_SPOTS = {
    "customer": ("NODE_COORD", "DEMAND", "LINEHAUL", "PICKUP_AND_DELIVERY"),
    "coords": ("NODE_COORD", "DISPLAY_DATA"),
    "delivery": ("DEMAND", "LINEHAUL", "PICKUP_AND_DELIVERY"),
    "pickup": ("BACKHAUL", "PICKUP_AND_DELIVERY"),
    "service": ("SERVICE_TIME", "PICKUP_AND_DELIVERY"),
    "time_windows": ("TIME_WINDOW", "PICKUP_AND_DELIVERY"),
    "capacity": ("CAPACITY",),
    "distance_limit": ("DISTANCE", "VEHICLES_MAX_DISTANCE", "VEHICLES_MAX_DURATION"),
    "fleet": ("VEHICLES", "VEHICLES_DEPOT"),
    "backhaul": ("TYPE",),
    "distance_matrix": ("EDGE_WEIGHT",),
}


def _spot(file: Sections, field: str, location: int | None) -> str:
    """Where a field of Problem stands in the file."""
    key = next((key for key in _SPOTS.get(field, ()) if key in file), None)
    if key is None:
        return field
    where = file.where(key, location)
    return where if location is None or key in file.lines else f"{where} (node {location + 1})"


# -- writing


def write(problem: Problem) -> bytes:
    """The problem in PyVRP's dialect."""
    return _written(problem, lkh=False)


def write_lkh(problem: Problem) -> bytes:
    """The problem in the dialect of LKH-3."""
    return _written(problem, lkh=True)


def _written(p: Problem, lkh: bool) -> bytes:
    require(p, "VRPLIB", HOLDS)
    lines = [f"{key} : {value}" for key, value in _headers(p, lkh)]
    if p.coords is not None:  # beside a matrix, LKH-3 takes them for display only
        lines += _table("DISPLAY_DATA" if lkh and p.distance_matrix is not None else "NODE_COORD", p.coords)
    if p.distance_matrix is not None:
        rows = (
            " ".join(map(plain, row)) for row in as_numbers(p.distance_matrix, p.num_depots, p.open).tolist()
        )
        lines += ["EDGE_WEIGHT_SECTION", *rows]
    if lkh and p.backhaul is Backhaul.MIXED:
        windows = p.time_windows if p.time_windows is not None else np.tile(NO_WINDOW, (p.num_locations, 1))
        columns = [np.zeros(p.num_locations), *windows.T, p.services, p.pickups, p.deliveries]
        lines += _table("PICKUP_AND_DELIVERY", np.stack(columns, axis=1))
    else:
        lines += _demands(p, lkh)
        if p.time_windows is not None:
            lines += _table("TIME_WINDOW", p.time_windows)
        if p.service.any() and not _one_service(p, lkh):
            lines += _table("SERVICE_TIME", p.services)
    if p.fleet is not None and p.num_depots > 1:
        lines += _table("VEHICLES_DEPOT", np.repeat(np.arange(p.num_depots) + 1.0, p.fleet))
    lines += ["DEPOT_SECTION", *(str(d + 1) for d in p.depots), "-1", "EOF"]
    return encode("\n".join(lines) + "\n")


def _headers(p: Problem, lkh: bool) -> list[tuple[str, str]]:
    headers = [
        ("NAME", title(p.name, "VRPLIB")),
        ("TYPE", _type(p, lkh)),
        ("DIMENSION", str(p.num_locations)),
        ("CAPACITY", plain(p.capacity)),
    ]
    if FEATURES["names"](p):
        headers.insert(1, ("COMMENT", NAMES + json.dumps(list(p.names))))
    if p.distance_limit is not None:
        key = "VEHICLES_MAX_DISTANCE" if FEATURES["a limit without service"](p) else "DISTANCE"
        headers.append((key, plain(p.distance_limit)))
    if p.fleet is not None:
        headers.append(("VEHICLES", str(p.fleet * p.num_depots)))
    if _one_service(p, lkh):
        headers.append(("SERVICE_TIME", plain(p.service[0])))
    if p.distance_matrix is not None:
        if lkh and p.coords is not None:
            headers.append(("DISPLAY_DATA_TYPE", "TWOD_DISPLAY"))
        return [*headers, ("EDGE_WEIGHT_TYPE", "EXPLICIT"), ("EDGE_WEIGHT_FORMAT", "FULL_MATRIX")]
    types = {rounding: key for key, rounding in ROUNDINGS.items()}
    return [*headers, ("EDGE_WEIGHT_TYPE", types[p.rounding])]


def _type(p: Problem, lkh: bool) -> str:
    name = dataclasses.replace(p.variant, limit=False).name  # the limit has a line of its own
    if not lkh:
        return name
    matrix = p.distance_matrix
    if name == "CVRP" and matrix is not None and not np.array_equal(matrix, matrix.T):  # else it reads half
        return "ACVRP" if p.distance_limit is None else "ADCVRP"
    return LKH_TYPES.get(name, name.replace("VRPMB", "VRPMPD"))


def _one_service(p: Problem, lkh: bool) -> bool:
    """Whether a header gives the service time of every customer: in VRPBTW, LKH-3 reads no other."""
    alike = p.service.any() and (p.service == p.service[0]).all()
    return bool(lkh and alike and p.backhaul is not Backhaul.MIXED)


def _demands(p: Problem, lkh: bool) -> list[str]:
    if p.backhaul is Backhaul.NONE:
        return _table("DEMAND", p.deliveries)
    if not lkh:
        return _table("DEMAND", p.deliveries) + _table("BACKHAUL", p.pickups)
    backhauls = [str(node) for node, pickup in enumerate(p.pickups, 1) if pickup > 0]
    return [*_table("DEMAND", p.deliveries + p.pickups), "BACKHAUL_SECTION", " ".join([*backhauls, "-1"])]


def _table(key: str, values: FloatArray) -> list[str]:
    rows = enumerate(values.reshape(len(values), -1).tolist(), 1)
    return [f"{key}_SECTION", *(f"{node} {' '.join(map(plain, row))}" for node, row in rows)]
