"""Files of problems and solutions, in the formats of the field and in our own.

What a file is follows from its content, never from its name; what is written follows from the ending of its
name, or is said. docs/formats.md has the formats, what each can hold, and their conventions.
"""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path

from chainroute.errors import USE_LISTED, ChainRouteError, Place, fail
from chainroute.formats import cordeau, foreign, geojson, npz, sol, solomon, vrplib
from chainroute.formats.common import Roads, dropping_impossible, noted_of
from chainroute.formats.geojson import RoadLines
from chainroute.formats.tables import grids, headings, stops, writer
from chainroute.formats.tables import routes as route_tables
from chainroute.plan.solution import Solution
from chainroute.problem import Problem
from chainroute.problem.measure import Rounding
from chainroute.runtime.files import MAX_BYTES, STDIN, PathLike, decode, load, save

ASKED = "the vehicles asked for"  # among companions: these must be made use of
FORMATS = ("vrplib", "lkh", "solomon", "cordeau", "json", "npz", "csv", "xlsx")
READABLE_SOLUTIONS = ("sol", "res", "json", "csv", "xlsx")
SOLUTION_FORMATS = (*READABLE_SOLUTIONS, "geojson", "html")

_SUFFIXES = {
    ".vrp": "vrplib",
    ".vrpb": "lkh",
    ".vrpmpd": "lkh",
    ".json": "json",
    ".npz": "npz",
    ".csv": "csv",
    ".xlsx": "xlsx",
}


def read(
    path: PathLike,
    rounding: Rounding | None = None,
    index: int | None = None,
    roads: Roads | None = None,
    vehicles: PathLike | None = None,
    drop_impossible: bool = False,
) -> Problem:
    """The problem in a file, of several that at `index`. A given rounding goes before that of the file; roads
    (`chainroute.road_server`) are measured in place of straight lines; `vehicles` is the file of a table that
    goes with one of stops. With `drop_impossible`, customers that no vehicle can serve may be left out."""
    beside = companions(path, vehicles)
    with noted_of(path), dropping_impossible(drop_impossible):
        return parse_one(load(path), _title(path), rounding, str(path), index, beside, roads)


def read_many(
    path: PathLike,
    rounding: Rounding | None = None,
    roads: Roads | None = None,
    vehicles: PathLike | None = None,
    drop_impossible: bool = False,
) -> list[Problem]:
    """All problems in a file."""
    with noted_of(path), dropping_impossible(drop_impossible):
        return parse(load(path), _title(path), rounding, str(path), companions(path, vehicles), roads)


def companions(path: PathLike, vehicles: PathLike | None = None) -> dict[str, Path]:
    """The files that belong to a table of stops, by what each holds: `vehicles.csv` lies beside a CSV called
    `stops.csv`, `monday-vehicles.csv` beside `monday-stops.csv`. `vehicles` that are named are asked for."""
    path = Path(path)
    found: dict[str, Path] = {} if vehicles is None else {ASKED: Path(vehicles)}
    if path.suffix.lower() not in (".csv", ".tsv"):
        return found
    for kind in headings.COMPANIONS:
        names = [re.sub("stops", kind, path.name, flags=re.IGNORECASE)]
        names += [f"{kind}{path.suffix}"] if kind in headings.SHARED else []
        beside = (path.with_name(name) for name in names if name != path.name)
        if kind == "vehicles" and vehicles is not None:
            continue
        if file := next((file for file in beside if file.is_file()), None):
            found[kind] = file
    return found


def parse(
    data: bytes,
    name: str,
    rounding: Rounding | None = None,
    where: str = "",
    beside: Mapping[str, PathLike] | None = None,
    roads: Roads | None = None,
) -> list[Problem]:
    """All problems in the content of a file, which errors call `where`; `name` is for those without one.
    Files `beside` it hold the tables that a CSV of stops lacks."""
    foreign.refuse(data, where or name)
    if grids.is_workbook(data):
        sheets = _joined(grids.read_workbook(data, where or name), beside or {})
        return [stops.read(sheets, name, rounding, roads)]
    if npz.recognises(data):
        _refuse(roads, beside)
        return npz.read(data, name, rounding)
    text = _text(data, where or name)
    return [_problem_reader(text, where or name, beside or {}, roads)(text, name, rounding)]


def parse_one(
    data: bytes,
    name: str,
    rounding: Rounding | None = None,
    where: str = "",
    index: int | None = None,
    beside: Mapping[str, PathLike] | None = None,
    roads: Roads | None = None,
) -> Problem:
    """The problem in the content of a file, of several that at `index`; the others are not unpacked."""
    foreign.refuse(data, where or name)
    count = npz.count(data, name) if npz.recognises(data) and not grids.is_workbook(data) else 1
    if index is None and count > 1:
        message = f"'{where or name}' holds {count} problems; give the index of one, 0 to {count - 1}."
        raise fail("bad-option", message, "index", "Say which one.")
    if index is not None and not 0 <= index < max(count, 1):
        message = f"there is no problem {index}; the file holds {count}, counted from 0."
        raise fail("bad-option", message, "index")
    if count > 1:
        _refuse(roads, beside)
        return npz.read(data, name, rounding, index)[0]
    return parse(data, name, rounding, where, beside, roads)[0]


