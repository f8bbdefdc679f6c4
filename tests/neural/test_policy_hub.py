"""Policies as folders for model hubs: the card is filled and true, and what is exported is the policy."""

import json
import socket

import pytest
import torch
import yaml
from typer.testing import CliRunner

from chainroute.cli.app import app
from chainroute.errors import ChainRouteError
from chainroute.neural.policy import PolicyConfig
from chainroute.neural.policy.hub import README, export, readme
from chainroute.neural.policy.store import (
    IN_FOLDER,
    load_policy,
    random_policy,
    read_card,
    save_policy,
    shipped,
)

SMALL = PolicyConfig(dim=4, heads=2, hidden=4, layers=1)
FILES = sorted([*IN_FOLDER, README])


def front_matter(text):
    _, head, body = text.split("---\n", 2)
    return yaml.safe_load(head), body


@pytest.mark.parametrize("folder", shipped(), ids=lambda folder: folder.name)
def test_shipped_policies_are_such_folders_and_their_readme_is_their_card(folder):
    """Should the card change, `recipes/release.py` writes the README again."""
    assert sorted(path.name for path in folder.iterdir()) == FILES
    assert (folder / README).read_text() == readme(read_card(folder), folder.name)


@pytest.mark.parametrize("folder", shipped(), ids=lambda folder: folder.name)
def test_the_card_has_what_tools_of_hubs_read(folder):
    """Licence, library, tags, and every metric with its task, data and value; nothing is left open."""
    head, body = front_matter((folder / README).read_text())
    card = read_card(folder)
    assert (head["license"], head["library_name"]) == ("mit", "chainroute")
    assert {"vehicle-routing", "cvrp", "ovrpbltw"} <= set(head["tags"])
    ((name, results),) = ((model["name"], model["results"]) for model in head["model-index"])
    assert name == folder.name
    for result, known in zip(results, card["results"], strict=True):
        assert result["task"]["type"]
        assert result["dataset"]["type"]
        values = {metric["name"]: metric["value"] for metric in result["metrics"]}
        assert values.pop("Mean gap (%)", None) == known.get("mean_gap_percent")
        assert values == {f"{task}: gap (%)": gap for task, gap in known["gap_percent"].items()}
    assert "by the wide law" in body
    assert f"{card['instances']:,} problems" in body
    assert card["command"] in body
    assert "None" not in body


def test_an_exported_policy_is_the_same_and_needs_no_network(tmp_path, monkeypatch):
    """Bit for bit, by its folder and by either file in it."""
    monkeypatch.setattr(socket, "socket", None)
    made = export("all", tmp_path / "deep" / "mine")
    assert sorted(path.name for path in made) == FILES
    assert made[0].read_bytes() == (shipped()[-1] / IN_FOLDER[0]).read_bytes()
    assert (
        (made[0].parent / README)
        .read_text()
        .split("---\n")[2]
        .startswith("\n# mine: one network for all problems")
    )
    expected = load_policy("all").state_dict()
    for path in (made[0].parent, *made[:2]):
        loaded = load_policy(path).state_dict()
        assert all(torch.equal(loaded[name], value) for name, value in expected.items())


def test_a_run_is_exported_with_what_its_card_says(tmp_path):
    """Where there are no results, there are no metrics, rather than empty ones."""
    run, to = tmp_path / "run", tmp_path / "out"
    run.mkdir()
    training = {"variants": ["CVRP"], "sizes": [20], "test_update_rate": 1.0, "law": "wide"}
    save_policy(random_policy(SMALL), run / "weights", {"instances": 640, "step": 5, "training": training})
    export(run, to)
    head, body = front_matter((to / README).read_text())
    assert "model-index" not in head
    assert "license" not in head
    assert "cvrp" in head["tags"]
    assert "640 problems in 5 updates" in body
    assert "--law wide" in body
    assert load_policy(to).reembeddings == (20,)


def test_a_bare_policy_is_exported(tmp_path):
    """One whose author said nothing about it."""
    save_policy(random_policy(SMALL), tmp_path / "p", {})
    head, body = front_matter(export(tmp_path / "p", tmp_path / "out")[2].read_text())
    assert head["library_name"] == "chainroute"
    assert "# out: a policy for vehicle routing" in body


def test_a_policy_is_saved_into_a_folder(tmp_path):
    """It has the hub's names, also where the folder is there already."""
    save_policy(random_policy(SMALL), tmp_path, {"instances": 7})
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(IN_FOLDER)
    assert read_card(tmp_path)["instances"] == 7
    assert load_policy(tmp_path).config == SMALL


