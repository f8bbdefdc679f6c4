"""The fast engine's operations: gradients by hand against autograd, Triton against plain PyTorch."""

import importlib
import inspect

import pytest
import torch

from chainroute.neural.fast.ops import plain as ops_plain
from chainroute.neural.fast.ops.rows import padded, power
from chainroute.neural.fast.ops.situation import groups

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
B, S, N, D, HEADS, HIDDEN = 3, 10, 11, 64, 4, 48


@pytest.fixture(scope="module")
def fused():
    return pytest.importorskip("chainroute.neural.fast.ops.fused", reason="Triton is not installed")


def inputs(dtype=torch.float32):
    """Every kind of input that the operations take, by name."""
    chance = torch.Generator().manual_seed(0)

    def number(*shape):
        return torch.randn(shape, generator=chance, dtype=torch.float64).to(DEVICE, dtype)

    def whole(high, *shape):
        return torch.randint(0, high, shape, generator=chance).to(DEVICE)

    legal = torch.rand(B, S, N, generator=chance) < 0.5
    legal[..., 0] = True
    attributes = number(B, S, 16)
    attributes[..., 13:] = 0
    return {
        "nodes": number(B, N, D),
        "grad": number(B, N, D),
        "contexts": number(B, S, 2 * D)[..., :D],  # as they are: half of a wider tensor
        "current": whole(N, B, S),
        "attributes": attributes,
        "flags": whole(2, B, 4).to(dtype),
        "noise": number(B, S, 4),
        "table": (number(D, 16) / 8).T,  # as `Weights.to` lays it out
        "near": padded(number(B, N, N)),
        "legal": padded(legal.to(DEVICE)),
        "draws": number(B, S, N).exp(),
        "query": number(B, S, D) / 8,
        "keys": number(B, N, 3 * D)[..., 2 * D :],
        "weight": number(B, S),
        "number": number,
    }


def run(ops, name, given, outputs):
    """The outputs of an operation that writes into tensors of the given shapes, or into copies of tensors."""
    made = [
        o.clone() if isinstance(o, torch.Tensor) else torch.zeros(o, device=DEVICE, dtype=given[0].dtype)
        for o in outputs
    ]
    getattr(ops, name)(*given, *made)
    return made


def cases():
    i = inputs()
    number = i["number"]
    situation = (i["nodes"], i["current"], i["attributes"], i["flags"], i["noise"], i["table"], "gated")
    place = (i["near"], i["current"], i["legal"])
    x, inverse = run(ops_plain, "normalise", (i["contexts"], i["nodes"]), ((B, S + N, D), (B, S + N)))
    y, y_inverse = number(B, N, D), number(B, N)
    mlp_weights = ((number(D, 2 * HIDDEN) / 8).T, (number(HIDDEN, D) / 8).T)
    twice = lambda t: torch.cat([t, t.flip(0)])  # noqa: E731
    actions, queries = torch.zeros_like(twice(i["current"])), (twice(i["query"]), twice(i["keys"]))
    return {
        "situate": (situation, ((B, S, 32 + D), (B, S, 4))),
        "normalise": ((i["contexts"], i["nodes"]), ((B, S + N, D), (B, S + N))),
        "normalise_backward": ((i["grad"], number(B, S + N, D), x, inverse), ((B, N, D), number(B, S, D))),
        "mlp": (
            (i["nodes"], i["grad"], *mlp_weights),
            ((B, N, D), (B, N), (B, N, D), (B, N, D)),
        ),
        "mlp_backward": (
            (i["grad"], i["nodes"], y, y_inverse, *mlp_weights),
            ((B, N, D), (B, N, HIDDEN), (B, N, 2 * HIDDEN), (B, N, D), (B, N, D)),
        ),
        "choose": ((i["query"], i["keys"], *place, i["draws"], 10.0), (torch.zeros_like(i["current"]),)),
        "choose_backward": (
            (*queries, i["near"], *map(twice, place[1:]), 10.0, actions, i["weight"]),
            ((2 * B, S, D), (2 * B, N, D), (2 * B, S)),
        ),
    }  # fmt: skip


