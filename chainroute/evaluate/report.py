"""The page of results: every table and picture that stored results make, put between marks in a page.

    <!-- seen-n50 -->
    ... made from results, replaced each time ...
    <!-- /seen-n50 -->

What stands outside of the marks is left as it is. `chainroute evaluate report` writes docs/results.md
from docs/results, where results of ablations, update rates and seeds have folders of their own: ablation,
rates and seeds.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from chainroute.errors import fail
from chainroute.evaluate import pictures, tables
from chainroute.evaluate.results import Results, read_all, read_references
from chainroute.evaluate.tasks import SIZES
from chainroute.files import decode, load, save

Blocks = dict[str, str]  # Markdown by the name of its mark


def report(page: Path, results: Path, references: Path | None = None, runs: Path | None = None) -> list[str]:
    """Renews the page and its pictures, in `images` beside it; the names of the blocks that were made."""
    if not results.is_dir():
        raise fail("file-not-found", "there is no such folder of results.", str(results))
    found = read_all([results])
    own = read_references(references)
    images = page.parent / "images"
    images.mkdir(parents=True, exist_ok=True)
    made = blocks(found, own, images)
    if apart := _stored(results / "ablation"):
        made["ablation"] = tables.ablation_table(apart, own).markdown()
    if apart := _stored(results / "rates"):
        _picture(made, "update-rates", pictures.update_rates(apart, own), images)
    if apart := _stored(results / "seeds"):
        _picture(made, "seeds", pictures.seeds(apart, own), images)
    trained = sorted(p.parent for p in runs.glob(f"*/{pictures.RUNS}")) if runs else []
    if trained:
        _picture(made, "learning-curves", pictures.curves(trained), images)
    text = decode(load(page), str(page)) if page.exists() else _new_page(made)
    save(page, renewed(text, made).encode())
    return list(made)


def _stored(folder: Path) -> list[Results]:
    return read_all([folder]) if folder.is_dir() else []


def blocks(results: Sequence[Results], references: Sequence[Results], images: Path) -> Blocks:
    """All tables and pictures of results."""
    made: Blocks = {}
    for suite in ("seen", "zero-shot"):
        for n in SIZES:
            group = [r for r in results if (r.suite, r.n) == (suite, n)]
            group.sort(key=lambda r: (r.label, r.rules))
            if not group:
                continue
            name = f"{suite}-n{n}"
            made[f"{name}-methods"] = tables.summary_table(group, references).markdown()
            made[name] = tables.task_table(group, references).markdown()
            _picture(made, f"{name}-bars", pictures.bars(group, references), images)
            _picture(made, f"{name}-time", pictures.trade_off(group, references), images)
    policies = [r for r in results if (r.suite, r.n) == ("seen", 50) and "parts" in r.settings]
    if policies:
        made["complexity"] = tables.complexity_table(policies, references).markdown()
    real = [r for r in results if r.suite == "real"]
    if real:
        made["real"] = tables.real_summary(real).markdown()
        for r in real:
            for library in r.tasks:
                made[f"real-{library}-{r.label}"] = tables.real_table(r, library).markdown()
    return made


def renewed(page: str, blocks: Blocks) -> str:
    """The page with the content between its marks made anew; marks without content are left as they are."""
    for name, content in blocks.items():
        mark = re.compile(rf"(<!-- {re.escape(name)} -->\n).*?(<!-- /{re.escape(name)} -->)", re.DOTALL)
        page = mark.sub(lambda found, text=content: f"{found[1]}\n{text}\n{found[2]}", page)  # type: ignore[misc]
    return page


def _new_page(blocks: Blocks) -> str:
    return "# Results\n\n" + "\n".join(f"<!-- {name} -->\n<!-- /{name} -->\n" for name in blocks)


def _picture(blocks: Blocks, name: str, figure: pictures.Figure, images: Path) -> None:
    pictures.write(figure, images / f"{name}.png")
    blocks[name] = f"![{name.replace('-', ' ')}](images/{name}.png)\n"
