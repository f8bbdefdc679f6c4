"""The tables that `chainroute template` writes: a bakery's morning, to be filled in with one's own stops."""

from datetime import time

from chainroute.formats.tables.grids import Row, Sheet

_STOPS: list[Row] = [
    ["kind", "name", "lat", "lon", "delivery", "pickup", "service (min)", "windows", "prize", "skills"],
    ["depot", "Bakery", 53.0758, 8.8072, None, None, None, "04:00-12:00", None, None],
    ["customer", "Station café", 53.0832, 8.8137, 12, None, 5, "05:00-06:30", None, None],
    ["customer", "School kitchen", 53.0901, 8.7836, 20, 4, 8, "06:00-07:00", None, None],
    ["customer", "Hotel on the quay", 53.0779, 8.7948, 15, None, 5, "05:00-06:00", None, None],
    ["customer", "Corner shop", 53.0686, 8.8291, 8, 2, 4, "06:00-08:00", 5, None],
    ["customer", "Clinic", 53.0725, 8.8583, 18, None, 10, "05:30-07:30", None, None],
    ["customer", "University", 53.1069, 8.8521, 16, 5, 8, "06:30-07:30, 09:00-11:00", None, None],
    ["customer", "Market hall", 53.0611, 8.7925, 14, None, 6, "04:00-08:00", None, None],
    ["customer", "Wedding cake", 53.0867, 8.8412, 6, None, 15, "08:00-11:00", None, "cooling"],
]
_VEHICLES: list[Row] = [
    ["name", "count", "capacity", "speed (km/h)", "max distance (km)", "shift start", "shift end", "trips",
     "fixed cost", "cost per km", "cost per hour", "skills"],
    ["van", 2, 50, 25, 60, time(4), time(12), 1, 20, 0.4, 18, "cooling"],
    ["cargo bike", 3, 15, 15, 30, time(5), time(9), 3, 2, 0.05, 18, None],
]  # fmt: skip
SHEETS = [Sheet(_STOPS, "stops"), Sheet(_VEHICLES, "vehicles")]
