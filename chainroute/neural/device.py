"""The device that tensors are computed on."""

from __future__ import annotations

import os

import torch

from chainroute.errors import fail
from chainroute.runtime.cores import cores


def choose_device(name: str = "auto") -> torch.device:
    """The device of this process (under torchrun: of this rank); `auto` is a GPU where there is one."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
        if device.type == "cuda" and device.index is None:
            device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:  # torch says both for a device that is not there
        reason = str(error).splitlines()[0].rstrip(".")
        message, remedy = f"'{name}' cannot be used: {reason}.", "Choose cpu, or a device that is there."
        raise fail("bad-option", message, "device", remedy) from None
    if device.type == "cuda":
        torch.cuda.set_device(device)
    return device


def device_name(device: torch.device) -> str:
    """What the device is called in ledgers and result files."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else f"CPU, {cores()} cores"
