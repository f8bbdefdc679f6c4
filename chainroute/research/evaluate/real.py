"""Instances from libraries, each set in its own convention, with the best known costs.

The files are read from a folder (one folder per set, with a `bks.csv` of instance, customers and best known
cost), or from the same files packed into one (`pack`), which travels to machines that have no library.
"""

from __future__ import annotations

import csv
import io
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from chainroute.errors import ChainRouteError, Fault, fail
from chainroute.formats import read
from chainroute.plan.solution import Solution
from chainroute.problem import Problem
from chainroute.problem.measure import Rounding
from chainroute.research.evaluate.tasks import Task
from chainroute.runtime.files import decode, identity, load, save

BEST_KNOWN = "bks.csv"


@dataclass(frozen=True)
class Library:
    folder: str
    ending: str  # of the instances
    rounding: Rounding | None  # where the files do not say it
    slack: float  # by which a cost may be below the best known, which is given to some decimals
    about: str
    full_fleet: bool = False  # the best known costs are of plans in which every vehicle makes a delivery


LIBRARIES = {
    "X": Library("X", ".vrp", None, 1e-6, "CVRP, Uchoa et al."),
    "solomon": Library("solomon", ".txt", Rounding.TRUNC1, 1e-6, "VRPTW, Solomon"),
    "homberger600": Library("homberger600", ".txt", Rounding.TRUNC1, 1e-6, "VRPTW, Gehring and Homberger"),
    "mdvrp": Library("mdvrp", ".txt", None, 0.01, "several depots, Cordeau et al."),
    "cmt": Library("cmt", ".vrp", Rounding.EXACT, 0.01, "CVRP and VRPL, Christofides et al."),
    "vrpb": Library("vrpb/gj", ".vrpb", None, 0.01, "VRPB, Goetschalckx and Jacobs-Blecha", full_fleet=True),
    "vrpmpd": Library("vrpb/vrpmpd", ".vrpmpd", None, 0.01, "VRPMB, Salhi and Nagy"),
}


def tasks(data: Path | None, only: Sequence[str] = (), limit: int | None = None) -> list[Task]:
    """One task per set, the smallest instances first; all sets, or those named. None may be missing."""
    names = [name for name in LIBRARIES if not only or name.upper() in {o.upper() for o in only}]
    if not names:
        return []
    if data is None:
        message = "instances from libraries are not part of the package; say where they are."
        raise fail("data-missing", message, "data")
    folder = _unpacked(data) if data.is_file() else data
    missing = [name for name in names if not (folder / LIBRARIES[name].folder / BEST_KNOWN).is_file()]
    if missing:
        raise ChainRouteError(
            Fault("data-missing", f"there is no {LIBRARIES[name].folder}/{BEST_KNOWN} in it.", str(data))
            for name in missing
        )
    return [_task(name, folder, limit) for name in names]


def _task(name: str, folder: Path, limit: int | None) -> Task:
    library = LIBRARIES[name]
    page = folder / library.folder / BEST_KNOWN
    rows = list(csv.DictReader(io.StringIO(decode(load(page), str(page)))))
    try:
        rows.sort(key=lambda row: (int(row["customers"]), row["instance"]))
        best = tuple(float(row["bks"]) for row in rows)
    except (KeyError, ValueError, TypeError) as error:
        message = f"needs the columns instance, customers and bks: {error}."
        raise fail("bad-syntax", message, str(page)) from None
    instances = tuple(row["instance"] for row in rows)

    def problem(i: int) -> Problem:
        path = folder / library.folder / f"{instances[i]}{library.ending}"
        if not path.is_file():
            raise fail("data-missing", f"there is no {path.name} in it.", str(path.parent))
        return read(path, library.rounding)

    count = len(rows) if limit is None else min(limit, len(rows))
    task = Task(name, count, problem, instances[:count], best[:count])
    return replace(task, comparable=_full_fleet) if library.full_fleet else task


def _full_fleet(solution: Solution) -> bool:
    """Whether every vehicle leaves, and delivers something."""
    problem = solution.problem
    delivering = [r for r in solution.routes if any(problem.deliveries[v] > 0 for v in r.visits)]
    return len(delivering) == len([r for r in solution.routes if r.visits]) == problem.fleet


# -- packed


def pack(data: Path, target: Path) -> int:
    """Writes the instances of all sets in the folder, and their best known costs, to one file; how many."""
    tasks(data)  # complains where something is missing
    folders = [data / library.folder for library in LIBRARIES.values()]
    endings = [library.ending for library in LIBRARIES.values()]
    instances = [p for at, end in zip(folders, endings, strict=True) for p in sorted(at.glob(f"*{end}"))]
    inputs = [*(folder / BEST_KNOWN for folder in folders), *instances]
    if identity(target) in map(identity, inputs):
        raise fail("bad-option", "would write over one of the files to pack.", target, "Choose another.")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path in inputs:
            archive.write(path, path.relative_to(data))
    save(target, buffer.getvalue())
    return len(instances)


@cache
def _unpacked(path: Path) -> Path:
    """A folder, for as long as the process lives, with what is in the packed file."""
    folder = tempfile.TemporaryDirectory(prefix="chainroute-")
    _kept.append(folder)
    try:
        with zipfile.ZipFile(io.BytesIO(load(path))) as archive:
            archive.extractall(folder.name)
    except zipfile.BadZipFile as error:
        raise fail("bad-syntax", f"is neither a folder nor a packed one: {error}.", str(path)) from None
    return Path(folder.name)


_kept: list[tempfile.TemporaryDirectory[str]] = []
