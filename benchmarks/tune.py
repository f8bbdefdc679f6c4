"""Times kernels of attention, choice and situations with many launch sizes: the fastest are written there.

python -m benchmarks.tune [--kinds choose_backward situate_backward]
"""

import argparse
import itertools
import multiprocessing
import sys

import torch
import triton

from chainroute.neural.fast.ops import attention_triton, choice_triton, situation_triton
from chainroute.neural.fast.ops.attention_triton import Tile
from chainroute.neural.fast.ops.rows import padded, power

D, HEADS, PROCESSES = 128, 8, 14
BLOCKS = (64, 64), (64, 32), (32, 64)  # queries and keys of tiles that go through an instance block by block
TILE_OF = attention_triton.tile_of


def tensors(b, q, k, n, kind):
    def half(*shape):
        return torch.randn(shape, device="cuda", dtype=torch.bfloat16)

    if kind == "rows":
        bias = padded(torch.randn(b, n, n, device="cuda"))
        rows = torch.randint(0, n, (b, k - n), device="cuda")
        packed = half(b, k, 3 * D)
        query, keys, values = packed[:, k - q :, :D], packed[..., D : 2 * D], packed[..., 2 * D :]
    else:
        bias, rows = torch.rand(b, q, k, device="cuda") < 0.5, None
        bias[..., 0] = True
        bias = padded(bias)
        packed = half(b, k, 3 * D)
        query, keys, values = half(b, q, 2 * D)[..., :D], packed[..., :D], packed[..., D : 2 * D]
    return query, keys, values, bias, rows, half(b, q, D), torch.randn(b, HEADS, q, device="cuda")


CASES = {  # instances, queries, keys, nodes, bias
    "tsnr50": (256, 51, 101, 51, "rows"),
    "glimpse50": (256, 50, 51, 51, "mask"),
    "tsnr100": (128, 101, 201, 101, "rows"),
    "glimpse100": (128, 100, 101, 101, "mask"),
    "tsnr200": (32, 201, 401, 201, "rows"),
    "glimpse200": (32, 100, 201, 201, "mask"),
}