def test_kernels_have_the_signatures_of_their_twins(fused):
    """All of them, so that either can stand in for the other."""
    assert fused.__all__ == ops_plain.__all__
    for name in ops_plain.__all__:
        assert inspect.signature(getattr(fused, name)) == inspect.signature(getattr(ops_plain, name)), name


@pytest.mark.parametrize("width", [5, 16, 17])
def test_padded_rows_are_whole(width):
    """A power of two apart and with zeros between, the numbers themselves unchanged, transposed ones too."""
    rows = torch.arange(2.0 * width * width).view(2, width, width).mT
    made = padded(rows)
    assert torch.equal(made, rows)
    assert made.stride()[1:] == (power(width), 1)
    behind = made.as_strided((2, width, power(width)), made.stride())[..., width:]
    assert not behind.any()
    assert padded(made) is made


@pytest.mark.parametrize("name", list(cases()))
def test_kernel_equals_plain(fused, name):
    """They agree on the same numbers, to the rounding of single precision."""
    given, outputs = cases()[name]
    for have, want in zip(
        run(fused, name, given, outputs), run(ops_plain, name, given, outputs), strict=True
    ):
        torch.testing.assert_close(have, want, rtol=1e-4, atol=1e-4 if DEVICE == "cpu" else 2e-2)


def test_nodes_that_no_program_holds_are_chosen_plainly(fused, monkeypatch):
    """The steps one after the other, with the same likelihoods and gradients."""
    kernels = importlib.import_module(fused.choose_backward.__module__)
    monkeypatch.setattr(kernels, "MAX_NODES", N - 1)
    monkeypatch.setattr(kernels, "STEPS_AT_A_TIME", 1)
    monkeypatch.setattr(kernels, "_choose_backward", None)
    given, outputs = cases()["choose_backward"]
    made = (run(ops, "choose_backward", given, outputs) for ops in (fused, ops_plain))
    torch.testing.assert_close(*made)


def test_a_version_of_the_keys_serves_several_times(fused, monkeypatch):
    """Three times of which two have the same keys: as if each had keys of its own, chosen plainly too."""
    i = inputs()
    versions = torch.cat([i["keys"], i["keys"].flip(0)])
    version = torch.tensor([1, 0, 1], dtype=torch.int32, device=DEVICE)
    thrice = lambda t: torch.cat([t, t.flip(0), t])  # noqa: E731
    rest = (*map(thrice, (i["current"], i["legal"])), 10.0, torch.zeros_like(thrice(i["current"])))
    shapes = ((3 * B, S, D), (3 * B, N, D), (3 * B, S))
    own = (thrice(i["query"]), torch.cat([versions[B:], versions[:B], versions[B:]]))
    want = run(ops_plain, "choose_backward", (*own, i["near"], *rest, i["weight"]), shapes)
    kernels = importlib.import_module(fused.choose_backward.__module__)
    for ops, most in ((ops_plain, N), (fused, N), (fused, N - 1)):
        monkeypatch.setattr(kernels, "MAX_NODES", most)
        monkeypatch.setattr(kernels, "STEPS_AT_A_TIME", 2)
        made = [torch.zeros(shape, device=DEVICE) for shape in shapes]
        ops.choose_backward(own[0], versions, i["near"], *rest, i["weight"], *made, version)
        torch.testing.assert_close(made, want, rtol=1e-4, atol=1e-4 if DEVICE == "cpu" else 2e-2)


@pytest.mark.parametrize("which", ["plain", "fused"])
def test_steps_are_pooled_by_version(fused, which):
    """A version gets the sum of its steps, whether these are in a row, apart, one alone or none."""
    ops = {"plain": ops_plain, "fused": fused}[which]
    version = torch.tensor([1, 0, 0, 3, 1], dtype=torch.int32, device=DEVICE)
    steps = torch.arange(5.0, device=DEVICE)[:, None, None] + torch.arange(3 * 1_500.0, device=DEVICE).view(
        3, -1
    )
    pooled = torch.full((4, *steps.shape[1:]), torch.nan, device=DEVICE)
    ops.pool(steps, version, pooled)
    assert torch.equal(pooled[0], steps[1] + steps[2])
    assert torch.equal(pooled[1], steps[0] + steps[4])
    assert not pooled[2].any()
    assert torch.equal(pooled[3], steps[3])


