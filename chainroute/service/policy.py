"""The policy, in processes of the service's own, with one thread each: jobs side by side share the cores."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from chainroute.neural.assembly import PolicyReport
from chainroute.options import Effort
from chainroute.plan.solution import Solution
from chainroute.problem import Problem
from chainroute.runtime import worker
from chainroute.runtime.deadline import START_SECONDS, Deadline
from chainroute.solve import policy_process

# Kinds of workers: for batches, and for what takes long.
TOGETHER, ASIDE = "policy of the service", "policy aside"
THREADS = 1
GRACE_SECONDS = 20.0  # past the deadline, for which a batch may go on before its process is ended


def decode(
    problems: Sequence[Problem],
    effort: Effort,
    seed: int,
    deadline: Deadline,
    aside: threading.Event | None = None,
) -> list[Solution | None]:
    """The policy's routes for each problem; None where it has none by the deadline.

    What is decoded `aside` has a process to itself, and can be stopped.
    """
    policy_process.require()
    found: list[Solution | None] = [None] * len(problems)

    def on_report(report: PolicyReport) -> None:
        index, content = report
        if isinstance(content, list):  # else it is a fault
            found[index] = Solution.of(problems[index], content)

    kind, patience = (TOGETHER, GRACE_SECONDS) if aside is None else (ASIDE, 0.0)
    args = (list(problems), effort, seed, deadline, THREADS)
    worker.run(policy_process.decode, args, deadline, on_report, kind=kind, stop=aside, patience=patience)
    return found


def warm_up() -> None:
    """Has one process ready for batches."""
    problem = Problem(name="warm-up", capacity=1, delivery=[1, 1], coords=[(0, 0), (0, 1), (1, 1)])  # type: ignore[arg-type]
    decode([problem], Effort(starts=1, augmentations=1), 0, Deadline.after(START_SECONDS))
