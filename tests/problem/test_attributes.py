"""Attributes: one that is declared is everywhere, and none is named where the declaration speaks for it."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest
from where import PACKAGE

from chainroute import Problem, VehicleType
from chainroute.problem.attributes import Kind, attributes
from website.attributes import PAGE, page

# Two made-up attributes, one of customers and one of vehicle types: a declaration each, and nothing else.
DECLARED = {
    "problem/problem.py": (
        "    skills: Annotated[Sequence[Collection[str]], _each(",
        """    fragility: Annotated[FloatArray, _each(
        Kind.NUMBER, "How easily it breaks.", Column("fragility", "fragility zerbrechlich"),
        missing=0.5, beyond="fragile")] = ()  # type: ignore[assignment]
""",
    ),
    "problem/fleet.py": (
        "    skills: Annotated[Collection[str], _has(",
        """    heated: Annotated[bool, _has(
        Kind.FLAG, "They keep goods warm.", Column("heated", "heated heating"), beyond="heated")] = False
""",
    ),
}
DOCUMENT = {
    "capacity": 9,
    "vehicles": [{"name": "van", "count": 1, "heated": True}, {"name": "car", "count": 2}],
    "depots": [{"x": 0, "y": 0}],
    "customers": [
        {"name": "A", "x": 3, "y": 4, "delivery": 1, "fragility": 2},
        {"name": "B", "x": 1, "y": 0},
    ],
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Runs code, or the command, where the package has both attributes."""
    folder = tmp_path_factory.mktemp("package")
    left_out = shutil.ignore_patterns("weights", "__pycache__", "examples")
    shutil.copytree(PACKAGE, folder / "chainroute", ignore=left_out)
    shutil.copytree(PACKAGE.parent / "chainroute_command", folder / "chainroute_command")
    for name, (before, lines) in DECLARED.items():
        path = folder / "chainroute" / name
        text = path.read_text()
        assert text.count(before) == 1
        path.write_text(text.replace(before, lines + before))

    def run(*arguments, given=""):
        done = subprocess.run(
            [sys.executable, "-P", *arguments], cwd=folder, input=given, capture_output=True, text=True,
            env={**os.environ, "PYTHONPATH": str(folder)},
        )  # fmt: skip
        return done.stdout + done.stderr

    return run


COMMAND = "-c", "from chainroute_command import main; main()"


def test_a_declared_attribute_is_a_field_and_a_part_of_the_kind_of_a_problem(run):
    code = """
from chainroute import Problem, VehicleType
plain = Problem(capacity=1, delivery=[0.0], coords=[(0, 0), (1, 0)])
print(plain.kind, len(plain.fragility))
p = plain.replace(fragility=[2], vehicle_types=[VehicleType(heated=True)])
print(p.kind, p.fragility.tolist())
"""
    assert run("-c", code) == "CVRP 0\nCVRP + heated + fragile [2.0]\n"


def test_a_declared_attribute_is_read_written_and_in_the_schema(run):
    code = """
import json, sys
from chainroute.formats import json as ours, schema
p = ours.read(sys.stdin.read(), "", None)
print(ours.write(p).decode())
print("heated" in json.dumps(schema.ProblemFile.model_json_schema()))
print("fragility" in json.dumps(schema.ProblemFile.model_json_schema()))
print(p.replace(name=p.name) == p, p.replace(fragility=()) == p)
"""
    said = run("-c", code, given=json.dumps(DOCUMENT))
    assert '"fragility": 2' in said
    assert '"fragility": 0.5' not in said  # which is what a customer has without it
    assert '"heated": true' in said
    assert said.endswith("True\nTrue\nTrue False\n")


def test_a_declared_attribute_is_a_column_both_ways(run, tmp_path):
    code = """
import sys
from pathlib import Path
from chainroute.formats import json as ours, read, write
folder = Path(sys.argv[1])
p = ours.read((folder / "p.json").read_text(), "p", None)
write(p, folder / "p.csv")
print((folder / "p.csv").read_text())
q = read(folder / "p.csv")
print(q.fragility.tolist(), [t.heated for t in q.vehicle_types])
"""
    (tmp_path / "p.json").write_text(json.dumps({**DOCUMENT, "name": "p"}))
    said = run("-c", code, str(tmp_path))
    assert "delivery,fragility" in said
    assert "capacity,heated" in said
    assert said.endswith("[2.0, 0.5] [True, False]\n")


def test_a_wrong_value_of_a_declared_attribute_is_a_fault_at_its_place(run, tmp_path):
    wrong = {**DOCUMENT, "vehicles": [{"heated": "very"}]}
    wrong["customers"] = [{**DOCUMENT["customers"][0], "fragility": "very"}]
    (tmp_path / "a.json").write_text(json.dumps(wrong))
    (tmp_path / "b.json").write_text(json.dumps(DOCUMENT).replace('"fragility": 2', '"fragility": -2'))
    said = "".join(run(*COMMAND, "info", str(tmp_path / name)) for name in ("a.json", "b.json"))
    assert "vehicles[0].heated" in said
    assert "customers[0].fragility" in said
    assert "negative" in said


def test_a_declared_attribute_has_a_line_in_info(run, tmp_path):
    (tmp_path / "p.json").write_text(json.dumps(DOCUMENT))
    said = run(*COMMAND, "info", str(tmp_path / "p.json"))
    assert re.search(r"customers with fragility +1\b", said)
    assert "heated" in said


def test_solvers_refuse_what_they_do_not_name(run, tmp_path):
    """A declared attribute can never be passed over in silence."""
    (tmp_path / "p.json").write_text(json.dumps(DOCUMENT))
    said = run(*COMMAND, "solve", str(tmp_path / "p.json"), "--time-limit", "1", "--solver", "pyvrp")
    assert "unsupported-feature" in said
    assert "fragile" in said


def test_the_page_of_attributes_is_in_step():
    assert PAGE.read_text() == page(), "run `make docs`"


# -- no names where the declaration speaks


BEYOND = {a.name for a in (*attributes(Problem), *attributes(VehicleType)) if a.beyond}
EVERYDAY = {"end", "shift", "speed", "distance_matrix", "duration_matrix"}  # that mean other things, too
SPOKEN_FOR = ("formats/tables", "cli", "service", "solve")
EXCEPT = {
    "solve/explanation.py",  # what could be relaxed is in words
    "service/examples.py",  # names of files
    "formats/tables/template.py",  # an example
}


@pytest.mark.parametrize("room", SPOKEN_FOR)
def test_no_attribute_beyond_the_variants_is_named_where_the_declaration_speaks(room):
    names = "|".join(sorted(BEYOND - EVERYDAY))
    files = [f for f in (PACKAGE / room).rglob("*") if f.suffix in (".py", ".js", ".html")]
    there = [
        f"{f.relative_to(PACKAGE)}: {found}"
        for f in files
        if str(f.relative_to(PACKAGE)) not in EXCEPT
        for found in set(re.findall(rf"(?<![\w-])({names})(?![\w-])", f.read_text()))
    ]
    assert there == []


def test_every_attribute_says_what_it_is_of_and_how_it_is_written():
    every = [*attributes(Problem), *attributes(VehicleType)]
    assert len({(a.of, a.key) for a in every}) == len(every)
    for a in attributes(VehicleType):
        assert a.columns or a.kind is Kind.MATRIX
    for holder in (attributes(Problem, "customer"), attributes(VehicleType)):
        words = [word for a in holder for c in a.every_column for word in c.spellings.split()]
        assert len(set(words)) == len(words)