def read_solution(path: PathLike, problem: Problem) -> Solution:
    """Routes for the problem; whether they are feasible is for `check` to say."""
    return parse_solution(load(path), problem, str(path))


def parse_solution(data: bytes, problem: Problem, where: str) -> Solution:
    """The same from the content of a file, which errors call `where`."""
    foreign.refuse(data, where)
    if grids.is_workbook(data):
        return route_tables.read(grids.read_workbook(data, where), problem)
    text = _text(data, where)
    return _solution_reader(text, where)(text, problem)


def write(problem: Problem | Sequence[Problem], path: PathLike, format: str | None = None) -> None:
    """A problem, or for an .npz several, in the format named or that of the path's ending."""
    problems = [problem] if isinstance(problem, Problem) else list(problem)
    format = format or _format(Path(path).suffix.lower(), problems)
    if format not in FORMATS:
        raise fail("bad-option", f"'{format}' is not one of {', '.join(FORMATS)}.", "format", USE_LISTED)
    if format == "npz":
        _save(path, npz.write(problems))
    elif len(problems) == 1:
        _save(path, _problem_writer(format)(problems[0]))
    else:
        raise fail(
            "cannot-express", f"a file of this format holds one problem, not {len(problems)}.", Path(path)
        )


def _save(path: PathLike, data: bytes) -> None:
    """Writes a problem that can be read again."""
    if len(data) > MAX_BYTES:
        message = f"would have {len(data) // 1_000_000} MB; up to {MAX_BYTES // 1_000_000} are read."
        raise fail("file-too-large", message, Path(path), "Write fewer customers, or no matrices.")
    save(path, data)


def require_expressible(problem: Problem, path: PathLike) -> None:
    """Raises what keeps solutions of the problem from being written there, whatever they are."""
    format = Path(path).suffix.lower().removeprefix(".")
    _require_plain_routes(problem, format)
    checks = {
        "res": cordeau.require_closed,
        "geojson": geojson.require_map,
        "csv": route_tables.require_readable,
        "xlsx": route_tables.require_readable,
    }
    if check := checks.get(format):
        check(problem)


def _require_plain_routes(problem: Problem, format: str) -> None:
    """Raises what a format whose routes are customers and nothing else cannot say of these."""
    beyond = [extra for extra in ("mixed fleet", "other end", "several trips") if extra in problem.extras]
    if format in ("sol", "res") and beyond:
        message = f"a .{format} cannot hold routes of a problem with: {', '.join(beyond)}."
        raise fail("cannot-express", message, problem.name)


def write_solution(
    solution: Solution, path: PathLike, format: str | None = None, lines: RoadLines | None = None
) -> None:
    """Writes the format named, or that of the path's ending. Lines along the roads go into a map."""
    format = format or Path(path).suffix.lower().removeprefix(".")
    if format not in SOLUTION_FORMATS:
        message = f"'{format}' is not one of {', '.join(SOLUTION_FORMATS)}."
        raise fail("bad-option", message, "format", USE_LISTED)
    _require_plain_routes(solution.problem, format)
    if format == "geojson":
        save(path, geojson.write(solution, lines))
    else:
        save(path, _solution_writer(format)(solution))


def _title(path: PathLike) -> str:
    """What a problem without a name is called."""
    stem = "stdin" if str(path) == STDIN else Path(path).stem
    return os.fsencode(stem).decode("utf-8", "backslashreplace")  # it may be no text


# -- which format


def _beginning(text: str) -> list[str]:
    """The first lines that are neither blank nor comments."""
    lines = (
        line for line in text[:100_000].splitlines() if line.strip() and not line.lstrip().startswith("#")
    )
    return list(islice(lines, 20)) or [""]


def _text(data: bytes, where: str) -> str:
    """The content as text: UTF-8 or, of a table or a solution, which may name its authors, one of the codes
    of Excel and Windows."""
    try:
        return decode(data, where)
    except ChainRouteError:
        for code in ["utf-16"] if data.startswith((b"\xff\xfe", b"\xfe\xff")) else ["cp1252"]:
            with suppress(UnicodeDecodeError):
                lines = _beginning(text := data.decode(code))
                if headings.delimiter_of(lines) or sol.recognises(lines):
                    return text
        raise


