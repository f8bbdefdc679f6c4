"""How fast a policy decodes.

Time depends on what was learned by the number of steps alone. An untrained policy makes many short routes and
needs about 1.8 N of them, a trained one 1.2 N.

python -m benchmarks.decode                     # on the CPU: one instance, batches of 64, growth with N and P
python -m benchmarks.decode --device cuda       # on a GPU: 1,000 instances on 8 maps, growth with N and P
python -m benchmarks.decode --weights weights/paper-n50 --sizes 50 100 --quick
python -m benchmarks.decode --device cuda --sizes 50 100 --instances 1 16 256 [--stepped]
"""

import argparse
import time
from collections.abc import Callable

import torch

from chainroute.generate import generate
from chainroute.neural.decode import DecodeOptions, best_costs, capture, decode
from chainroute.neural.decode import memory as estimate
from chainroute.neural.env import from_problems
from chainroute.neural.policy import Policy
from chainroute.neural.policy.store import load_policy, random_policy
from chainroute.problem.variants import variant

SIZES = (50, 100, 200, 500, 1000)
RATES = (0.0, 0.25, 0.5, 1.0)
INSTANCES = {50: 1000, 100: 1000, 200: 128, 500: 32, 1000: 8}  # decoded together on a GPU


def seconds(work: Callable[[], object], device: torch.device, repeat: int) -> float:
    """The shortest of `repeat` runs after one to warm up; a single run where that takes more than 10 s."""
    times = []
    for _ in range(repeat + 1):
        started = time.perf_counter()
        work()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        times.append(time.perf_counter() - started)
        if times[-1] > 10:
            break
    return min(times[1:] or times)


def row(*cells: object) -> None:
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def heading(title: str, *columns: str) -> None:
    print(f"\n{title}\n")
    row(*columns)
    row(*["---"] * len(columns))


def one_by_one(policy: Policy, args: argparse.Namespace) -> None:
    """From Problem to judged Solution on the CPU, one start per customer, no augmentation, P = 1."""
    heading("CPU, problems to judged solutions", "variant", "N", "instances", "ms per instance")
    options = DecodeOptions(augmentations=1, update_rates=(1.0,))
    for name in args.variants:
        for n in [n for n in args.sizes if n <= 100]:
            for count in (1,) if args.quick else (1, 64):
                problems = generate(variant(name), n, count, seed=0)
                spent = seconds(lambda p=problems: decode(policy, p, options), args.device, args.repeat)
                row(name, n, count, f"{1000 * spent / count:.0f}")


def growth(policy: Policy, args: argparse.Namespace) -> None:
    """Costs of the best trajectories, on the device, by size and update rate."""
    gpu = args.device.type == "cuda"
    maps = 8 if gpu else 1
    title = f"{args.device}, seconds for all instances, best of {maps} x starts, costs only"
    heading(
        title,
        *("variant", "N", "instances", "starts"),
        *(f"P = {rate:g}" for rate in args.rates),
        *("peak GB", "last cost"),
    )
    for name in args.variants:
        for n in args.sizes:
            usual = (32 if args.quick else INSTANCES.get(n, 8)) if gpu else 1
            for count in args.instances or [usual]:
                batch = from_problems(generate(variant(name), n, count, seed=0)).to(args.device)
                spent = []
                if gpu:
                    torch.cuda.reset_peak_memory_stats(args.device)
                for rate in args.rates:
                    options = DecodeOptions(
                        augmentations=maps, update_rates=(rate,), full_precision=args.full
                    )
                    work = lambda o=options, b=batch: best_costs(policy, b, o)  # noqa: E731
                    spent.append(f"{seconds(work, args.device, 1 if n > 200 else args.repeat):.3f}")
                peak = f"{torch.cuda.max_memory_allocated(args.device) / 1e9:.1f}" if gpu else ""
                cost = best_costs(policy, batch, options).mean()
                row(name, n, count, options.trajectories(n), *spent, peak, f"{cost:.4f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--device", type=torch.device, default=torch.device("cpu"))
    parser.add_argument("--weights", default="random", help="random, or the path of a policy")
    parser.add_argument("--full", action="store_true", help="no products in bfloat16 (GPU)")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--rates", type=float, nargs="+", default=RATES)
    parser.add_argument("--variants", nargs="+", default=["CVRP", "VRPTW"])
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--instances", type=int, nargs="+", help="decoded together")
    parser.add_argument("--stepped", action="store_true", help="no captured steps (GPU)")
    parser.add_argument("--quick", action="store_true", help="small batches")
    args = parser.parse_args()

    if args.stepped:
        capture.refuse("asked for")
    policy = random_policy() if args.weights == "random" else load_policy(args.weights)
    policy.to(args.device)
    name = torch.cuda.get_device_name(args.device) if args.device.type == "cuda" else "CPU"
    budget = estimate.budget(args.device) / 1e9
    threads = f"{torch.get_num_threads()} threads"
    print(f"torch {torch.__version__}, {name}, {threads}, budget {budget:.1f} GB, {args.weights} weights")
    if args.device.type == "cpu":
        one_by_one(policy, args)
    growth(policy, args)


if __name__ == "__main__":
    main()
