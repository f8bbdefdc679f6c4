"""The training loop: updates until the goal, the time or Ctrl-C ends them."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from chainroute.errors import ChainRouteError, Fault, fail
from chainroute.neural.device import choose_device
from chainroute.neural.policy.blocks import PARTS, named_blocks, telling
from chainroute.neural.policy.config import PolicyConfig
from chainroute.neural.policy.store import load_policy, policy_files, read_card
from chainroute.neural.train import ledger, snapshot
from chainroute.neural.train.config import TrainConfig
from chainroute.neural.train.engine import Engine, Stats
from chainroute.neural.train.engines import lacks_memory, make_engine
from chainroute.neural.train.guard import Guard
from chainroute.neural.train.learner import Learner
from chainroute.neural.train.ranks import Ranks, joined
from chainroute.neural.train.records import WEIGHTS, Records, judgement
from chainroute.neural.train.rollout import Abandoned
from chainroute.neural.train.schedule import share
from chainroute.neural.train.validation import TaskCost
from chainroute.runtime.files import identity, save
from chainroute.runtime.progress import StatusLine, clock
from chainroute.runtime.signals import StopRequest, interruptible

PULSE_SECONDS = 0.5  # seconds between two looks at the device
BACKWARD_FACTOR = 2.0  # times the forward pass
FIRST_VALIDATION_SHARE = 0.2  # of the time that it may take, so that a short stretch makes updates

GOING, DONE, OUT_OF_TIME, INTERRUPTED = range(4)
ENDS = ("going", "done", "out of time", "interrupted")


@dataclass(frozen=True)
class Report:
    """What a stretch of training came to."""

    end: str  # done, out of time or interrupted
    step: int  # updates of the run so far
    instances: int  # likewise
    speed: float  # instances per second, in this stretch
    tasks: tuple[TaskCost, ...]  # of the last validation

    def __str__(self) -> str:
        made = f"{self.step:,} updates, {self.instances:,} instances, {self.speed:,.0f}/s"
        return f"{self.end} after {made}, {judgement(self.tasks)}"


@dataclass(frozen=True)
class Limits:
    """What ends a stretch."""

    goal: float  # the step
    ends: float  # the moment
    updating: float  # seconds of updates alone
    cooldown: float | None  # the last seconds of updates, where these are limited; else those before it ends
    stop: StopRequest

    def over(self, after: float = 0.0) -> bool:
        """Whether validation must end at once; or must not begin what takes so many seconds."""
        return self.stop.is_set() or time.monotonic() + after > self.ends

    def too_late(self, began: float) -> bool:
        """Whether an update that began then cannot end in time, its backward pass included."""
        now = time.monotonic()
        return self.stop.is_set() or now + BACKWARD_FACTOR * (now - began) > self.ends


def train(
    config: TrainConfig | None,
    run: str | Path,
    *,
    weights: str | Path | None = None,
    seconds: float | None = None,
    update_seconds: float | None = None,
    updates: int | None = None,
    cooldown: float | None = None,
    engine: str = "auto",
    device: str = "auto",
    resume: bool = True,
    full: bool = True,
    silent: bool = False,
) -> Report:
    """Trains, or goes on training, the run in the folder `run` for a number of seconds or updates.

    Without a config it is that of the run. A new run may begin with the `weights` of another policy. The
    seconds count from call to return, `update_seconds` while updates are made: what compares networks, some
    of which take longer to compile. Over the last `cooldown` of them, those of updates where both are given,
    the rate falls to zero: that makes weights to release; a run that goes on from there warms up again.
    `full` snapshots continue exactly; the others are small.
    """
    ends = math.inf if seconds is None else time.monotonic() + seconds
    _require_options(seconds, update_seconds, updates, cooldown)
    folder = Path(run)
    config = config or _config(folder)
    with (
        interruptible() as stop,
        joined(choose_device(device)) as ranks,
        telling(config.policy, *PARTS),
        _enough_memory(config),
    ):
        learner = _learner(config, folder, ranks, resume, weights)
        goal = min(config.updates or math.inf, learner.step + (updates or math.inf))
        works, name = make_engine(engine, learner, ranks)
        records = Records(learner, folder, ranks, name, full, StatusLine(silent or not ranks.first))
        records.progress.note(f"engine: {name}")
        limits = Limits(goal, ends, update_seconds or math.inf, cooldown, stop)
        try:
            end = _run(learner, works, records, limits)
        finally:
            works.close()  # before the ranks part: graphs hold their messages
        records.close(end, limits.over)
        report = Report(end, learner.step, learner.instances, records.speed, records.tasks)
        records.progress.note(str(report))
        if learner.step - records.first_step < (updates or 1) and learner.step >= goal:
            ended = f"The recipe ends after {learner.step:,} updates, so none is left to be made"
            records.progress.note(f"{ended}: a recipe with more `updates` goes on.")
        return report


def _run(learner: Learner, engine: Engine, records: Records, limits: Limits) -> str:
    """Updates until something ends them; says what."""
    every = learner.config.validate_every
    guard = Guard(learner)
    per_update = PULSE_SECONDS  # seconds, a guess
    start = time.monotonic()
    early = start + FIRST_VALIDATION_SHARE * (limits.ends - start)
    records.validate(replace(limits, ends=early).over)
    while True:
        left = min(limits.ends - records.closing - time.monotonic(), limits.updating - records.seconds)
        end = _end(learner.step, left, limits)
        falling = limits.updating - records.seconds if limits.updating < math.inf else left
        ahead = share(falling, limits.cooldown) if limits.cooldown else 1.0
        count = min(
            max(1.0, min(PULSE_SECONDS, left) / per_update),  # until the next look
            limits.goal - learner.step,
            every - learner.step % every if every else math.inf,
        )
        # Moments and signals differ between ranks, but all must do the same.
        decided, ahead, count = records.ranks.decide(end, ahead, count)
        if decided != GOING:
            return ENDS[int(decided)]
        records.cooled |= ahead < 1
        began, prepared = time.monotonic(), engine.preparing
        try:
            for _ in range(int(count)):
                rate = learner.rate(ahead)
                engine.update(rate, limits.too_late)
        except Abandoned:
            return ENDS[INTERRUPTED if limits.stop.is_set() else OUT_OF_TIME]
        stats = engine.stats()
        took = time.monotonic() - began - (engine.preparing - prepared)
        per_update = took / int(count)
        records.add(stats, rate, took, int(count))
        if trouble := guard.trouble(stats):
            guard.roll_back(trouble, records)
            continue
        guard.keep()
        remaining = min(left - took, (limits.goal - learner.step) * per_update)
        records.progress.line(_line(learner, stats, rate, records.speed, remaining))
        if every and learner.step % every == 0:
            records.validate(limits.over)
        records.save_if_due()


def _end(step: int, left: float, limits: Limits) -> int:
    if limits.stop.is_set():
        return INTERRUPTED
    if step >= limits.goal:
        return DONE
    return OUT_OF_TIME if left <= 0 else GOING


def _line(learner: Learner, stats: Stats, rate: float, speed: float, remaining: float) -> str:
    left = f"{clock(remaining)} left" if remaining < math.inf else "until Ctrl-C"
    return (
        f"{learner.step:,} updates  {learner.instances / 1e6:.3f} M instances  {speed:,.0f}/s  "
        f"cost {stats.cost:.3f}  gradient {stats.grad_norm:.2f}  rate {rate:.1e}  {left}"
    )


def _config(folder: Path) -> TrainConfig:
    path = snapshot.newest(folder)
    if path is None:
        raise fail("file-not-found", "holds no run to continue; a new one needs a recipe.", str(folder))
    return snapshot.read_header(path).config


def _learner(
    config: TrainConfig, folder: Path, ranks: Ranks, resume: bool, weights: str | Path | None
) -> Learner:
    """A fresh learner, or the one that the folder's newest snapshot holds, the same on all ranks."""
    learner = Learner.fresh(config, ranks.device)
    if ranks.first:
        _require_writable(folder)
        for name in (ledger.LOG, ledger.CURVE):
            ledger.read(folder / name)  # what is damaged there is said before the work
        path = snapshot.newest(folder)
        if path is not None:
            if not resume or weights is not None:
                raise fail("run-exists", "holds a run already.", str(folder))
            snapshot.load(path, learner)
        elif weights is not None:
            if identity(policy_files(weights)[0]) == identity(policy_files(folder / WEIGHTS)[0]):
                message = "would be written over by the run; give the run another folder."
                raise fail("bad-option", message, "weights", "Weights to begin with are kept.")
            theirs = named_blocks(PolicyConfig.from_dict(read_card(weights)["config"]))
            ours = theirs <= named_blocks(config.policy)  # the recipe's code is its user's own
            learner.begin_with(load_policy(weights, ranks.device, trust_code=ours))
    place = ranks.decide(learner.step, learner.instances, learner.seconds, learner.warm_since)
    learner.step, learner.instances, learner.warm_since = int(place[0]), int(place[1]), int(place[3])
    learner.seconds = place[2]
    ranks.share([tensor for _, tensor in learner.tensors()])
    learner.resume_moments()
    return learner


def _require_writable(folder: Path) -> None:
    """Refuses a folder that cannot be written to, before the work."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise fail("file-unwritable", f"{error.strerror or error}.", str(folder)) from None
    probe = folder / ".probe"
    save(probe, b"may this folder be written to?")
    probe.unlink()


def _require_options(
    seconds: float | None, update_seconds: float | None, updates: int | None, cooldown: float | None
) -> None:
    faults = []
    given = {"seconds": seconds, "update_seconds": update_seconds, "updates": updates, "cooldown": cooldown}
    for name, value in given.items():
        if value is not None and not 0 < value < math.inf:
            faults.append(Fault("bad-option", f"must be above 0, not {value}.", name))
    if cooldown is not None and seconds is None and update_seconds is None:
        faults.append(
            Fault("bad-option", "needs a limit in seconds to fall towards.", "cooldown", "Give seconds, too.")
        )
    if faults:
        raise ChainRouteError(faults)


@contextmanager
def _enough_memory(config: TrainConfig) -> Iterator[None]:
    """A batch that does not fit becomes an error that says so."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not lacks_memory(error):
            raise
        most = max(config.sizes)
        message = f"{config.instances(most)} instances of {most} customers do not fit into memory."
        raise fail("out-of-memory", message, "batch") from None
