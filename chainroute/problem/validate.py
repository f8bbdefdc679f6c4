"""What makes each field of a problem sound, all faults reported at once.

`validated` takes the fields as they were given and returns them in their final form (read-only float64
arrays, names filled in). What the fields mean together is for `servable`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from datetime import date
from typing import Any

import numpy as np

from chainroute.errors import ChainRouteError, Place
from chainroute.problem.fields import MAX_NUMBER, Checks, frozen, left_out
from chainroute.problem.fleet import folded, validated_types
from chainroute.problem.measure import ANY_DAY, Metric, Rounding
from chainroute.problem.variants import Backhaul
from chainroute.runtime.numerals import told

MAX_LOCATIONS = 10_100  # 10,000 customers and their depots; a dense matrix of this size takes 820 MB


def validated(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a problem in their final form; all their faults are raised together."""
    checks = _Checks(dict(fields))
    checks.run()
    if checks.faults:
        raise ChainRouteError(checks.faults)
    return folded(checks.fields)


def is_day(day: object) -> bool:
    """Whether this says which day it is: a date in ISO's spelling, any, or nothing at all."""
    if day is None or day == ANY_DAY:
        return True
    try:
        return isinstance(day, str) and date.fromisoformat(day).isoformat() == day
    except ValueError:
        return False


