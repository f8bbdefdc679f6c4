"""Snapshots: what is saved goes on exactly, and what is broken is refused."""

import errno
import json
import os
from pathlib import Path

import pytest
import torch
from safetensors import torch as safetensors
from training import TINY, plain, same, tiny

from chainroute.errors import ChainRouteError
from chainroute.neural.train import snapshot
from chainroute.neural.train.learner import Learner
from chainroute.neural.train.snapshot import FULL, SMALL, load, newest, read_header, save
from chainroute.runtime.revision import revision


def faults(act):
    with pytest.raises(ChainRouteError) as caught:
        act()
    return {f.code for f in caught.value.faults}


def trained(config=TINY, updates=3):
    learner, engine = plain(config)
    for _ in range(updates):
        engine.update(1e-2)
    return learner, engine


@pytest.mark.parametrize("changes", [{}, {"optimiser": "muon"}], ids=str)
def test_full_snapshot_goes_on_exactly(tmp_path, changes):
    """Three updates, a snapshot, and two more in another learner: the same bits as five updates."""
    config = tiny(**changes)
    learner, engine = trained(config)
    learner.seconds = 12.3456
    save(tmp_path / FULL, learner)
    other, engine_too = plain(config)
    load(tmp_path / FULL, other)
    assert same(learner, other)
    assert other.seconds == 12.346
    for e in (engine, engine_too):
        e.update(1e-2)
        e.update(1e-2)
    assert same(learner, other)


def test_a_run_whose_moments_were_restarted_goes_on_exactly(tmp_path):
    """The warm-up goes on where it was, counted from the restart."""
    learner, engine = trained(updates=2)
    learner.restart_moments()
    engine.update(1e-2)
    save(tmp_path / FULL, learner)
    other, engine_too = plain()
    load(tmp_path / FULL, other)
    assert (other.step, other.warm_since) == (3, 2)
    assert other.rate() == learner.rate() < TINY.learning_rate
    for e in (engine, engine_too):
        e.update(1e-2)
    assert same(learner, other)


def test_small_state_keeps_weights_and_rebuilds_moments(tmp_path):
    """Weights survive in half precision, costs in full; the optimiser starts again and warms up."""
    learner, _ = trained()
    save(tmp_path / SMALL, learner, full=False)
    other, engine = plain()
    load(tmp_path / SMALL, other)
    for p, q in zip(learner.policy.parameters(), other.policy.parameters(), strict=True):
        assert torch.equal(p.half(), q.half())
        assert torch.allclose(p, q, atol=1e-3)
    assert torch.equal(learner.means.nan_to_num(), other.means.nan_to_num())
    assert (other.step, other.warm_since) == (3, 3)
    assert not any(t.any() for _, t in other.optimiser.moments())
    assert not any(t.any() for t in other.optimiser.counters())
    engine.update(1e-2)


def test_small_state_of_the_full_network_is_under_10_mb(tmp_path):
    save(tmp_path / SMALL, Learner.fresh(tiny(policy=vars(snapshot.TrainConfig().policy))), full=False)
    assert (tmp_path / SMALL).stat().st_size < 10_000_000


def test_readable_header(tmp_path):
    """The JSON beside a snapshot says what it is, as its own header does."""
    learner, _ = trained()
    save(tmp_path / FULL, learner)
    said = json.loads((tmp_path / "snapshot.json").read_text())
    header = read_header(tmp_path / FULL)
    assert said == header.as_dict()
    assert (header.config, header.step, header.instances, header.full) == (TINY, 3, 12, True)
    assert header.revision == revision() != ""


def test_newest_of_full_and_small(tmp_path):
    """Whichever is further; of two equally far, the full one."""
    assert newest(tmp_path) is None
    learner, engine = trained()
    save(tmp_path / SMALL, learner, full=False)
    assert newest(tmp_path) == tmp_path / SMALL
    save(tmp_path / FULL, learner)
    assert newest(tmp_path) == tmp_path / FULL
    engine.update(1e-2)
    save(tmp_path / SMALL, learner, full=False)
    assert newest(tmp_path) == tmp_path / SMALL


