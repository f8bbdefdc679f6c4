"""The frame: rooms and their imports, what the command loads, and pages that keep up with the code."""

import ast
import re
import resource
import shlex
import subprocess
import sys
from collections import Counter
from importlib import import_module
from itertools import chain

import pytest
import typer.main
from where import PACKAGE, PAGES, PROJECT, ROOT, page_text

import chainroute
from chainroute.cli.app import app
from chainroute.runtime.aliases import ALIASES

ROOMS = sorted(
    path.stem
    for path in PACKAGE.iterdir()
    if (path.suffix == ".py" and path.stem != "__init__") or (path / "__init__.py").exists()
)


PARTS = ("env", "policy", "fast", "assembly", "decode", "train")


def python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


# -- rooms


@pytest.mark.parametrize("room", ROOMS)
def test_every_room_is_on_the_page(room):
    page = (ROOT / "docs" / "architecture.md").read_text()
    assert re.search(rf"^    {room}(\.py|/) ", page, re.MULTILINE)


def test_the_page_has_the_order_that_is_checked():
    page = (ROOT / "docs" / "architecture.md").read_text()
    listed = re.findall(r"^    (\w+)(?:\.py|/) ", page, re.MULTILINE)
    layers = PROJECT["tool"]["importlinter"]["contracts"][0]["layers"]
    level = {room: i for i, layer in enumerate(layers) for room in re.findall(r"\w+", layer)}
    assert [level[room] for room in listed] == sorted(level[room] for room in listed)


def test_the_journeys_on_the_page_pass_through_what_is_there():
    """Every file, and every function or class that is said to be in it."""
    page = (ROOT / "docs" / "architecture.md").read_text()
    stations = re.findall(r"([\w/]+\.py): (\w+)", page)
    assert len(stations) > 15
    for file, name in stations:
        assert re.search(rf"^(def|class) {name}\b", (PACKAGE / file).read_text(), re.MULTILINE), (file, name)


@pytest.mark.parametrize("path", sorted((ROOT / "tests").glob("*/test_*.py")), ids=lambda path: path.stem)
def test_tests_lie_by_room_and_say_what_they_prove(path):
    """CONTRIBUTING.md says so; a name of three words and more is a sentence."""
    assert path.parent.name in (*ROOMS, "project")
    module = ast.parse(path.read_text())
    assert ast.get_docstring(module)
    tests = [f for f in ast.walk(module) if isinstance(f, ast.FunctionDef) and f.name.startswith("test_")]
    assert [f.name for f in tests if len(f.name.split("_")) < 4 and not ast.get_docstring(f)] == []


def imported(path):
    """Top-level names of what a module imports when it is loaded."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module.split(".")[0]


@pytest.mark.parametrize(
    "room", ["runtime", *(f"neural/{part}" for part in PARTS), "research/evaluate", "research/rivals"]
)
def test_rooms_for_the_device_import_only_what_it_has(room):
    """The machine that trains has torch (with triton), NumPy, safetensors and the standard library."""
    used = {name for path in (PACKAGE / room).rglob("*.py") for name in imported(path)}
    assert used - sys.stdlib_module_names <= {"chainroute", "torch", "triton", "numpy", "safetensors"}


def test_torch_is_imported_for_networks_alone():
    """In any function, too: `neural` and `research` are where PyTorch lives."""
    users = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if {name.split(".")[0] for name in names} & {"torch", "triton", "safetensors"}:
                users.add(path.relative_to(PACKAGE).parts[0])
    assert users == {"neural", "research"}


def test_only_the_command_imports_research():
    """Names of aliases are text; nothing else outside of `cli` imports what studies the network."""
    for path in PACKAGE.rglob("*.py"):
        if path.relative_to(PACKAGE).parts[0] not in ("cli", "research"):
            assert "from chainroute.research" not in path.read_text(), path


@pytest.mark.parametrize("name", sorted(ALIASES))
def test_a_short_name_is_the_module_itself(name):
    """Also for what lies below it, and when a folder of that name was left over."""
    assert import_module(name) is import_module(ALIASES[name])


def test_what_lies_below_a_short_name_is_found_there():
    assert import_module("chainroute.policy.store") is import_module("chainroute.neural.policy.store")
    with pytest.raises(ModuleNotFoundError):
        import_module("chainroute.policy.nothing")


@pytest.mark.parametrize("name", ["chainroute.train", "chainroute.evaluate", "chainroute.scheduling"])
def test_programs_run_by_their_short_names(name):
    done = subprocess.run([sys.executable, "-m", name, "--help"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"usage: python -m {name}")


def test_no_two_classes_have_one_name():
    """A reader who meets a name need not ask which one is meant."""
    found = Counter(
        node.name
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert [name for name, times in found.items() if times > 1] == []


# -- what is loaded when


HEAVY = {"torch", "matplotlib", "pyvrp", "vrplib", "pydantic", "rich", "scipy"}


@pytest.mark.parametrize(
    ("args", "allowed"),
    [(["--help"], set()), (["solve", "--help"], {"pydantic"})],  # which typer itself uses for options
)
def test_help_loads_nothing_heavy(args, allowed):
    code = f"""
