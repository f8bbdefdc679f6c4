"""Problems to try: those that come with the package, and some that are drawn."""

from functools import cache
from pathlib import Path

import numpy as np

from chainroute.formats import read
from chainroute.generate import generate
from chainroute.problem import Problem
from chainroute.problem.measure import Metric
from chainroute.problem.variants import variant

FOLDER = Path(__file__).parents[1] / "examples"

TITLES = {
    "dairy": "A dairy delivers to villages and collects from farms",
    "parcels": "Parcels for thirty doors",
    "couriers": "Couriers of three depots, who end where they like",
    "lakeside": "Shops around a lake, in longitude and latitude",
    "city": "A hundred customers, each with an hour of their own",
    "depots": "Three depots with returns on the way",
    "thousand": "A thousand customers",
    "mixed-fleet": "A van and a truck, with costs of their own",
    "shifts": "An early and a late shift",
    "relay": "A line that ends elsewhere, and couriers who end where they like",
    "technicians": "Who begin at their first customer",
    "ferry": "Islands that only a boat reaches",
    "prizes": "Customers who may be left out, each for a price",
    "lunch": "Places that close for lunch",
    "skills": "A tail lift for the piano, wings for nobody",
    "reloads": "A small van that comes back to reload",
    "returns": "Full crates out, empty ones back",
}


@cache
def example(name: str) -> Problem | None:
    """The problem of that name, if there is one."""
    if name not in TITLES:
        return None
    match name:
        case "lakeside":
            return _lakeside()
        case "city":
            problem = generate(variant("VRPTW"), 100, 1, seed=1)[0]
        case "depots":
            problem = generate(variant("MDVRPMB"), 60, 1, seed=1)[0]
        case "thousand":
            problem = generate(variant("CVRP"), 1000, 1, seed=1)[0]
        case _:
            return read(next(FOLDER.glob(f"{name}.*")))
    return problem.replace(name=name)


def _lakeside(customers: int = 40) -> Problem:
    rng = np.random.default_rng(1)
    angle = rng.uniform(0, 2 * np.pi, customers)
    away = rng.uniform(0.6, 1.0, customers)
    shops = np.c_[8.6 + 0.2 * away * np.cos(angle), 47.25 + 0.09 * away * np.sin(angle)]
    return Problem(
        name="lakeside",
        capacity=40,
        delivery=rng.integers(1, 9, customers).astype(np.float64),
        coords=np.vstack([[8.54, 47.37], shops]).round(5),
        metric=Metric.HAVERSINE,
    )
