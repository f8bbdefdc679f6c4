"""The policy in a process of its own: torch is loaded once, there, and stays for the next call."""

from __future__ import annotations

import importlib.util
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chainroute.errors import Fault, coded, fail
from chainroute.neural import assembly
from chainroute.neural.assembly import Draft, PolicyReport
from chainroute.options import Effort
from chainroute.plan.check import check
from chainroute.plan.solution import Parts, Route, Solution
from chainroute.problem import Problem
from chainroute.runtime import worker
from chainroute.runtime.cores import cores
from chainroute.runtime.deadline import NEVER, Deadline
from chainroute.runtime.extras import loading
from chainroute.solve.reduction import Reduction, known_ahead
from chainroute.solve.result import tidied

GRACE_SECONDS = 60.0  # past its deadline for which a worker may go on, to be ready for the next call
LOW_PRIORITY = 19  # niceness of work that must not slow down a search

Answer = Solution | Fault  # Fault: why the policy found none
Priced = tuple[tuple[Route, ...], Parts]  # a plan's routes, and what they cost


@dataclass(frozen=True)
class Proposal:
    """The policy's trajectories for a problem, from which routes are still to be made."""

    known: Reduction
    draft: Draft


_turn = threading.Lock()  # there is one policy worker
_warm = False  # it has answered before


def gpu(effort: Effort) -> bool:
    """Whether the policy will find one, as far as can be told without loading torch."""
    return Path("/dev/nvidiactl").exists() if effort.device is None else effort.device.startswith("cuda")


def missing() -> str:
    """What the policy needs and is not installed; nothing, as a rule."""
    return next((name for name in ("torch", "safetensors") if importlib.util.find_spec(name) is None), "")


def require() -> None:
    if name := missing():
        raise fail("missing-extra", f"a policy needs {name}: pip install 'chainroute[neural]'.")


def propose_many(
    problems: Sequence[Problem],
    effort: Effort = Effort(),
    seed: int = 0,
    deadline: Deadline = NEVER,
    *,
    known: Sequence[Reduction | None] | None = None,
    on_answer: Callable[[int, Answer], None] | None = None,
    on_draft: Callable[[int, Proposal], None] | None = None,
    on_note: Callable[[str], None] | None = None,
    at_low_priority: bool = False,
    stop: threading.Event | None = None,
) -> list[Solution | None]:
    """The policy's best routes for each problem, decoded in one batch in the policy's process.

    None where it finds no feasible ones, or none by the deadline, or does not know the problem nor one that
    stands for it, which the caller may have `known` before. `on_answer` hears of each answer as it comes,
    `on_note` why the policy is slower than it could be. Where somebody is `on_draft`, routes are left to be
    made of trajectories by `assembled`, if that is all there is to do, and all answers come at once. The
    policy has all cores, all but one where its routes are to be polished, and at low priority only one that
    nobody else wants.
    """
    best: list[Solution | None] = [None] * len(problems)

    def on_report(report: PolicyReport) -> None:
        index, content = report
        if isinstance(content, str):
            if on_note:
                on_note(content)
            return
        own = reductions[index]
        if isinstance(content, Draft):
            if on_draft:
                on_draft(index, Proposal(own, content))
            return
        answer: Answer | None
        try:
            answer = content if isinstance(content, Fault) else own.plan(Solution.of(own.problem, content))
        except Exception as error:  # which must not end the others of the batch
            answer = coded(error, problems[index].name).faults[0]
        if isinstance(answer, Solution):
            best[index] = answer
        if on_answer and answer is not None:
            on_answer(index, answer)

    threads = (
        1 if at_low_priority else max(1, cores() - effort.polish)
    )  # threads that wait for a core are slow
    ahead = map(known_ahead, problems) if known is None else known
    reductions = {index: reduction for index, reduction in enumerate(ahead) if reduction is not None}
    for index, problem in enumerate(problems):
        if index not in reductions and on_answer:
            on_answer(index, Fault("unsupported-feature", unknown(problem), problem.name))
    indices = list(reductions)

    def on_known(report: PolicyReport | list[PolicyReport]) -> None:
        for index, content in report if isinstance(report, list) else [report]:
            on_report((indices[index], content))

    if reductions:
        task: Callable[..., None] = draft if on_draft else decode
        sent = [reduction if on_draft else reduction.problem for reduction in reductions.values()]
        _run(task, (sent, effort, seed, deadline, threads), deadline, on_known, stop, at_low_priority)
    return best


