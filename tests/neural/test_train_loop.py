"""Runs from start to end: resumed, interrupted, killed, out of time, memory, disk or control."""

import io
import json
import math
import os
import signal
import subprocess
import sys
import time

import pytest
import torch
from timing import within
from training import TINY, same, tiny
from typer.testing import CliRunner

from chainroute.cli.app import app
from chainroute.errors import ChainRouteError, fail
from chainroute.neural.command import train as train_command
from chainroute.neural.policy.store import load_policy, random_policy, save_policy
from chainroute.neural.train import ledger, loop, records, rollout, snapshot, train
from chainroute.neural.train.engine import PlainEngine, Stats
from chainroute.neural.train.guard import MAX_ROLLBACKS, Guard
from chainroute.neural.train.learner import Learner
from chainroute.runtime.shell import main


def run(config, folder, **options):
    return train(config, folder, device="cpu", silent=True, **options)


def saved(folder, config=TINY):
    """The learner in a folder's newest snapshot."""
    learner = Learner.fresh(config)
    snapshot.load(snapshot.newest(folder), learner)
    return learner


def faults(act):
    with pytest.raises(ChainRouteError) as caught:
        act()
    return [f.code for f in caught.value.faults]


def after(step, monkeypatch, act, again=False):
    """Has the engine do something when that step is reached, the first time or every time."""
    update, reached = PlainEngine.update, []

    def instead(self, *options):
        update(self, *options)
        if self.learner.step == step and (again or not reached):
            reached.append(step)
            act(self.learner)

    monkeypatch.setattr(PlainEngine, "update", instead)


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    """A run of 12 updates without a break."""
    folder = tmp_path_factory.mktemp("straight")
    assert run(tiny(updates=12), folder).end == "done"
    return saved(folder)


# -- going on


def test_stretches_equal_one_run(tmp_path, straight):
    """5, 4 and the last 3 of 12 updates, each in a call of its own: the same bits as 12 at once."""
    config = tiny(updates=12)
    assert run(config, tmp_path, updates=5).step == 5
    assert run(None, tmp_path, updates=4).step == 9  # the folder knows its config
    report = run(config, tmp_path)
    assert (report.end, report.step, report.instances) == ("done", 12, 48)
    assert same(saved(tmp_path), straight)
    assert run(config, tmp_path).step == 12  # there is nothing left to do
    log = ledger.read(tmp_path / "log.csv")
    assert [(row["step"], row["stretch_instances"], row["end"]) for row in log] == [
        ("5", "20", "done"),
        ("9", "16", "done"),
        ("12", "12", "done"),
    ]
    assert all(float(row["instances_per_second"]) > 0 for row in log)


def test_ctrl_c_saves_and_ends(tmp_path, monkeypatch, straight):
    """The update under way is finished, and the run goes on later as if nothing had been."""
    before = signal.getsignal(signal.SIGINT)
    with monkeypatch.context() as patch:
        after(4, patch, lambda _: os.kill(os.getpid(), signal.SIGINT))
        report = run(tiny(updates=12), tmp_path)
    assert report.end == "interrupted"
    assert 4 <= report.step < 12
    assert signal.getsignal(signal.SIGINT) is before
    run(tiny(updates=12), tmp_path)
    assert same(saved(tmp_path), straight)


