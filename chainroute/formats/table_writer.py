"""Problems as tables that are read back as the same: numbers as they are, in the user's own units."""

from __future__ import annotations

import math
from collections.abc import Sequence

from chainroute.features import require
from chainroute.formats.common import speed_of
from chainroute.formats.grids import Cell, Row, Sheet, require_names, write_csv, write_workbook
from chainroute.formats.table_book import PLAIN
from chainroute.formats.tables import HOLDS
from chainroute.measure import FloatArray, Metric, Rounding
from chainroute.problem import Problem
from chainroute.variants import Backhaul


def write(problem: Problem) -> bytes:
    """As a CSV, its tables below each other."""
    return write_csv(sheets(problem))


def write_excel(problem: Problem) -> bytes:
    return write_workbook(sheets(problem))


def sheets(problem: Problem) -> list[Sheet]:
    """The tables that a problem is read back from."""
    p = problem
    require(p, "a table", HOLDS)
    require_names((p.name, *p.names))
    speed = None if p.duration_matrix is None else speed_of(p)
    found = [Sheet(_stop_rows(p), "stops"), Sheet(_vehicle_rows(p, speed), "vehicles"),
             Sheet(_setting_rows(p), "settings")]  # fmt: skip
    if p.distance_matrix is not None:
        found.append(Sheet(_matrix_rows(p, "distances", p.distance_matrix), "distances"))
    if p.duration_matrix is not None and speed is None:
        found.append(Sheet(_matrix_rows(p, "durations", p.duration_matrix), "durations"))
    return found


def _stop_rows(p: Problem) -> list[Row]:
    columns: dict[str, Sequence[Cell]] = {
        "kind": ["depot" if i in p.depots else "customer" for i in range(p.num_locations)]
    }
    columns["name"] = list(p.names)
    if p.coords is not None:
        keys = ("x", "y") if p.metric is Metric.EUCLIDEAN else ("lon", "lat")
        columns |= zip(keys, p.coords.T.tolist(), strict=True)
    columns["delivery"] = p.deliveries.tolist()
    if p.pickup.any():
        columns["pickup"] = p.pickups.tolist()
    if p.service.any():
        columns["service"] = p.services.tolist()
    if p.time_windows is not None:
        columns["opens"] = p.time_windows[:, 0].tolist()
        columns["closes"] = [t if math.isfinite(t) else None for t in p.time_windows[:, 1].tolist()]
    return [list(columns), *zip(*columns.values(), strict=True)]


def _vehicle_rows(p: Problem, speed: float | None) -> list[Row]:
    row: dict[str, Cell] = {"count": p.fleet, "capacity": p.capacity}
    if p.distance_limit is not None:
        in_metres = p.metric is Metric.HAVERSINE and p.coords is not None and p.distance_matrix is None
        row["max distance (m)" if in_metres else "max distance"] = p.distance_limit
    if speed is not None:
        row["speed"] = speed
    if p.open:
        row["returns"] = "no"
    return [list(row), list(row.values())]


def _setting_rows(p: Problem) -> list[Row]:
    rows: list[Row] = [["setting", "value"], ["name", p.name], ["time unit", PLAIN]]
    if p.day is not None:
        rows.append(["day", p.day])
    if p.backhaul is not Backhaul.NONE:
        rows.append(["backhaul", p.backhaul.value])
    if p.rounding is not Rounding.EXACT:
        rows.append(["rounding", p.rounding.value])
    if p.limit_counts_service:
        rows.append(["limit counts service", "yes"])
    return rows


def _matrix_rows(p: Problem, corner: str, matrix: FloatArray) -> list[Row]:
    rows = ([name, *(v if math.isfinite(v) else None for v in row)]
            for name, row in zip(p.names, matrix.tolist(), strict=True))  # fmt: skip
    return [[corner, *p.names], *rows]
