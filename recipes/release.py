"""Makes the weights that come with the package from a run that was cooled down and evaluated.

    python recipes/release.py --run n50 --command "python recipes/device.py --run n50 ..."

It reads runs/NAME/weights.*, as recipes/device.py left them, and what `python -m chainroute.evaluate run
--suite seen` found, put into docs/results; it writes the weights in half precision, their card (what they
have seen, what they reach, and costs for the test that holds them) and a README.md of it for model hubs.
"""

import argparse
import csv
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from chainroute.arrays import problems_from_arrays  # noqa: E402
from chainroute.decode import DecodeOptions, decode  # noqa: E402
from chainroute.evaluate.gaps import gap  # noqa: E402
from chainroute.evaluate.results import read_results  # noqa: E402
from chainroute.generate import benchmark  # noqa: E402
from chainroute.policy import Policy  # noqa: E402
from chainroute.policy.hub import README, readme  # noqa: E402
from chainroute.policy.store import load_policy, read_card, save_policy  # noqa: E402
from chainroute.variants import VARIANTS, Variant  # noqa: E402

WEIGHTS = ROOT / "chainroute" / "weights"
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


def card(run: Path, command: str, size: int, origin: str | None) -> dict[str, Any]:
    made = read_card(run / "weights")
    begun = {} if origin is None else {"begun_with": before(read_card(WEIGHTS / origin), origin)}
    results = read_results(ROOT / "docs" / "results" / f"{run.name}-seen-n{size}.json")
    gaps = {task.task: gap(results, task).percent for task in results.tasks.values()}
    with open(run / "log.csv", newline="") as file:
        gpu = list(csv.DictReader(file))[-1]["device"]
    return {
        "name": f"CCL+ReLD, {size} customers",
        "licence": "MIT",
        "sizes": [size],
        "data": "16 seen variants, each as likely as the others, by the law of chainroute.generate",
        "instances": made["instances"],
        "gpu_seconds": made["seconds"],
        "updates": made["step"],
        **begun,
        "gpu": gpu,
        "command": command,
        "gap_percent_of_test_tasks": {task: round(gap, 3) for task, gap in gaps.items()},
        "mean_gap_percent": round(sum(gaps.values()) / len(gaps), 3),
        "training": made["training"],
    }


def before(other: dict[str, Any], name: str) -> dict[str, Any]:
    """What the policy with which a run began had seen itself."""
    return {"name": name, **{key: other[key] for key in ("instances", "gpu_seconds", "updates")}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--run", required=True, help="name of the run: a folder in runs/")
    parser.add_argument("--command", required=True, help="which made the weights")
    parser.add_argument("--size", type=int, default=50, help="customers that the weights are for")
    parser.add_argument("--begun-with", help="name of the shipped weights with which the run began")
    options = parser.parse_args()
    run, to = ROOT / "runs" / options.run, WEIGHTS / f"n{options.size}"
    facts = card(run, options.command, options.size, options.begun_with)
    policy = load_policy(run / "weights")
    golden = {name: round(cost, 6) for name, cost in golden_costs(policy).items()}
    to.mkdir(exist_ok=True)
    save_policy(policy, to, {**facts, "golden_costs": golden}, torch.float16)
    (to / README).write_text(readme(read_card(to), to.name))
    print(f"{to.name}: {facts['mean_gap_percent']} % over {len(facts['gap_percent_of_test_tasks'])} tasks")


if __name__ == "__main__":
    main()