def test_ctrl_c_saves_where_nobody_reads_any_more(tmp_path, monkeypatch):
    """As in a pipe to `tee`, which the same Ctrl-C ends first."""

    class Unread(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

    def interrupt(_):
        monkeypatch.setattr(sys, "stderr", Unread())
        os.kill(os.getpid(), signal.SIGINT)

    after(4, monkeypatch, interrupt)
    report = train(tiny(updates=12, snapshot_every=1000), tmp_path, device="cpu")
    assert report.end == "interrupted"
    assert saved(tmp_path).step == report.step >= 4


def test_second_ctrl_c_interrupts_at_once(tmp_path, monkeypatch):
    def twice(_):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    run(TINY, tmp_path, updates=2)
    after(4, monkeypatch, twice)
    with pytest.raises(KeyboardInterrupt):
        run(TINY, tmp_path, updates=50)
    assert saved(tmp_path).step >= 2


KILLED = """
import os, random, signal, sys, time
import torch
torch.set_num_threads(1)
from chainroute.neural.train import TrainConfig, snapshot, train
from chainroute.neural.train.learner import Learner
from pathlib import Path

folder, config = Path(sys.argv[1]), TrainConfig.from_dict(eval(sys.argv[2]))
chance, kills, step = random.Random(7), 0, 0
while True:
    child = os.fork()
    if child == 0:
        train(config, folder, device="cpu", silent=True)
        os._exit(0)
    gone = 0
    ends = time.monotonic() + chance.uniform(0.0, 0.4)
    while not gone and (time.monotonic() < ends or kills >= 4):
        gone, status = os.waitpid(child, os.WNOHANG)
        time.sleep(0.002)
    if gone:
        assert status == 0
        break
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    kills += 1
    path = snapshot.newest(folder)
    if path is not None:
        learner = Learner.fresh(config)
        snapshot.load(path, learner)
        assert learner.step >= step, "a kill took more than the work since the last snapshot"
        step = learner.step
print(kills)
"""


def test_kill_at_random_moments(tmp_path):
    """kill -9 up to four times: every snapshot met is whole, no step is lost, and the end is bit for bit
    that of a run in peace."""
    config = tiny(updates=20, validate_every=7, validate_count=2)
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path / "killed"), repr(config.as_dict())],
        capture_output=True,
        text=True,
        timeout=200,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 3
    run(config, tmp_path / "peace")
    assert same(saved(tmp_path / "killed", config), saved(tmp_path / "peace", config))
    points = [
        [(row["step"], row["cost"]) for row in ledger.read(tmp_path / name / "curve.csv")]
        for name in ("killed", "peace")
    ]
    assert points[0] == points[1]
    assert [step for step, _ in points[0]] == ["0", "7", "14", "20"]
    left = [path.name for path in (tmp_path / "killed").iterdir() if path.name.startswith(".")]
    assert len(left) <= 8  # at most one piece of each file, however often it was killed


def test_begins_with_other_weights(tmp_path):
    policy = random_policy(TINY.policy, seed=99)
    save_policy(policy, tmp_path / "given", {})
    run(TINY, tmp_path / "run", weights=tmp_path / "given", updates=1)
    moved = [
        (p - q).abs().max().item()
        for p, q in zip(saved(tmp_path / "run").policy.parameters(), policy.parameters(), strict=True)
    ]
    assert max(moved) < 2 * TINY.learning_rate  # one careful step from there
    assert faults(lambda: run(TINY, tmp_path / "run", weights=tmp_path / "given")) == ["run-exists"]
    (tmp_path / "full").mkdir()
    save_policy(random_policy(TINY.policy), tmp_path / "full" / "weights", {"sizes": [50]})
    before = (tmp_path / "full" / "weights.safetensors").read_bytes()
    assert faults(lambda: run(TINY, tmp_path / "full", weights=tmp_path / "full")) == ["bad-option"]
    assert (tmp_path / "full" / "weights.safetensors").read_bytes() == before
    other = tiny(policy={"hidden": 16, "reld": False})
    with pytest.raises(ChainRouteError) as caught:
        run(other, tmp_path / "new", weights=tmp_path / "given")
    told = [(f.code, f.where) for f in caught.value.faults]
    assert told == [("other-config", "policy.hidden"), ("other-config", "policy.reld")]


# -- time


def test_time_limit_holds(tmp_path, monkeypatch):
    """The time is from call to return, validation and snapshot included; Matplotlib takes long to load, and
    is not."""
    monkeypatch.setattr(ledger, "draw", lambda folder: time.sleep(2))
    reports = []

    def call():
        reports.append(run(tiny(validate_every=1000, validate_count=8), tmp_path, seconds=4.0))

    assert within(4.0, call, margin=1.0)
    assert {report.end for report in reports} == {"out of time"}
    assert saved(tmp_path).step == reports[-1].step > 0
    assert len(reports[-1].tasks) == 2


def test_seconds_of_updates_leave_out_what_is_no_update(tmp_path, monkeypatch):
    """A slow preparation and a slow validation do not shorten them, and do not count as training."""

    class Slow(PlainEngine):
        def update(self, rate, too_late=None):
            if self.learner.step == 0:
                time.sleep(1.0)
                self.preparing += 1.0
            super().update(rate, too_late)

    monkeypatch.setattr(loop, "make_engine", lambda name, learner, ranks: (Slow(learner, ranks), "slow"))
    began = time.monotonic()
    report = run(tiny(validate_every=1000, validate_count=8), tmp_path, update_seconds=3.0, cooldown=3.0)
    assert report.end == "out of time"
    row = ledger.read(tmp_path / "log.csv")[-1]
    assert 3.0 <= float(row["seconds"]) < time.monotonic() - began - 1.0
    assert float(row["learning_rate"]) < 0.9 * TINY.learning_rate


