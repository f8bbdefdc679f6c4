"""The paper's figures, as printed in its tables."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

SUITES = ("seen", "zero-shot")
UNITS = {"s": 1.0, "m": 60.0}
HGS = "HGS-PyVRP"  # the paper's reference; its printed means are wrong for VRPBLTW, so they are not used


@dataclass(frozen=True)
class PaperRow:
    """One method on one task of 1,000 problems."""

    task: str
    n: int
    method: str
    cost: float
    gap: float  # per cent
    seconds: float


@dataclass(frozen=True)
class RealRow:
    """All methods on one instance of a library."""

    library: str
    instance: str
    costs: dict[str, float]  # by method


@dataclass(frozen=True)
class AblationRow:
    network: str
    switches: str  # of PolicyConfig, as recipes/ablation.py takes them
    gap: float  # over the 16 seen tasks with 50 customers
    gap_without_tw: float | None
    gap_with_tw: float | None
    parameters: tuple[float, float] | None  # millions, of encoder and decoder
    memory: float | None  # GiB
    seconds: float | None  # for 1,000 problems


@cache
def rows(suite: str, n: int) -> tuple[PaperRow, ...]:
    """The neural methods on the tasks of a suite; none for a suite that the paper does not have."""
    if suite not in SUITES:
        return ()
    table = _table(f"paper_{suite.replace('-', '_')}.csv")
    return tuple(
        PaperRow(
            row["task"],
            n,
            row["method"],
            float(row["objective"]),
            float(row["gap_percent"]),
            _seconds(row["time"]),
        )
        for row in table
        if int(row["n"]) == n and row["method"] != HGS
    )


@cache
def real() -> tuple[RealRow, ...]:
    return tuple(
        RealRow(
            row.pop("set"),
            row.pop("instance").replace("-6-", "_6_"),  # as the files are called
            {method: float(cost) for method, cost in row.items() if cost and method != "best_known"},
        )
        for row in _table("paper_real.csv")
    )


@cache
def ablation() -> tuple[AblationRow, ...]:
    def number(text: str) -> float | None:
        return float(text) if text else None

    return tuple(
        AblationRow(
            row["network"],
            row["switches"],
            float(row["gap"]),
            number(row["gap_without_tw"]),
            number(row["gap_with_tw"]),
            (float(row["encoder_m"]), float(row["decoder_m"])) if row["encoder_m"] else None,
            number(row["memory_gib"]),
            number(row["seconds"]),
        )
        for row in _table("paper_ablation.csv")
    )


def _table(name: str) -> Iterator[dict[str, str]]:
    text = (files("chainroute") / "data" / name).read_text()
    return iter(csv.DictReader(text.splitlines()))


def _seconds(text: str) -> float:
    """Seconds, from "5s" or "10.4m"."""
    number, unit = re.fullmatch(r"([\d.]+)([sm])", text).groups()  # type: ignore[union-attr]
    return float(number) * UNITS[unit]
