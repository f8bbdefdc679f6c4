"""The site: it builds strictly, needs no other host, and its made pages say what the code says."""

import os
import re
import shutil
import subprocess
import sys

import pytest
import typer.main
from mkdocs.commands.build import build
from mkdocs.config import load_config
from mkdocs.exceptions import Abort
from where import ROOT

from chainroute.cli.app import app
from website import command, hooks, notebooks
from website.comments import _comment

LOADED = r"""<(?:script|img|iframe|link)\b[^>]*?\b(?:src|href)=["']?((?:https?:)?//[^"'\s>]+)"""


def test_the_site_builds_strictly_and_is_whole(tmp_path):
    """No link or anchor is broken; nothing that a page loads lies on another host; its search works from a
    disk."""
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", tmp_path]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=quiet, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    pages = list(tmp_path.rglob("*.html"))
    assert len(pages) > 20
    for page in pages:
        assert re.findall(LOADED, page.read_text()) == [], page
    for style in tmp_path.rglob("*.css"):
        assert not re.search(r"(@import|url\()\s*[\"']?(https?:)?//", style.read_text()), style
    assert 'id="chainroute.problem.Problem.capacity"' in (tmp_path / "reference/problems.html").read_text()
    search_from_a_disk(tmp_path)


def search_from_a_disk(site):
    """A reader without a network types into the search and finds the page: a word of the reference, and what
    a user types whose problem has no plan."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    if chromium is None:
        return
    with playwright.sync_playwright() as p:
        browser = p.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()
        asked = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto((site / "start.html").as_uri())
        page.keyboard.press("/")
        found = page.locator(".md-search-result__link")
        page.keyboard.type("limit_counts_service")
        first = found.filter(has_text="limit_counts_service").first
        playwright.expect(first).to_be_visible(timeout=20_000)
        page.locator(".md-search__input").press("Control+a")
        page.keyboard.type("no plan")
        playwright.expect(found.first).to_contain_text("When there is no solution", timeout=20_000)
        browser.close()
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []


@pytest.mark.parametrize(
    ("text", "sound"),
    [
        ("# A\n\n[there](#a)", True),
        ("[nowhere](b.md)", False),
        ("[nowhere](#b)", False),
        ("![nothing](b.png)", False),
        ("[absolute](/b.md)", False),
    ],
)
def test_a_broken_link_or_anchor_fails(text, sound, tmp_path):
    """The build has the settings of the site: one that would pass over them proves nothing."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text(text)
    small = {"docs_dir": str(tmp_path / "docs"), "site_dir": str(tmp_path / "site"), "theme": "mkdocs"}
    config = load_config(str(ROOT / "mkdocs.yml"), nav=["index.md"], plugins=[], hooks=[], extra={}, **small)
    if sound:
        build(config)
    else:
        with pytest.raises(Abort):
            build(config)


@pytest.mark.parametrize(
    ("source", "page", "link", "becomes"),
    [
        ("README.md", "index.md", "[a](docs/solving.md#effort)", "[a](solving.md#effort)"),
        ("README.md", "index.md", "![a](docs/images/dairy.png)", "![a](images/dairy.png)"),
        ("docs/errors.md", "errors.md", "[a](../CHANGELOG.md)", "[a](changelog.md)"),
        ("docs/reference/client.md", "reference/client.md", "[a](../service.md)", "[a](../service.md)"),
        ("docs/paper.md", "paper.md", "[the judge](../chainroute/plan/check.py)", "the judge"),
        ("docs/results.md", "results.md", "[results](results)", "results"),
        ("docs/results.md", "results.md", "[a](gone.md)", "[a](gone.md)"),
        ("docs/results.md", "results.md", "[a](https://example.org/b.md)", "[a](https://example.org/b.md)"),
    ],
)
def test_links_through_the_repository_become_links_through_the_site(source, page, link, becomes):
    """What is not on the site is named; what is nowhere stays, so that the strict build finds it."""
    assert hooks.LINK.sub(lambda match: hooks._link(match, source, page), link) == becomes


def test_the_reference_of_the_command_has_every_verb_and_option():
    """Also those of the commands that a verb has; and their defaults."""
    text = command.sections()

    def walk(group, path=()):
        for name, verb in group.commands.items():
            section = text.split(f"# {' '.join([*path, name])}\n")[1].split("\n#")[0]
            for parameter in verb.params:
                for option in parameter.opts if parameter.param_type_name == "option" else ():
                    assert f"`{option}`" in section, (name, option)
            if hasattr(verb, "commands"):
                walk(verb, (*path, name))

    walk(typer.main.get_command(app))
    assert "| `--port` |" in text
    assert "chainroute check FILE SOLUTION [OPTIONS]" in text


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["a: int  # how many"], "How many."),
        (["a: int = ()  # type: ignore[assignment]  # (N,) each"], "(N,) each."),
        (["b: int  # other", "# Above it.", "a: int"], "Above it."),
        (["# -- a heading", "a: int"], ""),
        (["a: int"], ""),
    ],
)
def test_comments_of_fields_are_their_descriptions(lines, said):
    assert _comment(lines, len(lines), len(lines)) == said


def test_a_notebook_becomes_a_page(tmp_path):
    """Text as it is, code fenced, what was printed below it, and pictures as files beside the page."""
    file = tmp_path / "n.ipynb"
    file.write_text(
        """{"cells": [
        {"cell_type": "markdown", "source": ["# One\\n", "two"]},
        {"cell_type": "code", "source": ["print(1)"], "outputs": [
            {"output_type": "stream", "text": ["1\\n"]},
            {"output_type": "execute_result", "data": {"text/plain": ["'x'"]}},
            {"output_type": "display_data", "data": {"image/png": "cG5n", "text/plain": ["<Figure>"]}}]}]}"""
    )
    made = notebooks.pages(file, "a/n.ipynb")
    assert made["a/n-1.png"] == b"png"
    assert made["a/n.md"].startswith(
        "# One\ntwo\n\n```python\nprint(1)\n```\n\n```text\n1\n```\n\n```text\n'x'\n```"
    )
    assert "![What the cell draws](n-1.png)" in made["a/n.md"]
