"""Many problems at once, here or on a cluster."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator

from chainroute.options import Effort, require_limits
from chainroute.problem import Problem, require_problem
from chainroute.solve.cluster import solve_on_cluster
from chainroute.solve.pool import WorkerPool
from chainroute.solve.result import Outcome


def solve_many(
    problems: Iterable[Problem],
    time_limit: float | None = None,
    *,
    seed: int = 0,
    effort: Effort = Effort(),
    stop: threading.Event | None = None,
    cluster: str | None = None,
) -> Iterator[Outcome]:
    """Solves problems side by side, one on each core, and yields outcomes as they are ready.

    `time_limit` is for each problem, on its core. A problem without a solution does not keep the others from
    theirs. Ctrl-C or `stop` ends it: what is under way is yielded with its best so far, and no more is begun.
    With the address of a Ray `cluster`, or "auto", it is the cores there; what is under way is then given up.
    """
    require_limits(time_limit, seed)
    problems = map(require_problem, problems)
    if cluster is None:
        return WorkerPool(problems, time_limit, seed, effort).outcomes(stop)
    return solve_on_cluster(cluster, problems, time_limit, seed, effort, stop)
