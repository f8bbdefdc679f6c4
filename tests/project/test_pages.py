"""What the pages tell to type works: every command and every block of Python, in a copy of a fresh clone.

Commands run in the order of their page and in a small form: LESS and MORE say how. What a machine for tests
cannot do is in ELSEWHERE with the reason, and only looked at: its options must exist. What takes long even so
is SLOW, for `make test-slow`. What a page calls by a name of its own is put there first: see `there`.
docs/extending.md, whose steps belong together, has a test of its own.
"""

import argparse
import contextlib
import io
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner
from where import PAGES, ROOT, page_text

from chainroute.cli.app import app
from chainroute.formats import read, write
from chainroute.generate import generate
from chainroute.problem.variants import variant

LESS = {
    "--time-limit": "0.5",
    "--limit": "1",
    "--count": "2",
    "--seconds": "2",
    "--iterations": "20",
    "--updates": "5",
}
MORE = {  # options that are added where they are missing, by how a command begins
    r"chainroute solve": ["--time-limit", "0.5"],
    r"chainroute train": ["--seconds", "2"],
    r"(chainroute|python -m chainroute\.)\s?evaluate (run|reference)": ["--limit", "1"],
    r".*evaluate (run|reference).*--suite zero-shot": ["--task", "MDCVRP"],
    r".*evaluate (run|reference)(?!.*--suite zero-shot)": ["--task", "CVRP"],
    r"(chainroute|python -m chainroute\.)\s?evaluate run(?!.*--solver)": ["--augment", "1"],
    r"chainroute evaluate run.*--solver": ["--time-limit", "0.5"],
}
ELSEWHERE = {
    r"make |pip |source ": "sets up what the tests run in",
    r"torchrun |.*recipes/(device|ablation|release|rivals)\.py|.*--device cuda": "trains on a GPU",
    r"python -m benchmarks\.": "measures for hours; test_benchmarks.py runs them in a small form",
    r".*(\.\./(shared/)?benchmarks|out/real\.zip)": "needs instances that are not in the project",
    r"chainroute solve .* --cluster HEAD:6379 .*": "needs machines; tests/solve/test_cluster.py has them",
    r".* (--weights|export) (runs/(n100|mine)|DIR)": "needs what a run on a GPU has left",
    r".*--roads-url": "needs a server of roads; tests/formats/test_road_server.py has one",
    r".*--solver lkh": "needs a program that is built from its source; tests/search/test_lkh.py runs it",
    r"chainroute serve": "runs until it is stopped; tests/service/test_load.py runs it",
    r".*\b(DIR|FILE|NAME|A\.json)\b": "is a pattern to be filled in",
}
SLOW = r"chainroute generate --benchmark|.*--n 100|chainroute train|.*runs/toy|.*--suite zero-shot"
COMMAND = r"(?:chainroute|make|pip|source|python3?|torchrun) .+?"
RUN = set()  # what has been run, and in which clone
SMALLER = [(r"time_limit=\d+", "time_limit=0.5"), (r"seconds=\d+", "seconds=2"), (r"batch=\d+", "batch=4")]


def commands(page):
    """Those in blocks and, of `chainroute` with arguments, in the text; each once."""
    text = page_text(page)
    found = re.findall(rf"^    ({COMMAND})(?:\s+#.*)?$|`(chainroute \w+ [^`\n]+)`", text, re.MULTILINE)
    return list(dict.fromkeys(re.sub(r"^python3", "python", a or b) for a, b in found))


def elsewhere(command):
    return any(re.match(pattern, command) for pattern in ELSEWHERE)


def small(command):
    """The words of a command in its small form."""
    words = shlex.split(command)
    words = [LESS.get(before, word) for before, word in zip(["", *words], words, strict=False)]
    for begin, options in MORE.items():
        if re.match(begin, command):
            for option, value in zip(options[::2], options[1::2], strict=True):
                words += [] if option in words else [option, value]
    return words


def blocks(page):
    """Python, fenced or indented."""
    text = page.read_text()
    fenced = re.findall(r"^```python\n(.+?)^```", text, re.MULTILINE | re.DOTALL)
    indented = re.findall(r"(?:^    .*\n|^\n(?=    ))+", text, re.MULTILINE)
    codes = ["\n".join(line[4:] for line in block.splitlines()) for block in indented]
    lines = (re.sub(rf"^{COMMAND}$", "", code, flags=re.MULTILINE) for code in codes)
    return fenced + [code for code in lines if re.match(r"\s*(from|import) ", code)]


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """The files of the project that git knows."""
    try:
        said = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a checkout")
    place = tmp_path_factory.mktemp("clone")
    for name in filter(None, said.stdout.split("\0")):
        if (ROOT / name).is_file():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, place / name)
    return place