def test_half_precision_only_in_small_states(tmp_path):
    """Costs, which may be large, and everything in a full snapshot stay as they are."""
    learner = Learner.fresh(TINY)
    for name, full in ((FULL, True), (SMALL, False)):
        save(tmp_path / name, learner, full)
        kinds = {key: t.dtype for key, t in safetensors.load_file(tmp_path / name).items()}
        policy = {kind for key, kind in kinds.items() if key.startswith("policy.")}
        assert policy == {torch.float32 if full else torch.float16}
        assert kinds["means"] == torch.float32
        assert read_header(tmp_path / name).full == full


# -- what is refused


@pytest.mark.parametrize("size", [0, 5, 200, -1])
def test_cut_short(tmp_path, size):
    """A snapshot that was cut anywhere is refused, and nothing of it is taken over."""
    path = tmp_path / FULL
    save(path, trained()[0])
    path.write_bytes(path.read_bytes()[:size])
    learner = Learner.fresh(TINY)
    before = Learner.fresh(TINY)
    assert faults(lambda: load(path, learner)) == {"snapshot-broken"}
    assert same(learner, before)  # nothing of it was taken over


def tensors_in(path):
    """The tensors of a file, as copies: a mapped file must not be written over."""
    return {name: tensor.clone() for name, tensor in safetensors.load_file(path).items()}


def test_other_files(tmp_path):
    """Weights of something else, another version, tensors that do not fit, no file at all."""
    path = tmp_path / FULL
    learner = Learner.fresh(TINY)
    path.write_bytes(safetensors.save({"x": torch.zeros(3)}))
    assert faults(lambda: load(path, learner)) == {"snapshot-broken"}
    save(path, learner)
    said = json.loads((tmp_path / "snapshot.json").read_text())
    tensors = tensors_in(path)
    path.write_bytes(safetensors.save(tensors, {"chainroute": json.dumps({**said, "format": 99})}))
    assert faults(lambda: load(path, learner)) == {"snapshot-broken"}
    del tensors["means"]
    path.write_bytes(safetensors.save(tensors, {"chainroute": json.dumps(said)}))
    assert faults(lambda: load(path, learner)) == {"snapshot-broken"}
    assert faults(lambda: load(tmp_path / "none", learner)) == {"file-not-found"}
    assert faults(lambda: load(tmp_path, learner)) <= {"file-unreadable", "snapshot-broken"}


@pytest.mark.parametrize("shape", ["scalar", "turned", "longer"])
def test_misshapen_tensors_are_refused(tmp_path, shape):
    """Also those that would stretch to fit; nothing of them is taken over."""
    path = tmp_path / FULL
    save(path, trained()[0])
    said, tensors = (tmp_path / "snapshot.json").read_text(), tensors_in(path)
    name = next(n for n, t in tensors.items() if t.dim() == 2 and t.shape[0] != t.shape[1])
    tensors[name] = {
        "scalar": torch.zeros(()),
        "turned": tensors[name].T.contiguous(),
        "longer": torch.cat([tensors[name]] * 2),
    }[shape]
    path.write_bytes(safetensors.save(tensors, {"chainroute": said}))
    learner = Learner.fresh(TINY)
    assert faults(lambda: load(path, learner)) == {"snapshot-broken"}
    assert same(learner, Learner.fresh(TINY))


@pytest.mark.parametrize(
    "field", ["format", "config", "step", "instances", "seconds", "warm_since", "full", "revision"]
)
def test_every_field_of_the_header_is_needed(tmp_path, field):
    path = tmp_path / FULL
    save(path, Learner.fresh(TINY))
    said, tensors = json.loads((tmp_path / "snapshot.json").read_text()), tensors_in(path)
    wrong = [{key: value for key, value in said.items() if key != field}]
    if field in ("step", "instances", "seconds", "warm_since"):
        wrong += [{**said, field: "many"}, {**said, field: None}, {**said, field: [1]}]
    if field == "step":
        wrong += [{**said, field: torch.inf}]
    for header in wrong:
        path.write_bytes(safetensors.save(tensors, {"chainroute": json.dumps(header)}))
        assert faults(lambda: read_header(path)) == {"snapshot-broken"}


