"""The command `chainroute`: one verb per job, tables for people and `--json` for programs.

Results go to stdout, errors and progress to stderr. Exit codes: 0 done and feasible, 1 infeasible, 2 bad
input, 3 no plan in time, 70 a fault of ours, 141 nobody reads on, 128 + its number where a signal came
before there was anything to show (130 for Ctrl-C). What a verb needs beyond typer is imported inside it, so
that `--help` answers at once.
"""

import os
import sys
from io import TextIOWrapper

from chainroute.cli import solve, collect, verbs, evaluate, serve, weights  # isort: skip  # noqa: F401 in --help's order
from chainroute.cli import show
from chainroute.cli.app import app
from chainroute.errors import fail


def main() -> None:
    _open_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a name must not fail for want of an encoding
            stream.reconfigure(errors="backslashreplace")
    for place, argument in enumerate(sys.argv[1:], 1):
        if not argument or (argument.startswith("--") and argument.endswith("=")):
            error = fail(
                "bad-option",
                "is empty; is a variable unset?",
                f"argument {place}",
                "Fill it or leave it out.",
            )
            sys.exit(show.report(error, as_json="--json" in sys.argv))
    app()


def _open_streams() -> None:
    """Opens the null device for streams that were closed, so that no file is opened in their place."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            handle = os.open(os.devnull, os.O_RDWR)
            if handle != number:
                os.dup2(handle, number)
                os.close(handle)
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115
