"""Whole evaluations: which tasks, by which rules, with which policy or solver, into which result files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from chainroute.errors import USE_LISTED, fail
from chainroute.neural.device import choose_device
from chainroute.neural.env import Rules
from chainroute.neural.policy.store import load_policy, read_card
from chainroute.options import DecodeOptions
from chainroute.research.evaluate import RESULTS, real
from chainroute.research.evaluate.classical import Classical
from chainroute.research.evaluate.policy_solver import (
    JUDGED_PLANS,
    Neural,
    goes_beyond,
    weights_file,
    weights_name,
)
from chainroute.research.evaluate.results import Results
from chainroute.research.evaluate.run import run
from chainroute.research.evaluate.tasks import SUITES, TEST_SET_PROBLEMS, Task, benchmark_tasks
from chainroute.runtime.progress import StatusLine
from chainroute.runtime.revision import revision

STORED = "/docs/results/"  # what the project keeps of its results: others are to be able to make them again
CPU_INSTANCES = (
    16  # instances of each task without a GPU: the 16 seen tasks in some four minutes on two cores
)
CPU_NAMED_INSTANCES = 4  # likewise of each library


@dataclass(frozen=True)
class Evaluation:
    """What to solve, by what, and where to keep it."""

    suites: tuple[str, ...] = ("seen",)
    sizes: tuple[int, ...] = (50,)
    only: tuple[str, ...] = ()  # names of tasks; all unless given
    limit: int | None = None  # instances of each task; None: all on a GPU, else a few
    data: Path | None = None  # where instances from libraries are
    out: Path = RESULTS
    label: str | None = None


def run_neural(
    job: Evaluation,
    progress: StatusLine,
    *,
    weights: str | None = None,
    device: str = "auto",
    trust_code: bool = False,
    options: DecodeOptions | None = None,
    rules: Sequence[Rules] | None = None,
    judged: int = JUDGED_PLANS,
) -> list[Results]:
    """Every suite at every size by all its rules, each with a result file of its own.

    Without rules given, they are those by which the figures of a suite differ.
    """
    if goes_beyond(options or DecodeOptions()) and Rules.PUBLISHED in (rules or ()):
        message, remedy = "by the published rules there is decoding only.", "Leave them out, or the search."
        raise fail("bad-option", message, "rules", remedy)
    _require_commit(job.out)
    chosen = choose_device(device)
    on_gpu = chosen.type == "cuda"
    options = options or DecodeOptions()
    made = []
    for suite, n, tasks in suites(job, every=on_gpu):
        path = weights_file(weights)
        policy, card = load_policy(path, chosen, trust_code=trust_code), read_card(path)
        for by in rules or rules_of(suite, options):
            solver = Neural(policy, options, by, judged, card)
            label = job.label or weights_name(path) + options.marks
            results = Results(label, suite, n, by, solver.settings(n), commits=(revision(),))
            solver.warm_up(tasks[0])
            made.append(run(results, tasks, solver, job.out, progress))
    return made


def run_classical(job: Evaluation, progress: StatusLine, solver: Classical) -> list[Results]:
    """Every suite at every size by a classical solver, which keeps the exact rules."""
    _require_commit(job.out)
    made = []
    chosen = suites(job, every=False)
    for _, n, _ in chosen:
        solver.at(n)  # refuses what it cannot solve before any work
    solver.warm_up()
    for suite, n, tasks in chosen:
        timed = solver.at(n)
        label = job.label or timed.label
        results = Results(label, suite, n, Rules.EXACT, timed.settings(), commits=(revision(),))
        made.append(run(results, tasks, timed, job.out, progress))
    return made


def _require_commit(out: Path) -> None:
    """Refuses to store results that no commit makes again."""
    if revision().endswith("-dirty") and STORED in f"{out.resolve().as_posix()}/":
        message = f"stores results that a commit makes again, and this code is {revision()}."
        raise fail("bad-option", message, "out", "Commit what is changed first, or give another folder.")


def suites(job: Evaluation, every: bool) -> list[tuple[str, int | None, list[Task]]]:
    """The suites, the random ones at each size, with all tasks or those that are named.

    Without a limit all instances count if `every` says so, else the first few.
    """
    if job.limit is not None and not 1 <= job.limit <= TEST_SET_PROBLEMS:
        raise fail("bad-option", f"must be from 1 to {TEST_SET_PROBLEMS}, not {job.limit}.", "limit")
    if job.label is not None and Path(job.label).name != job.label:
        message = f"'{job.label}' begins the name of a file, and names no folder."
        raise fail("bad-option", message, "label", "Leave out slashes; --out names the folder.")
    found: list[tuple[str, int | None, list[Task]]] = []
    for suite in job.suites:
        if suite == "real":
            few = None if every else CPU_NAMED_INSTANCES
            found.append((suite, None, real.tasks(job.data, job.only, job.limit or few)))
        elif suite in SUITES:
            limit = job.limit or (TEST_SET_PROBLEMS if every else CPU_INSTANCES)
            found += [(suite, n, benchmark_tasks(suite, n, limit)) for n in job.sizes]
        else:
            raise fail(
                "bad-option", f"'{suite}' is not one of {', '.join(SUITES)}, real.", "suite", USE_LISTED
            )
    known = {task.name.upper() for _, _, tasks in found for task in tasks}
    strangers = [name for name in job.only if name.upper() not in known]
    if strangers:
        message = f"{', '.join(job.suites)} has no {', '.join(strangers)}."
        raise fail("bad-option", message, "task", "Name tasks of the suites that are run.")
    wanted = {name.upper() for name in job.only} or known
    chosen = ((suite, n, [t for t in tasks if t.name.upper() in wanted]) for suite, n, tasks in found)
    return [(suite, n, tasks) for suite, n, tasks in chosen if tasks]


def rules_of(suite: str, options: DecodeOptions) -> tuple[Rules, ...]:
    """The rules to solve by: both for zero-shot tasks; seen variants and libraries are the same by both."""
    return tuple(Rules) if suite == "zero-shot" and not goes_beyond(options) else (Rules.EXACT,)
