"""The flow shop from the command line: `python -m chainroute.scheduling train FILE`, then `evaluate FILE`."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from chainroute.formats.plot import SUFFIXES
from chainroute.research.scheduling.exact import optimum
from chainroute.research.scheduling.gantt import draw
from chainroute.research.scheduling.learning import Training, load, save, solve, train
from chainroute.research.scheduling.shop import FlowShop, Schedule, check, generate, list_schedule
from chainroute.runtime.script import exit_with

TEST_SEED = 1234


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    if options.verb == "train":
        options.weights.parent.mkdir(parents=True, exist_ok=True)
        config = Training(
            options.stages, options.machines, options.jobs, options.batch, options.updates,
            warmup=min(20, options.updates // 10), cooldown=int(0.4 * options.updates),
            learning_rate=options.learning_rate, update_rate=options.update_rate, seed=options.seed,
            policy=replace(Training().policy, dim=options.dim, hidden=4 * options.dim),
        )  # fmt: skip
        policy = train(config, options.seconds, options.device, _tell)
        save(policy.cpu(), config, options.weights)
        return 0
    policy, config = load(options.weights)
    policy.to(options.device)
    jobs = options.jobs or config.jobs
    shops = generate(config.stages, config.machines, jobs, options.count, TEST_SEED)
    solvers: dict[str, Callable[[], list[Schedule]]] = {
        "list scheduler": lambda: [list_schedule(shop) for shop in shops]
    }
    for rate in options.update_rate or [config.update_rate]:
        solvers[f"policy, P_ts {rate:g}"] = partial(solve, policy, shops, rate)
    if options.exact:
        solvers["optimum"] = lambda: [optimum(shop) for shop in shops]
    print(f"{len(shops)} shops of {jobs} jobs, {config.stages} stages of {config.machines} machines")
    for name, solver in solvers.items():
        began = time.monotonic()
        made = solver()
        print(f"{name}: mean makespan {_mean(shops, made):.3f} in {time.monotonic() - began:.2f} s")
        if options.plot and name.startswith("policy"):
            draw(shops[0], made[0], options.plot)
    return 0


def _mean(shops: list[FlowShop], made: list[Schedule]) -> float:
    """The mean makespan of what the judge has accepted."""
    verdicts = [check(shop, schedule) for shop, schedule in zip(shops, made, strict=True)]
    assert all(verdict.feasible for verdict in verdicts)
    return sum(verdict.makespan for verdict in verdicts) / len(shops)


def _tell(row: dict[str, float]) -> None:
    print("  ".join(f"{name} {value:.4g}" for name, value in row.items()), flush=True)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m chainroute.scheduling", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    training = verbs.add_parser("train", help="train a policy for shops of one shape")
    training.add_argument("weights", type=Path)
    for name in ("stages", "machines", "jobs", "batch", "updates"):
        training.add_argument(f"--{name}", type=_count, default=getattr(Training(), name))
    training.add_argument("--seed", type=int, default=Training().seed)
    training.add_argument("--dim", type=_count, default=Training().policy.dim, help="width of the network")
    training.add_argument("--learning-rate", type=float, default=Training().learning_rate)
    rate = Training().update_rate
    training.add_argument("--update-rate", type=_share, default=rate, help="P_tr; 0 trains without TSNR")
    training.add_argument("--seconds", type=float, help="end after so many, if updates are not done before")
    testing = verbs.add_parser("evaluate", help="compare it with a list scheduler")
    testing.add_argument("weights", type=Path)
    testing.add_argument("--jobs", type=_count, help="those of training unless given")
    testing.add_argument("--count", type=_count, default=32, help="shops")
    testing.add_argument("--update-rate", type=_share, nargs="+", help="P_ts; that of training unless given")
    testing.add_argument("--exact", action="store_true", help="also the proven optimum, of small shops")
    testing.add_argument("--plot", type=_picture, help="the first schedule as a picture")
    for verb in (training, testing):
        verb.add_argument("--device", default="cpu")
    return parser.parse_args(arguments)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1 on, not '{text}'")
    return int(text)


def _share(text: str) -> float:
    with suppress(ValueError):
        if 0 <= float(text) <= 1:
            return float(text)
    raise argparse.ArgumentTypeError(f"must be a number from 0 to 1, not '{text}'")


def _picture(text: str) -> Path:
    if Path(text).suffix.lower() not in SUFFIXES:
        raise argparse.ArgumentTypeError(f"'{text}' does not end in {', '.join(SUFFIXES)}")
    return Path(text)


if __name__ == "__main__":
    exit_with(main)
