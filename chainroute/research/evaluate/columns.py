"""Methods as columns: their gaps by task, ours and the paper's, and the tasks that means are taken over."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from chainroute.research.evaluate import gaps, paper
from chainroute.research.evaluate.real import LIBRARIES
from chainroute.research.evaluate.results import Results, TaskResult
from chainroute.research.evaluate.tasks import SUITES, TEST_SET_PROBLEMS

PRINTED_ON_LIBRARIES = ("RF-TE", "CaDA", "CCL", "CCL-Ens")  # methods of the paper


@dataclass(frozen=True)
class MethodColumn:
    """A method's gaps by task, ours or the paper's."""

    name: str
    gaps: Mapping[str, float | None]
    seconds: Mapping[str, float]
    rules: str
    ours: Results | None = None


def columns(results: Sequence[Results], references: Sequence[Results]) -> list[MethodColumn]:
    """The columns of results of one suite and size, and then of the paper's methods."""
    first = results[0]
    if first.suite == "real":
        return _real_columns(results)
    made = []
    for r in results:
        found = {name: gaps.gap(r, task, references) for name, task in r.tasks.items()}
        percent = {name: None if g is None else g.percent for name, g in found.items()}
        seconds = {name: task.seconds * TEST_SET_PROBLEMS / task.count for name, task in r.tasks.items()}
        made.append(MethodColumn(title(r), percent, seconds, r.rules, r))
    rows = [] if trained_on_it(first) else paper.rows(first.suite, first.n or 0)
    for method in dict.fromkeys(row.method for row in rows):
        theirs = {row.task: row for row in rows if row.method == method}
        percent = {task: row.gap for task, row in theirs.items()}
        seconds = {task: row.seconds for task, row in theirs.items()}
        made.append(MethodColumn(method, percent, seconds, "published"))
    return made


def title(results: Results) -> str:
    """What a column of ours is called."""
    return results.label if results.suite != "zero-shot" else f"{results.label} ({results.rules})"


def trained_on_it(results: Results) -> bool:
    """Whether a network has seen in training the variants that are unseen for others: nothing of theirs, nor
    of the paper's, stands beside it."""
    return results.suite == "zero-shot" and bool(results.settings.get("saw_all_variants"))


def by_suite(results: Iterable[Results]) -> list[list[Results]]:
    """Results that have tasks, those of one suite and size together, and apart from them those of networks
    that were trained on what is unseen for the others."""
    groups: dict[tuple[str, int | None, bool], list[Results]] = {}
    for r in results:
        if r.tasks:
            groups.setdefault((r.suite, r.n, trained_on_it(r)), []).append(r)
    return [sorted(group, key=lambda r: (r.label, r.rules)) for group in groups.values()]


def suite_title(results: Results) -> str:
    """What a table or a panel of one suite and size is called."""
    if results.n is None:
        return "instances from libraries"
    suite = "the other 32 variants, trained on them" if trained_on_it(results) else results.suite
    return f"{suite}, {results.n} customers"


def task_names(results: Sequence[Results]) -> list[str]:
    """The tasks of results of one suite; those without time windows first, as in the paper."""
    known = [v.name for v in SUITES.get(results[0].suite, ())] or list(LIBRARIES)
    return sorted((name for name in known if any(name in r.tasks for r in results)), key=gaps.with_windows)


def parts(tasks: Sequence[str]) -> list[tuple[str, list[str]]]:
    """The tasks over which means are taken, by the names of these: without and with time windows, and all."""
    without = [task for task in tasks if not gaps.with_windows(task)]
    within = [task for task in tasks if gaps.with_windows(task)]
    every = [("mean without TW", without), ("mean with TW", within), ("mean", list(tasks))]
    return [(name, part) for name, part in every if part]


def best_on(method: MethodColumn, methods: Sequence[MethodColumn], tasks: Iterable[str]) -> int:
    """On how many tasks no rival has a lower gap. Rivals are the paper's methods and ours by the same rules;
    the paper's own stand against ours by the published rules, where there are results by these."""
    published = any(m.ours and m.rules == "published" for m in methods)
    rules = method.rules if method.ours or published else "exact"
    rivals = [m for m in methods if not m.ours or m.rules == rules]
    count = 0
    for task in tasks:
        own = method.gaps.get(task)
        others = [g for m in rivals if (g := m.gaps.get(task)) is not None]
        count += own is not None and own <= min(others)
    return count


def printed_costs(library: str) -> dict[str, dict[str, float]]:
    """The paper's costs of instances of a library: by instance, by method."""
    return {row.instance: row.costs for row in paper.real() if row.library == library}


def _real_columns(results: Sequence[Results]) -> list[MethodColumn]:
    """Mean gaps by set, over the solved instances of the paper where it has any of the set."""
    made = []
    by_method: dict[str, dict[str, float | None]] = {method: {} for method in PRINTED_ON_LIBRARIES}
    for r in results:
        own: dict[str, float | None] = {}
        for name, task in r.tasks.items():
            printed = printed_costs(name)
            known = {i: g for i, g in zip(task.names, gaps.named_gaps(task), strict=True) if np.isfinite(g)}
            own[name] = mean_of(g for i, g in known.items() if i in printed or not printed)
            for method, column in by_method.items():
                shared = [i for i in known if method in printed.get(i, {})]
                column.setdefault(name, mean_of(paper_gap(printed, method, i, task) for i in shared))
        made.append(MethodColumn(title(r), own, {}, r.rules, r))
    return made + [MethodColumn(method, column, {}, "published") for method, column in by_method.items()]


def paper_gap(printed: Mapping[str, Mapping[str, float]], method: str, name: str, task: TaskResult) -> float:
    """The gap of a method of the paper on an instance, per cent."""
    return 100 * (printed[name][method] / task.best[task.names.index(name)] - 1)


def mean_of(values: Iterable[float]) -> float | None:
    """None where there is nothing."""
    every = list(values)
    return float(np.mean(every)) if every else None
