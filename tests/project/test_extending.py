"""What docs/extending.md promises: a block of the network by config and module alone, trained and decoded."""

import re
import textwrap

import pytest
import torch
from networks import COMBINED, SWITCHED
from problems import invent
from training import tiny
from where import DOCS

from chainroute import VARIANTS
from chainroute.errors import ChainRouteError
from chainroute.neural import policy_worker
from chainroute.neural.decode import DecodeOptions, attempt
from chainroute.neural.decode.engine import PlainSteps, begin_chain, engine, in_half
from chainroute.neural.env import begin, from_problems, mask, step
from chainroute.neural.fast import support
from chainroute.neural.fast.fold import Folded
from chainroute.neural.policy import Policy, PolicyConfig
from chainroute.neural.policy.store import load_policy, random_policy, save_policy
from chainroute.neural.train import ledger, read_recipe, train
from chainroute.plan.check import check
from chainroute.plan.solution import Solution
from chainroute.research.evaluate.policy_solver import Neural
from chainroute.runtime.deadline import NEVER
from chainroute.solve import Effort

PAGE = DOCS / "extending.md"
BLOCKS = {"encoder": "FlatEncoder", "rgcr": "SumRGCR", "tsnr": "MeanTSNR", "pointer": "DotPointer"}


@pytest.mark.parametrize("part", BLOCKS)
def test_a_block_of_ones_own_trains_and_decodes(part, tmp_path, capsys):
    """Two updates move its weights, the run's policy is loaded from its files, and the judge accepts what it
    decodes of all 48 variants. Whether it runs plainly, and why, stands in the output, the ledger and the
    settings of an evaluation; an encoder of one's own is folded like ours."""
    name = f"toys:{BLOCKS[part]}"
    config = tiny(policy={part: name}, variants=("CVRP", "MDOVRPBLTW"), learning_rate=1e-2)
    train(config, tmp_path, updates=2, device="cpu")
    told = capsys.readouterr().err
    policy = load_policy(tmp_path, trust_code=True)
    assert type(getattr(policy, part)).__name__ == BLOCKS[part]
    fresh = random_policy(config.policy, config.seed)
    moved = [
        not torch.equal(a.half(), b.half())
        for a, b in zip(getattr(policy, part).parameters(), getattr(fresh, part).parameters(), strict=True)
    ]
    assert all(moved)

    problems = [invent(v, i, 3 + i % 4) for i, v in enumerate(VARIANTS)]
    for problem, found in zip(
        problems, attempt(policy, problems, DecodeOptions(starts=2, augmentations=1)), strict=True
    ):
        assert isinstance(found, Solution)
        assert check(problem, found).feasible

    (row,) = ledger.read(tmp_path / ledger.LOG)
    assert "engine: plain (the fast engine needs a GPU)" in told
    assert row["engine"] == "plain (the fast engine needs a GPU)"
    reason = f" (the fast engine has no version of toys.{BLOCKS[part]}, the network's {part})"
    expected = "folded, float32" if part == "encoder" else f"plain, float32{reason}"
    assert engine(policy) == expected
    assert Neural(policy, DecodeOptions()).settings()["engine"] == expected


def test_the_documented_example_trains_and_solves(tmp_path, monkeypatch):
    """The module and the recipe of the page as they stand there, but for two updates only."""
    text = textwrap.dedent(PAGE.read_text())
    for name, language in (("mean.py", "python"), ("mean.toml", "toml")):
        block = text.split(f"```{language}\n")[1].split("```")[0]
        (tmp_path / name).write_text(textwrap.dedent(block))
    monkeypatch.syspath_prepend(tmp_path)
    train(read_recipe(tmp_path / "mean.toml"), tmp_path / "run", updates=2, device="cpu", silent=True)
    policy = load_policy(tmp_path / "run", trust_code=True)
    problem = invent(VARIANTS[0], 1, 8)
    (found,) = attempt(policy, [problem])
    assert check(problem, found).feasible
    assert f"decoding: {engine(policy)}\n" in PAGE.read_text()


def test_the_page_names_files_and_names_that_exist():
    """Every path, and every capital name and function that is said to be in one."""
    text, root = PAGE.read_text(), PAGE.parents[1]
    paths = re.findall(r"`((?:chainroute|tests|docs|policy)/[\w./]*|[a-z]+\.(?:toml|txt))`", text)
    assert len(paths) > 30
    for path in paths:
        assert path == "mean.toml" or (root / path).exists() or (root / "chainroute" / path).exists(), path
    names = {
        "chainroute/neural/policy/columns.py": ("FEATURES", "ATTRIBUTES", "OWN"),
        "chainroute/neural/policy/policy.py": ("attributes",),
        "chainroute/neural/fast/fold.py": ("Weights", "fold", "Folded", "situate"),
        "chainroute/problem/variants.py": ("VARIANTS", "place", "FLAGS"),
        "chainroute/neural/train/objective.py": ("Objective", "advantages"),
        "chainroute/search/solvers/table.py": ("SOLVERS",),
        "chainroute/research/evaluate/classical.py": ("PACKAGES",),
        "chainroute/formats/__init__.py": ("FORMATS",),
    }
    for path, inside in names.items():
        code = (root / path).read_text()
        for name in inside:
            assert f"`{name}`" in text
            assert re.search(rf"^\s*(def |class )?{name}\b", code, re.MULTILINE), (path, name)


