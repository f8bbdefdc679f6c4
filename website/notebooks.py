"""Notebooks: run with what they show kept in them, and made pages of.

    python -m website.notebooks     # or: make notebooks

runs those in docs/notebooks and writes what they print and draw into them.
"""

import base64
import io
import json
import tempfile
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "docs" / "notebooks"
COLOURS = 64  # of a picture that is kept, so that it is small


def executed(notebook: Path) -> Any:
    """The notebook after all its cells were run, in a kernel and an empty folder of its own."""
    import nbformat
    from nbclient import NotebookClient

    content = nbformat.read(notebook, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        resources = {"metadata": {"path": folder}}
        NotebookClient(content, timeout=300, resources=resources, record_timing=False).execute()
    return content


def printed(cell: Any) -> str:
    """What a cell has printed."""
    return "".join("".join(output.get("text", "")) for output in cell.get("outputs", ()))


def main() -> None:
    """Runs all notebooks and keeps what they show."""
    import nbformat
    from PIL import Image

    for notebook in sorted(FOLDER.glob("*.ipynb")):
        content = executed(notebook)
        for cell in content.cells:
            for output in cell.get("outputs", ()):
                if "image/png" in output.get("data", {}):
                    small = io.BytesIO()
                    with Image.open(io.BytesIO(base64.b64decode(output["data"]["image/png"]))) as picture:
                        picture.convert("RGB").quantize(COLOURS).save(small, "PNG", optimize=True)
                    output["data"]["image/png"] = base64.b64encode(small.getvalue()).decode()
        nbformat.write(content, notebook)
        print(notebook)


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
    text.append(f'To run it: <a href="{file}" download>{file}</a>.')
    return {f"{base}.md": "\n\n".join(text) + "\n", **files}


if __name__ == "__main__":
    main()
