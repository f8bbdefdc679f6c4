"""Snapshots: a learner as a file from which the run goes on.

    NAME.safetensors   whole in itself: tensors, and in the header what NAME.json says
    NAME.json          the same for human readers: config, step, instances, seconds, git revision

A full snapshot (`snapshot`) continues exactly. A small one (`state`) has the weights in half precision and no
moments, which a warm-up rebuilds; it is small enough to be committed. Random state is the number of the step:
see `chance`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors import torch as safetensors
from torch import Tensor

from chainroute.errors import fail
from chainroute.neural.train.config import TrainConfig, require_same
from chainroute.neural.train.learner import Learner
from chainroute.neural.train.objective import fresh_means
from chainroute.neural.train.steps import unknown_steps
from chainroute.runtime.files import save as write
from chainroute.runtime.revision import revision

FULL, SMALL = "snapshot.safetensors", "state.safetensors"
SNAPSHOT_FORMAT = 1
METADATA_KEY = "chainroute"  # of the header's metadata
UNKNOWN_AT_FIRST = ("means", "usual_norm")
SMALL_PARTS = ("policy.", "means", "steps")  # what names of tensors in a small snapshot begin with


@dataclass(frozen=True)
class Header:
    """What a snapshot says of itself."""

    config: TrainConfig
    step: int
    instances: int
    seconds: float
    warm_since: int
    full: bool
    revision: str

    def as_dict(self) -> dict[str, Any]:
        return {"format": SNAPSHOT_FORMAT, **vars(self), "config": self.config.as_dict()}


def save(path: Path, learner: Learner, full: bool = True) -> None:
    """Writes the learner to `path`, and beside it what humans read. Either all of it is there or none."""
    header = Header(
        learner.config,
        learner.step,
        learner.instances,
        round(learner.seconds, 3),
        learner.warm_since,
        full,
        revision(),
    )
    tensors = _tensors(learner, full)
    bad = [name for name, t in tensors.items() if name not in UNKNOWN_AT_FIRST and not t.isfinite().all()]
    if bad:
        message = f"{len(bad)} tensors hold NaN or infinity after {learner.step:,} updates."
        raise fail("diverged", message, str(path))
    packed = {name: _packed(name, t, full) for name, t in tensors.items()}
    text = json.dumps(header.as_dict(), indent=2)
    write(path, safetensors.save(packed, {METADATA_KEY: text}))
    write(path.with_suffix(".json"), f"{text}\n".encode())


def load(path: Path, learner: Learner) -> None:
    """Makes a learner what it was when it was saved. Its config must be that of the snapshot."""
    header = read_header(path)
    require_same(learner.config, header.config, str(path), header.full)
    wanted = _tensors(learner, header.full)
    try:
        tensors = safetensors.load_file(path)
    except (SafetensorError, OSError) as error:
        raise fail("snapshot-broken", f"cannot be read: {error}.", str(path)) from None
    if header.full:
        tensors.setdefault("usual_norm", torch.full((), torch.inf))  # which older snapshots lack
    tensors.setdefault("steps", unknown_steps(header.config.sizes))  # likewise
    if not header.full:
        for name, unknown in (("means", fresh_means()), ("steps", unknown_steps([0])[0])):
            tensors[name] = _of_sizes(tensors.get(name), header.config.sizes, learner.config.sizes, unknown)
    if tensors.keys() != wanted.keys() or any(tensors[n].shape != t.shape for n, t in wanted.items()):
        raise fail("snapshot-broken", "does not hold the tensors that its config asks for.", str(path))
    for name, tensor in wanted.items():
        tensor.copy_(tensors[name])
    learner.step, learner.instances, learner.seconds = header.step, header.instances, header.seconds
    learner.warm_since = header.warm_since
    if header.full:
        learner.resume_moments()
        return
    learner.restart_moments()
    learner.begin_with(learner.policy)


def read_header(path: Path) -> Header:
    """What a snapshot says of itself, without its tensors."""
    try:
        path.open("rb").close()  # says what is wrong; to safetensors, whatever it may not open does not exist
        with safe_open(path, "pt") as file:
            said = json.loads((file.metadata() or {})[METADATA_KEY])
        if said["format"] != SNAPSHOT_FORMAT:
            message = f"has format {said['format']}; this version reads {SNAPSHOT_FORMAT}."
            raise fail("snapshot-broken", message, str(path))
        return Header(
            TrainConfig.from_dict(said["config"]),
            int(said["step"]),
            int(said["instances"]),
            float(said["seconds"]),
            int(said["warm_since"]),
            bool(said["full"]),
            str(said["revision"]),
        )
    except FileNotFoundError:
        raise fail("file-not-found", "there is no such snapshot.", str(path)) from None
    except OSError as error:
        raise fail("file-unreadable", f"{error.strerror or error}.", str(path)) from None
    except (SafetensorError, ValueError, KeyError, TypeError, OverflowError) as error:
        raise fail("snapshot-broken", f"is not a snapshot of a run ({error}).", str(path)) from None


def newest(folder: Path) -> Path | None:
    """The snapshot from which a run goes on: the full one or the small one, whichever is further."""
    there = [folder / name for name in (FULL, SMALL) if (folder / name).exists()]
    return max(there, key=lambda path: read_header(path).step, default=None)


def _tensors(learner: Learner, full: bool) -> dict[str, Tensor]:
    return {name: t for name, t in learner.tensors() if full or name.startswith(SMALL_PARTS)}


def _of_sizes(rows: Tensor | None, sizes: Sequence[int], wanted: Sequence[int], unknown: Tensor) -> Tensor:
    """What a snapshot has of each size, by the sizes wanted; of new ones it is not known."""
    if rows is None or rows.shape != (len(sizes), *unknown.shape):
        return torch.empty(0)  # of a shape that is refused
    known = dict(zip(sizes, rows, strict=True))
    return torch.stack([known.get(n, unknown) for n in wanted])


def _packed(name: str, tensor: Tensor, full: bool) -> Tensor:
    kind = torch.float16 if not full and name.startswith("policy.") else tensor.dtype
    return tensor.detach().to("cpu", kind, copy=True).contiguous()
