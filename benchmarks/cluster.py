"""What a Ray cluster costs beside `solve_many` on the same cores: problems per second of both, in turns.

python -m benchmarks.cluster                                     # 40 problems of half a second, three times
python -m benchmarks.cluster --problems 200 --seconds 2 --turns 5

The cluster is two nodes of one core each on this machine; `solve_many` has two cores. Both have their workers
running before the clock starts.
"""

import argparse
import time
from collections.abc import Sequence

from benchmarks.compare import CORES, keep_to_cores
from chainroute.generate import generate
from chainroute.problem import Problem
from chainroute.problem.variants import variant
from chainroute.solve import solve_many


def rate(problems: Sequence[Problem], seconds: float, cluster: str | None) -> float:
    """Problems per second; every one has a plan."""
    begin = time.perf_counter()
    outcomes = list(solve_many(problems, seconds, cluster=cluster))
    took = time.perf_counter() - begin
    assert sorted(outcome.index for outcome in outcomes if outcome.result) == list(range(len(problems)))
    return len(problems) / took


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--problems", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=0.5, help="for each problem")
    parser.add_argument("--turns", type=int, default=3)
    args = parser.parse_args(arguments)
    import ray
    from ray.cluster_utils import Cluster

    keep_to_cores()
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    try:
        for _ in range(CORES):
            cluster.add_node(num_cpus=1)
        cluster.wait_for_nodes()
        ray.init(cluster.address, log_to_driver=False, logging_level="ERROR")  # once: solve_many finds it
        problems = generate(variant("VRPTW"), 50, args.problems, seed=0)
        for address in (None, cluster.address):  # starts the workers
            rate(problems[: 2 * CORES], args.seconds, address)
        for _ in range(args.turns):
            alone = rate(problems, args.seconds, None)
            spread = rate(problems, args.seconds, cluster.address)
            overhead = 100 * (alone / spread - 1)
            print(f"solve_many {alone:.3f}/s, cluster {spread:.3f}/s, overhead {overhead:.1f} %", flush=True)
        ray.shutdown()
    finally:
        cluster.shutdown()


if __name__ == "__main__":
    main()
