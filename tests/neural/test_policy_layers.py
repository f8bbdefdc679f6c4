"""The parts of every block, against the literal ones."""

import literal
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from chainroute.neural.policy import layers

HEADS, DIM = 2, 8


def random(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def close(actual, expected):
    np.testing.assert_allclose(actual.detach().numpy(), expected, rtol=1e-9, atol=1e-9)


def test_rms_norm():
    """The layer equals its formula written out number by number."""
    norm, x = literal.drawn(layers.RMSNorm(DIM)), random(3, DIM)
    close(norm(x), [literal.rms_norm(literal.weights_of(norm), row) for row in x.numpy()])


def test_gated_mlp():
    """The layer equals its formula written out number by number."""
    mlp, x = literal.drawn(layers.GatedMLP(DIM, 12)), random(3, DIM)
    close(mlp(x), [literal.gated_mlp(literal.weights_of(mlp), row) for row in x.numpy()])


@pytest.mark.parametrize("biased", [False, True])
def test_attention(biased):
    """The layer equals its formula written out number by number, with and without a bias."""
    q, k, v = random(2, 3, DIM, seed=1), random(2, 5, DIM, seed=2), random(2, 5, DIM, seed=3)
    bias = random(2, 3, 5, seed=4).masked_fill(random(2, 3, 5, seed=5) > 1, -torch.inf) if biased else None
    seen = layers.attention(q, k, v, HEADS, bias)
    for i in range(2):
        one = None if bias is None else bias[i].tolist()
        close(seen[i], literal.attend(q[i].numpy(), k[i].numpy(), v[i].numpy(), HEADS, one))


@given(n=st.integers(1, 9), keep=st.integers(1, 9), seed=st.integers(0, 999))
def test_sparse_attention_sees_the_best_keys_of_each_head(n, keep, seed):
    keep = min(keep, n)
    q, k, v = random(2, 4, DIM, seed=seed), random(2, n, DIM, seed=seed + 1), random(2, n, DIM, seed=seed + 2)
    seen = layers.sparse_attention(q, k, v, HEADS, keep)
    for i in range(2):
        close(seen[i], literal.attend(q[i].numpy(), k[i].numpy(), v[i].numpy(), HEADS, keep=keep))


@given(real=st.lists(st.integers(1, 7), min_size=2, max_size=3), seed=st.integers(0, 999))
def test_sparse_attention_with_hidden_keys_is_that_without_them(real, seed):
    """Each instance keeps its own number of keys and never sees padding."""
    b, n = len(real), max(real) + 1
    q, k, v = random(b, n, DIM, seed=seed), random(b, n, DIM, seed=seed + 1), random(b, n, DIM, seed=seed + 2)
    keeps = [max((r - 1) // 2, 1) for r in real]
    hidden = torch.zeros(b, n, n, dtype=torch.float64)
    for i, r in enumerate(real):
        hidden[i, :, r:] = -torch.inf
    seen = layers.sparse_attention(q, k, v, HEADS, torch.tensor(keeps)[:, None, None, None], hidden)
    for i, r in enumerate(real):
        alone = literal.attend(q[i].numpy(), k[i, :r].numpy(), v[i, :r].numpy(), HEADS, keep=keeps[i])
        close(seen[i], alone)


def test_nearness_by_hand():
    assert layers.nearness(torch.tensor([0.0, 1.0, 0.5])).tolist() == pytest.approx([0.0, 0.0, 0.6931472])
    assert layers.nearness(torch.tensor([1e-30])).isfinite().all()


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (torch.bfloat16, torch.float32),
        (torch.float16, torch.float32),
        (torch.float32, torch.float32),
        (torch.float64, torch.float64),
    ],
)
def test_scores_are_never_in_half_precision(given, kept):
    assert layers.at_least_single(torch.ones(1, dtype=given)).dtype is kept


def test_kernels_serve_only_where_they_are_asked_for_and_answer():
    """Attention and gates ask the given kernels first, and run plainly where there are none."""

    class Half:  # kernels that serve gates alone
        def gate(self, x):
            return torch.ones_like(x[..., : x.shape[-1] // 2])

        def attention(self, *inputs):
            return None

        mlp = attention

    x, q = random(3, 2 * DIM), random(1, 3, DIM, seed=1)
    plain, seen = layers.gate(x), layers.attention(q, q, q, HEADS)
    with layers.accelerated(Half()):
        assert torch.equal(layers.gate(x), torch.ones(3, DIM))
        assert torch.equal(layers.attention(q, q, q, HEADS), seen)
    assert torch.equal(layers.gate(x), plain)
