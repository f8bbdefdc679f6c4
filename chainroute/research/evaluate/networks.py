"""Networks by what differs from the default: "scores=embeddings,reembedding=off"."""

from __future__ import annotations

from typing import Any, get_type_hints

from chainroute.errors import ChainRouteError, Fault
from chainroute.neural.policy import PolicyConfig

WORDS = {"true": True, "false": False}


def switches(config: PolicyConfig) -> str:
    ours, default = config.as_dict(), PolicyConfig().as_dict()
    told = {k: str(v).lower() if isinstance(v, bool) else v for k, v in ours.items()}
    return ",".join(f"{k}={told[k]}" for k in ours if ours[k] != default[k])


def network(text: str, base: PolicyConfig | None = None) -> PolicyConfig:
    """The inverse; nothing stands for the default network. With another as the base, what differs from it."""
    kinds = get_type_hints(PolicyConfig)
    values: dict[str, Any] = {}
    faults = []
    for part in filter(None, text.split(",")):
        name, _, value = (word.strip() for word in part.partition("="))
        kind = kinds.get(name)
        try:
            if kind is bool:
                values[name] = WORDS[value.lower()]
            else:
                values[name] = kind(value) if kind in (int, float) else value
        except (ValueError, KeyError):
            message = f"'{value}' is no value of {name}."
            faults.append(Fault("bad-option", message, f"config.{name}"))
    if faults:
        raise ChainRouteError(faults)
    return PolicyConfig.from_dict((base or PolicyConfig()).as_dict() | values)
