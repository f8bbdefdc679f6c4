"""The command itself, and the options that several verbs have."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from chainroute.options import Group, Option, parameters

app = typer.Typer(
    name="chainroute",
    help="Solves 48 kinds of vehicle routing problems.",
    epilog="Exit codes: 0 feasible, 1 infeasible, 2 bad input, 3 no plan in time; errors: docs/errors.md.",
    add_completion=False,
    rich_markup_mode=None,  # rich takes longer to import than all that --help needs
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@dataclass(frozen=True)
class Reading:
    """How problems are read from files; what is None is left to the file."""

    rounding: Annotated[
        str | None, Option("Round distances: exact, round, ceil, trunc, trunc1; else as the file says.")
    ] = None
    index: Annotated[int | None, Option("Which problem of an .npz, counted from 0.")] = None
    roads: Annotated[
        str | None, Option("Measure roads by a server: osrm, valhalla, ors; valhalla:truck for trucks.")
    ] = None
    roads_url: Annotated[str | None, Option("Address of that server, such as http://localhost:5000.")] = None
    vehicles: Annotated[
        Path | None, Option("The vehicles for a table of stops; else vehicles.csv beside it.")
    ] = None
    drop_impossible: Annotated[
        bool, Option("Plan without customers that no vehicle can serve; they are listed with reasons.")
    ] = False


ReadingOptions = Annotated[dict[str, Any], Group(Reading, tuple(p.name for p in parameters(Reading)))]
Files = Annotated[list[Path], typer.Argument(help="Problems, in any format.", metavar="FILE")]
File = Annotated[Path, typer.Argument(help="A problem, in any format.", metavar="FILE")]
TrustCode = Annotated[
    bool, typer.Option("--trust-code", help="Import and run the code that the weights name.")
]
Plot = Annotated[str | None, typer.Option("--plot", help="Draw a picture: .png, .svg or .pdf.")]


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        from chainroute import __version__

        print(f"chainroute {__version__}")
    elif context.invoked_subcommand is None:
        print(context.get_help())
