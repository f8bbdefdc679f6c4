"""The network's part in `solve`: whether it has time, what it is given, and its routes for the problem."""

from __future__ import annotations

import threading
from contextlib import suppress
from functools import partial

from chainroute.errors import WEIGHTS, ChainRouteError, Fault
from chainroute.options import rules
from chainroute.plan.solution import Solution
from chainroute.runtime.deadline import NEVER, START_SECONDS, Deadline
from chainroute.solve import policy_process
from chainroute.solve.attempt import Attempt
from chainroute.solve.messages import Note
from chainroute.solve.reduction import Reduction, reduction

LOADING_SECONDS = 3.0  # seconds that it takes to load torch and the weights
PREPARING_SECONDS = 600.0  # seconds that it may take on what is left of busy cores
DECIDING_SHARE = 0.1  # of the time, after which the search has decided which customers may be left out


def is_short(attempt: Attempt) -> bool:
    """Whether the network would have too little time."""
    if attempt.propose is not None:
        return False
    gpu = policy_process.gpu(attempt.effort)
    return not rules.has_time_for_policy(attempt.problem.num_customers, attempt.limit, gpu)


def load(attempt: Attempt, stop: threading.Event | None) -> None:
    """Has the network loaded before the clock runs."""
    if attempt.timed and attempt.propose is None:
        with suppress(ChainRouteError):  # which asking it will end in as well
            policy_process.warm_up(attempt.effort, Deadline.after(START_SECONDS), stop=stop)


def ask(attempt: Attempt) -> Solution | None:
    """The network's routes, if it can be expected to have some in time."""
    if not attempt.asks:
        return None
    alone = not attempt.searches or attempt.failed.is_set()
    deadline = attempt.deadline.share(1.0 if alone else rules.POLICY_SHARE)
    if (known := _known(attempt)) is None:
        return None

    def on_report(_: int, answer: Solution | Fault) -> None:
        if isinstance(answer, Fault):
            attempt.report("policy", ChainRouteError([answer]))
        elif (plan := known.plan(answer)) is not None:
            attempt.found("policy", plan)

    try:
        if attempt.propose is not None:
            found = attempt.propose(known, deadline)
            if found is not None:
                on_report(0, found)
            return None if found is None else known.plan(found)
        if not alone and not policy_process.is_warm() and deadline.left < LOADING_SECONDS:
            threading.Thread(target=partial(_prepare, attempt), daemon=True).start()
            return None
        (best,) = policy_process.propose_many(
            [known.problem],
            attempt.effort,
            attempt.seed,
            deadline if attempt.timed else NEVER,
            on_answer=on_report,
            on_note=lambda text: attempt.messages.put(Note(text)),
            at_low_priority=not alone and attempt.timed,
            stop=attempt.should_stop,
        )
    except ChainRouteError as error:
        crashed = all(fault.code == "solver-failed" for fault in error.faults)
        if _is_an_option_wrong(attempt, error) or not (attempt.searches or crashed):
            raise
        attempt.report("policy", error)
        return None
    return None if best is None else known.plan(best)


def _known(attempt: Attempt) -> Reduction | None:
    """The problem that the network is given; without the customers that the search leaves out by now."""
    if not attempt.problem.has_optional:
        return reduction(attempt.problem)
    attempt.answered.wait(attempt.limit * DECIDING_SHARE)
    best = attempt.board.best
    return None if best is None else reduction(attempt.problem, best.left_out)


def _prepare(attempt: Attempt) -> None:
    """Has the network loaded by the next call, on what is left of the cores, unless the caller stops."""
    enough = Deadline.after(PREPARING_SECONDS)
    with suppress(ChainRouteError):
        policy_process.warm_up(attempt.effort, enough, at_low_priority=True, stop=attempt.stop_requested)


def _is_an_option_wrong(attempt: Attempt, error: ChainRouteError) -> bool:
    """Whether an option is wrong: that is raised even where PyVRP alone could answer."""
    codes = {fault.code for fault in error.faults}
    named = attempt.effort.weights is not None
    return "bad-option" in codes or (named and not codes.isdisjoint(WEIGHTS))
