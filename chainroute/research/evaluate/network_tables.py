"""Tables of networks: what they reach, and what they take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from chainroute.research.evaluate import gaps, paper
from chainroute.research.evaluate.columns import MethodColumn, columns, parts
from chainroute.research.evaluate.results import Results
from chainroute.research.evaluate.tables import footnotes, memory
from chainroute.runtime.table import ResultCell, Table


def complexity_table(results: Sequence[Results], references: Sequence[Results] = ()) -> Table:
    """Gap, memory, parameters and time of policies on the seen tasks, beside the paper's."""
    rows: list[list[ResultCell]] = []
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
    rows: list[list[ResultCell]] = []
    for r in sorted(results, key=lambda r: (r.settings.get("switches", "").count("="), r.label)):
        (column, *_) = columns([r], references)
        own = _means(r, column)
        times = [column.seconds[task] for task in r.tasks]
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
    return _told("networks, trained alike", heads, rows, footnotes(results, references))


def _told(title: str, heads: list[str], rows: list[list[ResultCell]], notes: Sequence[str]) -> Table:
    """The table without columns that have nothing in any row."""
    told = [i for i in range(len(heads)) if any(row[i] not in (None, "") for row in rows)]
    return Table(title, [heads[i] for i in told], [[row[i] for i in told] for row in rows], notes)


METHODS = {  # recipes of recipes/rivals, and what the paper calls their networks
    "mtpomo": "MTPOMO",
    "mvmoe": "MVMoE",
    "mvmoe-encoder": "MVMoE, experts in the encoder alone",
    "rf-te": "RF-TE",
    "cada": "CaDA",
    "cada-reld": "CaDA+ReLD",
    "cada-hd": "CaDA+ReLD with 4 decoder layers",
    "asw-tam": "ASW-TAM",
    "ccl": "CCL",
    "ccl-reld-no-tsnr": "CCL+ReLD - TSNR",
    "ccl-reld-no-rgcr": "CCL+ReLD - RGCR",
    "ccl-reld-self": "CCL+ReLD with self-attention",
    "ccl-light": "light CCL+ReLD",
    "ccl-reld": "CCL+ReLD",
    "ccl-ens": "CCL-Ens",
    "graph": "CCL+ReLD, told distances and no coordinates",
    "graph-plain": "the same without RGCR and TSNR",
}
SEED = "-seed"  # between the recipe and the seed in a label
LIGHT = 1.38  # per cent: what the paper's text says of light CCL


def methods_table(results: Sequence[Results], engines: Mapping[str, str] | None = None) -> Table:
    """Method by method, over its seeds: gaps and their spread, size, memory and time, beside the paper's.

    Labels are a recipe's name and a seed; `engines` says by which engine each label was trained.
    """
    printed = {"light CCL+ReLD": [LIGHT]}
    for row in paper.rows("seen", 50):
        printed.setdefault(row.method, []).append(row.gap)
    printed |= {network.network: [network.gap] for network in paper.ablation()}
    rows: list[list[ResultCell]] = []
    for recipe, method in METHODS.items():
        seeds = [r for r in results if r.label.rpartition(SEED)[0] == recipe]
        if not seeds:
            continue
        found = [columns([r], ())[0] for r in seeds]
        means = [_means(r, column) for r, column in zip(seeds, found, strict=True)]
        gap = [g for mean in means if (g := mean.get("mean")) is not None]
        trained = [r.settings.get("instances") or 0 for r in seeds]
        rows.append(
            [
                method,
                *(
                    gaps.mean(mean.get(part) for mean in means)
                    for part in ("mean without TW", "mean with TW")
                ),
                gaps.mean(gap),
                max(gap) - min(gap) if len(gap) > 1 else None,
                len(seeds),
                _sizes(seeds[0]),
                max(memory(r) or 0 for r in seeds),
                gaps.mean(seconds for column in found for seconds in column.seconds.values()),
                sum(trained) // len(trained),
                gaps.mean(r.settings.get("trained_seconds") for r in seeds),
                ", ".join(dict.fromkeys((engines or {}).get(r.label, "") for r in seeds)),
                gaps.mean(printed.get(method, [])),
            ]
        )
    heads = ["method", "gap without TW %", "gap with TW %", "gap %", "spread", "seeds", "parameters M"]
    heads += ["memory GiB", "s per 1,000", "trained on", "for s", "engine", "paper's gap %"]
    return _told("methods, trained alike", heads, rows, footnotes(results, ()))


def _means(results: Results, column: MethodColumn) -> dict[str, float | None]:
    return {name: gaps.mean(map(column.gaps.get, part)) for name, part in parts(list(results.tasks))}
