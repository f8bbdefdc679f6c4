"""The legs of routes in arrays, and what one more customer on each of them would mean: all rules at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from chainroute.problem import Problem
from chainroute.problem.measure import FloatArray
from chainroute.problem.variants import Backhaul

Locations = NDArray[np.intp]
Flags = NDArray[np.bool_]
FIELD_KINDS = {"start": np.intp, "end": np.intp, "picked_up": np.bool_, "delivers": np.bool_}  # not real


@dataclass(frozen=True)
class Bounds:
    """What a route may carry, take and cover, with half of the slack that the judge gives: what just suffices
    must not be lost to rounding."""

    problem: Problem

    @cached_property
    def room(self) -> float:
        return self.problem.capacity * (1 + self.problem.load_slack / 2)

    @cached_property
    def limit(self) -> float:
        p = self.problem
        return math.inf if p.distance_limit is None else p.distance_limit * (1 + p.length_slack / 2)

    @cached_property
    def closing(self) -> FloatArray:
        closing = self.problem.windows[:, 1]
        slack = self.problem.time_slack / 2 * np.where(np.isfinite(closing), np.abs(closing), 0.0)
        return np.asarray(closing + slack)

    @property
    def ordered(self) -> bool:
        return self.problem.backhaul is Backhaul.LINEHAULS_FIRST


@dataclass(frozen=True)
class Legs:
    """Legs of routes, of any shape; the last of a route leads back to its depot."""

    start: Locations
    end: Locations
    length: FloatArray
    leaves: FloatArray  # when the vehicle sets out on the leg
    latest: FloatArray  # when it must have arrived for the rest of the route to be in time
    before: FloatArray  # the largest load up to this leg, and from it on
    after: FloatArray
    left: FloatArray  # of the limit, on the whole route
    picked_up: Flags  # a pickup lies behind
    delivers: Flags  # a delivery lies ahead

    @staticmethod
    def empty(count: int) -> Legs:
        return Legs(*(np.zeros(count, FIELD_KINDS.get(f.name, np.float64)) for f in fields(Legs)))

    @staticmethod
    def of(bounds: Bounds, starts: Locations) -> Legs:
        """The legs of routes of one length, whose depot and visits are the last axis."""
        p = bounds.problem
        path = np.concatenate([starts, starts[..., :1]], axis=-1)
        start, end = path[..., :-1], path[..., 1:]
        length, service = p.distance(start, end), p.services[start]
        if p.open:
            length[..., -1] = 0.0
        delivery, pickup = p.deliveries[start], p.pickups[start]
        load = delivery.sum(-1, keepdims=True) + np.cumsum(pickup - delivery, axis=-1)
        none = np.zeros(start.shape)
        picked_up = delivers = none.astype(bool)
        leaves = latest = left = none
        if bounds.ordered:
            picked_up = np.cumsum(pickup, axis=-1) > 0
            delivers = _backwards(np.cumsum(_backwards(delivery), axis=-1)) - delivery > 0
        if p.distance_limit is not None:
            used = length.sum(-1) + (service.sum(-1) if p.limit_counts_service else 0.0)
            left = np.broadcast_to((bounds.limit - used)[..., None], start.shape)
        if p.time_windows is not None:
            travel = length if p.duration_matrix is None else p.duration(start, end)
            if p.open:
                travel[..., -1] = 0.0
            elapsed = np.cumsum(service + travel, axis=-1)  # on the path, without waiting
            elapsed = np.concatenate([np.zeros_like(elapsed[..., :1]), elapsed], axis=-1)
            here = elapsed[..., :-1]
            leaves = np.maximum.accumulate(p.windows[start, 0] - here, axis=-1) + here + service
            closing = bounds.closing[path]
            if p.open:
                closing[..., -1] = np.inf
            with np.errstate(invalid="ignore"):  # where there is no road, no arrival is early enough
                spare = _backwards(np.minimum.accumulate(_backwards(closing - elapsed), axis=-1))
                latest = (spare + elapsed)[..., 1:]
        before = np.maximum.accumulate(load, axis=-1)
        after = _backwards(np.maximum.accumulate(_backwards(load), axis=-1))
        return Legs(start, end, length, leaves, latest, before, after, left, picked_up, delivers)

    @staticmethod
    def joined(parts: Sequence[Legs]) -> Legs:
        """The legs of all parts, one after the other."""
        table = np.concatenate([part.table for part in parts], axis=1)
        kinds = (FIELD_KINDS.get(f.name, np.float64) for f in fields(Legs))
        return Legs(*(row.astype(kind, copy=False) for row, kind in zip(table, kinds, strict=True)))

    @cached_property
    def table(self) -> FloatArray:
        """Every field as a row of numbers, so that many parts are soon joined."""
        return np.array([getattr(self, f.name).ravel() for f in fields(Legs)], dtype=np.float64)

    def put(self, rows: list[int] | slice, legs: Legs) -> None:
        """Writes legs into these rows, one after another."""
        for f in fields(Legs):
            getattr(self, f.name)[rows] = getattr(legs, f.name).ravel()

    def first(self, count: int) -> Legs:
        return Legs(*(getattr(self, f.name)[:count] for f in fields(Legs)))

    def in_time(self, bounds: Bounds) -> Flags:
        """Whether each route is: where detours are shorter, one with a visit less may be late."""
        p = bounds.problem
        if p.time_windows is None:
            return np.ones(self.start.shape[:-1], dtype=bool)
        last = (self.end[..., 0] < p.num_depots) & p.open
        travel = np.where(last, 0.0, p.duration(self.start[..., 0], self.end[..., 0]))
        return np.asarray(self.leaves[..., 0] + travel <= self.latest[..., 0])

    def lengthening(self, bounds: Bounds, customer: int) -> FloatArray:
        """How much longer the customer makes the route on each leg; infinite if that breaks a rule."""
        p, start, end = bounds.problem, self.start, self.end
        last = (end < p.num_depots) & p.open
        if start.size > p.num_locations:  # many legs meet at a place
            everywhere = np.arange(p.num_locations)
            to, onward = p.distance(everywhere, customer)[start], p.distance(customer, everywhere)[end]
        else:
            to, onward = p.distance(start, customer), p.distance(customer, end)
        more = to + np.where(last, 0.0, onward) - self.length
        fits = np.ones(more.shape, dtype=bool)
        if delivery := p.deliveries[customer]:
            fits &= self.before + delivery <= bounds.room
        if pickup := p.pickups[customer]:
            fits &= self.after + pickup <= bounds.room
        if bounds.ordered and delivery:
            fits &= ~self.picked_up
        if bounds.ordered and pickup:
            fits &= ~self.delivers
        if p.time_windows is not None:
            if p.duration_matrix is not None:
                to, onward = p.duration(start, customer), p.duration(customer, end)
            begins = np.maximum(self.leaves + to, p.windows[customer, 0])
            arrives = begins + p.services[customer] + np.where(last, 0.0, onward)
            fits &= (begins <= bounds.closing[customer]) & (arrives <= self.latest) & (arrives < np.inf)
        if p.distance_limit is not None:
            service = p.services[customer] if p.limit_counts_service else 0.0
            fits &= more + service <= self.left
        return np.where(fits, more, np.inf)


def _backwards(values: FloatArray) -> FloatArray:
    return values[..., ::-1]
