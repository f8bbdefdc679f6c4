"""Blocks that a researcher might try, as small as they can be: tests name them in a config."""

import torch
from torch import nn


class MeanTSNR(nn.Module):
    """Re-embedding without attention: every node moves by a map of itself and of the mean context."""

    def __init__(self, config):
        super().__init__()
        self.map = nn.Linear(2 * config.dim, config.dim)

    def forward(self, nodes, contexts, to_contexts, to_nodes):
        shown = to_contexts[:, :1].isfinite().mT.to(nodes.dtype)  # trajectories that are there
        mean = (contexts.to(nodes.dtype) * shown).sum(1, keepdim=True) / shown.sum(1, keepdim=True)
        return nodes + self.map(torch.cat([nodes, mean.expand_as(nodes)], -1)).tanh(), contexts


class FlatEncoder(nn.Module):
    """Every node embedded by itself."""

    def __init__(self, config):
        super().__init__()
        self.node = nn.Linear(7, config.dim)

    def forward(self, features, limit, flags, num_depots, padding):
        return self.node(features)


class SumRGCR(nn.Module):
    """A context without relevance: the sum of three maps."""

    def __init__(self, config):
        super().__init__()
        self.attributes = nn.Linear(13, config.dim)
        self.here, self.flags = nn.Linear(config.dim, config.dim), nn.Linear(4, config.dim)

    def forward(self, attributes, here, flags, noise=None):
        unified = self.attributes(attributes)
        return unified + self.here(here) + self.flags(flags)[:, None], unified


class DotPointer(nn.Module):
    """A pointer without a glimpse."""

    def __init__(self, config):
        super().__init__()
        self.query = nn.Linear(config.dim, config.dim)

    def forward(self, context, here, unified, nodes, near, mask):
        match = (self.query(context) @ nodes.mT).to(near.dtype) + near
        return (10 * torch.tanh(match)).masked_fill(~mask, -torch.inf)


class NoModule:
    pass


class BrokenMaking(nn.Module):
    """It asks for a size that there is not."""

    def __init__(self, config):
        super().__init__()
        self.map = nn.Linear(config.dims, config.dim)


class BrokenAnswer(MeanTSNR):
    """It forgets to give back the contexts."""

    def forward(self, nodes, contexts, to_contexts, to_nodes):
        return super().forward(nodes, contexts, to_contexts, to_nodes)[0]


class BrokenCall(nn.Module):
    """It takes no biases."""

    def __init__(self, config):
        super().__init__()

    def forward(self, nodes, contexts):
        return nodes, contexts
