"""Folders of the repository that tests read."""

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
