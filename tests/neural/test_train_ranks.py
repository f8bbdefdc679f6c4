"""Several ranks: two gloo processes on the CPU train as one would."""

import os
import shutil
import socket
import subprocess
import sys
from dataclasses import fields, replace

import pytest
import torch
from training import alone, same, tiny
from where import TESTS

from chainroute.errors import ChainRouteError
from chainroute.neural.device import choose_device
from chainroute.neural.env import Mixture, sample
from chainroute.neural.fast.chain import Chain
from chainroute.neural.fast.ops import plain
from chainroute.neural.train import snapshot, train
from chainroute.neural.train.engine import PlainEngine
from chainroute.neural.train.fast import Fast, draw
from chainroute.neural.train.learner import Learner
from chainroute.neural.train.objective import advantages, variant_index
from chainroute.neural.train.ranks import Ranks, joined
from chainroute.neural.train.rollout import sample_trajectories
from chainroute.neural.train.streams import choices, reseed

CONFIG = tiny(policy={"score_noise": 0.0})
CPU = torch.device("cpu")
N, REFINE = 4, [True, False, True, True, False, True, False, True]  # of an update by the fast engine


def work(folder):
    """What each of the two ranks does: the gradient of its half of the first batch, then two updates of the
    run that lies in the folder."""
    with joined(CPU) as ranks:
        learner = Learner.fresh(CONFIG)
        batch, made = drawn(learner, ranks.rank)
        PlainEngine(learner, ranks).gradients(batch, made)
        grads = [p.grad for p in learner.policy.parameters()]
        torch.save((batch.coords, made.cost, grads, learner.means), folder / f"{ranks.rank}.pt")
        learner, fast = by_hand(ranks)
        learner.apply = lambda strange: (torch.zeros(()), strange)  # so that the gradients stay
        fast.run(N, REFINE)
        grads = {name: p.grad for name, p in learner.policy.named_parameters()}
        torch.save((grads, learner.means), folder / f"fast{ranks.rank}.pt")
        train(CONFIG, folder / "run", updates=2, device="cpu", silent=True)


def by_hand(ranks):
    """A learner and the fast engine, which on a CPU runs the same arithmetic without graphs and kernels."""
    learner = Learner.fresh(CONFIG)
    fast = Fast(learner, ranks, torch.float32, plain)
    learner.optimiser.set_rate(1e-2)
    reseed(fast.generator, CONFIG.seed, 0, ranks.rank)
    return learner, fast


