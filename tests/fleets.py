"""Problems beyond the 48 variants for tests: small random ones with any mix of features, in whole numbers;
and a mixed fleet for any number of customers, in fractions."""

import re

import numpy as np
from where import DOCS

from chainroute import Problem, VehicleType

PAGE = (DOCS / "modelling.md").read_text(encoding="utf-8")
NAMES = re.findall(r"chainroute/examples/([a-z-]+)\.json", PAGE)  # examples that the page shows
FEATURES = (
    "types",
    "costs",
    "ends",
    "shifts",
    "speeds",
    "trips",
    "optional",
    "windows",
    "skills",
    "backhauls",
    "limits",
    "starts",
)


def invent(seed, features=None, customers=7):
    """A problem with these features, or with about half of all; every customer can be served."""
    rng = np.random.default_rng(seed)
    has = set(FEATURES) if features is None else set(features)
    if features is None:
        has = {feature for feature in FEATURES[:-1] if rng.random() < 0.5}
        has |= {"starts"} if seed % 3 == 0 else set()
    m, n = int(rng.integers(1, 3)), customers
    fields = {
        "num_depots": m,
        "coords": rng.integers(0, 50, (m + n, 2)).astype(float),
        "rounding": "round",
        "delivery": rng.integers(0, 6, n).astype(float),
        "service": rng.integers(0, 4, n).astype(float),
        "capacity": 12.0,
    }
    if "backhauls" in has:
        fields["pickup"] = rng.integers(0, 6, n) * (rng.random(n) < 0.5)
        fields["delivery"] *= (fields["pickup"] == 0) | (rng.random(n) < 0.3)
        fields["backhaul"] = str(rng.choice(["mixed", "linehauls-first"]))
    if "windows" in has:
        opens = rng.integers(0, 150, n)
        later = opens + rng.integers(30, 90, n)
        fields["customer_windows"] = [
            [(a, a + 20), (b, b + 200)] if rng.random() < 0.6 else [(a, a + 300)]
            for a, b in zip(opens.tolist(), later.tolist(), strict=True)
        ]
    if "optional" in has:
        fields["prize"] = np.where(rng.random(n) < 0.6, rng.integers(0, 60, n), np.inf)
    if "skills" in has:
        fields["skills"] = [[["lift"], ["lift", "ice"], [], []][k] for k in rng.integers(0, 4, n)]
    fields["vehicle_types"] = [
        _type(rng, has, kind, m) for kind in range(int(rng.integers(2, 4)) if "types" in has else 1)
    ]
    return Problem(**fields)


def _type(rng, has, kind, depots):
    """A type; the first one can do whatever has to be done."""
    fields = {"name": f"kind {kind}"}
    if kind:
        fields["capacity"] = float(rng.integers(4, 20))
        fields["count"] = int(rng.integers(1, 3))
        fields["depot"] = int(rng.integers(depots)) if rng.random() < 0.5 else None
    if "costs" in has:
        fields |= {
            "fixed_cost": float(rng.integers(0, 40)),
            "cost_per_distance": float(rng.choice([0, 1, 1.5, 2])),
            "cost_per_time": float(rng.choice([0.5, 1, 0.1])),
        }
    if "ends" in has:
        fields |= [{"open": True}, {"end": int(rng.integers(depots))}, {}][int(rng.integers(3))]
    if "shifts" in has:
        begin = int(rng.integers(0, 40)) * bool(kind)
        fields["shift"] = (begin, begin + (300 if kind else 700))
        fields["max_duration"] = 300.0 if kind else 600.0
    if "speeds" in has and rng.random() < 0.6:
        fields["speed"] = float(rng.choice([0.5, 2]))
    if "trips" in has:
        fields["max_trips"] = int(rng.integers(1, 4))
        if kind == 0 or rng.random() < 0.5:
            fields |= {"count": 1 + 9 * (kind == 0)}
    if "limits" in has and kind:
        fields["distance_limit"] = float(rng.integers(80, 200))
    if "skills" in has:
        fields["skills"] = ["lift", "ice"] if kind == 0 else ["lift"] * int(rng.integers(2))
    if "starts" in has and fields.get("max_trips", 1) == 1:
        fields["open_start"] = bool(rng.random() < 0.5)
    return VehicleType(**fields)


def mixed_fleet(customers, windows=False, seed=0):
    """Three depots; vans, trucks and cold vans that differ in room, costs, shifts, depots and skills."""
    rng = np.random.default_rng(seed)
    opening = rng.uniform(300, 3300, (customers, 1))
    hours = np.concatenate([np.tile([0.0, 5000.0], (3, 1)), np.hstack([opening, opening + 900])])
    return Problem(
        num_depots=3,
        coords=rng.uniform(0, 1000, (3 + customers, 2)),
        delivery=rng.integers(1, 10, customers),
        service=[5] * customers,
        time_windows=hours if windows else None,
        skills=[[["cold"], ["lift"]][kind] if kind < 2 else [] for kind in rng.integers(0, 10, customers)],
        vehicle_types=[
            VehicleType(name="van", capacity=40, fixed_cost=50, shift=(0, 4000), depot=0),
            VehicleType(
                name="truck",
                capacity=120,
                fixed_cost=150,
                cost_per_distance=1.6,
                shift=(0, 5000),
                depot=1,
                skills=["lift"],
            ),
            VehicleType(
                name="cold",
                capacity=60,
                fixed_cost=100,
                cost_per_distance=1.3,
                shift=(500, 4500),
                skills=["cold"],
            ),
        ],
    )
