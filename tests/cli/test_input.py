"""What the command is given that is odd: empty arguments, standard input, closed streams, long names, names
that a terminal or its markup would act on, and costs that are wrong."""

import json
import os
import pty
import subprocess
import sys

import pytest
from commands import COMMAND, run, spawn

from chainroute import Problem, Solution
from chainroute.cli import files, show
from chainroute.formats import write, write_solution

HOSTILE = "\x1b[31m:smile:[red]A[/red]\x07"


@pytest.fixture
def line(tmp_path):
    """Customers A and B at 10 and 20 along a line."""
    problem = Problem(
        name="line", capacity=9, delivery=[4, 3], coords=[(0, 0), (10, 0), (20, 0)], names=["depot", "A", "B"]
    )
    write(problem, tmp_path / "line.json")
    write_solution(Solution.of(problem, [(0, [1, 2])]), tmp_path / "line.sol")
    return tmp_path / "line.json"


# -- arguments


@pytest.mark.parametrize(
    ("args", "place"),
    [
        (["solve", ""], 2),
        (["info", ""], 2),
        (["solve", "{line}", "-o", ""], 4),
        (["solve", "{line}", "--output="], 3),
        (["convert", "{line}", ""], 3),
        (["generate", "CVRP", "-o", ""], 4),
        (["solve", "{line}", "--weights", ""], 4),
    ],
)
def test_an_empty_argument_is_told_and_nothing_is_done(args, place, line):
    """An unset variable of a script must not stand for the folder that it runs in."""
    before = sorted(os.listdir(line.parent))
    ended = spawn(*(arg.format(line=line) for arg in args), cwd=line.parent)
    assert ended.returncode == 2
    assert ended.stderr.startswith(f"[bad-option] argument {place}: is empty")
    assert sorted(os.listdir(line.parent)) == before


def test_an_empty_argument_is_told_as_json(line):
    ended = spawn("solve", "", "--json")
    assert json.loads(ended.stdout)["error"]["faults"][0]["code"] == "bad-option"


def test_a_dash_is_standard_input(line):
    """Standard input is a problem or routes, one of them at a time."""
    code, out, _ = run("info", "-", "--json", given=line.read_text())
    assert (code, json.loads(out)["name"]) == (0, "line")
    code, out, _ = run("check", line, "-", given="Route #1: 1 2\nCost 40\n")
    assert (code, out) == (0, "feasible, cost 40\n")
    code, out, _ = run("check", "-", line.with_suffix(".sol"), given=line.read_text())
    assert (code, out) == (0, "feasible, cost 40\n")
    code, _, err = run("check", "-", "-", given=line.read_text())
    assert code == 2
    assert err.startswith("[file-empty] -: has no content.")
    code, _, _ = run("convert", "-", line.parent / "copy.vrp", given=line.read_text())
    assert code == 0
    assert "CAPACITY : 9" in (line.parent / "copy.vrp").read_text()


