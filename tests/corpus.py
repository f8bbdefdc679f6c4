"""Broken inputs: each is a good file of tests/data with one thing done to it, and the codes that must result.

`corpus()` is used by the tests of the formats and of the command: every case ends in one coded error.
"""

import gzip
import io
import json
import warnings
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from chainroute.formats.tables.grids import Sheet, write_workbook
from chainroute.problem.budget import MAX_LOCATIONS

DATA = Path(__file__).parent / "data"


@dataclass(frozen=True)
class Case:
    file: str  # the name it is written under; unique
    content: bytes
    codes: frozenset[str]  # of all faults that must be reported, and no others


def corpus() -> list[Case]:
    cases = [*_anything(), *_vrplib(), *_backhauls(), *_solomon(), *_cordeau(), *_json(), *_fleet(),
             *_npz(), *_tables()]  # fmt: skip
    assert len({case.file for case in cases}) == len(cases)
    return cases


# -- ways to break a text


def swap(old: str, new: str) -> Callable[[str], str]:
    def change(text: str) -> str:
        assert old in text, f"{old!r} is not in the file to be broken"
        return text.replace(old, new, 1)

    return change


def drop(first: str, last: str | None = None) -> Callable[[str], str]:
    """Without the lines from the first one to the last one, both included."""

    def change(text: str) -> str:
        lines = text.splitlines()
        start = lines.index(first)
        end = start if last is None else lines.index(last, start)
        return "\n".join(lines[:start] + lines[end + 1 :]) + "\n"

    return change


def cut(end: str) -> Callable[[str], str]:
    """Truncated where `end` begins."""
    return lambda text: text[: text.index(end)]


def both(*changes: Callable[[str], str]) -> Callable[[str], str]:
    def change(text: str) -> str:
        for one in changes:
            text = one(text)
        return text

    return change


def _broken(source: str, *rows: tuple[str, Callable[[str], str], str]) -> Iterator[Case]:
    good = (DATA / source).read_text(encoding="utf-8")
    suffix = Path(source).suffix
    for name, change, codes in rows:
        broken = change(good)
        assert broken != good
        yield Case(f"{name}{suffix}", broken.encode(), frozenset(codes.split()))


# -- the cases


