"""When a vehicle is where: the timetable of a route by the rules alone.

A vehicle leaves so that its route takes as little time as can be, and of such departures at the earliest. It
waits where it comes before a window opens. Where a window is missed, it goes on at once from its earliest
departure; to say so is for the judge.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

ROUNDING_ERROR = 1e-12  # share of a time, which sums in double precision may be off by

Windows = Sequence[tuple[float, float]]  # of one place, the earliest first


@dataclass(frozen=True)
class Timetable:
    departure: float
    arrivals: tuple[float, ...]  # at each stop
    starts: tuple[float, ...]  # of service there
    end: float  # of service at the last stop
    late: bool  # a window is missed

    @property
    def duration(self) -> float:
        return self.end - self.departure


@dataclass(frozen=True)
class Course:
    """The stops of a route after its departure: ways to them, their windows and services."""

    hours: tuple[float, float]  # in which the vehicle may leave
    travel: Sequence[float]
    windows: Sequence[Windows]
    service: Sequence[float]
    slack: float  # by which share of a closing time service may start later
    shift_end: float = math.inf  # by when a later departure has to end, too

    def run(self, departure: float) -> Timetable:
        """The timetable of that departure, every stop as early as can be."""
        time, late = departure, False
        arrivals, starts = [], []
        for leg, windows, service in zip(self.travel, self.windows, self.service, strict=True):
            arrival = time + leg
            start = next((max(arrival, a) for a, b in windows if self._in_time(arrival, b)), None)
            late |= start is None
            start = arrival if start is None else start
            arrivals.append(arrival)
            starts.append(start)
            time = start + service
        return Timetable(departure, tuple(arrivals), tuple(starts), time, late)

    def _in_time(self, arrival: float, closing: float) -> bool:
        return arrival <= closing or (self.slack > 0 and arrival <= closing + self.slack * abs(closing))

    def best(self) -> Timetable:
        """The timetable that takes least time."""
        first = self.run(self.hours[0])
        if first.late or first.arrivals == first.starts:
            return first
        if all(len(windows) == 1 for windows in self.windows):
            return self.run(first.departure + self._delay(first))
        tables = (self.run(departure) for departure in self._departures(first.departure))
        in_time = [t for t in tables if not t.late and self._in_time(t.end, self.shift_end)]
        least = min(t.duration for t in (first, *in_time))
        # What rounding makes of it is no less time: the next day would be as good as this morning.
        alike = (t for t in (first, *in_time) if t.duration <= least + ROUNDING_ERROR * abs(t.end))
        return min(alike, key=lambda t: (t.end, t.duration))

    def _delay(self, first: Timetable) -> float:
        """By how much the vehicle can leave later and be at its end no later."""
        waited, delay = 0.0, max(self.hours[1] - first.departure, 0.0)
        for arrival, start, ((_, closing),) in zip(first.arrivals, first.starts, self.windows, strict=True):
            waited += start - arrival
            delay = min(delay, waited + max(closing - start, 0.0))
        return min(delay, waited)

    def _departures(self, earliest: float) -> Iterator[float]:
        """The latest departure, and those at which a stop is reached, without waiting before, as a window of
        it opens or closes: between two of them, a later departure either saves time all along or never."""
        if earliest < self.hours[1] < math.inf:
            yield self.hours[1]
        gone = 0.0
        for leg, windows, service in zip(self.travel, self.windows, self.service, strict=True):
            gone += leg
            yield from (
                moment - gone
                for window in windows
                for moment in window
                if earliest < moment - gone <= self.hours[1] and moment < math.inf
            )
            gone += service
