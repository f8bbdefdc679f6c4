"""Result files and ledgers that are damaged anywhere are coded errors."""

import json
import random
from contextlib import suppress

import numpy as np
import pytest

from chainroute.errors import ChainRouteError
from chainroute.neural.train import ledger
from chainroute.research.evaluate.results import Results, TaskResult, read_results

SOUND = [
    TaskResult("CVRP", np.arange(3.0), 1.0, 5, names=("a", "b", "c"), best=(1.0, 2.0, 3.0)),
    TaskResult("VRPTW", np.arange(300.0), 2.0),
]
LEDGER = "step,instances,cost,estimated_gap\n5,50,7.5,1.5\n10,100,7.25,\n"


def damaged(data, seed):
    rng, data = random.Random(seed), bytearray(data)
    for _ in range(rng.randint(1, 4)):
        place = rng.randrange(len(data))
        kind = rng.randrange(4)
        if kind == 0:
            data[place] = rng.randrange(256)
        elif kind == 1:
            del data[place : place + rng.randrange(1, 30)]
        elif kind == 2:
            data[place:place] = rng.choice(
                [b"1e999", b"{}", b"null", b"9" * 400, b"[]", b"\xc2\xb2", b",", b"-"]
            )
        else:
            data[place:place] = data[place : place + rng.randrange(40)]
    return bytes(data)


@pytest.mark.parametrize("ending", ["json", "npz"])
def test_a_damaged_result_file_is_read_or_refused(ending, tmp_path):
    Results("me", "seen", 50, "exact", {}, {t.task: t for t in SOUND}).save(tmp_path)
    file = tmp_path / f"me-seen-n50.{ending}"
    whole = file.read_bytes()
    for seed in range(300):
        file.write_bytes(damaged(whole, seed))
        with suppress(ChainRouteError):
            found = read_results(file)
            assert all(t.count >= t.solved >= 0 for t in found.tasks.values())


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"task": "CVRP"', '"task": {}'),
        ('"seconds": 1.0', '"seconds": "x"'),
        ('"n": 50', '"n": "x"'),
        ('"settings": {}', '"settings": []'),
        ("2.0", "9" * 400),
    ],
)
def test_a_value_of_a_wrong_kind(old, new, tmp_path):
    Results("me", "seen", 50, "exact", {}, {t.task: t for t in SOUND}).save(tmp_path)
    file = tmp_path / "me-seen-n50.json"
    text = json.dumps(json.loads(file.read_text()))
    assert old in text
    file.write_text(text.replace(old, new))
    with pytest.raises(ChainRouteError, match="bad-result"):
        read_results(file)


def test_a_damaged_ledger_is_refused_before_anything_is_written_to_it(tmp_path):
    file = tmp_path / ledger.CURVE
    file.write_text(LEDGER)
    ledger.forget(file, 5)
    assert [row["step"] for row in ledger.read(file)] == ["5"]
    for old, new in (("5,50", "\u00b2,50"), ("50", "x"), ("7.5", "y"), ("1.5", "1,5"), ("50", "9" * 30)):
        file.write_text(LEDGER.replace(old, new))
        with pytest.raises(ChainRouteError):
            ledger.read(file)
    for seed in range(300):
        file.write_bytes(damaged(LEDGER.encode(), seed))
        with suppress(ChainRouteError):
            ledger.forget(file, 7)
            ledger.record(file, {"step": 8, "instances": 80, "cost": 1.0}, "step")
            ledger.draw(tmp_path)
