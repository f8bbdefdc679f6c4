"""Who can be served at all: what the fields of a problem mean together.

In a sound problem every customer could be served by a route of its own; each fault of that kind names the
customer and the reason. A problem asks for this while it is constructed, so the functions here take what they
need of its fields, and nothing is imported from there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from chainroute.errors import Fault, Place
from chainroute.problem.fields import told_of_each
from chainroute.problem.measure import FloatArray, at_most
from chainroute.problem.variants import Backhaul
from chainroute.runtime.numerals import number_text

Places = Callable[[int], Place]  # of a customer, counted from 0


@dataclass(frozen=True)
class Trips:
    """What it takes vehicles of each kind and depot (row) to serve each customer (column) alone.

    The way back takes nothing where routes are open. Where there is no road, a way is infinite.
    """

    go_time: FloatArray
    back_time: FloatArray
    go_length: FloatArray  # with what else counts towards the limit
    back_length: FloatArray
    leaves: FloatArray  # (K, 1) when the vehicles may leave their depot; infinite: never
    returns: FloatArray  # (K, 1) when they must have ended
    limit: FloatArray  # (K, 1) of the length; infinite where there is none
    longest: FloatArray  # (K, 1) of the time
    fits: NDArray[np.bool_]  # whether the vehicle holds the demand
    skilled: NDArray[np.bool_]  # whether it can do what the customer needs

    @classmethod
    def of_all(cls, several: Sequence[Trips]) -> Trips:
        """The rows of all."""
        return cls(
            *(np.concatenate(those) for those in zip(*(vars(t).values() for t in several), strict=True))
        )


@dataclass(frozen=True)
class Requirements:
    """What customers ask for."""

    windows: FloatArray  # (W, N, 2), the earliest first; [inf, -inf] in place of those that are not there
    service: FloatArray  # (N,)
    required: NDArray[np.bool_]  # (N,)
    needs: Sequence[Collection[str]]  # skills, (N,), or nothing
    time_slack: float
    length_slack: float
    place: Places
    moment: Callable[[float], str]  # a time in words
    span: Callable[[float], str]  # a length of time in words


class Reach:
    """Who can be served by whom, one customer at a time."""

    def __init__(self, trips: Trips, requirements: Requirements):
        self.trips, self.requirements = trips, requirements
        self.arrival = trips.leaves + trips.go_time
        self.length = trips.go_length + trips.back_length
        self.in_time = self._in_time()
        within = at_most(self.length, trips.limit, requirements.length_slack)
        self.in_limit = np.asarray(within & np.isfinite(self.length))
        self.able = trips.fits & trips.skilled
        self.possible = np.asarray((self.in_time & self.in_limit & self.able).any(axis=0))

    def _in_time(self) -> NDArray[np.bool_]:
        trips, slack = self.trips, self.requirements.time_slack
        start = np.full_like(self.arrival, np.inf)
        for opening, closing in (window.T for window in self.requirements.windows):
            timely = at_most(self.arrival, closing, slack)
            start = np.minimum(start, np.where(timely, np.maximum(self.arrival, opening), np.inf))
        home = start + self.requirements.service + trips.back_time
        takes = trips.go_time + self.requirements.service + trips.back_time
        timely = at_most(home, trips.returns, slack) & at_most(takes, trips.longest, slack)
        return np.asarray(timely & np.isfinite(home))

    def faults(self) -> list[Fault]:
        """One for each customer that must be served and that no vehicle can serve, not even alone."""
        told_before = ~self.trips.fits.any(axis=0)  # by `unloadable`
        lost = np.flatnonzero(~self.possible & self.requirements.required & ~told_before).tolist()
        if not lost:
            return []
        reasons = {i: self.reason(i) for i in lost}
        found: list[Fault] = []
        for code in dict.fromkeys(CODES):
            bad = np.zeros(len(self.possible), dtype=bool)
            bad[[i for i, reason in reasons.items() if reason[0] == code]] = True
            found += told_of_each(
                "customers", bad, code, lambda i: (reasons[i][1], self.requirements.place(i))
            )
        return found

    def reason(self, i: int) -> tuple[str, str]:
        """Why nobody can serve a customer: a code and a sentence."""
        trips, able = self.trips, self.able[:, i]
        if not trips.skilled[:, i].any():
            skills = ", ".join(sorted(self.requirements.needs[i]))
            return "skill-missing", f"no vehicle has the skills that it needs: {skills}."
        if not able.any():
            needs = self.requirements.needs
            skilled = " with the skills that it needs" if needs and needs[i] else ""
            return "demand-above-capacity", f"no vehicle{skilled} can carry its demand."
        if not np.isfinite(self.length[able, i]).any():
            return "no-road", self._missing_road(i)
        if not self.in_limit[able, i].any():
            need, limit = number_text(self.length[able, i].min()), number_text(trips.limit[able].max())
            return "limit-too-short", f"the shortest trip takes {need}, the limit is {limit}."
        if self.in_time[able, i].any():
            return "window-unreachable", "no depot reaches it both inside the windows and within the limit."
        return "window-unreachable", self._untimely(i)

    def _missing_road(self, i: int) -> str:
        able = self.able[:, i]
        ways = (self.trips.go_length, self.trips.back_length)
        to, back = (np.isfinite(way[able, i]).any() for way in ways)
        if to and back:
            return "no depot has both a road to it and one back, not even by way of others."
        ends = "back from it to a depot" if to else "to it from a depot"
        return f"there is no road {ends}, not even by way of others."

    def _untimely(self, i: int) -> str:
        trips, able, slack = self.trips, self.able[:, i], self.requirements.time_slack
        moment, span = self.requirements.moment, self.requirements.span
        if not np.isfinite(trips.leaves[able]).any():
            return "the shift of every vehicle for it begins after its depot has closed."
        arrival = self.arrival[able, i].min()
        windows = self.requirements.windows[:, i]
        opening, closing = windows[0, 0], windows[:, 1].max()
        if not at_most(arrival, closing, slack):
            return f"is reached at {moment(arrival)} at the earliest, but closes at {moment(closing)}."
        takes = (trips.go_time + self.requirements.service + trips.back_time)[able, i]
        if not at_most(takes, trips.longest[able, 0], slack).any():
            need, most = span(takes.min()), span(trips.longest[able].max())
            return f"the shortest trip takes a time of {need}, and vehicles may be out for {most}."
        when = f"after service in [{moment(opening)}, {moment(closing)}]"
        return f"{when} no vehicle is back before its depot closes."


# Why a customer cannot be served, in the order in which faults are told.
CODES = ("skill-missing", "demand-above-capacity", "no-road", "limit-too-short", "window-unreachable")


def unloadable(
    delivery: FloatArray,
    pickup: FloatArray,
    backhaul: Backhaul,
    rooms: Sequence[tuple[float, float]],  # number and capacity of the vehicles of each kind, trips counted
    slack: float,
    required: NDArray[np.bool_],
    place: Places,
) -> Iterator[Fault]:
    """A fault for what vehicles cannot carry."""
    if backhaul is Backhaul.NONE and (pickup > 0).any():
        some = place(int(np.argmax(pickup > 0)))
        yield Fault("backhaul-rule-missing", f"{some} has a pickup, but the rule is 'none'.", "backhaul")
    demand, capacity = np.maximum(delivery, pickup), max(capacity for _, capacity in rooms)

    def above(i: int) -> tuple[str, Place]:
        return f"has a demand of {number_text(demand[i])}; a vehicle holds {number_text(capacity)}.", place(i)

    too_much = (demand > capacity * (1 + slack)) & required
    yield from told_of_each("customers", too_much, "demand-above-capacity", above)
    total = max(float(goods[required].sum()) for goods in (delivery, pickup)) * (1 - slack)
    if total > sum(count * capacity for count, capacity in rooms):
        if len(rooms) == 1 and math.isfinite(total / capacity):
            message = f"{rooms[0][0]:g} vehicles, but the demand fills {math.ceil(total / capacity)}."
        else:
            room = sum(count * capacity for count, capacity in rooms)
            message = (
                f"all vehicles together carry {number_text(room)}, but the demand is {number_text(total)}."
            )
        yield Fault("fleet-too-small", message, "fleet")


def shortest_paths(costs: FloatArray, num_depots: int) -> FloatArray:
    """Dijkstra over a dense matrix: from each depot to every customer, (M, N)."""
    paths = []
    for depot in range(num_depots):
        best = costs[depot].copy()
        best[depot] = 0.0
        todo = np.ones(len(costs), dtype=bool)
        for _ in range(len(costs)):
            at = np.argmin(np.where(todo, best, np.inf))
            todo[at] = False
            best = np.minimum(best, best[at] + costs[at])
        paths.append(best[num_depots:])
    return np.array(paths)
