"""Broken inputs: each ends in one coded error with all the faults it has, quickly and without a traceback."""

import contextlib
import re
import time
from pathlib import Path

import pytest
from corpus import DATA, Case, corpus
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chainroute import Problem
from chainroute.errors import ChainRouteError
from chainroute.formats import read, read_many, read_solution

CASES = corpus()
PROBLEMS = ["five.vrp", "matrix.vrp", "depots.vrp", "backhauls.vrpb", "mixed.vrpmpd", "windows.txt",
            "mdvrp.txt", "table.csv", "squares.csv", "named.json", "globe.json",
            "asymmetric.json"]  # fmt: skip
SOLUTIONS = [("five.vrp", "five.sol"), ("depots.vrp", "depots.sol"), ("mdvrp.txt", "mdvrp.res"),
             ("named.json", "named.sol.json")]  # fmt: skip
AWKWARD = [
    "",
    "-1",
    "0",
    "0.5",
    "nan",
    "-inf",
    "1e400",
    "99999999999",
    "x",
    "é",
    "\0",
    "[",
    "{",
    ":",
    "#",
    "EOF",
    "\n",
]


def test_the_corpus_is_large() -> None:
    assert len(CASES) >= 80


@pytest.mark.parametrize("case", CASES, ids=[case.file for case in CASES])
def test_broken_file_is_refused_with_its_codes(case: Case, tmp_path: Path) -> None:
    path = tmp_path / case.file
    path.write_bytes(case.content)
    start = time.process_time()
    with pytest.raises(ChainRouteError) as caught:
        read_many(path)
    seconds = time.process_time() - start
    assert {fault.code for fault in caught.value.faults} == case.codes, str(caught.value)
    assert seconds < 1
    assert all(fault.message for fault in caught.value.faults)
    assert len(str(caught.value)) < 10_000


@st.composite
def mangled(draw: st.DrawFn, name: str) -> str:
    """A good file in which some words were exchanged for awkward ones, or lines lost, repeated or moved."""
    text = (DATA / name).read_text(encoding="utf-8")
    for _ in range(draw(st.integers(1, 3))):
        words = re.split(r"(\w+|\s+)", text)
        lines = text.splitlines(keepends=True) or [""]
        match draw(st.sampled_from(["word", "line", "cut"])):
            case "word":
                words[draw(st.integers(0, len(words) - 1))] = draw(st.sampled_from(AWKWARD))
                text = "".join(words)
            case "line":
                line = lines.pop(draw(st.integers(0, len(lines) - 1)))
                at = draw(st.integers(0, len(lines)))
                text = "".join(lines[:at] + [line] * draw(st.integers(0, 2)) + lines[at:])
            case "cut":
                text = text[: draw(st.integers(0, len(text)))]
    return text


fuzz = settings(
    max_examples=2 * settings.default.max_examples,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@pytest.mark.parametrize("name", PROBLEMS)
@fuzz
@given(data=st.data())
def test_a_mangled_file_is_a_problem_or_a_coded_error(name: str, data: st.DataObject, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(data.draw(mangled(name)), encoding="utf-8")
    with contextlib.suppress(ChainRouteError):
        assert isinstance(read(path), Problem)


@pytest.mark.parametrize(("problem", "name"), SOLUTIONS)
@fuzz
@given(data=st.data())
def test_a_mangled_solution_is_a_solution_or_a_coded_error(
    problem: str, name: str, data: st.DataObject, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(data.draw(mangled(name)), encoding="utf-8")
    with contextlib.suppress(ChainRouteError):
        assert read_solution(path, read(DATA / problem)).routes is not None