@pytest.mark.parametrize("more", [[], ["--format", "vrplib"]])
def test_a_dash_is_no_folder_to_write_to(more, line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _, err = run("convert", line, "-", *more)
    assert (code, "[bad-option] TARGET: '-'" in err) == (2, True)
    assert run("generate", "CVRP", "-n", 3, "-o", "-")[0] == 2
    assert not (tmp_path / "-").exists()


def test_what_the_command_prints_to_is_not_written_over(line, tmp_path):
    """A log that is written on would be lost by a file in its place."""
    log = tmp_path / "log"
    log.write_text("before\n")
    with log.open("a") as stream:
        ended = subprocess.run(
            [*COMMAND, "convert", line, "/dev/stdout", "--format", "vrplib"],
            stdout=stream, stderr=subprocess.PIPE, text=True, timeout=60,
        )  # fmt: skip
    assert (ended.returncode, "is what this command prints to" in ended.stderr) == (2, True)
    assert log.read_text() == "before\n"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_without_a_writer_does_not_hang(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    ended = spawn("info", tmp_path / "pipe")
    assert ended.returncode == 2
    assert "is a pipe that nobody writes to." in ended.stderr


@pytest.mark.parametrize("closed", [[0], [1], [2], [1, 2], [0, 1, 2]])
def test_closed_streams_are_no_error(closed, line):
    """The work is done, what it writes is whole, and nothing that is printed ends up in a file."""
    target = line.parent / "copy.vrp"

    def close():
        for number in closed:
            os.close(number)

    for args, code in ((["convert", line, target], 0), (["info", line], 0), (["info", "missing"], 2)):
        ended = subprocess.run(
            [*COMMAND, *map(str, args)], stdin=subprocess.DEVNULL, preexec_fn=close, timeout=60, check=False
        )
        assert ended.returncode == code
    assert target.read_text().splitlines()[0] == "NAME : line"
    assert target.read_text().endswith("EOF\n")


def test_names_too_long_for_a_file_are_told(line, tmp_path):
    """A name that is too long is told as an input, as an output, and as what {name} becomes."""
    code, _, err = run("solve", tmp_path / ("n" * 300))
    assert code == 2
    assert err.startswith("[file-unreadable] ")
    assert "File name too long." in err
    code, _, err = run("solve", line, "-o", tmp_path / ("n" * 300 + ".sol"))
    assert code == 2
    assert err.startswith("[file-unwritable] --output: ")
    long = Problem(name="n" * 300, capacity=9, delivery=[4], coords=[(0, 0), (10, 0)])
    write(long, tmp_path / "long.json")
    code, _, err = run("solve", tmp_path / "long.json", "--plot", tmp_path / "{name}.png")
    assert code == 2
    assert "File name too long." in err
    code, _, err = run("solve", line, "--weights", tmp_path / ("n" * 300))
    assert code == 2
    assert err.startswith("[weights-missing] ")


# -- what is shown


def shown_on_a_terminal(*args):
    """What the command sends to a terminal."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, *map(str, args)], stdout=theirs, stderr=theirs, env={**os.environ, "COLUMNS": "100"}
    ) as process:
        os.close(theirs)
        seen = b""
        try:
            while part := os.read(ours, 65536):
                seen += part
        except OSError:  # the other end is closed
            pass
        process.wait(60)
    os.close(ours)
    return seen.decode()


def test_names_are_shown_as_they_are(tmp_path):
    """Neither a terminal nor rich's markup and emoji take a part of them for something else."""
    names = ["depot", HOSTILE, "[bold]B", ":pizza:"]
    problem = Problem(
        name=HOSTILE, capacity=9, delivery=[4, 1, 1], coords=[(0, 0), *[(3, 4)] * 3], names=names
    )
    write(problem, tmp_path / "odd.json")
    for args in (["info", tmp_path / "odd.json"], ["solve", tmp_path / "odd.json", "--explain"]):
        seen = shown_on_a_terminal(*args)
        assert r"\x1b[31m:smile:[red]A[/red]\x07" in seen.replace("\r\n", "")
        assert "\x07" not in seen
        assert "\x1b[31m" not in seen
    assert "[bold]B" in seen
    assert ":pizza:" in seen


def test_markup_in_what_is_being_done_is_shown_as_it_is(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with show.working(f"reading {HOSTILE}"):
        pass
    with show.progress() as bar:
        bar.add_task("[nonsense:smile:")
        bar.refresh()
    seen = capsys.readouterr().err
    assert "😄" not in seen
    assert "[nonsense:smile:" in seen


# -- the cost that a file states


def stated(line, cost, *options):
    line.with_suffix(".sol").write_text(f"Route #1: 1 2\nCost {cost}\n")
    code, out, _ = run("check", line, line.with_suffix(".sol"), *options)
    return code, out.splitlines()


def test_check_says_when_the_stated_cost_is_wrong(line):
    assert stated(line, 40) == (0, ["feasible, cost 40"])
    wrong = ["feasible, cost 40", "The file states a cost of 41.0; its routes cost 40.0."]
    assert stated(line, 41) == (0, wrong)
    code, (out,) = stated(line, 41, "--json")
    document = json.loads(out)
    assert (code, document["cost"], document["stated_cost"], document["notes"]) == (0, 40.0, 41.0, wrong[1:])
    _, (out,) = stated(line, 40, "--json")
    assert (json.loads(out)["stated_cost"], json.loads(out)["notes"]) == (40.0, [])


def test_check_names_the_rounding_that_was_meant(tmp_path):
    """The way to (1, 1) and back is 2.83 long, or 2 with each leg rounded."""
    problem = Problem(name="p", capacity=1, delivery=[1], coords=[(0, 0), (1, 1)])
    write(problem, tmp_path / "p.json")
    (tmp_path / "p.sol").write_text("Route #1: 1\nCost 4\n")
    _, out, _ = run("check", tmp_path / "p.json", tmp_path / "p.sol")
    assert out.splitlines()[1:] == [
        "The file states a cost of 4.0; its routes cost 2.8284271247461903.",
        "With --rounding ceil they would cost what it states.",
    ]


def test_a_field_of_a_file_is_not_called_an_option(tmp_path):
    """Though the command has options of the same names; how a file is to be read is an option."""
    path = tmp_path / "p.json"
    text = {"capacity": 9, "vehicles": 1, "rounding": "up", "seed": 3, "depots": [{"x": 0, "y": 0}]}
    path.write_text(json.dumps({**text, "customers": [{"x": 1, "y": 2}]}))
    code, _, err = run("solve", path)
    assert code == 2
    for field in ("vehicles", "rounding", "seed"):
        assert f"{path}: {field}: " in err
    path.write_text(
        json.dumps({"capacity": 9, "depots": [{"x": 0, "y": 0}], "customers": [{"x": 1, "y": 2}]})
    )
    assert f"{path}: --index: there is no problem 3" in run("solve", path, "--index", 3)[2]


# -- what is not read


def test_columns_that_are_not_read_are_noted(tmp_path):
    """Every verb that reads tells them beside what it says."""
    (tmp_path / "lunes.csv").write_text("name,x,y,Cantidad\ndepot,0,0,\nA,3,4,5\n")
    note = f"Note: {tmp_path}/lunes.csv, row 1: 'Cantidad' is no heading of stops, and not read.\n"
    for verb in (["info"], ["solve", "--time-limit", 0.1], ["convert", tmp_path / "it.json"]):
        code, _, err = run(verb[0], tmp_path / "lunes.csv", *verb[1:])
        assert (code, err) == (0, note)


def test_notes_on_many_files_come_from_workers(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "MANY", 1)
    for day in "ab":
        (tmp_path / f"{day}.csv").write_text("name,x,y,Cantidad\ndepot,0,0,\nA,3,4,5\n")
    _, _, err = run("collect", tmp_path, "-o", tmp_path / "{name}.sol")
    assert [line.split(",")[0] for line in err.splitlines()] == [
        f"Note: {tmp_path}/{day}.csv" for day in "ab"
    ]
