"""The command itself, and the options that several verbs have."""

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    name="chainroute",
    help="Solves 48 kinds of vehicle routing problems.",
    epilog="Exit codes: 0 feasible, 1 infeasible, 2 bad input, 3 no plan in time; errors: docs/errors.md.",
    add_completion=False,
    rich_markup_mode=None,  # rich takes longer to import than all that --help needs
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Files = Annotated[list[Path], typer.Argument(help="Problems, in any format.", metavar="FILE")]
File = Annotated[Path, typer.Argument(help="A problem, in any format.", metavar="FILE")]
Rounding = Annotated[
    str | None,
    typer.Option("--rounding", help="Of distances: exact, round, ceil, trunc, trunc1; else the file's own."),
]
Index = Annotated[int | None, typer.Option("--index", help="Which problem of an .npz, counted from 0.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, one object per line.")]
Roads = Annotated[
    str | None,
    typer.Option(
        "--roads", help="Measure roads by a server: osrm, valhalla, ors; valhalla:truck for trucks."
    ),
]
RoadsUrl = Annotated[
    str | None, typer.Option("--roads-url", help="Its address, such as http://localhost:5000.")
]
Vehicles = Annotated[
    Path | None,
    typer.Option("--vehicles", help="The vehicles for a table of stops; else vehicles.csv beside it."),
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
