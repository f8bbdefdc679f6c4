"""Trains networks that differ in named switches alike, and evaluates each on the 16 seen tasks.

    python recipes/ablation.py --switches "" scores=embeddings reembedding=off --seconds 120 --out DIR
    python recipes/ablation.py --switches "" reembedding=self --updates 1000 --out DIR

Equal seconds are those of updates: compiling, capturing and validating are left out, since a network that is
compiled first would pay for all. A network is what differs from the recipe's, "" that itself: the default
(chainroute/neural/policy/config.py) unless --recipe names one with another. Several --update-rate (P_tr) and
--test-rate (P_ts) make the grid of both. What is there already is not made again, so a call that was cut
short goes on. The results, DIR/results, are shown by

    chainroute evaluate show DIR/results --networks
"""

import argparse
import gc
import sys
from dataclasses import replace
from itertools import product
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from chainroute.neural.decode import DecodeOptions  # noqa: E402
from chainroute.neural.train import read_recipe, train  # noqa: E402
from chainroute.neural.train.engines import ENGINES  # noqa: E402
from chainroute.neural.train.records import WEIGHTS  # noqa: E402
from chainroute.neural.train.validation import best_rates  # noqa: E402
from chainroute.research.evaluate.network_tables import ablation_table  # noqa: E402
from chainroute.research.evaluate.networks import network, switches  # noqa: E402
from chainroute.research.evaluate.results import read_all  # noqa: E402
from chainroute.research.evaluate.suites import Evaluation, run_neural  # noqa: E402
from chainroute.runtime.progress import StatusLine  # noqa: E402
from chainroute.runtime.script import exit_with  # noqa: E402

COOLDOWN = 0.4  # share of the training over which the rate falls to zero


def main() -> int:
    options = _options()
    recipe = replace(read_recipe(options.recipe), validate_every=0)
    networks = [network(text, recipe.policy) for text in options.switches]
    for policy, rate in product(networks, options.update_rate or [recipe.update_rate]):
        config = replace(recipe, policy=policy, update_rate=rate)
        name = (switches(policy) or "default").replace(",", "+") + f"-Ptr{rate:g}" * bool(options.update_rate)
        folder = options.out / name
        if not (folder / f"{WEIGHTS}.safetensors").exists():
            if options.updates:
                cooldown = int(COOLDOWN * options.updates)
                config = replace(config, updates=options.updates, cooldown=cooldown, decay="linear")
                length = {}
            else:
                length = {"update_seconds": options.seconds, "cooldown": COOLDOWN * options.seconds}
            report = train(config, folder, engine=options.engine, full=False, **length)
            gc.collect()  # captured updates hold much memory
            print(f"{name}: {report}", flush=True)
        if options.test_rate:
            tested = {f"-Pts{rate:g}": (rate,) for rate in options.test_rate}
        else:
            tested = {"": best_rates(folder / WEIGHTS, options.n, options.task, options.limit, "auto")}
        for suffix, rates in tested.items():
            job = Evaluation(
                sizes=(options.n,),
                limit=options.limit,
                only=tuple(options.task),
                out=options.out / "results",
                label=name + suffix,
            )
            decode = DecodeOptions(update_rates=rates, augmentations=options.augment)
            run_neural(job, StatusLine(), weights=str(folder / WEIGHTS), options=decode)
    print(ablation_table(read_all([options.out / "results"])).markdown())
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Train networks alike and compare them.")
    parser.add_argument(
        "--switches", nargs="+", default=[""], help='such as "" reld=false scores=dot,reld=false'
    )
    alike = parser.add_mutually_exclusive_group(required=True)
    alike.add_argument("--seconds", type=float, help="of updates, for each network")
    alike.add_argument("--updates", type=int, help="of each network")
    parser.add_argument("--update-rate", type=float, nargs="+", help="P_tr; the recipe's unless given")
    parser.add_argument(
        "--test-rate", type=float, nargs="+", help="P_ts; chosen on validation problems unless given"
    )
    parser.add_argument("--recipe", default=HERE / "device.toml")
    parser.add_argument("--engine", choices=ENGINES, default="auto", help="plain: runs anywhere")
    parser.add_argument("--n", type=int, default=50, help="customers of the test problems")
    parser.add_argument("--task", nargs="+", default=[], help="only these tasks")
    parser.add_argument("--limit", type=int, help="problems of each task")
    parser.add_argument("--augment", type=int, default=8)
    parser.add_argument("--out", type=Path, required=True)
    return parser.parse_args()


if __name__ == "__main__":
    exit_with(main)
