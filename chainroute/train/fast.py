"""Whole updates as captured CUDA graphs: data, trajectories, gradient and optimiser without the host.

A graph has a fixed number of steps and a fixed pattern of which of them refine. Several patterns are
captured and used in turn; the number of steps follows what the policy needs, in strides, since an untrained
policy makes more and shorter routes than a trained one.
"""

from __future__ import annotations

import time

import torch
from torch import Tensor

from chainroute.decode.rollout import pattern
from chainroute.env import Mixture, sample
from chainroute.fast.chain import Chain
from chainroute.fast.ops import fused
from chainroute.train.chance import choices, reseed
from chainroute.train.engine import Stats, Tally
from chainroute.train.learner import Learner
from chainroute.train.objective import advantages, variant_index
from chainroute.train.ranks import Ranks

PATTERNS = 4  # shifts of the evenly spread refining steps, for each number of steps
STRIDE = 8  # between the numbers of steps that are captured
SPARE = 2  # steps kept beyond what was needed
TOLERATED = 1e-4  # share of trajectories that may run out of steps; they count for nothing


class Fast:
    """Updates where `make_engine` finds no obstacle to them; `Plain` says what an update is."""

    def __init__(self, learner: Learner, ranks: Ranks):
        config = learner.config
        self.learner, self.ranks = learner, ranks
        self.share = ranks.split(config.batch)
        self.mixture = Mixture.of(config.mixture, learner.device)
        self.generator = torch.Generator(learner.device)
        self.chain = Chain(learner.policy, torch.bfloat16, fused)
        self.pool = torch.cuda.graph_pool_handle()
        self.graphs: dict[tuple[int, int], list[torch.cuda.CUDAGraph]] = {}
        self.steps = {n: 2 * n for n in config.sizes}  # which graphs of each size to use
        self.tally = Tally(ranks)
        self.needs = torch.zeros(
            len(config.sizes), 2, device=learner.device
        )  # most steps and share unfinished
        self.preparing = 0.0

    def update(self, rate: float) -> None:
        learner = self.learner
        n, _ = choices(learner.config, learner.step)
        key = (n, self.steps[n])
        if key not in self.graphs:
            self.graphs[key] = self.capture(*key)
        learner.optimiser.set_rate(rate)
        reseed(self.generator, learner.config.seed, learner.step, self.ranks.rank)
        self.graphs[key][learner.step % PATTERNS].replay()
        learner.count()
        self.tally.updates += 1

    def stats(self) -> Stats:
        for n, (needed, unfinished) in zip(self.learner.config.sizes, self.needs.tolist(), strict=True):
            if unfinished > TOLERATED:
                self.steps[n] = min(2 * n, self.steps[n] + STRIDE)
            elif 0 < needed + SPARE <= self.steps[n] - STRIDE:
                self.steps[n] = STRIDE * -(-int(needed + SPARE) // STRIDE)
        self.needs.zero_()
        return self.tally.take()

    def capture(self, n: int, steps: int) -> list[torch.cuda.CUDAGraph]:
        torch.cuda.synchronize()  # the updates before it are not part of the preparation
        began = time.monotonic()
        changed = [t for _, t in self.learner.tensors()] + self.learner.optimiser.counters()
        changed += [self.tally.sums, self.needs]
        before = [t.clone() for t in changed]
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            self.run(n, [True, False, True])  # compiles what must be compiled
        torch.cuda.current_stream().wait_stream(stream)
        graphs = []
        for shift in range(PATTERNS):
            refine = pattern(self.learner.config.update_rate, shift, steps)
            graph = torch.cuda.CUDAGraph()
            graph.register_generator_state(self.generator)
            with torch.cuda.graph(graph, pool=self.pool):
                self.run(n, refine)
            graphs.append(graph)
        for tensor, value in zip(changed, before, strict=True):
            tensor.copy_(value)
        self.preparing += time.monotonic() - began
        return graphs

    def run(self, n: int, refine: list[bool]) -> None:
        """One update, as the device sees it."""
        config, generator, device = self.learner.config, self.generator, self.learner.device
        batch = sample(self.share, n, self.mixture, generator)
        shape = (len(refine), self.share, n)
        gumbel = _gumbel((*shape, batch.num_nodes), generator)
        noise = torch.randn(*shape, 4, device=device, generator=generator)
        variant, means = variant_index(batch), self.learner.means[config.sizes.index(n)]

        def advantage(cost: Tensor, finished: Tensor) -> Tensor:
            return advantages(cost, finished, variant, means, config.objective, self.ranks.total)

        made = self.chain.gradients(batch, refine, gumbel, noise, advantage)
        self.ranks.average([p.grad for p in self.learner.policy.parameters() if p.grad is not None])
        norm = self.learner.apply()
        unfinished = 1 - made.finished.float().mean()
        self.tally.sums += torch.stack([made.loss, made.costs.mean(), unfinished, norm])
        travelling = (made.actions >= batch.num_depots).flatten(1).any(1)  # steps at which somebody travels
        needed = (travelling * torch.arange(1, len(refine) + 1, device=device)).max() + 1
        needs = self.needs[config.sizes.index(n)]
        torch.maximum(needs, torch.stack([needed, unfinished]), out=needs)


def _gumbel(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    exponential = torch.empty(shape, device=generator.device).exponential_(generator=generator)
    return exponential.log_().neg_()  # PyTorch's exponential numbers are above 0
