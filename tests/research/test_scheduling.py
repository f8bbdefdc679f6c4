"""The flexible flow shop: judge, lists, process, exact program, and the chain of contexts on it."""

import itertools
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save_file

from chainroute.errors import ChainRouteError
from chainroute.neural.policy import PolicyConfig
from chainroute.research.scheduling import FlowShop, Schedule, check, dispatch, generate, learning
from chainroute.research.scheduling.__main__ import main
from chainroute.research.scheduling.learning import Training, load, save, solve, train, trajectories
from chainroute.research.scheduling.policy import JobPolicy
from chainroute.research.scheduling.process import begin, mask, step
from chainroute.research.scheduling.shop import list_schedule

SMALL = PolicyConfig(dim=16, heads=2, layers=1, hidden=16)
TRAINING = Training(2, 2, 5, 16, updates=60, warmup=5, cooldown=30, learning_rate=1e-2, policy=SMALL)

# Two stages of two machines, two jobs.
SHOP = FlowShop(np.array([[[2, 3], [4, 1]], [[3, 3], [2, 5]]]))


def test_a_list_by_hand():
    """Job 0 takes machine 0 until 2; job 1 machine 1 until 1, then machine 0 of stage 2 until 4; job 0 then
    machine 1 from 2 to 4."""
    made = dispatch(SHOP, [0, 1, 1, 0])
    assert made.machine.tolist() == [[0, 1], [1, 0]]
    assert made.start.tolist() == [[0, 0], [2, 1]]
    assert check(SHOP, made).makespan == 4
    assert check(SHOP, made).feasible


@pytest.mark.parametrize(
    ("machine", "start", "words"),
    [
        ([[0, 2], [1, 0]], [[0, 0], [2, 1]], "on machine 2 of stage 0"),
        ([[0, 1], [1, 0]], [[0, 0], [1, 1]], "job 0 begins stage 1 at 1"),
        ([[0, 0], [1, 0]], [[0, 1], [2, 4]], "machine 0 of stage 0 begins job 1 at 1"),
        ([[0, 1], [1, 0]], [[-1, 0], [2, 1]], "job 0 begins stage 0 at -1"),
    ],
)
def test_the_judge_names_every_broken_rule(machine, start, words):
    verdict = check(SHOP, Schedule(np.array(machine), np.array(start)))
    assert any(words in violation for violation in verdict.violations)


@pytest.mark.parametrize("times", [np.ones((2, 2)), np.zeros((1, 1, 1), int), np.ones((1, 1, 1))])
def test_a_shop_that_is_none_is_refused(times):
    """Without jobs, with no time at all, with fractions."""
    with pytest.raises(ChainRouteError):
        FlowShop(times)


@given(st.integers(0, 10_000))
def test_every_list_is_feasible_and_the_process_agrees(seed):
    """Trajectories in tensors end at the makespans of the schedules that their lists make."""
    rng = np.random.default_rng(seed)
    stages, machines, jobs = rng.integers(1, 5, 3)
    (shop,) = generate(stages, machines, jobs, 1, seed)
    times = torch.from_numpy(shop.times)[None].float()
    state, lists = begin(times), [[j] for j in range(jobs)]
    for _ in range(stages * jobs - 1):
        legal = mask(times, state)[0].numpy()
        chosen = [int(rng.choice(np.flatnonzero(row))) for row in legal]
        for one, job in zip(lists, chosen, strict=True):
            one.append(job)
        state = step(times, state, torch.tensor([chosen]))
    assert not mask(times, state).any()
    for one, makespan in zip(lists, state.makespan[0].tolist(), strict=True):
        verdict = check(shop, dispatch(shop, one))
        assert verdict.feasible
        assert verdict.makespan == makespan


def shortest(shop):
    """Over all machines and orders at every stage, each operation as early as it can be."""
    stages, machines, jobs = shop.times.shape
    one_stage = list(
        itertools.product(
            itertools.product(range(machines), repeat=jobs), itertools.permutations(range(jobs))
        )
    )
    best = np.inf
    for choice in itertools.product(one_stage, repeat=stages):
        ready = [0] * jobs
        for s, (machine, order) in enumerate(choice):
            free = [0] * machines
            for j in order:
                free[machine[j]] = ready[j] = max(free[machine[j]], ready[j]) + shop.times[s, machine[j], j]
        best = min(best, max(ready))
    return best


def test_the_exact_program_finds_the_shortest_schedule():
    pytest.importorskip("scipy", reason="needs chainroute[evaluate]")
    from chainroute.research.scheduling.exact import optimum

    for shop in generate(2, 2, 3, 2, seed=1):
        verdict = check(shop, optimum(shop))
        assert verdict.feasible
        assert verdict.makespan == shortest(shop) <= check(shop, list_schedule(shop)).makespan
    with pytest.raises(ChainRouteError, match="no-solution"):
        optimum(generate(3, 3, 12, 1, seed=1)[0], seconds=0.01)


def test_the_chain_goes_from_step_to_step():
    """Re-embedded jobs are what the next step starts from; without re-embedding they stay."""
    policy = JobPolicy(SMALL, 2, 2)
    times = torch.from_numpy(np.stack([shop.times for shop in generate(2, 2, 4, 3, 1)])).float()
    nodes, state = policy.encode(times), begin(times)
    _, same = policy.step(times, nodes, state, mask(times, state), refine=False)
    _, other = policy.step(times, nodes, state, mask(times, state), refine=True)
    assert torch.equal(same, nodes)
    assert not torch.allclose(other, nodes)


