"""Policies as files: the weights, which are whole in themselves, and the card for their readers.

In a folder they are called as the hub's tools expect it, `model.safetensors` and `config.json` (`hub` adds a
README.md), and those that come with the package lie so in `chainroute/weights`. Without a folder of their own
they are `NAME.safetensors` and `NAME.json`; in the folder of a training run, NAME is `weights`.

The header of the weights carries the configuration and a checksum over it and every tensor: one rename puts a
policy in its place, and nothing that is damaged is ever loaded. The card repeats both and adds what its
author wants to say: data, instances seen, gaps, command. A card beside other weights is refused.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors import torch as safetensors
from torch import Tensor

from chainroute.errors import ChainRouteError, Fault, fail
from chainroute.neural.policy.blocks import PARTS, named_blocks
from chainroute.neural.policy.card import card_faults
from chainroute.neural.policy.config import PolicyConfig
from chainroute.neural.policy.policy import Policy
from chainroute.runtime.files import PathLike, decode, load, save

POLICY_FORMAT = 1
MAX_HEADER_BYTES = 1_000_000  # bytes
FEW_NUMBERS = 5_000_000  # of a part of a network, for which there is memory whatever the file has
NAMED_TENSORS = 5  # tensors that a message names before it says "and more"
SHIPPED = Path(__file__).parents[2] / "weights"
DEFAULT = SHIPPED / "all"  # the policy where none is named, whatever the problem
IN_FOLDER = ("model.safetensors", "config.json")

Tensors = Mapping[str, Tensor]


def random_policy(config: PolicyConfig | None = None, seed: int = 0) -> Policy:
    """A policy that has learned nothing, the same for the same seed. Global random state stays as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        return Policy(config).eval()


def describe(policy: Policy) -> dict[str, int]:
    """How many parameters each part has; RGCR, TSNR and the pointer are the decoder.

    The default has 3.39 M + 0.64 M, where the paper prints 3.39 M + 0.66 M, and without ReLD 0.43 M for the
    paper's 0.45 M. Both times one layer from D to D is missing; presumably it is one that earlier code bases
    carry in the decoder without using it.
    """
    parts = {name: sum(p.numel() for p in part.parameters()) for name, part in policy.named_children()}
    total = sum(parts.values())
    return {**parts, "decoder": total - parts["encoder"], "total": total}


def save_policy(
    policy: Policy, path: PathLike, card: Mapping[str, Any], dtype: torch.dtype = torch.float32
) -> None:
    """Writes `path`.safetensors and `path`.json, or into the folder at `path`; weights as float32 or float16.

    The card may hold whatever JSON can; `format`, `config`, `parameters` and `sha256` are filled in here.
    """
    weights, card_file = _files(path)
    tensors = {name: t.detach().to("cpu", dtype).contiguous() for name, t in policy.state_dict().items()}
    _require_finite(tensors, weights)
    config = policy.config.as_dict()
    header = {"format": str(POLICY_FORMAT), "config": json.dumps(config)}
    header["sha256"] = _checksum(header, tensors)
    own = {
        "format": POLICY_FORMAT,
        "config": config,
        "parameters": describe(policy),
        "sha256": [header["sha256"], *_checksum_of(weights)],
    }
    text = json.dumps({**card, **own}, indent=2, allow_nan=False, ensure_ascii=False)
    save(card_file, f"{text}\n".encode())
    save(weights, safetensors.save(dict(tensors), header))


def load_policy(
    path: PathLike = DEFAULT, device: torch.device | str = "cpu", *, trust_code: bool = False
) -> Policy:
    """The policy saved at a path, in float32, ready to decode. Anything odd about its files is an error.

    The path may be a folder, that of a training run included, or the name of a shipped policy. Code that the
    weights name (blocks of one's own) is imported only with `trust_code`.
    """
    card = read_card(path)
    weights, card_file = policy_files(path)
    header, tensors = _unpack(load(weights), weights)
    config = PolicyConfig.from_dict(_parsed(header["config"], weights))
    _require_same_config(config, card["config"], card_file)
    if (named := named_blocks(config)) and not trust_code:
        message = f"asks to import and run {_some(sorted(named))}."
        raise fail("weights-untrusted", message, weights)
    if not any(getattr(config, part) for part in PARTS):
        _require_sizes(config, tensors, weights)
    policy = random_policy(config)
    _require_same_tensors(policy.state_dict(), tensors, weights)
    _require_finite(tensors, weights)
    if "sha256" in card and header["sha256"] not in card["sha256"]:
        raise fail("weights-mismatch", f"is the card of other weights than {weights.name}.", card_file)
    policy.load_state_dict(tensors)
    policy.reembeddings = _reembeddings(card, card_file)
    return policy.to(device)