@pytest.fixture
def there(clone, monkeypatch):
    """Runs it in the clone, with what the pages call by a name of their own."""
    monkeypatch.chdir(clone)
    Path("out").mkdir(exist_ok=True)
    shutil.copy("chainroute/examples/parcels.vrp", "parcels.vrp")
    Path("folder").mkdir(exist_ok=True)
    shutil.copy("chainroute/examples/dairy.json", "folder")
    problems = generate(variant("CVRP"), 8, 2, seed=1)
    write(problems, "more.npz")
    start = Path("docs/start.md").read_text()
    Path("plan.json").write_text(re.search(r"As `plan.json`:\n\n```json\n(.+?)^```", start, re.M | re.S)[1])
    return {"problem": read("parcels.vrp"), "problems": problems}


def tried(words):
    """Exit code, and what was said."""
    if words[0] == "chainroute":
        done = CliRunner().invoke(app, words[1:])
        return done.exit_code, done.output
    said = io.StringIO()
    before = sys.argv
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            if words[1] == "-m":
                sys.argv = words[2:]
                runpy.run_module(words[2], run_name="__main__", alter_sys=True)
            else:
                sys.argv = words[1:]
                runpy.run_path(words[1], run_name="__main__")
        return 0, said.getvalue()
    except SystemExit as end:
        return end.code or 0, said.getvalue()
    finally:
        sys.argv = before


def run_all(those, clone):
    """Runs commands in order, unless another page has it. What fails waits for those that follow: a page may
    name a file before it says how it is made."""
    those = [command for command in those if (clone, *small(command)) not in RUN]
    while those:
        failed = {}
        for command in those:
            code, said = tried(small(command))
            if code:
                failed[command] = f"{shlex.join(small(command))}: {code}\n{said}"
            else:
                RUN.add((clone, *small(command)))
        assert len(failed) < len(those), "\n\n".join(failed.values())
        those = list(failed)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_run(page, clone, there):
    """Every command of a page runs in a fresh clone, those that take long in a small form."""
    run_all([c for c in commands(page) if not elsewhere(c) and not re.match(SLOW, c)], clone)


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_that_take_longer_run(page, clone, there):
    run_all([c for c in commands(page) if not elsewhere(c) and re.match(SLOW, c)], clone)


@pytest.mark.parametrize("page", [p for p in PAGES if p.name != "service.md"], ids=lambda page: page.name)
def test_python_in_the_pages_runs(page, there):
    """Block after block, each with the names of those before; those of the service need one: test_client."""
    names = dict(there)
    for block in blocks(page):
        if "RoadServer(" in block:  # asks a server; tests/formats/test_road_server.py has one
            continue
        for long, short in SMALLER:
            block = re.sub(long, short, block)
        exec(compile(block, page.name, "exec"), names)


SCRIPTS = sorted(
    {
        (page.name, command)
        for page in PAGES
        for command in commands(page)
        if elsewhere(command) and command.startswith("python")
    }
)


@pytest.mark.parametrize(("page", "command"), SCRIPTS)
def test_scripts_that_run_elsewhere_take_the_command(page, command, monkeypatch):
    """It is understood as it stands on the page: options are known, and what must be given is there."""

    def understand(parser, *arguments):
        read(parser, *arguments)
        sys.exit()  # before anything is done

    read = argparse.ArgumentParser.parse_args
    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", understand)
    monkeypatch.chdir(ROOT)
    code, said = tried(shlex.split(command))
    assert code == 0, said


def test_everything_elsewhere_is_on_a_page():
    """A reason for which there is no command any more is one too many."""
    every = [command for page in PAGES for command in commands(page)]
    assert all(any(re.match(pattern, command) for command in every) for pattern in ELSEWHERE)
    assert len(every) > 40


def test_small_forms():
    """Limits are lowered or added, and nothing else is changed."""
    solve = "chainroute solve a.vrp -o 'x y'"
    assert small(f"{solve} --time-limit 50") == small(solve) == [*shlex.split(solve), "--time-limit", "0.5"]
    run = "python -m chainroute.evaluate run --task VRPTW"
    assert small(run) == [*run.split(), "--limit", "1", "--augment", "1"]
