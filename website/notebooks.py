"""Notebooks as pages: Markdown as it is, code and what it printed, pictures as files beside the page."""

import base64
import json
from pathlib import Path


def pages(notebook: Path, name: str) -> dict[str, str | bytes]:
    """The page of a notebook and its pictures, by their names on the site."""
    base = name.removesuffix(".ipynb")
    text, files = [], {}
    for number, cell in enumerate(json.loads(notebook.read_text())["cells"]):
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            text.append(source)
            continue
        text.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            printed = output.get("text") or output.get("data", {}).get("text/plain", "")
            picture = output.get("data", {}).get("image/png")
            if picture:
                file = f"{base}-{number}.png"
                files[file] = base64.b64decode(picture)
                text.append(f"![What the cell draws]({Path(file).name})")
            elif printed:
                text.append(f"```text\n{''.join(printed).rstrip()}\n```")
    file = Path(name).name
    text.append(f"As a notebook: [{file}]({file}).")
    return {f"{base}.md": "\n\n".join(text) + "\n", **files}
