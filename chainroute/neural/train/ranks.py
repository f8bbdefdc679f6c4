"""Several processes that train one policy: who they are, and what they tell each other.

torchrun starts them, each a rank. A process on its own is rank 0 of 1 and has nobody to tell anything.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor

from chainroute.errors import fail


@dataclass(frozen=True)
class Ranks:
    device: torch.device
    rank: int = 0
    count: int = 1
    grouped: bool = False  # whether torchrun has set up a group; also one of a single rank

    @property
    def first(self) -> bool:
        return self.rank == 0

    def split(self, batch: int) -> int:
        """How many instances of a batch are this rank's."""
        if batch % self.count:
            raise fail(
                "bad-option",
                f"{batch} instances do not divide among {self.count} ranks.",
                "batch",
                "Give a batch that they divide.",
            )
        return batch // self.count

    def total(self, values: Tensor) -> Tensor:
        """Summed over the ranks, in place."""
        if self.grouped:
            dist.all_reduce(values)
        return values

    def most(self, values: Tensor) -> Tensor:
        """The largest of the ranks, in place."""
        if self.grouped:
            dist.all_reduce(values, dist.ReduceOp.MAX)
        return values

    def average(self, tensors: Sequence[Tensor]) -> None:
        """Each tensor becomes its mean over the ranks, in one message."""
        if self.grouped:
            flat = self.total(torch.cat([t.flatten() for t in tensors])) / self.count
            for tensor, part in zip(tensors, torch.split(flat, [t.numel() for t in tensors]), strict=True):
                tensor.copy_(part.view_as(tensor))

    def share(self, tensors: Sequence[Tensor]) -> None:
        """Each tensor becomes that of rank 0."""
        if self.grouped:
            for tensor in tensors:
                dist.broadcast(tensor, 0)

    def decide(self, *values: float) -> tuple[float, ...]:
        """What rank 0 says, for decisions that all must take alike."""
        if not self.grouped:
            return values
        said = torch.tensor(values, dtype=torch.float64, device=self.device)
        dist.broadcast(said, 0)
        return tuple(said.tolist())


@contextmanager
def joined(device: torch.device) -> Iterator[Ranks]:
    """The group that torchrun has set up, if there is one, for as long as it is needed."""
    if int(os.environ.get("WORLD_SIZE", 1)) == 1 and "TORCHELASTIC_RUN_ID" not in os.environ:
        yield Ranks(device)
        return
    ours = not dist.is_initialized()
    if ours:
        gpu = device.type == "cuda"
        dist.init_process_group("nccl" if gpu else "gloo", device_id=device if gpu else None)
    try:
        yield Ranks(device, dist.get_rank(), dist.get_world_size(), grouped=True)
    finally:
        if ours:
            dist.destroy_process_group()
