"""Continues a run for a stretch on a GPU machine that has only PyTorch, NumPy, safetensors and Triton.

    python recipes/device.py --run NAME --seconds 540 --out DIR [--cooldown]

It reads the committed state of the run, runs/NAME/state.safetensors, trains, and leaves the new state
(weights in half precision, under 10 MB), the weights to release and the ledger in DIR, or in the run's own
folder. A run that does not exist yet begins by the recipe, recipes/device.toml unless another is given; one
that exists keeps its settings unless a recipe is given.
"""

import time

BEGAN = time.monotonic()

import argparse  # noqa: E402
import shutil  # noqa: E402
import sys  # noqa: E402
from pathlib import Path  # noqa: E402

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import torch  # noqa: E402

from chainroute.neural.train import read_recipe, train  # noqa: E402
from chainroute.neural.train.engines import ENGINES  # noqa: E402
from chainroute.neural.train.snapshot import SMALL, newest, read_header  # noqa: E402
from chainroute.runtime.script import exit_with  # noqa: E402

LIMIT = 585.0  # seconds after which the machine may be taken away, with a little to spare
KEPT = (SMALL, "state.json", "log.csv", "curve.csv")  # what a run's folder holds that the next stretch needs


def main() -> int:
    options = _options()
    source = Path(options.runs) / options.run
    out = Path(options.out or source)
    out.mkdir(parents=True, exist_ok=True)
    if out.resolve() != source.resolve():
        for name in KEPT:
            if (source / name).exists():
                shutil.copy(source / name, out / name)
    state = newest(out)
    if state is None or options.recipe:
        config = read_recipe(options.recipe or HERE / "device.toml")
    else:
        config = read_header(state).config
    seconds = min(options.seconds, LIMIT - (time.monotonic() - BEGAN))
    report = train(
        config,
        out,
        seconds=seconds,
        cooldown=None if options.cooldown is None else min(options.cooldown, seconds),
        weights=options.weights if state is None else None,
        engine=options.engine,
        full=False,
    )
    print(f"trained for {seconds:.0f} s: {report}")
    print(f"ended {time.monotonic() - BEGAN:.0f} s after the start")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Continue a run on a GPU machine for a stretch.")
    parser.add_argument("--run", required=True, help="name of the run: a folder in runs/")
    parser.add_argument("--runs", default=HERE.parent / "runs", help="the folder of all runs")
    parser.add_argument("--seconds", type=float, default=540.0, help="of training")
    parser.add_argument("--out", help="where the new state goes; the run's own folder unless given")
    parser.add_argument(
        "--recipe",
        help="device.toml for a run that does not exist yet, otherwise the run's own, unless given",
    )
    parser.add_argument("--weights", help="policy with which a run that does not exist yet begins")
    parser.add_argument(
        "--cooldown",
        type=float,
        nargs="?",
        const=float("inf"),
        help="the last seconds, or else all, over which the rate falls to zero: makes weights to release",
    )
    parser.add_argument(
        "--engine",
        choices=ENGINES,
        default="fast" if torch.cuda.is_available() else "auto",
        help="on a GPU the fast one, which fails rather than train slowly in its place",
    )
    return parser.parse_args()


if __name__ == "__main__":
    exit_with(main)
