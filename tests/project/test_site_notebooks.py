"""The notebooks of the documentation run, and show what is kept in them."""

import nbformat
import pytest

from website.notebooks import FOLDER, executed, printed

CHANCE = ("solve(", "train(")  # from there on a notebook shows what depends on the machine
NOTEBOOKS = [
    pytest.param(file, id=file.stem, marks=pytest.mark.slow if file.stem == "train" else ())
    for file in sorted(FOLDER.glob("*.ipynb"))
]


@pytest.mark.parametrize("file", NOTEBOOKS)
def test_a_notebook_runs_and_shows_what_is_kept_in_it(file):
    """Every cell, in order, in a folder of its own; `make notebooks` writes what they show again."""
    kept, made = nbformat.read(file, as_version=4), executed(file)
    nbformat.validate(kept)
    repeatable = True
    for before, now in zip(kept.cells, made.cells, strict=True):
        assert bool(printed(before)) == bool(printed(now)), now.source
        repeatable = repeatable and not any(call in now.source for call in CHANCE)
        if repeatable:
            assert printed(before) == printed(now)
