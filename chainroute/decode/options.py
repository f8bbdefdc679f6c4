"""How many trajectories are made, and how."""

from __future__ import annotations

from dataclasses import dataclass

from chainroute.errors import ChainRouteError, Fault

MOST_STARTS = 100  # without a wish; a policy has seen no more in training
MAPS = 8  # ways to turn and mirror the unit square


@dataclass(frozen=True)
class DecodeOptions:
    """Every start is tried on every map at every update rate, and the best of all trajectories is kept.

    The same options on the same kind of device give the same routes, whatever else is decoded beside.
    """

    num_starts: int | None = None  # first customers, spread evenly, at most all; None: up to MOST_STARTS
    augmentations: int = MAPS  # maps: 1 is the plain one, 8 are all ways to turn and mirror it
    samples: int = 0  # sampled trajectories for each start and map; 0: one greedy trajectory
    temperature: float = 1.0  # of samples: towards 0 they become greedy, above 1 more varied
    update_rates: tuple[float, ...] | None = None  # the paper's P; several are CCL-Ens. None: the policy's
    recombine: bool = False  # the best plan of the routes of all trajectories, instead of the best trajectory
    sector: int | None = None  # customers of a part; problems with more are cut into sectors. None: never
    rounds: int | None = 0  # in which neighbouring routes are solved anew; None: until the deadline
    seed: int = 0  # of samples, of rounds, and of which steps re-embed the nodes where 0 < P < 1
    memory: int | None = None  # bytes for tensors; None: 1 GiB, on a GPU a quarter of what it has
    half: bool = False  # products in bfloat16: faster on a GPU, and nearly as good
    likeliest_starts: bool = False  # first customers are not spread evenly, but those that the policy prefers

    def __post_init__(self) -> None:
        faults = [
            *(_whole("num_starts", self.num_starts, 1) if self.num_starts is not None else []),
            *_whole("augmentations", self.augmentations, 1, MAPS),
            *_whole("samples", self.samples, 0),
            *_number("temperature", self.temperature, 1e-6, 1e6),
            *(_whole("sector", self.sector, 1) if self.sector is not None else []),
            *(_whole("rounds", self.rounds, 0) if self.rounds is not None else []),
            *_whole("seed", self.seed, 0),
            *(_whole("memory", self.memory, 1) if self.memory is not None else []),
        ]
        if type(self.likeliest_starts) is not bool:
            message = f"must be true or false, not {self.likeliest_starts!r}."
            faults.append(Fault("bad-option", message, "likeliest_starts"))
        if self.update_rates is not None:
            if not isinstance(self.update_rates, tuple) or not self.update_rates:
                message = f"must be a tuple of at least one rate, not {self.update_rates!r}."
                faults.append(Fault("bad-option", message, "update_rates"))
            else:
                for i, rate in enumerate(self.update_rates):
                    faults += _number(f"update_rates[{i}]", rate, 0, 1)
        if faults:
            raise ChainRouteError(faults)

    @property
    def copies(self) -> int:
        """In how many copies a problem is decoded at each update rate."""
        return self.augmentations * max(self.samples, 1)

    def starts(self, customers: int) -> int:
        """How many trajectories solve each copy."""
        return min(self.num_starts or MOST_STARTS, customers)

    def rates(self, customers: int, reembeddings: float) -> tuple[float, ...]:
        """P as asked for, or so that there are as many re-embeddings in all as suit the policy."""
        return self.update_rates or (min(1.0, reembeddings / customers),)


def _whole(name: str, value: object, least: int, most: int | None = None) -> list[Fault]:
    if type(value) is int and least <= value and (most is None or value <= most):
        return []
    span = f"of at least {least}" if most is None else f"from {least} to {most}"
    return [Fault("bad-option", f"must be a whole number {span}, not {value!r}.", name)]


def _number(name: str, value: object, least: float, most: float) -> list[Fault]:
    if isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most:
        return []
    return [Fault("bad-option", f"must be a number from {least:g} to {most:g}, not {value!r}.", name)]
