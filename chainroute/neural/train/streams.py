"""Random numbers of training: every update has its own, made from the seed, the step and the rank.

So the state of chance is the number of the step, a run continues exactly wherever it was cut, and no two
ranks see the same data however many there are.
"""

from __future__ import annotations

import hashlib
import random

import torch

from chainroute.neural.decode.rollout import pattern
from chainroute.neural.train.config import TrainConfig
from chainroute.neural.train.rollout import longest

PATTERNS = 4  # rates at which steps re-embed; each is captured for itself
SHIFTS = 1000  # of evenly spread re-embedding steps, from which an update draws one


def reseed(generator: torch.Generator, seed: int, step: int, rank: int) -> None:
    """Prepares the generator of a rank's device for an update."""
    digest = hashlib.blake2b(f"{seed} {step} {rank}".encode(), digest_size=8).digest()
    generator.manual_seed(int.from_bytes(digest, "big") >> 1)


def choices(config: TrainConfig, step: int) -> tuple[int, list[bool]]:
    """What all ranks share in an update: its size, and for each step of a trajectory whether TSNR runs."""
    chance = random.Random(f"{config.seed} {step}")
    n, shift = chance.choice(config.sizes), chance.randrange(SHIFTS)
    return n, pattern(chance.choice(rates(config, n)), shift, longest(n))


def patterns(config: TrainConfig, n: int, steps: int) -> list[list[bool]]:
    """In which of so many steps TSNR runs, for each update that is captured: other rates and shifts."""
    return [pattern(rate, shift, steps) for shift, rate in enumerate(rates(config, n))]


def rates(config: TrainConfig, n: int) -> list[float]:
    """How often steps of updates with n customers re-embed, each as likely as the others: around P_tr."""
    around = [2 * i / (PATTERNS - 1) - 1 for i in range(PATTERNS)]  # from -1 to 1
    return [config.at_size(config.update_rate * (1 + config.update_spread * x), n) for x in around]
