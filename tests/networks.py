"""Networks that differ from the default in the switches that the paper ablates, as fields of PolicyConfig."""

from dataclasses import fields
from typing import get_args, get_type_hints

from chainroute.neural.policy import PolicyConfig

KINDS = get_type_hints(PolicyConfig)
CHOICES = {
    f: (True, False) if KINDS[f.name] is bool else get_args(KINDS[f.name]) for f in fields(PolicyConfig)
}
SWITCHED = [{f.name: value} for f, values in CHOICES.items() for value in values if value != f.default]
COMBINED = [
    {"features": "wide", "spacing": True},
    {"scores": "embeddings", "reembedding": "off", "reld": False},
    {"residual": "query", "reembedding": "self", "fusion": "parallel", "prompt": False},
    {"scores": "dot", "chain": False, "node_attention": False, "distance_bias": "raw", "reld": False},
    {"reld": False, "glimpse_residual": True, "logit_distance_bias": False},  # the authors' CCL
    {"reld": False, "glimpse_residual": True, "decoder_depth": 2},
    {"scores": "random", "chain": False, "distance_bias": "off", "logit_distance_bias": False},
    {"scores": "cosine", "reembedding": "self", "distance_bias": "raw", "decoder_depth": 3},
    {"reembedding": "self", "node_attention": False, "chain": False, "reld": False, "decoder_depth": 2},
]


def named(switches):
    """Such as "scores=dot,reld=False"."""
    return ",".join(f"{name}={value}" for name, value in switches.items()) or "default"
