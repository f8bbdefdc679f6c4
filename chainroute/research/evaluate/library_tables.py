"""Tables of instances from libraries: one by one, and set by set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from chainroute.research.evaluate import gaps
from chainroute.research.evaluate.columns import PRINTED_ON_LIBRARIES, mean_of, paper_gap, printed_costs
from chainroute.research.evaluate.results import Results
from chainroute.runtime.table import ResultCell, Table


def real_table(results: Results, library: str) -> Table:
    """Instance by instance: our cost and gap beside the best known and the paper's costs."""
    task = results.tasks[library]
    printed = printed_costs(library)
    methods = list(dict.fromkeys(m for costs in printed.values() for m in costs))
    each = gaps.named_gaps(task)
    rows: list[list[ResultCell]] = []
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


def real_summary(results: Sequence[Results]) -> Table:
    """Set by set: mean gaps of ours on all instances and on the paper's, and the paper's own, which are
    zero-shot: beside networks that were trained on a law made to resemble such sets they do not stand."""
    rows: list[list[ResultCell]] = []
    for r in sorted(results, key=resembles):  # the others first
        methods = () if resembles(r) else PRINTED_ON_LIBRARIES
        for task in r.tasks.values():
            printed = printed_costs(task.task)
            each = dict(zip(task.names, gaps.named_gaps(task), strict=True))
            known = {name: gap for name, gap in each.items() if np.isfinite(gap)}
            shared = [name for name in printed if name in known]
            theirs = [
                mean_of(paper_gap(printed, m, name, task) for name in shared if m in printed[name])
                for m in methods
            ] or [None] * len(PRINTED_ON_LIBRARIES)
            rows.append(
                [
                    task.task,
                    r.label,
                    f"{task.solved}/{task.count}",
                    mean_of(known.values()),
                    len(shared) or None,
                    mean_of(known[name] for name in shared),
                    *theirs,
                    task.seconds / max(task.count, 1),
                ]
            )
    heads = ["set", "method", "solved", "gap %", "in the paper", "gap there %"]
    heads += [f"{m} (paper)" for m in PRINTED_ON_LIBRARIES]
    return Table("instances from libraries", [*heads, "s each"], rows)


def resembles(results: Results) -> bool:
    """Whether a network was trained on a law that was made to resemble sets from libraries."""
    return results.settings.get("trained_law") == "wide"


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
