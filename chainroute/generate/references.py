"""Mean costs of the reference solutions of the benchmark's test sets."""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files


@cache
def references() -> dict[tuple[str, int], float]:
    """Mean costs of HGS (PyVRP) on the test sets, as the paper's gaps imply them, by variant and size."""
    text = (files("chainroute") / "data" / "hgs_reference.csv").read_text()
    return {(row["task"], int(row["n"])): float(row["test"]) for row in csv.DictReader(text.splitlines())}