class _Checks(Checks):
    def run(self) -> None:
        self.choices()
        if self.sizes():
            self.demands()
            self.types()
            self.numbers()
            self.places()
            self.windows()
            self.several_windows()
            self.needs()
            self.labels()

    @property
    def num_customers(self) -> int:
        return len(self.fields["delivery"])

    @property
    def num_locations(self) -> int:
        return int(self.fields["num_depots"]) + self.num_customers

    # -- each field for itself

    def choices(self) -> None:
        for field, kind in (("backhaul", Backhaul), ("metric", Metric), ("rounding", Rounding)):
            self.choice(field, kind)
        for field in ("open", "limit_counts_service"):
            self.boolean(field)

    def sizes(self) -> bool:
        """The number of depots and customers, which all other checks need."""
        if not self.whole("num_depots", 1, "no-depot", "the problem has no depot."):
            return False
        if not self.array("delivery", (None,)):
            return False
        if self.num_customers < 1:
            self.fault("no-customer", "the problem has no customers.", "delivery")
        elif self.num_locations > MAX_LOCATIONS:
            self.fault("too-large", f"{self.num_locations} locations; at most {MAX_LOCATIONS}.", "delivery")
        else:
            return True
        return False

    def demands(self) -> None:
        self.nonnegative("delivery")
        for field in ("pickup", "service"):
            if left_out(self.fields[field]):
                self.fields[field] = frozen(np.zeros(self.num_customers))
            elif self.array(field, (self.num_customers,)):
                self.nonnegative(field)

        if left_out(self.fields["prize"]):
            self.fields["prize"] = ()
        elif self.array("prize", (self.num_customers,), infinite=True):
            self.nonnegative("prize")
            if np.isinf(self.fields["prize"]).all():
                self.fields["prize"] = ()

    def types(self) -> None:
        p = self.fields
        if left_out(p["vehicle_types"]):
            p["vehicle_types"] = ()
            return
        args = p["num_depots"], self.num_locations, bool(p["open"])
        p["vehicle_types"], faults = validated_types(p["vehicle_types"], *args)
        self.faults += faults
        if p["capacity"] is None:
            capacities = [1.0] if faults else [t.capacity for t in p["vehicle_types"]]
            p["capacity"] = None if None in capacities else max(capacities)

    def numbers(self) -> None:
        p = self.fields
        self.positive("capacity")
        for field in ("fixed_cost", "cost_per_distance", "cost_per_time"):
            self.at_least_zero(field)
        if isinstance(p["distance_limit"], float) and p["distance_limit"] == math.inf:
            self.fields["distance_limit"] = None
        if p["distance_limit"] is not None:
            self.positive("distance_limit")
        if p["fleet"] is not None:
            self.whole("fleet", 1, "not-positive", f"is {p['fleet']}.")

    def places(self) -> None:
        p = self.fields
        if p["coords"] is None and p["distance_matrix"] is None:
            self.fault("no-distances", "there are neither coordinates nor a distance matrix.", "coords")
        if p["coords"] is not None and self.array("coords", (self.num_locations, 2)):
            lon, lat = np.abs(p["coords"]).T
            off = ((lon > 180) | (lat > 90)) & (p["metric"] is Metric.HAVERSINE)
            self.each(
                "coords",
                off,
                "coordinate-range",
                lambda i: (
                    f"({', '.join(map(told, p['coords'][i]))}) is not on the globe.",
                    self.place("coords", i),
                ),
            )
        self.matrices(p["num_depots"], self.num_locations, bool(p["open"]))

    def windows(self) -> None:
        p = self.fields
        if p["time_windows"] is None or not self.array(
            "time_windows", (self.num_locations, 2), infinite=True
        ):
            return
        opening, closing = p["time_windows"].T
        never = "a window must open at a finite time."
        unopened = ~np.isfinite(opening)
        self.each("time_windows", unopened, "not-finite", lambda i: (never, self.place("time_windows", i)))

        def reversed_(i: Any) -> tuple[str, Place]:
            message = f"opens at {told(opening[i])} and closes at {told(closing[i])}."
            return message, self.place("time_windows", i)

        self.each("time_windows", opening > closing, "window-reversed", reversed_)

    def several_windows(self) -> None:
        """Sorts the windows of customers, joins those that meet; the window is from the first to the last."""
        p, m = self.fields, self.fields["num_depots"]
        given = p["customer_windows"]
        if left_out(given):
            p["customer_windows"] = ()
            return
        if not isinstance(given, tuple | list) or len(given) != self.num_customers:
            self.fault("wrong-shape", f"must have {self.num_customers} lists of windows.", "customer_windows")
            return
        found = [self.windows_of(i, list(windows or ())) for i, windows in enumerate(given)]
        if self.faults:
            return
        if p["time_windows"] is None:
            p["time_windows"] = np.tile([0.0, math.inf], (self.num_locations, 1))
        hull = p["time_windows"].copy()
        for i, windows in enumerate(found):
            if windows:
                hull[m + i] = windows[0][0], windows[-1][1]
        p["time_windows"] = frozen(hull)
        several = tuple(tuple(windows) if len(windows) > 1 else () for windows in found)
        p["customer_windows"] = several if any(several) else ()

    def windows_of(self, i: int, given: list[Any]) -> list[tuple[float, float]]:
        where = self.place("customer_windows", i)
        try:
            windows = sorted((float(opening), float(closing)) for opening, closing in given)
        except (TypeError, ValueError):
            self.fault("wrong-type", "must be a list of pairs of numbers.", where)
            return []
        found: list[tuple[float, float]] = []
        for opening, closing in windows:
            if not abs(opening) <= MAX_NUMBER or math.isnan(closing):
                self.fault("not-finite", f"a window is [{opening}, {closing}].", where)
            elif opening > closing:
                message = f"opens at {told(opening)} and closes at {told(closing)}."
                self.fault("window-reversed", message, where)
            elif found and opening <= found[-1][1]:
                found[-1] = (found[-1][0], max(closing, found[-1][1]))
            else:
                found.append((opening, closing))
        return found

    def needs(self) -> None:
        """The skills that customers need; nothing where nobody needs any."""
        given = self.fields["skills"]
        if left_out(given):
            self.fields["skills"] = ()
        elif not isinstance(given, tuple | list) or len(given) != self.num_customers:
            self.fault("wrong-shape", f"must have {self.num_customers} lists of skills.", "skills")
        else:
            found = []
            for i, skills in enumerate(given):
                if isinstance(skills, str) or not all(isinstance(skill, str) for skill in skills or ()):
                    self.fault("wrong-type", "must be a list of texts.", self.place("skills", i))
                else:
                    found.append(frozenset(skills or ()))
            self.fields["skills"] = tuple(found) if any(found) else ()

    def labels(self) -> None:
        name, names, m = self.fields["name"], self.fields["names"], self.fields["num_depots"]
        if not isinstance(name, str):
            self.fault("wrong-type", f"must be a text, not {name!r}.", "name")
        if not is_day(day := self.fields["day"]):
            self.fault(
                "unknown-value", f"{day!r} is neither a date, such as 2026-11-16, nor '{ANY_DAY}'.", "day"
            )
        if isinstance(names, np.ndarray):
            names = tuple(names.tolist())
        if not isinstance(names, tuple | list) or not all(isinstance(n, str) for n in names):
            self.fault("wrong-type", "must be a list of texts.", "names")
        elif not names:
            depots = ["depot"] if m == 1 else [f"depot {d + 1}" for d in range(m)]
            self.fields["names"] = (*depots, *(str(i + 1) for i in range(self.num_customers)))
        elif len(names) != self.num_locations:
            self.fault(
                "wrong-shape", f"has {len(names)} entries for {self.num_locations} locations.", "names"
            )
        else:
            self.fields["names"] = tuple(names)
            twice = sorted(name for name, count in Counter(names).items() if count > 1)
            message = "'{}' is used more than once."
            every = np.ones(len(twice), dtype=bool)
            self.each("names", every, "duplicate-name", lambda i: (message.format(twice[i]), Place("names")))
