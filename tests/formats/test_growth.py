"""Reading takes no more than n log n: each cell, line and section of each format is made long.

Mutations by chance find none of this: what grows with the square of a cell is seen where the cell is long.
Processor time is compared with that for a quarter of the length: a busy machine changes nothing.
"""

import io
import re
import signal
import time
import tracemalloc
from contextlib import contextmanager, suppress
from zipfile import ZIP_DEFLATED, ZipFile

import pytest
from where import DATA, EXAMPLES

from chainroute import ChainRouteError, Problem
from chainroute.formats import companions, json, parse_one, parse_solution, read
from chainroute.formats.tables import stops
from chainroute.formats.tables.grids import Sheet, write_workbook

LONG = 40_000  # characters of a cell
FEW = 0.05  # seconds of processor time below which nothing is said of growth
MOST = 10.0  # seconds after which reading is ended
RATIO = 9.0  # for four times the length: n log n takes 4.6 times as long, n squared 16 times
FILLINGS = (" ", "_", "-", "1", "a", "(", ",", ":", "'", ".", "\t", "1-", "1 ", "a ", "and ", "\u0301\u0323")

TABLE = b"""kind,name,x (km),y (km),delivery,opens,closes,windows,service (min),skills,prize,a_b
depot,D,0,0,,06:00,20:00,,,,,
stop,A,1,2,3,08:00,,"09:00-10:00, 11:00-12:00",5,"lift, ice",7,1
stop,B,2,1,3,,12:00,,5,,,1

name,count,capacity,speed (km/h),depot,cost per km,shift start,trips,reload depots,skills
van,1,9,50,D,1,05:00,2,D,"lift, ice"
bike,2,9,20,,1,,,,

distances of van,D,A,B
D,0,1,2
A,1,0,2
B,2,2,0

setting,value
name,day
"""
ROUTES = b"route,vehicle,position,name\n1,van,1,depot\n1,van,2,A\n1,van,3,depot\n"
NAMED = Problem(capacity=9, delivery=[1, 1], coords=[(0, 0), (1, 1), (2, 2)], names=["depot", "A", "B"])
HEADED = b"Instance Name : x\nAuthors : a\nDate : 1\nSolution\nRoute 1 : 1 2\nTime 3\nCost 5\n"


def problems():
    """Every kind of file with a problem, each small."""
    files = [
        f for f in (*sorted(DATA.iterdir()), EXAMPLES / "ferry.json") if f.suffix not in (".sol", ".res")
    ]
    found = {"a table of everything": TABLE}
    for file in files:
        with suppress(ChainRouteError):
            read(file)
            if not companions(file):
                found[file.name] = file.read_bytes()[:6000] if file.suffix == ".csv" else file.read_bytes()
    return {name: data for name, data in found.items() if len(data) < 20_000}


def solutions():
    """Every kind of file with routes."""
    sol = b"Route #1: 1 2\nCost 5\nTime 3\n# Depots: 0\n"
    json = b'{"cost": 5, "routes": [{"depot": "depot", "vehicle": "van", "customers": ["A", "B"]}]}'
    return {
        "sol": sol,
        "headed": HEADED,
        "routes": ROUTES,
        "json": json,
        "res": b"5\n1 1 5 2 0 (0) 1 (1) 2 (2) 0\n",
    }


class TooLong(Exception):
    pass


@contextmanager
def bounded():
    def end(*_):
        raise TooLong

    before = signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, MOST)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def seconds(read, data, times=1):
    """Returns the least processor time of several readings; errors of the reader count as readings."""
    least = MOST
    for _ in range(times):
        begin = time.process_time()
        with bounded(), suppress(ChainRouteError):
            read(data)
        least = min(least, time.process_time() - begin)
    return least


