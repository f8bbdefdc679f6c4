"""Result files: what is saved comes back, and what does not belong together is refused."""

import json

import numpy as np
import pytest

from chainroute.errors import ChainRouteError
from chainroute.research.evaluate.results import Results, TaskResult, continued, read_all, read_results

NAMED = TaskResult(
    "X", np.array([147291.996, np.nan]), 2.0, 10, 1, 0, ("a", "b"), (147000.0, 5.0), ("a",), ("b: no",)
)


def results(**changes):
    fields = {"label": "n50", "suite": "seen", "n": 50, "rules": "exact", "settings": {"seed": 0}} | changes
    return Results(**fields)


def code(error):
    return error.value.faults[0].code


def test_what_is_saved_comes_back(tmp_path):
    """Costs of named instances to the last digit, of random ones to seven; few of them are in the JSON."""
    saved = results(n=None, suite="real", tasks={"X": NAMED, "CVRP": TaskResult("CVRP", np.array([1 / 3]))})
    saved.save(tmp_path)
    found = read_results(tmp_path / "n50-real")
    assert found.head() == saved.head()
    np.testing.assert_array_equal(found.tasks["X"].costs, NAMED.costs)
    assert {**vars(found.tasks["X"]), "costs": 0} == {**vars(NAMED), "costs": 0}
    assert found.tasks["CVRP"].costs[0] == pytest.approx(1 / 3, rel=1e-6)
    assert [path.name for path in tmp_path.iterdir()] == ["n50-real.json"]


def test_without_the_costs_the_means_remain(tmp_path):
    """Costs 1 and 3 in turn, 1,000 of them: the mean is 2 and its standard error 1 / sqrt(999)."""
    costs = np.tile([1.0, 3.0], 500)
    results(tasks={"CVRP": TaskResult("CVRP", costs, 2.0, 10, 100)}).save(tmp_path)
    whole = read_results(tmp_path / "n50-seen-n50").tasks["CVRP"]
    assert whole.costs.tolist() == costs.tolist()
    (tmp_path / "n50-seen-n50.npz").unlink()
    found = read_results(tmp_path / "n50-seen-n50").tasks["CVRP"]
    assert (found.count, found.solved, found.mean, found.seconds, found.judged) == (1000, 1000, 2, 2, 100)
    assert found.error == pytest.approx(1 / np.sqrt(999))
    read_results(tmp_path / "n50-seen-n50").save(tmp_path)  # and once more through a file
    assert read_results(tmp_path / "n50-seen-n50").tasks["CVRP"] == found
    with pytest.raises(ChainRouteError, match="means only"):
        continued(results(), tmp_path)


def test_files_of_the_first_format_are_read(tmp_path):
    """All costs were in the .npz then, and there were no commits and no standard errors."""
    entry = {"task": "t", "count": 2, "solved": 2, "mean": 1.5}
    entry |= {"seconds": 1.0, "memory": 0, "judged": 2, "refused": 0}
    page = {"format": 1, **results().head(), "tasks": [entry]}
    (tmp_path / "n50-seen-n50.json").write_text(json.dumps(page))
    np.savez(tmp_path / "n50-seen-n50.npz", t=np.array([1.0, 2.0]))
    assert read_results(tmp_path / "n50-seen-n50").tasks["t"].costs.tolist() == [1, 2]


def test_every_commit_that_solved_a_part_is_named(tmp_path):
    results(tasks={"X": NAMED}, commits=("abc",)).save(tmp_path)
    assert continued(results(commits=("abc",)), tmp_path).commits == ("abc",)
    assert continued(results(commits=("def",)), tmp_path).commits == ("abc", "def")


def test_names_keep_rules_and_sizes_apart():
    assert results().name == "n50-seen-n50"
    assert results(suite="zero-shot", rules="published").name == "n50-zero-shot-n50-published"


def test_a_mean_is_over_every_instance_or_none():
    assert TaskResult("t", np.array([1.0, 3.0])).mean == 2
    assert TaskResult("t", np.array([1.0, np.nan])).mean is None
    assert TaskResult("t").mean is None


def test_pieces_follow_each_other():
    both = TaskResult("t", np.array([1.0]), 1.0, 7, 1, 0, notes=("n",)) + TaskResult(
        "t", np.array([2.0]), 2.0, 5, 1, 1, notes=("n",)
    )
    assert (both.costs.tolist(), both.seconds, both.memory, both.judged, both.refused, both.notes) == (
        [1, 2], 3.0, 7, 2, 1, ("n",)
    )  # fmt: skip


def test_results_of_other_settings_are_not_continued(tmp_path):
    results(tasks={"X": NAMED}).save(tmp_path)
    assert continued(results(), tmp_path).tasks.keys() == {"X"}
    assert continued(results(label="new"), tmp_path).tasks == {}
    with pytest.raises(ChainRouteError, match="seed 0 there and 1 now") as error:
        continued(results(settings={"seed": 1}), tmp_path)
    assert code(error) == "other-settings"


def test_costs_written_before_a_sudden_end_do_not_count(tmp_path):
    """The costs are replaced first: when the page is from before, it says how many are complete."""
    results(tasks={"t": TaskResult("t", np.ones(200))}).save(tmp_path)
    page = (tmp_path / "n50-seen-n50.json").read_bytes()
    results(tasks={"t": TaskResult("t", np.ones(300))}).save(tmp_path)
    (tmp_path / "n50-seen-n50.json").write_bytes(page)
    assert read_results(tmp_path / "n50-seen-n50.json").tasks["t"].count == 200


@pytest.mark.parametrize(
    "content", ["{", "[]", "{}", '{"format": 9}', '{"format": 2, "tasks": [{}]}', '{"format": 2, "tasks": 5}']
)
def test_damaged_pages_are_coded_errors(tmp_path, content):
    results(tasks={"X": NAMED}).save(tmp_path)
    (tmp_path / "n50-seen-n50.json").write_text(content)
    with pytest.raises(ChainRouteError) as error:
        read_results(tmp_path / "n50-seen-n50.json")
    assert code(error) == "bad-result"


def test_damaged_costs_are_coded_errors(tmp_path):
    results(tasks={"X": NAMED}).save(tmp_path)
    page = tmp_path / "n50-seen-n50.json"
    entry = json.loads(page.read_text())
    entry["tasks"][0]["count"] = 5
    page.write_text(json.dumps(entry))
    with pytest.raises(ChainRouteError, match="5 costs of X promised, 2 found"):
        read_results(page)
    (tmp_path / "n50-seen-n50.npz").write_bytes(b"PK")
    (tmp_path / "other.json").write_text('{"format": 1}')
    with pytest.raises(ChainRouteError) as error:
        read_all([tmp_path])
    assert [fault.code for fault in error.value.faults] == ["bad-result", "bad-result"]
