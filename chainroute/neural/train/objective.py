"""REINFORCE with the shared multi-start baseline. Paper, section 3, and the reward scaling of RouteFinder.

An advantage says by how much a trajectory beat the mean of its instance's trajectories. Costs of different
variants differ by a factor of three, so it is divided by a scale. The objectives:

    unscaled  by nothing (the paper as printed)
    scaled    by a moving mean of the costs of the instance's variant (the authors' code)
    relative  by the mean cost of the instance itself
    best      likewise, and then leaning towards the best trajectories, since of all that are decoded
              only the best is ever used
    preferences   of each two trajectories the cheaper one is to be the likelier, the more the less it is so
              yet: by how much it is cheaper does not count

Pure functions on tensors without a look at their values, so that they can be captured.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor

from chainroute.neural.env import ProblemBatch
from chainroute.neural.policy.layers import at_least_single
from chainroute.problem.variants import FLAGS, VARIANTS, place

Objective = Literal["unscaled", "scaled", "relative", "best", "preferences"]
# Those that see trajectories' log-likelihoods, which the fast engine computes beforehand for these alone.
SEES_LIKELIHOODS = ("preferences",)

RISK_FACTOR = 2.5  # how far "best" leans: 0 is "relative", infinity would learn from the best alone
MEANS_WEIGHT = 0.25  # the weight of an update's costs in the moving means
PREFERENCE = 0.05  # by what a difference of two log-likelihoods is multiplied
EXCESS_WEIGHT = 0.1  # of embeddings that are too long, beside advantages of a few hundredths


def fresh_means(device: torch.device | str = "cpu") -> Tensor:
    """Moving means before the first cost, (48,), one for each variant: not yet known."""
    return torch.full((len(VARIANTS),), torch.nan, device=device)


def variant_index(batch: ProblemBatch) -> Tensor:
    """Where the variant of each instance stands in VARIANTS, (B,) long."""
    has = dict(zip(FLAGS, batch.flags.long().unbind(1), strict=True))
    if batch.num_depots == 1:
        several = torch.zeros_like(has["B"])
    elif batch.padding is None:
        several = torch.ones_like(has["B"])
    else:
        several = (~batch.padding[:, 1]).long()  # a padded instance has its first depot only
    kind = has["B"] + (batch.mixed & batch.backhaul)
    index: Tensor = place(several, kind, has["TW"], has["O"], has["L"])
    return index


def advantages(
    cost: Tensor,
    finished: Tensor,
    variant: Tensor,
    means: Tensor,
    objective: Objective,
    total: Callable[[Tensor], Tensor] = lambda sums: sums,
    log_likelihood: Tensor | None = None,
) -> Tensor:
    """The advantage of each trajectory, (B, S), from its cost and whether it finished, and from the
    log-likelihoods (B, S) where the objective sees them: minus S times the loss's slope along its own.

    `variant` (B,) says which of the moving `means` (48,) each instance belongs to; they are updated in place.
    `total` sums over all ranks. Trajectories that did not finish count for nothing.
    """
    weight = finished.to(cost.dtype)
    known = torch.where(finished, cost, 0.0)
    served = weight.sum(1, keepdim=True)
    baseline = known.sum(1, keepdim=True) / served.clamp(min=1)
    update_means(means, total(_sums(known.sum(1), served.squeeze(1), variant)))
    match objective:
        case "unscaled":
            scale = torch.ones_like(baseline)
        case "scaled":
            scale = means[variant][:, None]
        case "relative" | "best":
            scale = baseline
        case "preferences":
            assert log_likelihood is not None
            return preferences(known, finished, log_likelihood)
    # Where nothing finished there is no scale either.
    advantage = torch.where(finished, (baseline - cost) / scale, 0.0)
    return risk_seeking(advantage, finished, served) if objective == "best" else advantage


def risk_seeking(advantage: Tensor, finished: Tensor, served: Tensor) -> Tensor:
    """The advantages (B, S) in the risk-seeking objective log E exp(k A), k = RISK_FACTOR over their spread.

    Its gradient weighs a trajectory by its share of exp(k A) in place of A. Divided by k, these weights are
    the advantages themselves for a small k. `served` (B, 1) is how many trajectories finished.
    """
    spread = (advantage.square().sum(1, keepdim=True) / served.clamp(min=1)).sqrt().clamp(min=1e-9)
    k = RISK_FACTOR / spread
    share = torch.softmax(torch.where(finished, k * advantage, -1e9), 1)
    return torch.where(finished, (served * share - 1) / k, 0.0)


def preferences(cost: Tensor, finished: Tensor, log_likelihood: Tensor) -> Tensor:
    """The advantages (B, S) in the loss -log sigmoid(k (l_i - l_j)) of each pair of which i costs less than
    j, k = PREFERENCE, over all pairs that finished, divided by k and by their number for each trajectory."""
    cheaper = torch.sign(cost[:, None, :] - cost[:, :, None])  # (B, S, S): whether the row's one is
    pairs = finished[:, :, None] & finished[:, None, :]
    ahead = log_likelihood[:, :, None] - log_likelihood[:, None, :]
    pull = torch.where(pairs, cheaper * torch.sigmoid(-PREFERENCE * cheaper * ahead), 0.0)
    return pull.sum(2) / (finished.sum(1, keepdim=True) - 1).clamp(min=1)


def excess_length(nodes: Tensor, bound: float) -> Tensor:
    """The penalty on node embeddings (..., D) that are longer than the bound: the mean square of the share by
    which they are. It pulls at the end of the chain what would explode in a longer one."""
    length: Tensor = torch.linalg.vector_norm(at_least_single(nodes), dim=-1)
    return EXCESS_WEIGHT * (length / bound - 1).relu().square().mean()


def cost_ratio(cost: Tensor, variant: Tensor, means: Tensor) -> Tensor:
    """How many times the moving means of their variants the costs (B, S) of an update are, on average: ().

    Not a number where some variant is new.
    """
    return (cost.mean(1) / means[variant]).mean()


def update_means(means: Tensor, sums: Tensor) -> None:
    """Moves the means in place towards those of an update: sums (48, 2) of costs and of trajectories."""
    cost, count = sums.unbind(1)
    now = cost / count
    moved = torch.where(means.isnan(), now, means + MEANS_WEIGHT * (now - means))
    means.copy_(torch.where(count > 0, moved, means))


def _sums(cost: Tensor, count: Tensor, variant: Tensor) -> Tensor:
    sums = cost.new_zeros(len(VARIANTS), 2)
    return sums.index_add(0, variant, torch.stack([cost, count], 1))


def loss(advantage: Tensor, log_likelihood: Tensor) -> Tensor:
    """Its gradient is that of the expected cost: -mean(A log p)."""
    return -(advantage * log_likelihood).mean()