@pytest.mark.parametrize("scores", ["gated", "dot", "cosine"])
def test_situation_kernel_and_its_gradient(fused, scores):
    """It adds to the gradient it is given, several trajectories at one node included."""
    i = inputs()
    i["attributes"][0, 0] = 0
    given = (i["nodes"], torch.zeros_like(i["current"]), i["attributes"], i["flags"], i["noise"], i["table"])
    dsituation = i["number"](B, S, 32 + D)
    made = {}
    for ops in (fused, ops_plain):
        situation, relevance = run(ops, "situate", (*given, scores), ((B, S, 32 + D), (B, S, 4)))
        grad, dproduct = i["grad"].clone(), torch.zeros(B, S, 16, device=DEVICE)
        ops.situate_backward(grad, dsituation, *given[:3], relevance, i["table"], scores, dproduct)
        made[ops] = (situation, relevance, grad, dproduct)
    for have, want in zip(made[fused], made[ops_plain], strict=True):
        torch.testing.assert_close(have, want, rtol=1e-4, atol=1e-4 if DEVICE == "cpu" else 2e-2)


@pytest.mark.parametrize("scores", ["gated", "cosine"])
def test_situation_gradient_of_all_steps_at_once(fused, scores):
    """Steps of one version, in a row or apart, add to its gradient; those left out leave no trace."""
    i = inputs()
    version = torch.tensor([1, 0, -1, 0, 3], dtype=torch.int32, device=DEVICE)
    steps, rows = len(version), len(version) * B
    current = torch.randint(0, N, (rows, S), device=DEVICE)
    given = (current, i["number"](rows, S, 16), torch.rand(rows, S, 4, device=DEVICE), i["table"], scores)
    dsituation, nodes, before = (
        i["number"](rows, S, 32 + D),
        i["number"](4 * B, N, D),
        i["number"](4 * B, N, D),
    )
    dsituation[2 * B : 3 * B] = torch.nan  # of the step left out: not known yet
    made = {}
    for ops in (fused, ops_plain):
        grad, dproduct = before.clone(), torch.full((rows, S, 16), 7.0, device=DEVICE)
        ops.situate_backward(grad, dsituation, nodes, *given, dproduct, version)
        assert torch.equal(grad.view(4, -1)[2], before.view(4, -1)[2])  # of which no step is
        assert (dproduct.view(steps, -1)[2] == 7).all()
        made[ops] = (grad, dproduct)
    torch.testing.assert_close(
        made[fused], made[ops_plain], rtol=1e-4, atol=1e-4 if DEVICE == "cpu" else 2e-2
    )


# -- gradients by hand against autograd, in double precision


@pytest.mark.parametrize("scores", ["gated", "dot", "cosine"])
def test_situation_gradient(scores):
    """d(situation)/d(nodes), and the gradient of the table through the products with nodes."""
    i = inputs(torch.float64)
    i["attributes"][0, 0] = 0  # embeddings of no length
    nodes, table = i["nodes"].requires_grad_(), i["table"].requires_grad_()
    here = nodes.gather(1, i["current"][..., None].expand(-1, -1, D))
    group = groups(DEVICE, torch.float64)
    dot = (i["attributes"] * (here @ table.T)) @ group
    contexts = torch.einsum("bsi,ik,id->bskd", i["attributes"], group, table.detach())
    relevance = {
        "gated": torch.sigmoid(dot + i["noise"]) * i["flags"][:, None],
        "dot": dot,
        "cosine": dot / (contexts.norm(dim=-1) * here.norm(dim=-1, keepdim=True)).clamp(min=1e-8),
    }[scores]
    situation = torch.cat([i["attributes"], i["attributes"] * (relevance @ group.T), here], -1)
    rest = (i["current"], i["attributes"], i["flags"], i["noise"])
    given, shapes = (nodes.detach(), *rest, table.detach(), scores), ((B, S, 32 + D), (B, S, 4))
    same, found = run(ops_plain, "situate", given, shapes)
    torch.testing.assert_close((same, found), (situation.detach(), relevance.detach()))

    dsituation = i["number"](B, S, 32 + D)
    want_nodes, want_table = torch.autograd.grad(situation, [nodes, table], dsituation)
    grad, dproduct = (
        torch.zeros_like(nodes).detach(),
        torch.zeros(B, S, 16, device=DEVICE, dtype=torch.float64),
    )
    ops_plain.situate_backward(
        grad, dsituation, nodes.detach(), *rest[:2], found, table.detach(), scores, dproduct
    )
    torch.testing.assert_close(grad, want_nodes)
    torch.testing.assert_close(dproduct.flatten(0, 1).T @ here.flatten(0, 1).detach(), want_table)


