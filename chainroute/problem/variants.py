"""The 48 variants: every mix of five attributes on top of capacity.

A variant is no class of its own but a set of attributes; its name follows from them. The network is trained
on the 16 mixes of O, B, L and TW with one depot; mixed backhauls (MB) and several depots (MD) are unseen.
"""

import difflib
from dataclasses import dataclass
from enum import StrEnum
from itertools import product
from typing import Any

from chainroute.errors import fail


class Backhaul(StrEnum):
    """How customers that hand goods over (backhauls) go together with those that receive (linehauls)."""

    NONE = "none"
    LINEHAULS_FIRST = "linehauls-first"  # B: on each route, all deliveries before the first pickup
    MIXED = "mixed"  # MB: in any order, as long as the load fits at every moment


_BACKHAUL_LETTERS = {Backhaul.NONE: "", Backhaul.LINEHAULS_FIRST: "B", Backhaul.MIXED: "MB"}


@dataclass(frozen=True)
class Variant:
    open: bool = False  # O: routes end at their last customer
    backhaul: Backhaul = Backhaul.NONE  # B or MB
    limit: bool = False  # L: each route has a length limit
    time_windows: bool = False  # TW
    multi_depot: bool = False  # MD

    @property
    def name(self) -> str:
        letters = _BACKHAUL_LETTERS[self.backhaul] + "L" * self.limit + "TW" * self.time_windows
        # The plain problem is called CVRP; any of O, B, L, TW displaces the C, several depots do not.
        core = f"OVRP{letters}" if self.open else f"VRP{letters}" if letters else "CVRP"
        return "MD" * self.multi_depot + core

    @property
    def seen(self) -> bool:
        """Whether training shows this variant; the others are solved zero-shot."""
        return not self.multi_depot and self.backhaul is not Backhaul.MIXED

    def __str__(self) -> str:
        return self.name


VARIANTS: tuple[Variant, ...] = tuple(
    Variant(open=o, backhaul=b, limit=limit, time_windows=tw, multi_depot=md)
    for md, b, tw, o, limit in product((False, True), Backhaul, (False, True), (False, True), (False, True))
)
FLAGS = ("B", "L", "O", "TW")  # the attributes that the network is told, in this order
BY_NAME: dict[str, Variant] = {v.name: v for v in VARIANTS}
SEEN: tuple[Variant, ...] = tuple(v for v in VARIANTS if v.seen)
ZERO_SHOT: tuple[Variant, ...] = tuple(v for v in VARIANTS if not v.seen)


def place(multi_depot: Any, backhaul: Any, time_windows: Any, open: Any, limit: Any) -> Any:
    """Where in VARIANTS a variant stands: of whole numbers or tensors of them, backhauls in their order."""
    return (((multi_depot * len(Backhaul) + backhaul) * 2 + time_windows) * 2 + open) * 2 + limit


def variant(name: str) -> Variant:
    """The variant of that name, in upper or lower case."""
    try:
        return BY_NAME[name.strip().upper()]
    except KeyError:
        near = difflib.get_close_matches(name.strip().upper(), BY_NAME, n=3)
        hint = f" Did you mean {' or '.join(near)}?" if near else ""
        raise fail("unknown-variant", f"'{name}' is not a variant.{hint}", "variant") from None
