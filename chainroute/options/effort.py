"""How hard to try: what may be asked for, and what the policy then does.

`Effort` is what the caller asks for, with much left open; `DecodeOptions` is what the policy does, with
nothing left open. `rules.options_for` makes the one of the other.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Annotated

from chainroute.errors import ChainRouteError, Fault
from chainroute.options.declare import Option, Parameter, parameters

SEEDS = 2**32
MOST_STARTS = 100  # where nobody says how many; a policy has seen no more in training
MAPS = 8  # ways to turn and mirror the unit square

TimeLimit = Annotated[
    float | None, Option("Seconds for each problem; by its size unless given.", above=0, unit="seconds")
]
Seed = Annotated[
    int, Option("Seed of the search: same seed, same draws.", least=0, most=SEEDS - 1, mark="-seed{}")
]

Starts = Annotated[
    int | None,
    Option("First customers that the policy tries; more take longer and find better routes.", least=1),
]
_UPDATE_RATES = Option(
    "The paper's P, 0 to 1: the share of steps that re-embed; several are tried in turn.",
    ("--update-rate",), least=0, most=1, mark="-P{:g}",
)  # fmt: skip
_AUGMENTATIONS = Option(
    "Turned and mirrored maps to try, 1 to 8.", ("--augment",), least=1, most=MAPS, mark="-x{}"
)
_SAMPLES = Option("Routes drawn by chance for each start and map; 0 is greedy.", least=0, mark="-samples{}")
_RECOMBINE = Option("Make the best plan of the routes of all trajectories.", mark="-recombined")
_ROUNDS = Option("Rounds in which the policy solves neighbouring routes again.", least=0, mark="-rounds{}")
UpdateRates = Annotated[tuple[float, ...] | None, _UPDATE_RATES]


@dataclass(frozen=True)
class Effort:
    """What is tried within the time limit; None leaves the choice to the size and the time."""

    polish: Annotated[bool, Option("Let PyVRP search too; without it, the policy alone.")] = True
    iterations: Annotated[
        int | None, Option("Iterations of each search, in place of time; same seed, same routes.", least=0)
    ] = None
    weights: Annotated[
        str | os.PathLike[str] | None, Option("The policy's path, or random; else the shipped one.")
    ] = None
    starts: Starts = None
    augmentations: Annotated[int | None, _AUGMENTATIONS] = None
    samples: Annotated[int | None, _SAMPLES] = None
    update_rates: UpdateRates = None
    recombine: Annotated[bool | None, _RECOMBINE] = None
    rounds: Annotated[int | None, _ROUNDS] = None
    device: Annotated[str | None, Option("Device of the policy: cpu, cuda, cuda:1, ...")] = None
    trust_code: Annotated[bool, Option("Import and run the code that the weights name.")] = False

    def __post_init__(self) -> None:
        _require(self, _EFFORT)


@dataclass(frozen=True, kw_only=True)
class DecodeOptions:
    """Every start is tried on every map at every update rate, and the best of all trajectories is kept.

    The same options on the same kind of device give the same routes, whatever else is decoded beside.
    """

    starts: Starts = None  # spread evenly, at most all customers; None: up to MOST_STARTS
    update_rates: UpdateRates = None  # several are CCL-Ens; None: as suits the policy
    rates_in_turn: Annotated[
        bool,
        Option("Maps take several update rates in turn; else each map has all of them.", mark="-in-turn"),
    ] = False
    drawn_steps: Annotated[
        bool, Option("Steps re-embed by chance, as in the paper, not evenly spread.", mark="-drawn")
    ] = False
    augmentations: Annotated[int, _AUGMENTATIONS] = MAPS  # 1 is the plain map
    samples: Annotated[int, _SAMPLES] = 0
    temperature: Annotated[
        float,
        Option(
            "Temperature of samples: towards 0 they become greedy, above 1 more varied.", least=1e-6, most=1e6
        ),
    ] = 1.0
    recombine: Annotated[bool, _RECOMBINE] = False  # else the best trajectory
    rounds: Annotated[int | None, _ROUNDS] = 0  # None: until the deadline
    sector: Annotated[
        int | None, Option("Customers above which a problem is cut into sectors.", least=1, mark="-sector{}")
    ] = None
    seed: Seed = 0  # of samples, of rounds, and of which steps re-embed the nodes where 0 < P < 1
    memory: Annotated[
        int | None,
        Option("Bytes for tensors; 1 GiB unless given, on a GPU a quarter of its own.", least=1),
    ] = None
    full_precision: Annotated[
        bool, Option("Products in single precision on a GPU, too, not in bfloat16: slower, hardly better.")
    ] = False

    def __post_init__(self) -> None:
        _require(self, _DECODING)

    @property
    def copies(self) -> int:
        """In how many copies a problem is decoded: at each update rate, or in all where these are in turn."""
        return self.augmentations * max(self.samples, 1)

    def trajectories(self, customers: int) -> int:
        """How many solve each copy, one from each start."""
        return min(self.starts or MOST_STARTS, customers)

    def rates(self, customers: int, reembeddings: tuple[float, ...]) -> tuple[float, ...]:
        """P as asked for, or so that there are as many re-embeddings in all as suit the policy."""
        suiting = [min(1.0, count / customers) for count in reembeddings[: self.augmentations]]
        # Below 1 the same rate again has other steps that re-embed.
        different = (rate for k, rate in enumerate(suiting) if rate < 1 or rate not in suiting[:k])
        return self.update_rates or tuple(different)

    @property
    def in_turn(self) -> bool:
        """Whether each copy has one of the update rates: where that is asked for, or where none is named."""
        return self.rates_in_turn or self.update_rates is None

    def share_of_copies(self, rates: int) -> float:
        """Which part of the copies each of so many update rates has."""
        return 1 / rates if self.in_turn else 1.0

    @property
    def marks(self) -> str:
        """What tells results of one policy apart: all that is not as usual."""
        found = ""
        for p in _DECODING:
            value, mark = getattr(self, p.name), p.about.mark if isinstance(p.about, Option) else ""
            if value != p.default:
                found += "".join(mark.format(one) for one in (value if p.many else [value]))
        return found


_EFFORT, _DECODING = parameters(Effort), parameters(DecodeOptions)


def limit_faults(time_limit: TimeLimit, seed: Seed) -> list[Fault]:
    """What is wrong with a time limit and a seed, wherever they are given."""
    given = {"time_limit": time_limit, "seed": seed}
    return [fault for p in parameters(limit_faults) for fault in p.faults(given[p.name])]


def require_limits(time_limit: TimeLimit, seed: Seed) -> None:
    if faults := limit_faults(time_limit, seed):
        raise ChainRouteError(faults)


def _require(options: Effort | DecodeOptions, declared: list[Parameter]) -> None:
    faults = [fault for p in declared for fault in p.faults(getattr(options, p.name))]
    if faults:
        raise ChainRouteError(faults)