def test_what_is_cut_falls_towards_the_end_of_its_updates(tmp_path):
    """A call of two seconds leaves the rate where it is half a minute of updates before their end."""
    run(TINY, tmp_path, seconds=2.5, update_seconds=30.0, cooldown=40.0)
    rate = float(ledger.read(tmp_path / "log.csv")[-1]["learning_rate"])
    assert rate > 0.65 * TINY.learning_rate


def test_a_run_goes_on_from_where_it_was_cooled_down(tmp_path):
    """The rate falls to zero over the last seconds; then it warms up again, whatever the snapshot."""
    run(TINY, tmp_path, updates=3)
    report = run(TINY, tmp_path, seconds=6.0, cooldown=6.0)
    row = ledger.read(tmp_path / "log.csv")[-1]
    assert report.step > 3
    assert row["end"] == "out of time (cooled down)"
    assert float(row["learning_rate"]) < 0.5 * TINY.learning_rate
    state, cooled = saved(tmp_path), load_policy(tmp_path / records.WEIGHTS)
    assert (state.step, state.warm_since) == (report.step, report.step)
    assert all(
        torch.equal(p.half(), q.half())
        for p, q in zip(cooled.parameters(), state.policy.parameters(), strict=True)
    )
    run(TINY, tmp_path, updates=1)
    rate = float(ledger.read(tmp_path / "log.csv")[-1]["learning_rate"])
    assert 0 < rate <= TINY.learning_rate / TINY.warmup


@pytest.mark.parametrize(
    "options",
    [
        {"seconds": 0},
        {"update_seconds": 0},
        {"updates": -1},
        {"cooldown": 3.0},
        {"seconds": math.nan},
        {"device": "tpu"},
    ],
)
def test_options_out_of_range(tmp_path, options):
    assert faults(lambda: train(TINY, tmp_path, silent=True, **options)) == ["bad-option"]


def test_unknown_engine(tmp_path):
    """An engine that there is not is refused."""
    assert faults(lambda: run(TINY, tmp_path, engine="quick")) == ["unknown-value"]


# -- when things go wrong


def poison(learner):
    next(learner.policy.parameters()).data.fill_(torch.nan)


def test_nan_rolls_back_and_training_goes_on_with_a_lower_rate(tmp_path, monkeypatch):
    """One accident costs the updates since the last copy and half of the rate, not the run."""
    after(4, monkeypatch, poison)
    run(TINY, tmp_path, updates=8)
    kept = saved(tmp_path)
    assert all(p.isfinite().all() for p in kept.policy.parameters())
    (row,) = ledger.read(tmp_path / "log.csv")
    assert (row["rollbacks"], row["step"], row["end"]) == ("1", "8", "done")
    assert float(row["learning_rate"]) == pytest.approx(TINY.learning_rate / 2)


def test_what_goes_wrong_again_and_again_ends_the_run_and_keeps_the_last_good_snapshot(tmp_path, monkeypatch):
    run(TINY, tmp_path, updates=2)
    after(3, monkeypatch, poison, again=True)
    with pytest.raises(ChainRouteError, match=f"rolled back {MAX_ROLLBACKS} times") as caught:
        run(TINY, tmp_path, updates=20)
    assert caught.value.faults[0].code == "diverged"
    assert "The snapshot of update 2 is kept" in str(caught.value)
    assert all(p.isfinite().all() for p in saved(tmp_path).policy.parameters())


def test_seconds_hold_where_an_update_takes_longer(tmp_path, monkeypatch):
    """The update is given up, and what the run had left before is as it was."""
    run(TINY, tmp_path, updates=2)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    slow = rollout.mask

    def mask(*state):
        time.sleep(0.3)
        return slow(*state)

    monkeypatch.setattr(rollout, "mask", mask)

    def call():
        report = run(tiny(validate_every=1, validate_count=2), tmp_path, seconds=2.0)
        assert (report.end, report.step) == ("out of time", 2)
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before

    assert within(2.0, call, margin=1.0)


