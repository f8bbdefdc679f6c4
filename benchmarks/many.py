"""Many problems: how many a second side by side, and one by one.

    python -m benchmarks.many [--count 12] [--customers 50] [--time-limit 0.5] [--policy-count 32]

One by one gives each problem all cores for the limit; side by side gives it one core for the same time. The
policy alone is measured with one map of each problem, in a batch and one by one.
"""

import argparse
import time
from collections.abc import Callable, Iterable

from chainroute.generate import generate
from chainroute.problem import Problem
from chainroute.problem.variants import variant
from chainroute.search.solvers import pyvrp
from chainroute.solve import Effort, Result, policy_process, solve, solve_many

POLICY = Effort(polish=False, augmentations=1)


def side_by_side(problems: list[Problem], limit: float | None, effort: Effort) -> list[Result]:
    outcomes = sorted(solve_many(problems, limit, effort=effort), key=lambda outcome: outcome.index)
    return [outcome.result for outcome in outcomes if outcome.result is not None]


def one_by_one(problems: list[Problem], limit: float | None, effort: Effort) -> list[Result]:
    return [solve(problem, limit, effort=effort) for problem in problems]


def measured(call: Callable[[], Iterable[Result]], count: int) -> str:
    """Problems a second, and the mean cost, as cells of a table."""
    begin = time.perf_counter()
    costs = [result.solution.cost for result in call()]
    seconds = time.perf_counter() - begin
    return f"{count / seconds:.2f} | {sum(costs) / len(costs):.4f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=12)
    parser.add_argument("--policy-count", type=int, default=32)
    parser.add_argument("--customers", type=int, default=50)
    parser.add_argument("--time-limit", type=float, default=0.5)
    args = parser.parse_args()
    few = generate(variant("CVRP"), args.customers, args.count, seed=0)
    many = generate(variant("CVRP"), args.customers, args.policy_count, seed=0)
    pyvrp.warm_up()
    policy_process.warm_up(POLICY)
    solve(few[0], 1.0)  # so that nobody pays for the start of the second worker
    limit = args.time_limit
    print(f"CVRP, {args.customers} customers, {policy_process.cores()} cores, {limit:g} s a problem\n")
    print("| | problems | a second | mean cost |\n| --- | --- | --- | --- |")
    for name, call in (("one by one", one_by_one), ("side by side", side_by_side)):
        row = measured(lambda call=call: call(few, limit, Effort()), len(few))  # type: ignore[misc]
        print(f"| solve, {name} | {len(few)} | {row} |", flush=True)
        row = measured(lambda call=call: call(many, None, POLICY), len(many))  # type: ignore[misc]
        print(f"| policy alone, {name} | {len(many)} | {row} |", flush=True)


if __name__ == "__main__":
    main()
