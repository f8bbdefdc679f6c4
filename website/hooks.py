"""What MkDocs calls while it builds the site (mkdocs.yml): pages that are made, and links that are turned.

The pages in docs/ are written to be read in the repository as well. What lies outside docs/ is brought in
here: the README as the overview, the changelog, CONTRIBUTING.md, the command's own declarations, and the
notebooks.
"""

import os.path
import posixpath
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # MkDocs loads hooks by their path

from mkdocs.structure.files import File, Files  # noqa: E402

from website import command, notebooks  # noqa: E402

BROUGHT_IN = {"README.md": "index.md", "CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s#:]+)(#[^)\s]*)?\)")


def on_files(files: Files, config: Any) -> Files:
    """Adds the pages that are made."""
    for name, to in BROUGHT_IN.items():
        files.append(File.generated(config, to, content=(ROOT / name).read_text()))
    for file in list(files):
        if file.src_uri.endswith(".ipynb"):
            for name, content in notebooks.pages(Path(file.abs_src_path), file.src_uri).items():
                files.append(File.generated(config, name, content=content))
    return files


def on_page_markdown(text: str, page: Any, **_: Any) -> str:
    """Adds what the command declares to its page; turns links through the repository."""
    if page.file.src_uri == "reference/command.md":
        return f"{text}\n{command.sections()}"
    source = {to: name for name, to in BROUGHT_IN.items()}.get(page.file.src_uri, f"docs/{page.file.src_uri}")
    return LINK.sub(lambda link: _link(link, source, page.file.src_uri), text)


def _link(link: re.Match[str], source: str, page: str) -> str:
    """One link of a page. What is in the repository and not on the site is named, not linked."""
    picture, label, target, anchor = link.groups()
    path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
    there = BROUGHT_IN.get(path) or (path.removeprefix("docs/") if path.startswith("docs/") else None)
    if there and not (ROOT / path).is_dir():
        there = re.sub(r"\.ipynb$", ".md", there)
        return f"{picture}[{label}]({os.path.relpath(there, posixpath.dirname(page) or '.')}{anchor or ''})"
    return label if (ROOT / path).exists() else link.group()