def _refuse(roads: Roads | None, beside: Mapping[str, PathLike] | None) -> None:
    """Raises that a format is no table, and without longitude and latitude has no place on the map."""
    _refuse_vehicles(beside)
    if roads is not None:
        message = "only JSON and tables have longitude and latitude, between which roads are measured."
        raise fail("bad-option", message, "--roads")


def _refuse_vehicles(beside: Mapping[str, PathLike] | None) -> None:
    if ASKED in (beside or {}):
        raise fail("bad-option", "goes with a table of stops, CSV or Excel.", "--vehicles")


def _joined(sheets: list[grids.Sheet], beside: Mapping[str, PathLike]) -> list[grids.Sheet]:
    """The sheets of a table of stops, and of the files beside it those that hold what it lacks."""
    there = {table.kind for table in headings.found(sheets)}
    if ASKED in beside and "vehicles" in there:
        raise fail("bad-option", "the file has a table of vehicles of its own.", "--vehicles")
    for kind, path in beside.items():
        if "stops" in there and kind not in there:
            sheets = [*sheets, *_beside(path, "vehicles" if kind == ASKED else kind)]
    return sheets


def _beside(path: PathLike, kind: str) -> list[grids.Sheet]:
    """The table of this kind in a file."""
    data, place = load(path), Path(path).name
    if not grids.is_workbook(data):
        foreign.refuse(data, place)
        return headings.csv_sheets(_text(data, place), kind, place)
    book = grids.read_workbook(data, place)
    found = {id(table.sheet): table.sheet for table in headings.found(book) if table.kind == kind}
    return [replace(sheet, place=f"{place}, {sheet.place}") for sheet in found.values()]


def _read_csv(
    beside: Mapping[str, PathLike],
    roads: Roads | None,
    text: str,
    name: str,
    rounding: Rounding | None,
) -> Problem:
    return stops.read(_joined(headings.csv_sheets(text), beside), name, rounding, roads)


def _problem_reader(
    text: str, path: str, beside: Mapping[str, PathLike], roads: Roads | None
) -> Callable[[str, str, Rounding | None], Problem]:
    lines = _beginning(text)
    if lines[0].lstrip()[:1] in ("{", "["):
        from chainroute.formats import json  # pydantic takes a while to import

        _refuse_vehicles(beside)
        return partial(json.read, roads=roads)
    reader = _benchmark_reader(lines)  # before tables, as their lines may have tabs
    if reader is not None:
        _refuse(roads, beside)
        return reader
    if headings.delimiter_of(lines):
        return partial(_read_csv, beside, roads)
    if sol.recognises(lines):
        raise fail("not-a-problem", "is a solution, not a problem.", Place(file=path))
    raise fail("unknown-format", foreign.of_text(lines[0]), Place(file=path))


def _benchmark_reader(lines: list[str]) -> Callable[[str, str, Rounding | None], Problem] | None:
    """The reader of the format in which benchmarks are kept, if it is one."""
    if solomon.recognises(lines):
        return solomon.read
    if vrplib.recognises(lines):
        return vrplib.read
    return cordeau.read if cordeau.recognises(lines) else None


def _solution_reader(text: str, path: str) -> Callable[[str, Problem], Solution]:
    lines = _beginning(text)
    if lines[0].lstrip()[:1] in ("{", "["):
        from chainroute.formats import json

        return json.read_solution
    if headings.delimiter_of(lines):
        return lambda text, problem: route_tables.read(headings.csv_sheets(text), problem)
    if sol.recognises(lines):
        return sol.read
    if cordeau.recognises_solution(lines):
        return cordeau.read_solution
    message = f"begins with '{lines[0].strip()[:40]}'; a .sol, .res, CSV, Excel or JSON solution is needed."
    raise fail("unknown-format", message, Place(file=path))


def _format(suffix: str, problems: Sequence[Problem]) -> str:
    if suffix == ".txt":  # shared by two formats; one of them is for time windows at one depot
        solomons = all(p.num_depots == 1 and p.time_windows is not None for p in problems)
        return "solomon" if solomons else "cordeau"
    return _SUFFIXES.get(suffix, suffix)


def _problem_writer(format: str) -> Callable[[Problem], bytes]:
    if format == "json":
        from chainroute.formats import json

        return json.write
    return {
        "vrplib": vrplib.write,
        "lkh": vrplib.write_lkh,
        "solomon": solomon.write,
        "cordeau": cordeau.write,
        "csv": writer.write,
        "xlsx": writer.write_excel,
    }[format]


def _solution_writer(format: str) -> Callable[[Solution], bytes]:
    if format == "json":
        from chainroute.formats import json

        return json.write_solution
    return {
        "sol": sol.write,
        "res": cordeau.write_solution,
        "csv": route_tables.write,
        "xlsx": route_tables.write_excel,
        "html": route_tables.write_pages,
    }[format]
