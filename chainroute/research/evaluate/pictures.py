"""Pictures of results: gaps by task, gap against time, learning curves, update rates, scatter over seeds."""

from __future__ import annotations

import csv
import io
import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec

import numpy as np

from chainroute.errors import fail
from chainroute.formats.plot import GREY, INK, PALETTE, STYLE
from chainroute.problem.measure import FloatArray
from chainroute.research.evaluate import gaps
from chainroute.research.evaluate.columns import MethodColumn, by_suite, columns, suite_title, task_names
from chainroute.research.evaluate.results import Results
from chainroute.research.evaluate.tasks import SUITES
from chainroute.runtime.files import save

DPI = 110
# Of the paper's methods.
SHADES = ("#c9d3dc", "#aab8c4", "#8a9aa8", "#b9c7b4", "#d8c9b0", "#c7b9cf", "#9fb3b0")
RUNS = "curve.csv"

Axes = Any  # matplotlib is imported late
Figure = Any
P = ParamSpec("P")


def styled(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    """The picture in the style of all our pictures."""

    @wraps(draw)
    def run(*args: P.args, **kwargs: P.kwargs) -> Figure:
        try:
            from matplotlib import rc_context
        except ImportError:
            message = "pictures need matplotlib: pip install 'chainroute[plot]'."
            raise fail("missing-extra", message) from None
        with rc_context(STYLE):
            return draw(*args, **kwargs)

    return run


@styled
def bars(results: Sequence[Results], references: Sequence[Results] = ()) -> Figure:
    """The gap of each task, a panel for each suite and size: ours in colour, the paper's methods in grey."""
    groups = by_suite(results)
    most = max(len(task_names(group)) for group in groups)
    figure = _figure(width=max(7.0, 0.32 * most + 3), height=3.6 * len(groups))
    for axes, group in zip(_panels(figure, len(groups)), groups, strict=True):
        _bars(axes, group, references)
    return figure


def _bars(axes: Axes, results: Sequence[Results], references: Sequence[Results]) -> None:
    shown, tasks = columns(results, references), task_names(results)
    width = 0.85 / len(shown)
    at = np.arange(len(tasks))
    for i, column in enumerate(shown):
        heights = [column.gaps.get(task) or 0.0 for task in tasks]
        axes.bar(at + (i - (len(shown) - 1) / 2) * width, heights, width, color=_colour(column, shown),
                 label=column.name)  # fmt: skip
    axes.set_xticks(at, tasks, rotation=45, ha="right", rotation_mode="anchor")
    axes.set_xlim(-0.6, len(tasks) - 0.4)
    axes.set_ylabel("gap [%]")
    axes.set_title(suite_title(results[0]), loc="left")
    axes.legend(ncols=4, loc="upper left", bbox_to_anchor=(0, -0.28))
    _plain(axes)


@styled
def trade_off(results: Sequence[Results], references: Sequence[Results] = ()) -> Figure:
    """Mean gap against time for 1,000 problems: a point for each method that has every task, a panel for each
    suite and size. Instances from libraries have no such time."""
    groups = by_suite(r for r in results if r.suite in SUITES)
    if not groups:
        message = "none of these results is of a suite of random problems."
        raise fail("bad-option", message, "picture", "Give results of the suites seen or zero-shot.")
    figure = _figure(width=6.0, height=4.0 * len(groups))
    for axes, group in zip(_panels(figure, len(groups)), groups, strict=True):
        _trade_off(axes, group, references)
    return figure


def _trade_off(axes: Axes, results: Sequence[Results], references: Sequence[Results]) -> None:
    shown, tasks = columns(results, references), task_names(results)
    for column in shown:
        gap = gaps.mean(map(column.gaps.get, tasks))
        times = [column.seconds[task] for task in tasks if task in column.seconds]
        if gap is None or not times:
            continue
        seconds = sum(times) / len(times)
        axes.plot(seconds, gap, "o" if column.ours else "s", color=_colour(column, shown), markersize=6)
        axes.annotate(column.name, (seconds, gap), (5, 4), textcoords="offset points", fontsize=7)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter("{x:g}")
    axes.set_xlabel("seconds for 1,000 problems (each where its authors measured it)")
    axes.set_ylabel("mean gap [%]")
    axes.set_title(suite_title(results[0]), loc="left")
    axes.margins(0.15)
    _plain(axes)


@styled
def curves(runs: Sequence[Path]) -> Figure:
    """How the validation gap and the loss of the updates before it change with training, one line for each
    run's folder; a run that did not keep its loss, or not from the beginning, has none there."""
    figure = _figure(width=6.5, height=6.4)
    gap, loss = _panels(figure, 2)
    for i, run in enumerate(runs):
        with (run / RUNS).open(newline="") as file:
            rows = list(csv.DictReader(file))
        style = {"marker": ".", "color": PALETTE[i % len(PALETTE)], "label": run.name}
        for axes, column in ((gap, "estimated_gap"), (loss, "training_loss")):
            known = [row for row in rows if row.get(column) and int(row["instances"])]
            if known:
                axes.plot(
                    [int(r["instances"]) / 1e6 for r in known], [float(r[column]) for r in known], **style
                )
    gap.set_yscale("log")
    gap.yaxis.set_major_formatter("{x:g}")
    gap.yaxis.set_minor_formatter("{x:g}")
    gap.set_ylabel("estimated gap, one greedy pass [%]")
    gap.set_title("Validation while training", loc="left")
    gap.legend()
    loss.set_xlabel("millions of problems seen")
    loss.set_xlim(gap.get_xlim())
    loss.set_ylabel("loss")
    loss.set_title("Loss", loc="left")
    for axes in (gap, loss):
        _plain(axes)
    return figure


@styled
def update_rates(results: Sequence[Results], references: Sequence[Results] = ()) -> Figure:
    """Mean gap, and time for 1,000 problems, by the update rate in training (P_tr) and in testing (P_ts)."""
    gap, seconds = {}, {}
    for r in results:
        trained, tested = r.settings.get("trained_update_rate"), r.settings.get("update_rates")
        (column, *_) = columns([r], references)
        mean = gaps.mean(column.gaps.values())
        if trained is not None and tested and len(tested) == 1 and mean is not None:
            pair = float(trained), float(tested[0])
            gap[pair] = mean
            seconds[pair] = float(np.mean(list(column.seconds.values())))
    if not gap:
        message = "no result has one update rate in training and one given with --update-rate, and gaps."
        raise fail("bad-option", message, "plot", "Give results that have them.")
    rows, heads = (sorted({pair[i] for pair in gap}) for i in (0, 1))
    figure = _figure(width=2 * (1.6 + 0.8 * len(heads)), height=1.4 + 0.5 * len(rows))
    for place, (title, cells) in enumerate((("mean gap [%]", gap), ("seconds for 1,000 problems", seconds))):
        axes = figure.add_subplot(1, 2, place + 1)
        grid = np.array([[cells.get((tr, ts), np.nan) for ts in heads] for tr in rows])
        _heat_map(axes, grid, rows, heads)
        axes.set_xlabel("P_ts: share of steps that re-embed, in testing")
        axes.set_ylabel("P_tr, in training")
        axes.set_title(title, loc="left")
    return figure


def _heat_map(axes: Axes, grid: FloatArray, rows: Sequence[float], heads: Sequence[float]) -> None:
    axes.imshow(grid, cmap="YlGnBu_r", aspect="auto")
    least, most = np.nanmin(grid), np.nanmax(grid)
    for (i, j), value in np.ndenumerate(grid):
        if np.isfinite(value):
            ink = "white" if value < least + 0.45 * (most - least) else INK  # on dark cells
            axes.text(j, i, f"{value:.2f}", ha="center", va="center", color=ink)
    axes.set_xticks(range(len(heads)), [f"{value:g}" for value in heads])
    axes.set_yticks(range(len(rows)), [f"{value:g}" for value in rows])


@styled
def seeds(results: Sequence[Results], references: Sequence[Results] = ()) -> Figure:
    """Gaps by task with the standard deviation over results that differ in their seed only; the paper's in
    grey."""
    groups: dict[str, list[MethodColumn]] = defaultdict(list)
    for r in results:
        same = {key: value for key, value in r.settings.items() if key != "seed"}
        groups[json.dumps([same, r.rules], sort_keys=True)].append(columns([r], references)[0])
    figure = _figure(width=7.0, height=3.4)
    axes = figure.add_subplot()
    tasks = sorted(results[0].tasks, key=gaps.with_windows)
    for i, group in enumerate(groups.values()):
        values = np.array([[c.gaps.get(task) or np.nan for task in tasks] for c in group], float)
        label = f"{min((c.name for c in group), key=len)}: {len(group)} seeds"
        spread = values.std(0, ddof=1) if len(group) > 1 else None
        axes.errorbar(np.arange(len(tasks)) + 0.12 * i, values.mean(0), spread, fmt="o", markersize=4,
                      capsize=3, color=PALETTE[i % len(PALETTE)], label=label)  # fmt: skip
    for column, shade in zip(columns(results[:1], references)[::-1], SHADES[2:4], strict=False):
        if not column.ours:  # the paper's own, without and with ReLD
            heights = [column.gaps.get(task) or np.nan for task in tasks]
            axes.plot(range(len(tasks)), heights, "s", markersize=3.5, color=shade, label=column.name)
    axes.set_xticks(range(len(tasks)), tasks, rotation=45, ha="right", rotation_mode="anchor")
    axes.set_ylabel("gap [%], one standard deviation")
    axes.legend()
    _plain(axes)
    return figure


PICTURES = {"bars": bars, "trade-off": trade_off, "update-rates": update_rates, "seeds": seeds}


@styled
def write(figure: Figure, path: Path) -> None:
    """Writes the figure as .png, .svg or .pdf, as its name says."""
    kind = path.suffix.removeprefix(".").lower()
    dates = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}  # left out: same picture, same file
    data = io.BytesIO()
    figure.savefig(data, format=kind, dpi=DPI, metadata=dates.get(kind))
    save(path, data.getvalue())


def _figure(width: float, height: float) -> Figure:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def _panels(figure: Figure, count: int) -> Sequence[Axes]:
    return [figure.add_subplot(count, 1, i + 1) for i in range(count)]


def _colour(column: MethodColumn, shown: Sequence[MethodColumn]) -> str:
    ours, theirs = ([c for c in shown if bool(c.ours) is own] for own in (True, False))
    return PALETTE[ours.index(column) % len(PALETTE)] if column.ours else SHADES[theirs.index(column) % 7]


def _plain(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color=GREY, alpha=0.25, linewidth=0.6)
    axes.set_axisbelow(True)
