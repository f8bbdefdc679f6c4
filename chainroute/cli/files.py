"""Files for the verbs: all are read, and all places to write to are looked at, before any work begins."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

from chainroute.cli import show
from chainroute.cli.app import Reading
from chainroute.errors import ChainRouteError, Fault, coded, fail, printable
from chainroute.formats import (
    SOLUTION_FORMATS,
    companions,
    read,
    read_many,
    read_solution,
    require_expressible,
    write,
)
from chainroute.formats.common import Roads, noted
from chainroute.formats.road_server import PROFILES, RoadServer
from chainroute.plan.solution import Solution
from chainroute.problem import Problem
from chainroute.problem.measure import FloatArray, Rounding
from chainroute.runtime.files import STDIN, folder, paths, tidy
from chainroute.runtime.progress import StatusLine
from chainroute.runtime.spread import on_all_cores

T = TypeVar("T")

MANY = 512  # files from which on all cores read them, and problems from which on all cores tell of theirs


def together(*steps: Callable[[], Any]) -> list[Any]:
    """The results of all steps, or the faults of all."""
    results: list[Any] = []
    faults: list[Fault] = []
    for step in steps:
        try:
            results.append(step())
        except ChainRouteError as error:
            faults += error.faults
    if faults:
        raise ChainRouteError(faults)
    return results


# -- reading


class ReadFile(NamedTuple):
    """What was in a file, or what is wrong with it."""

    problems: list[Problem] | ChainRouteError  # of the share that was asked for
    others: int  # problems, of other shares
    files: list[Path]  # that were read for it
    notes: list[str]  # on what is no fault


class ProblemReader:
    """Reads problems by the options that the user gave; what is wrong with these is found first."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        asked = Reading(**given)
        self.index, self.vehicles, self.drops = asked.index, asked.vehicles, asked.drop_impossible
        self.rounding: Rounding | None
        self.server: RoadServer | None
        self.rounding, self.server = together(
            partial(_rounding, asked.rounding), partial(_road_server, asked.roads, asked.roads_url)
        )

    def problems(self, file: Path) -> list[Problem]:
        """All problems of the file, or the one at the index."""
        with _telling():
            return self._problems(file)

    def problem(self, file: Path) -> Problem:
        """The only problem of the file, or the one at the index."""
        with _telling():
            return self._problem(file)

    def all_of(self, files: Sequence[Path], is_ours: Callable[[str], bool]) -> list[ReadFile]:
        """What each of the files has for a share; many are read on all cores, but for what only this process
        sees."""
        calls = [(self, file, is_ours) for file in files]
        if len(files) < MANY or self.server or not all(str(f) != STDIN and os.path.isfile(f) for f in files):
            found = [ProblemReader.read(*call) for call in calls]
        else:
            found = [one for _, one in on_all_cores(ProblemReader.read, calls, _lost)]
        for one in found:
            _tell(one.notes if one.problems else ())
        return found

    def read(self, file: Path, is_ours: Callable[[str], bool]) -> ReadFile:
        """What a file has for a share, of which nothing is told yet."""
        with noted() as notes:
            try:
                every = self._problems(file)
            except Exception as error:
                return ReadFile(coded(error, file), 0, self.companions(file), notes)
        ours = [problem for problem in every if is_ours(problem.name)]
        return ReadFile(ours, len(every) - len(ours), self.companions(file), notes)

    def companions(self, file: Path) -> list[Path]:
        """The file and those that are read with it."""
        return [file, *companions(file, self.vehicles).values()]

    def _problems(self, file: Path) -> list[Problem]:
        if self.index is not None:
            return [self._problem(file)]
        return _located(
            lambda path: read_many(path, self.rounding, _roads(self.server), self.vehicles, self.drops), file
        )

    def _problem(self, file: Path) -> Problem:
        return _located(
            lambda path: read(
                path, self.rounding, self.index, _roads(self.server), self.vehicles, self.drops
            ),
            file,
        )


def _lost(call: tuple[Any, ...], death: ChainRouteError) -> ReadFile:
    """What stands for a file that a process died of."""
    reader, file, _ = call
    error = ChainRouteError(fault.moved(file=str(file)) for fault in death.faults)
    return ReadFile(error, 0, reader.companions(file), [])


@contextmanager
def _telling() -> Iterator[None]:
    """Tells the notes on a file that is read meanwhile; of one with faults these alone are told."""
    with noted() as notes:
        yield
    _tell(notes)


def _tell(notes: Sequence[str]) -> None:
    for note in notes:
        print(f"Note: {printable(note)}", file=sys.stderr)


