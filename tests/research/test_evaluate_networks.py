"""Networks by name: text and configuration say the same."""

import pytest

from chainroute.errors import ChainRouteError
from chainroute.neural.policy import PolicyConfig
from chainroute.research.evaluate import paper
from chainroute.research.evaluate.networks import network, switches


@pytest.mark.parametrize(
    "config",
    [PolicyConfig(), PolicyConfig(scores="dot", reld=False), PolicyConfig(clip=5.0, decoder_depth=4, dim=64)],
)
def test_text_and_configuration_are_inverse(config):
    assert network(switches(config)) == config


def test_the_papers_networks_are_networks_by_the_same_names():
    for row in paper.ablation():
        assert switches(network(row.switches)) == row.switches


@pytest.mark.parametrize(
    ("text", "code"),
    [("scores=best", "unknown-value"), ("reld=maybe", "bad-option"), ("dim=x", "bad-option"),
     ("width=3", "unknown-field")],
)  # fmt: skip
def test_what_is_no_switch_is_refused(text, code):
    with pytest.raises(ChainRouteError) as error:
        network(text)
    assert error.value.faults[0].code == code
