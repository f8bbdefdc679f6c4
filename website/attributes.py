"""Writes docs/reference/attributes.md from the declarations: python -m website.attributes"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from chainroute.problem import Problem, VehicleType
from chainroute.problem.attributes import Attribute, attributes
from chainroute.runtime.files import encode, save

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "attributes.md"
INTRODUCTION = """# Attributes

What a problem, its customers and its vehicle types may have, made by `python -m website.attributes` from the
declarations in the code. `key` is the name in [JSON](../formats.md), `column` the heading in a
[spreadsheet](../spreadsheets.md), `field` the name in Python where it differs. The guide to their meaning is
[modelling](../modelling.md).
"""


def page() -> str:
    tables = [
        ("Of the problem, or of all its vehicles", attributes(Problem, "problem")),
        ("Of a customer", attributes(Problem, "customer")),
        ("Of a vehicle type", attributes(VehicleType)),
    ]
    return INTRODUCTION + "".join(f"\n## {title}\n\n{_table(those)}" for title, those in tables)


def _table(those: Sequence[Attribute]) -> str:
    """One row for each attribute; columns that are empty throughout are skipped."""
    rows = [
        {
            "key": f"`{a.key}`",
            "field": f"`{a.name}`" if a.name != a.key else "",
            "column": ", ".join(f"`{column.heading}`" for column in a.every_column),
            "kind": a.kind,
            "unit": a.unit,
            "default": _default(a),
            "meaning": a.meaning,
            "beyond the 48 variants": a.beyond,
        }
        for a in those
    ]
    names = [name for name in rows[0] if any(row[name] for row in rows)]
    lines = [names, ["---"] * len(names), *([str(row[name]) for name in names] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _default(a: Attribute) -> str:
    value = a.missing if a.of == "customer" else a.default
    if value is None or value == math.inf or value in ((), "", frozenset()):
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    save(PAGE, encode(page()))