def _reembeddings(card: Mapping[str, Any], where: Path) -> tuple[float, ...]:
    """How many suit a policy, at any size: those of its card, else as many as it was validated with.

    A chain much longer or shorter than in training loses the policy (docs/training-log.md).
    """
    try:
        if "reembeddings" in card:
            suiting = tuple(map(float, card["reembeddings"]))
        elif "training" in card:
            training = card["training"]
            suiting = (float(training["test_update_rate"]) * max(map(int, training["sizes"])),)
        else:
            return Policy.reembeddings
    except (KeyError, TypeError, ValueError):
        suiting = ()
    if not suiting or not all(0 <= count < math.inf for count in suiting):
        message = (
            "reembeddings must be a list of numbers; without it, training must have a test_update_rate, a "
            "number, and sizes, whole numbers."
        )
        raise fail("weights-corrupt", message, where)
    return suiting


def shipped() -> list[Path]:
    """The folders of the policies that come with the package, by their names."""
    return sorted(card.parent for card in SHIPPED.glob("*/config.json"))


def read_card(path: PathLike) -> dict[str, Any]:
    """What the card of a policy says."""
    files = policy_files(path)
    missing = [f for f in files if not os.path.exists(f)]
    if missing:
        raise ChainRouteError(Fault("weights-missing", "there is no such file.", f) for f in missing)
    where = files[1]
    text = decode(load(where), str(where))
    try:
        card = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise fail("weights-corrupt", "is not JSON.", where, cause=str(error)) from None
    if not isinstance(card, dict) or not isinstance(card.get("config"), dict):
        raise fail("weights-corrupt", "is not the card of a policy: it has no config.", where)
    if card.get("format") != POLICY_FORMAT:
        message = f"has format {card.get('format')!r}; this version reads {POLICY_FORMAT}."
        raise fail("weights-mismatch", message, where)
    if wrong := [*card_faults(card, where)]:
        raise ChainRouteError(wrong)
    return card


def _files(path: PathLike) -> tuple[Path, Path]:
    """The weights and the card; `path` is their folder, their common name, or one of the two."""
    if os.path.isdir(path):
        return Path(path) / IN_FOLDER[0], Path(path) / IN_FOLDER[1]
    if os.path.basename(path) in IN_FOLDER:
        return _files(Path(path).parent)
    name = str(path).removesuffix(".safetensors").removesuffix(".json")
    return Path(f"{name}.safetensors"), Path(f"{name}.json")


def policy_files(path: PathLike) -> tuple[Path, Path]:
    """The same, to be read: also of a training run by its folder, and of a shipped policy by its name."""
    beside = Path(f"{os.fspath(path)}.safetensors")
    if os.path.exists(beside):  # a name that is too long is no file
        return beside, beside.with_suffix(".json")
    found = any(map(os.path.exists, _files(path)))
    if os.path.isdir(path):
        return _files(path if found else Path(path) / "weights")
    named = [folder for folder in shipped() if folder.name == str(path)]
    return _files(named[0] if named and not found else path)


