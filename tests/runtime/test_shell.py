"""Declared commands: one declaration, understood alike by argparse and by typer."""

import json
import signal
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from chainroute.cli import declared
from chainroute.errors import fail
from chainroute.neural.command import train
from chainroute.options import Argument, DecodeOptions, Group, Option, parameters
from chainroute.research.evaluate.command import COMMANDS
from chainroute.runtime.shell import Output, main


def greet(
    whom: Annotated[list[Path], Argument("Whom to greet.")] = [Path("all")],  # noqa: B006
    times: Annotated[int, Option("How often.", ("--times", "-t"))] = 1,
    words: Annotated[list[str] | None, Option("What to say.")] = None,
    slow_down: Annotated[float | None, Option("By how much.")] = None,
    loud: Annotated[bool, Option("In capitals.")] = False,
    as_json: Annotated[bool, Option("Print JSON.", ("--json",))] = False,
    decoding: Annotated[dict, Group(DecodeOptions, ("update_rates", "recombine", "rounds"))] = {},  # noqa: B006
) -> Output:
    """Say hello.

    More than once, if you like.
    """
    if times < 1:
        raise fail("bad-option", "must be at least 1.", "times")
    DecodeOptions(**decoding)
    said = {"whom": [str(path) for path in whom], "times": times, "words": words}
    said |= {"slow_down": slow_down, "loud": loud, "decoding": decoding}
    return Output(lines=[json.dumps(said)], documents=[said], alarms=["too loud"] * (times > 9))


def by_argparse(arguments, capsys):
    code = main("greet", greet, arguments)
    shown = capsys.readouterr()
    return code, shown.out.strip(), shown.err.strip()


def by_typer(arguments, capsys):
    app = typer.Typer()
    declared.add(app, greet)
    result = CliRunner().invoke(app, arguments)
    return result.exit_code, result.stdout.strip(), result.stderr.strip()


@pytest.mark.parametrize("shell", [by_argparse, by_typer])
def test_the_same_arguments_mean_the_same(shell, capsys):
    """Defaults, types, repeated options, short names and switches; JSON; faults, and alarms that fail."""
    nothing = {"whom": ["all"], "times": 1, "words": None, "slow_down": None, "loud": False, "decoding": {}}
    code, out, _ = shell([], capsys)
    assert (code, json.loads(out)) == (0, nothing)
    arguments = ["ada", "bob", "-t", "2", "--words", "hi", "--words", "ho", "--slow-down", "0.5", "--loud"]
    arguments += ["--update-rate", "0.5", "--update-rate", "1", "--no-recombine"]
    said = {"whom": ["ada", "bob"], "times": 2, "words": ["hi", "ho"], "slow_down": 0.5, "loud": True}
    said["decoding"] = {"update_rates": [0.5, 1.0], "recombine": False}
    code, out, _ = shell([*arguments, "--json"], capsys)
    assert (code, json.loads(out)) == (0, said)
    code, out, err = shell(["--times", "0"], capsys)
    assert (code, out) == (2, "")
    assert err.startswith("[bad-option] --times: must be at least 1.")
    _, _, err = shell(["--update-rate", "2", "--rounds", "-1"], capsys)
    told = ["[bad-option] --update-rate[0]", "[bad-option] --rounds"]
    assert [line.partition(":")[0] for line in err.splitlines()] == told
    code, _, err = shell(["-t", "10"], capsys)
    assert (code, err) == (70, "too loud")


def test_argparse_takes_lists_after_one_option_too(capsys):
    assert json.loads(by_argparse(["--words", "hi", "ho"], capsys)[1])["words"] == ["hi", "ho"]


def test_one_of_several_commands_is_named_first(capsys):
    assert main("all", {"greet": greet}, ["greet", "ada"]) == 0
    assert json.loads(capsys.readouterr().out)["whom"] == ["ada"]
    with pytest.raises(SystemExit):
        main("all", {"greet": greet}, [])


@pytest.mark.parametrize("command", [train, *COMMANDS.values()], ids=lambda command: command.__name__)
def test_every_parameter_says_what_it_is(command):
    """In a sentence; a type that both shells know; and the command itself in its first line."""
    assert command.__doc__
    for p in parameters(command):
        assert p.about.help.endswith((".", "...")), p.name
        assert p.single in (str, int, float, bool, Path), p.name


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_command_and_is_its_exit_code(number, capsys):
    """What the command does on the way out is done: here, a word."""

    def wait() -> Output:
        """Wait."""
        try:
            signal.raise_signal(number)
            return Output(lines=["never"])
        finally:
            print("kept")

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be off in a background job
    try:
        assert main("wait", wait, []) == 128 + number
    finally:
        signal.signal(signal.SIGINT, before)
    assert capsys.readouterr().out == "kept\n"


@pytest.mark.parametrize("arguments", [["--help"], *([name, "--help"] for name in COMMANDS)], ids=" ".join)
def test_help_of_every_command_is_shown_without_typer(arguments, capsys):
    """Also where a text has a per cent sign, which argparse would take for a place to fill."""
    with pytest.raises(SystemExit) as ended:
        main("python -m chainroute.evaluate", COMMANDS, arguments)
    assert ended.value.code == 0
    assert "usage: python -m chainroute.evaluate" in capsys.readouterr().out
