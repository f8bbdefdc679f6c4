"""Each fused kernel against plain PyTorch in float64 on the same bfloat16 numbers, and how long it takes.

python -m benchmarks.kernels
"""

import torch

from chainroute.neural.fast.ops import fused as ops_triton
from chainroute.neural.fast.ops import plain as ops_plain
from chainroute.neural.fast.ops.attention_triton import Attention
from chainroute.neural.fast.ops.rows import padded

B, S, N, D, HEADS, HIDDEN = 256, 50, 51, 128, 8, 512


def random(*shape: int, half: bool = True) -> torch.Tensor:
    return torch.randn(shape, device="cuda", dtype=torch.bfloat16 if half else torch.float32)


def compare(name: str, inputs: tuple, outputs: tuple, accumulates: bool = False) -> list[torch.Tensor]:
    """Runs both versions of an operation; prints the relative errors and the time of the fused one."""

    def exact(x):
        return x.double() if isinstance(x, torch.Tensor) and x.is_floating_point() else x

    want = [exact(x).clone() for x in outputs]
    getattr(ops_plain, name)(*map(exact, inputs), *want)
    have = [x.clone() for x in outputs]
    inputs = tuple(x.clone() if accumulates and i == 0 else x for i, x in enumerate(inputs))
    getattr(ops_triton, name)(*inputs, *have)
    errors = [
        f"{((h.double() - w.double()).norm() / w.double().norm()).item():.1e}"
        for h, w in zip(have, want, strict=True)
    ]
    took = time(lambda: getattr(ops_triton, name)(*inputs, *have))
    print(f"{name:24s} {took:8.1f} us  errors {' '.join(errors)}", flush=True)
    return have


def time(run) -> float:
    import triton

    return 1e3 * triton.testing.do_bench(run, warmup=10, rep=30, return_mode="median")


def sparse() -> None:
    qkv = random(B, N, 3 * D).requires_grad_()
    keep = torch.full((B,), 25, dtype=torch.int32, device="cuda")
    seen = Attention.apply(*qkv.split(D, -1), HEADS, None, keep)
    grad = random(B, N, D)
    (found,) = torch.autograd.grad(seen, qkv, grad, retain_graph=True)
    wide = qkv.detach().double().requires_grad_()
    q, k, v = (x.view(B, N, HEADS, -1).transpose(1, 2) for x in wide.split(D, -1))
    scores = q @ k.mT / 4
    scores = scores.masked_fill(scores < scores.topk(25, -1).values[..., -1:], -torch.inf)
    want = (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)
    (exact,) = torch.autograd.grad(want, wide, grad.double())
    errors = [f"{((a.double() - b).norm() / b.norm()).item():.1e}" for a, b in ((seen, want), (found, exact))]
    took = time(lambda: Attention.apply(*qkv.detach().split(D, -1), HEADS, None, keep))
    print(
        f"{'sparse attention':24s} {took:8.1f} us  errors {' '.join(errors)} (values, gradients)", flush=True
    )


def main() -> None:
    torch.manual_seed(0)
    print(torch.cuda.get_device_name(), torch.__version__)
    sparse()
    current = torch.randint(0, N, (B, S), device="cuda")
    numbers, flags = random(B, S, 16, half=False), (torch.rand(B, 4, device="cuda") < 0.5).float()
    numbers[..., 13:] = 0
    noise, table = random(B, S, 4, half=False), random(16, D) / 8
    nodes, half_nodes = random(B, N, D, half=False), random(B, N, D)
    inputs = (nodes, current, numbers, flags, noise, table, "gated")
    _, relevance = compare("situate", inputs, (random(B, S, 32 + D), random(B, S, 4, half=False)))
    grad = random(B, N, D, half=False)
    inputs = (grad, random(B, S, 32 + D), nodes, current, numbers, relevance, table, "gated")
    compare("situate_backward", inputs, (random(B, S, 16),), accumulates=True)

    qkv, near = random(B, S + N, 3 * D), padded(random(B, N, N, half=False))
    rows = torch.cat([current, torch.arange(N, device="cuda").expand(B, -1)], 1).int()
    q, k, v = qkv.split(D, -1)
    inputs = (q[:, S:], k, v, HEADS, near, rows)
    out, lse = compare("attend", inputs, (random(B, N, D), random(B, HEADS, N, half=False)))
    compare(
        "attend_backward",
        (half_nodes, *inputs, out, lse),
        (random(B, N, D), random(B, S + N, D), random(B, S + N, D)),
    )
    legal = torch.rand(B, S, N, device="cuda") < 0.5
    legal[..., 0] = True
    legal = padded(legal)
    keys = random(B, N, 3 * D)
    inputs = (random(B, S, 2 * D)[..., :D], keys[..., :D], keys[..., D : 2 * D], HEADS, legal, None)
    out, lse = compare("attend", inputs, (random(B, S, D), random(B, HEADS, S, half=False)))
    compare(
        "attend_backward",
        (random(B, S, D), *inputs, out, lse),
        (random(B, S, D), random(B, N, D), random(B, N, D)),
    )

    hidden = random(B, S, 2 * HIDDEN)
    compare("gate", (hidden,), (random(B, S, HIDDEN),))
    compare("gate_backward", (random(B, S, HIDDEN), hidden), (random(B, S, 2 * HIDDEN),))
    x, inverse = compare(
        "normalise",
        (random(B, S, 2 * D)[..., :D], nodes),
        (random(B, S + N, D), random(B, S + N, half=False)),
    )
    compare(
        "normalise_backward",
        (grad, random(B, S + N, D), x, inverse),
        (random(B, N, D, half=False), torch.zeros_like(random(B, S, D))),
    )
    weights = ((random(D, 2 * HIDDEN) / 8).T, (random(HIDDEN, D) / 8).T)
    x, inverse, _, _ = compare(
        "mlp",
        (nodes, half_nodes, *weights),
        (random(B, N, D), random(B, N, half=False), random(B, N, D, half=False), random(B, N, D)),
    )
    compare(
        "mlp_backward",
        (grad, half_nodes, x, inverse, *weights),
        (
            random(B, N, D),
            random(B, N, HIDDEN),
            random(B, N, 2 * HIDDEN),
            random(B, N, D, half=False),
            random(B, N, D),
        ),
    )
    query, logit_keys = random(B, S, D) / 8, keys[..., 2 * D :]
    draws = random(B, S, N, half=False).exp()
    place = (near, current, legal)
    (action,) = compare("choose", (query, logit_keys, *place, draws, 10.0), (current,))
    weight = random(B, S, half=False)
    compare(
        "choose_backward",
        (query, logit_keys, *place, 10.0, action, weight),
        (random(B, S, D), random(B, N, D), random(B, S, half=False)),
    )


if __name__ == "__main__":
    main()
