"""The tables that `chainroute template` writes: a bakery's morning, to be filled in with one's own stops."""

from datetime import time

from chainroute.formats.grids import Row, Sheet

_STOPS: list[Row] = [
    ["kind", "name", "lat", "lon", "delivery", "pickup", "service (min)", "opens", "closes"],
    ["depot", "Bakery", 53.0758, 8.8072, None, None, None, time(4), time(12)],
    ["customer", "Station café", 53.0832, 8.8137, 12, None, 5, time(5), time(6, 30)],
    ["customer", "School kitchen", 53.0901, 8.7836, 20, 4, 8, time(6), time(7)],
    ["customer", "Hotel on the quay", 53.0779, 8.7948, 15, None, 5, time(5), time(6)],
    ["customer", "Corner shop", 53.0686, 8.8291, 8, 2, 4, time(6), time(8)],
    ["customer", "Clinic", 53.0725, 8.8583, 18, None, 10, time(5, 30), time(7, 30)],
    ["customer", "University", 53.1069, 8.8521, 16, 5, 8, time(6, 30), time(9)],
    ["customer", "Market hall", 53.0611, 8.7925, 14, None, 6, None, time(8)],
    ["customer", "Garden restaurant", 53.0867, 8.8412, 6, None, 4, time(8), time(11)],
]
_VEHICLES: list[Row] = [
    ["count", "capacity", "speed (km/h)", "max distance (km)"],
    [3, 50, 25, 60],
]
SHEETS = [Sheet(_STOPS, "stops"), Sheet(_VEHICLES, "vehicles")]