def grows(read, make, size):
    """How many times longer reading takes for `size` than for a quarter of it, if it is more than allowed."""
    try:
        if seconds(read, make(size)) < FEW:
            return None
        quarter, whole = seconds(read, make(size // 4), 3), seconds(read, make(size), 2)
    except TooLong:
        return f"more than {MOST:g} s"
    ratio = whole / max(quarter, FEW / 8)
    return f"{ratio:.1f} times as long, {whole:.2f} s" if ratio > RATIO else None


def problem(data):
    parse_one(data, "x")


def routes(data):
    parse_solution(data, NAMED, "x")


@pytest.fixture(autouse=True)
def _no_square_matrix(monkeypatch):
    """A speed makes a matrix of durations, which grows with the square of the stops, as it must."""
    for module in (stops, json):
        monkeypatch.setattr(module, "durations_at", lambda *_: None)


JUDGED = [(routes, *item) for item in solutions().items()]
CASES = [(problem, *item) for item in problems().items()] + JUDGED


def spots(data, most):
    """Where cells begin and end: some of each kind of line, evenly."""
    found = [m.span() for m in re.finditer(rb'[^\s,;:"{}\[\]]+', data)]
    return found[:: max(1, len(found) // most)][:most]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("read", "name", "data"), CASES, ids=[name for _, name, _ in CASES])
def test_a_long_cell(read, name, data, request):
    thorough = request.config.getoption("hypothesis_profile") == "thorough"
    found = []
    for number, (begin, end) in enumerate(spots(data, 60 if thorough else 6)):
        for k, filling in enumerate(FILLINGS):
            if not thorough and (k + number) % 4:
                continue

            def make(size, begin=begin, end=end, filling=filling):
                text = (filling * size)[:size].encode()
                return data[:begin] + data[begin:end] + text + b"!" + data[end:]

            if what := grows(read, make, LONG):
                found.append((data[begin:end], filling, what))
    assert found == []


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("read", "name", "data"), CASES, ids=[name for _, name, _ in CASES])
def test_a_line_or_a_section_many_times(read, name, data, request):
    """Also each time with another name, so that no two are alike."""
    thorough = request.config.getoption("hypothesis_profile") == "thorough"
    lines = data.splitlines(keepends=True)
    found = []
    for first in range(0, len(lines), 1 if thorough else max(1, len(lines) // 4)):
        for height in (1, 3):
            for renamed in (False, True):

                def make(size, first=first, height=height, renamed=renamed):
                    block = b"".join(lines[first : first + height])
                    copies = [re.sub(rb"[\w]+", rb"\g<0>%d" % i, block, count=2) for i in range(size)]
                    many = b"".join(copies) if renamed else block * size
                    return b"".join(lines[:first]) + many + b"".join(lines[first + height :])

                if what := grows(read, make, 800):
                    found.append((lines[first], height, renamed, what))
    assert found == []


def test_many_places_in_a_table_of_vehicles_and_many_depots():
    """Each is looked up, not searched for."""
    depots = "".join(f"depot,d{i},{i},0\n" for i in range(4000))
    stops_ = "".join(f"stop,s{i},{i},1\n" for i in range(4000))
    vans = "".join(f"v{i},1,9,d{i % 4000}\n" for i in range(900))
    text = f"kind,name,x,y\n{depots}{stops_}\nname,count,capacity,depot\n{vans}"
    assert seconds(problem, text.encode()) < 3


# -- workbooks, which are bombs of a few kilobytes

SHEET = "xl/worksheets/sheet1.xml"
HEAD = b'<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">%s<sheetData>%s'
TEXT = '<c r="{}1" t="inlineStr"><is><t>{}</t></is></c>'
FIRST = ('<row r="1">' + "".join(map(TEXT.format, "ABC", ("name", "x", "y"))) + "</row>").encode()
STYLES = b'<styleSheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><cellXfs>'
BOMBS = {
    "a claimed size": {
        SHEET: HEAD % (b'<dimension ref="A1:XFD1048576"/>', FIRST) + b'<row r="1048576"><c><v>1</v></c></row>'
    },
    "wide empty rows": {
        SHEET: HEAD
        % (b"", FIRST + b"".join(b'<row r="%d"><c r="XFD%d"/></row>' % (i, i) for i in range(2, 20_000)))
    },
    "rows of any number": {SHEET: HEAD % (b"", FIRST) + b'<row r="99999999999999"><c><v>1</v></c></row>'},
    "elements": {SHEET: HEAD % (b"", FIRST) + b"<a/>" * 3_000_000},
    "rows in rows": {SHEET: HEAD % (b"", FIRST) + b"<row>" * 3_000_000},
    "attributes": {
        SHEET: HEAD % (b"", FIRST) + b"<row %s/>" % b" ".join(b'a%d=""' % i for i in range(300_000))
    },
    "a comment": {SHEET: HEAD % (b"", FIRST) + b"<!--" + b"x" * 30_000_000 + b"-->"},
    "a comment of tags": {SHEET: HEAD % (b"", FIRST) + b"<!--" + b"<x>" * 3_000_000 + b"-->"},
    "one large cell": {SHEET: HEAD % (b"", b'<row r="1"><c t="inlineStr"><is><t>') + b"a" * 30_000_000},
    "styles": {"xl/styles.xml": STYLES + b"<xf/>" * 3_000_000},
    "texts": {"xl/sharedStrings.xml": b"<sst>" + b"<si><t/></si>" * 1_000_000},
    "entities": {SHEET: b'<!DOCTYPE x [<!ENTITY e "aaaa">]>' + HEAD % (b"", FIRST)},
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_workbook_is_looked_at_before_it_is_unfolded(bomb):
    sound = write_workbook([Sheet([["name", "x", "y"], ["depot", 0, 0], ["a", 1, 1]], "stops")])
    data = io.BytesIO()
    with ZipFile(io.BytesIO(sound)) as old, ZipFile(data, "w", ZIP_DEFLATED) as new:
        for name in {*old.namelist(), *BOMBS[bomb]}:
            new.writestr(name, BOMBS[bomb].get(name) or old.read(name))
    tracemalloc.start()
    with bounded(), pytest.raises(ChainRouteError) as caught:
        problem(data.getvalue())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert caught.value.faults[0].code in ("too-large", "bad-syntax")
    assert peak < 300e6