def test_a_policy_of_ones_own_goes_before_a_shipped_one_of_that_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert load_policy("all").config == PolicyConfig.from_dict(read_card(shipped()[-1])["config"])
    save_policy(random_policy(SMALL), "all", {})
    assert load_policy("all").config == SMALL


def test_a_policy_is_not_written_over_itself(tmp_path):
    save_policy(random_policy(SMALL), tmp_path, {})
    with pytest.raises(ChainRouteError, match="name another folder"):
        export(tmp_path, tmp_path / "." / "")
    assert not (tmp_path / README).exists()


def test_damaged_weights_are_not_handed_on(tmp_path):
    save_policy(random_policy(SMALL), tmp_path / "p", {})
    file = tmp_path / "p.safetensors"
    file.write_bytes(file.read_bytes()[:-1] + b"\1")
    with pytest.raises(ChainRouteError, match="checksum"):
        export(tmp_path / "p", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_one_missing_file_of_a_folder_is_named(tmp_path):
    save_policy(random_policy(SMALL), tmp_path, {})
    (tmp_path / IN_FOLDER[1]).unlink()
    with pytest.raises(ChainRouteError) as caught:
        load_policy(tmp_path)
    assert [(f.code, f.where) for f in caught.value.faults] == [
        ("weights-missing", str(tmp_path / IN_FOLDER[1]))
    ]


def test_the_command_lists_and_exports(tmp_path):
    listed = CliRunner().invoke(app, ["weights", "list", "--json"])
    names = [json.loads(line)["name"] for line in listed.output.splitlines()]
    assert names == [folder.name for folder in shipped()]
    assert "mean gap" in CliRunner().invoke(app, ["weights", "list"]).output
    done = CliRunner().invoke(app, ["weights", "export", "all", str(tmp_path / "out")])
    assert done.exit_code == 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == FILES
    (tmp_path / "file").touch()
    for name, folder in (("none", "out"), ("all", "file")):
        assert CliRunner().invoke(app, ["weights", "export", name, str(tmp_path / folder)]).exit_code == 2


RESULT = {"suite": "seen", "customers": 50, "gap_percent": {"CVRP": 1.0}, "mean_gap_percent": 1.0}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("sha256", 5),
        ("sha256", None),
        ("sha256", [5]),
        ("sha256", {}),
        ("results", "good"),
        ("results", {"seen": 1.0}),
        ("results", ["good"]),
        ("results", [{}]),
        ("results", [RESULT | {"gap_percent": [1.0]}]),
        ("results", [RESULT | {"gap_percent": {"CVRP": "1.0"}}]),
        ("results", [RESULT | {"mean_gap_percent": "1.0"}]),
        ("results", [RESULT | {"customers": "50"}]),
        ("results", [RESULT | {"suite": "best"}]),
        ("parameters", 4031488),
        ("parameters", {"total": 4}),
        ("instances", "many"),
        ("updates", [1]),
        ("step", None),
        ("gpu_seconds", "80"),
        ("begun_with", "n50-all"),
        ("begun_with", {"name": "n50-all", "instances": "many"}),
        ("training", [50]),
        ("training", {"sizes": 50}),
    ],
)
def test_a_field_of_a_wrong_kind_is_named_with_its_remedy(field, value, tmp_path):
    """Whoever reads the card is told, before anything is written."""
    save_policy(random_policy(SMALL), tmp_path / "p", {"reembeddings": [50]})
    file = tmp_path / "p.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), field: value, "gpu": "H200"}))
    for read in (read_card, load_policy, lambda path: export(path, tmp_path / "out")):
        with pytest.raises(ChainRouteError) as caught:
            read(tmp_path / "p")
        (fault,) = caught.value.faults
        assert (fault.code, fault.where) == ("weights-corrupt", str(file))
        assert fault.message.startswith(f"{field} must be ")
        assert field in fault.remedy
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "said",
    [
        {"results": [RESULT, {"suite": "x", "customers": None, "gap_percent": {"X-n101": 2}}]},
        {"gpu": "H200"},
        {"training": {"law": "printed", "sizes": [50]}},
        {"training": {"law": "paper"}},
        {"training": None},
    ],
)
def test_a_card_that_says_less_is_exported(said, tmp_path):
    save_policy(random_policy(SMALL), tmp_path / "p", {"reembeddings": [50], **said})
    file = tmp_path / "p.json"
    card = {name: value for name, value in json.loads(file.read_text()).items() if name != "parameters"}
    file.write_text(json.dumps(card))
    _, body = front_matter(export(tmp_path / "p", tmp_path / "out")[2].read_text())
    assert "A network that constructs routes" in body
    assert ("| X-n101 | 2 |" in body) == ("results" in said)