def _anything() -> Iterator[Case]:
    for name, content, codes in (
        ("empty", b"", "file-empty"),
        ("blank", b" \r\n\t\n \n", "file-empty"),
        ("only-a-byte-order-mark", b"\xef\xbb\xbf", "file-empty"),
        ("binary", bytes(range(256)) * 8, "not-text"),
        ("zeros", b"\0" * 4096, "not-text"),
        ("utf-16", "NAME : x\nTYPE : CVRP\n".encode("utf-16"), "not-text"),
        ("latin-1", "NAME : Köln\nTYPE : CVRP\n".encode("latin-1"), "not-text"),
        ("prose", b"Dear sir or madam,\nplease find the routes attached.\n", "unknown-format"),
        ("csv", b"colour,shape,taste\n1,2,3\n", "unknown-format"),
        ("xml", b"<?xml version='1.0'?><instance/>\n", "unknown-format"),
        ("picture", b"\x89PNG\r\n\x1a\n" + bytes(64), "unknown-format"),
        ("pdf", b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n", "unknown-format"),
        ("old-excel", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(64), "unknown-format"),
        ("gzip", gzip.compress((DATA / "five.vrp").read_bytes()), "unknown-format"),
        ("web-page", b"<!DOCTYPE html><html><body>404</body></html>", "unknown-format"),
        ("solution", (DATA / "five.sol").read_bytes(), "not-a-problem"),
        ("one-long-line", b"9" * 1_000_000, "unknown-format"),
        ("too-large", b" " * 100_000_001, "file-too-large"),
    ):
        yield Case(f"{name}.txt", content, frozenset([codes]))


def _vrplib() -> Iterator[Case]:
    yield from _broken(
        "five.vrp",
        ("header-only", cut("NODE_COORD_SECTION"), "missing-section"),
        ("truncated-in-coordinates", cut("4 -5 -5"), "wrong-count missing-section"),
        ("truncated-in-a-number", cut("5\nDEMAND"), "bad-syntax missing-section"),
        ("truncated-in-demands", cut("4 6\n"), "wrong-count missing-section"),
        ("truncated-before-depots", cut("DEPOT_SECTION"), "missing-section"),
        ("truncated-in-depots", cut("1\n-1\nEOF"), "no-depot"),
        ("depots-after-their-end", swap("SECTION\n1\n-1", "SECTION\n-1\n1"), "bad-syntax"),
        ("three-dimensions", both(*(swap(f"\n{i} ", f"\n{i} 7 ") for i in range(1, 6))), "unknown-value"),
        ("one-row-with-a-type", swap("1 0 0", "1 -1 0 0"), "bad-syntax"),
        ("no-dimension", drop("DIMENSION : 5"), "missing-field"),
        ("no-capacity", drop("CAPACITY : 10"), "missing-field"),
        ("no-weight-type", drop("EDGE_WEIGHT_TYPE : EUC_2D"), "missing-field"),
        ("no-demands", drop("DEMAND_SECTION", "5 3"), "missing-section"),
        ("no-coordinates", drop("NODE_COORD_SECTION", "5 -5 5"), "missing-section"),
        ("no-depots", swap("SECTION\n1\n-1", "SECTION\n-1"), "no-depot"),
        ("dimension-too-small", swap("DIMENSION : 5", "DIMENSION : 4"), "wrong-count bad-syntax"),
        ("dimension-too-large", swap("DIMENSION : 5", "DIMENSION : 6"), "wrong-count"),
        ("dimension-absurd", swap("DIMENSION : 5", "DIMENSION : 1000000000"), "too-large"),
        ("dimension-astronomic", swap("DIMENSION : 5", "DIMENSION : " + "9" * 5000), "bad-syntax"),
        ("dimension-in-thousands", swap("DIMENSION : 5", "DIMENSION : 9999"), "wrong-count"),
        ("dimension-zero", swap("DIMENSION : 5", "DIMENSION : 0"), "not-positive"),
        ("dimension-a-word", swap("DIMENSION : 5", "DIMENSION : five"), "bad-syntax"),
        ("dimension-broken", swap("DIMENSION : 5", "DIMENSION : 5.5"), "bad-syntax"),
        ("capacity-zero", swap("CAPACITY : 10", "CAPACITY : 0"), "not-positive"),
        ("capacity-negative", swap("CAPACITY : 10", "CAPACITY : -1"), "not-positive"),
        ("capacity-nan", swap("CAPACITY : 10", "CAPACITY : nan"), "not-finite"),
        ("capacity-missing-value", swap("CAPACITY : 10", "CAPACITY :"), "bad-syntax"),
        ("capacity-too-small", swap("CAPACITY : 10", "CAPACITY : 5"), "demand-above-capacity"),
        ("coordinate-nan", swap("3 5 -5", "3 nan -5"), "not-finite"),
        ("coordinate-infinite", swap("3 5 -5", "3 5 -inf"), "not-finite"),
        ("coordinate-too-large", swap("3 5 -5", "3 5 1e151"), "number-too-large"),
        ("capacity-too-large", swap("CAPACITY : 10", "CAPACITY : 1e151"), "number-too-large"),
        ("coordinate-overflow", swap("3 5 -5", "3 5 1e999"), "not-finite"),
        ("coordinate-a-word", swap("3 5 -5", "3 5 x"), "bad-syntax"),
        ("coordinate-too-many", swap("3 5 -5", "3 5 -5 1"), "bad-syntax"),
        ("coordinate-comma", swap("3 5 -5", "3 5,0 -5"), "bad-syntax"),
        ("node-a-word", swap("4 -5 -5", "four -5 -5"), "bad-syntax"),
        ("node-twice", swap("4 -5 -5", "3 -5 -5"), "bad-syntax"),
        ("node-unknown", swap("4 -5 -5", "7 -5 -5"), "bad-syntax"),
        ("demand-negative", swap("3 5\n", "3 -5\n"), "negative"),
        ("demand-nan", swap("3 5\n", "3 NaN\n"), "not-finite"),
        ("demand-above-capacity", swap("3 5\n", "3 11\n"), "demand-above-capacity"),
        ("demand-at-depot", swap("DEMAND_SECTION\n1 0", "DEMAND_SECTION\n1 1"), "unsupported-feature"),
        ("two-faults-one-kind", both(swap("3 5\n", "3 -5\n"), swap("4 6\n", "4 -6\n")), "negative"),
        ("two-faults", both(swap("3 5\n", "3 x\n"), swap("3 5 -5", "3 inf -5")), "bad-syntax not-finite"),
        ("section-twice", swap("DEPOT_SECTION", "DEPOT_SECTION\n1\n-1\nDEPOT_SECTION"), "duplicate-section"),
        ("header-twice", swap("CAPACITY : 10", "CAPACITY : 10\nCAPACITY : 20"), "duplicate-section"),
        ("header-without-colon", swap("CAPACITY : 10", "CAPACITY 10"), "bad-syntax missing-field"),
        ("header-unknown", swap("CAPACITY : 10", "CAPACITY : 10\nDRIVERS : 3"), "unsupported-feature"),
        ("prizes", swap("DEPOT_SECTION", "PRIZE_SECTION\n1 0\nDEPOT_SECTION"), "unsupported-feature"),
        ("type-unknown", swap("TYPE : CVRP", "TYPE : PDPTW"), "unsupported-feature"),
        ("type-promises-windows", swap("TYPE : CVRP", "TYPE : VRPTW"), "missing-section"),
        ("type-promises-backhauls", swap("TYPE : CVRP", "TYPE : VRPB"), "missing-section"),
        ("weights-on-a-globe", swap("EUC_2D", "GEO"), "unsupported-feature"),
        ("weights-explicit-without-matrix", swap("EUC_2D", "EXPLICIT"), "missing-section"),
        ("limit-too-short", swap("CAPACITY : 10", "CAPACITY : 10\nDISTANCE : 13"), "limit-too-short"),
        ("limit-zero", swap("CAPACITY : 10", "CAPACITY : 10\nDISTANCE : 0"), "not-positive"),
        ("fleet-too-small", swap("CAPACITY : 10", "CAPACITY : 10\nVEHICLES : 1"), "fleet-too-small"),
        ("fleet-zero", swap("CAPACITY : 10", "CAPACITY : 10\nVEHICLES : 0"), "not-positive"),
        (
            "capacities-differ",
            swap("CAPACITY : 10\n", "CAPACITY_SECTION\n1 10\n2 12\n"),
            "unsupported-feature",
        ),
        ("capacities-none", swap("CAPACITY : 10\n", "CAPACITY_SECTION\n"), "wrong-count"),
        ("capacity-twice", swap("DEPOT_", "CAPACITY_SECTION\n1 10\nDEPOT_"), "duplicate-section"),
        ("limits-two", swap("TYPE", "DISTANCE : 99\nVEHICLES_MAX_DISTANCE : 99\nTYPE"), "duplicate-section"),
        ("space", swap("TYPE", "NODE_COORD_TYPE : THREED_COORDS\nTYPE"), "unsupported-feature"),
        ("names-broken", swap("a square", "chainroute names [1, 2"), "bad-syntax"),
        (
            "names-repeated",
            swap("a square of side 10 around the depot", 'chainroute names ["a", "b", "b", "c", "d"]'),
            "duplicate-name",
        ),
        ("depot-not-first", swap("SECTION\n1\n-1", "SECTION\n3\n-1"), "unsupported-feature"),
        ("depot-unknown", swap("SECTION\n1\n-1", "SECTION\n9\n-1"), "bad-syntax no-depot"),
    )
    yield from _broken(
        "matrix.vrp",
        ("matrix-short", swap("5 6 0\n", "5 6\n"), "wrong-count"),
        ("matrix-long", swap("5 6 0\n", "5 6 0 7\n"), "wrong-count"),
        ("matrix-nan", swap("3 0 4", "3 0 nan"), "not-finite"),
        ("matrix-a-word", swap("3 0 4", "3 0 four"), "bad-syntax"),
        ("matrix-negative", swap("3 0 4", "3 0 -4"), "negative"),
        ("matrix-diagonal", swap("3 0 4", "3 1 4"), "matrix-diagonal"),
        ("matrix-format-unknown", swap("FULL_MATRIX", "HALF_MATRIX"), "unknown-value"),
        ("matrix-too-large", swap("DIMENSION : 3", "DIMENSION : 9000"), "wrong-count"),
        ("matrix-not-explicit", swap("EXPLICIT", "EUC_2D"), "unknown-value missing-section"),
    )
    yield from _broken(
        "depots.vrp",
        ("window-reversed", swap("5 40 60", "5 60 40"), "window-reversed"),
        ("window-nan", swap("5 40 60", "5 nan 60"), "not-finite"),
        ("window-unreachable", swap("3 5 6", "3 0 4.9"), "window-unreachable"),
        ("window-after-the-depots", swap("5 40 60", "5 99 120"), "window-unreachable"),
        ("window-half", swap("5 40 60", "5 40"), "bad-syntax"),
        ("service-negative", swap("5 1\nVEH", "5 -1\nVEH"), "negative"),
        ("service-at-depot", swap("2 0\n3 2", "2 1\n3 2"), "unsupported-feature"),
        ("fleets-differ", swap("3 2\n4 2\nDEPOT", "3 1\n4 2\nDEPOT"), "unsupported-feature"),
        ("fleet-miscounted", swap("VEHICLES : 4", "VEHICLES : 5"), "wrong-count"),
        ("fleet-nowhere", drop("VEHICLES_DEPOT_SECTION", "4 2"), "missing-section"),
        ("fleet-at-a-customer", swap("4 2\nDEPOT", "4 3\nDEPOT"), "bad-syntax unsupported-feature"),
        ("limit-with-waiting", swap("MAX_DISTANCE", "MAX_DURATION"), "unsupported-feature"),
        ("one-depot-promised-two", swap("1\n2\n-1", "1\n-1"), "missing-section bad-syntax"),
        ("truncated-in-two-depots", cut("2\n-1\nEOF"), "missing-section bad-syntax"),
    )


def _backhauls() -> Iterator[Case]:
    yield from _broken(
        "backhauls.vrpb",
        ("backhaul-unknown-node", swap("2 4\n-1", "2 7\n-1"), "bad-syntax"),
        ("backhaul-twice", swap("2 4\n-1", "2 2\n-1"), "bad-syntax"),
        ("backhaul-unended", swap("2 4\n-1\n", "2 4\n"), "wrong-count"),
        ("backhaul-of-plain-type", swap("VRPB", "CVRP"), "backhaul-rule-missing"),
    )
    yield from _broken(
        "types.vrpb",
        ("type-unknown", swap("4 1 4 0", "4 2 4 0"), "unknown-value"),
        ("type-missing", swap("4 1 4 0", "4 4 0"), "bad-syntax"),
        ("type-depot-at-a-customer", swap("5 0 0", "5 -1 0"), "unknown-value"),
        ("type-customer-at-the-depot", swap("1 -1", "1 0"), "unknown-value"),
        ("types-and-backhauls", swap("DEPOT_", "BACKHAUL_SECTION\n2 4\n-1\nDEPOT_"), "duplicate-section"),
    )
    yield from _broken(
        "mixed.vrpmpd",
        ("pickup-above-capacity", swap("5 9 0", "5 11 0"), "demand-above-capacity"),
        ("pickup-negative", swap("5 9 0", "5 -9 0"), "negative"),
        ("pickup-said-twice", swap("DEPOT_", "SERVICE_TIME_SECTION\nDEPOT_"), "duplicate-section"),
        ("pickup-pairs", swap("VRPMPD", "CVRP"), "unsupported-feature"),
        ("pickup-columns", swap("5 9 0", "9 0"), "bad-syntax"),
        ("limit-with-service", swap("DISTANCE : 50", "DISTANCE : 14.9"), "limit-too-short"),
    )


def _tables() -> Iterator[Case]:
    ada, van = "customer,Ada,10.01,53.50,6,,5,09:00,11:00", "2,10,36,40"
    yield from _broken(
        "table.csv",
        ("table-no-vehicles", cut("count,"), "missing-field"),
        ("table-only-headings", cut("depot,hub"), "no-depot"),
        ("table-only-the-depot", cut("customer,Ada"), "no-customer"),
        ("table-vehicles-without-a-row", drop(van), "missing-field"),
        ("table-no-latitude", swap("lat,", "heightt,"), "missing-field"),
        ("table-heading-misspelt", swap("delivery", "delivry"), "unknown-field"),
        ("table-heading-elsewhere", swap("pickup", "allowed vehicles"), "unknown-field"),
        ("table-heading-beyond", swap("pickup", "lunch break"), "unsupported-feature"),
        ("table-unit-unknown", swap("(min)", "(fortnights)"), "unknown-value"),
        ("table-service-without-unit", swap(" (min)", ""), "unit-missing"),
        ("table-speed-without-unit", swap(" (km/h)", ""), "unit-missing"),
        ("table-limit-without-unit", swap(" (km)", ""), "unit-missing"),
        ("table-no-speed", both(swap(",speed (km/h)", ""), swap("10,36", "10")), "missing-field"),
        ("table-speed-zero", swap("10,36", "10,0"), "not-positive"),
        ("table-speed-a-word", swap("10,36", "10,fast"), "bad-syntax"),
        ("table-capacity-empty", swap("2,10,", "2,,"), "missing-field"),
        ("table-capacity-negative", swap("2,10,", "2,-10,"), "not-positive"),
        ("table-count-broken", swap(van, "2.5,10,36,40"), "bad-syntax"),
        ("table-count-zero", swap(van, "0,10,36,40"), "not-positive"),
        ("table-vehicles-differ-by-nothing-known", swap(van, f"{van}\n1,,36,40"), "missing-field"),
        ("table-limit-too-short", swap(van, "2,10,36,1"), "limit-too-short"),
        ("table-no-depot", swap("depot,hub", "customer,hub"), "no-depot"),
        ("table-demand-at-the-depot", swap("53.50,,,,08", "53.50,2,,,08"), "unsupported-feature"),
        ("table-coordinate-missing", swap(ada, "customer,Ada,,53.50,6,,5,,"), "missing-field"),
        ("table-coordinate-a-word", swap("10.01", "east"), "bad-syntax"),
        ("table-coordinate-off-the-globe", swap("53.52", "153.52"), "coordinate-range"),
        ("table-number-of-two-minds", swap("Ada,10.01,53.50,6", 'Ada,10.01,53.50,"1,234"'), "bad-syntax"),
        ("table-delivery-infinite", swap("53.50,6", "53.50,inf"), "not-finite"),
        ("table-delivery-negative", swap("53.50,6", "53.50,-6"), "negative"),
        (
            "table-delivery-above-capacity",
            swap("53.50,6", "53.50,60"),
            "demand-above-capacity fleet-too-small",
        ),
        ("table-time-a-word", swap("09:00", "early"), "bad-syntax"),
        ("table-time-impossible", swap("09:00", "09:75"), "bad-syntax"),
        ("table-time-half-past-noon", swap("5 pm", "15 pm"), "bad-syntax"),
        ("table-window-reversed", swap("09:00,11:00", "11:00,09:00"), "window-reversed"),
        ("table-window-unreachable", swap("09:00,11:00", "05:00,07:59"), "window-unreachable"),
        ("table-date-for-some", swap("09:00,11:00", "2026-11-16 09:00,2026-11-17 11:00"), "bad-syntax"),
        ("table-date-of-no-calendar", swap("09:00", "2026-02-30 09:00"), "bad-syntax"),
        ("table-date-of-two-minds", swap("09:00", "03/04/2026 09:00"), "bad-syntax"),
        ("table-service-a-date", swap("6,,5,", "6,,2026-11-16,"), "bad-syntax"),
        ("table-name-twice", swap("Bob", "Ada"), "duplicate-name"),
        ("table-setting-unknown", swap("name,three", "colour,three"), "unknown-field"),
        ("table-setting-twice", swap("name,three stops", "name,a\nname,b"), "duplicate-section"),
        ("table-rule-unknown", swap("name,three stops", "backhaul,both"), "unknown-value"),
        ("table-rounding-unknown", swap("name,three stops", "rounding,up"), "unknown-value"),
        ("table-answer-unknown", swap("name,three stops", "limit counts service,maybe"), "unknown-value"),
        ("table-time-unit-unknown", swap("name,three stops", "time unit,days"), "unknown-value"),
        (
            "table-clock-without-time-unit",
            swap("name,three stops", "time unit,none"),
            "unknown-value",
        ),
        ("table-quotes", swap("customer,Bob", 'customer,"Bob'), "bad-syntax"),
        ("table-stops-twice", swap("\ncount", "\nname,x,y\na,1,2\n\ncount"), "duplicate-section"),
    )
    yield from _broken(
        "squares.csv",
        ("table-two-faults", both(swap("A,3", "A,three"), swap("6,8,5", "6,8,five")), "bad-syntax"),
        ("table-matrix-a-word", swap("A,5,0,5", "A,5,0,far"), "bad-syntax"),
        ("table-matrix-negative", swap("A,5,0,5", "A,5,0,-5"), "negative"),
        (
            "table-matrix-stranger",
            swap("distances,depot,A,B", "distances,depot,A,Z"),
            "unknown-location wrong-count",
        ),
        ("table-matrix-row-missing", drop("B,10,,0"), "wrong-count"),
        ("table-matrix-row-twice", swap("B,10,,0", "A,10,,0"), "unknown-location wrong-count"),
        ("table-matrix-diagonal", swap("A,5,0,5", "A,5,1,5"), "matrix-diagonal"),
        ("table-matrix-unit", swap("distances,", "distances (ells),"), "unknown-value"),
        ("table-first-row-has-demand", swap("depot,0,0,0", "P,0,0,4"), "no-depot"),
        ("table-vehicles-alone", lambda text: "vehicles,capacity\n2,10\n", "not-a-problem"),
    )
    yield from _broken(
        "fleet.csv",
        ("fleet-table-end-unknown", swap(",N,S,10", ",N,X,10"), "unknown-location"),
        ("fleet-table-reload-unknown", swap('"N, S"', '"N, X"'), "unknown-location"),
        ("fleet-table-shift-reversed", swap("08:00-16:00", "16:00-08:00"), "window-reversed"),
        ("fleet-table-shift-a-word", swap("08:00-16:00", "mornings"), "bad-syntax"),
        ("fleet-table-shift-too-short", swap("08:00-16:00", "08:00-08:05"), "window-unreachable"),
        ("fleet-table-duration-negative", swap(",7.5,30", ",-7.5,30"), "not-positive"),
        ("fleet-table-duration-a-date", swap(",7.5,30", ",2026-11-16,30"), "bad-syntax"),
        ("fleet-table-fixed-cost-negative", swap(",30,", ",-30,"), "negative"),
        ("fleet-table-capacity-of-some", swap("bike,,,,3", "bike,,,,"), "missing-field"),
        ("fleet-table-speed-of-some", swap(",,18,", ",,,"), "missing-field"),
        ("fleet-table-cost-of-which-time", swap("cost per hour", "cost per time"), "unit-missing"),
        ("fleet-table-cost-of-which-length", swap("cost per km", "cost per distance"), "unit-missing"),
        ("fleet-table-cost-a-word", swap(",0.5,18", ",cheap,18"), "bad-syntax"),
        ("fleet-table-trips-broken", swap(',2,"N', ',1.5,"N'), "bad-syntax"),
        ("fleet-table-trips-zero", swap(',2,"N', ',0,"N'), "not-positive"),
        ("fleet-table-reload-of-one-trip", swap(',2,"N', ',1,"N'), "conflicting-fields"),
        ("fleet-table-unit-misspelt", swap("speed (km/h)", "sped (km/h)"), "unknown-field"),
        ("fleet-table-breaks", swap("fixed cost", "breaks"), "unsupported-feature"),
        ("fleet-table-end-and-open", swap('"N, S",', '"N, S",no'), "conflicting-fields"),
        ("fleet-table-name-twice", swap("bike,,,", "van,,N,"), "duplicate-name"),
        ("fleet-table-optional-for-free", swap("7.5,no", ",no"), "missing-field"),
        ("fleet-table-prize-a-word", swap(",9,yes", ",nine,yes"), "bad-syntax"),
        ("fleet-table-prize-negative", swap("7.5,no", "-7.5,no"), "negative"),
        ("fleet-table-required-perhaps", swap(",9,yes", ",9,maybe"), "unknown-value"),
        ("fleet-table-skill-of-nobody", swap("lift + ice", "wings"), "skill-missing"),
        ("fleet-table-windows-broken", swap("14:00-16:00", "16:00"), "bad-syntax"),
        ("fleet-table-depot-closes-at-noon", swap("8:00-18:00", '"8:00-9:00, 10:00-18:00"'),
         "unsupported-feature"),
        ("fleet-table-matrix-of-nobody",
         lambda text: f"{text}\ndistances of tram,N,S,A,B,C\n" + "".join(
             f"{a},{','.join('0' if a == b else '1' for b in 'NSABC')}\n" for a in "NSABC"),
         "unknown-vehicle"),
    )  # fmt: skip
    book = _workbook(
        [["name", "x", "y", "demand"], ["depot", 0, 0, None], ["A", 3, "four", 5]], [["capacity"], [9]]
    )
    yield Case("workbook-cell.xlsx", book, frozenset(["bad-syntax"]))
    yield Case("workbook-cut.xlsx", book[: len(book) // 2], frozenset(["bad-syntax"]))
    yield Case("workbook-damaged.xlsx", _damaged(book), frozenset(["bad-syntax"]))
    yield Case("workbook-empty.xlsx", _workbook([], []), frozenset(["not-a-problem"]))


def _workbook(stops: list[list[Any]], vehicles: list[list[Any]]) -> bytes:
    return write_workbook([Sheet(stops, "stops"), Sheet(vehicles, "vehicles")])


def _damaged(book: bytes) -> bytes:
    """With half a document in place of each sheet."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(book)) as old, zipfile.ZipFile(made, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            new.writestr(name, content[: len(content) // 2] if "worksheets" in name else content)
    return made.getvalue()


def _solomon() -> Iterator[Case]:
    row = "    2      6          8          7         30         40          2\n"
    yield from _broken(
        "windows.txt",
        ("solomon-truncated-header", cut("CUSTOMER"), "missing-section"),
        ("solomon-no-rows", cut("    0      0"), "no-depot"),
        ("solomon-only-the-depot", cut("    1      3"), "no-customer"),
        ("solomon-truncated-row", cut("         90          2"), "bad-syntax"),
        ("solomon-row-missing", swap(row, ""), "bad-syntax"),
        ("solomon-row-twice", swap(row, row + row), "bad-syntax"),
        ("solomon-no-vehicle", drop("VEHICLE"), "unknown-format"),
        ("solomon-no-numbers", drop("  2          20"), "bad-syntax"),
        ("solomon-capacity-missing", swap("  2          20", "  2"), "bad-syntax"),
        ("solomon-fleet-broken", swap("  2          20", "  2.5        20"), "bad-syntax"),
        ("solomon-fleet-zero", swap("  2          20", "  0          20"), "not-positive"),
        ("solomon-fleet-too-small", swap("  2          20", "  1          19"), "fleet-too-small"),
        ("solomon-demand-negative", swap("8          7 ", "8         -7 "), "negative"),
        ("solomon-demand-above-capacity", swap("8          7 ", "8         27 "), "demand-above-capacity"),
        ("solomon-window-reversed", swap("30         40", "40         30"), "window-reversed"),
        ("solomon-window-unreachable", swap("30         40", " 1          9"), "window-unreachable"),
        ("solomon-late-for-the-depot", swap("30         40", "95         99"), "window-unreachable"),
        ("solomon-infinite", swap("30         40", "30        inf"), "not-finite"),
        ("solomon-column-too-many", swap("40          2", "40          2   1"), "bad-syntax"),
        (
            "solomon-demand-at-depot",
            swap("0          0        100", "5          0        100"),
            "unsupported-feature",
        ),
        ("solomon-absurd", lambda text: text + row * (MAX_LOCATIONS + 1), "too-large"),
        ("solomon-words-between", swap("VEHICLE", "some words\nVEHICLE"), "bad-syntax"),
    )


def _cordeau() -> Iterator[Case]:
    first = " 1  3  4 2 7 1 2 1 2\n"
    yield from _broken(
        "mdvrp.txt",
        ("cordeau-truncated", cut(" 6 20"), "wrong-count"),
        ("cordeau-header-only", cut("40 10"), "wrong-count"),
        ("cordeau-row-missing", swap(first, ""), "wrong-count"),
        ("cordeau-miscounted", swap("2 2 4 2", "2 2 5 2"), "wrong-count"),
        ("cordeau-absurd", swap("2 2 4 2", "2 2 99999999 2"), "too-large"),
        ("cordeau-no-depots", swap("2 2 4 2", "2 2 4 0"), "no-depot"),
        ("cordeau-no-customers", swap("2 2 4 2", "2 2 0 2"), "no-customer"),
        ("cordeau-periodic", swap("2 2 4 2", "1 2 4 2"), "unsupported-feature"),
        ("cordeau-type-unknown", swap("2 2 4 2", "9 2 4 2"), "unsupported-feature"),
        ("cordeau-no-fleet", swap("2 2 4 2", "2 0 4 2"), "not-positive"),
        ("cordeau-header-broken", swap("2 2 4 2", "2 2 4 x"), "unknown-format"),
        ("cordeau-vehicles-differ", swap("40 10\n40 10", "40 10\n40 12"), "unsupported-feature"),
        ("cordeau-vehicle-broken", swap("40 10\n40 10", "40 10\n40"), "bad-syntax"),
        ("cordeau-limit-negative", swap("40 10\n40 10", "-40 10\n-40 10"), "not-positive"),
        ("cordeau-limit-too-short", swap("40 10\n40 10", "11 10\n11 10"), "limit-too-short"),
        ("cordeau-nan", swap(" 1  3  4", " 1  3  nan"), "not-finite"),
        ("cordeau-a-word", swap(" 1  3  4", " 1  3  four"), "bad-syntax"),
        ("cordeau-row-short", swap(first, " 1  3  4 2 7\n"), "bad-syntax"),
        ("cordeau-out-of-order", swap(" 1  3  4", " 2  3  4"), "bad-syntax"),
        ("cordeau-demand-negative", swap("4 2 7 1", "4 2 -7 1"), "negative"),
        ("cordeau-demand-above-capacity", swap("4 2 7 1", "4 2 17 1"), "demand-above-capacity"),
        ("cordeau-depot-demand", swap(" 5  0  0 0 0", " 5  0  0 0 3"), "unsupported-feature"),
        ("cordeau-two-visits", swap("7 1 2 1 2\n", "7 2 2 1 2\n"), "unsupported-feature"),
        ("cordeau-not-every-depot", swap("7 1 2 1 2\n", "7 1 1 1\n"), "unsupported-feature"),
        ("cordeau-choices-miscounted", swap("7 1 2 1 2\n", "7 1 3 1 2\n"), "wrong-count"),
        ("cordeau-windows-missing", swap("2 2 4 2", "6 2 4 2"), "bad-syntax wrong-count unsupported-feature"),
    )


def vehicle(i: int, **changes: Any) -> Callable[[str], str]:
    def change(text: str) -> str:
        document = json.loads(text)
        document["vehicles"][i] |= changes
        return json.dumps(document)

    return change


def _fleet() -> Iterator[Case]:
    """What lies beyond the 48 variants."""
    matrix = [[0.0 if i == j else 1.0 for i in range(6)] for j in range(6)]
    yield from _broken(
        "fleet.json",
        ("fleet-no-capacity", edit(capacity=None, vehicles=None), "missing-field"),
        ("fleet-capacity-of-some", edit(capacity=None), "wrong-type"),
        ("fleet-objective-unknown", edit(objective="happiness"), "unknown-value"),
        ("fleet-objective-time-and-costs", edit(objective="time"), "conflicting-fields"),
        ("fleet-cost-negative", edit(cost_per_distance=-1), "negative"),
        ("fleet-cost-a-word", edit(fixed_cost="much"), "wrong-type"),
        ("fleet-vehicles-an-object", edit(vehicles={"van": 2}), "wrong-type"),
        ("fleet-vehicles-numbers", edit(vehicles=[1, 2]), "wrong-type"),
        ("fleet-vehicles-too-many", edit(vehicles=[{}] * 1001), "too-large"),
        ("fleet-vehicles-far-too-many", edit(vehicles=[{}] * 10_001), "too-large"),
        ("fleet-key-unknown", vehicle(0, wheels=4), "unknown-field"),
        ("fleet-breaks", vehicle(0, breaks=[[12, 13]]), "unsupported-feature"),
        ("fleet-balance", edit(balance=True), "unsupported-feature"),
        ("fleet-pairs", edit(shipments=[]), "unsupported-feature"),
        ("fleet-pairs-by-another-name", edit(pairs=[["Anna", "Ben"]]), "unsupported-feature"),
        ("fleet-pairs-of-a-customer", customer(0, pickup_of="Ben"), "unsupported-feature"),
        ("fleet-lunch", vehicle(0, lunch=[720, 780]), "unsupported-feature"),
        ("fleet-rush-hours", edit(rush_hours=[[7, 9]]), "unsupported-feature"),
        ("fleet-equal-routes", edit(equalize=True), "unsupported-feature"),
        ("fleet-depots-of-a-customer", customer(0, depots=["north"]), "unknown-field"),
        ("fleet-max-distance", vehicle(0, max_distance=9), "unknown-field"),
        ("fleet-theirs", edit(shipments=[], customers=None, depots=None), "unknown-format"),
        ("fleet-precedence", customer(0, precedence=["Ben"]), "unsupported-feature"),
        ("fleet-traffic", edit(traffic=[[1, 2]]), "unsupported-feature"),
        ("fleet-overtime", vehicle(0, max_overtime=9), "unsupported-feature"),
        ("fleet-compartments", vehicle(0, compartments=[1, 2]), "unsupported-feature"),
        ("fleet-release", customer(0, release=9), "unsupported-feature"),
        ("fleet-split", customer(0, split=True), "unsupported-feature"),
        ("fleet-battery", vehicle(2, battery=9), "unsupported-feature"),
        ("fleet-fixed-cost-misspelt", vehicle(0, fixedCost=9), "unknown-field"),
        ("fleet-name-twice", vehicle(0, name="truck"), "duplicate-name"),
        ("fleet-name-a-number", vehicle(0, name=7), "wrong-type"),
        ("fleet-count-zero", vehicle(0, count=0), "not-positive"),
        ("fleet-count-broken", vehicle(0, count=1.5), "wrong-type"),
        ("fleet-count-too-large", vehicle(0, count=10**200), "number-too-large"),
        ("fleet-depot-unknown", vehicle(0, depot="west"), "unknown-location"),
        ("fleet-depot-a-customer", vehicle(0, depot="Anna"), "unknown-location"),
        ("fleet-depot-a-number", vehicle(0, depot=0), "wrong-type"),
        ("fleet-end-unknown", vehicle(1, end="west"), "unknown-location"),
        ("fleet-end-and-open", vehicle(1, open=True), "conflicting-fields"),
        ("fleet-open-a-word", vehicle(2, open="yes"), "wrong-type"),
        ("fleet-open-start-a-word", vehicle(2, open_start="yes"), "wrong-type"),
        ("fleet-open-start-and-trips", vehicle(2, open_start=True, max_trips=2), "conflicting-fields"),
        ("fleet-start", vehicle(2, start="north"), "unknown-field"),
        ("fleet-capacity-zero", vehicle(0, capacity=0), "not-positive"),
        ("fleet-capacity-negative", vehicle(1, capacity=-4), "not-positive"),
        ("fleet-capacity-infinite", vehicle(1, capacity=float("inf")), "not-finite"),
        ("fleet-capacity-too-large", vehicle(1, capacity=1e151), "number-too-large"),
        ("fleet-fixed-cost-negative", vehicle(0, fixed_cost=-20), "negative"),
        ("fleet-time-cost-negative", vehicle(1, cost_per_time=-1), "negative"),
        ("fleet-distance-cost-a-list", vehicle(1, cost_per_distance=[1]), "wrong-type"),
        ("fleet-shift-reversed", vehicle(0, shift=[60, 0]), "window-reversed"),
        ("fleet-shift-one-number", vehicle(0, shift=[60]), "missing-field"),
        ("fleet-shift-never-begins", vehicle(0, shift=[None, 60]), "wrong-type"),
        ("fleet-shift-a-word", vehicle(0, shift="09:00-17:00"), "wrong-type"),
        ("fleet-duration-zero", vehicle(0, max_duration=0), "not-positive"),
        ("fleet-limit-negative", vehicle(2, distance_limit=-1), "not-positive"),
        ("fleet-speed-zero", vehicle(2, speed=0), "not-positive"),
        ("fleet-speed-and-durations", vehicle(2, durations=matrix), "conflicting-fields"),
        ("fleet-matrix-not-square", vehicle(0, distances=matrix[:3]), "matrix-not-square"),
        ("fleet-matrix-too-small", vehicle(0, distances=[[0]]), "wrong-shape"),
        ("fleet-matrix-negative", vehicle(0, durations=[[-1.0] * 6] * 6), "negative"),
        ("fleet-matrix-ragged", vehicle(0, durations=[[0], [1, 0]]), "wrong-type"),
        ("fleet-trips-zero", vehicle(0, max_trips=0), "not-positive"),
        ("fleet-trips-broken", vehicle(0, max_trips=1.5), "wrong-type"),
        ("fleet-reload-unknown", vehicle(0, reload_depots=["west"]), "unknown-location"),
        ("fleet-reload-of-one-trip", vehicle(1, reload_depots=["north"]), "conflicting-fields"),
        ("fleet-skills-a-word", vehicle(1, skills="lift"), "wrong-type"),
        ("fleet-skills-numbers", customer(2, skills=[3]), "wrong-type"),
        ("fleet-skill-of-nobody", vehicle(1, skills=[]), "skill-missing"),
        ("fleet-skill-of-a-small-one", both(vehicle(1, capacity=5), customer(0, delivery=3)),
         "demand-above-capacity"),
        ("fleet-prize-negative", customer(1, prize=-30), "negative"),
        ("fleet-prize-a-word", customer(1, prize="high"), "wrong-type"),
        ("fleet-windows-empty", customer(0, windows=[]), "wrong-type"),
        ("fleet-windows-a-window", customer(0, windows=[8, 20]), "wrong-type"),
        ("fleet-windows-and-window", customer(0, window=[8, 20]), "conflicting-fields"),
        ("fleet-windows-reversed", customer(0, windows=[[8, 20], [45, 40]]), "window-reversed"),
        ("fleet-windows-too-many", customer(0, windows=[[8, 20]] * 101), "wrong-type"),
        ("fleet-windows-unreachable", customer(0, windows=[[0, 1], [2, 3]]), "window-unreachable"),
        ("fleet-too-small", both(edit(vehicles=[{"count": 1, "depot": "north"}, {"count": 1, "capacity": 5,
          "depot": "north"}]), customer(2, skills=[])), "fleet-too-small"),
        ("fleet-nobody-near", both(edit(vehicles=[{"distance_limit": 9}]), customer(2, skills=[])),
         "limit-too-short"),
    )  # fmt: skip


def edit(**changes: Any) -> Callable[[str], str]:
    """Top-level keys of a JSON document set, or with None removed."""

    def change(text: str) -> str:
        document = json.loads(text) | changes
        return json.dumps({key: value for key, value in document.items() if value is not None})

    return change


def customer(i: int, **changes: Any) -> Callable[[str], str]:
    def change(text: str) -> str:
        document = json.loads(text)
        document["customers"][i] |= changes
        return json.dumps(document)

    return change


def without(kind: str, i: int, key: str) -> Callable[[str], str]:
    def change(text: str) -> str:
        document = json.loads(text)
        del document[kind][i][key]
        return json.dumps(document)

    return change


def _json() -> Iterator[Case]:
    yield from _broken(
        "named.json",
        ("json-truncated", cut('"customers"'), "bad-syntax"),
        ("json-unclosed", lambda text: text.rstrip()[:-1], "bad-syntax"),
        ("json-trailing-comma", swap('[0, 100]}', '[0, 100]},'), "bad-syntax"),
        ("json-more-after-it", lambda text: text + "{}", "bad-syntax"),
        ("json-nested-deeply", lambda _: "[" * 100_000, "bad-syntax"),
        ("json-list", lambda text: f"[{text}]", "wrong-type"),
        ("json-empty-object", lambda _: "{}", "missing-field"),
        ("json-key-twice", swap('"fleet": 2', '"fleet": 2, "fleet": 3'), "duplicate-section"),
        ("json-key-unknown", edit(colour="red"), "unknown-field"),
        ("json-key-misspelt", edit(capacity=None, capacitiy=10), "missing-field unknown-field"),
        ("json-customer-key-unknown", customer(0, sevrice=3), "unknown-field"),
        ("json-priority", customer(0, priority=3), "unknown-field"),
        ("json-skills", customer(0, required_skills=[1]), "unknown-field"),
        ("json-breaks", swap('"capacity"', '"driverBreaks": [[1, 2]], "capacity"'), "unsupported-feature"),
        ("json-trips", swap('"capacity"', '"max_trips": 2, "capacity"'), "unknown-field"),
        ("json-of-vroom", lambda _: '{"jobs": [{"id": 1}], "vehicles": [{"id": 1}]}', "unknown-format"),
        ("json-pragmatic", lambda _: '{"plan": {"jobs": []}, "fleet": {}}', "unknown-format"),
        ("json-capacity-a-word", edit(capacity="ten"), "wrong-type"),
        ("json-capacity-a-digit-in-quotes", edit(capacity="10"), "wrong-type"),
        ("json-capacity-true", edit(capacity=True), "wrong-type"),
        ("json-capacity-list", edit(capacity=[10, 12]), "wrong-type"),
        ("json-capacity-nan", swap('"capacity": 10', '"capacity": NaN'), "not-finite"),
        ("json-capacity-infinite", swap('"capacity": 10', '"capacity": Infinity'), "not-finite"),
        ("json-capacity-too-large", swap('"capacity": 10', '"capacity": 1e151'), "number-too-large"),
        ("json-x-too-large", customer(0, x=-1e151), "number-too-large"),
        ("json-window-too-large", customer(0, window=[0, 1e151]), "number-too-large"),
        ("json-late-and-heavy", both(customer(0, delivery=11), customer(1, window=[0, 1])),
         "demand-above-capacity window-unreachable"),
        ("json-capacity-overflow", swap('"capacity": 10', '"capacity": 1e999'), "not-finite"),
        ("json-capacity-of-5000-digits", swap('"capacity": 10', f'"capacity": {"9" * 5000}'), "bad-syntax"),
        ("json-capacity-zero", edit(capacity=0), "not-positive"),
        ("json-fleet-broken", edit(fleet=2.5), "wrong-type"),
        ("json-fleet-zero", edit(fleet=0), "not-positive"),
        ("json-open-a-word", edit(open="yes"), "wrong-type"),
        ("json-backhaul-unknown", edit(backhaul="sometimes"), "unknown-value"),
        ("json-backhaul-missing", edit(backhaul=None), "backhaul-rule-missing"),
        ("json-rounding-unknown", edit(rounding="half"), "unknown-value"),
        ("json-limit-negative", edit(distance_limit=-5), "not-positive"),
        ("json-limit-too-short", edit(distance_limit=19), "limit-too-short"),
        ("json-no-depots", edit(depots=[]), "no-depot"),
        ("json-no-customers", edit(customers=[]), "no-customer"),
        ("json-customers-missing", edit(customers=None), "missing-field"),
        ("json-customers-an-object", edit(customers={"Anna": {}}), "wrong-type"),
        ("json-too-many", edit(customers=[{}] * (MAX_LOCATIONS + 1)), "too-large"),
        ("json-name-twice", customer(0, name="Ben"), "duplicate-name"),
        ("json-name-of-the-depot", customer(0, name="yard"), "duplicate-name"),
        ("json-name-a-number", customer(0, name=3), "wrong-type"),
        ("json-delivery-negative", customer(0, delivery=-7), "negative"),
        ("json-delivery-above-capacity", customer(0, delivery=11), "demand-above-capacity"),
        ("json-service-negative", customer(0, service=-1), "negative"),
        ("json-window-reversed", customer(0, window=[20, 8]), "window-reversed"),
        ("json-window-unreachable", customer(0, window=[0, 4]), "window-unreachable"),
        ("json-window-too-late", customer(0, window=[99, 200]), "window-unreachable"),
        ("json-window-one-number", customer(0, window=[8]), "missing-field"),
        ("json-window-three-numbers", customer(0, window=[8, 9, 10]), "wrong-type"),
        ("json-window-never-opens", customer(0, window=[None, 10]), "wrong-type"),
        ("json-no-y", without("customers", 1, "y"), "missing-field"),
        ("json-no-place", both(without("customers", 1, "y"), without("customers", 1, "x")), "missing-field"),
        ("json-globe-and-plane", customer(1, lon=3, lat=4), "missing-field unknown-field"),
    )  # fmt: skip
    yield from _broken(
        "globe.json",
        ("globe-latitude", customer(0, lat=91), "coordinate-range"),
        ("globe-swapped", customer(0, lon=52.5, lat=113.4), "coordinate-range"),
    )
    yield from _broken(
        "asymmetric.json",
        ("matrix-missing", edit(distances=None), "no-distances"),
        ("matrix-not-square", edit(distances=[[0, 1, 2], [3, 0, 4]]), "matrix-not-square"),
        ("matrix-ragged", edit(distances=[[0, 1, 2], [3, 0], [5, 6, 0]]), "wrong-type"),
        ("matrix-of-other-size", edit(distances=[[0, 1], [1, 0]]), "wrong-shape"),
        ("matrix-with-words", edit(distances=[[0, 1, "far"], [3, 0, 4], [5, 6, 0]]), "wrong-type"),
        ("matrix-without-a-way", edit(distances=[[0, 1, None], [3, 0, None], [5, 6, 0]]), "no-road"),
        ("matrix-negative", edit(distances=[[0, 1, -2], [3, 0, 4], [5, 6, 0]]), "negative"),
        ("matrix-diagonal", edit(durations=[[1, 2, 4], [6, 0, 8], [10, 12, 0]]), "matrix-diagonal"),
    )


def _npz() -> Iterator[Case]:
    arrays: dict[str, Any] = {
        "locs": np.linspace(0, 1, 24).reshape(2, 6, 2).astype(np.float32),
        "demand_linehaul": np.full((2, 5), 0.5, np.float32),
        "vehicle_capacity": np.ones((2, 1), np.float32),
        "speed": np.ones((2, 1), np.float32),
        "num_depots": np.ones((2, 1), np.int32),
    }

    def packed(**changes: Any) -> bytes:
        buffer = io.BytesIO()
        kept = {key: value for key, value in (arrays | changes).items() if value is not None}
        np.savez(buffer, **kept)
        return buffer.getvalue()

    def zipped(name: str, content: bytes, compression: int = zipfile.ZIP_STORED) -> bytes:
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", compression) as archive:
            archive.writestr(name, content)
        return buffer.getvalue()

    def claiming(shape: str) -> bytes:
        """An array whose header claims a shape that its data do not have."""
        header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}".ljust(117) + "\n"
        return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + bytes(16)

    def doubled(content: bytes) -> bytes:
        buffer = io.BytesIO(content)
        with zipfile.ZipFile(buffer, "a") as archive, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            archive.writestr("speed.npy", archive.read("speed.npy"))
        return buffer.getvalue()

    good = packed()
    nan = arrays["locs"].copy()
    nan[1, 3] = np.nan
    for name, content, codes in (
        ("npz-truncated", good[: len(good) // 2], "bad-syntax"),
        ("npz-corrupt", good.replace(b"NUMPY", b"NUMPI", 1), "bad-syntax"),
        ("npz-no-arrays", zipped("readme.txt", b"hello"), "unknown-format"),
        ("npz-empty-archive", b"PK\x05\x06" + bytes(18), "missing-field"),
        ("npz-bomb", zipped("locs.npy", bytes(110_000_000), zipfile.ZIP_DEFLATED), "file-too-large"),
        ("npz-absurd-shape", zipped("locs.npy", claiming("(1000000, 1000000, 2)")), "bad-syntax"),
        ("npz-short-data", zipped("locs.npy", claiming("(2, 6, 2)")), "bad-syntax"),
        ("npz-pickle", packed(locs=np.array([{}, []], dtype=object)), "bad-syntax"),
        ("npz-words", packed(speed=np.array([["fast"], ["slow"]])), "wrong-type"),
        ("npz-no-locs", packed(locs=None), "missing-field"),
        ("npz-no-demand-no-capacity", packed(demand_linehaul=None, vehicle_capacity=None), "missing-field"),
        ("npz-unknown-array", packed(prize=np.ones((2, 5))), "unknown-field"),
        ("npz-no-depot", packed(demand_linehaul=np.ones((2, 6))), "no-depot"),
        ("npz-depots-miscounted", packed(num_depots=np.full((2, 1), 2)), "wrong-count"),
        ("npz-flat-locs", packed(locs=np.ones((2, 12))), "wrong-shape"),
        ("npz-window-shape", packed(time_windows=np.ones((2, 5, 2))), "wrong-shape"),
        ("npz-no-problems", packed(**{key: value[:0] for key, value in arrays.items()}), "no-customer"),
        ("npz-speed", packed(speed=np.full((2, 1), 2.0)), "unsupported-feature"),
        ("npz-service-at-depot", packed(service_time=np.ones((2, 6))), "unsupported-feature"),
        ("npz-backhaul-class", packed(backhaul_class=np.full((2, 1), 3)), "unknown-value"),
        ("npz-backhaul-unclassed", packed(demand_backhaul=np.eye(2, 5), demand_linehaul=np.zeros((2, 5))),
         "backhaul-rule-missing"),
        ("npz-open-nan", packed(open_route=np.full((2, 1), np.nan)), "unknown-value"),
        ("npz-array-twice", doubled(good), "duplicate-section"),
        ("npz-nan", packed(locs=nan), "not-finite"),
        ("npz-demand-above-capacity", packed(demand_linehaul=np.full((2, 5), 2.0)), "demand-above-capacity"),
        ("npz-limit", packed(distance_limit=np.full((2, 1), 0.1)), "limit-too-short"),
    ):  # fmt: skip
        yield Case(f"{name}.npz", content, frozenset([codes]))