def _checksum(header: Mapping[str, str], tensors: Tensors) -> str:
    """The checksum of the configuration and of every tensor with its name, kind and shape."""
    digest = hashlib.sha256(f"{header['format']} {header['config']}".encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.flatten().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _checksum_of(weights: Path) -> list[str]:
    """The checksum of weights that are to be replaced: should they stay, the new card is still theirs."""
    with suppress(OSError, ValueError, KeyError, TypeError), open(weights, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        return [str(json.loads(file.read(min(length, MAX_HEADER_BYTES)))["__metadata__"]["sha256"])]
    return []


def _unpack(data: bytes, where: Path) -> tuple[dict[str, str], dict[str, Tensor]]:
    """The header and the tensors of a weights file that is what was saved."""
    try:
        tensors = safetensors.load(data)
    except SafetensorError as error:
        raise fail("weights-corrupt", "is damaged or cut short.", where, cause=str(error)) from None
    length = int.from_bytes(data[:8], "little")
    try:
        header = json.loads(data[8 : 8 + length]).get("__metadata__") or {}
    except (ValueError, RecursionError, AttributeError) as error:
        raise fail("weights-corrupt", "is damaged: its header is no JSON.", where, cause=str(error)) from None
    if not {"format", "config", "sha256"} <= header.keys():
        raise fail("weights-mismatch", "was not written by ChainRoute: its header has no config.", where)
    if header["sha256"] != _checksum(header, tensors):
        raise fail("weights-corrupt", "is damaged: its checksum does not fit its content.", where)
    if header["format"] != str(POLICY_FORMAT):
        message = f"has format {header['format']}; this version reads {POLICY_FORMAT}."
        raise fail("weights-mismatch", message, where)
    return header, tensors


def _require_same_config(config: PolicyConfig, card: Mapping[str, Any], where: Path) -> None:
    ours, theirs = config.as_dict(), PolicyConfig.from_dict(dict(card)).as_dict()
    faults = [
        Fault(
            "weights-mismatch",
            f"config.{key} is {theirs[key]!r} here and {ours[key]!r} in the weights.",
            where,
        )
        for key in ours
        if ours[key] != theirs[key]
    ]
    if faults:
        raise ChainRouteError(faults)


def _parsed(text: str, where: Path) -> dict[str, Any]:
    """The configuration in the header of weights."""
    try:
        config = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise fail(
            "weights-corrupt", "is damaged: its config is not JSON.", where, cause=str(error)
        ) from None
    if not isinstance(config, dict):
        raise fail("weights-corrupt", "is damaged: its config is no object.", where)
    return config


def _require_sizes(config: PolicyConfig, tensors: Tensors, where: Path) -> None:
    """Refuses sizes for which the file has too few numbers, before a network of these sizes is made."""
    there = sum(tensor.numel() for tensor in tensors.values())
    square = config.dim**2
    least = {"layers": config.layers * square, "decoder_depth": config.decoder_depth * square}
    least |= {"hidden": config.hidden * config.dim}
    faults = [
        Fault("weights-mismatch", f"config.{key} needs {needed:,} numbers; there are {there:,}.", where)
        for key, needed in least.items()
        if needed > max(there, FEW_NUMBERS)
    ]
    if faults:
        raise ChainRouteError(faults)


def _require_same_tensors(expected: Tensors, tensors: Tensors, where: Path) -> None:
    missing, unknown = expected.keys() - tensors.keys(), tensors.keys() - expected.keys()
    shapes = [
        f"{name} {tuple(tensors[name].shape)} instead of {tuple(expected[name].shape)}"
        for name in sorted(expected.keys() & tensors.keys())
        if tensors[name].shape != expected[name].shape
    ]
    kinds = [
        f"{name} {t.dtype}" for name, t in tensors.items() if t.dtype not in (torch.float32, torch.float16)
    ]
    found = {
        "tensors are missing": sorted(missing),
        "tensors are unknown": sorted(unknown),
        "tensors have another shape than the config asks for": shapes,
        "tensors are neither float32 nor float16": kinds,
    }
    faults = [
        Fault("weights-mismatch", f"{len(names)} {what}: {_some(names)}.", where)
        for what, names in found.items()
        if names
    ]
    if faults:
        raise ChainRouteError(faults)


def _require_finite(tensors: Tensors, where: Path) -> None:
    bad = [name for name, tensor in tensors.items() if not tensor.isfinite().all()]
    if bad:
        raise fail("weights-not-finite", f"{len(bad)} tensors hold NaN or infinity: {_some(bad)}.", where)


def _some(names: list[str]) -> str:
    return ", ".join(names[:NAMED_TENSORS]) + (" and more" if len(names) > NAMED_TENSORS else "")
