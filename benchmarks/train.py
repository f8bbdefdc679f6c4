"""How fast the training engine is on a GPU, and that it computes what the plain one does.

python -m benchmarks.train [--seconds 20] [--profile] [--weights PATH | --switches reld=false] [--cases 0 2]
                           [--recipe recipes/all.toml]
"""

import argparse
import time
from collections.abc import Sequence
from dataclasses import replace

import torch

from chainroute.neural.env import Mixture, begin, mask, sample, step
from chainroute.neural.fast.chain import Chain
from chainroute.neural.fast.layers import fused
from chainroute.neural.fast.ops import fused as ops_triton
from chainroute.neural.fast.ops import plain as ops_plain
from chainroute.neural.policy import Policy
from chainroute.neural.policy.store import load_policy
from chainroute.neural.train.config import TrainConfig, read_recipe
from chainroute.neural.train.fast import Fast
from chainroute.neural.train.learner import Learner
from chainroute.neural.train.ranks import Ranks
from chainroute.neural.train.steps import WINDOW_UPDATES
from chainroute.problem.variants import SEEN, VARIANTS, Variant
from chainroute.research.evaluate.networks import network

CASES = [  # customers, batch, update rate, variants, starts
    (50, 256, 0.75, SEEN, 50),
    (50, 256, 0.75, VARIANTS, 50),
    (100, 128, 0.25, SEEN, 100),
    (200, 32, 0.25, SEEN, 200),
    (200, 32, 0.25, SEEN, 100),
    (200, 128, 0.25, SEEN, 100),
]
SETTLED_UPDATES = 2 * WINDOW_UPDATES  # after which a number of steps that did not change is what is needed


def check(policy: Policy) -> None:
    """Gradients by kernels in tf32 and bfloat16, and by autograd, against plain ones in float32."""
    generator = torch.Generator("cuda").manual_seed(0)
    batch = sample(32, 50, Mixture.of(device="cuda"), generator)
    steps = 96
    refine = [j % 4 != 3 for j in range(steps)]
    draws = torch.empty(steps, 32, 50, 51, device="cuda").exponential_(generator=generator)
    noise = torch.randn(steps, 32, 50, 4, device="cuda", generator=generator)

    def advantage(cost, finished):
        return (cost.mean(1, keepdim=True) - cost) / cost.mean(1, keepdim=True) * finished

    def gradient(half, ops, actions=None):
        policy.zero_grad()
        outcome = Chain(policy, half, ops).gradients(batch, refine, draws, noise, advantage, actions)
        flat = torch.cat([p.grad.flatten() for p in policy.parameters() if p.grad is not None])
        return outcome, flat.double()

    outcome, exact = gradient(torch.float32, ops_plain)
    print(f"finished {outcome.finished.float().mean():.4f}, cost {outcome.costs.mean():.4f}")
    for name, half, ops in (("tf32", torch.float32, ops_triton), ("bfloat16", torch.bfloat16, ops_triton)):
        _, found = gradient(half, ops, outcome.actions)
        report(f"triton, {name}", found, exact)
    policy.zero_grad()
    with torch.autocast("cuda", torch.bfloat16), fused():
        scene, nodes = policy.encode(batch)
        state, likelihood = begin(batch), 0
        for j in range(steps):
            logits, nodes = policy.step(batch, scene, nodes, state, mask(batch, state), refine[j], noise[j])
            likelihood = likelihood + logits.log_softmax(-1).gather(-1, outcome.actions[j][..., None])[..., 0]
            state = step(batch, state, outcome.actions[j])
    (-(advantage(state.travelled, state.finished(batch)) * likelihood).mean()).backward()
    found = torch.cat([p.grad.flatten() for p in policy.parameters() if p.grad is not None]).double()
    report("autograd, bfloat16", found, exact)


def report(name, found, exact):
    error = (found - exact).norm() / exact.norm()
    cosine = torch.dot(found, exact) / found.norm() / exact.norm()
    print(f"{name}: relative error {error:.4f}, cosine {cosine:.5f}", flush=True)


def standard(
    policy: Policy, n: int, batch: int, rate: float, variants: Sequence[Variant], starts: int
) -> TrainConfig:
    """The settings of one of CASES."""
    return TrainConfig(
        variants=tuple(v.name for v in variants),
        sizes=(n,),
        batch=batch,
        starts=starts,
        update_rate=rate,
        objective="best",
        optimiser="muon",
        learning_rate=3e-4,
        weight_decay=0.1,
        policy=policy.config,
    )


