"""What makes each field of a problem sound, all faults reported at once.

`validated` takes the fields as they were given and returns them in their final form (read-only float64
arrays, names filled in). What the fields mean together is for `servable`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Any

import numpy as np

from chainroute.errors import ChainRouteError, Place
from chainroute.problem.attributes import Attribute, Kind
from chainroute.problem.budget import MAX_LOCATIONS
from chainroute.problem.fields import MAX_NUMBER, Checks, frozen, is_missing
from chainroute.problem.fleet import folded, validated_types
from chainroute.problem.measure import ANY_DAY, Metric, Rounding
from chainroute.problem.variants import Backhaul
from chainroute.runtime.numerals import number_text


def validated(fields: Mapping[str, Any], declared: Sequence[Attribute]) -> dict[str, Any]:
    """The fields of a problem in their final form; all their faults are raised together."""
    checks = _Checks(dict(fields), declared)
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
    def __init__(self, fields: dict[str, Any], declared: Sequence[Attribute]):
        self.of_each = [a for a in declared if a.of == "customer"]
        self.of_all = [a for a in declared if a.of == "problem"]
        super().__init__(fields, of_customers={a.name for a in self.of_each})

    def run(self) -> None:
        self.choices()
        if self.sizes():
            self.demands()
            self.types()
            self.numbers()
            self.places()
            self.windows()
            self.several_windows()
            self.customers(Kind.TEXTS, self.lists_of_texts)
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
        for a in self.of_all:
            if a.kind is Kind.FLAG:
                self.boolean(a.name)

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

    def customers(self, kind: Kind, check: Callable[[Attribute], None]) -> None:
        """Checks the attributes of customers of a kind."""
        for a in self.of_each:
            if a.kind is kind:
                check(a)

    def demands(self) -> None:
        self.customers(Kind.NUMBER, self.numbers_of_customers)

    def numbers_of_customers(self, a: Attribute) -> None:
        """A number for each customer; without any, zeros where a missing one is zero, otherwise nothing."""
        if is_missing(self.fields[a.name]):
            self.fields[a.name] = frozen(np.zeros(self.num_customers)) if a.missing == 0 else ()
        elif self.array(a.name, (self.num_customers,), infinite=a.missing == math.inf):
            self.nonnegative(a.name)
            if a.missing != 0 and (self.fields[a.name] == a.missing).all():
                self.fields[a.name] = ()

    def types(self) -> None:
        p = self.fields
        if is_missing(p["vehicle_types"]):
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
        if isinstance(p["distance_limit"], float) and p["distance_limit"] == math.inf:
            p["distance_limit"] = None
        by_kind = {Kind.POSITIVE: self.positive, Kind.NUMBER: self.at_least_zero, Kind.WHOLE: self.counted}
        for a in self.of_all:
            if a.kind in by_kind and (p[a.name] is not None or a.name == "capacity"):
                by_kind[a.kind](a.name)

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
                    f"({', '.join(map(number_text, p['coords'][i]))}) is not on the globe.",
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
            message = f"opens at {number_text(opening[i])} and closes at {number_text(closing[i])}."
            return message, self.place("time_windows", i)

        self.each("time_windows", opening > closing, "window-reversed", reversed_)

    def several_windows(self) -> None:
        """Sorts the windows of customers, joins those that meet; the window is from the first to the last."""
        p, m = self.fields, self.fields["num_depots"]
        given = p["customer_windows"]
        if is_missing(given):
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
                message = f"opens at {number_text(opening)} and closes at {number_text(closing)}."
                self.fault("window-reversed", message, where)
            elif found and opening <= found[-1][1]:
                found[-1] = (found[-1][0], max(closing, found[-1][1]))
            else:
                found.append((opening, closing))
        return found

    def lists_of_texts(self, a: Attribute) -> None:
        """Texts for each customer; nothing where no customer has any."""
        given = self.fields[a.name]
        if is_missing(given):
            self.fields[a.name] = ()
        elif not isinstance(given, tuple | list) or len(given) != self.num_customers:
            self.fault("wrong-shape", f"must have {self.num_customers} lists of {a.key}.", a.name)
        else:
            found = []
            for i, texts in enumerate(given):
                if isinstance(texts, str) or not all(isinstance(text, str) for text in texts or ()):
                    self.fault("wrong-type", "must be a list of texts.", self.place(a.name, i))
                else:
                    found.append(frozenset(texts or ()))
            self.fields[a.name] = tuple(found) if any(found) else ()

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
