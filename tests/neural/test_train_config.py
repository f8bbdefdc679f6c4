"""Training configurations: what is wrong with one is said, all at once."""

import json
from dataclasses import replace

import pytest
from training import TINY, tiny
from typer.testing import CliRunner
from where import RECIPES

from chainroute.cli.app import app
from chainroute.errors import ChainRouteError
from chainroute.neural.train import TrainConfig, read_recipe
from chainroute.neural.train.config import require_same
from chainroute.problem.variants import SEEN, VARIANTS


def faults(make):
    with pytest.raises(ChainRouteError) as caught:
        make()
    return [(f.code, f.where) for f in caught.value.faults]


def test_there_and_back_through_json():
    for config in (TrainConfig(), TINY):
        assert TrainConfig.from_dict(json.loads(json.dumps(config.as_dict()))) == config


def test_a_recipe_may_change_another(tmp_path):
    """Fields, and fields of the network, stand over those of the base, which may have a base itself."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.toml").write_text("batch = 8\nseed = 3\n[policy]\ndim = 32\nlayers = 2\n")
    (tmp_path / "b.toml").write_text('base = "a.toml"\nseed = 4\n')
    (tmp_path / "sub" / "c.toml").write_text('base = "../b.toml"\n[policy]\nlayers = 1\n')
    config = read_recipe(tmp_path / "sub" / "c.toml")
    assert (config.batch, config.seed, config.policy.dim, config.policy.layers) == (8, 4, 32, 1)


@pytest.mark.parametrize(
    ("base", "code"), [("3", "wrong-type"), ('"b.toml"', "bad-option"), ('"c.toml"', "bad-option")]
)
def test_a_base_that_is_none_is_told(tmp_path, base, code):
    """No path, the recipe itself, and one that is based on it."""
    (tmp_path / "b.toml").write_text(f"base = {base}\n")
    (tmp_path / "c.toml").write_text('base = "b.toml"\n')
    ((found, where),) = faults(lambda: read_recipe(tmp_path / "b.toml"))
    assert found == code
    assert where.endswith(".toml: base")


def test_short_forms():
    """Groups of variants, names in small letters and a single size."""
    assert TrainConfig.from_dict({"variants": "all"}).mixture == VARIANTS
    assert TrainConfig.from_dict({"variants": "seen"}).mixture == SEEN
    config = TrainConfig.from_dict({"variants": ["cvrp", "OvrpTW"], "sizes": 20})
    assert (config.variants, config.sizes) == (("CVRP", "OVRPTW"), (20,))
    chosen = TrainConfig.from_dict({"variants": ["Cvrp"], "select": "cvrp", "validate_every": 1})
    assert chosen.select == "CVRP"


def test_a_field_that_older_runs_have_at_zero_is_passed_over():
    """Set to anything else it is unknown."""
    assert TrainConfig.from_dict({"average": 0.0}) == TrainConfig()
    assert faults(lambda: TrainConfig.from_dict({"average": 0.9})) == [("unknown-field", "average")]


def test_all_faults_at_once():
    values = {
        "variants": ["CVRP", "CVRQ", "cvrp"],
        "sizes": [0, 50],
        "batch": 2.5,
        "update_rate": 1.5,
        "learning_rate": 0,
        "clip": float("nan"),
        "objective": "worst",
        "learningrate": 1,
        "policy": {"heads": 0, "size": 3},
    }
    assert faults(lambda: TrainConfig.from_dict(values)) == [
        ("unknown-field", "learningrate"),
        ("unknown-field", "policy.size"),
        ("unknown-variant", "variants[1]"),
        ("bad-option", "variants[2]"),
        ("bad-option", "sizes[0]"),
        ("bad-option", "batch"),
        ("bad-option", "update_rate"),
        ("bad-option", "learning_rate"),
        ("bad-option", "clip"),
        ("unknown-value", "objective"),
    ]


def test_fields_that_belong_together_are_told_though_one_is_of_a_wrong_kind():
    values = {"variants": 1.5, "select": "CVRP", "validate_every": 1, "sizes": 1.5, "batch": [0, 8]}
    assert faults(lambda: TrainConfig.from_dict(values)) == [
        ("wrong-type", "variants"),
        ("wrong-type", "sizes"),
        ("bad-option", "batch"),
    ]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("variants", ()),
        ("variants", "CVRP"),
        ("variants", (1,)),
        ("sizes", ()),
        ("sizes", (True,)),
        ("sizes", (20_001,)),
        ("sizes", (5, 5)),
        ("batch", 0),
        ("batch", "8"),
        ("batch", True),
        ("batch", (8, 8)),
        ("batch", (0,)),
        ("law", "narrow"),
        ("starts", -1),
        ("update_spread", 0.5),  # around 0.75: up to 1.125
        ("seed", -1),
        ("validate_count", 129),
        ("snapshot_every", -1),
        ("snapshot_every", float("inf")),
        ("decay", None),
        ("policy", {}),
    ],
)
def test_a_field_out_of_range_is_named(field, value):
    found = faults(lambda: replace(TINY, **{field: value}))
    assert [where.partition("[")[0] for _, where in found] == [field]


def test_a_batch_for_each_size():
    """As many instances as the size has; a single number holds for all sizes; both survive as JSON."""
    config = tiny(sizes=(4, 8), batch=(12, 3))
    assert [config.instances(n) for n in (4, 8)] == [12, 3]
    assert TrainConfig.from_dict(config.as_dict()) == config
    assert tiny(sizes=(4, 8), batch=5).instances(8) == 5


def test_recipes_are_sound():
    """Every recipe that we ship can be read; the paper's are the paper's."""
    found = {path.stem: read_recipe(path) for path in RECIPES.glob("*.toml")}
    assert {"paper-n50", "paper-n100", "toy", "device", "all"} <= found.keys()
    assert (found["all"].law, len(found["all"].mixture)) == ("wide", 48)
    for n, rate in ((50, 0.75), (100, 0.25)):
        paper = found[f"paper-n{n}"]
        assert (paper.sizes, paper.update_rate, paper.batch, paper.learning_rate) == ((n,), rate, 256, 3e-4)
        assert paper.mixture == SEEN
        assert paper.updates * paper.batch == pytest.approx(300 * 100_000, rel=1e-5)
        assert paper.cooldown == pytest.approx(paper.updates / 10, rel=1e-4)


@pytest.mark.parametrize(
    ("name", "text", "code"),
    [
        ("x.toml", "batch = = 3", "bad-syntax"),
        ("x.json", "{", "bad-syntax"),
        ("x.json", "[1]", "bad-syntax"),
        ("x.toml", b"\xff\xfe", "not-text"),
        ("x.toml", "size = 3", "unknown-field"),
    ],
)
def test_faulty_recipe_files(tmp_path, name, text, code):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    assert {c for c, _ in faults(lambda: read_recipe(path))} == {code}


def test_missing_recipe_files(tmp_path):
    assert faults(lambda: read_recipe(tmp_path / "none.toml")) == [
        ("file-not-found", str(tmp_path / "none.toml"))
    ]
    assert faults(lambda: read_recipe(tmp_path)) == [("file-unreadable", str(tmp_path))]


def test_same_run_or_another():
    """Length, cool-down, validation and snapshots may change between stretches; nothing else may."""
    require_same(TINY, tiny(updates=9, cooldown=3, validate_every=5, snapshot_every=7), "here")
    other = tiny(batch=8, seed=3, updates=9, policy={"dim": 16})
    assert faults(lambda: require_same(TINY, other, "here")) == [
        ("other-config", "batch"),
        ("other-config", "seed"),
        ("other-config", "policy.dim"),
    ]


def test_what_is_wrong_with_a_recipe_is_told_with_its_file(tmp_path):
    """Also where the command has an option of the same name."""
    path = tmp_path / "mine.toml"
    path.write_text("updates = -5\nobjektive = 1\n[policy]\ntsrn = 2\n")
    places = {where for _, where in faults(lambda: read_recipe(path))}
    assert places == {f"{path}: {field}" for field in ("updates", "objektive", "policy.tsrn")}
    found = CliRunner().invoke(app, ["train", str(tmp_path / "run"), "--recipe", str(path)])
    assert f"{path}: updates: must be" in found.output
    assert "--updates" not in found.output
