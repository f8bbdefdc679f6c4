"""Solves tasks one after the other and keeps what is done: shown, saved, and continued the next time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from chainroute.errors import Fault, fail
from chainroute.plan.check import check
from chainroute.plan.solution import Solution
from chainroute.research.evaluate.results import Results, TaskResult, continued
from chainroute.research.evaluate.tasks import Task
from chainroute.runtime.progress import StatusLine

SAVE_SECONDS = 5.0  # seconds, while a task goes on

SolveTask = Callable[
    [Task, int], Iterator[TaskResult]
]  # the instances of a task from the first on, in pieces


def run(
    results: Results, tasks: Sequence[Task], solve: SolveTask, folder: Path, progress: StatusLine
) -> Results:
    """Fills the results with the tasks and saves them in the folder; what is there already is kept.

    Ctrl-C ends it; nothing that was finished is lost.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise fail("file-unwritable", f"{error.strerror or error}.", str(folder)) from None
    results = continued(results, folder)
    saved = time.monotonic()
    changed = False
    try:
        for number, task in enumerate(tasks, 1):
            place = f"{results.name} {number}/{len(tasks)} {task.name}"
            done = results.tasks.get(task.name, TaskResult(task.name))
            if done.count >= task.count:
                progress.line(f"{place}: done before")
                continue
            progress.line(f"{place}: {done.count}/{task.count}")
            for piece in solve(task, done.count):
                done = results.tasks[task.name] = done + piece
                changed = True
                if done.count < task.count:
                    progress.line(f"{place}: {done.count}/{task.count}, {done.seconds:.1f} s")
                if time.monotonic() - saved > SAVE_SECONDS:
                    results.save(folder)
                    saved, changed = time.monotonic(), False
            progress.note(f"{place}: {told(done)}")
    finally:
        if changed:
            results.save(folder)
    return results


def solved(task: Task, i: int, found: Solution | Fault, seconds: float, memory: int = 0) -> TaskResult:
    """The i-th instance of a task with its solution, once more before the judge, or why there is none."""
    name, best = task.names[i : i + 1], task.best_known[i : i + 1]
    if isinstance(found, Fault):
        cost, notes = math.nan, (f"{name[0] if name else i}: [{found.code}] {found.told}",)
        return TaskResult(task.name, np.array([cost]), seconds, memory, names=name, best=best, notes=notes)
    verdict = check(found.problem, found)
    if not verdict.feasible:
        raise fail("internal-error", f"the judge refuses a solution: {verdict}.", found.problem.name)
    apart = () if task.comparable(found) else name
    return TaskResult(
        task.name, np.array([verdict.cost]), seconds, memory, judged=1, names=name, best=best, apart=apart
    )


def told(done: TaskResult) -> str:
    """A task in a few words."""
    cost = f"{done.solved} of {done.count} solved" if done.mean is None else f"mean cost {done.mean:.4f}"
    return f"{cost}, {done.seconds:.1f} s"
