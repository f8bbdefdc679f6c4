"""Trains the paper's rivals for equal times or updates, evaluates them on the 16 seen tasks, compares them.

    python recipes/rivals.py --seconds 200 --out DIR
    python recipes/rivals.py --updates 4000 --out DIR

A rival is a recipe of recipes/rivals, here with each of two seeds. What is there already is not made again,
and a call ends before its --budget is spent: call it until it says that nothing is left. A training that is
cut goes on in the next call, by seconds from its small state (a warm-up, and weights in half precision), so
that DIR may be taken to another machine; one that cannot end in a call is cut before its rate falls. Equal
seconds are those of updates; compiling, capturing and validating are left out. Weights are removed once they
are evaluated, unless --keep is given: results (DIR/results), ledgers and curves (DIR/NAME-seedK) stay. The
table is DIR/rivals.md.
"""

import time

BEGAN = time.monotonic()

import argparse  # noqa: E402
import gc  # noqa: E402
import json  # noqa: E402
import sys  # noqa: E402
from dataclasses import replace  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from chainroute.errors import ChainRouteError  # noqa: E402
from chainroute.neural.decode import DecodeOptions  # noqa: E402
from chainroute.neural.device import choose_device  # noqa: E402
from chainroute.neural.policy.store import read_card  # noqa: E402
from chainroute.neural.train import TrainConfig, ledger, read_recipe, train  # noqa: E402
from chainroute.neural.train.engines import ENGINES  # noqa: E402
from chainroute.neural.train.records import WEIGHTS  # noqa: E402
from chainroute.neural.train.snapshot import newest, read_header  # noqa: E402
from chainroute.neural.train.validation import best_rates  # noqa: E402
from chainroute.research.evaluate.network_tables import METHODS, SEED, methods_table  # noqa: E402
from chainroute.research.evaluate.results import read_all  # noqa: E402
from chainroute.research.evaluate.suites import Evaluation, run_neural, suites  # noqa: E402
from chainroute.runtime.progress import StatusLine  # noqa: E402
from chainroute.runtime.script import exit_with  # noqa: E402

COOLDOWN = 0.4  # share of the training over which the rate falls to zero
ASIDE = 80.0  # seconds without which a training is not begun, and none that is done evaluated
CLOSING = 10.0  # seconds for saving what is cut
ENSEMBLE = ("ccl-ens", "ccl-reld", (0.7, 0.8, 0.9, 1.0))  # CCL-Ens, whose weights it takes, and its rates


def main() -> int:
    options = _options()
    chosen = [(name, seed) for seed in options.seeds for name in options.names]
    left = [] if options.table else [pair for pair in chosen if not evaluated(*pair, options)]
    for pair in list(left):
        if out_of_time(options):
            break
        try:
            if make(*pair, options):
                left.remove(pair)
        except ChainRouteError as error:  # such as a lack of memory: the others go on
            print(f"{pair[0]}{SEED}{pair[1]}: {error}", file=sys.stderr, flush=True)
    table = methods_table(read_all([options.out / "results"]), engines(options.out))
    (options.out / "rivals.md").write_text(table.markdown())
    (options.out / "rivals.json").write_text(json.dumps(table.as_dict(), indent=1))
    print(table.markdown())
    print(f"left: {', '.join(f'{name}{SEED}{seed}' for name, seed in left) or 'nothing'}")
    return 0


def out_of_time(options: argparse.Namespace) -> bool:
    """Whether too little of the budget is left to begin or to evaluate a rival: the next call does it."""
    return time.monotonic() - BEGAN + ASIDE > options.budget


