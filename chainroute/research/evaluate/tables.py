"""Tables of results on the benchmark: ours beside the paper's."""

from __future__ import annotations

from collections.abc import Sequence

from chainroute.research.evaluate import gaps, paper
from chainroute.research.evaluate.columns import (
    best_on,
    by_suite,
    columns,
    parts,
    suite_title,
    task_names,
    title,
)
from chainroute.research.evaluate.library_tables import real_summary, real_table
from chainroute.research.evaluate.results import Results
from chainroute.research.evaluate.tasks import TEST_SET_PROBLEMS
from chainroute.runtime.table import ResultCell, Table

GIB = 2**30


def tables(results: Sequence[Results], references: Sequence[Results] = ()) -> list[Table]:
    """All tables that the results make, suite by suite and size by size."""
    made = []
    for own in by_suite(results):
        if own[0].suite == "real":
            made += [real_table(r, library) for r in own for library in r.tasks]
            made.append(real_summary(own))
        else:
            made += [task_table(own, references), summary_table(own, references)]
    return made


def task_table(results: Sequence[Results], references: Sequence[Results] = ()) -> Table:
    """Task by task: our cost and gap, and the paper's gaps."""
    first, methods = results[0], columns(results, references)
    tasks = task_names(results)
    heads = ["task"]
    for m in methods:
        heads += [f"{m.name}: {what}" for what in ("cost", "gap %", "s")] if m.ours else [m.name]

    def row(task: str) -> list[ResultCell]:
        cells: list[ResultCell] = [task]
        for m in methods:
            if m.ours:
                done = m.ours.tasks.get(task)
                cells += [done.mean, m.gaps.get(task), done.seconds] if done else [None] * 3
            else:
                cells.append(m.gaps.get(task))
        return cells

    def summary(name: str, values: Sequence[ResultCell]) -> list[ResultCell]:
        cells: list[ResultCell] = [name]
        for m, value in zip(methods, values, strict=True):
            cells += [None, value, None] if m.ours else [value]
        return cells

    rows = [row(task) for task in tasks]
    for name, part in parts(tasks):
        rows.append(summary(name, [gaps.mean(map(m.gaps.get, part)) for m in methods]))
    rows.append(summary("best on", [best_on(m, methods, tasks) for m in methods]))
    return Table(suite_title(first), heads, rows, footnotes(results, references))


def footnotes(results: Sequence[Results], references: Sequence[Results]) -> list[str]:
    """What the figures rest on; methods of which the same is to be said share a sentence."""
    said: dict[str, list[str]] = {}
    for r in results:
        found = [g for task in r.tasks.values() if (g := gaps.gap(r, task, references))]
        bases = {g.basis for g in found}
        counts = sorted({task.count for task in r.tasks.values()})
        told = f"the first {' to '.join(map(str, counts))} problems of each task"
        if gaps.OWN in bases:
            errors = [g.error for g in found if g.error is not None]
            told += "; gaps to our own runs of PyVRP on the same problems"
            told += f", standard error of a task {max(errors):.2f} at most" if errors else ""
        elif gaps.PAPER in bases:
            told += "; gaps to the paper's HGS means"
        else:
            told += "; no gaps: `chainroute evaluate reference` makes references for them"
        judged, refused = (sum(getattr(t, k) for t in r.tasks.values()) for k in ("judged", "refused"))
        told += f". {judged:,} plans judged"
        told += f", of which {refused:,} break a rule that the published rules do not have" * bool(refused)
        unsolved = sum(t.count - t.solved for t in r.tasks.values())
        reasons = [note for task in r.tasks.values() for note in task.notes]
        told += f". {unsolved} problems are not solved, for example {''.join(reasons[:1])}" * bool(unsolved)
        told = told.rstrip(".") + "."
        said.setdefault(told, []).append(title(r))
    return [f"{', '.join(titles)}: {told}" for told, titles in said.items()]


def summary_table(results: Sequence[Results], references: Sequence[Results] = ()) -> Table:
    """Method by method: mean gaps, wins, time and memory."""
    first, methods = results[0], columns(results, references)
    tasks = task_names(results)
    groups = parts(tasks)
    rows: list[list[ResultCell]] = []
    for m in methods:
        times = [m.seconds[task] for task in tasks if task in m.seconds]
        rows.append(
            [
                m.name,
                *(gaps.mean(map(m.gaps.get, part)) for _, part in groups),
                best_on(m, methods, tasks),
                sum(times) / len(times) if times else None,
                memory(m.ours) if m.ours else None,
                str(m.ours.settings.get("device", "")) if m.ours else "paper",
            ]
        )
    heads = ["method", *(f"{name.replace('mean', 'gap')} %" for name, _ in groups), "best on"]
    heads += ["s per 1,000", "memory GiB", "where"]
    return Table(f"{suite_title(first)}: methods", heads, rows, footnotes(results, references))


def cost_table(results: Sequence[Results]) -> Table:
    """Task by task: how many problems, their mean cost and its standard error, and the time spent."""
    rows: list[list[ResultCell]] = [
        [t.task, r.n, t.count, t.mean, t.error, t.seconds] for r in results for t in r.tasks.values()
    ]
    return Table("references", ("task", "n", "problems", "mean cost", "standard error", "s"), rows)


LONG = ("task", "n", "method", "rules", "problems", "objective", "gap_percent", "gap_error", "seconds")


def long_table(results: Sequence[Results], references: Sequence[Results] = ()) -> Table:
    """One row per task and method, the paper's included: for programs."""
    rows: list[list[ResultCell]] = []
    for r in results:
        for task in r.tasks.values():
            g = gaps.gap(r, task, references)
            known = (None, None) if g is None else (g.percent, g.error)
            rows.append([task.task, r.n, r.label, r.rules, task.count, task.mean, *known, task.seconds])
    for suite, n in dict.fromkeys((r.suite, r.n or 0) for r in results):
        rows += [
            [p.task, n, p.method, "published", TEST_SET_PROBLEMS, p.cost, p.gap, None, p.seconds]
            for p in paper.rows(suite, n)
        ]
    return Table("all figures", LONG, rows)


def memory(results: Results) -> float | None:
    """The most that any task took, GiB."""
    return max(task.memory for task in results.tasks.values()) / GIB or None
