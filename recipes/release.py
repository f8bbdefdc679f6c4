"""Makes a network to release from a run that was cooled down and evaluated.

    python recipes/release.py --run all --to chainroute/weights/all --command "python recipes/device.py ..."

It reads runs/NAME/weights.*, as recipes/device.py left them, and what `python -m chainroute.evaluate run`
found, put into docs/results under the name of the folder; it writes the weights in half precision, their card
(what they have seen, what they reach, and costs for the test that holds them) and a README.md of it for model
hubs. Without --run the card alone is made again, by the results of today.
"""

import argparse
import csv
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from chainroute.generate import benchmark  # noqa: E402
from chainroute.neural.decode import DecodeOptions, decode  # noqa: E402
from chainroute.neural.policy import Policy  # noqa: E402
from chainroute.neural.policy.hub import README, readme  # noqa: E402
from chainroute.neural.policy.store import IN_FOLDER, load_policy, read_card, save_policy  # noqa: E402
from chainroute.problem.arrays import problems_from_arrays  # noqa: E402
from chainroute.problem.variants import VARIANTS, Variant  # noqa: E402
from chainroute.research.evaluate.gaps import gap  # noqa: E402
from chainroute.research.evaluate.results import Results, read_results  # noqa: E402

RESULTS = ROOT / "docs" / "results"
SUITES = ("seen-n50", "zero-shot-n50", "seen-n100", "zero-shot-n100", "real")
TASKS = {"seen": 16, "zero-shot": 32}  # of a suite, without all of which there is no mean
GOLDEN_COUNT = 8  # first validation problems of each variant
GOLDEN_SIZE, GOLDEN_STARTS = 50, 4  # small and few, so that the test is quick


def golden_costs(policy: Policy, variants: Sequence[Variant] = VARIANTS) -> dict[str, float]:
    """Mean costs on fixed problems of each variant: what a later version must reproduce."""
    options = DecodeOptions(starts=GOLDEN_STARTS, augmentations=1, update_rates=(1.0,))
    costs = {}
    for v in variants:
        problems = problems_from_arrays(benchmark(v, GOLDEN_SIZE, "val", GOLDEN_COUNT), v.name)
        costs[v.name] = sum(s.cost for s in decode(policy, problems, options)) / len(problems)
    return costs


def results_of(name: str) -> list[dict[str, Any]]:
    """What the network of that name reached in each suite: the gap of each task, and their mean."""
    files = [RESULTS / f"{name}-{suite}.json" for suite in SUITES]
    return [_summary(read_results(file)) for file in files if file.exists()]


def _summary(results: Results) -> dict[str, Any]:
    found = {task.task: gap(results, task) for task in results.tasks.values()}
    gaps = {task: one.percent for task, one in found.items() if one is not None}
    whole = len(gaps) == TASKS.get(results.suite)
    mean = {"mean_gap_percent": round(sum(gaps.values()) / len(gaps), 3)} if whole else {}
    rounded = {task: round(percent, 3) for task, percent in gaps.items()}
    return {"suite": results.suite, "customers": results.n, **mean, "gap_percent": rounded}


def facts(run: Path, command: str, title: str, data: str, origin: Path | None) -> dict[str, Any]:
    """What a run says about the network that it made."""
    made = read_card(run / "weights")
    begun = {} if origin is None else {"begun_with": before(read_card(origin), origin.name)}
    with open(run / "log.csv", newline="") as file:
        gpu = list(csv.DictReader(file))[-1]["device"]
    return {
        "name": title,
        "licence": "MIT",
        "sizes": made["training"]["sizes"],
        "data": data,
        "instances": made["instances"],
        "gpu_seconds": made["seconds"],
        "updates": made["step"],
        **begun,
        "gpu": gpu,
        "command": command,
        "training": made["training"],
    }


def before(other: dict[str, Any], name: str) -> dict[str, Any]:
    """What the policy with which a run began had seen itself."""
    seconds, updates = other.get("gpu_seconds", other.get("seconds")), other.get("updates", other.get("step"))
    return {"name": name, "instances": other["instances"], "gpu_seconds": seconds, "updates": updates}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--to", required=True, type=Path, help="folder of the network, whose name it bears")
    parser.add_argument("--run", help="name of the run: a folder in runs/")
    parser.add_argument("--command", help="which made the weights")
    parser.add_argument("--title", help="the network in a few words")
    parser.add_argument("--data", help="what it was trained on, in a sentence")
    parser.add_argument(
        "--reembeddings", type=float, nargs="+", help="that suit it on validation problems (benchmarks.rates)"
    )
    parser.add_argument("--begun-with", type=Path, help="folder of the network with which the run began")
    options = parser.parse_args()
    to: Path = options.to.resolve()
    if options.run:
        run = ROOT / "runs" / options.run
        policy = load_policy(run / "weights")
        golden = {name: round(cost, 6) for name, cost in golden_costs(policy).items()}
        made = facts(run, options.command, options.title, options.data, options.begun_with)
        to.mkdir(exist_ok=True)
        save_policy(policy, to, {**made, "golden_costs": golden}, torch.float16)
    card = {**read_card(to), "results": results_of(to.name)}
    if options.reembeddings:
        card["reembeddings"] = options.reembeddings
    (to / IN_FOLDER[1]).write_text(json.dumps(card, indent=2, ensure_ascii=False) + "\n")
    (to / README).write_text(readme(card, to.name))
    for one in card["results"]:
        print(f"{to.name}: {one['suite']}, {one['customers']} customers: {one.get('mean_gap_percent')} %")


if __name__ == "__main__":
    main()
