"""The chain of contexts over jobs: encode them once, then at every step describe each trajectory's machines,
re-embed the jobs by all contexts (TSNR), and point at the job that goes on. Paper, appendix "Generalization".
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from chainroute.neural.policy import PolicyConfig
from chainroute.neural.policy.encoder import TransformerLayer
from chainroute.neural.policy.layers import RMSNorm
from chainroute.neural.policy.pointer import Pointer
from chainroute.neural.policy.reembed import TSNR
from chainroute.research.scheduling.process import ShopState
from chainroute.research.scheduling.shop import TIMES

MEAN_TIME = sum(TIMES) / 2  # by which the network measures
URGENCY = 4  # numbers that say how a job stands in a trajectory


class JobPolicy(nn.Module):
    """A network for shops of so many stages and machines, with any number of jobs."""

    def __init__(self, config: PolicyConfig, stages: int, machines: int):
        super().__init__()
        self.config, self.stages, self.machines = config, stages, machines
        dim = config.dim
        self.job = nn.Linear(stages * machines, dim)
        self.layers = nn.ModuleList(TransformerLayer(config, sparse=False) for _ in range(config.layers))
        self.norm = RMSNorm(dim)
        self.situation = nn.Linear(stages * machines + stages, dim, bias=False)
        self.context = nn.Linear(2 * dim, dim, bias=False)
        self.tsnr = TSNR(config) if config.reembedding != "off" else None
        self.urgency = nn.Linear(dim, URGENCY)
        self.norm_jobs = RMSNorm(dim)
        self.pointer = Pointer(config)

    @property
    def dtype(self) -> torch.dtype:
        return self.job.weight.dtype

    @property
    def device(self) -> torch.device:
        return self.job.weight.device

    def encode(self, times: Tensor) -> Tensor:
        """Job embeddings (B, J, D) from times (B, stages, machines, J)."""
        h = self.job(times.flatten(1, 2).mT / MEAN_TIME)
        for layer in self.layers:
            h = layer(h, 0, None)
        return self.norm(h)  # type: ignore[no-any-return]

    def step(
        self, times: Tensor, nodes: Tensor, state: ShopState, mask: Tensor, refine: bool
    ) -> tuple[Tensor, Tensor]:
        """Logits (B, T, J) of the job that goes on, and the jobs (B, J, D) as the step leaves them."""
        here = nodes.gather(1, state.current[..., None].expand(-1, -1, nodes.shape[-1]))
        unified = self.situation(self.situate(state))
        context = self.context(torch.cat([unified, here], -1))
        if refine and self.tsnr is not None:
            nothing = times.new_zeros(1, 1, 1)  # jobs are not near to one another
            b, j, t = len(nodes), nodes.shape[1], here.shape[1]
            nodes, context = self.tsnr(nodes, context, nothing.expand(b, j, t), nothing.expand(b, j, j))
        near = (self.stand(times, state) @ self.urgency(context)[..., None]).squeeze(-1)
        # Not clipped as in routing: what all jobs have in common, which changes no choice between them, would
        # grow until tanh is 1 for every one, and leave no gradient.
        match = self.pointer.match(context, here, unified, self.norm_jobs(nodes), near, mask)
        return match.masked_fill(~mask, -torch.inf), nodes

    def situate(self, state: ShopState) -> Tensor:
        """By how much each machine is free before the makespan, and the share of jobs before each stage."""
        ahead = (state.makespan[..., None, None] - state.free).flatten(2) / MEAN_TIME
        stages = torch.arange(self.stages, device=ahead.device)[:, None]
        waiting = (state.stage[:, :, None] <= stages).to(ahead.dtype).mean(-1)
        return torch.cat([ahead, waiting], -1)

    def stand(self, times: Tensor, state: ShopState) -> Tensor:
        """What is known of each job (B, T, J): how far before the makespan it is ready and would be done, its
        next stage, and the work that is left after it."""
        stage = state.stage.clamp(max=self.stages - 1)
        work = times.mean(2).flip(1).cumsum(1).flip(1)  # (B, stages, J) from each stage on
        late = state.makespan[..., None]
        spans = (late - state.ready, late - state.done, _at(work, stage))
        early, earlier, left = (span / MEAN_TIME for span in spans)
        return torch.stack([early, earlier, stage / self.stages, left], -1)


def _at(work: Tensor, stage: Tensor) -> Tensor:
    """Entries `stage` (B, T, J) of work (B, stages, J)."""
    b, t, _ = stage.shape
    return work[:, None].expand(b, t, *work.shape[1:]).gather(2, stage[:, :, None]).squeeze(2)