@pytest.mark.parametrize("more", [True, False], ids=["two gradients", "one"])
def test_mlp_and_its_gradient(more):
    """Gradients of the sum before the norm and of both matrices follow from what the backward pass leaves."""
    number = inputs(torch.float64)["number"]
    a, delta, dresult = number(B, N, D).requires_grad_(), number(B, N, D), number(B, N, D)
    w12, w3 = number(2 * HIDDEN, D).requires_grad_(), number(D, HIDDEN).requires_grad_()
    total = a + delta
    normalised = torch.nn.functional.rms_norm(total, (D,), eps=1e-5)
    one, two = (normalised @ w12.T).chunk(2, -1)
    want = total + (torch.nn.functional.silu(one) * two) @ w3.T
    weights = (w12.detach(), w3.detach())
    given = (a.detach(), delta, *weights)
    x, inverse, full, half = run(ops_plain, "mlp", given, ((B, N, D), (B, N), (B, N, D), (B, N, D)))
    torch.testing.assert_close((full, half), (want.detach(), want.detach()))
    wanted = torch.autograd.grad(want, [a, w12, w3], (2 if more else 1) * dresult)
    shapes = ((B, N, HIDDEN), (B, N, 2 * HIDDEN), (B, N, D), (B, N, D))
    part = (dresult, dresult if more else None, x, inverse, *weights)
    grad, gated, dhidden, dtotal, same = run(ops_plain, "mlp_backward", part, (dresult, *shapes))
    made = (dtotal, dhidden.flatten(0, 1).T @ x.flatten(0, 1), grad.flatten(0, 1).T @ gated.flatten(0, 1))
    torch.testing.assert_close(made, wanted)
    torch.testing.assert_close(same, dtotal)


def test_likelihood_and_its_gradient():
    """Log-likelihoods of given actions over several steps of the same instances, weighed per trajectory."""
    i = inputs(torch.float64)
    query, keys = (torch.cat([t, t.flip(0)]).requires_grad_() for t in (i["query"], i["keys"]))
    current, legal = (torch.cat([t, t.flip(0)]) for t in (i["current"], i["legal"]))
    action = torch.zeros_like(current)
    near = i["near"].repeat(2, 1, 1).gather(1, current[..., None].expand(-1, -1, N))
    logits = (10 * torch.tanh(query @ keys.mT + near)).masked_fill(~legal, -torch.inf)
    want = logits.log_softmax(-1)[..., 0]
    gradients = torch.autograd.grad((want * i["weight"].repeat(2, 1)).sum(), [query, keys])
    given = (query.detach(), keys.detach(), i["near"], current, legal, 10.0, action, i["weight"])
    dquery, dkeys, likelihood = run(
        ops_plain, "choose_backward", given, ((2 * B, S, D), (2 * B, N, D), (2 * B, S))
    )
    torch.testing.assert_close(likelihood, want.detach())
    torch.testing.assert_close((dquery, dkeys), gradients)


def test_choice_follows_exponential_noise():
    """The action is where the logit plus its noise is largest among the legal ones."""
    i = inputs()
    given = (i["query"], i["keys"], i["near"], i["current"], i["legal"], i["draws"], 10.0)
    (action,) = run(ops_plain, "choose", given, (torch.zeros_like(i["current"]),))
    assert i["legal"].gather(2, action[..., None]).all()
    for b in range(B):
        for s in range(S):
            match = i["keys"][b] @ i["query"][b, s] + i["near"][b, i["current"][b, s]]
            score = (10 * torch.tanh(match) - i["draws"][b, s].log())[i["legal"][b, s]]
            assert score.max() == pytest.approx(
                score[i["legal"][b, s].nonzero().squeeze(1).tolist().index(action[b, s])].item()
            )
