"""Solomon's format for one depot with time windows; Homberger's larger files share it.

The file does not say how distances are rounded: they are exact unless the caller says otherwise. Its number
of vehicles is a limit, which is none at all where there are as many vehicles as customers.
"""

import re

import numpy as np

from chainroute.errors import Place, fail
from chainroute.formats.common import Faults, Lines, build, lines_of, plain, title
from chainroute.problem import Problem
from chainroute.problem.budget import MAX_LOCATIONS
from chainroute.problem.features import require
from chainroute.problem.measure import Rounding
from chainroute.runtime.files import encode

HOLDS = {"time windows", "service times", "a fleet size"}

COLUMNS = ("CUST NO.", "XCOORD.", "YCOORD.", "DEMAND", "READY TIME", "DUE DATE", "SERVICE TIME")


def recognises(lines: list[str]) -> bool:
    """Whether the line VEHICLE comes first, or after a name."""
    return "VEHICLE" in [line.strip().upper() for line in lines[:10]]


def read(text: str, name: str, rounding: Rounding | None) -> Problem:
    faults = Faults()
    lines = lines_of(text)
    vehicle = next(i for i, (_, words) in enumerate(lines) if [w.upper() for w in words] == ["VEHICLE"])
    if vehicle > 1:
        faults.add("bad-syntax", "stands between the name and VEHICLE.", f"line {lines[1][0]}")
    if vehicle:
        name = " ".join(lines[0][1])
    fleet, capacity = _vehicles(lines[vehicle + 1 :], faults)
    numbers, rows = _customers(lines[vehicle + 1 :], faults)
    faults.stop()
    table = np.array(rows)
    if table[0, [3, 6]].any():
        raise fail("unsupported-feature", "a depot has a demand or service time.", f"line {numbers[0]}")

    def spot(place: Place) -> str:
        if place.location is not None:
            return f"line {numbers[place.location]}"
        return {"fleet": "VEHICLE NUMBER", "capacity": "VEHICLE CAPACITY"}.get(place.field, place.field)

    return build(
        spot,
        name=name,
        coords=table[:, 1:3],
        capacity=capacity,
        delivery=table[1:, 3],
        time_windows=table[:, 4:6],
        service=table[1:, 6],
        fleet=fleet if fleet is not None and fleet < len(table) - 1 else None,
        rounding=rounding or Rounding.EXACT,
    )


def _vehicles(lines: Lines, faults: Faults) -> tuple[int | None, float]:
    """The line of two numbers below NUMBER CAPACITY."""
    if len(lines) < 2 or [w.upper() for w in lines[0][1]] != ["NUMBER", "CAPACITY"] or len(lines[1][1]) != 2:
        faults.add("bad-syntax", "NUMBER CAPACITY and a line of two numbers must follow.", "VEHICLE")
        faults.stop()
    number, words = lines[1]
    return faults.whole(words[0], f"line {number}"), faults.number(words[1], f"line {number}")


def _customers(lines: Lines, faults: Faults) -> tuple[list[int], list[list[float]]]:
    """The rows below CUSTOMER, which count up from 0, with the number of each line."""
    start = next((i for i, (_, words) in enumerate(lines) if words[0].upper() == "CUSTOMER"), None)
    if start is None:
        raise fail("missing-section", "there is no such section.", "CUSTOMER")
    body = [(number, words) for number, words in lines[start + 1 :] if words[0].upper() != "CUST"]
    if not body:
        raise fail("no-depot", "has no rows.", "CUSTOMER")
    if len(body) > MAX_LOCATIONS:
        raise fail("too-large", f"{len(body)} locations; at most {MAX_LOCATIONS}.", "CUSTOMER")
    rows = []
    for i, (number, words) in enumerate(body):
        where = f"line {number}"
        if len(words) != len(COLUMNS):
            faults.add("bad-syntax", f"has {len(words)} entries, not {len(COLUMNS)}.", where)
            continue
        rows.append(faults.numbers(words, where))
        if rows[-1][0] != i:
            faults.add("bad-syntax", f"customer {words[0]} stands where {i} is due.", where)
    return [number for number, _ in body], rows


def write(problem: Problem) -> bytes:
    require(problem, "Solomon's format", HOLDS)
    p = problem
    assert p.coords is not None  # `require` has seen to it
    if not re.fullmatch(r"\w\S*( \S+)*", title(p.name, "Solomon's format")) or p.name.upper() == "VEHICLE":
        raise fail("cannot-express", f"Solomon's format cannot hold the name {p.name!r}.", "name")
    rows = zip(p.coords.tolist(), p.deliveries, p.windows.tolist(), p.services, strict=True)
    lines = [
        p.name,
        "",
        "VEHICLE",
        "NUMBER     CAPACITY",
        f"{p.fleet or p.num_customers:>5} {plain(p.capacity):>12}",
        "",
        "CUSTOMER",
        "  ".join(COLUMNS),
        "",
        *(
            " ".join(f"{plain(value):>9}" for value in (i, *place, demand, *window, service))
            for i, (place, demand, window, service) in enumerate(rows)
        ),
    ]
    return encode("\n".join(lines) + "\n")
