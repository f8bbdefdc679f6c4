"""Random problems of any variant, by one of three laws, and the public benchmark bit for bit.

paper  the law of the paper and of the public benchmark: `paper.py`
printed  the law as the paper prints it, which is another one than it uses: `paper.py`
wide   places, demands, windows, limits, roads and fleets as people have them: `wide.py`
"""

from collections.abc import Iterable
from typing import Literal, get_args

from chainroute.errors import fail
from chainroute.generate import wide
from chainroute.generate.paper import (
    BENCHMARK,
    DEPOTS,
    HORIZON,
    benchmark,
    capacity,
    generate_arrays,
    generate_printed,
)
from chainroute.generate.paper import generate as _by_paper
from chainroute.problem import Problem
from chainroute.problem.variants import Variant

Law = Literal["paper", "printed", "wide"]
LAWS: tuple[Law, ...] = get_args(Law)

__all__ = [
    "BENCHMARK",
    "DEPOTS",
    "HORIZON",
    "LAWS",
    "Law",
    "benchmark",
    "capacity",
    "generate",
    "generate_arrays",
]


def generate(
    variants: Variant | Iterable[Variant], n: int, count: int, seed: int, law: Law = "paper"
) -> list[Problem]:
    """`count` random problems of each variant, with n customers. A problem depends on its own variant,
    the size, the count, the seed and the law only, not on what else is asked for."""
    if law not in LAWS:
        raise fail("unknown-value", f"'{law}' is not one of {', '.join(LAWS)}.", "law")
    variants = [variants] if isinstance(variants, Variant) else list(variants)
    draw = {"paper": _by_paper, "printed": generate_printed, "wide": wide.generate}[law]
    return [problem for variant in variants for problem in draw(variant, n, count, seed)]
