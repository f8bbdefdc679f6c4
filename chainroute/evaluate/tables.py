"""Tables: ours beside the paper's, for the terminal, as Markdown, CSV and JSON."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from chainroute.evaluate import gaps, paper
from chainroute.evaluate.real import LIBRARIES
from chainroute.evaluate.results import Results, TaskResult
from chainroute.evaluate.tasks import SUITES, WHOLE

Cell = str | int | float | None
GIB = 2**30
PRINTED_ON_LIBRARIES = ("RF-TE", "CaDA", "CCL", "CCL-Ens")  # methods of the paper
# Of numbers in a column; others have three.
DECIMALS = {"s": 1, "s per 1,000": 1, "s each": 2, "memory GiB": 2, "for s": 0, "P_tr": 2}


@dataclass(frozen=True)
class Table:
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    notes: Sequence[str] = ()

    def texts(self) -> list[list[str]]:
        """The rows as people write them."""
        decimals = [DECIMALS.get(column.rpartition(": ")[2], 3) for column in self.columns]
        return [[text(cell, places) for cell, places in zip(row, decimals, strict=True)] for row in self.rows]

    def markdown(self) -> str:
        lines = [self.columns, ["---"] * len(self.columns), *self.texts()]
        table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        return "\n\n".join([f"**{self.title}**", table, *self.notes]) + "\n"

    def csv(self) -> str:
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(self.rows)
        return buffer.getvalue()

    def as_dict(self) -> dict[str, Any]:
        rows = [dict(zip(self.columns, row, strict=True)) for row in self.rows]
        return {"title": self.title, "rows": rows, "notes": list(self.notes)}


def text(cell: Cell, decimals: int) -> str:
    if isinstance(cell, float):
        return f"{cell:.1f}" if abs(cell) >= 1000 else f"{cell:.{decimals}f}"
    return "" if cell is None else str(cell)


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


def by_suite(results: Iterable[Results]) -> list[list[Results]]:
    """Results that have tasks, those of one suite and size together."""
    groups: dict[tuple[str, int | None], list[Results]] = {}
    for r in results:
        if r.tasks:
            groups.setdefault((r.suite, r.n), []).append(r)
    return [sorted(group, key=lambda r: (r.label, r.rules)) for group in groups.values()]


def suite_title(results: Results) -> str:
    return "instances from libraries" if results.n is None else f"{results.suite}, {results.n} customers"


def task_names(results: Sequence[Results]) -> list[str]:
    """The tasks of results of one suite; those without time windows first, as in the paper."""
    known = [v.name for v in SUITES.get(results[0].suite, ())] or list(LIBRARIES)
    return sorted((name for name in known if any(name in r.tasks for r in results)), key=gaps.with_windows)


# -- the benchmark


@dataclass(frozen=True)
class Column:
    """A method's gaps by task, ours or the paper's."""

    name: str
    gaps: Mapping[str, float | None]
    seconds: Mapping[str, float]
    rules: str
    ours: Results | None = None


def columns(results: Sequence[Results], references: Sequence[Results]) -> list[Column]:
    """Of results of one suite and size, and then of the paper's methods."""
    first = results[0]
    if first.suite == "real":
        return _real_columns(results)
    made = []
    for r in results:
        found = {name: gaps.gap(r, task, references) for name, task in r.tasks.items()}
        percent = {name: None if g is None else g.percent for name, g in found.items()}
        seconds = {name: task.seconds * WHOLE / task.count for name, task in r.tasks.items()}
        made.append(Column(title(r), percent, seconds, r.rules, r))
    rows = paper.rows(first.suite, first.n or 0)
    for method in dict.fromkeys(row.method for row in rows):
        theirs = {row.task: row for row in rows if row.method == method}
        percent = {task: row.gap for task, row in theirs.items()}
        seconds = {task: row.seconds for task, row in theirs.items()}
        made.append(Column(method, percent, seconds, "published"))
    return made


def title(results: Results) -> str:
    """What a column of ours is called."""
    return results.label if results.suite != "zero-shot" else f"{results.label} ({results.rules})"


def task_table(results: Sequence[Results], references: Sequence[Results] = ()) -> Table:
    """Task by task: our cost and gap, and the paper's gaps."""
    first, methods = results[0], columns(results, references)
    tasks = task_names(results)
    heads = ["task"]
    for m in methods:
        heads += [f"{m.name}: {what}" for what in ("cost", "gap %", "s")] if m.ours else [m.name]

    def row(task: str) -> list[Cell]:
        cells: list[Cell] = [task]
        for m in methods:
            if m.ours:
                done = m.ours.tasks.get(task)
                cells += [done.mean, m.gaps.get(task), done.seconds] if done else [None] * 3
            else:
                cells.append(m.gaps.get(task))
        return cells

    def summary(name: str, values: Sequence[Cell]) -> list[Cell]:
        cells: list[Cell] = [name]
        for m, value in zip(methods, values, strict=True):
            cells += [None, value, None] if m.ours else [value]
        return cells

    rows = [row(task) for task in tasks]
    for name, part in parts(tasks):
        rows.append(summary(name, [gaps.mean(map(m.gaps.get, part)) for m in methods]))
    rows.append(summary("best on", [best_on(m, methods, tasks) for m in methods]))
    return Table(suite_title(first), heads, rows, _notes(results, references))


