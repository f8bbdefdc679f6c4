"""The command `chainroute`: one verb per job, tables for people and `--json` for programs.

Results go to stdout, errors and progress to stderr. Exit codes: 0 done and feasible, 1 infeasible, 2 bad
input, 70 a fault of ours, 130 stopped by Ctrl-C, 141 nobody reads on. What a verb needs beyond typer is
imported inside it, so that `--help` answers at once.
"""

import sys
from io import TextIOWrapper

from chainroute.cli import solve, verbs, evaluate, serve  # isort: skip  # noqa: F401 as --help lists them
from chainroute.cli.app import app


def main() -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a name must not fail for want of an encoding
            stream.reconfigure(errors="backslashreplace")
    app()