def sizes(config: TrainConfig) -> list[TrainConfig]:
    """The updates of each size of a recipe, as settings of their own."""
    configs = []
    for n in config.sizes:
        rate = config.at_size(config.update_rate, n)
        spread = min(config.update_spread, 1 / rate - 1)
        batch = config.instances(n)
        configs.append(replace(config, sizes=(n,), batch=batch, update_rate=rate, update_spread=spread))
    return configs


def measure(policy: Policy, config: TrainConfig, seconds: float, profile: bool) -> str:
    """Prints and returns how fast updates of one size are, once the number of their steps has settled."""
    torch.cuda.reset_peak_memory_stats()
    begun = time.perf_counter()
    n, batch = config.sizes[0], config.instances(config.sizes[0])
    learner = Learner.fresh(config, "cuda")
    learner.begin_with(policy)
    fast = Fast(learner, Ranks(learner.device))
    fast.update(0.0)
    fast.stats()
    name = f"N={n} batch={batch} P={config.update_rate:g} variants={len(config.variants)} law={config.law}"
    print(f"{name}: first update after {time.perf_counter() - begun:.1f} s", flush=True)
    end, seen, since = time.perf_counter() + seconds, (fast.steps.now[n], *fast.steps.halvings[n]), 0
    while time.perf_counter() < end or since < SETTLED_UPDATES:
        for _ in range(10):
            fast.update(learner.rate())
        stats = fast.stats()
        now = (fast.steps.now[n], *fast.steps.halvings[n])
        since += 10
        if now != seen:
            print(f"  update {learner.step}: {now} steps and halvings, cost {stats.cost:.3f}", flush=True)
            seen, since = now, 0
    fast.update(learner.rate())
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(20):
        fast.update(learner.rate())
    torch.cuda.synchronize()
    each = (time.perf_counter() - start) / 20
    stats, memory = fast.tally.take(), torch.cuda.max_memory_reserved() / 2**30
    speed = (
        f"{name} steps={seen}: {1e3 * each:.1f} ms, {batch / each:.0f} instances/s, {memory:.1f} GiB; "
        f"after {learner.step} updates cost {stats.cost:.4f}, unfinished {stats.unfinished:.5f}, "
        f"gradient {stats.grad_norm:.3f}"
    )
    print(speed, flush=True)
    if profile:  # of the same number of steps: nothing was fitted since
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
            fast.update(learner.rate())
            torch.cuda.synchronize()
        rows = sorted(profiler.key_averages(), key=lambda row: -row.self_device_time_total)
        busy = sum(row.self_device_time_total for row in rows) / 1e3
        print(f"{sum(row.count for row in rows)} kernels, {busy:.1f} ms")
        for row in rows[:45]:
            total, count = row.self_device_time_total / 1e3, row.count
            print(f"{total:8.2f} ms {count:6d} x {1e3 * total / count:8.1f} us  {row.key[:110]}")
    return speed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument(
        "--cases", type=int, nargs="*", default=range(len(CASES)), help="numbers of the usual ones, from 0 on"
    )
    parser.add_argument("--weights", help="policy that is checked and trained; an untrained one unless given")
    parser.add_argument("--switches", default="", help="in which the network differs from the default")
    parser.add_argument("--recipe", help="whose sizes are measured in place of the usual cases")
    options = parser.parse_args()
    torch.set_float32_matmul_precision("high")
    print(torch.cuda.get_device_name(), torch.__version__, flush=True)
    begun = time.perf_counter()
    torch.manual_seed(0)
    policy = (load_policy(options.weights) if options.weights else Policy(network(options.switches))).cuda()
    if options.recipe:
        configs = sizes(read_recipe(options.recipe))
    else:
        configs = [standard(policy, *CASES[i]) for i in options.cases]
        check(policy)
        print(f"check took {time.perf_counter() - begun:.1f} s", flush=True)
    speeds = []
    for config in configs:
        speeds.append(measure(policy, config, options.seconds, options.profile))
        torch.cuda.empty_cache()
    print(*speeds, sep="\n")


if __name__ == "__main__":
    main()
