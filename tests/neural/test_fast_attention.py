"""Attention and gates, by kernels and by their twins, against their definition; kernels are interpreted
where there is no GPU."""

import math

import pytest
import torch

from chainroute.neural.fast.ops import plain as twins
from chainroute.neural.fast.ops.rows import padded, power

kernels = pytest.importorskip("chainroute.neural.fast.ops.fused", reason="Triton is not installed")
attention = pytest.importorskip("chainroute.neural.fast.ops.attention_triton")

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
B, Q, K, D, HEADS = 2, 21, 43, 32, 2
KINDS = [
    "none",
    "numbers",
    "mask",
    "rows",
    "rows of all keys",
    "sparse",
    "sparse and hidden",
    "first keys hidden",
]


WHOLE = ["twin", "kernel, all heads in a program"]


@pytest.fixture(params=[*WHOLE, "kernel, blocks", "kernel, blocks of keys with all queries"])
def ops(request, monkeypatch, counted_loops):
    """Returns the operations; of so few instances a kernel takes the heads one by one unless told not to, and
    all of their queries and keys at once."""
    if "all heads" in request.param:
        monkeypatch.setattr(attention, "PROGRAMS", 1)
    if "blocks" in request.param:
        whole = attention.tile_of

        def block(instances, queries, keys, heads, sparse=False):
            if sparse:
                return whole(instances, queries, keys, heads)
            size = (power(queries), 16) if "all queries" in request.param else (16, 32)
            return attention.Tile(*size, heads, 4)

        def blocks(*shape):
            tile = block(*shape)
            if "all queries" in request.param:
                return (tile._replace(owns="all"),)
            return tile._replace(owns="keys"), tile

        monkeypatch.setattr(attention, "tile_of", block)
        monkeypatch.setattr(attention, "tiles_backward", blocks)
    return twins if request.param == "twin" else kernels


def plain(q, k, v, bias=None, rows=None, keep=None, heads=HEADS):
    """Attention as it is defined, with the bias in any of its forms."""
    if rows is not None:
        nodes = torch.arange(k.shape[1] - rows.shape[1], device=DEVICE)
        bias = torch.stack([bias[b][torch.cat([rows[b], nodes])].T for b in range(len(q))])
    if bias is not None and bias.dtype == torch.bool:
        bias = torch.zeros(bias.shape, device=DEVICE).masked_fill(~bias, -torch.inf)
    q, k, v = (x.view(*x.shape[:2], heads, -1).transpose(1, 2) for x in (q, k, v))
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    if bias is not None:
        scores = scores + bias[:, None]
    if keep is not None:
        least = [s.topk(int(count), -1).values[..., -1:] for s, count in zip(scores, keep, strict=True)]
        scores = scores.masked_fill(scores < torch.stack(least), -torch.inf)
    return (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)


def draw(*shape):
    return torch.randn(shape, device=DEVICE, generator=torch.Generator(DEVICE).manual_seed(sum(shape)))


def bias_of(kind):
    chance = torch.Generator().manual_seed(1)
    if kind in ("numbers", "sparse and hidden"):
        bias = draw(B, Q, K)
        bias[:, :, 3] = -torch.inf
        return bias, None
    if kind == "first keys hidden":  # whole blocks of them, of some queries
        bias = draw(B, Q, K)
        bias[:, ::2, : K - 5] = -torch.inf
        return bias, None
    if kind == "mask":
        bias = torch.rand(B, Q, K, generator=chance) < 0.5
        bias[..., 0] = True
        return bias.to(DEVICE), None
    if kind.startswith("rows"):
        standing = K if kind == "rows of all keys" else K - Q
        rows = torch.randint(0, Q, (standing, B), generator=chance).T  # in any layout
        return draw(B, Q, Q), rows.to(DEVICE)
    if kind.startswith("padded"):
        bias, rows = bias_of(kind.removeprefix("padded "))
        return padded(bias), rows
    return None, None


