"""Every choice in the network that the paper ablates, or on which the paper and the authors' code differ."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, get_args, get_type_hints

from chainroute.errors import ChainRouteError, Fault

Scores = Literal["gated", "dot", "cosine", "random", "embeddings", "attributes"]
Reembedding = Literal["cross", "self", "off"]
DistanceBias = Literal["log", "raw", "off"]
Features = Literal["paper", "wide"]
Fusion = Literal["sequential", "parallel"]
Residual = Literal["nodes", "query"]


@dataclass(frozen=True)
class PolicyConfig:
    """The defaults are CCL with ReLD as its authors run it."""

    dim: int = 128  # D
    heads: int = 8
    layers: int = 6  # of the encoder
    hidden: int = 512  # of every gated MLP
    sparse: bool = True  # the encoder's second branch, over the top half of the keys
    prompt: bool = True  # whether the encoder's global branch is told the constraints (RF-TE: no)
    # sequential: the sparse branch sees the global one as it is after it has seen the sparse (authors' code);
    # parallel: each sees the other as it was (the paper's equation).
    fusion: Fusion = "sequential"
    depot_closing: bool = False  # whether a depot's embedding sees when it closes (authors' code: yes)

    # What the network is told (`columns.py`).
    # paper: days and limits as they are, longer ones than in training squeezed; wide: times in days of one
    # length, and numbers that say how long a day is, how many customers there are and how many vehicles.
    features: Features = "paper"
    spacing: bool = False  # nearness is told in units of the mean distance between neighbours

    # RGCR: how the constraints enter the context.
    # gated: dot products through a sigmoid, zero for absent constraints (authors' code); dot: the paper's
    # equation; cosine, random: the paper's ablation; embeddings: concatenated, no scores; attributes:
    # concatenated without embeddings, as in CaDA.
    scores: Scores = "gated"
    score_noise: float = 0.1  # std of the noise on gated scores in training

    # TSNR: how nodes are re-embedded.
    # cross: nodes attend to contexts and nodes; self: contexts are refined as well; off: no re-embedding.
    reembedding: Reembedding = "cross"
    residual: Residual = "nodes"  # what attention adds to: the nodes (authors' code), or the paper's q
    node_attention: bool = True  # nodes attend to nodes, not to contexts alone
    chain: bool = True  # each step refines what the last step left, not the encoder's output
    distance_bias: DistanceBias = (
        "log"  # log: -log of the distance (authors' code); raw: the paper's equation
    )

    # The pointer.
    # The authors' CCL without ReLD has neither it nor distances at the logits, and a residual from the query.
    reld: bool = True  # identity mapping and feed-forward layer in the decoder
    glimpse_residual: bool = False  # what the query sees is added to the query, too
    decoder_depth: int = 1  # attention layers of the pointer; CaDA-HD has 4
    logit_distance_bias: bool = True  # -log of the distance from the current node joins the logits
    clip: float = 10.0  # the paper's xi

    # Blocks of one's own, "module:Class", in place of the paper's: docs/extending.md.
    encoder: str = ""
    rgcr: str = ""
    tsnr: str = ""
    pointer: str = ""

    def __post_init__(self) -> None:
        faults = []
        kinds = get_type_hints(PolicyConfig)
        for f in fields(self):
            value, kind = getattr(self, f.name), kinds[f.name]
            allowed = get_args(kind)
            where = f"config.{f.name}"
            if allowed and value not in allowed:
                faults.append(Fault("unknown-value", f"{value!r} is not one of {', '.join(allowed)}.", where))
            elif not allowed and (type(value) is not kind and not (kind is float and type(value) is int)):
                faults.append(Fault("wrong-type", f"must be {kind.__name__}, not {value!r}.", where))
            elif kind is int and value < 1:
                faults.append(Fault("not-positive", f"is {value}.", where))
            elif kind is float and not 0 <= value < math.inf:  # NaN is not either
                faults.append(Fault("bad-option", f"must be at least 0 and finite, not {value}.", where))
        if not faults and self.dim % self.heads:
            faults.append(
                Fault("bad-option", f"{self.heads} heads do not divide {self.dim}.", "config.heads")
            )
        if faults:
            raise ChainRouteError(faults)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> PolicyConfig:
        unknown = sorted(set(values) - {f.name for f in fields(cls)})
        if unknown:
            raise ChainRouteError(
                Fault("unknown-field", "is no field of a policy.", f"config.{k}") for k in unknown
            )
        return cls(**values)
