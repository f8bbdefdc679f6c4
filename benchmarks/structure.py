"""Counts the size and the shape of the code: python -m benchmarks.structure [CHECKOUT]

It prints the entries of the package, layers, lines, the largest class, files that name an attribute, and the
places that ask what a problem has beyond the 48 variants.
"""

import ast
import re
import sys
import tomllib
from pathlib import Path

ATTRIBUTES = ("skills", "prize", "open_start")
SOURCES = (".py", ".js")


def counts(root: Path) -> dict[str, object]:
    package = root / "chainroute"
    files = [path for path in package.rglob("*") if path.suffix in SOURCES]
    texts = {path: path.read_text() for path in files}
    python = {path: text for path, text in texts.items() if path.suffix == ".py"}
    contracts = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    entries = {
        path.relative_to(package).parts[0]
        for path in package.rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    entries = {name for name in entries if not name.startswith("__")}
    return {
        "entries of the package": len(entries),
        "layers": len(contracts[0]["layers"]),
        "Python files": len(python),
        "lines of Python": sum(text.count("\n") for text in python.values()),
        "largest class, lines": max(largest_class(text) for text in python.values()),
        **{f"files that name {name}": naming(name, texts) for name in ATTRIBUTES},
        "places that ask extras": sum(asks(text) for text in python.values()),
    }


def largest_class(text: str) -> int:
    nodes = ast.walk(ast.parse(text))
    sizes = (
        node.end_lineno - node.lineno + 1
        for node in nodes
        if isinstance(node, ast.ClassDef) and node.end_lineno
    )
    return max(sizes, default=0)


def naming(name: str, texts: dict[Path, str]) -> int:
    """How many files hold the name as a word of its own."""
    return sum(bool(re.search(rf"(?<![A-Za-z_]){name}(?![a-z_])", text)) for text in texts.values())


def asks(text: str) -> int:
    """How many expressions read `extras`, or require a problem without them."""
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Attribute)]
    return sum(node.attr in ("extras", "require_plain") for node in nodes)


if __name__ == "__main__":
    for name, value in counts(Path(sys.argv[1] if len(sys.argv) > 1 else ".")).items():
        print(f"{name:28} {value}")
