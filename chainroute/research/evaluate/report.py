"""Pages of results: every table, picture and figure that stored results make, put between marks.

    <!-- seen-n50 -->
    ... a table or a picture, replaced each time ...
    <!-- /seen-n50 -->

    The mean gap is <!--=seen-n50 n50-->1.122<!--/--> %.

What stands outside of the marks is left as it is. Results of ablations, rivals, update rates and seeds have
folders of their own beside the others: ablation and rivals (for equal seconds), rivals-long (for ten times as
many), ablation-updates and rivals-updates (for equal updates), rates and seeds; any other folder gives single
figures only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from chainroute.errors import ChainRouteError, Fault, fail
from chainroute.research.evaluate import gaps, paper, pictures, tables
from chainroute.research.evaluate.columns import by_suite, columns, parts, task_names, trained_on_it
from chainroute.research.evaluate.library_tables import real_summary, real_table
from chainroute.research.evaluate.network_tables import ablation_table, complexity_table, methods_table
from chainroute.research.evaluate.results import Results, read_all, read_references
from chainroute.runtime.files import decode, load, save
from chainroute.runtime.table import text

Blocks = dict[str, str]  # Markdown by the name of its mark
Figures = dict[str, str]  # by their names
FIGURE = re.compile(r"<!--=([^>]+?)-->.*?<!--/-->")


def report(pages: Sequence[Path], results: Path, runs: Path | None = None) -> list[str]:
    """Renews the pages, the pictures in docs/images and the rows of instances; the names of what was made.

    Gaps are to the references that come with the package, so that pages say the same everywhere.
    """
    if not results.is_dir():
        raise fail("file-not-found", "there is no such folder of results.", str(results))
    own, found = read_references(), read_all([results])
    apart = {folder.name: read_all([folder]) for folder in sorted(results.iterdir()) if folder.is_dir()}
    images = results.parent / "images"
    images.mkdir(parents=True, exist_ok=True)
    made = blocks(found, own, images)
    _rows_of_instances(found, results)
    for suffix in ("", "-long", "-updates"):
        if networks := apart.get(f"ablation{suffix}"):
            made[f"ablation{suffix}"] = ablation_table(networks, own).markdown()
        if methods := apart.get(f"rivals{suffix}"):
            made[f"rivals{suffix}"] = methods_table(methods).markdown()
    if rates := apart.get("rates"):
        _picture(made, "update-rates", pictures.update_rates(rates, own), images)
    if seeds := apart.get("seeds"):
        _picture(made, "seeds", pictures.seeds(seeds, own), images)
    trained = sorted(p.parent for p in runs.glob(f"*/{pictures.RUNS}")) if runs else []
    if trained:
        _picture(made, "learning-curves", pictures.curves(trained), images)
    single = figures(found, own) | {f"paper {row.network}": f"{row.gap:.3f}" for row in paper.ablation()}
    for name, group in apart.items():
        single |= {f"{name} {key}": value for key, value in figures(group, own).items()}
    texts = {page: decode(load(page), str(page)) if page.exists() else _new_page(made) for page in pages}
    _require_known(texts, single)
    for page, before in texts.items():
        save(page, renewed(before, made, single).encode())
    return list(made)


def blocks(results: Sequence[Results], references: Sequence[Results], images: Path) -> Blocks:
    """All tables and pictures of results."""
    made: Blocks = {}
    for group in by_suite(results):
        if group[0].suite == "real":
            made["real"] = real_summary(group).markdown()
            continue
        if trained_on_it(group[0]):
            made[f"trained-others-n{group[0].n}"] = tables.task_table(group, references).markdown()
            continue
        name = f"{group[0].suite}-n{group[0].n}"
        made[f"{name}-methods"] = tables.summary_table(group, references).markdown()
        made[name] = tables.task_table(group, references).markdown()
        _picture(made, f"{name}-bars", pictures.bars(group, references), images)
        _picture(made, f"{name}-time", pictures.trade_off(group, references), images)
    policies = [r for r in results if (r.suite, r.n) == ("seen", 50) and "parts" in r.settings]
    if policies:
        made["complexity"] = complexity_table(policies, references).markdown()
    return made


def figures(results: Iterable[Results], references: Sequence[Results]) -> Figures:
    """Mean gaps by suite and method, in per cent: "seen-n50 n50", "seen-n50 n50 without TW"; of sets from
    libraries the row of the summary: "X n100 gap there %", "X n100 solved"."""
    made: Figures = {}
    for group in by_suite(results):
        if group[0].suite == "real":
            summary = real_summary(group)
            for row in summary.texts():
                made |= {
                    f"{row[0]} {row[1]} {head}": cell for head, cell in zip(summary.columns, row, strict=True)
                }
            continue
        suite, tasks = "trained-others" if trained_on_it(group[0]) else group[0].suite, task_names(group)
        name = f"{suite}-n{group[0].n}"
        for column in columns(group, references):
            for part, its_tasks in parts(tasks):
                gap = gaps.mean(map(column.gaps.get, its_tasks))
                key = f"{name} {column.name} {part.removeprefix('mean')}".strip()
                made[" ".join(key.split())] = text(gap, 3)
    return made


def renewed(page: str, blocks: Blocks, figures: Figures) -> str:
    """The page with the content between its marks replaced; marks of blocks that were not made are left."""
    for name, content in blocks.items():
        mark = re.compile(rf"(<!-- {re.escape(name)} -->\n).*?(<!-- /{re.escape(name)} -->)", re.DOTALL)
        page = mark.sub(lambda found, text=content: f"{found[1]}\n{text}\n{found[2]}", page)  # type: ignore[misc]
    return FIGURE.sub(lambda found: f"<!--={found[1]}-->{figures.get(found[1], '')}<!--/-->", page)


def _require_known(texts: dict[Path, str], figures: Figures) -> None:
    faults = [
        Fault("bad-result", f"no stored result gives the figure '{name}'.", str(page))
        for page, text in texts.items()
        for name in FIGURE.findall(text)
        if name not in figures
    ]
    if faults:
        raise ChainRouteError(faults)


def _rows_of_instances(results: Iterable[Results], folder: Path) -> None:
    """The table of every set from a library, as a file beside the results."""
    for r in results:
        if r.suite == "real":
            for library in r.tasks:
                table = real_table(r, library)
                save(folder / f"{library}-{r.label}.csv", table.csv().encode())


def _new_page(blocks: Blocks) -> str:
    return "# Results\n\n" + "\n".join(f"<!-- {name} -->\n<!-- /{name} -->\n" for name in blocks)


def _picture(blocks: Blocks, name: str, figure: pictures.Figure, images: Path) -> None:
    pictures.write(figure, images / f"{name}.png")
    blocks[name] = f"![{name.replace('-', ' ')}](images/{name}.png)\n"
