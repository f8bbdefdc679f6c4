"""The verb `weights`: the policies that come with the package, and policies as folders for model hubs."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from chainroute.cli import declared, show
from chainroute.cli.app import TrustCode, app
from chainroute.runtime.extras import loading
from chainroute.runtime.shell import Json

group = typer.Typer(rich_markup_mode=None)
app.add_typer(group, name="weights")


@group.callback(invoke_without_command=True)
def weights(context: typer.Context) -> None:
    """List the shipped policies, or export one as a folder."""
    if context.invoked_subcommand is None:
        print(context.get_help())


@group.command("list")
@show.guarded
@declared.translated
def listing(as_json: Json = False) -> int:
    """List the policies that come with the package."""
    with loading("a policy", "neural"):
        from chainroute.neural.policy.store import read_card, shipped

    cards = {folder.name: read_card(folder) for folder in shipped()}
    if as_json:
        for name, card in cards.items():
            show.line({"name": name, **{key: card[key] for key in ("sizes", "instances", "results")}})
    else:
        rows = [
            (name, ", ".join(map(str, card["sizes"])), f"{card['instances']:,}", _gaps(card["results"]))
            for name, card in cards.items()
        ]
        columns = ("name", "trained on customers", "problems seen", "mean gap %")
        show.table(columns, rows, numbers=columns[1:3])
    return 0


def _gaps(results: Sequence[Mapping[str, Any]]) -> str:
    """The mean gaps of a card in one line."""
    return ", ".join(
        f"{one['mean_gap_percent']} ({one['suite']}, {one['customers']} customers)"
        for one in results
        if "mean_gap_percent" in one
    )


@group.command()
@show.guarded
def export(
    name: Annotated[str, typer.Argument(help="A shipped policy, or a policy's path.", metavar="NAME")],
    folder: Annotated[Path, typer.Argument(help="Where to write to; made if need be.", metavar="FOLDER")],
    trust_code: TrustCode = False,
) -> int:
    """Write a policy as model hubs have it: README.md (the card), config.json and model.safetensors.

    Nothing is sent anywhere.
    """
    with loading("a policy", "neural"):
        from chainroute.neural.policy.hub import export

    for file in export(name, folder, trust_code=trust_code):
        print(file)
    return 0