@pytest.mark.parametrize("ops", [*WHOLE, "kernel"], indirect=True)
@pytest.mark.parametrize(
    ("nodes", "contexts", "heads", "sparse"), [(70, 70, 4, False), (130, 130, 2, False), (20, 130, 2, True)]
)
def test_attention_of_more_nodes_than_one_tile_holds(ops, nodes, contexts, heads, sparse):
    """Keys then come block by block, and so do more than 128 queries, the gradients of either from tiles of
    their own; the sparse branch, whose tile has all keys, turns it round."""
    keys = nodes + contexts
    rows = torch.arange(contexts, device=DEVICE)[None].flip(1) % nodes
    q, k, v = (draw(1, count, 16 * heads).requires_grad_() for count in (nodes, keys, keys))
    bias = padded(draw(1, nodes, nodes))
    keep = torch.tensor([keys // 2], dtype=torch.int32, device=DEVICE) if sparse else None
    want = plain(q, k, v, bias, rows, keep, heads)
    dout = draw(*want.shape)
    wanted = [want, *torch.autograd.grad(want, [q, k, v], dout)]
    out, dq, dk, dv = (torch.full_like(x, torch.nan).detach() for x in (q, q, k, v))
    lse = torch.full((1, heads, nodes), torch.nan, device=DEVICE)
    least = torch.full_like(lse, torch.nan) if sparse else None
    inputs = (q.detach(), k.detach(), v.detach(), heads, bias, rows)
    ops.attend(*inputs, out, lse, keep, least)
    ops.attend_backward(dout, *inputs, out, lse, dq, dk, dv, least)
    for have, expected in zip((out, dq, dk, dv), wanted, strict=True):
        torch.testing.assert_close(have, expected, rtol=1e-4, atol=1e-5 if DEVICE == "cpu" else 2e-2)


@pytest.mark.parametrize("kind", [*KINDS, "padded mask", "padded rows"])
@pytest.mark.parametrize("queries", [Q, 3])
def test_attention_and_its_gradient(ops, kind, queries):
    """Packed keys and values, every form of bias, and the sparse branch, in which each instance keeps
    a number of keys of its own: as attention is defined."""
    bias, rows = bias_of(kind)
    if queries < Q:
        if "rows" in kind:
            pytest.skip("this bias is square")
        bias = None if bias is None else bias[:, :queries]
    keep = torch.tensor([K // 2, 7], dtype=torch.int32, device=DEVICE) if "sparse" in kind else None
    q = draw(B, queries, D).requires_grad_()
    packed = draw(B, K, 2 * D).requires_grad_()
    want = plain(q, *packed.chunk(2, -1), bias, rows, keep)
    dout = draw(*want.shape)
    want_dq, want_packed = torch.autograd.grad(want, [q, packed], dout)

    out, lse = torch.full_like(q, torch.nan), torch.full((B, HEADS, queries), torch.nan, device=DEVICE)
    least = torch.full_like(lse, torch.nan) if "sparse" in kind else None
    inputs = (q.detach(), *packed.detach().chunk(2, -1), HEADS, bias, rows)
    ops.attend(*inputs, out.detach(), lse, keep, least)
    dq, dpacked = torch.full_like(q, torch.nan).detach(), torch.full_like(packed, torch.nan).detach()
    ops.attend_backward(dout, *inputs, out.detach(), lse, dq, *dpacked.chunk(2, -1), least)
    for have, expected in ((out, want), (dq, want_dq), (dpacked, want_packed)):
        torch.testing.assert_close(have, expected, rtol=1e-4, atol=1e-5 if DEVICE == "cpu" else 2e-2)


def test_the_sparse_branch_keeps_equals_and_sees_no_hidden_keys(ops):
    """Every key is there twice, so that the seventh best is as good as the eighth: both are kept. In the
    second instance only five keys are not hidden, fewer than are to be kept."""
    q, some, v = draw(B, Q, D), draw(B, K // 2, D), draw(B, 2 * (K // 2), D)
    k = some.repeat_interleave(2, 1)
    bias = torch.zeros(B, Q, k.shape[1], device=DEVICE)
    bias[1, :, 5:] = -torch.inf
    keep = torch.tensor([7, 7], dtype=torch.int32, device=DEVICE)
    out, lse = torch.full_like(q, torch.nan), torch.full((B, HEADS, Q), torch.nan, device=DEVICE)
    ops.attend(q, k, v, HEADS, bias, None, out, lse, keep, torch.empty_like(lse))
    eight, all_that_are_seen = plain(q, k, v, bias, None, keep + 1), plain(q, k, v, bias)
    close = {"rtol": 1e-4, "atol": 1e-5 if DEVICE == "cpu" else 2e-2}
    torch.testing.assert_close(out[0], eight[0], **close)
    torch.testing.assert_close(out[1], all_that_are_seen[1], **close)


def test_a_version_of_keys_and_values_is_seen_in_several_steps(ops):
    """Three steps of B instances, two of which see the second version: as if each had keys of its own."""
    version = torch.tensor([1, 0, 1], dtype=torch.int32, device=DEVICE)
    q, packed = draw(3 * B, 3, D), draw(2 * B, K, 2 * D)
    own = torch.cat([packed[B:], packed[:B], packed[B:]]).requires_grad_()
    q.requires_grad_()
    want = plain(q, *own.chunk(2, -1), None, None)
    dout = draw(*want.shape)
    wanted = torch.autograd.grad(want, [q, own], dout)
    out, lse = torch.empty_like(q).detach(), torch.empty(3 * B, HEADS, 3, device=DEVICE)
    ops.attend(q.detach(), *own.detach().chunk(2, -1), HEADS, None, None, out, lse)
    dq, dpacked = torch.full_like(q, torch.nan).detach(), torch.full_like(own, torch.nan).detach()
    seen = (q.detach(), *packed.chunk(2, -1), HEADS, None, None, out, lse)
    ops.attend_backward(dout, *seen, dq, *dpacked.chunk(2, -1), None, version)
    for have, expected in ((dq, wanted[0]), (dpacked, wanted[1])):
        torch.testing.assert_close(have, expected, rtol=1e-4, atol=1e-5 if DEVICE == "cpu" else 2e-2)


@pytest.mark.parametrize("ops", WHOLE, indirect=True)
def test_the_sparse_branch_keeps_exactly_so_many_keys(ops):
    """Values that are one-hot per key show which keys are seen; ties at zero included."""
    q = torch.zeros(1, 1, 16, device=DEVICE)
    q[..., 0] = 1
    k = torch.zeros(1, 16, 16, device=DEVICE)
    k[0, :, 0] = torch.tensor([-3.0, 5, 0.5, -0.25, 1e-20, -1e-20, 7, 2, -8, 4, 3, -1, 9, 6, -6, 1])
    out = torch.empty(1, 1, 16, device=DEVICE)
    lse = torch.empty(1, 1, 1, device=DEVICE)
    for keep in (1, 5, 9, 11, 16):
        least, count = torch.empty_like(lse), torch.tensor([keep], dtype=torch.int32, device=DEVICE)
        ops.attend(q, k, torch.eye(16, device=DEVICE)[None], 1, None, None, out, lse, count, least)
        assert (out > 0).sum() == keep
        assert set(out[0, 0].nonzero().squeeze(1).tolist()) == set(k[0, :, 0].topk(keep).indices.tolist())


def test_gate_and_its_gradient(ops):
    """silu(a) * b."""
    x = draw(3, 5, 64).requires_grad_()
    a, b = x.chunk(2, -1)
    want = torch.nn.functional.silu(a) * b
    dy = draw(*want.shape)
    (want_dx,) = torch.autograd.grad(want, x, dy)
    y, dx = torch.full_like(want, torch.nan).detach(), torch.full_like(x, torch.nan).detach()
    ops.gate(x.detach(), y)
    ops.gate_backward(dy, x.detach(), dx)
    torch.testing.assert_close(y, want.detach())
    torch.testing.assert_close(dx, want_dx)
