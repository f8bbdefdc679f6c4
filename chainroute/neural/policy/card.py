"""What the card of a policy may say, field by field: cards are written and changed by hand, too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from chainroute.errors import Fault

SUITES = {"seen": "The 16 variants of the paper", "zero-shot": "The 32 other variants"}


def card_faults(card: Mapping[str, Any], where: Path) -> Iterator[Fault]:
    """A fault for each field that is there and of a wrong kind."""
    for field, (is_right, kind) in KINDS.items():
        if field in card and not is_right(card[field]):
            yield Fault(
                "weights-corrupt", f"{field} must be {kind}.", where, f"Give {kind}, or leave {field} out."
            )


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return _is_whole(value) or isinstance(value, float)


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _is_checksum(value: object) -> bool:
    return isinstance(value, str) or _are_texts(value)


def _is_size(value: object) -> bool:
    return isinstance(value, dict) and all(_is_whole(value.get(part)) for part in ("encoder", "total"))


def _is_origin(value: object) -> bool:
    return isinstance(value, dict) and "name" in value and _is_whole(value.get("instances"))


def _is_training(value: object) -> bool:
    kept = value or {}
    if not isinstance(kept, dict) or not all(
        isinstance(kept.get(f, []), list) for f in ("sizes", "variants")
    ):
        return False
    return all(_is_number(kept.get(f, 0)) for f in ("update_rate", "test_update_rate"))


def _is_choice(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("variant"), str) and _is_number(value.get("cost"))


def _are_results(value: object) -> bool:
    return isinstance(value, list) and all(map(_is_result, value))


def _is_result(value: object) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("gap_percent"), dict):
        return False
    suite, customers = value.get("suite"), value.get("customers", "")
    known = isinstance(suite, str) and (customers is None or (_is_whole(customers) and suite in SUITES))
    return known and all(map(_is_number, [*value["gap_percent"].values(), value.get("mean_gap_percent", 0)]))


# By field: whether a value is right, and what it must be, in words.
KINDS = {
    "sha256": (_is_checksum, "a checksum or a list of them, as texts"),
    "parameters": (_is_size, "an object with encoder and total, whole numbers"),
    "instances": (_is_whole, "a whole number"),
    "updates": (_is_whole, "a whole number"),
    "step": (_is_whole, "a whole number"),
    "gpu_seconds": (_is_number, "a number"),
    "begun_with": (_is_origin, "an object with name and instances, a whole number"),
    "training": (
        _is_training,
        "an object; its sizes and variants, if any, are lists, its update_rate and test_update_rate numbers",
    ),
    "selected": (_is_choice, "an object with variant, a text, and cost, a number"),
    "results": (
        _are_results,
        f"a list of objects with suite ({' or '.join(SUITES)}; any where customers is null), customers, a "
        "whole number, and gap_percent, an object of numbers; mean_gap_percent, if any, is a number",
    ),
}
