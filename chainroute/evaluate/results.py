"""Result files: what one solver reached on the tasks of one suite, instance by instance.

`NAME.json` is for readers: settings and one entry per task. `NAME.npz` has the cost of every instance.
Results under different rules, sizes or settings never share a file.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from chainroute.errors import ChainRouteError, Fault, fail
from chainroute.files import decode, load, save
from chainroute.measure import FloatArray

FORMAT = 1
LISTS = ("names", "best", "apart", "notes")  # what a task has beside numbers
NOTHING: FloatArray = np.zeros(0)


@dataclass(frozen=True)
class TaskResult:
    """One task: the first instances of a test set, or named instances of a library."""

    task: str
    costs: FloatArray = field(default_factory=lambda: NOTHING)  # (K,) NaN where there is no solution
    seconds: float = 0.0  # spent on solving, in all
    memory: int = 0  # bytes at most, on the device
    judged: int = 0  # solutions that the judge has seen
    refused: int = 0  # of these: those that break a rule of ours (possible under the published rules only)
    names: tuple[str, ...] = ()  # of instances from a library
    best: tuple[float, ...] = ()  # their best known costs
    apart: tuple[str, ...] = ()  # those solved by another convention than the best known cost is given in
    notes: tuple[str, ...] = ()  # why instances have no solution

    @property
    def count(self) -> int:
        return len(self.costs)

    @property
    def solved(self) -> int:
        return int(np.isfinite(self.costs).sum())

    @property
    def mean(self) -> float | None:
        """The mean cost; None unless every instance is solved."""
        return float(self.costs.mean()) if self.count and self.solved == self.count else None

    def __add__(self, other: TaskResult) -> TaskResult:
        """Followed by the next instances of the same task."""
        return TaskResult(
            task=self.task,
            costs=np.concatenate([self.costs, other.costs]),
            seconds=self.seconds + other.seconds,
            memory=max(self.memory, other.memory),
            judged=self.judged + other.judged,
            refused=self.refused + other.refused,
            names=self.names + other.names,
            best=self.best + other.best,
            apart=self.apart + other.apart,
            notes=tuple(dict.fromkeys(self.notes + other.notes)),
        )

    def as_dict(self) -> dict[str, Any]:
        numbers = {"count": self.count, "solved": self.solved, "mean": self.mean, "seconds": self.seconds}
        checks = {"memory": self.memory, "judged": self.judged, "refused": self.refused}
        lists = {key: getattr(self, key) for key in LISTS}
        return {"task": self.task, **numbers, **checks, **{key: list(v) for key, v in lists.items() if v}}


@dataclass
class Results:
    """What one solver, as it was set, reached on a suite."""

    label: str  # what tables call the solver
    suite: str
    n: int | None  # customers; None where instances differ
    rules: str  # exact or published
    settings: dict[str, Any]  # all that may change the figures
    tasks: dict[str, TaskResult] = field(default_factory=dict)

    @property
    def name(self) -> str:
        size = "" if self.n is None else f"-n{self.n}"
        return f"{self.label}-{self.suite}{size}" + (f"-{self.rules}" if self.rules != "exact" else "")

    def head(self) -> dict[str, Any]:
        """All but the tasks, as JSON has it."""
        head = {"label": self.label, "suite": self.suite, "n": self.n, "rules": self.rules}
        return json.loads(json.dumps({**head, "settings": self.settings}))  # type: ignore[no-any-return]

    def save(self, folder: Path) -> None:
        tasks = [task.as_dict() for task in self.tasks.values()]
        text = json.dumps({"format": FORMAT, **self.head(), "tasks": tasks}, indent=1)
        # Seven digits do for means over random problems; costs of named instances are compared one by one.
        arrays: Any = {
            task.task: task.costs if task.names else task.costs.astype(np.float32)
            for task in self.tasks.values()
        }
        buffer = io.BytesIO()
        np.savez_compressed(buffer, **arrays)
        save(folder / f"{self.name}.npz", buffer.getvalue())
        save(folder / f"{self.name}.json", f"{text}\n".encode())


def read_results(path: Path) -> Results:
    """The results of which `path` is one file, or their common name."""
    name = str(path).removesuffix(".json").removesuffix(".npz")
    text = decode(load(f"{name}.json"), f"{name}.json")
    try:
        page = json.loads(text)
        if page["format"] != FORMAT:
            message = f"has format {page['format']}; this version reads {FORMAT}."
            raise fail("bad-result", message, f"{name}.json")
        with np.load(io.BytesIO(load(f"{name}.npz"))) as arrays:
            tasks = [_task(entry, arrays[entry["task"]]) for entry in page["tasks"]]
        head = {key: page[key] for key in ("label", "suite", "n", "rules", "settings")}
    except (ValueError, KeyError, TypeError, zipfile.BadZipFile) as error:
        message = f"is no result file, or is damaged: {type(error).__name__} {error}."
        raise fail("bad-result", message, name) from None
    return Results(**head, tasks={task.task: task for task in tasks})


def _task(entry: dict[str, Any], costs: FloatArray) -> TaskResult:
    if len(costs) < entry["count"]:
        raise ValueError(f"{entry['count']} costs of {entry['task']} promised, {len(costs)} found")
    kept: dict[str, Any] = {key: entry[key] for key in ("task", "seconds", "memory", "judged", "refused")}
    kept |= {key: tuple(entry.get(key, ())) for key in LISTS}
    # The costs are written first: after a sudden end there may be more of them than the page says.
    return TaskResult(costs=costs[: entry["count"]].astype(np.float64), **kept)


def read_all(paths: Iterable[Path]) -> list[Results]:
    """Of files and of folders of files, in the order of their names; faults of all files at once."""
    found: list[Results] = []
    faults: list[Fault] = []
    for path in paths:
        for file in sorted(path.glob("*.json")) if path.is_dir() else [path]:
            try:
                found.append(read_results(file))
            except ChainRouteError as error:
                faults += error.faults
    if faults:
        raise ChainRouteError(faults)
    return found


def read_references(folder: Path | None = None) -> list[Results]:
    """Our own runs of PyVRP: those that come with the package, and those in the folder if there is one."""
    shipped = Path(str(files("chainroute"))) / "data" / "reference"
    return read_all([shipped, *([folder] if folder and folder.is_dir() else [])])


def continued(results: Results, folder: Path) -> Results:
    """The same results with the tasks that are already done in the folder."""
    path = folder / f"{results.name}.json"
    if not path.exists():
        return results
    before = read_results(path)
    ours, theirs = results.head(), before.head()
    keys = sorted(ours["settings"].keys() | theirs["settings"].keys())
    other = [k for k in keys if ours["settings"].get(k) != theirs["settings"].get(k)]
    if other:
        told = "; ".join(
            f"{k} {theirs['settings'].get(k)!r} there and {ours['settings'].get(k)!r} now" for k in other
        )
        raise fail("other-settings", f"{told}.", str(path))
    return before