def test_what_all_jobs_have_in_common_changes_no_choice():
    """However much it counts that jobs have waited, those that have all waited from the start are told apart
    as before. Clipped by tanh their logits would be the same, with no gradient: training ended so."""
    policy = JobPolicy(SMALL, 2, 2)
    times = torch.from_numpy(np.stack([shop.times for shop in generate(2, 2, 6, 3, 1)])).float()
    nodes, state = policy.encode(times), begin(times)

    def between():
        logits, _ = policy.step(times, nodes, state, mask(times, state), refine=True)
        return logits[:, 0, 1:] - logits[:, 0, 1:2]  # of trajectories that began with job 0

    before = between().detach()
    with torch.no_grad():
        policy.urgency.bias[0] += 50  # of how long before the makespan a job is ready
    assert before.std() > 0.01
    assert torch.allclose(between(), before, atol=1e-3)


def test_it_learns_is_kept_and_is_judged(tmp_path):
    """Sampled makespans fall; saved and loaded, the policy makes the same feasible schedules."""
    told = []
    policy = train(TRAINING, report=told.append)
    fresh = train(replace(TRAINING, updates=0))
    shops = generate(2, 2, 5, 200, seed=5)
    times = torch.from_numpy(np.stack([shop.times for shop in shops])).float()
    sampled = [
        trajectories(p, times, [True, False] * 4 + [True], torch.Generator().manual_seed(1))
        .makespan.mean()
        .item()
        for p in (fresh, policy)
    ]
    assert sampled[1] < 0.97 * sampled[0]
    assert {"update", "loss", "makespan", "seconds", "grad_norm"} == told[-1].keys()
    save(policy, TRAINING, tmp_path / "w.safetensors")
    again, config = load(tmp_path / "w.safetensors")
    assert config == TRAINING
    ours, theirs = solve(policy, shops[:20], 0.5), solve(again, shops[:20], 0.5)
    for shop, one, other in zip(shops, ours, theirs, strict=False):
        assert check(shop, one).feasible
        assert np.array_equal(one.start, other.start)


def test_files_that_hold_no_policy_are_named(tmp_path):
    """One that is not there, one that is no weights, and one with weights of something else."""
    other = tmp_path / "other.safetensors"
    save_file({"x": torch.zeros(1)}, other)
    (tmp_path / "text").write_text("no weights")
    for name, code in (("absent", "missing"), ("text", "corrupt"), (other.name, "corrupt")):
        with pytest.raises(ChainRouteError) as error:
            main(["evaluate", str(tmp_path / name)])
        (fault,) = error.value.faults
        assert fault.code == f"weights-{code}"
        assert name in str(error.value)


def test_a_schedule_ends_when_its_trajectory_did(monkeypatch):
    """Also where a job is done at the same time on two machines, which decides what others find free: times
    in another unit than the shop's had such ties decided by rounding."""
    seen = []

    def watched(*given):
        seen.append(trajectories(*given))
        return seen[-1]

    monkeypatch.setattr(learning, "trajectories", watched)
    shops = generate(3, 4, 12, 20, seed=2)
    made = solve(JobPolicy(SMALL, 3, 4), shops, 0.5)
    makespans = [check(shop, schedule).makespan for shop, schedule in zip(shops, made, strict=True)]
    assert makespans == seen[0].makespan.min(1).values.tolist()


def test_the_rate_falls_before_the_time_is_up(monkeypatch):
    """An update takes a second by this clock, and the cool-down is the last 4 of 10."""
    rates, clock = [], itertools.count()
    monkeypatch.setattr(learning, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    monkeypatch.setattr(learning.Optimiser, "set_rate", lambda self, rate: rates.append(rate))
    train(replace(TRAINING, updates=1000, warmup=0, cooldown=400, learning_rate=1.0), seconds=10)
    assert rates == pytest.approx([1, 1, 1, 1, 1, 1, 0.75, 0.5, 0.25, 0])


def test_the_command_trains_compares_and_draws(tmp_path, capsys):
    pytest.importorskip("scipy", reason="needs chainroute[evaluate]")
    pytest.importorskip("matplotlib", reason="needs chainroute[plot]")
    weights, picture = str(tmp_path / "a" / "w.safetensors"), tmp_path / "gantt.png"
    shape = [
        "--stages",
        "2",
        "--machines",
        "2",
        "--jobs",
        "3",
        "--batch",
        "2",
        "--updates",
        "2",
        "--dim",
        "16",
    ]
    assert main(["train", weights, *shape]) == 0
    options = ["--count", "2", "--exact", "--update-rate", "0", "1", "--plot", str(picture)]
    assert main(["evaluate", weights, *options]) == 0
    out = capsys.readouterr().out
    means = [
        float(line.split("makespan ")[1].split()[0]) for line in out.splitlines() if "mean makespan" in line
    ]
    assert len(means) == 4
    assert min(means) == means[-1]  # the optimum
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    "arguments",
    [
        ["train", "--jobs", "0"],
        ["train", "--updates", "-1"],
        ["train", "--update-rate", "3"],
        ["evaluate", "--count", "0"],
        ["evaluate", "--update-rate", "nan"],
        ["evaluate", "--plot", "shop.xyz"],
    ],
)
def test_an_option_out_of_its_range_is_told_before_anything_is_done(arguments, tmp_path, capsys):
    verb, option, value = arguments
    with pytest.raises(SystemExit) as ended:
        main([verb, str(tmp_path / "sub" / "shop.safetensors"), option, value])
    assert ended.value.code == 2
    told = capsys.readouterr().err
    assert f"argument {option}: " in told
    assert f"'{value}'" in told
    assert not (tmp_path / "sub").exists()