def assembled(proposals: Sequence[Proposal], kind: str) -> list[Answer | None]:
    """The plan of each proposal, which the judge has accepted, or why there is none, made in a worker of that
    kind; None where it suits only the problem that stands for the given one."""
    found: list[Answer | None] = [None] * len(proposals)

    def on_report(report: list[Priced | Fault | None]) -> None:
        for index, content in enumerate(report):
            if isinstance(content, tuple):
                routes, parts = content
                found[index] = plan = Solution(proposals[index].known.original, routes)
                vars(plan)["parts"] = parts  # as we would compute them
            else:
                found[index] = content

    if proposals:
        worker.run(assemble, (list(proposals),), NEVER, on_report, kind=kind)
    return found


def unknown(problem: Problem) -> str:
    """What the network does not know about a problem beyond the 48 variants, as a sentence."""
    return f"the network cannot hold: {', '.join(problem.extras)}."


def warm_up(
    effort: Effort = Effort(),
    deadline: Deadline = NEVER,
    *,
    at_low_priority: bool = False,
    stop: threading.Event | None = None,
) -> bool:
    """Starts the policy's process and loads the weights; what is wrong with them, or the device, is raised.

    False when the deadline passed, or `stop` was set, first.
    """
    return _run(load, (effort,), deadline, lambda _: None, stop, at_low_priority)


def is_warm() -> bool:
    """Whether the policy would answer at once, as far as is known."""
    return _warm


def _run(
    task: Callable[..., None],
    args: tuple[Any, ...],
    deadline: Deadline,
    on_report: Callable[[Any], None],
    stop: threading.Event | None,
    at_low_priority: bool,
) -> bool:
    """Whether the worker has done so by the deadline."""
    global _warm
    require()
    if not _acquired(deadline, stop):
        return False
    if at_low_priority:
        task, args = work_at_low_priority, (task, *args)
    known, _warm = _warm, False
    try:
        kind, patience = worker.POLICY, GRACE_SECONDS
        done = worker.run(task, args, deadline, on_report, kind=kind, stop=stop, patience=patience)
        _warm = done or (known and not (stop and stop.is_set()))  # who is stopped is ended
        return done
    finally:
        _turn.release()


def _acquired(deadline: Deadline, stop: threading.Event | None) -> bool:
    while (left := deadline.left) > 0 and not (stop and stop.is_set()):
        if _turn.acquire(timeout=min(left, 60.0 if stop is None else worker.STOP_WATCH_SECONDS)):
            return True
    return False


def _forget() -> None:
    global _turn, _warm
    _turn, _warm = threading.Lock(), False


os.register_at_fork(after_in_child=_forget)  # the turn may be that of a thread of the parent, and stay so


# -- inside the worker, which alone loads torch


def decode(*args: Any) -> None:
    """Reports routes of each problem as they improve, or why there are none, and notes."""
    with _loading():
        from chainroute.neural import policy_worker
    policy_worker.decode(*args)


def draft(*args: Any) -> None:
    """The same in one report, with trajectories in place of routes where these can be left to others."""
    with _loading():
        from chainroute.neural import policy_worker
    known, effort, seed, deadline, threads, report = args
    found: list[PolicyReport] = []
    problems = [reduction.problem for reduction in known]
    policy_worker.decode(problems, effort, seed, deadline, threads, found.append, as_drafts=True)
    report(found)


def load(effort: Effort, report: Callable[[PolicyReport], None]) -> None:
    """Has the policy loaded, for the next call."""
    with _loading():
        from chainroute.neural import policy_worker
    policy_worker.the_policy(effort)


def assemble(proposals: Sequence[Proposal], report: Callable[[object], None]) -> None:
    """Reports the plans of all proposals, in any worker: torch is not needed."""
    report([_priced(proposal.known, proposal.draft) for proposal in proposals])


def _priced(known: Reduction, draft: Draft) -> Priced | Fault | None:
    found = assembly.assembled(known.problem, draft)
    if isinstance(found, Fault):
        return found
    plan = known.plan(found)
    if plan is None or not (plan is found or check(known.original, plan).feasible):
        return None
    plan = tidied(plan)
    return plan.routes, plan.parts


@contextmanager
def _loading() -> Iterator[None]:
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # or threads spin where others have work to do
    with loading("the policy", "neural"):
        yield


def work_at_low_priority(task: Callable[..., None], *args: Any) -> None:
    """The task in a thread of low priority, imports and all."""
    failures: list[BaseException] = []

    def work() -> None:
        with suppress(OSError, AttributeError):  # not everywhere have threads priorities of their own
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), LOW_PRIORITY)
        try:
            task(*args)
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    if failures:
        raise failures[0]
