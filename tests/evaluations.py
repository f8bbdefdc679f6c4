"""Results of evaluations, made up, and rows of tables made of them."""

import numpy as np
from where import DATA

from chainroute.generate.references import references
from chainroute.research.evaluate import real
from chainroute.research.evaluate.results import Results, TaskResult
from chainroute.research.evaluate.tasks import SUITES, TEST_SET_PROBLEMS


def results(suite, n, rules="exact", above=1.0, label="me"):
    """Every task at so many per cent above the reference."""
    made = Results(label, suite, n, rules, {"device": "here"})
    for v in SUITES[suite]:
        cost = references()[v.name, n] * (1 + above / 100)
        made.tasks[v.name] = TaskResult(v.name, np.full(TEST_SET_PROBLEMS, cost), 2.0, 2**30, 100)
    return made


def row(table, name):
    return next(dict(zip(table.columns, r, strict=True)) for r in table.rows if r[0] == name)


def small(folder):
    """All sets, each of two instances, with files from the tests' own data."""
    sources = {".vrp": "five.vrp", ".vrpb": "backhauls.vrpb", ".vrpmpd": "mixed.vrpmpd"}
    for name, library in real.LIBRARIES.items():
        place = folder / library.folder
        place.mkdir(parents=True)
        source = sources.get(library.ending, "mdvrp.txt" if name == "mdvrp" else "windows.txt")
        (place / "bks.csv").write_text("instance,customers,bks\nbig,9,20.5\nsmall,4,10\n")
        for instance in ("big", "small"):
            (place / f"{instance}{library.ending}").write_bytes((DATA / source).read_bytes())
    return folder
