"""Folders and pages of the repository that tests read."""

import re
import textwrap
import tomllib
from pathlib import Path

TESTS = Path(__file__).parent
DATA = TESTS / "data"
ROOT = TESTS.parent
PACKAGE = ROOT / "chainroute"
EXAMPLES = PACKAGE / "examples"
RECIPES = ROOT / "recipes"
DOCS = ROOT / "docs"
SHARED = ROOT.parent / "shared" / "benchmarks"  # sets of instances that are not part of the repository

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.glob("*.md"))]


def page_text(page: Path) -> str:
    """Returns a page with its shell blocks indented, as older blocks are."""
    shell = re.compile(r"^```(?:sh|bash)\n(.+?)^```", re.MULTILINE | re.DOTALL)
    return shell.sub(lambda block: textwrap.indent(block[1], "    "), page.read_text(encoding="utf-8"))