def make(name: str, seed: int, options: argparse.Namespace) -> bool:
    """Trains and evaluates a rival; whether it was done in time."""
    folder = options.out / f"{name}{SEED}{seed}"
    if not trained(folder, options):
        config = recipe(name, options.change)
        config = replace(config, seed=seed, validate_every=options.validate_every)
        time_left = options.budget - CLOSING - (time.monotonic() - BEGAN)
        limits: dict[str, Any] = {"seconds": time_left}
        if options.updates:
            cooldown = int(COOLDOWN * options.updates)
            config = replace(config, updates=options.updates, cooldown=cooldown, decay="linear")
        else:
            state = newest(folder)
            done = read_header(state).seconds if state else 0.0
            left, cooldown = options.seconds - done, COOLDOWN * options.seconds
            if left > cooldown and left + ASIDE > time_left:  # the next call has the whole fall
                limits |= {"update_seconds": left - cooldown, "full": False}
            else:
                limits |= {"update_seconds": left, "cooldown": cooldown, "full": False}
        report = train(config, folder, engine=options.engine, device=options.device, **limits)
        gc.collect()  # captured updates hold much memory
        print(f"{folder.name}: {report}", flush=True)
        if not trained(folder, options) or out_of_time(options):
            return False
    rates = best_rates(folder / WEIGHTS, options.n, options.task, options.limit, options.device)
    if rates:
        print(f"{folder.name}: P_ts = {rates[0]:g} is best on validation problems", flush=True)
    for job, decode in evaluations(name, seed, options, rates):
        run_neural(job, StatusLine(), weights=str(folder / WEIGHTS), options=decode, device=options.device)
    for file in folder.glob("*.safetensors"):
        if not options.keep:
            file.unlink()
    return True


def recipe(name: str, change: dict[str, Any]) -> TrainConfig:
    """The recipe of a rival, with fields changed."""
    values = read_recipe(HERE / "rivals" / f"{name}.toml").as_dict()
    policy = {**values["policy"], **change.get("policy", {})}
    return TrainConfig.from_dict({**values, **change, "policy": policy})


def trained(folder: Path, options: argparse.Namespace) -> bool:
    if not (folder / f"{WEIGHTS}.safetensors").exists():
        return False
    card = read_card(folder)
    return card["step"] >= options.updates if options.updates else card["seconds"] >= options.seconds


def evaluated(name: str, seed: int, options: argparse.Namespace) -> bool:
    """Whether all its results are there, whole."""
    there = {r.label: r.tasks for r in read_all([options.out / "results"])}
    on_gpu = choose_device(options.device).type == "cuda"
    for job, _ in evaluations(name, seed, options):
        ((_, _, tasks),) = suites(job, every=on_gpu)
        done = there.get(job.label, {})
        if any(task.name not in done or done[task.name].count < task.count for task in tasks):
            return False
    return True


def evaluations(
    name: str, seed: int, options: argparse.Namespace, rates: tuple[float, ...] | None = None
) -> list[tuple[Evaluation, DecodeOptions]]:
    """Of a rival at those update rates, and of CCL-Ens by the same weights."""
    jobs = [(name, rates)] + [(ens, rates) for ens, weights, rates in [ENSEMBLE] if weights == name]
    return [
        (
            Evaluation(
                sizes=(options.n,),
                only=tuple(options.task),
                limit=options.limit,
                out=options.out / "results",
                label=f"{label}{SEED}{seed}",
            ),
            DecodeOptions(update_rates=rates, augmentations=options.augment),
        )
        for label, rates in jobs
    ]


def engines(out: Path) -> dict[str, str]:
    """By which engine each run was trained: the first word of what its ledger says."""
    rows = {path.parent.name: ledger.read(path)[-1] for path in out.glob(f"*/{ledger.LOG}")}
    return {label: row["engine"].partition(" ")[0] for label, row in rows.items()}


def _options() -> argparse.Namespace:
    known = [name for name in METHODS if name != ENSEMBLE[0]]
    parser = argparse.ArgumentParser(description="Train rivals alike and compare them.")
    alike = parser.add_mutually_exclusive_group(required=True)
    alike.add_argument("--seconds", type=float, help="of updates, for each rival")
    alike.add_argument("--updates", type=int, help="of each rival")
    alike.add_argument("--table", action="store_true", help="only what there is")
    parser.add_argument("--names", nargs="+", choices=known, default=known)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--budget", type=float, default=570.0, help="seconds that this call may take")
    parser.add_argument("--engine", choices=ENGINES, default="auto")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--n", type=int, default=50, help="customers of the test problems")
    parser.add_argument("--task", type=str.upper, nargs="+", default=[], help="only these tasks")
    parser.add_argument("--limit", type=int, help="problems of each task")
    parser.add_argument("--augment", type=int, default=8)
    parser.add_argument("--validate-every", type=int, default=500, help="updates")
    parser.add_argument(
        "--change", type=json.loads, default={}, help='fields of all recipes, such as {"batch": 64}'
    )
    parser.add_argument("--keep", action="store_true", help="keep the weights")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    (options.out / "results").mkdir(parents=True, exist_ok=True)
    return options


if __name__ == "__main__":
    exit_with(main)