def test_guard_knows_noise_from_divergence():
    """Costs that scatter by a third are let pass; costs that double and stay there are not."""
    learner = Learner.fresh(TINY)
    guard, fine = Guard(learner), Stats(0.0, 1.0, 0.0, 1.0, 0.0)
    generator = torch.Generator().manual_seed(0)
    for _ in range(200):
        learner.means[:, :2] = 1 + 0.6 * (torch.rand(1, 2, generator=generator) - 0.5)
        assert not guard.trouble(fine)
    learner.means[:, 2:] = torch.exp(torch.randn(1, 46, generator=generator))
    for _ in range(200):  # instances of other sizes: each mean by itself scatters by far, all of them do not
        learner.means[:, 2:] = torch.exp(0.7 * torch.randn(1, 46, generator=generator))
        assert not guard.trouble(fine)
    learner.means *= 2.0
    assert any("times the lowest" in guard.trouble(fine) for _ in range(50))
    assert "grad_norm" in Guard(learner).trouble(Stats(0.0, 1.0, 0.0, math.inf, 0.0))


def under_capture():
    """What a graph under capture makes of a lack of memory."""
    error = RuntimeError("CUDA error: operation failed due to a previous error during capture")
    error.__context__ = torch.OutOfMemoryError("CUDA out of memory")
    return error


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory"),
        RuntimeError("can't allocate memory: 1e15"),
        under_capture(),
        MemoryError(),
    ],
)
def test_batch_too_large_for_memory(tmp_path, monkeypatch, error):
    """A coded error that names the batch, and the run is where it was."""
    run(TINY, tmp_path, updates=2)

    def fails(*_):
        raise error

    monkeypatch.setattr(PlainEngine, "update", fails)
    assert faults(lambda: run(TINY, tmp_path, updates=2)) == ["out-of-memory"]
    assert saved(tmp_path).step == 2


def test_errors_of_the_program_are_not_disguised(tmp_path, monkeypatch):
    def fails(*_):
        raise RuntimeError("a mistake of ours")

    monkeypatch.setattr(PlainEngine, "update", fails)
    with pytest.raises(RuntimeError, match="a mistake of ours"):
        run(TINY, tmp_path, updates=2)


def test_folder_that_cannot_be_written_to(tmp_path):
    """It is said before anything is trained."""
    (tmp_path / "file").write_text("in the way")
    assert faults(lambda: run(TINY, tmp_path / "file" / "run", updates=1)) == ["file-unwritable"]


def test_full_disk_in_the_middle(tmp_path, monkeypatch, straight):
    """Training goes on and saves again as soon as it can."""
    write, full = snapshot.write, []

    def sometimes(path, data):
        if path.name == snapshot.FULL and len(full) < 3:
            full.append(path)
            raise fail("file-unwritable", "No space left on device.", str(path))
        write(path, data)

    monkeypatch.setattr(snapshot, "write", sometimes)
    monkeypatch.setattr(loop, "PULSE_SECONDS", 1e-9)  # a snapshot after each update, however fast they are
    run(tiny(updates=12), tmp_path)
    assert len(full) == 3
    assert same(saved(tmp_path), straight)


def test_full_disk_at_a_validation(tmp_path, monkeypatch):
    """Training goes on without the point of the curve, and has the next one."""
    write, full = ledger.write, []

    def sometimes(path, data):
        if path.name == ledger.CURVE and len(full) < 2:
            full.append(path)
            raise fail("file-unwritable", "No space left on device.", str(path))
        write(path, data)

    monkeypatch.setattr(ledger, "write", sometimes)
    run(tiny(updates=4, validate_every=2, validate_count=2), tmp_path)
    assert len(full) == 2
    assert [row["step"] for row in ledger.read(tmp_path / ledger.CURVE)] == ["4"]
    assert (tmp_path / ledger.PICTURE).exists()


def test_full_disk_to_the_end(tmp_path, monkeypatch, straight):
    """The run is saved elsewhere, and the error says where."""
    write = snapshot.write

    def never(path, data):
        if path.name == snapshot.FULL and path.parent == tmp_path / "run":
            raise fail("file-unwritable", "No space left on device.", str(path))
        write(path, data)

    monkeypatch.setattr(snapshot, "write", never)
    monkeypatch.setattr(records.tempfile, "mkdtemp", lambda prefix: str(tmp_path))
    with pytest.raises(ChainRouteError, match="the run was saved in") as caught:
        run(tiny(updates=12), tmp_path / "run")
    assert {f.code for f in caught.value.faults} == {"file-unwritable"}
    assert same(saved(tmp_path), straight)
    load_policy(tmp_path / records.WEIGHTS)


