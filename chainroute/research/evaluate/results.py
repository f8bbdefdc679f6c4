"""Result files: what one solver reached on the tasks of one suite, instance by instance.

`NAME.json` has the settings and one entry per task: mean cost, its standard error, and where there are few
instances the cost of each. The costs of many lie beside it in `NAME.npz`; where that file was not kept, the
means are still shown, but not compared instance by instance. Results under different rules, sizes or settings
never share a file.
"""

from __future__ import annotations

import io
import json
import math
import zipfile
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np

from chainroute.errors import ChainRouteError, Fault, fail
from chainroute.problem.measure import FloatArray
from chainroute.runtime.files import decode, load, save

RESULT_FORMAT = 2
READABLE = (1, 2)  # formats; the first had all costs in the .npz
FEW_INSTANCES = 128  # instances of a task whose costs are written in the JSON
DIGITS = 7  # of the cost of a random instance; costs of named ones are compared one by one, and written whole
LISTS = ("names", "best", "apart", "notes")  # what a task has beside numbers
CHECKS = ("seconds", "memory", "judged", "refused")  # numbers of a task beside its costs
HEAD = {"label": str, "suite": str, "n": int | None, "rules": str, "settings": dict}
# What a file that is damaged anywhere makes its readers raise.
DAMAGED = (
    ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError, SyntaxError, EOFError,
    NotImplementedError, RuntimeError, MemoryError, TokenError, zlib.error, zipfile.BadZipFile,
)  # fmt: skip
NOTHING: FloatArray = np.zeros(0)


@dataclass(frozen=True)
class Summary:
    """What is known of a task whose single costs were not kept."""

    count: int
    solved: int
    mean: float | None
    error: float | None


@dataclass(frozen=True)
class TaskResult:
    """One task: the first instances of a test set, or named instances of a library."""

    task: str
    costs: FloatArray = field(default_factory=lambda: NOTHING)  # (K,) NaN where there is no solution; or none
    seconds: float = 0.0  # spent on solving, in all
    memory: int = 0  # bytes at most, on the device
    judged: int = 0  # solutions that the judge has seen
    refused: int = 0  # of these: those that break a rule of ours (possible under the published rules only)
    names: tuple[str, ...] = ()  # of instances from a library
    best: tuple[float, ...] = ()  # their best known costs
    apart: tuple[str, ...] = ()  # those solved by another convention than the best known cost is given in
    notes: tuple[str, ...] = ()  # why instances have no solution
    summary: Summary | None = None  # instead of costs that were not kept

    @property
    def count(self) -> int:
        return self.summary.count if self.summary else len(self.costs)

    @property
    def solved(self) -> int:
        return self.summary.solved if self.summary else int(np.isfinite(self.costs).sum())

    @property
    def mean(self) -> float | None:
        """The mean cost; None unless every instance is solved."""
        if self.summary:
            return self.summary.mean
        return float(self.costs.mean()) if self.count and self.solved == self.count else None

    @property
    def error(self) -> float | None:
        """The standard error of the mean cost."""
        if self.summary:
            return self.summary.error
        known = self.mean is not None and self.count > 1
        return float(self.costs.std(ddof=1) / math.sqrt(self.count)) if known else None

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
        numbers = {"count": self.count, "solved": self.solved, "mean": self.mean, "error": self.error}
        checks = {key: getattr(self, key) for key in CHECKS}
        lists = {key: list(getattr(self, key)) for key in LISTS}
        if self.written_out:
            lists["costs"] = [self._written(cost) for cost in self.costs]
        return {"task": self.task, **numbers, **checks, **{key: v for key, v in lists.items() if v}}

    @property
    def written_out(self) -> bool:
        """Whether the costs stand in the JSON."""
        return self.count <= FEW_INSTANCES and self.summary is None

    def _written(self, cost: float) -> float | None:
        if not math.isfinite(cost):
            return None
        return float(cost) if self.names else float(f"{cost:.{DIGITS}g}")


