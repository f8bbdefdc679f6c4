"""What is done where the caller leaves it open, by the size of the problem, the time and the machine.

The first answer of the policy may take a share of its time; the rest is for rounds. What an answer takes is
estimated: `work` says how it grows with the size, and neural/decode/speed.py how long a unit
takes here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace

from chainroute.options.effort import MAPS, DecodeOptions, Effort

# -- one problem, the policy and PyVRP side by side

POLICY_SHARE = 0.25  # of the time limit: what the policy may take of the second core
POLICY_SECONDS_PER_CUSTOMER = 0.02  # on a CPU; with less, its routes are not worth polishing
FIRST_SECONDS_PER_CUSTOMER = 5e-4  # after which a search has routes, unless vehicles are few
HEAD_START_SHARE = 0.4  # of the time limit, at most: customers still have to be inserted in the rest
RESCUE_SHARE = 0.5  # of the time limit, after which on a single core the policy helps a search without routes
POLISHING_GAP = 0.05  # up to which the policy's routes are polished, above the best so far
SAVINGS_CUSTOMERS = 300  # with time windows, from which a plan by savings is ahead of a search for long
SAVINGS_SECONDS_PER_CUSTOMER = 1 / 200  # with more, a search from cold has caught up (docs/results.md)
WHOLE_SEARCH_SECONDS = 50.0  # for 1,000 customers; with less, a large problem is searched by its parts alone
ANNEALED_WHOLE_SEARCH_SECONDS = 150.0  # likewise, where these are annealed

# -- the policy alone

FIRST_SHARE = 0.5  # of the time, which the first answer may take
FIRST_SHARE_SECTORS = 0.75  # where it comes in sectors: rounds improve neighbouring routes, not a poor whole
WHOLE_CUSTOMERS = 200  # customers; larger problems are decoded in sectors
SECTOR_CUSTOMERS = 300  # customers; the policy is lost in problems much larger than those it was trained on
SMALL_SECTOR_CUSTOMERS = (100, 50)  # customers, where time is short
SMALL_SECTOR_RATE = 0.25  # P there
PART_RATE = 0.25  # P of the parts that rounds solve again
SECTOR_STARTS = (100, 64, 32)  # trajectories share what they learn, and with few of them each is worse
BATCH_STARTS = 64  # of each of many problems that are decoded together

STEPS_PER_CUSTOMER = 1.25  # for each customer: its visit, and ends of routes
STEP_WORK = 120.0  # of a step, however few embeddings it computes
NODE_WORK = 1.5  # a node against a trajectory
ENCODER_WORK = 6.0  # its layers


def default_limit(customers: int) -> float:
    """Seconds, where none are given."""
    return min(10.0, 1 + customers / 50)


def has_time_for_policy(customers: int, limit: float, gpu: bool) -> bool:
    """Whether the policy's share of the limit is enough for routes that are worth polishing."""
    return gpu or POLICY_SHARE * limit >= POLICY_SECONDS_PER_CUSTOMER * customers


def begins_by_savings(customers: int, limit: float) -> bool:
    """Whether a search of a problem with time windows does better from a plan by savings than from cold."""
    return customers >= SAVINGS_CUSTOMERS and limit < SAVINGS_SECONDS_PER_CUSTOMER * customers


def has_time_for_whole(customers: int, limit: float, is_annealed: bool) -> bool:
    """Whether one of several cores does better to search the whole of a large problem than its parts: what
    that takes grows with the square of the customers."""
    seconds = ANNEALED_WHOLE_SEARCH_SECONDS if is_annealed else WHOLE_SEARCH_SECONDS
    return limit >= seconds * (customers / 1_000) ** 2


def head_start(customers: int, limit: float) -> float:
    """Seconds that the searches have to find routes, before customers are inserted one by one beside them,
    which slows them down: it takes a third of two cores."""
    return min(FIRST_SECONDS_PER_CUSTOMER * customers, HEAD_START_SHARE * limit)


def is_open(effort: Effort) -> bool:
    """Whether all that the policy does is left to the rules."""
    return not _asked(effort)


def in_batch(effort: Effort) -> Effort:
    """What suits a problem that is decoded with others, where the effort leaves it open."""
    return (
        replace(effort, starts=BATCH_STARTS, augmentations=1, recombine=True) if is_open(effort) else effort
    )


def options_for(
    effort: Effort,
    customers: int,
    seconds: float | None = None,
    unit_seconds: Callable[[], float] = lambda: 0.0,
    reembeddings: tuple[float, ...] = (0.0,),
    seed: int = 0,
) -> DecodeOptions:
    """What is asked for; else the most trajectories that are expected in time for a first answer, and rounds
    for the rest; without a time, what suits the size.

    `unit_seconds` says how long a unit of `work` takes, and `reembeddings` how many suit the policy.
    """
    if asked := _asked(effort):
        return DecodeOptions(**asked, seed=seed)  # type: ignore[arg-type]
    if seconds is None and customers > WHOLE_CUSTOMERS:
        return DecodeOptions(
            starts=SECTOR_STARTS[0], augmentations=1, sector=SECTOR_CUSTOMERS, recombine=True, seed=seed
        )
    if seconds is None:
        return DecodeOptions(augmentations=1 if effort.polish else MAPS, recombine=True, seed=seed)
    share = FIRST_SHARE if customers <= WHOLE_CUSTOMERS else FIRST_SHARE_SECTORS
    units = share * seconds / unit_seconds()
    *better, cheapest = _ladder(customers)
    chosen = next((one for one in better if work(one, customers, reembeddings) <= units), cheapest)
    return replace(chosen, recombine=True, rounds=None, seed=seed)


def work(
    options: DecodeOptions, customers: int, reembeddings: tuple[float, ...], steps: float | None = None
) -> float:
    """What the first answer takes, in embeddings of trajectories and nodes that are computed."""
    size = min(customers, options.sector or customers)
    rates, starts = options.rates(size, reembeddings), options.trajectories(size)
    copies = options.copies * options.share_of_copies(len(rates)) * -(-customers // size)
    attention = 1 + size / 600  # an embedding costs more where there are many nodes to attend to
    total = 0.0
    for rate in rates:
        step = STEP_WORK + copies * attention * (starts + NODE_WORK * rate * size)
        total += (
            ENCODER_WORK * copies * attention * size
            + (STEPS_PER_CUSTOMER * size if steps is None else steps) * step
        )
    return total


def _asked(effort: Effort) -> dict[str, object]:
    """What the effort says about decoding."""
    values = {f.name: getattr(effort, f.name, None) for f in fields(DecodeOptions)}
    return {name: value for name, value in values.items() if value is not None}


def _ladder(customers: int) -> Iterator[DecodeOptions]:
    """Options to choose from, from much work to little."""
    if customers <= WHOLE_CUSTOMERS:
        for maps in (4, 2, 1):
            yield DecodeOptions(augmentations=maps)
    for starts in SECTOR_STARTS:
        yield DecodeOptions(starts=starts, augmentations=1, sector=SECTOR_CUSTOMERS)
    for sector in SMALL_SECTOR_CUSTOMERS:
        yield DecodeOptions(
            starts=SECTOR_STARTS[-1], augmentations=1, update_rates=(SMALL_SECTOR_RATE,), sector=sector
        )