def test_a_file_that_cannot_be_read_is_told_as_such(tmp_path, monkeypatch):
    """A folder, a file that may not be opened (root may open any), and one that vanishes meanwhile."""
    path = tmp_path / FULL
    learner = Learner.fresh(TINY)
    save(path, learner)
    assert faults(lambda: read_header(tmp_path)) == {"file-unreadable"}

    def refused(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", refused)
        with pytest.raises(ChainRouteError, match="Permission denied") as caught:
            read_header(path)
        assert [(f.code, f.where) for f in caught.value.faults] == [("file-unreadable", str(path))]
    for error in (refused, lambda *_: (_ for _ in ()).throw(snapshot.SafetensorError("cut"))):
        with monkeypatch.context() as patch:
            patch.setattr(safetensors, "load_file", error)
            assert faults(lambda: load(path, learner)) == {"snapshot-broken"}


def test_another_configuration(tmp_path):
    """Every field that differs is named; those that may change between stretches are not looked at."""
    save(tmp_path / FULL, trained()[0])
    other = Learner.fresh(tiny(batch=8, objective="best", warmup=7, updates=77, policy={"hidden": 16}))
    with pytest.raises(ChainRouteError) as caught:
        load(tmp_path / FULL, other)
    assert [f.where for f in caught.value.faults] == ["batch", "warmup", "policy.hidden"]
    assert {f.code for f in caught.value.faults} == {"other-config"}
    load(tmp_path / FULL, Learner.fresh(tiny(updates=77)))


def test_a_small_state_goes_on_by_another_recipe(tmp_path):
    """It has no moments, so all but the network may change."""
    save(tmp_path / SMALL, trained()[0], full=False)
    load(tmp_path / SMALL, Learner.fresh(tiny(optimiser="muon", batch=8, learning_rate=1e-3)))
    with pytest.raises(ChainRouteError) as caught:
        load(tmp_path / SMALL, Learner.fresh(tiny(sizes=(7,), batch=8, policy={"hidden": 16})))
    assert [f.where for f in caught.value.faults] == ["policy.hidden"]


def test_a_small_state_goes_on_with_other_sizes(tmp_path):
    """The moving means and steps of the sizes that stay go on; those of a new one are not known."""
    before = trained()[0]
    before.steps[0] = torch.tensor([16, 8, 0])
    save(tmp_path / SMALL, before, full=False)
    (size,) = before.config.sizes
    after = Learner.fresh(tiny(sizes=(size + 1, size), batch=8))
    load(tmp_path / SMALL, after)
    torch.testing.assert_close(after.means[1], before.means[0], rtol=0, atol=0, equal_nan=True)
    assert after.means[1].isfinite().any()
    assert after.means[0].isnan().all()
    assert after.steps.tolist() == [[0, 0, 0], [16, 8, 0]]


def test_broken_weights_are_not_saved(tmp_path):
    """A learner with NaN never replaces a good snapshot."""
    learner, _ = trained()
    save(tmp_path / FULL, learner)
    good = (tmp_path / FULL).read_bytes()
    next(learner.policy.parameters()).data[0] = torch.nan
    assert faults(lambda: save(tmp_path / FULL, learner)) == {"diverged"}
    assert (tmp_path / FULL).read_bytes() == good


@pytest.mark.parametrize("call", ["write", "fsync", "replace"])
@pytest.mark.parametrize("reason", [errno.ENOSPC, errno.EROFS])
def test_full_or_read_only_disk(tmp_path, monkeypatch, call, reason):
    """Wherever writing fails, the old file is whole and nothing is left beside it."""
    path = tmp_path / "file"
    snapshot.write(path, b"old")

    def fails(*_):
        raise OSError(reason, os.strerror(reason))

    if call == "write":
        monkeypatch.setattr("builtins.open", fails)
    else:
        monkeypatch.setattr(os, call, fails)
    assert faults(lambda: snapshot.write(path, b"new")) == {"file-unwritable"}
    monkeypatch.undo()
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]