def test_run_that_is_there_or_is_not(tmp_path):
    assert faults(lambda: run(None, tmp_path)) == ["file-not-found"]
    run(TINY, tmp_path, updates=1)
    assert faults(lambda: run(TINY, tmp_path, resume=False)) == ["run-exists"]
    assert faults(lambda: run(tiny(batch=8), tmp_path)) == ["other-config"]
    (tmp_path / snapshot.FULL).write_bytes(b"broken")
    assert faults(lambda: run(TINY, tmp_path)) == ["snapshot-broken"]
    assert (tmp_path / snapshot.FULL).read_bytes() == b"broken"


# -- what a run leaves


def test_ledger_and_weights_of_a_run(tmp_path):
    """A row per stretch, a point per validation, and weights that can be used."""
    config = tiny(updates=6, validate_every=3, validate_count=3)
    report = run(config, tmp_path)
    assert [t.variant for t in report.tasks] == ["CVRP", "OVRPTW"]
    curve = ledger.read(tmp_path / "curve.csv")
    assert [row["step"] for row in curve] == ["0", "3", "6"]
    (row,) = ledger.read(tmp_path / "log.csv")
    assert (row["step"], row["instances"], row["ranks"]) == ("6", "24", "1")
    assert row["engine"] == "plain (the fast engine needs a GPU)"
    assert row["cost"] == curve[-1]["cost"]
    assert row["device"].startswith("CPU")
    policy = load_policy(tmp_path / records.WEIGHTS)
    best = saved(tmp_path, config).policy
    assert all(
        torch.equal(p.half(), q.half()) for p, q in zip(policy.parameters(), best.parameters(), strict=True)
    )


def module(*arguments):
    return main("train", train_command, arguments)


def verb(*arguments):
    result = CliRunner().invoke(app, ["train", *arguments])
    print(result.stderr, file=sys.stderr)
    return result.exit_code


@pytest.mark.parametrize("command", [module, verb])
def test_commands(tmp_path, capsys, command):
    """`python -m chainroute.train` and `chainroute train` go by a recipe, and answer errors with 2."""
    recipe = tmp_path / "recipe.json"
    recipe.write_text(json.dumps(tiny(updates=3).as_dict()))
    assert command(str(tmp_path / "run"), "--recipe", str(recipe), "--device", "cpu") == 0
    told = capsys.readouterr().err
    assert "M instances" in told
    assert "/s" in told
    assert " left" in told
    assert "done after 3 updates, 12 instances" in told
    assert saved(tmp_path / "run").step == 3
    assert command(str(tmp_path / "none")) == 2
    assert "[file-not-found]" in capsys.readouterr().err


def test_small_snapshots(tmp_path):
    """Without full snapshots a run goes on too, and warms up again."""
    run(TINY, tmp_path, updates=2, full=False)
    assert not (tmp_path / snapshot.FULL).exists()
    run(TINY, tmp_path, updates=2, full=False)
    header = snapshot.read_header(tmp_path / snapshot.SMALL)
    assert (header.step, header.warm_since, header.full) == (4, 2, False)


def test_looks_are_far_enough_apart(tmp_path, monkeypatch):
    """The host waits for the device about every half second, not after every update."""
    looks = []
    stats = PlainEngine.stats
    monkeypatch.setattr(PlainEngine, "update", lambda self, rate, too_late=None: self.learner.count(4))
    monkeypatch.setattr(PlainEngine, "stats", lambda self: looks.append(1) or stats(self))
    monkeypatch.setattr(loop, "PULSE_SECONDS", 0.05)
    report = run(tiny(snapshot_every=60), tmp_path, seconds=1.6)
    assert report.step > 50 * len(looks)
    assert saved(tmp_path).step == report.step


def test_it_is_said_that_a_recipe_has_reached_its_end(tmp_path, capsys):
    """Not of a run that makes what is asked for, but where it makes fewer updates, or none."""

    def said(**options):
        train(tiny(updates=3), tmp_path, device="cpu", **options)
        return capsys.readouterr().err

    assert "The recipe ends" not in said(updates=2)
    assert "The recipe ends after 3 updates" in said(updates=2)
    assert "The recipe ends after 3 updates" in said()
