"""What problems may have: each attribute is declared once, where its field stands.

    skills: Annotated[Sequence[Collection[str]], Attribute("customer", Kind.TEXTS, "...")] = ()

`attributes(Problem, "customer")` and `attributes(VehicleType)` read the declarations. From them follow
validation, JSON and its schema, spreadsheets, `info`, the page's columns, the tables of the guides, and what
lies beyond the 48 variants. docs/extending.md lists what a declaration cannot say: the checker's rule, and
one translation per solver.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from enum import StrEnum
from functools import cache
from types import MappingProxyType
from typing import Any, Literal, get_type_hints

import numpy as np

Of = Literal["problem", "customer", "vehicle"]
Unit = Literal["", "load", "length", "time", "speed", "money", "money per length", "money per time"]


class Kind(StrEnum):
    TEXT = "text"
    NUMBER = "number"  # zero or more
    POSITIVE = "positive number"
    WHOLE = "whole number"  # one or more
    FLAG = "yes or no"
    CHOICE = "choice"
    TEXTS = "texts"
    DEPOT = "depot"
    DEPOTS = "depots"
    WINDOW = "window"  # opening and closing
    WINDOWS = "windows"
    MATRIX = "matrix"


class Beyond(StrEnum):
    """What lies beyond the 48 variants, in the order in which a problem's kind lists it."""

    MIXED_FLEET = "mixed fleet"
    OTHER_END = "other end"
    FREE_START = "free start"
    OWN_ROADS = "own roads"
    SHIFTS = "shifts"
    TRIPS = "several trips"
    OPTIONAL = "optional"
    SEVERAL_WINDOWS = "several windows"
    SKILLS = "skills"
    BOTH_AT_ONCE = "both at once"
    LEAST_TIME = "least time"
    MONEY = "money"


OPENING, CLOSING, BOTH = range(3)  # the columns of a window, in the order in which it declares them


@dataclass(frozen=True)
class Column:
    """A column of a spreadsheet that holds an attribute, or a part of it."""

    heading: str  # as it is written
    spellings: str  # as it is read, in letters and digits alone, the best first
    negated: bool = False  # its "no" is the attribute's "yes"


@dataclass(frozen=True)
class Attribute:
    """What a problem, each of its customers, or a vehicle type has."""

    of: Of
    kind: Kind
    meaning: str = ""  # for the schema of documents, the guides and the page
    missing: Any = None  # the value of a customer for which none is given
    unit: Unit = ""
    key: str = ""  # its name in documents; by default the field's
    columns: tuple[Column, ...] = ()
    # Columns of yes or no beside a customer's: whether the value is needed, by what a "yes" means.
    switches: Mapping[bool, Column] = field(default_factory=lambda: MappingProxyType({}))
    beyond: str = ""  # its word in a problem's kind, where it lies beyond the 48 variants
    name: str = ""  # of its field
    default: Any = None  # of its field

    @property
    def every_column(self) -> tuple[Column, ...]:
        """Its columns in spreadsheets, and those beside them that say whether a value is needed."""
        return (*self.columns, *self.switches.values())

    @property
    def is_cost(self) -> bool:
        """Whether it is a price of a vehicle's use."""
        return self.of != "customer" and self.unit.startswith("money")

    def given(self, holder: object) -> bool:
        """Whether the holder, a problem or a vehicle type, has a value other than the default."""
        value = getattr(holder, self.name)
        return isinstance(value, np.ndarray) or not bool(value == self.default)


@cache
def attributes(holder: type, of: Of | None = None) -> tuple[Attribute, ...]:
    """Returns the declared attributes of a dataclass, in the order of its fields."""
    hints = get_type_hints(holder, include_extras=True)
    found = []
    for each in fields(holder):
        declared = [a for a in getattr(hints[each.name], "__metadata__", ()) if isinstance(a, Attribute)]
        default = None if each.default is MISSING else each.default
        found += [replace(a, name=each.name, key=a.key or each.name, default=default) for a in declared]
    return tuple(a for a in found if of in (None, a.of))
