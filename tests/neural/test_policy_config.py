"""PolicyConfig: every choice is checked, and survives the way into a card and back."""

import json
import math

import pytest

from chainroute.errors import ChainRouteError
from chainroute.neural.policy import PolicyConfig


def faults(**values):
    with pytest.raises(ChainRouteError) as caught:
        PolicyConfig(**values)
    return [(f.code, f.where) for f in caught.value.faults]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"dim": 0}, [("not-positive", "config.dim")]),
        ({"dim": 128.0}, [("wrong-type", "config.dim")]),
        ({"layers": True}, [("wrong-type", "config.layers")]),
        ({"sparse": 1}, [("wrong-type", "config.sparse")]),
        ({"scores": "Dot"}, [("unknown-value", "config.scores")]),
        ({"reembedding": None}, [("unknown-value", "config.reembedding")]),
        ({"distance_bias": ["log"]}, [("unknown-value", "config.distance_bias")]),
        ({"clip": math.nan}, [("bad-option", "config.clip")]),
        ({"clip": math.inf}, [("bad-option", "config.clip")]),
        ({"score_noise": -0.1}, [("bad-option", "config.score_noise")]),
        ({"clip": "10"}, [("wrong-type", "config.clip")]),
        ({"heads": 3}, [("bad-option", "config.heads")]),
        ({"heads": 0, "chain": "yes"}, [("not-positive", "config.heads"), ("wrong-type", "config.chain")]),
    ],
)
def test_every_bad_choice_is_named(values, expected):
    assert faults(**values) == expected


def test_unknown_fields_are_named_all_at_once():
    with pytest.raises(ChainRouteError) as caught:
        PolicyConfig.from_dict({"dims": 16, "depth": 2, "heads": 8})
    assert [(f.code, f.where) for f in caught.value.faults] == [
        ("unknown-field", "config.depth"),
        ("unknown-field", "config.dims"),
    ]


def test_config_survives_json():
    config = PolicyConfig(dim=32, scores="cosine", reembedding="self", chain=False, clip=8)
    assert PolicyConfig.from_dict(json.loads(json.dumps(config.as_dict()))) == config
