"""Validation: the benchmark's problems as the policy sees them, and gaps that mean what they say."""

import math
from dataclasses import fields, replace

import pytest
import torch
from training import tiny

from chainroute.errors import ChainRouteError
from chainroute.generate import generate_arrays
from chainroute.generate.references import references
from chainroute.neural.env import from_problems
from chainroute.neural.env.stacked import from_arrays
from chainroute.neural.policy import PolicyConfig
from chainroute.neural.policy.store import random_policy, read_card, save_policy
from chainroute.neural.train import ledger, train
from chainroute.neural.train.validation import TaskCost, best_rates, evaluate_tasks, greedy_costs, mean_gap
from chainroute.problem.arrays import problems_from_arrays
from chainroute.problem.variants import SEEN, VARIANTS, variant

POLICY = random_policy(PolicyConfig(dim=8, heads=2, layers=1, hidden=8), seed=3)


@pytest.mark.parametrize("variant", VARIANTS[::3], ids=str)
def test_arrays_become_the_batch_that_their_problems_become(variant):
    """Field by field, but for the factor by which problems are stretched to fill the unit square."""
    arrays = generate_arrays(variant, 5, 1, seed=2)
    found, (problem,) = from_arrays(arrays), problems_from_arrays(arrays, "p")
    expected = from_problems([problem])
    low, extent = problem.coords.min(0), problem.coords.max(0) - problem.coords.min(0)
    factor = extent.max()
    for field in fields(found):
        a, b = getattr(found, field.name), getattr(expected, field.name)
        if field.name == "coords":
            b = b * factor + torch.from_numpy(low)
        elif field.name in ("distance", "duration", "opening", "closing", "service", "limit"):
            b = b * factor
        if isinstance(a, torch.Tensor):
            assert torch.allclose(a, b, rtol=1e-9, atol=1e-12), field.name
        else:
            assert a == b, field.name


def test_augmentation_takes_the_best_of_eight():
    """Never worse than the plain map alone, and for some problems better."""
    batch = from_arrays(generate_arrays(variant("VRPTW"), 8, 6, seed=2))
    plain, best = (greedy_costs(POLICY, batch, augment, 1.0) for augment in (False, True))
    assert (best <= plain + 1e-9).all()
    assert (best < plain - 1e-6).any()


def test_tasks_together_cost_what_they_cost_alone():
    """All 48 tasks at once give the means that each gives on its own."""
    tasks = evaluate_tasks(POLICY, 4, VARIANTS, "val", 3)
    assert [t.variant for t in tasks] == [v.name for v in VARIANTS]
    for task, one in list(zip(tasks, VARIANTS, strict=True))[::7]:
        (alone,) = evaluate_tasks(POLICY, 4, [one], "val", 3)
        assert alone.cost == pytest.approx(task.cost, rel=1e-6)


def test_update_rate_decides_whether_nodes_are_embedded_anew():
    """With P_ts = 0 the weights of TSNR do not matter, with 1 they do; a rate between is repeatable."""
    other = random_policy(POLICY.config, seed=3)
    for p in other.tsnr.parameters():
        p.data.fill_(0.1)
    batch = from_arrays(generate_arrays(variant("CVRP"), 8, 4, seed=2))

    def costs(policy, rate):
        return greedy_costs(policy, batch, False, rate)

    assert torch.equal(costs(POLICY, 0.0), costs(other, 0.0))
    assert not torch.equal(costs(POLICY, 1.0), costs(other, 1.0))
    assert torch.equal(costs(POLICY, 0.5), costs(POLICY, 0.5))


def test_references_are_complete():
    """A mean cost of every task at both sizes; more customers cost more, open routes less than closed."""
    known = references()
    assert known.keys() == {(v.name, n) for v in VARIANTS for n in (50, 100)}
    for v in VARIANTS:
        assert known[v.name, 100] > known[v.name, 50]
        if v.open:
            assert known[v.name, 50] < known[replace(v, open=False).name, 50]


def test_gaps():
    """A cost 10 % above the reference is a gap of 10 %; without a reference there is none."""
    with_gap = TaskCost("CVRP", 50, "val", 128, 11.0, 10.0)
    without = TaskCost("CVRP", 20, "val", 128, 6.0, None)
    assert with_gap.gap == pytest.approx(10)
    assert without.gap is None
    assert mean_gap([with_gap, without]) == pytest.approx(10)
    assert mean_gap([without]) is None


def test_evaluation_of_seen_tasks_at_the_papers_size():
    """The 16 seen tasks with 50 customers all have a reference, and an untrained policy is far above it."""
    tasks = evaluate_tasks(POLICY, 50, SEEN, "test", 1)
    assert all(task.gap is not None for task in tasks)
    assert mean_gap(tasks) > 10


def test_the_policy_that_is_best_on_one_variant_is_kept(tmp_path):
    """The weights beside the last ones are those of the validation with the lowest cost on CVRP."""
    config = tiny(
        variants=("VRPTW", "CVRP"), sizes=(50,), updates=2, validate_every=1, validate_count=1, select="CVRP"
    )
    train(config, tmp_path, device="cpu", silent=True)
    card = read_card(tmp_path / "best")
    curve = ledger.read(tmp_path / "curve.csv")
    gaps = {int(row["step"]): float(row["estimated_gap_CVRP_50"]) for row in curve}
    assert len(gaps) == 3
    assert card["step"] == min(gaps, key=lambda step: (gaps[step], step))
    assert card["selected"]["variant"] == "CVRP"
    assert all(math.isfinite(float(row["training_loss"])) for row in curve)


def test_a_run_that_goes_on_by_another_variant_chooses_anew(tmp_path):
    """What the kept policy cost on CVRP is no bound for VRPTW, which costs more."""
    by = {
        "variants": ("VRPTW", "CVRP"),
        "sizes": (5,),
        "updates": 2,
        "validate_every": 1,
        "validate_count": 1,
    }
    train(tiny(**by, select="CVRP"), tmp_path, updates=1, device="cpu", silent=True)
    before = read_card(tmp_path / "best")["selected"]["cost"]
    train(tiny(**by, select="VRPTW"), tmp_path, device="cpu", silent=True)
    selected = read_card(tmp_path / "best")["selected"]
    assert selected["variant"] == "VRPTW"
    assert selected["cost"] > before


def test_rates_are_chosen_of_those_that_the_card_has(tmp_path):
    """A card that says nothing of rates leaves the choice to decoding, one that says nonsense is refused."""
    save_policy(
        POLICY, tmp_path / "a", {"training": {"sizes": [5], "update_rate": 0.5, "test_update_rate": 0.5}}
    )
    assert best_rates(tmp_path / "a", 5, ["CVRP"], 1, "cpu") == (0.5,)
    save_policy(POLICY, tmp_path / "b", {})
    assert best_rates(tmp_path / "b", 5, ["CVRP"], 1, "cpu") is None
    save_policy(POLICY, tmp_path / "c", {"training": {"update_rate": "half"}})
    with pytest.raises(ChainRouteError) as error:
        best_rates(tmp_path / "c", 5, ["CVRP"], 1, "cpu")
    assert [f.code for f in error.value.faults] == ["weights-corrupt"]


@pytest.mark.parametrize("changes", [{"select": "OVRP", "validate_every": 1}, {"select": "CVRP"}])
def test_a_choice_that_cannot_be_made_is_told(changes):
    """There is none by a variant that is not trained on, or without validations."""
    with pytest.raises(ChainRouteError) as error:
        tiny(**changes)
    assert [f.where for f in error.value.faults] == ["select"]
