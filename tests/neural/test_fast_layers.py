"""The policy's layers by kernels: the same numbers and gradients. Without a GPU they are interpreted."""

from dataclasses import replace

import pytest
import torch
from problems import invent

from chainroute import VARIANTS
from chainroute.neural.env import begin, from_problems, mask, picked, step
from chainroute.neural.fast import layers as fast_layers
from chainroute.neural.fast.fold import Folded, fold
from chainroute.neural.policy import PolicyConfig
from chainroute.neural.policy.encoder import TransformerLayer
from chainroute.neural.policy.store import random_policy

pytest.importorskip("chainroute.neural.fast.ops.fused", reason="Triton is not installed")

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
CONFIG = PolicyConfig(dim=32, heads=2, layers=1, hidden=48)
CLOSE = {"rtol": 1e-3, "atol": 1e-4 if DEVICE == "cpu" else 2e-2}


@pytest.fixture(autouse=True)
def _same_weights():
    """Every test draws the same, whatever ran before: where two keys are nearly as good, kernels may choose
    the other one."""
    torch.manual_seed(0)


@pytest.fixture
def served(monkeypatch):
    """Returns what turns kernels on for single precision too, and tells afterwards how many MLPs they ran."""
    calls = []

    def turn_on():
        add_mlp = fast_layers.mlp_triton.add_mlp
        monkeypatch.setattr(fast_layers, "_serve", lambda x: True)
        monkeypatch.setattr(fast_layers.mlp_triton, "add_mlp", lambda *a: calls.append(1) or add_mlp(*a))
        return calls

    return turn_on


def drawn(module):
    """The module with weights of norms that are not ones."""
    rng = torch.Generator().manual_seed(0)
    for p in module.parameters():
        p.data += 0.3 * torch.randn(p.shape, generator=rng) * (p.ndim == 1)
    return module.to(DEVICE)


@pytest.mark.parametrize("sparse", [False, True], ids=["global", "sparse"])
def test_a_layer_of_the_encoder_and_its_gradient(served, sparse):
    """A layer gives the same rows, and the same gradients of its input and of all its weights."""
    layer = drawn(TransformerLayer(CONFIG, sparse))
    x = torch.randn(3, 11, CONFIG.dim, generator=torch.Generator().manual_seed(1)).to(DEVICE).requires_grad_()
    grad = torch.randn(x.shape, generator=torch.Generator().manual_seed(2)).to(DEVICE)
    wanted = layer(x, 5, None)
    want = torch.autograd.grad(wanted, [x, *layer.parameters()], grad)
    calls = served()
    with fast_layers.fused():
        made = layer(x, 5, None)
        have = torch.autograd.grad(made, [x, *layer.parameters()], grad)
        with torch.no_grad():
            torch.testing.assert_close(layer(x, 5, None), made)
    assert len(calls) == 2
    torch.testing.assert_close(made, wanted, **CLOSE)
    torch.testing.assert_close(have, want, **CLOSE)


def test_steps_by_kernels_are_the_plain_ones(served):
    """Some steps of decoding, of which the first and third re-embed, by kernels and without them."""
    policy = drawn(random_policy(CONFIG))
    batch = from_problems([invent(v, 3, 7, depots=1) for v in VARIANTS[:24:7]]).to(DEVICE)

    def logits(steps):
        chain, state = Folded(policy, fold(policy).to(torch.float32), batch), begin(batch)
        for refine in steps:
            legal = mask(batch, state)
            yield chain.step(state, legal, refine)
            state = step(batch, state, legal.int().argmax(-1))

    steps = (True, False, True)
    with torch.no_grad():
        plain = list(logits(steps))
        calls = served()
        fused = list(logits(steps))
    assert len(calls) == 2 * CONFIG.layers + len(steps) + sum(steps)
    torch.testing.assert_close(fused, plain, **CLOSE)


@pytest.mark.parametrize("switches", [{}, {"node_attention": False}, {"residual": "query"}], ids=str)
def test_choices_by_kernels_are_the_plain_ones(served, switches):
    """Greedy steps of padded problems with one depot and several, half of them from the third step on."""
    policy = drawn(random_policy(replace(CONFIG, **switches)))
    problems = [invent(v, 4, 5 + 4 * (i % 2)) for i, v in enumerate(VARIANTS[::7])]
    whole = from_problems(problems).to(DEVICE)

    def choices():
        batch = whole
        chain, state = Folded(policy, fold(policy).to(torch.float32), batch), begin(batch)
        for number, refine in enumerate((True, False, True, True)):
            if number == 2:
                half = torch.arange(0, batch.size, 2, device=DEVICE)
                chain.keep(half)
                batch, state = batch[half], picked(state, half)
            action = chain.choose(state, mask(batch, state), refine)
            yield action
            state = step(batch, state, action)

    with torch.no_grad():
        plain = list(choices())
        served()
        torch.testing.assert_close(list(choices()), plain)
