"""What the compiler makes of the kernels of an update for a Hopper GPU: registers, spills, shared memory.

It needs no GPU: kernels are compiled as an update launches them, and their twins compute what they would.

python -m benchmarks.resources [--customers 50 100] [--switches reld=false]
"""

import argparse
import re
import subprocess
import tempfile
from pathlib import Path

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.runtime.jit import JITFunction

from chainroute.neural.env import Mixture
from chainroute.neural.fast.chain import Chain
from chainroute.neural.fast.ops import fused, plain
from chainroute.neural.policy import Policy
from chainroute.neural.train.fast import draw
from chainroute.research.evaluate.networks import network

ARCHITECTURE = 90  # H100 and H200
SHARED_MEMORY = 227 * 1024  # bytes that a program may have there
STEPS = 3
PTXAS = Path(triton.__file__).parent / "backends/nvidia/bin/ptxas"


class Hopper:
    """As much of a driver as compiling asks for."""

    def get_current_target(self):
        return GPUTarget("cuda", ARCHITECTURE, 32)

    def get_current_device(self):
        return 0

    def get_current_stream(self, device):
        return 0


class Both:
    """Operations that compile the kernel, and run its twin."""

    def __getattr__(self, name):
        def operation(*given):
            getattr(fused, name)(*given)
            wide = [x.float() if half(x) else x for x in given]  # twins take one precision
            getattr(plain, name)(*wide)
            for x, made in zip(given, wide, strict=True):
                if half(x):
                    x.copy_(made)

        return operation


def half(x) -> bool:
    return isinstance(x, torch.Tensor) and x.dtype == torch.bfloat16


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--customers", type=int, nargs="+", default=[50, 100])
    parser.add_argument("--switches", default="", help="in which the network differs from the default")
    options = parser.parse_args()
    found: dict[str, object] = {}
    run = JITFunction.run

    def compile_only(self, *args, grid, warmup, **kwargs):
        kernel = run(self, *args, grid=grid, warmup=True, **kwargs)
        found.setdefault(kernel.hash, kernel)

    triton.runtime.driver.set_active(Hopper())
    JITFunction.run = compile_only
    torch.compile = lambda function, **_: function
    policy = Policy(network(options.switches))
    print(f"{'kernel':20s} {'registers':>9s} {'spilled':>8s} {'shared':>8s} {'warps':>5s}")
    for n in options.customers:
        found.clear()
        given = draw(1, n, STEPS, Mixture.of(), torch.Generator().manual_seed(0), n)
        refine = [True, False, True]
        Chain(policy, torch.bfloat16, Both()).gradients(given[0], refine, *given[1:], advantage)
        print(f"{n} customers")
        for line in dict.fromkeys(map(report, found.values())):  # the same for most alignments
            print(line)


def advantage(cost, finished):
    return cost.mean(1, keepdim=True) - cost


def report(kernel) -> str:
    """A line of the table."""
    with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
        file.write(kernel.asm["ptx"])
        file.flush()
        command = [PTXAS, f"-arch=sm_{ARCHITECTURE}a", "-v", file.name, "-o", "/dev/null"]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    registers = re.search(r"Used (\d+) registers", said)[1]
    spilled = re.search(r"(\d+) bytes spill stores", said)[1]
    shared, warps = kernel.metadata.shared, kernel.metadata.num_warps
    line = f"{kernel.metadata.name:20s} {registers:>9s} {spilled:>8s} {shared:8d} {warps:5d}"
    return line + "  does not fit" * (shared > SHARED_MEMORY)


if __name__ == "__main__":
    main()