def parts(tasks: Sequence[str]) -> list[tuple[str, list[str]]]:
    """The tasks over which means are taken, by the names of these: without and with time windows, and all."""
    without = [task for task in tasks if not gaps.with_windows(task)]
    within = [task for task in tasks if gaps.with_windows(task)]
    every = [("mean without TW", without), ("mean with TW", within), ("mean", list(tasks))]
    return [(name, part) for name, part in every if part]


def best_on(method: Column, methods: Sequence[Column], tasks: Iterable[str]) -> int:
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


def _notes(results: Sequence[Results], references: Sequence[Results]) -> list[str]:
    """What the figures rest on; methods of which the same is to be said share a sentence."""
    notes: dict[str, list[str]] = {}
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
        notes.setdefault(told, []).append(title(r))
    return [f"{', '.join(titles)}: {told}" for told, titles in notes.items()]


def summary_table(results: Sequence[Results], references: Sequence[Results] = ()) -> Table:
    """Method by method: mean gaps, wins, time and memory."""
    first, methods = results[0], columns(results, references)
    tasks = task_names(results)
    groups = parts(tasks)
    rows: list[list[Cell]] = []
    for m in methods:
        times = [m.seconds[task] for task in tasks if task in m.seconds]
        rows.append(
            [
                m.name,
                *(gaps.mean(map(m.gaps.get, part)) for _, part in groups),
                best_on(m, methods, tasks),
                sum(times) / len(times) if times else None,
                _memory(m.ours) if m.ours else None,
                str(m.ours.settings.get("device", "")) if m.ours else "paper",
            ]
        )
    heads = ["method", *(f"{name.replace('mean', 'gap')} %" for name, _ in groups), "best on"]
    heads += ["s per 1,000", "memory GiB", "where"]
    return Table(f"{suite_title(first)}: methods", heads, rows, _notes(results, references))


def cost_table(results: Sequence[Results]) -> Table:
    """Task by task: how many problems, their mean cost and its standard error, and the time spent."""
    rows: list[list[Cell]] = [
        [t.task, r.n, t.count, t.mean, t.error, t.seconds] for r in results for t in r.tasks.values()
    ]
    return Table("references", ("task", "n", "problems", "mean cost", "standard error", "s"), rows)


LONG = ("task", "n", "method", "rules", "problems", "objective", "gap_percent", "gap_error", "seconds")


def long_table(results: Sequence[Results], references: Sequence[Results] = ()) -> Table:
    """One row per task and method, the paper's included: for programs."""
    rows: list[list[Cell]] = []
    for r in results:
        for task in r.tasks.values():
            g = gaps.gap(r, task, references)
            known = (None, None) if g is None else (g.percent, g.error)
            rows.append([task.task, r.n, r.label, r.rules, task.count, task.mean, *known, task.seconds])
    for suite, n in dict.fromkeys((r.suite, r.n or 0) for r in results):
        rows += [
            [p.task, n, p.method, "published", WHOLE, p.cost, p.gap, None, p.seconds]
            for p in paper.rows(suite, n)
        ]
    return Table("all figures", LONG, rows)


# -- libraries


def real_table(results: Results, library: str) -> Table:
    """Instance by instance: our cost and gap beside the best known and the paper's costs."""
    task = results.tasks[library]
    printed = _printed(library)
    methods = list(dict.fromkeys(m for costs in printed.values() for m in costs))
    each = gaps.named_gaps(task)
    rows: list[list[Cell]] = []
    for name, cost, best, gap in zip(task.names, task.costs, task.best, each, strict=True):
        theirs = [printed.get(name, {}).get(m) for m in methods]
        rows.append([name, best, _number(cost), _number(gap), *theirs])
    heads = ["instance", "best known", results.label, "gap %", *(f"{m} (paper)" for m in methods)]
    notes = [*task.notes]
    if task.apart:
        notes.append(f"By another convention than the best known cost: {', '.join(task.apart)}.")
    if wrong := [n for n, best in zip(task.names, task.best, strict=True) if _below(printed.get(n), best)]:
        notes.append(f"The paper has costs below the best known: {', '.join(wrong)}.")
    return Table(f"{library}: {results.label}", heads, rows, notes)


def _below(printed: Mapping[str, float] | None, best: float) -> bool:
    """Whether some printed cost, which is a whole number, is below the best."""
    return any(cost < best - 1 for cost in (printed or {}).values())


def _printed(library: str) -> dict[str, dict[str, float]]:
    """The paper's costs of instances of a library: by instance, by method."""
    return {row.instance: row.costs for row in paper.real() if row.library == library}


