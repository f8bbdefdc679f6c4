"""The declared attributes as a module of the page, from which its tables and documents follow."""

from __future__ import annotations

import json
import math
from typing import Any

from chainroute.problem import EXTRAS, Problem, VehicleType
from chainroute.problem.attributes import Attribute, Kind, attributes


def module() -> bytes:
    """JavaScript that exports the attributes of customers and of vehicle types, and what lies beyond the 48
    variants in its order."""
    exports = {
        "CUSTOMER": [_described(a) for a in attributes(Problem, "customer")],
        "VEHICLE": [_described(a) for a in attributes(VehicleType)],
        "BEYOND": list(EXTRAS),
    }
    lines = [f"export const {name} = {json.dumps(value)};" for name, value in exports.items()]
    return "\n".join(lines).encode()


def _described(a: Attribute) -> dict[str, Any]:
    """An attribute, in terms of the documents that the page edits."""
    titles = [column.heading[:1].upper() + column.heading[1:] for column in a.columns]
    shared = a.of == "vehicle" and a.default is None  # then the problem's own value counts
    return {
        "key": a.key,
        "kind": a.kind,
        "unit": a.unit,
        "titles": titles or [a.key.replace("_", " ").capitalize()],
        "usual": _usual(a),
        "negated": any(column.negated for column in a.columns),
        "hint": "" if shared else "must" if _usual(a) is None else str(_usual(a) or ""),
        "beyond": a.beyond,
    }


def _usual(a: Attribute) -> Any:
    """The value without which nothing is written."""
    if a.kind in (Kind.TEXTS, Kind.DEPOTS, Kind.WINDOWS):
        return []
    value = a.missing if a.of == "customer" else a.default
    return None if value == math.inf or value == "" else value