def forward_tiles(q, k):
    width = power(k)
    for rows, heads, warps in itertools.product((16, 32, 64), (8, 4, 2), (1, 2, 4, 8)):
        share = rows * width // (32 * warps)  # numbers of a tile in each thread
        if rows <= power(q) and 16 <= share <= 64 and rows // 16 <= warps * 2:
            yield (Tile(rows, width, heads, warps),)
    if width > 64:
        for (few, many), heads in itertools.product(BLOCKS, (1, 2, 4)):
            yield (Tile(few, many, heads, few // 16),)


def backward_tiles(q, k):
    height, width = power(q), power(k)
    for heads, warps in itertools.product((8, 4, 2), (4, 8)):
        if height * width // (32 * warps) <= 64:
            yield (Tile(height, width, heads, warps, owns="all"),)
    for heads, warps, few in itertools.product((8, 4), (4, 8), (16, 32, 64)):
        if few < width and 16 <= height * few // (32 * warps) <= 64:
            yield (Tile(height, few, heads, warps, owns="keys"),)
            yield (Tile(height, few, heads, warps, owns="all"),)
        if few < height and 16 <= few * width // (32 * warps) <= 64:
            yield (Tile(few, width, heads, warps),)
    if max(height, width) > 64:
        for (few, many), heads in itertools.product(BLOCKS, (1, 2)):
            yield (Tile(few, many, heads, 4, "keys"),)
            yield (Tile(few, many, heads, 4),)


def jobs():
    for name, (_, q, k, _, _) in CASES.items():
        for tiles in forward_tiles(q, k):
            yield "forward", name, tiles
        for tiles in backward_tiles(q, k):
            yield "backward", name, tiles
    for n, *launch in itertools.product((50, 100, 200), (16, 32, 64, 128), (4, 8)):
        yield "choose_backward", n, tuple(launch)
    for n, warps in itertools.product((50, 100), (1, 2, 4)):
        yield "situate", n, warps
    for n, *launch in itertools.product((50, 100, 200), (32, 64, 128), (32, 64, 128), (4, 8)):
        yield "situate_backward", n, tuple(launch)


def runner(kind, name, tiles):
    if kind == "choose_backward":
        n, s, b = name, min(name, 100), 2048
        query, keys = (torch.randn(b, x, D, device="cuda", dtype=torch.bfloat16) / 8 for x in (s, n + 1))
        near = padded(torch.randn(128, n + 1, n + 1, device="cuda"))
        current = torch.randint(0, n + 1, (b, s), device="cuda")
        legal = torch.rand(b, s, n + 1, device="cuda") < 0.5
        legal[..., 0] = True
        legal = padded(legal)
        action = torch.zeros_like(current)
        weight, likelihood = torch.randn(128, s, device="cuda"), torch.empty(b, s, device="cuda")
        dquery, dkeys = torch.empty_like(query), torch.empty_like(keys)
        args = (query, keys, near, current, legal, 10.0, action, weight, dquery, dkeys, likelihood)
        choice_triton.launch_backward = lambda *_: tiles
        return lambda: choice_triton.choose_backward(*args)
    if kind.startswith("situate"):
        return situation(kind, name, tiles)
    q, k, v, bias, rows, out, lse = tensors(*CASES[name])
    if kind == "forward":
        attention_triton.tile_of = lambda *_: tiles[0]
        return lambda: attention_triton.attend(q, k, v, HEADS, bias, rows, out, lse)
    attention_triton.tile_of = TILE_OF
    attention_triton.attend(q, k, v, HEADS, bias, rows, out, lse)
    dout, dq, dk, dv = (torch.empty(x.shape, device="cuda", dtype=x.dtype) for x in (out, q, k, v))
    dout.normal_()
    args = (dout, q, k, v, HEADS, bias, rows, out, lse, dq, dk, dv)
    attention_triton.tiles_backward = lambda *_: tiles
    return lambda: attention_triton.attend_backward(*args)


def situation(kind, n, launch):
    b = 12_800 // n

    def full(*shape):
        return torch.randn(shape, device="cuda")

    nodes, numbers, noise = full(b, n + 1, D), full(b, n, 16), full(b, n, 4)
    current, table = torch.randint(0, n + 1, (b, n), device="cuda"), full(D, 16).bfloat16().T
    made, relevance = full(b, n, 32 + D).bfloat16(), full(b, n, 4).sigmoid()
    if kind == "situate":
        situation_triton.WARPS = launch
        args = (
            nodes,
            current,
            numbers,
            torch.ones(b, 4, device="cuda"),
            noise,
            table,
            "gated",
            made,
            relevance,
        )
        return lambda: situation_triton.situate(*args)
    situation_triton.launch_backward = lambda *_: launch
    args = (torch.zeros_like(nodes), made, nodes, current, numbers, relevance, table, "gated")
    dproduct = full(b, n, 16).bfloat16()
    return lambda: situation_triton.situate_backward(*args, dproduct)


def compile_share(kinds, rank):
    for job in chosen(kinds)[rank::PROCESSES]:
        try:
            runner(*job)()
            torch.cuda.synchronize()
        except Exception as error:
            print(job, type(error).__name__, str(error)[:80], flush=True)


def chosen(kinds):
    return [job for job in jobs() if not kinds or job[0] in kinds]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kinds", nargs="+", default=[], choices=sorted({job[0] for job in jobs()}))
    kinds = parser.parse_args().kinds
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=compile_share, args=(kinds, rank)) for rank in range(PROCESSES)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    found = {}
    for kind, name, tiles in chosen(kinds):
        try:
            run = runner(kind, name, tiles)
            took = 1e3 * triton.testing.do_bench_cudagraph(run, rep=10, return_mode="median")
        except Exception as error:
            print(kind, name, tiles, type(error).__name__, file=sys.stderr)
            continue
        part = ""
        if kind == "backward":
            part = tiles[0].owns
        found.setdefault((kind, name, part), []).append((took, tiles))
    for key, rows in found.items():
        rows.sort(key=lambda row: row[0])
        print(*key, *(f"{took:.1f} us {plan}" for took, plan in rows[:6]), sep="  ")


if __name__ == "__main__":
    main()
