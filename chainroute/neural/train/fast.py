"""Whole updates as captured CUDA graphs: data, trajectories, gradient and optimiser without the host.

A graph has a fixed number of steps and a fixed pattern of which of them refine. Several patterns are
captured and used in turn; the number of steps follows what the policy needs, in strides, since an untrained
policy makes more and shorter routes than a trained one. What ranks tell each other is part of the graph.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from types import ModuleType

import torch
from torch import Tensor

from chainroute.neural.env import Mixture, ProblemBatch, sample
from chainroute.neural.fast.chain import Chain
from chainroute.neural.policy.columns import GROUPS
from chainroute.neural.train.engine import Stats, Tally, strange, summary
from chainroute.neural.train.learner import Learner
from chainroute.neural.train.objective import SEES_LIKELIHOODS, advantages, excess_length, variant_index
from chainroute.neural.train.ranks import Ranks
from chainroute.neural.train.steps import StepBudget
from chainroute.neural.train.streams import PATTERNS, choices, patterns, reseed


class Fast:
    """Updates where `make_engine` finds no obstacle to them; `PlainEngine` says what an update is."""

    def __init__(
        self,
        learner: Learner,
        ranks: Ranks,
        half: torch.dtype = torch.bfloat16,
        ops: ModuleType | None = None,  # None: kernels
    ):
        config = learner.config
        self.learner, self.ranks = learner, ranks
        self.shares = {n: ranks.split(config.instances(n)) for n in config.sizes}
        self.mixture = Mixture.of(config.mixture, learner.device, config.law)
        self.generator = torch.Generator(learner.device)
        self.chain = Chain(learner.policy, half, ops or _kernels())
        self.pool = torch.cuda.graph_pool_handle() if learner.device.type == "cuda" else None
        self.graphs: dict[tuple[int, int, tuple[int, ...]], list[torch.cuda.CUDAGraph]] = {}
        self.steps = StepBudget(self.shares, ranks, learner.steps)
        self.tally = Tally(ranks)
        self.preparing = 0.0

    def update(self, rate: float, too_late: Callable[[float], bool] | None = None) -> None:
        learner, graphs = self.learner, self.prepare()
        n, _ = choices(learner.config, learner.step)
        learner.optimiser.set_rate(rate)
        reseed(self.generator, learner.config.seed, learner.step, self.ranks.rank)
        graphs[learner.step % PATTERNS].replay()
        learner.count(learner.config.instances(n))
        self.steps.seen[n] += 1
        self.tally.updates += 1

    def prepare(self) -> list[torch.cuda.CUDAGraph]:
        """The graphs of which one makes the next update."""
        n, _ = choices(self.learner.config, self.learner.step)
        key = (n, self.steps.now[n], self.steps.halvings[n])
        if key not in self.graphs:
            self.graphs[key] = self.capture(*key)
        return self.graphs[key]

    def stats(self) -> Stats:
        self.steps.fit()
        return self.tally.take()

    def close(self) -> None:
        self.graphs.clear()

    def capture(self, n: int, steps: int, halvings: tuple[int, ...]) -> list[torch.cuda.CUDAGraph]:
        torch.cuda.synchronize()  # the updates before it are not part of the preparation
        began = time.monotonic()
        changed = [t for _, t in self.learner.tensors()] + self.learner.optimiser.counters()
        changed += [self.tally.sums, self.steps.ended]
        before = [t.clone() for t in changed]
        try:
            return self._captured(n, steps, halvings)
        finally:
            for tensor, value in zip(changed, before, strict=True):
                tensor.copy_(value)
            self.preparing += time.monotonic() - began

    def _captured(self, n: int, steps: int, halvings: tuple[int, ...]) -> list[torch.cuda.CUDAGraph]:
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            # Three steps of each stretch compile what must be: a first state may be laid out in its own way.
            few = range(len(halvings) + 1)
            self.run(n, [True, False, True] * len(few), [3 * i for i in few[1:]])
        torch.cuda.current_stream().wait_stream(stream)
        graphs = []
        for refine in patterns(self.learner.config, n, steps):
            graph = torch.cuda.CUDAGraph()
            graph.register_generator_state(self.generator)
            # NCCL looks at its events in a thread of its own, which must not spoil the capture.
            mode = "thread_local" if self.ranks.grouped else "global"
            with torch.cuda.graph(graph, pool=self.pool, capture_error_mode=mode):
                self.run(n, refine, halvings)
            graphs.append(graph)
        return graphs

    def run(self, n: int, refine: list[bool], halvings: Sequence[int] = ()) -> None:
        """One update, as the device sees it."""
        config = self.learner.config
        batch, draws, noise = draw(
            self.shares[n], n, len(refine), self.mixture, self.generator, config.trajectories(n)
        )
        variant, means = variant_index(batch), self.learner.means[config.sizes.index(n)]

        def advantage(cost: Tensor, finished: Tensor, likelihood: Tensor | None = None) -> Tensor:
            return advantages(cost, finished, variant, means, config.objective, self.ranks.total, likelihood)

        usual, bound = means.clone(), config.longest_embedding
        penalty = functools.partial(excess_length, bound=bound) if bound else None
        made = self.chain.gradients(
            batch, refine, draws, noise, advantage, halvings=halvings, penalty=penalty,
            sees_likelihoods=config.objective in SEES_LIKELIHOODS,
        )  # fmt: skip
        self.ranks.average([self.learner.optimiser.gradient])
        norm, left_out = self.learner.apply(strange(made.costs, batch, usual, self.ranks))
        self.tally.sums += summary(made.loss, made.costs, made.finished, norm, left_out)
        self.steps.count(n, made.actions, made.finished, batch.num_depots)


def _kernels() -> ModuleType:
    from chainroute.neural.fast.ops import fused  # needs Triton

    return fused


def draw(
    count: int, n: int, steps: int, mixture: Mixture, generator: torch.Generator, starts: int
) -> tuple[ProblemBatch, Tensor, Tensor]:
    """The chance of an update: instances, what decides samples (T, B, S, n), RGCR's noise (T, B, S, 4).

    Customers are drawn alike, so that the first S = `starts` of them are as good as any.
    """
    batch = sample(count, n, mixture, generator)
    shape = (steps, count, starts)
    draws = torch.empty((*shape, batch.num_nodes), device=generator.device)
    draws.exponential_(generator=generator)  # its numbers are above 0
    noise = torch.randn(*shape, len(GROUPS), device=generator.device, generator=generator)
    return batch, draws, noise
