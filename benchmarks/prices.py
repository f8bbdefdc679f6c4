"""How near recombining comes to the best that a pool of routes allows.

python -m benchmarks.prices
python -m benchmarks.prices --cases VRPTW-100 --problems 4

For each case, in percent: how far the bound that prices give is below the linear relaxation of set
partitioning, and what plans cost above it: the best trajectory, the search of a core (NumPy), and that of a
device; and milliseconds of this processor for either search. Problems have another seed than those of
`benchmarks.throughput`, so that nothing is chosen by what is reported. It needs SciPy.
"""

import argparse
import time
from collections.abc import Sequence

import numpy as np
import torch
from scipy.optimize import linprog
from scipy.sparse import csr_matrix
from torch import Tensor

from benchmarks.recombine import trajectories
from chainroute.generate import generate_arrays
from chainroute.neural.assembly import recombine
from chainroute.neural.decode.pools import Pools, pools_of
from chainroute.neural.decode.prices import prices_of
from chainroute.neural.decode.recombine import LEAST_GAIN, partition
from chainroute.neural.env.stacked import from_arrays
from chainroute.neural.policy.store import load_policy
from chainroute.options import DecodeOptions
from chainroute.problem.variants import variant

CASES = (
    "CVRP-50", "VRPTW-50", "OVRPBL-50", "MDVRPMBTW-50", "CVRP-100", "VRPTW-100", "OVRPLTW-100", "VRPB-100",
    "CVRP-200", "VRPTW-200",
)  # fmt: skip
SEED, MAPS, REEMBEDDINGS = 1, 4, 20


def pool(pools: Pools, instance: int, depots: int) -> tuple[np.ndarray, np.ndarray]:
    """The costs (R,) of an instance's routes and the customers they visit (R, N)."""
    there = pools.costs[instance].isfinite()
    return pools.costs[instance, there].numpy(), pools.holds[instance, there, depots:].numpy()


def relaxed(costs: np.ndarray, contains: np.ndarray) -> float:
    """The least cost of routes, or parts of these, that visit every customer once."""
    found = linprog(costs, A_eq=csr_matrix(contains.T.astype(float)), b_eq=np.ones(contains.shape[1]))
    return float(found.fun)


def measured(name: str, customers: int, count: int) -> list[float]:
    """The cells of a case."""
    batch = from_arrays(generate_arrays(variant(name), customers, count, seed=SEED), torch.device("cpu"))
    rates = (min(1.0, REEMBEDDINGS / customers),)
    options = DecodeOptions(augmentations=MAPS, update_rates=rates, recombine=True)
    actions, whole = trajectories(load_policy(), batch, options)
    pools, costs = pools_of(batch, actions)
    best = costs.masked_fill(~whole, torch.inf).amin(1)
    each = [pool(pools, b, batch.num_depots) for b in range(batch.size)]
    least = torch.tensor([relaxed(*one) for one in each])

    limit, begin = best * (1 - LEAST_GAIN), time.process_time()
    rows = [recombine.partition(*one, cost) for one, cost in zip(each, limit.tolist(), strict=True)]
    on_core = time.process_time() - begin
    by_core = [best[b] if row is None else each[b][0][row].sum() for b, row in enumerate(rows)]
    begin = time.process_time()
    chosen = partition(pools, batch.is_customer, limit)
    on_device = time.process_time() - begin
    found = pools.costs.gather(1, chosen.clamp(min=0)).where(chosen >= 0, 0.0).sum(1)
    by_device = found.where(chosen[:, 0] >= 0, best)
    bound = prices_of(pools, batch.is_customer, limit)[1]

    def above(cost: Tensor) -> float:
        return 100 * float((cost / least - 1).mean())

    ms = 1_000 / batch.size
    return [
        -above(bound),
        above(best),
        above(torch.tensor(by_core)),
        on_core * ms,
        above(by_device),
        on_device * ms,
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--cases", nargs="+", default=CASES, help="variants and customers")
    parser.add_argument("--problems", type=int, default=16, help="of each case")
    args = parser.parse_args(arguments)
    torch.set_num_threads(1)
    print("| case | bound below | best trajectory above | by a core | ms | by a device | ms |")
    print("| --- |" + " --- |" * 6)
    for case in args.cases:
        name, customers = case.split("-")
        cells = measured(name, int(customers), args.problems)
        print(f"| {case} | {' | '.join(f'{cell:.3f}' for cell in cells)} |", flush=True)


if __name__ == "__main__":
    main()