def drawn(learner, rank):
    """The half of the first batch that is a rank's, and its trajectories, as its engine draws them."""
    generator = torch.Generator()
    reseed(generator, CONFIG.seed, 0, rank)
    n, refine = choices(CONFIG, 0)
    batch = sample(CONFIG.batch // 2, n, Mixture.of(CONFIG.mixture), generator)
    return batch, sample_trajectories(learner.policy, batch, refine, generator)


def joint(learner):
    """The batches of both ranks as one, with the same actions."""
    batches, made = zip(*(drawn(learner, rank) for rank in range(2)), strict=True)
    batch = together(batches)
    steps = max(len(m.actions) for m in made)
    # A trajectory that has finished stays at its depot, where its last action took it.
    actions = [torch.cat([m.actions, m.actions[-1:].expand(steps - len(m.actions), -1, -1)]) for m in made]
    refine = choices(CONFIG, 0)[1]
    return batch, sample_trajectories(learner.policy, batch, refine, actions=torch.cat(actions, 1))


def together(batches):
    tensors = {
        f.name: torch.cat([getattr(b, f.name) for b in batches])
        for f in fields(batches[0])
        if isinstance(getattr(batches[0], f.name), torch.Tensor)
    }
    return replace(batches[0], **{**tensors, "duration": tensors["distance"]})


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A folder in which one rank made 3 updates, and then two did their work; this process is the first."""
    folder = tmp_path_factory.mktemp("ranks")
    train(CONFIG, folder / "run", updates=3, device="cpu", silent=True)
    shutil.copytree(folder / "run", folder / "before")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    place = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    code = "import sys, pathlib, test_train_ranks as t; t.work(pathlib.Path(sys.argv[1]))"
    path = os.pathsep.join([str(TESTS / "neural"), *sys.path])
    other = subprocess.Popen(
        [sys.executable, "-c", code, str(folder)],
        env={**os.environ, **place, "RANK": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": path},
    )
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**place, "RANK": "0"}.items():
            patch.setenv(name, value)
        work(folder)
    assert other.wait(60) == 0
    return folder


def test_gradients_are_those_of_one_process_with_the_joint_batch(done):
    """Averaged over the ranks, each of which has data of its own; the moving means are common, too."""
    ranks = [torch.load(done / f"{rank}.pt") for rank in range(2)]
    assert not torch.equal(ranks[0][0], ranks[1][0])
    learner = Learner.fresh(CONFIG)
    batch, made = joint(learner)
    assert torch.equal(made.cost, torch.cat([ranks[0][1], ranks[1][1]]))
    PlainEngine(learner, alone()).gradients(batch, made)
    assert any(p.grad.abs().max() > 1e-3 for p in learner.policy.parameters())
    for _, _, grads, means in ranks:
        assert torch.allclose(means, learner.means, equal_nan=True)
        for p, grad in zip(learner.policy.parameters(), grads, strict=True):
            assert torch.allclose(p.grad, grad, atol=1e-6)


def test_the_fast_engine_on_two_ranks_is_that_of_one_process_with_the_joint_batch(done):
    """Both ranks have the gradients and means of a single chain over both draws."""
    learner, _ = by_hand(alone())
    chances = []
    for rank in range(2):
        generator = torch.Generator()
        reseed(generator, CONFIG.seed, 0, rank)
        chances.append(draw(CONFIG.batch // 2, N, len(REFINE), Mixture.of(CONFIG.mixture), generator, N))
    batches, draws, noise = zip(*chances, strict=True)
    batch = together(batches)

    def advantage(cost, finished):
        return advantages(cost, finished, variant_index(batch), learner.means[0], CONFIG.objective)

    chance = (torch.cat(draws, 1), torch.cat(noise, 1))
    Chain(learner.policy, torch.float32, plain).gradients(batch, REFINE, *chance, advantage)
    assert any(p.grad.abs().max() > 1e-3 for p in learner.policy.parameters())
    for rank in range(2):
        grads, means = torch.load(done / f"fast{rank}.pt")
        assert torch.allclose(means, learner.means, equal_nan=True)
        for name, p in learner.policy.named_parameters():
            assert torch.allclose(grads[name], p.grad, atol=1e-6), name


def test_a_group_of_one_rank_talks_to_itself(monkeypatch):
    """torchrun with one process: messages are sent, and change nothing. So one GPU proves what several do."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    place = {"WORLD_SIZE": "1", "RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    for name, value in {**place, "TORCHELASTIC_RUN_ID": "none"}.items():
        monkeypatch.setenv(name, value)
    updated = []
    with joined(CPU) as ranks:
        assert ranks == Ranks(CPU, 0, 1, grouped=True)
        assert torch.distributed.is_initialized()
        for each in (ranks, alone()):
            learner, fast = by_hand(each)
            fast.run(N, REFINE)
            updated.append((learner, fast.stats()))
    assert not torch.distributed.is_initialized()
    assert same(updated[0][0], updated[1][0])
    assert updated[0][1] == updated[1][1]


def load(folder):
    learner = Learner.fresh(CONFIG)
    snapshot.load(folder / snapshot.FULL, learner)
    return learner


def test_runs_go_on_with_another_number_of_ranks(done):
    """A run goes from one rank to two and back; the steps and instances add up, and the two learned something
    else from their own data."""
    two = load(done / "run")
    assert (two.step, two.instances) == (5, 20)
    train(CONFIG, done / "before", updates=2, device="cpu", silent=True)
    assert not same(load(done / "before"), two)
    train(CONFIG, done / "run", updates=1, device="cpu", silent=True)
    assert load(done / "run").step == 6


@pytest.mark.parametrize("name", ["cuda", "cuda:1", "tpu"])
@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")
def test_a_device_that_is_not_there_is_told(name):
    with pytest.raises(ChainRouteError) as error:
        choose_device(name)
    assert [(f.code, f.where) for f in error.value.faults] == [("bad-option", "device")]
