"""How much memory decoding takes: an estimate, by which batches are cut into parts.

For each copy of a problem with n nodes and S trajectories, in bytes:

- what stays: the matrices of distances (and durations) in double precision, nearness in single, and actions;
- while encoding: the scores of the sparse branch, which exist with their ranking (18 bytes for each head and
  pair of nodes), or the inner layer of the MLP, whichever is more;
- in a step: the inner layer of the MLP, or what attention and the environment need for pairs of trajectories
  and nodes, whichever is more.
"""

from __future__ import annotations

import torch

from chainroute.neural.policy import PolicyConfig

CPU_BUDGET_BYTES = 2**30


def per_copy(config: PolicyConfig, nodes: int, starts: int, steps: int) -> int:
    """An upper estimate of the bytes that one copy of a problem takes while it is decoded."""
    pairs, seen = nodes**2, nodes * (starts + nodes)
    row = 4 * config.dim
    stays = (2 * 8 + 2 * 4) * pairs + 4 * row * nodes + 2 * starts * steps
    inner = max(nodes, starts) * (5 * 4 * config.hidden + 12 * row)
    encoding = 18 * config.heads * pairs
    refining = 4 * (3 + config.heads) * seen + 5 * row * (starts + nodes)
    pointing = (8 * 6 + 4 * (6 + config.heads)) * starts * nodes
    return stays + max(inner, encoding, refining, pointing)


def budget(device: torch.device) -> int:
    """Bytes for tensors where the options do not say."""
    if device.type == "cuda":
        return torch.cuda.get_device_properties(device).total_memory // 4
    return CPU_BUDGET_BYTES
