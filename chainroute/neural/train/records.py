"""What a stretch of training leaves behind: validations, snapshots, weights, and the rows of the ledger."""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from chainroute.errors import ChainRouteError, Fault
from chainroute.generate.references import references
from chainroute.neural.device import device_name
from chainroute.neural.policy.store import read_card, save_policy
from chainroute.neural.train import ledger, snapshot
from chainroute.neural.train.engine import Stats
from chainroute.neural.train.health import Health, examine_health
from chainroute.neural.train.learner import Learner
from chainroute.neural.train.ranks import Ranks
from chainroute.neural.train.validation import TaskCost, examine, mean_gap, prepare
from chainroute.runtime.progress import StatusLine
from chainroute.runtime.revision import revision

WEIGHTS = "weights"  # the policy to release, beside the snapshots
BEST_WEIGHTS = "best"  # likewise the one that validated best on the task by which it is chosen
CLOSING_SECONDS = 1.0  # seconds to write the last files
FIRST_PICTURE_SECONDS = 2.0  # seconds to draw the first curve: Matplotlib is loaded for it


class Records:
    """What is written of a run, by rank 0; the others only count."""

    def __init__(
        self, learner: Learner, folder: Path, ranks: Ranks, engine: str, full: bool, progress: StatusLine
    ):
        self.learner, self.folder, self.ranks, self.progress = learner, folder, ranks, progress
        self.engine, self.full = engine, full
        self.start = datetime.now(UTC).isoformat()
        self.first_instance, self.seconds = learner.instances, 0.0
        self.stats, self.rate = Stats(0.0, 0.0, 0.0, 0.0, 0.0), 0.0  # of the last updates
        self.first_step, self.left_out, self.rollbacks = learner.step, 0, 0
        config = learner.config
        known = [n for n in config.sizes if any((v.name, n) in references() for v in config.mixture)]
        self.exams = [
            exam
            for n in known or config.sizes  # where references are known, costs of other sizes say little
            if config.validate_every and ranks.first
            for exam in prepare(n, config.mixture, "val", config.validate_count, learner.device)
        ]
        self.tasks: tuple[TaskCost, ...] = ()
        self.patients = [exam.batch for exam in self.exams if exam.n == self.exams[-1].n]  # the largest
        self.health: Health | None = None
        self.validated = -1  # the step of the last validation
        self.saved = learner.step or -1  # the step of the last snapshot
        self.saved_at = time.monotonic()
        self.cooled = False  # whether the rate has been falling to zero
        self.closing = CLOSING_SECONDS  # seconds that the end of the stretch takes
        self.drawing = FIRST_PICTURE_SECONDS  # seconds that the next picture takes

    @property
    def speed(self) -> float:
        return (self.learner.instances - self.first_instance) / self.seconds if self.seconds else 0.0

    def add(self, stats: Stats, rate: float, seconds: float, updates: int) -> None:
        """Enters the updates since the last time."""
        self.stats, self.rate = stats, rate
        self.left_out += round(stats.left_out * updates)
        self.seconds += seconds
        self.learner.seconds += seconds

    def rolled_back(self, why: str) -> None:
        """Notes that the learner is what it was before."""
        self.rollbacks += 1
        self.progress.note(why)
        if self.ranks.first:
            ledger.forget(self.folder / ledger.CURVE, self.learner.step)

    def kept(self) -> str:
        """Which snapshot there is, in words."""
        if self.saved < 0:
            return "There is no snapshot yet."
        return f"The snapshot of update {self.saved:,} is kept."

    def validate(self, over: Callable[[float], bool]) -> None:
        """Judges the policy, unless it is `over` before that is done, or would be after so many seconds."""
        if not self.exams or self.validated == self.learner.step:
            return
        began = time.monotonic()
        config = self.learner.config

        def rate_at(n: int) -> float:
            return config.at_size(config.test_update_rate, n)

        tasks = examine(self.learner.policy, self.exams, False, rate_at, lambda: over(0.0))
        if len(tasks) < sum(len(exam.variants) for exam in self.exams):
            self.progress.note(f"update {self.learner.step:,}: no time left to validate")
            return
        self.tasks = tuple(tasks)
        self.health = examine_health(self.learner.policy, self.patients, rate_at)
        self.validated = self.learner.step
        self.closing = CLOSING_SECONDS + time.monotonic() - began
        self.progress.note(f"update {self.learner.step:,}: {judgement(self.tasks)}")
        drawn = not over(self.drawing)
        with self._going_on_without_space():
            if self.learner.step > self.first_step or not self.first_step:  # else it has been told before
                curve = self.folder / ledger.CURVE
                ledger.forget(curve, self.learner.step)  # what a killed run, or a cool-down, told
                ledger.record(curve, self._row(), "step")
                if drawn:
                    self._draw()
            self._select()
        self.closing += self.drawing if drawn else 0.0

    def _draw(self) -> None:
        began = time.monotonic()
        ledger.draw(self.folder)
        self.drawing = time.monotonic() - began

    def _select(self) -> None:
        """Keeps the policy if none before it cost less on the variant by which one is chosen."""
        chosen = self.learner.config.select
        if not chosen:
            return
        path = self.folder / BEST_WEIGHTS
        cost = mean_cost(tuple(t for t in self.tasks if t.variant == chosen))
        if cost is not None and cost < self._least(path, chosen):
            card = {**self._card(), "selected": {"variant": chosen, "cost": cost}}
            save_policy(self.learner.policy, path, card, torch.float16)

    def _least(self, path: Path, chosen: str) -> float:
        """What the policy that is kept cost on that variant; infinite where none was chosen by it."""
        if not path.with_suffix(".safetensors").exists():
            return math.inf
        kept = read_card(path).get("selected", {})
        return float(kept["cost"]) if kept.get("variant") == chosen else math.inf

    def save(self, end: str = "") -> None:
        """A snapshot, and the row of the ledger that goes with it."""
        if self.ranks.first:
            path = self.folder / (snapshot.FULL if self.full else snapshot.SMALL)
            snapshot.save(path, self.learner, self.full)
            self.saved = self.learner.step
            self._enter(end)
        self.saved_at = time.monotonic()

    def save_if_due(self) -> None:
        """Saves a snapshot if the last one is old enough."""
        if time.monotonic() - self.saved_at >= self.learner.config.snapshot_every:
            self.saved_at = time.monotonic()
            with self._going_on_without_space():
                self.save()

    @contextmanager
    def _going_on_without_space(self) -> Iterator[None]:
        """Training goes on where the disk is full: the next snapshot, row or picture is tried in its time."""
        try:
            yield
        except ChainRouteError as error:
            if any(fault.code != "file-unwritable" for fault in error.faults):
                raise
            self.progress.note(
                f"{error}\nTraining goes on; what was to be written will be tried again in its time."
            )

    def close(self, end: str, over: Callable[[float], bool]) -> None:
        """The last validation, snapshot, weights and rows; elsewhere if this folder is full.

        A stretch without an update leaves everything as it was.
        """
        if self.learner.step == self.first_step and self.learner.step:
            return
        self.validate(over)
        if not self.ranks.first:
            return
        if self.cooled:  # whoever goes on warms up again
            self.learner.warm_since = self.learner.step
        try:
            self.save(end)
            self.release(self.folder)
        except ChainRouteError as error:
            if any(fault.code != "file-unwritable" for fault in error.faults):
                raise
            elsewhere = Path(tempfile.mkdtemp(prefix="chainroute-"))
            snapshot.save(elsewhere / snapshot.FULL, self.learner)
            self.release(elsewhere)
            saved = Fault("file-unwritable", f"the run was saved in {elsewhere}.", str(self.folder))
            raise ChainRouteError([*error.faults, saved]) from None

    def release(self, folder: Path) -> None:
        """The policy for others to use, in half precision, with its card."""
        save_policy(self.learner.policy, folder / WEIGHTS, self._card(), torch.float16)

    def _card(self) -> dict[str, Any]:
        return {
            **self._position(),
            "training": self.learner.config.as_dict(),
            "cooled": self.cooled,
            "validation": {f"{t.variant}-{t.n}": round(t.cost, 4) for t in self.tasks},
            "revision": revision(),
        }

    def _enter(self, end: str) -> None:
        row = {
            "start": self.start,
            "revision": revision(),
            "device": device_name(self.ranks.device),
            "ranks": self.ranks.count,
            "engine": self.engine,
            "stretch_instances": self.learner.instances - self.first_instance,
            "stretch_seconds": self.seconds,
            "instances_per_second": self.speed,
            "end": end + " (cooled down)" * self.cooled,
            **self._row(),
        }
        ledger.record(self.folder / ledger.LOG, row, "start")

    def _row(self) -> dict[str, Any]:
        return {
            **self._position(),
            "learning_rate": self.rate,
            "training_loss": self.stats.loss,
            "training_cost": self.stats.cost,
            "unfinished": self.stats.unfinished,
            "grad_norm": self.stats.grad_norm,
            "left_out": self.left_out,
            "rollbacks": self.rollbacks,
            "largest_embedding": self.health.largest if self.health else None,
            "disturbance_growth": self.health.growth if self.health else None,
            "cost": mean_cost(self.tasks),
            "estimated_gap": mean_gap(self.tasks),
            **{f"estimated_gap_{t.variant}_{t.n}": t.gap for t in self.tasks if t.gap is not None},
        }

    def _position(self) -> dict[str, Any]:
        seconds = round(self.learner.seconds, 1)
        return {"step": self.learner.step, "instances": self.learner.instances, "seconds": seconds}


def mean_cost(tasks: tuple[TaskCost, ...]) -> float | None:
    return sum(task.cost for task in tasks) / len(tasks) if tasks else None


def judgement(tasks: tuple[TaskCost, ...]) -> str:
    """The mean of a validation in a few words."""
    cost, gap = mean_cost(tasks), mean_gap(tasks)
    told = "not validated" if cost is None else f"mean cost {cost:.4f}"
    return told if gap is None else f"{told}, estimated gap {gap:.2f} %"
