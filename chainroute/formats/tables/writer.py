"""Problems as tables that are read back as the same: numbers as they are, in the user's own units."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any

from chainroute.errors import fail
from chainroute.formats.common import plain, short, speed_of
from chainroute.formats.tables import cells
from chainroute.formats.tables.book import PLAIN
from chainroute.formats.tables.grids import Cell, Row, Sheet, require_names, write_csv, write_workbook
from chainroute.formats.tables.headings import owner
from chainroute.formats.tables.stops import HOLDS
from chainroute.problem import Problem
from chainroute.problem.attributes import BOTH, Attribute, Kind, attributes
from chainroute.problem.features import require
from chainroute.problem.fleet import SHARED, VehicleType
from chainroute.problem.measure import FloatArray, Metric, Rounding
from chainroute.problem.variants import Backhaul


def write(problem: Problem) -> bytes:
    """The problem as a CSV, its tables below each other."""
    return write_csv(sheets(problem))


def write_excel(problem: Problem) -> bytes:
    return write_workbook(sheets(problem))


def sheets(problem: Problem) -> list[Sheet]:
    """The tables that a problem is read back from."""
    p = problem
    require(p, "a table", HOLDS)
    require_names((p.name, *p.names, *(t.name for t in p.vehicle_types)))
    _require_lists(p)
    speed = None if p.duration_matrix is None else speed_of(p)
    durations = p.duration_matrix is not None and speed is None
    own = [_own(p, t, speed, durations) for t in p.vehicle_types]
    speeds = [each.pop("speed", None) for each in own] or [speed]
    found = [Sheet(_stop_rows(p), "stops"), Sheet(_vehicle_rows(p, speeds), "vehicles"),
             Sheet(_setting_rows(p), "settings")]  # fmt: skip
    if p.distance_matrix is not None:
        found.append(Sheet(_matrix_rows(p, "distances", p.distance_matrix), "distances"))
    if durations and p.duration_matrix is not None:
        found.append(Sheet(_matrix_rows(p, "durations", p.duration_matrix), "durations"))
    for number, (t, matrices) in enumerate(zip(p.vehicle_types, own, strict=True), 1):
        for kind, matrix in matrices.items():
            corner = f"{kind} of {t.name}"
            if owner(corner) != (kind, t.name):
                raise fail("cannot-express", f"a table cannot have {short(corner)!r}.", "name")
            found.append(Sheet(_matrix_rows(p, corner, matrix), f"{kind} {number}"))
    return found


def _own(p: Problem, t: VehicleType, speed: float | None, durations: bool) -> dict[str, Any]:
    """The speed of a type, or its own matrices, so that they say the same beside the problem's speed or
    durations."""
    found: dict[str, Any] = {} if t.distance_matrix is None else {"distances": t.distance_matrix}
    v = p.types[p.vehicle_types.index(t)]
    if t.duration_matrix is not None or (t.speed is not None and durations):
        return found | {"durations": v.durations}
    if t.speed is None and speed is not None and found:
        return found | {"durations": p.durations}
    return found | {"speed": speed if t.speed is None else t.speed}


def _stop_rows(p: Problem) -> list[Row]:
    columns: dict[str, Sequence[Cell]] = {
        "kind": ["depot" if i in p.depots else "customer" for i in range(p.num_locations)]
    }
    columns["name"] = list(p.names)
    if p.coords is not None:
        keys = ("x", "y") if p.metric is Metric.EUCLIDEAN else ("lon", "lat")
        columns |= zip(keys, p.coords.T.tolist(), strict=True)
    for a in attributes(Problem, "customer"):
        if a.kind is Kind.WINDOWS:
            columns |= _windows(p)
        elif a.name == "delivery" or (
            len(values := getattr(p, a.name)) and any(v != a.missing for v in values)
        ):
            every = [_cell(a, value) for value in getattr(p, a.name)]
            columns[a.columns[0].heading] = [0.0 if a.missing == 0 else None] * p.num_depots + every
    return [list(columns), *zip(*columns.values(), strict=True)]


def _windows(p: Problem) -> dict[str, Sequence[Cell]]:
    if p.time_windows is None:
        return {}
    columns: dict[str, Sequence[Cell]] = {}
    several = [len(p.windows_of(i)) > 1 for i in range(p.num_locations)]
    ends = [p.time_windows[:, 0].tolist(), p.time_windows[:, 1].tolist()]
    for name, times in zip(("opens", "closes"), ends, strict=True):
        columns[name] = [
            t if math.isfinite(t) and not many else None for t, many in zip(times, several, strict=True)
        ]
    if any(several):
        columns["windows"] = [
            "; ".join(f"{plain(a)} to {plain(b)}" for a, b in p.windows_of(i)) if many else None
            for i, many in enumerate(several)
        ]
    return columns


def _vehicle_rows(p: Problem, speeds: Sequence[float | None]) -> list[Row]:
    """A row for each type, or for all vehicles; columns that none of them needs are left out."""
    in_metres = p.metric is Metric.HAVERSINE and p.coords is not None and p.distance_matrix is None
    priced = _objective(p) == "money"
    rows: list[dict[str, Cell]] = []
    for t, v, speed in zip(p.vehicle_types or (VehicleType(),), p.types, speeds, strict=True):
        row: dict[str, Cell] = {}
        for a in attributes(VehicleType):
            value = getattr(v if a.name in SHARED else t, a.name)
            if a.name == "count":
                value = p.fleet if t.count is None else t.count
            if a.unit == "speed":
                value = speed
            row |= _cells(p, a, None if a.is_cost and not priced else value, in_metres)
        rows.append(row)
    kept = [key for key in rows[0] if key in ("count", "capacity") or any(r[key] is not None for r in rows)]
    return [kept, *([row[key] for key in kept] for row in rows)]


def _cells(p: Problem, a: Attribute, value: Any, in_metres: bool) -> dict[str, Cell]:
    """The cells of an attribute of a vehicle type, by heading; empty where the value is the default."""
    if not a.columns:
        return {}
    heading = a.columns[0].heading
    if a.kind is Kind.WINDOW:
        ends = [None, None] if value is None else map(_finite, value)
        return dict(zip((column.heading for column in a.columns[:BOTH]), ends, strict=True))
    if in_metres:
        heading = {"length": f"{heading} (m)", "money per length": "cost per m"}.get(a.unit, heading)
    if value is None or (value == a.default and a.name not in SHARED):
        return {heading: None}
    if a.kind is Kind.DEPOT:
        return {heading: p.names[value]}
    if a.kind is Kind.DEPOTS:
        return {heading: _listed([p.names[d] for d in value])}
    if a.kind is Kind.FLAG:
        return {heading: ("no" if a.columns[0].negated else "yes") if value else None}
    return {heading: _cell(a, value)}


def _cell(a: Attribute, value: Any) -> Cell:
    if a.kind is Kind.TEXTS:
        return _listed(value)
    return _finite(float(value)) if a.kind in (Kind.NUMBER, Kind.POSITIVE) else value or None


def _objective(p: Problem) -> str:
    return "money" if "money" in p.extras else "time" if "least time" in p.extras else "distance"


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _listed(words: Collection[str]) -> str | None:
    """Texts in one cell."""
    return "; ".join(sorted(words)) or None


def _require_lists(p: Problem) -> None:
    """Raises the first skill, depot to reload at, or windows, that a list in a cell would not give back."""
    declared = (*attributes(Problem, "customer"), *attributes(VehicleType))
    texts = {
        text
        for a in declared
        if a.kind is Kind.TEXTS
        for holder in ([p] if a.of == "customer" else p.vehicle_types)
        for some in (getattr(holder, a.name) if a.of == "customer" else [getattr(holder, a.name)])
        for text in some
    }
    lists = [a.name for a in attributes(VehicleType) if a.kind is Kind.DEPOTS]
    depots = {p.names[d] for t in p.vehicle_types for name in lists for d in getattr(t, name)}
    if any(len(windows := p.windows_of(c)) > 1 and windows[-1][1] == math.inf for c in p.customers):
        message = "a table cannot hold several windows of which one never closes."
        raise fail("cannot-express", message, "windows")
    for word in sorted(texts | depots):
        if cells.words(word) != [word]:
            raise fail("cannot-express", f"a table cannot list {short(word)!r}.", word)


def _setting_rows(p: Problem) -> list[Row]:
    rows: list[Row] = [["setting", "value"], ["name", p.name], ["time unit", PLAIN]]
    if p.day is not None:
        rows.append(["day", p.day])
    if p.backhaul is not Backhaul.NONE:
        rows.append(["backhaul", p.backhaul.value])
    if p.rounding is not Rounding.EXACT:
        rows.append(["rounding", p.rounding.value])
    if (objective := _objective(p)) != "distance":
        rows.append(["objective", objective])
    if p.limit_counts_service:
        rows.append(["limit counts service", "yes"])
    return rows


def _matrix_rows(p: Problem, corner: str, matrix: FloatArray) -> list[Row]:
    rows = ([name, *(v if math.isfinite(v) else None for v in row)]
            for name, row in zip(p.names, matrix.tolist(), strict=True))  # fmt: skip
    return [[corner, *p.names], *rows]
