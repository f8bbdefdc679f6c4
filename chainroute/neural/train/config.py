"""One training run in a page: data, objective, optimiser, network. Recipes are such pages as files."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, get_args

from chainroute.errors import ChainRouteError, Fault, Place, fail
from chainroute.generate import BENCHMARK, LAWS, Law, wide
from chainroute.neural.policy import PolicyConfig
from chainroute.neural.train.objective import Objective
from chainroute.neural.train.optimiser import Method
from chainroute.neural.train.schedule import Decay
from chainroute.problem.budget import MAX_LOCATIONS
from chainroute.problem.variants import SEEN, VARIANTS, Variant, variant
from chainroute.runtime.files import decode, load

GROUPS = {"seen": SEEN, "all": VARIANTS}  # names that stand for several variants
RETIRED = ("average",)  # fields that older runs have at zero, and that do nothing there


@dataclass(frozen=True)
class TrainConfig:
    # Data: fresh instances for every update.
    law: Law = "paper"  # by which they are drawn
    variants: tuple[str, ...] = tuple(v.name for v in SEEN)  # each as likely as the others
    sizes: tuple[int, ...] = (50,)  # numbers of customers; each update has one of them
    batch: int | tuple[int, ...] = 256  # instances of an update, over all ranks; or one number for each size
    seed: int = 1

    # Trajectories and optimiser.
    starts: int = 0  # customers at which trajectories begin, at most; 0: at all of them
    update_rate: float = 0.75  # P_tr: how often a step of the largest size re-embeds the nodes
    update_spread: float = 0.0  # how far the rates of updates lie around P_tr, as a share of it
    optimiser: Method = "adamw"
    learning_rate: float = 3e-4
    warmup: int = 100  # updates until the full rate
    decay: Decay = "linear"  # how the rate falls in a cool-down
    weight_decay: float = 1e-6
    clip: float = 1.0  # of the gradient's norm

    # The run. These may change from one stretch to the next.
    objective: Objective = "scaled"
    longest_embedding: float = 0.0  # length of node embeddings above which they are penalised; 0: none is
    updates: int = 0  # in all; 0: for as long as it is continued
    cooldown: int = 0  # the last updates of these, over which the rate falls
    validate_every: int = 0  # updates; 0: never
    validate_count: int = 128  # problems of each task
    select: str = ""  # a variant, such as CVRP: the policy that validates best on it is kept, too
    test_update_rate: float = 1.0  # P_ts, in validation; likewise of the largest size
    snapshot_every: float = 60.0  # seconds; 0: whenever it looks at the device, each half second

    # Network.
    policy: PolicyConfig = field(default_factory=PolicyConfig)

    def __post_init__(self) -> None:
        faults = _faults(self)
        if faults:
            raise ChainRouteError(faults)
        object.__setattr__(self, "variants", tuple(v.name for v in self.mixture))  # in capitals
        object.__setattr__(self, "select", self.select and variant(self.select).name)

    @property
    def mixture(self) -> tuple[Variant, ...]:
        return tuple(map(variant, self.variants))

    def instances(self, n: int) -> int:
        """How many instances an update with n customers has, over all ranks."""
        return self.batch if isinstance(self.batch, int) else self.batch[self.sizes.index(n)]

    def trajectories(self, n: int) -> int:
        """How many trajectories an instance with n customers has."""
        return min(self.starts or n, n)

    def at_size(self, rate: float, n: int) -> float:
        """The update rate with n customers: all sizes have as many re-embeddings as the largest."""
        return min(1.0, rate * max(self.sizes) / n)

    def as_dict(self) -> dict[str, Any]:
        """The fields as plain JSON values."""
        return json.loads(json.dumps(asdict(self)))  # type: ignore[no-any-return]

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> TrainConfig:
        """A config of plain values; variants may be "seen" or "all", and a single size stands for itself."""
        known = {f.name for f in fields(cls)}
        values = {key: value for key, value in values.items() if not (key in RETIRED and not value)}
        unknown = [key for key in values if key not in known]
        faults = [Fault("unknown-field", "is no field of a recipe.", key) for key in unknown]
        if isinstance(values.get("variants"), str) and values["variants"] in GROUPS:
            values["variants"] = [v.name for v in GROUPS[values["variants"]]]
        if isinstance(values.get("sizes"), int):
            values["sizes"] = [values["sizes"]]
        for name in ("variants", "sizes", "batch"):
            if isinstance(values.get(name), list):
                values[name] = tuple(values[name])
        policy = values.get("policy", {})
        if isinstance(policy, Mapping):
            try:
                values["policy"] = PolicyConfig.from_dict(dict(policy))
            except ChainRouteError as error:
                faults += [f.moved(field=f.at.field.replace("config", "policy")) for f in error.faults]
                values.pop("policy", None)
        try:
            config = cls(**{key: value for key, value in values.items() if key in known})
        except ChainRouteError as error:
            raise ChainRouteError([*faults, *error.faults]) from None
        if faults:
            raise ChainRouteError(faults)
        return config


CHANGEABLE = (
    "objective",
    "longest_embedding",
    "updates",
    "cooldown",
    "validate_every",
    "validate_count",
    "select",
    "test_update_rate",
    "snapshot_every",
)


def require_same(config: TrainConfig, other: TrainConfig, where: str, full: bool = True) -> None:
    """Raises unless a run with the config `other`, saved at `where`, can go on with `config`.

    Where its moments were not saved (not `full`), all but the network may change.
    """
    ours, theirs = config.as_dict(), other.as_dict()
    ours |= {f"policy.{key}": value for key, value in ours.pop("policy").items()}
    theirs |= {f"policy.{key}": value for key, value in theirs.pop("policy").items()}
    faults = [
        Fault("other-config", f"is {theirs[key]} in {where}, not {value}.", key)
        for key, value in ours.items()
        if theirs[key] != value and (key not in CHANGEABLE if full else key.startswith("policy."))
    ]
    if faults:
        raise ChainRouteError(faults)


def read_recipe(path: str | Path) -> TrainConfig:
    """The recipe in a TOML or JSON file. Its `base` names another, beside it, whose fields it changes."""
    try:
        return TrainConfig.from_dict(_recipe(Path(path), ()))
    except ChainRouteError as error:
        raise ChainRouteError(f if f.at.file else f.moved(file=str(path)) for f in error.faults) from None


def _recipe(path: Path, above: tuple[Path, ...]) -> dict[str, Any]:
    where = str(path)
    text = decode(load(path), where)
    try:
        values = json.loads(text) if where.endswith(".json") else tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # both name the line
        raise fail("bad-syntax", f"{error}.", path) from None
    if not isinstance(values, dict):
        raise fail("bad-syntax", "is not a table of fields.", path)
    base = values.pop("base", None)
    if base is None:
        return values
    if not isinstance(base, str):
        raise fail("wrong-type", f"must be the path of a recipe, not {base!r}.", Place("base", file=where))
    above = (*above, path.resolve())
    if (path.parent / base).resolve() in above:
        raise fail("bad-option", f"'{base}' is based on this recipe itself.", Place("base", file=where))
    below = _recipe(path.parent / base, above)
    network, own = below.get("policy"), values.get("policy")
    if isinstance(network, dict) and isinstance(own, dict):
        values["policy"] = {**network, **own}
    return {**below, **values}


# -- what a field may be

_RANGES: dict[str, tuple[type, float, float]] = {  # kind, least and greatest
    "starts": (int, 0, MAX_LOCATIONS),
    "seed": (int, 0, 2**63 - 1),
    "update_rate": (float, 0, 1),
    "update_spread": (float, 0, 1),
    "learning_rate": (float, 1e-12, 1),
    "warmup": (int, 0, 2**40),
    "weight_decay": (float, 0, 1),
    "clip": (float, 1e-12, 1e12),
    "updates": (int, 0, 2**40),
    "cooldown": (int, 0, 2**40),
    "validate_every": (int, 0, 2**40),
    "longest_embedding": (float, 0, 1e9),
    "validate_count": (int, 1, BENCHMARK["val"][1]),
    "test_update_rate": (float, 0, 1),
    "snapshot_every": (float, 0, 1e9),
}
_CHOICES = {
    "law": LAWS,
    "objective": get_args(Objective),
    "optimiser": get_args(Method),
    "decay": get_args(Decay),
}
MOST_INSTANCES = 2**20  # of an update


def _faults(config: TrainConfig) -> list[Fault]:
    faults = _variant_faults(config.variants) or _select_faults(config)
    faults += _size_faults(config.sizes) + _batch_faults(config)
    for name, (kind, least, most) in _RANGES.items():
        value = getattr(config, name)
        if type(value) not in (int, kind) or not least <= value <= most:
            number = "a whole number" if kind is int else "a number"
            message = f"must be {number} from {least} to {most}, not {value!r}."
            faults.append(Fault("bad-option", message, name))
    for name, choices in _CHOICES.items():
        value = getattr(config, name)
        if value not in choices:
            faults.append(Fault("unknown-value", f"{value!r} is not one of {', '.join(choices)}.", name))
    if not faults and (most := config.update_rate * (1 + config.update_spread)) > 1:
        message = f"is too wide: the highest rate around update_rate would be {most:g}, above 1."
        faults.append(Fault("bad-option", message, "update_spread"))
    if not isinstance(config.policy, PolicyConfig):
        faults.append(Fault("wrong-type", "must be a table of the policy's fields.", "policy"))
    return faults


def _variant_faults(names: object) -> list[Fault]:
    if not isinstance(names, tuple) or not names or not all(isinstance(name, str) for name in names):
        message = f"must be a list of names, or one of {', '.join(GROUPS)}, not {names!r}."
        return [Fault("wrong-type", message, "variants")]
    faults = []
    seen: set[Variant] = set()
    for i, name in enumerate(names):
        try:
            if variant(name) in seen:
                place = Place("variants", (i,))
                faults.append(Fault("bad-option", f"{name} is there twice.", place, "Name it once."))
            seen.add(variant(name))
        except ChainRouteError as error:
            faults.append(Fault("unknown-variant", error.faults[0].message, Place("variants", (i,))))
    return faults


def _select_faults(config: TrainConfig) -> list[Fault]:
    named = str(config.select).strip().upper() in {v.name for v in config.mixture}
    if not config.select or (named and config.validate_every):
        return []
    message = f"{config.select!r} must be one of the variants, and validate_every above 0."
    return [Fault("bad-option", message, "select")]


def _batch_faults(config: TrainConfig) -> list[Fault]:
    each = config.batch if isinstance(config.batch, tuple) else (config.batch,)
    pairs = isinstance(config.batch, tuple) and isinstance(config.sizes, tuple)
    if pairs and len(each) != len(config.sizes):
        message = f"must be one number, or one for each of {len(config.sizes)} sizes, not {list(each)}."
        return [Fault("wrong-shape", message, "batch")]
    wanted = f"must be a whole number from 1 to {MOST_INSTANCES}"
    return [
        Fault("bad-option", f"{wanted}, not {count!r}.", "batch")
        for count in each
        if type(count) is not int or not 1 <= count <= MOST_INSTANCES
    ]


def _size_faults(sizes: object) -> list[Fault]:
    if not isinstance(sizes, tuple) or not sizes:
        return [Fault("wrong-type", f"must be a list of sizes, not {sizes!r}.", "sizes")]
    most = MAX_LOCATIONS - wide.DEPOTS[1]
    faults = [
        Fault("bad-option", f"must be a whole number from 1 to {most}, not {n!r}.", Place("sizes", (i,)))
        for i, n in enumerate(sizes)
        if type(n) is not int or not 1 <= n <= most
    ]
    if not faults and len(set(sizes)) < len(sizes):
        faults.append(
            Fault("bad-option", f"a size is there twice in {list(sizes)}.", "sizes", "Give it once.")
        )
    return faults