def test_folded_and_plain_chains_are_interchangeable():
    """The same logits, step by step, of a network with an encoder of one's own."""
    policy = random_policy(PolicyConfig(dim=16, heads=2, encoder="toys:FlatEncoder")).double()
    batch = from_problems([invent(v, i, 4 + i % 3) for i, v in enumerate(VARIANTS[::6])])
    plain, folded, state = PlainSteps(policy, batch, False), begin_chain(policy, batch), begin(batch)
    assert isinstance(folded, Folded)
    with torch.no_grad():
        for j in range(8):
            legal = mask(batch, state)
            logits = plain.step(state, legal, j % 3 > 0)
            torch.testing.assert_close(folded.step(state, legal, j % 3 > 0), logits)
            state = step(batch, state, logits.argmax(-1))


@pytest.mark.parametrize("name", ["toys", "toys:Nothing", "nowhere:Toy", "toys:NoModule", ":", "toys:torch"])
def test_a_block_that_is_not_there_is_told(name):
    with pytest.raises(ChainRouteError) as error:
        random_policy(PolicyConfig(tsnr=name))
    assert [(f.code, f.where) for f in error.value.faults] == [("unknown-block", "config.tsnr")]


@pytest.mark.parametrize("name", ["BrokenMaking", "BrokenAnswer", "BrokenCall"])
def test_a_block_that_fails_is_told_by_its_name(name, tmp_path):
    """It cannot be made, gives back something else, or takes other arguments: that is no fault of ours."""
    with pytest.raises(ChainRouteError) as error:
        train(tiny(policy={"tsnr": f"toys:{name}"}), tmp_path, updates=1, device="cpu", silent=True)
    (fault,) = error.value.faults
    assert (fault.code, fault.where) == ("block-failed", "config.tsnr")
    assert f"toys:{name}" in fault.message
    assert fault.cause


def test_the_fast_version_follows_every_field_of_the_config():
    """A field or a value that somebody adds is not passed over: such a network runs plainly, until the list
    has it too."""
    policy = random_policy(PolicyConfig(dim=16, heads=1))
    assert support.obstacle(policy) == ""
    assert set(support.KNOWN) == set(policy.config.as_dict())
    for switches in [*SWITCHED, *COMBINED]:
        assert support.obstacle(random_policy(PolicyConfig(dim=16, heads=1, layers=1, **switches))) == ""
    object.__setattr__(policy.config, "scores", "entropy")
    assert support.obstacle(policy) == "does not know scores = 'entropy'"


@pytest.mark.parametrize(
    ("config", "customers", "reason"),
    [
        (PolicyConfig(), 50, ""),
        (PolicyConfig(dim=96, heads=6), 50, "power of two"),
        (PolicyConfig(dim=128, heads=16), 50, "heads of 16, 32, 64, 128, not of 8"),
        (PolicyConfig(dim=512, heads=8), 50, "a dim of 256 at most, not 512"),
        (PolicyConfig(hidden=200), 50, "a multiple of 16, not 200"),
        (PolicyConfig(), 5000, "at most 510 customers, not 5000"),
    ],
)
def test_what_kernels_cannot_hold_is_told(config, customers, reason):
    pytest.importorskip("triton")
    assert reason in support.kernel_obstacle(config, customers)
    assert bool(reason) is bool(support.kernel_obstacle(config, customers))


@pytest.fixture
def gpu(monkeypatch):
    """A GPU that is pretended: no kernel runs on it."""
    monkeypatch.setattr(Policy, "device", torch.device("cuda"))
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "Old One")
    support.failure.cache_clear()
    yield torch.device("cuda")
    support.failure.cache_clear()


def test_what_kernels_need_besides_a_gpu_is_told(monkeypatch, gpu):
    pytest.importorskip("triton")
    assert support.device_obstacle(gpu) == ""
    monkeypatch.setattr(support.shutil, "which", lambda name: None)
    assert "C compiler" in support.device_obstacle(gpu)
    monkeypatch.setattr(support.importlib.util, "find_spec", lambda name: None)
    assert "needs Triton" in support.device_obstacle(gpu)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (7, 5))
    assert "Old One has 7.5" in support.device_obstacle(gpu)


def test_a_gpu_whose_kernels_do_not_start_decodes_in_single_precision_and_says_why(gpu):
    pytest.importorskip("triton")
    policy = random_policy(PolicyConfig(dim=16, heads=1, layers=1, hidden=16))
    assert not in_half(policy, DecodeOptions())
    assert engine(policy).startswith("folded, float32 (the fast engine failed to start a kernel, ")


def test_a_gpu_decodes_in_half_precision_unless_asked_otherwise(monkeypatch, gpu):
    monkeypatch.setattr("chainroute.neural.decode.engine.failure", lambda device: "")
    policy = random_policy(PolicyConfig(dim=16, heads=1, layers=1, hidden=16))
    assert in_half(policy, DecodeOptions())
    assert engine(policy) == "folded, bfloat16, fused kernels"
    assert engine(policy, DecodeOptions(full_precision=True)) == "folded, float32"


def test_solving_says_that_the_policy_runs_plainly(tmp_path):
    """The worker reports it before any routes, once for each size; `solve` has it among its notes."""
    policy = random_policy(PolicyConfig(dim=16, heads=1, layers=1, hidden=16, tsnr="toys:MeanTSNR"))
    save_policy(policy, tmp_path / "toy", {})
    problem = invent(VARIANTS[0], 1, 5)
    reports = []
    effort = Effort(weights=str(tmp_path / "toy"), polish=False, device="cpu", trust_code=True)
    policy_worker.decode([problem, problem], effort, 0, NEVER, 1, reports.append)
    index, note = reports[0]
    assert (index, note) == (
        0,
        "The policy is decoded plainly: the fast engine has no version of toys.MeanTSNR, the network's tsnr.",
    )
    for index, routes in reports[1:]:
        assert index in (0, 1)
        assert check(problem, Solution.of(problem, routes)).feasible
