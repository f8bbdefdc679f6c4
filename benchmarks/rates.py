"""Which update rates suit a policy, on validation problems: the same on all eight maps, or a rate for each.

python -m benchmarks.rates --weights weights/paper-n50 --n 50 --rates 0.7 0.8 0.9 1 --device cuda

Every rate is tried on every map once, and all rows of the table are made of that. Costs are against the first
row, the highest rate on all maps, with the standard error of the difference over all problems. Maps take the
rates of a mix in turn, so that it takes as long as one rate does; CCL-Ens has all rates on all maps. A rate
that is given again (') has other steps that re-embed.
"""

import argparse
from itertools import combinations

import numpy as np
import torch

from chainroute.generate import benchmark
from chainroute.neural.decode import rollouts
from chainroute.neural.device import choose_device
from chainroute.neural.env import ProblemBatch
from chainroute.neural.env.stacked import from_arrays
from chainroute.neural.policy import Policy
from chainroute.neural.policy.store import load_policy
from chainroute.options import MAPS, DecodeOptions
from chainroute.problem.measure import FloatArray
from chainroute.problem.variants import SEEN, VARIANTS


def tried(args: argparse.Namespace) -> dict[str, FloatArray]:
    """What the best trajectory of each problem costs by each rate on each map, (rates, maps, problems)."""
    policy = load_policy(args.weights, choose_device(args.device))
    found = {}
    for v in VARIANTS if args.all else SEEN:
        batch = from_arrays(benchmark(v, args.n, "val", args.problems), policy.device)
        found[v.name] = np.array(
            [
                costs(policy, batch, DecodeOptions(update_rates=(rate,), seed=args.rates[:k].count(rate)))
                for k, rate in enumerate(args.rates)
            ]
        )
        print(f"{v.name}: {found[v.name].min((0, 1)).mean():.4f}", flush=True)
    return found


@torch.inference_mode()
def costs(policy: Policy, batch: ProblemBatch, options: DecodeOptions) -> FloatArray:
    """What the best trajectory of each problem costs on each map, (maps, problems)."""
    best = torch.cat([part.costs.amin(1) for _, part in rollouts(policy, batch, options)])
    return best.view(batch.size, MAPS).T.cpu().numpy().astype(float)


def rows(rates: list[float]) -> dict[str, list[int] | None]:
    """Rows of the table: which rate each map has; None: all of them."""
    names = [f"{rate:g}" + "'" * rates[:i].count(rate) for i, rate in enumerate(rates)]
    single = {names[i]: [i] * MAPS for i, _ in sorted(enumerate(rates), key=lambda pair: -pair[1])}
    mixed = {
        " ".join(names[i] for i in some): [some[which % len(some)] for which in range(MAPS)]
        for count in range(2, len(rates) + 1)
        for some in combinations(range(len(rates)), count)
    }
    return {**single, **mixed, "all (CCL-Ens)": None}


def table(found: dict[str, FloatArray], rates: list[float]) -> str:
    lines = [
        "| rates | cost % | standard error | without TW % | with TW % |",
        "| --- | --- | --- | --- | --- |",
    ]
    first: dict[str, FloatArray] = {}
    for name, which in rows(rates).items():
        best = {
            task: (costs.min((0, 1)) if which is None else costs[which, np.arange(MAPS)].min(0))
            for task, costs in found.items()
        }
        first = first or best
        more = {task: 100 * (best[task] / first[task] - 1) for task in best}
        error = np.sqrt(sum(m.var() / len(m) for m in more.values())) / len(more)
        parts = [
            [m.mean() for task, m in more.items() if ("TW" in task) in kinds]
            for kinds in ((0, 1), (0,), (1,))
        ]
        means = [f"{np.mean(part):+.3f}" if part else "" for part in parts]
        lines.append(f"| {name} | {means[0]} | {error:.3f} | {means[1]} | {means[2]} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--weights", default="all")
    parser.add_argument("--n", type=int, default=50, help="customers")
    parser.add_argument("--rates", type=float, nargs="+", required=True)
    parser.add_argument("--problems", type=int, default=128, help="of each task, at most 128")
    parser.add_argument("--all", action="store_true", help="all 48 variants, not the 16 seen ones")
    parser.add_argument("--device", default="auto")
    args = parser.parse_args()
    print(table(tried(args), args.rates))


if __name__ == "__main__":
    main()
