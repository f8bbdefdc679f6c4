"""benchmarks/before.py: what two versions take for the variants, and what it says of them."""

import json

from benchmarks.before import ROOT, invented, measured, report


def test_a_version_is_measured_in_a_process_of_its_own_and_compared(tmp_path, capsys):
    """Against itself: every plan costs the same."""
    chosen = {name: text for name, text in invented(10).items() if name in ("CVRP", "MDOVRPMBLTW")}
    (tmp_path / "problems.json").write_text(json.dumps(chosen))
    turn = measured(ROOT, tmp_path / "problems.json", 3)
    assert all(fact > 0 for facts in turn.values() for fact in facts.values())
    slow = {name: {**facts, "search": 2 * facts["search"]} for name, facts in turn.items()}
    report([slow, turn], [slow, slow])
    said = capsys.readouterr().out
    assert "all 2 variants" in said
    assert "costs: 0 lower, 2 the same, 0 higher" in said
    ratios = {line.split()[0]: line.split()[-1] for line in said.splitlines() if "ratio" in line}
    assert (ratios["read"], ratios["search"]) == ("1.000", "2.000")
