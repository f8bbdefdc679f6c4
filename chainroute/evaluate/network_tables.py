"""Tables of networks: what they reach, and what they take."""

from __future__ import annotations

from collections.abc import Sequence

from chainroute.evaluate import gaps, paper
from chainroute.evaluate.columns import columns, parts
from chainroute.evaluate.results import Results
from chainroute.evaluate.table import Cell, Table
from chainroute.evaluate.tables import footnotes, memory


def complexity_table(results: Sequence[Results], references: Sequence[Results] = ()) -> Table:
    """Gap, memory, parameters and time of policies on the seen tasks, beside the paper's."""
    rows: list[list[Cell]] = []
    for r in results:
        (column, *_) = columns([r], references)
        times = list(column.seconds.values())
        gap, where = gaps.mean(column.gaps.values()), str(r.settings.get("device", ""))
        rows.append([r.label, gap, memory(r), _sizes(r), sum(times) / len(times), where])
    rows += [
        [p.network, p.gap, p.memory, "{} + {}".format(*p.parameters), p.seconds, "paper, L40S"]
        for p in paper.ablation()
        if p.parameters and p.memory
    ]
    heads = ["method", "gap %", "memory GiB", "parameters M", "s per 1,000", "where"]
    return Table("complexity, 50 customers", heads, rows)


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
                memory(r),
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
    return Table("networks, trained for equal times", heads, rows, footnotes(results, references))
