"""The Triton kernels of the policy against plain PyTorch: on a GPU where there is one, else interpreted."""

import math

import pytest
import torch

kernels = pytest.importorskip("chainroute.fast.kernels", reason="Triton is not installed")

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
B, Q, K, D, HEADS = 2, 21, 43, 64, 4


def plain(q, k, v, bias=None, rows=None, keep=0):
    """Attention as it is defined, with the bias in any of its forms."""
    if rows is not None:
        bias = torch.stack([bias[b][rows[b].long()].T for b in range(len(q))])
    if bias is not None and bias.dtype == torch.bool:
        bias = torch.zeros(bias.shape, device=DEVICE).masked_fill(~bias, -torch.inf)
    q, k, v = (x.view(*x.shape[:2], HEADS, -1).transpose(1, 2) for x in (q, k, v))
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    if bias is not None:
        scores = scores + bias[:, None]
    if keep:
        scores = scores.masked_fill(scores < scores.topk(keep, -1).values[..., -1:], -torch.inf)
    return (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)


def draw(*shape):
    return torch.randn(shape, device=DEVICE, generator=torch.Generator(DEVICE).manual_seed(sum(shape)))


def bias_of(kind):
    chance = torch.Generator().manual_seed(1)
    if kind == "numbers":
        bias = draw(B, Q, K)
        bias[:, :, 3] = -torch.inf
        return bias, None
    if kind == "mask":
        bias = torch.rand(B, Q, K, generator=chance) < 0.5
        bias[..., 0] = True
        return bias.to(DEVICE), None
    if kind == "rows":
        rows = torch.randint(0, Q, (B, K), dtype=torch.int32, generator=chance)
        return draw(B, Q, Q), rows.to(DEVICE)
    return None, None


@pytest.mark.parametrize("kind", ["none", "numbers", "mask", "rows", "sparse"])
@pytest.mark.parametrize("queries", [Q, 3])
def test_attention_and_its_gradient(kind, queries):
    """Packed keys and values, every form of bias, and the sparse branch: as plain attention."""
    bias, rows = bias_of(kind)
    if queries < Q:
        if kind == "rows":
            pytest.skip("this bias is square")
        bias = None if bias is None else bias[:, :queries].contiguous()
    keep = K // 2 if kind == "sparse" else 0
    q = draw(B, queries, D).requires_grad_()
    packed = draw(B, K, 2 * D).requires_grad_()
    want = plain(q, *packed.chunk(2, -1), bias, rows, keep)
    dout = draw(*want.shape)
    want_dq, want_packed = torch.autograd.grad(want, [q, packed], dout)

    out, lse = torch.full_like(q, torch.nan), torch.full((B, HEADS, queries), torch.nan, device=DEVICE)
    least = torch.full_like(lse, torch.nan) if keep else None
    inputs = (q.detach(), *packed.detach().chunk(2, -1), HEADS, bias, rows)
    kernels.attend(*inputs, out.detach(), lse, keep, least)
    dq, dpacked = torch.full_like(q, torch.nan).detach(), torch.full_like(packed, torch.nan).detach()
    kernels.attend_backward(dout, *inputs, out.detach(), lse, dq, *dpacked.chunk(2, -1), least)
    for have, expected in ((out, want), (dq, want_dq), (dpacked, want_packed)):
        torch.testing.assert_close(have, expected, rtol=1e-4, atol=1e-5 if DEVICE == "cpu" else 2e-2)


def test_the_sparse_branch_keeps_exactly_so_many_keys():
    """Values that are one-hot per key show which keys are seen; ties at zero included."""
    q = torch.zeros(1, 1, 16, device=DEVICE)
    q[..., 0] = 1
    k = torch.zeros(1, 16, 16, device=DEVICE)
    k[0, :, 0] = torch.tensor([-3.0, 5, 0.5, -0.25, 1e-20, -1e-20, 7, 2, -8, 4, 3, -1, 9, 6, -6, 1])
    out = torch.empty(1, 1, 16, device=DEVICE)
    lse = torch.empty(1, 1, 1, device=DEVICE)
    for keep in (1, 5, 9, 11, 16):
        least = torch.empty_like(lse)
        kernels.attend(q, k, torch.eye(16, device=DEVICE)[None], 1, None, None, out, lse, keep, least)
        assert (out > 0).sum() == keep
        assert set(out[0, 0].nonzero().squeeze(1).tolist()) == set(k[0, :, 0].topk(keep).indices.tolist())


def test_gate_and_its_gradient():
    """silu(a) * b."""
    x = draw(3, 5, 64).requires_grad_()
    a, b = x.chunk(2, -1)
    want = torch.nn.functional.silu(a) * b
    dy = draw(*want.shape)
    (want_dx,) = torch.autograd.grad(want, x, dy)
    y, dx = torch.full_like(want, torch.nan).detach(), torch.full_like(x, torch.nan).detach()
    kernels.gate(x.detach(), y)
    kernels.gate_backward(dy, x.detach(), dx)
    torch.testing.assert_close(y, want.detach())
    torch.testing.assert_close(dx, want_dx)
