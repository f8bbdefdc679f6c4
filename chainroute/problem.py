"""Problem: one immutable, validated routing instance in the user's own units.

Locations are numbered depots first, then customers: with M depots and N customers, depot d is location d and
the i-th customer is location M + i. Everything that is read off a problem (distances, names, windows) uses
this numbering. A variant is not a class: it follows from which attributes a problem has.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from chainroute import measure
from chainroute.errors import ChainRouteError, Fault, Place, printable
from chainroute.measure import FloatArray, Metric, Rounding
from chainroute.numerals import told
from chainroute.servable import Trips, shortest_paths, unloadable, unservable
from chainroute.validate import frozen, validated
from chainroute.variants import Backhaul, Variant


@dataclass(frozen=True, eq=False, kw_only=True)
class Problem:
    """Arrays may be given as anything NumPy makes an array of; they are kept as read-only float64."""

    capacity: float
    delivery: FloatArray  # (N,) what each customer receives; its linehaul demand
    pickup: FloatArray = ()  # type: ignore[assignment]  # (N,) what it hands over; its backhaul demand
    service: FloatArray = ()  # type: ignore[assignment]  # (N,) time spent at each customer
    num_depots: int = 1
    coords: FloatArray | None = None  # (M + N, 2)
    # From row to column, (M + N, M + N); infinite where there is no road (`roads`).
    distance_matrix: FloatArray | None = None  # goes before the coordinates
    duration_matrix: FloatArray | None = None  # without it, durations are distances
    time_windows: FloatArray | None = None  # (M + N, 2) opening and closing; closing may be infinite
    distance_limit: float | None = None  # of each route, return leg included unless routes are open
    limit_counts_service: bool = False  # service counts towards the limit, as in CMT's and Cordeau's files
    open: bool = False  # routes end at their last customer
    backhaul: Backhaul = Backhaul.NONE
    fleet: int | None = None  # vehicles at each depot; None for as many as needed
    names: Sequence[str] = ()  # (M + N,); by default "depot" or "depot 1".. and customers "1".."N"
    metric: Metric = Metric.EUCLIDEAN
    rounding: Rounding = Rounding.EXACT
    name: str = "problem"
    day: str | None = (
        None  # whose midnight is time 0, as 2026-11-16 or any: times are seconds; None: any unit
    )

    def __post_init__(self) -> None:
        vars(self).update(validated(vars(self)))
        if faults := [*self._unloadable(), *self._unservable()]:
            raise ChainRouteError(faults)

    # -- sizes and kind

    @property
    def num_customers(self) -> int:
        return len(self.delivery)

    @property
    def num_locations(self) -> int:
        return self.num_depots + self.num_customers

    @property
    def depots(self) -> range:
        return range(self.num_depots)

    @property
    def customers(self) -> range:
        return range(self.num_depots, self.num_locations)

    @property
    def vehicles(self) -> int | None:
        """How many all depots have together; None for as many as needed."""
        return None if self.fleet is None else self.fleet * self.num_depots

    @property
    def variant(self) -> Variant:
        return Variant(
            open=self.open,
            backhaul=self.backhaul,
            limit=self.distance_limit is not None,
            time_windows=self.time_windows is not None,
            multi_depot=self.num_depots > 1,
        )

    # -- distances and durations

    def distance(self, start: ArrayLike, end: ArrayLike) -> FloatArray:
        """The length from location to location, rounded as the problem says, infinite where there is no road;
        the arguments broadcast."""
        start, end = np.asarray(start, dtype=np.intp), np.asarray(end, dtype=np.intp)
        if self.distance_matrix is not None:
            return np.asarray(self.distance_matrix[start, end])
        assert self.coords is not None  # a problem has one or the other
        straight = measure.distance(self.metric, self.rounding, self.coords[start], self.coords[end])
        if self.has_all_roads:
            return straight
        return np.where(np.isinf(self.duration(start, end)), np.inf, straight)

    def duration(self, start: ArrayLike, end: ArrayLike) -> FloatArray:
        """Travel time from location to location; the arguments broadcast."""
        if self.duration_matrix is not None:
            start, end = np.asarray(start, dtype=np.intp), np.asarray(end, dtype=np.intp)
            return np.asarray(self.duration_matrix[start, end])
        return self.distance(start, end)

    @cached_property
    def has_all_roads(self) -> bool:
        """Whether there is a road from everywhere to everywhere."""
        matrices = (self.distance_matrix, self.duration_matrix)
        return all(matrix is None or bool(np.isfinite(matrix).all()) for matrix in matrices)

    @cached_property
    def distances(self) -> FloatArray:
        """The whole matrix, (M + N, M + N)."""
        if self.distance_matrix is not None:
            return self.distance_matrix
        every = np.arange(self.num_locations)
        return frozen(self.distance(every[:, None], every[None, :]))

    @cached_property
    def durations(self) -> FloatArray:
        return self.distances if self.duration_matrix is None else self.duration_matrix

    # -- per location, (M + N, ...): zeros at depots, and windows that never close where there are none

    @cached_property
    def deliveries(self) -> FloatArray:
        return frozen(np.concatenate([np.zeros(self.num_depots), self.delivery]))

    @cached_property
    def pickups(self) -> FloatArray:
        return frozen(np.concatenate([np.zeros(self.num_depots), self.pickup]))

    @cached_property
    def services(self) -> FloatArray:
        return frozen(np.concatenate([np.zeros(self.num_depots), self.service]))

    @cached_property
    def windows(self) -> FloatArray:
        if self.time_windows is not None:
            return self.time_windows
        return frozen(np.tile([0.0, math.inf], (self.num_locations, 1)))

    # -- by which share bounds may be exceeded: nothing where all numbers are whole, rounding errors elsewhere

    @cached_property
    def load_slack(self) -> float:
        whole = measure.is_whole(self.capacity, self.delivery, self.pickup)
        return 0.0 if whole else measure.LOAD_SLACK

    @cached_property
    def time_slack(self) -> float:
        travel = self.duration_matrix
        whole = self._whole_distances() if travel is None else measure.is_whole(travel)
        return 0.0 if whole and measure.is_whole(self.windows, self.service) else measure.SLACK

    @cached_property
    def length_slack(self) -> float:
        limit = math.inf if self.distance_limit is None else self.distance_limit
        counted = self.service if self.limit_counts_service else 0.0
        return 0.0 if measure.is_whole(limit, counted) and self._whole_distances() else measure.SLACK

    def _whole_distances(self) -> bool:
        if self.distance_matrix is not None:
            return measure.is_whole(self.distance_matrix)
        apart = 0.0 if self.coords is None else np.ptp(self.coords, axis=0).max()
        return self.rounding in measure.TO_INTEGERS and bool(apart < measure.EXACT / 2)

    # -- whether every customer can be served

    def _unloadable(self) -> list[Fault]:
        args = self.capacity, self.vehicles, self.load_slack, self._place
        return [*unloadable(self.delivery, self.pickup, self.backhaul, *args)]

    def _unservable(self) -> list[Fault]:
        """Those whom no vehicle can serve by a route of its own, and why."""
        if self.time_windows is None and self.distance_limit is None and self.has_all_roads:
            return []
        depots, customers = np.asarray(self.depots)[:, None], np.asarray(self.customers)[None, :]
        trips = self._trips(
            (self.duration(depots, customers), self.duration(customers, depots)),
            (self.distance(depots, customers), self.distance(customers, depots)),
        )
        matrices = self.distance_matrix is not None or self.duration_matrix is not None
        if not trips.possible().all() and (matrices or self.rounding is not Rounding.EXACT):
            # A detour may be shorter than the direct way here, so only shortest paths prove anything.
            m = self.num_depots
            trips = self._trips(
                (shortest_paths(self.durations, m), shortest_paths(self.durations.T, m)),
                (shortest_paths(self.distances, m), shortest_paths(self.distances.T, m)),
            )
        return unservable(trips, self._place)

    def _trips(self, times: tuple[FloatArray, FloatArray], lengths: tuple[FloatArray, FloatArray]) -> Trips:
        """From ways to each customer and back."""
        hours = self.windows[: self.num_depots, :, None]
        counted = self.service if self.limit_counts_service else 0.0
        return Trips(
            go_time=times[0],
            back_time=np.zeros_like(times[1]) if self.open else times[1],
            go_length=lengths[0] + counted,
            back_length=np.zeros_like(lengths[1]) if self.open else lengths[1],
            leaves=hours[:, 0],
            returns=np.full_like(hours[:, 1], math.inf) if self.open else hours[:, 1],
            windows=self.windows[self.num_depots :],
            service=self.service,
            limit=math.inf if self.distance_limit is None else self.distance_limit,
            time_slack=self.time_slack,
            length_slack=self.length_slack,
        )

    def _place(self, customer: int) -> Place:
        """Where a fault of a customer is, counted from 0."""
        location = self.num_depots + customer
        return Place("customer", location=location, name=self.names[location])

    # -- as a value

    def replace(self, **changes: Any) -> Problem:
        """A problem like this one with some fields changed, validated anew."""
        return dataclasses.replace(self, **changes)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Problem):
            return NotImplemented
        fields = (f.name for f in dataclasses.fields(self))
        return all(np.array_equal(getattr(self, f), getattr(other, f)) for f in fields)

    def __getstate__(self) -> dict[str, Any]:
        """For another process: the fields alone, since matrices that follow from them are soon made again."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        depots = "1 depot" if self.num_depots == 1 else f"{self.num_depots} depots"
        size = f"{self.num_customers} customers, {depots}"
        return printable(f"{self.name}: {self.variant}, {size}, capacity {told(self.capacity)}")

    def __repr__(self) -> str:
        return f"<Problem {self}>"
