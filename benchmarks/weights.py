"""Whether weights are better than others, on validation problems of all 48 variants, each against itself.

python -m benchmarks.weights runs/all/weights all --n 50 100 --device cuda

Costs are of the best trajectory on eight maps, both with the re-embeddings that suit the second weights.
"""

import argparse

import numpy as np

from benchmarks.rates import costs
from chainroute.generate import benchmark
from chainroute.neural.device import choose_device
from chainroute.neural.env.stacked import from_arrays
from chainroute.neural.policy import Policy
from chainroute.neural.policy.store import load_policy
from chainroute.options import DecodeOptions
from chainroute.problem.measure import FloatArray
from chainroute.problem.variants import VARIANTS


def compared(weights: Policy, against: Policy, n: int, problems: int) -> dict[str, FloatArray]:
    """By how many per cent each problem of each variant costs more with the first weights."""
    options = DecodeOptions(update_rates=DecodeOptions().rates(n, against.reembeddings), rates_in_turn=True)
    more = {}
    for v in VARIANTS:
        batch = from_arrays(benchmark(v, n, "val", problems), against.device)
        first, second = (costs(policy, batch, options).min(0) for policy in (weights, against))
        more[v.name] = 100 * (first / second - 1)
    return more


def row(n: int, more: dict[str, FloatArray]) -> str:
    error = np.sqrt(sum(m.var() / len(m) for m in more.values())) / len(more)
    parts = [
        [m.mean() for task, m in more.items() if ("TW" in task) in kinds] for kinds in ((0, 1), (0,), (1,))
    ]
    every, without, windows = (f"{np.mean(part):+.3f}" for part in parts)
    return f"| {n} | {every} | {error:.3f} | {without} | {windows} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("weights")
    parser.add_argument("against")
    parser.add_argument("--n", type=int, nargs="+", default=[50], help="customers")
    parser.add_argument("--problems", type=int, default=64, help="of each variant, at most 128")
    parser.add_argument("--device", default="auto")
    args = parser.parse_args()
    weights, against = (
        load_policy(path, choose_device(args.device)) for path in (args.weights, args.against)
    )
    print(
        "| customers | cost % | standard error | without TW % | with TW % |\n| --- | --- | --- | --- | --- |"
    )
    for n in args.n:
        print(row(n, compared(weights, against, n, args.problems)), flush=True)


if __name__ == "__main__":
    main()
