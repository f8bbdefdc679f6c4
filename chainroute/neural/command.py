"""The command `train`."""

from pathlib import Path
from typing import Annotated

from chainroute.options import Argument, Option
from chainroute.runtime.extras import loading
from chainroute.runtime.shell import Output


def train(
    run: Annotated[Path, Argument("Folder of the run; it goes on from the snapshot there.")],
    recipe: Annotated[
        Path | None, Option("TOML or JSON, such as recipes/toy.toml; needed for a new run.")
    ] = None,
    weights: Annotated[Path | None, Option("Policy that a new run begins with, not a random one.")] = None,
    seconds: Annotated[float | None, Option("How long to train, once PyTorch is loaded.")] = None,
    updates: Annotated[int | None, Option("How many updates to make.")] = None,
    cooldown: Annotated[float | None, Option("The last seconds, over which the rate falls to zero.")] = None,
    engine: Annotated[str, Option("auto, plain or fast.")] = "auto",
    device: Annotated[str, Option("auto, cpu, cuda, cuda:1, ...")] = "auto",
) -> Output:
    """Train a policy, or go on training it; Ctrl-C saves and ends."""
    with loading("training", "neural"):
        from chainroute.neural import train as training
    training.train(
        training.read_recipe(recipe) if recipe else None,
        run,
        weights=weights,
        seconds=seconds,
        updates=updates,
        cooldown=cooldown,
        engine=engine,
        device=device,
    )
    return Output()
