"""Every stored solution of the public benchmark sets is judged feasible, at exactly the stated cost."""

import csv
import time

import numpy as np
import pytest
import vrplib
from where import SHARED

from chainroute import Rounding, check
from chainroute.formats import read, read_solution

BENCHMARKS = SHARED

# Endings of problem and solution, the rounding where the file does not say it, decimals of the stated cost.
SETS: dict[str, tuple[str, str, Rounding | None, int]] = {
    "X": (".vrp", ".sol", None, 0),
    "solomon": (".txt", ".sol", Rounding.TRUNC1, 1),
    "homberger600": (".txt", ".sol", Rounding.TRUNC1, 1),
    "mdvrp": (".txt", ".res", None, 2),
    "cmt": (".vrp", ".sol", Rounding.EXACT, 2),
    "vrpb/gj": (".vrpb", ".sol", None, 2),
    "vrpb/vrpmpd": (".vrpmpd", ".sol", None, 2),
}
SIZES = {
    "X": 100,
    "solomon": 56,
    "homberger600": 60,
    "mdvrp": 33,
    "cmt": 14,
    "vrpb/gj": 62,
    "vrpb/vrpmpd": 42,
}

pytestmark = pytest.mark.skipif(
    not BENCHMARKS.is_dir(),
    reason=f"the public benchmark sets are not at {BENCHMARKS.name} beside the checkout",
)


def stated_costs(name: str) -> dict[str, float]:
    """What the stored routes cost; where a file gives that apart, they do not all reach the best known
    value."""
    folder = BENCHMARKS / name
    apart = folder / "solution_costs.csv"
    with (apart if apart.exists() else folder / "bks.csv").open(newline="") as file:
        return {
            row["instance"]: float(row["cost" if apart.exists() else "bks"]) for row in csv.DictReader(file)
        }


@pytest.mark.parametrize("name", SETS)
def test_stored_solutions_are_feasible_at_the_stated_cost(name: str) -> None:
    problem_suffix, solution_suffix, rounding, decimals = SETS[name]
    costs = stated_costs(name)
    assert len(costs) == SIZES[name]
    for instance, cost in costs.items():
        problem = read(BENCHMARKS / name / f"{instance}{problem_suffix}", rounding)
        solution = read_solution(BENCHMARKS / name / f"{instance}{solution_suffix}", problem)
        verdict = check(problem, solution)
        assert verdict.feasible, f"{instance}: {verdict}"
        assert abs(verdict.cost - cost) <= 0.5 * 10**-decimals * (decimals == 2) + 1e-9 * cost, instance
        assert problem.name.lower() == instance.lower()
        if name == "vrpb/gj":  # by that set's rules every vehicle leaves
            assert sum(bool(route.visits) for route in solution.routes) == problem.fleet


def test_sets_have_the_variants_and_fleets_of_their_conventions() -> None:
    def kinds(name: str) -> set[tuple[str, bool, bool]]:
        suffix = SETS[name][0]
        problems = [read(path) for path in sorted((BENCHMARKS / name).glob(f"*{suffix}"))]
        return {(p.variant.name, p.fleet is not None, p.limit_counts_service) for p in problems}

    assert kinds("X") == {("CVRP", False, False)}
    assert kinds("solomon") == {("VRPTW", True, False)}
    assert kinds("cmt") == {("CVRP", False, False), ("VRPL", False, True)}
    assert kinds("mdvrp") == {("MDCVRP", True, False), ("MDVRPL", True, False), ("MDVRPL", True, True)}
    assert kinds("vrpb/gj") == {("VRPB", True, False)}
    assert kinds("vrpb/vrpmpd") == {("VRPMB", True, False), ("VRPMBL", True, True)}


def test_a_thousand_customers_load_in_less_than_0_3_seconds() -> None:
    def seconds() -> float:
        start = time.perf_counter()
        read(BENCHMARKS / "X" / "X-n1001-k43.vrp")
        return time.perf_counter() - start

    assert min(seconds() for _ in range(3)) < 0.3


@pytest.mark.parametrize("instance", ["X/X-n101-k25", "X/X-n1001-k43", "cmt/CMT1", "cmt/CMT14"])
def test_vrplib_reads_the_same_numbers(instance: str) -> None:
    path = BENCHMARKS / f"{instance}.vrp"
    ours, theirs = read(path), vrplib.read_instance(path, compute_edge_weights=False)
    np.testing.assert_array_equal(ours.coords, theirs["node_coord"])
    np.testing.assert_array_equal(ours.deliveries, theirs["demand"])
    assert (ours.capacity, ours.distance_limit) == (theirs["capacity"], theirs.get("distance"))
