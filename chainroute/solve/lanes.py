"""Which solvers run when: a table of lanes, by facts about the problem, the time and the machine."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

MAX_CUSTOMERS = 10_000  # by parts
MAX_WHOLE_CUSTOMERS = 5_000  # where each process holds all matrices
SEARCH_LANES = 2  # that search the whole problem in parallel, on two cores and more
NO_SOLVER = "Neither PyVRP nor torch is installed (pip install 'chainroute[neural]')."
NO_SEARCH = "PyVRP is not installed (pip install 'chainroute')."
NO_NETWORK = "torch is not installed (pip install 'chainroute[neural]')."
NO_ANNEALING = "numba is not installed (pip install 'chainroute[large]'): the plan may end a tenth higher."


class Lane(StrEnum):
    """What a thread does, which drives worker processes."""

    CONSTRUCT = "better plans by construction; ejection where vehicles are few"
    NETWORK = "the network alone"
    SEARCH = "PyVRP on the whole problem"
    OTHER_SEARCH = "PyVRP with another seed, once ejection leaves the core"
    NETWORK_FIRST = "the network, then PyVRP from its routes, once ejection leaves the core"
    RESCUE = "the network, where the searches fail or find nothing for long"
    PARTS = "parts of a plan, by annealing or PyVRP"


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What decides which lanes run."""

    customers: int
    cores: int
    timed: bool  # there is a time limit
    polish: bool  # the caller wants searches
    searches: bool  # PyVRP searches
    asks: bool  # a network can be asked
    reducible: bool  # the network can hold the problem, or one that stands for it
    by_parts: bool  # the problem suits a search by parts
    has_plan: bool  # there is a first plan
    anneals: bool  # parts can be annealed
    annealing_missing: bool  # annealing would be best, and numba is missing
    is_short: bool  # the network would have too little time
    has_time_for_whole: bool  # beside the parts

    @property
    def takes_parts(self) -> bool:
        return self.by_parts and self.has_plan


def lanes_for(facts: Facts) -> list[Lane]:
    """The lanes that run in parallel."""
    if not facts.searches:
        alone = facts.polish and not facts.asks
        return [Lane.CONSTRUCT] if alone else [Lane.CONSTRUCT, Lane.NETWORK]
    if facts.takes_parts:
        fits = facts.customers <= MAX_WHOLE_CUSTOMERS and facts.has_time_for_whole and facts.cores > 1
        whole = [Lane.SEARCH] if fits else []
        return [*whole, *[Lane.PARTS] * (facts.cores - len(whole))]
    if facts.cores == 1:
        return [Lane.SEARCH, Lane.RESCUE, Lane.CONSTRUCT]
    if facts.timed and facts.is_short:
        return [Lane.SEARCH, Lane.OTHER_SEARCH, Lane.RESCUE, Lane.CONSTRUCT]
    return [Lane.SEARCH, Lane.NETWORK_FIRST, Lane.CONSTRUCT]


def search_workers(facts: Facts) -> int:
    """How many workers search."""
    return facts.cores if facts.takes_parts else min(facts.cores, SEARCH_LANES)


def refusal(facts: Facts) -> tuple[str, str] | None:
    """The code and the message of what keeps every lane from running."""
    n, most = facts.customers, MAX_CUSTOMERS if facts.by_parts else MAX_WHOLE_CUSTOMERS
    if n > most:
        why = "" if facts.by_parts else " where a problem is not searched by parts"
        return "too-large", f"{n} customers; at most {most:,}{why}."
    if n > MAX_WHOLE_CUSTOMERS and not facts.takes_parts:
        return "no-plan-found", "no first plan, whose parts would be searched, was made in time."
    return None


def notes_for(facts: Facts) -> list[str]:
    """What the caller should know about lanes that do not run."""
    notes = []
    if facts.reducible and facts.polish and not facts.searches:
        notes.append(NO_SEARCH if facts.asks else NO_SOLVER)
    elif facts.reducible and facts.polish and not facts.asks:
        notes.append(NO_NETWORK)
    return [*notes, NO_ANNEALING] if facts.searches and facts.annealing_missing else notes
