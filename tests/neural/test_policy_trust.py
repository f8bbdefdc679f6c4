"""Weights that are not what they say: code that they name, sizes, headers that are none."""

import hashlib
import json
import struct
import tracemalloc

import pytest
import torch
from typer.testing import CliRunner

from chainroute.cli.app import app
from chainroute.errors import ChainRouteError
from chainroute.neural.policy.config import PolicyConfig
from chainroute.neural.policy.store import load_policy, random_policy, save_policy

SMALL = PolicyConfig(dim=16, heads=2, layers=1, hidden=16)


def made(folder, config=None, header_config=None, head=None):
    """A folder of weights without a tensor, whose checksum fits."""
    config = SMALL.as_dict() if config is None else config
    text = json.dumps(config) if header_config is None else header_config
    meta = {"format": "1", "config": text, "sha256": hashlib.sha256(f"1 {text}".encode()).hexdigest()}
    header = json.dumps({"__metadata__": meta}).encode() if head is None else head
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header)
    (folder / "config.json").write_text(json.dumps({"format": 1, "config": config}))
    return folder


def code_of(folder):
    with pytest.raises(ChainRouteError) as caught:
        load_policy(folder)
    return caught.value.faults[0].code


def test_code_that_weights_name_is_imported_only_on_request(tmp_path, monkeypatch):
    (tmp_path / "pwned.py").write_text("import pathlib; pathlib.Path('ran').touch()\nclass X: pass\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    made(tmp_path, {**SMALL.as_dict(), "encoder": "pwned:X"})
    assert code_of(tmp_path) == "weights-untrusted"
    assert not (tmp_path / "ran").exists()
    answer = CliRunner().invoke(app, ["info", str(tmp_path), "--policy"])
    assert answer.exit_code == 2
    assert "weights-untrusted" in answer.output and "--trust-code" in answer.output  # noqa: PT018
    assert not (tmp_path / "ran").exists()
    with pytest.raises(ChainRouteError, match="unknown-block"):  # it ran, and has no such block
        load_policy(tmp_path, trust_code=True)
    assert (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "change",
    [
        {"layers": 10**9},
        {"dim": 10**6, "heads": 1},
        {"hidden": 10**9},
        {"decoder_depth": 10**9},
        {"dim": 8192},
    ],
)
def test_sizes_are_compared_with_the_tensors_before_memory_is_taken(change, tmp_path):
    made(tmp_path, {**SMALL.as_dict(), **change})
    tracemalloc.start()
    assert code_of(tmp_path) == "weights-mismatch"
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 150e6  # a file is read into one buffer


@pytest.mark.parametrize("text", ["[", "[]", "[" * 100_000, "5", '{"layers": 1e400}', '{"dim": "x"}'])
def test_a_header_that_is_no_configuration(text, tmp_path):
    made(tmp_path, header_config=text)
    assert code_of(tmp_path) in ("weights-corrupt", "wrong-type")


@pytest.mark.parametrize(
    "head", [b"{}", b'{"__metadata__":' + b'{"a":' * 50_000 + b"1" + b"}" * 50_001, b"[]"]
)
def test_a_damaged_header(head, tmp_path):
    made(tmp_path, head=head)
    assert code_of(tmp_path) in ("weights-corrupt", "weights-mismatch")


def test_sound_weights_load_as_before(tmp_path):
    policy = random_policy(SMALL)
    save_policy(policy, tmp_path / "it", {})
    again = load_policy(tmp_path / "it")
    assert all(
        torch.equal(a, b)
        for a, b in zip(policy.state_dict().values(), again.state_dict().values(), strict=True)
    )