import contextlib, io, sys
from chainroute.cli import main
sys.argv = ["chainroute", *{args}]
with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.suppress(SystemExit):
    main()
print("Usage" in out.getvalue(), *sys.modules)
"""
    shown, *modules = python(code).split()
    assert shown == "True"
    assert {name.split(".")[0] for name in modules} & (HEAVY | {"numpy"}) <= allowed


def test_the_library_loads_nothing_heavy():
    modules = python("import sys; from chainroute import *; print(*sys.modules)").split()
    assert {"chainroute.solve", "chainroute.plan.check"} <= set(modules)
    assert {name.split(".")[0] for name in modules} & (HEAVY | {"typer"}) == set()


@pytest.mark.parametrize("first", ["chainroute", "chainroute.solve, chainroute.check"])
def test_the_names_of_the_package_are_functions_and_classes_in_any_order(first):
    """Two functions are called as the modules that they are in, which may have been imported before."""
    kinds = python(
        f"import {first}; print(*(type(getattr(chainroute, x)).__name__ for x in chainroute.__all__))"
    )
    kind = dict(zip(chainroute.__all__, kinds.split(), strict=True))
    assert kind["solve"] == kind["check"] == kind["variant"] == "function"
    assert "module" not in kind.values()
    assert set(chainroute.__all__) <= set(dir(chainroute))


def test_a_name_that_the_package_does_not_have_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'solv'"):
        _ = chainroute.solv


def test_help_answers_soon():
    """The aim is 0.3 s. Processor time, the best of three and twice the aim: machines are busy."""
    seconds = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        python("import sys; sys.argv = ['chainroute', '-h']; from chainroute.cli import main; main()")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(seconds) < 0.6


# -- pages


def test_the_first_page_has_a_row_for_every_verb():
    """Those of extras, in the table before it, are no verbs."""
    section = (ROOT / "docs" / "start.md").read_text().split("## The command")[1]
    rows = re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)
    verbs = [command.callback.__name__ for command in app.registered_commands]
    assert rows == verbs + [group.name for group in app.registered_groups]


def commands():
    """Every `chainroute ...` in the pages, in code spans and code blocks."""
    for page in PAGES:
        text = page_text(page)
        spans = re.findall(r"`(chainroute [^`\n]+)`", text)
        blocks = re.findall(r"^    (?:\$ )?(chainroute .+?)(?:  #.*)?$", text, re.MULTILINE)
        yield from ((page.name, command) for command in spans + blocks)


@pytest.mark.parametrize(("page", "command"), sorted(set(commands())))
def test_commands_in_the_pages_exist(page, command):
    """The verb and each option are there; files of the project that are named exist."""
    _, *words = shlex.split(command)
    group = typer.main.get_command(app)
    target = group
    while words and words[0] in getattr(target, "commands", {}):
        target = target.commands[words.pop(0)]
    assert not words or words[0].startswith("-") or not hasattr(target, "commands"), words[0]
    options = {option for parameter in target.params for option in parameter.opts} | {"--help", "-h"}
    assert {word for word in words if word.startswith("-")} <= options
    for word in words:
        assert not word.startswith("chainroute/") or (ROOT / word).exists()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_in_the_pages_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_pictures_are_small():
    for picture in (ROOT / "docs" / "images").iterdir():
        assert picture.stat().st_size < 200_000


# -- packaging


def requirements():
    project = PROJECT["project"]
    extras = chain(*project["optional-dependencies"].values())
    for requirement in chain(project["dependencies"], extras):
        name = re.match(r"[\w.-]+", requirement)[0].lower().replace("_", "-")
        if name != project["name"]:
            yield name


def test_every_dependency_is_pinned():
    pins = dict(
        line.lower().replace("_", "-").split("==")
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if not line.startswith("#")
    )
    assert set(requirements()) <= set(pins)
    assert pins["torch"] == "2.13.0"


def test_versions_agree():
    """The package, its metadata, the citation and the newest entry of the changelog name one version."""
    version = PROJECT["project"]["version"]
    assert version == chainroute.__version__
    assert f"version: {version}\n" in (ROOT / "CITATION.cff").read_text()
    assert re.findall(r"^## \[(.+)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[0] == version