def _road_server(kind: str | None, url: str | None) -> RoadServer | None:
    """The server that the options name: a kind, or a kind and a profile."""
    if kind is None:
        if url is not None:
            raise fail("bad-option", f"needs --roads: one of {', '.join(PROFILES)}.", "--roads-url")
        return None
    if url is None:
        raise fail("bad-option", "needs --roads-url, the address of the server.", "--roads")
    name, _, profile = kind.partition(":")
    return RoadServer(name, url, profile)


def _roads(server: RoadServer | None) -> Roads | None:
    """Distances and durations of the server, with a line on how far it is."""
    if server is None:
        return None

    def measured(coords: FloatArray) -> tuple[FloatArray, FloatArray]:
        progress = StatusLine()

        def told(known: int, every: int) -> None:
            if known < every or progress.open:
                progress.line(f"roads: {known:,} of {every:,} pairs known")

        try:
            return server.matrices(coords, told)
        finally:
            progress.end()

    return measured


def solution(file: Path, problem: Problem) -> Solution:
    return _located(lambda path: read_solution(path, problem), file)


def _rounding(name: str | None) -> Rounding | None:
    try:
        return None if name is None else Rounding(name)
    except ValueError:
        raise fail("unknown-value", f"'{name}' is not one of {', '.join(Rounding)}.", "--rounding") from None


def _located(load: Callable[[Path], T], file: Path) -> T:
    """What is in the file; its faults say which file they are in."""
    try:
        return load(file)
    except ChainRouteError as error:
        raise ChainRouteError(_in_file(fault, str(file)) for fault in error.faults) from None


def _in_file(fault: Fault, file: str) -> Fault:
    inner = fault.at.file
    if fault.code == "bad-option" and fault.at.field in ("index", "rounding"):  # how it is to be read
        fault = fault.moved(field=f"--{fault.at.field}")
    return fault if inner == file else fault.moved(file=f"{file}: {inner}" if inner else file)


# -- writing


def outputs(pattern: str | None, problems: Sequence[Problem], keep: Sequence[Path]) -> Sequence[Path | None]:
    """Where the routes of each problem go; never over an input."""
    endings = [f".{format}" for format in SOLUTION_FORMATS]
    if pattern is None:
        return [None] * len(problems)
    names = [problem.name for problem in problems]

    def expressible() -> None:
        for problem in problems:
            require_expressible(problem, pattern)

    found, _ = together(partial(paths, pattern, names, "--output", endings, keep), expressible)
    tidy({path.parent for path in found})
    return cast(list[Path], found)


def plots(pattern: str | None, problems: Sequence[Problem], keep: Sequence[Path]) -> Sequence[Path | None]:
    """Where the picture of each problem goes; never over an input."""
    from chainroute.formats.plot import SUFFIXES, require

    if pattern is None:
        return [None] * len(problems)
    names = [problem.name for problem in problems]
    found, _ = together(partial(paths, pattern, names, "--plot", SUFFIXES, keep), require)
    tidy({path.parent for path in found})
    return cast(list[Path], found)


def write_all(
    groups: Mapping[str, Sequence[Problem]],
    target: str,
    format: str | None,
    option: str,
    keep: Sequence[Path] = (),
) -> None:
    """Writes a folder of JSON files or, as the ending says, one .npz per group or one file per problem; never
    over an input."""
    where = target
    if target == STDIN:
        message = "stands for standard input; problems are written to files."
        raise fail("bad-option", f"'{target}' {message}", option, "Name a file or a folder.")
    if format is None and (os.path.isdir(target) or not Path(target).suffix):
        folder(Path(target))
        target = str(Path(target) / "{name}.json")
    batches: list[Any] = list(groups.values())
    names = list(groups)
    if (format or Path(target).suffix.lower().removeprefix(".")) != "npz":
        batches = list(chain(*batches))
        names = [problem.name for problem in batches]
    places = paths(target, names, option, keep=keep)
    tidy({place.parent for place in places})
    faults: list[Fault] = []
    count = 0
    for i, (batch, path) in enumerate(zip(batches, places, strict=True), 1):
        try:
            with show.working(f"{i}/{len(places)} {path}"):
                write(batch, path, format)
            count += 1 if isinstance(batch, Problem) else len(batch)
        except ChainRouteError as error:
            faults += error.faults
    if count or not faults:
        print(f"Wrote {count} problem{'s' * (count != 1)} to {where}")
    if faults:
        raise ChainRouteError(faults)
