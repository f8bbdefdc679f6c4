"""The curve of problems a second against the gap, of rows that `benchmarks.throughput --csv` has written.

python -m benchmarks.throughput_curve    # docs/images/throughput.png, and what each has at a gap of 1 %
"""

import argparse
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path

from benchmarks.rows import read_rows
from benchmarks.throughput import Row
from chainroute.formats.plot import GREY, PALETTE
from chainroute.research.evaluate.pictures import Figure, styled, write

ROWS = Path(__file__).with_name("throughput.csv")
PICTURE = Path(__file__).parents[1] / "docs" / "images" / "throughput.png"
LABELS = {  # by the first word of a method
    "policy": "best trajectory",
    "recombined": "recombined",
    "polished": "polished",
    "product": "solve_many",
    "pyvrp": "PyVRP",
}


def kind_of(row: Row) -> str:
    """What a row is drawn with: the kind of its method, and the weights unless they are the usual ones."""
    label = LABELS[row.method.split("-")[0]]
    return label if row.weights in ("", "all") else f"{label}, {row.weights}"


def frontier(rows: Iterable[Row]) -> list[Row]:
    """Those rows that none beats in both speed and gap, the fastest first."""
    best: list[Row] = []
    for row in sorted(rows, key=lambda r: -r.per_second):
        if not best or row.gap < best[-1].gap:
            best.append(row)
    return best


def at_gap(rows: Iterable[Row], gap: float) -> float | None:
    """Problems a second at a gap, between the two rows of the frontier that lie around it; None if there are
    none on either side."""
    best = frontier(rows)
    for fast, slow in pairwise(best):
        if slow.gap <= gap <= fast.gap:
            share = (gap - slow.gap) / (fast.gap - slow.gap)
            return slow.per_second + share * (fast.per_second - slow.per_second)
    return None


def ratios(rows: Sequence[Row], gap: float) -> str:
    """A table of what each network has at a gap, but for `solve_many`, and PyVRP, case by case."""
    lines = [f"| at a gap of {gap:g} % | network | ours | PyVRP | ratio |", "| --- | --- | --- | --- | --- |"]
    for case, weights in dict.fromkeys((row.case, row.weights) for row in rows if row.weights):
        mine = [row for row in rows if row.case == case]
        ours = at_gap((row for row in mine if row.weights == weights and not _product(row)), gap)
        theirs = at_gap((row for row in mine if not row.weights), gap)
        speeds = ["" if speed is None else f"{speed:,.0f}" for speed in (ours, theirs)]
        ratio = f"{ours / theirs:.1f}" if ours and theirs else ""
        lines.append(f"| {case} | {weights} | {speeds[0]} | {speeds[1]} | {ratio} |")
    return "\n".join(lines)


@styled
def picture(rows: Sequence[Row]) -> Figure:
    """A panel for each case: gaps against problems a second, a line for each kind of method."""
    from matplotlib.figure import Figure

    cases, kinds = (list(dict.fromkeys(map(of, rows))) for of in (lambda row: row.case, kind_of))
    across = max(1, len(cases) // 2)
    figure = Figure(figsize=(3.4 * across, 3.0 * -(-len(cases) // across)), layout="constrained")
    panels = figure.subplots(-(-len(cases) // across), across, squeeze=False).flat
    for axes, case in zip(panels, cases, strict=False):
        axes.axhline(1.0, color=GREY, linewidth=0.8)
        for i, kind in enumerate(kinds):
            own = sorted((r.per_second, r.gap) for r in rows if (r.case, kind_of(r)) == (case, kind))
            speeds, gaps = zip(*own, strict=True) if own else ((), ())
            axes.plot(speeds, gaps, "o-", markersize=4, color=PALETTE[i], label=kind)
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.set_title(case.replace("-0", "-"), loc="left")
        axes.set_xlabel("problems a second")
        axes.set_ylabel("gap [%]")
        axes.set_ylim(min(0.0, *(row.gap for row in rows)))
    figure.legend(*figure.axes[0].get_legend_handles_labels(), ncols=len(kinds), loc="outside lower center")
    return figure


def _product(row: Row) -> bool:
    return row.method.startswith("product")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--csv", type=Path, default=ROWS)
    parser.add_argument("--picture", type=Path, default=PICTURE)
    parser.add_argument("--gap", type=float, default=1.0)
    args = parser.parse_args(arguments)
    rows = read_rows(args.csv, Row)
    write(picture(rows), args.picture)
    print(ratios(rows, args.gap))


if __name__ == "__main__":
    main()