@dataclass
class Results:
    """What one solver, as it was set, reached on a suite."""

    label: str  # what tables call the solver
    suite: str
    n: int | None  # customers; None where instances differ
    rules: str  # exact or published
    settings: dict[str, Any]  # all that may change the figures
    tasks: dict[str, TaskResult] = field(default_factory=dict)
    commits: tuple[str, ...] = ()  # revisions of the code by which the tasks were solved, in turn

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
        page = {"format": RESULT_FORMAT, **self.head(), "commits": self.commits, "tasks": tasks}
        arrays: Any = {
            task.task: task.costs if task.names else task.costs.astype(np.float32)
            for task in self.tasks.values()
            if not task.written_out and task.summary is None
        }
        if arrays:
            buffer = io.BytesIO()
            np.savez_compressed(buffer, **arrays)
            save(folder / f"{self.name}.npz", buffer.getvalue())
        save(folder / f"{self.name}.json", f"{json.dumps(page, indent=1)}\n".encode())


def read_results(path: Path) -> Results:
    """The results of which `path` is one file, or their common name."""
    name = str(path).removesuffix(".json").removesuffix(".npz")
    text = decode(load(f"{name}.json"), f"{name}.json")
    try:
        page = json.loads(text)
        if page["format"] not in READABLE:
            message = f"has format {page['format']}; this version reads {RESULT_FORMAT}."
            raise fail("bad-result", message, f"{name}.json")
        arrays = _arrays(Path(f"{name}.npz"))
        tasks = [_task(entry, arrays) for entry in page["tasks"]]
        head = {key: page[key] for key in ("label", "suite", "n", "rules", "settings")}
        commits = tuple(page.get("commits", ()))
        if not all(isinstance(head[key], kind) for key, kind in HEAD.items()):
            raise TypeError("its label, suite, size, rules or settings are of a wrong kind")
        return Results(**head, tasks={task.task: task for task in tasks}, commits=commits)
    except DAMAGED as error:
        message = f"is no result file, or is damaged: {type(error).__name__} {error}."
        raise fail("bad-result", message, name) from None


def _arrays(path: Path) -> dict[str, FloatArray]:
    if not path.exists():
        return {}
    with np.load(io.BytesIO(load(path))) as arrays:
        return dict(arrays)


def _task(entry: dict[str, Any], arrays: dict[str, FloatArray]) -> TaskResult:
    kept: dict[str, Any] = {key: entry[key] for key in ("task", *CHECKS)}
    if not isinstance(kept["task"], str) or not all(type(kept[key]) in (int, float) for key in CHECKS):
        raise TypeError("a task is of a wrong kind")
    kept |= {key: tuple(entry.get(key, ())) for key in LISTS}
    costs = np.array(entry["costs"], np.float64) if "costs" in entry else arrays.get(entry["task"])
    if costs is None:
        summary = Summary(entry["count"], entry["solved"], entry["mean"], entry.get("error"))
        return TaskResult(summary=summary, **kept)
    if len(costs) < entry["count"]:
        raise ValueError(f"{entry['count']} costs of {entry['task']} promised, {len(costs)} found")
    # The costs are written first: after a sudden end there may be more of them than the page says.
    return TaskResult(costs=costs[: entry["count"]].astype(np.float64), **kept)


def read_all(paths: Iterable[Path]) -> list[Results]:
    """The results of files and folders of files, in the order of their names; faults of all at once."""
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


def first(results: Results, limit: int) -> Results:
    """The results on the first instances of each task; the time is their share of the whole."""
    if limit < 1:
        raise fail("bad-option", f"must be at least 1, not {limit}.", "limit")
    tasks = {}
    for name, task in results.tasks.items():
        if task.count <= limit:
            tasks[name] = task
            continue
        if task.summary:
            message = f"has the mean of {name} only: the costs, {results.name}.npz, were not kept."
            raise fail("bad-result", message, results.name)
        share = limit / task.count
        tasks[name] = replace(
            task,
            costs=task.costs[:limit],
            seconds=task.seconds * share,
            judged=min(task.judged, limit),
            names=task.names[:limit],
            best=task.best[:limit],
        )
    return replace(results, tasks=tasks)


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
    if any(task.summary for task in before.tasks.values()):
        raise fail("bad-result", "has means only, without the costs to go on from.", str(path))
    before.commits = tuple(dict.fromkeys(before.commits + results.commits))
    return before