def _real_columns(results: Sequence[Results]) -> list[Column]:
    """Mean gaps by set, over the solved instances of the paper where it has any of the set."""
    made = []
    by_method: dict[str, dict[str, float | None]] = {method: {} for method in PRINTED_ON_LIBRARIES}
    for r in results:
        own: dict[str, float | None] = {}
        for name, task in r.tasks.items():
            printed = _printed(name)
            known = {i: g for i, g in zip(task.names, gaps.named_gaps(task), strict=True) if np.isfinite(g)}
            own[name] = _mean(g for i, g in known.items() if i in printed or not printed)
            for method, column in by_method.items():
                shared = [i for i in known if method in printed.get(i, {})]
                column.setdefault(name, _mean(_paper_gap(printed, method, i, task) for i in shared))
        made.append(Column(title(r), own, {}, r.rules, r))
    return made + [Column(method, column, {}, "published") for method, column in by_method.items()]


def real_summary(results: Sequence[Results]) -> Table:
    """Set by set: mean gaps of ours on all instances and on the paper's, and the paper's own."""
    rows: list[list[Cell]] = []
    methods = PRINTED_ON_LIBRARIES
    for r in results:
        for task in r.tasks.values():
            printed = _printed(task.task)
            each = dict(zip(task.names, gaps.named_gaps(task), strict=True))
            known = {name: gap for name, gap in each.items() if np.isfinite(gap)}
            shared = [name for name in printed if name in known]
            theirs = [
                _mean(_paper_gap(printed, m, name, task) for name in shared if m in printed[name])
                for m in methods
            ]
            rows.append(
                [
                    task.task,
                    r.label,
                    f"{task.solved}/{task.count}",
                    _mean(known.values()),
                    len(shared) or None,
                    _mean(known[name] for name in shared),
                    *theirs,
                    task.seconds / max(task.count, 1),
                ]
            )
    heads = ["set", "method", "solved", "gap %", "in the paper", "gap there %"]
    heads += [f"{m} (paper)" for m in methods]
    return Table("instances from libraries", [*heads, "s each"], rows)


def _paper_gap(printed: Mapping[str, Mapping[str, float]], method: str, name: str, task: TaskResult) -> float:
    return 100 * (printed[name][method] / task.best[task.names.index(name)] - 1)


def _mean(values: Iterable[float]) -> float | None:
    every = list(values)
    return float(np.mean(every)) if every else None


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


# -- networks


def complexity_table(results: Sequence[Results], references: Sequence[Results] = ()) -> Table:
    """Gap, memory, parameters and time of policies on the seen tasks, beside the paper's."""
    rows: list[list[Cell]] = []
    for r in results:
        (column, *_) = columns([r], references)
        times = list(column.seconds.values())
        gap, where = gaps.mean(column.gaps.values()), str(r.settings.get("device", ""))
        rows.append([r.label, gap, _memory(r), _sizes(r), sum(times) / len(times), where])
    rows += [
        [p.network, p.gap, p.memory, "{} + {}".format(*p.parameters), p.seconds, "paper, L40S"]
        for p in paper.ablation()
        if p.parameters and p.memory
    ]
    heads = ["method", "gap %", "memory GiB", "parameters M", "s per 1,000", "where"]
    return Table("complexity, 50 customers", heads, rows)


def _memory(results: Results) -> float | None:
    return max(task.memory for task in results.tasks.values()) / GIB or None


def _sizes(results: Results) -> str:
    """Millions of parameters, of encoder and decoder."""
    counts = results.settings.get("parts", {})
    return " + ".join(f"{counts.get(part, 0) / 1e6:.2f}" for part in ("encoder", "decoder"))


def ablation_table(results: Sequence[Results], references: Sequence[Results] = ()) -> Table:
    """Network by network: gaps, size, memory and time, beside the paper's."""
    printed = {row.switches: row for row in paper.ablation()}
    rows: list[list[Cell]] = []
    for r in sorted(results, key=lambda r: (r.settings.get("switches", "").count("="), r.label)):
        (column, *_) = columns([r], references)
        tasks = list(r.tasks)
        own = {name: gaps.mean(map(column.gaps.get, part)) for name, part in parts(tasks)}
        times = [column.seconds[task] for task in tasks]
        known = printed.get(r.settings.get("switches", ""))
        rows.append(
            [
                r.settings.get("switches") or "(none)",
                r.settings.get("trained_update_rate"),
                ", ".join(f"{rate:g}" for rate in r.settings.get("update_rates") or ()),
                own.get("mean without TW"),
                own.get("mean with TW"),
                own.get("mean"),
                _sizes(r),
                _memory(r),
                sum(times) / len(times),
                r.settings.get("instances"),
                r.settings.get("trained_seconds"),
                known.gap if known else None,
            ]
        )
    heads = [
        "switches",
        "P_tr",
        "P_ts",
        "gap without TW %",
        "gap with TW %",
        "gap %",
        "parameters M",
        "memory GiB",
    ]
    heads += ["s per 1,000", "trained on", "for s", "paper's gap %"]
    told = [i for i in range(len(heads)) if any(row[i] not in (None, "") for row in rows)]
    heads, rows = [heads[i] for i in told], [[row[i] for i in told] for row in rows]
    return Table("networks, trained for equal times", heads, rows, _notes(results, references))
