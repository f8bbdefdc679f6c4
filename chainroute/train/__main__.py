"""`python -m chainroute.train`: training from the shell, with little more installed than PyTorch."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from chainroute.errors import ChainRouteError
from chainroute.train import read_recipe, train
from chainroute.train.engine import ENGINES


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("chainroute.train", description="Train a policy, or go on training it.")
    parser.add_argument("run", help="folder of the run; it goes on from the snapshot that lies there")
    parser.add_argument("--recipe", help="TOML or JSON file, such as recipes/toy.toml; needed for a new run")
    parser.add_argument("--weights", help="policy to begin a new run with, instead of a random one")
    parser.add_argument("--seconds", type=float, help="how long to train, from call to return")
    parser.add_argument("--updates", type=int, help="how many updates to make")
    parser.add_argument("--cooldown", type=float, help="the last seconds, over which the rate falls to zero")
    parser.add_argument("--engine", choices=ENGINES, default="auto")
    parser.add_argument("--device", default="auto", help="cpu, cuda, cuda:1, ...")
    parser.add_argument("--new", action="store_true", help="refuse to continue a run")
    parser.add_argument("--small", action="store_true", help="small snapshots, without moments")
    options = parser.parse_args(arguments)
    try:
        train(
            read_recipe(options.recipe) if options.recipe else None,
            options.run,
            weights=options.weights,
            seconds=options.seconds,
            updates=options.updates,
            cooldown=options.cooldown,
            engine=options.engine,
            device=options.device,
            resume=not options.new,
            full=not options.small,
        )
    except ChainRouteError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
