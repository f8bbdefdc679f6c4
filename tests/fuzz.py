"""Mutates files of every format and looks for anything but a problem or a coded error: `make fuzz`.

The corpus is what the tests read (`data`, the examples) and what once went wrong (`finds`). A find goes to
`out/fuzz`; with the mend it goes to `finds`, where the tests read it ever after.
"""

import argparse
import random
import signal
import sys
import time
import traceback
import warnings
from contextlib import suppress
from pathlib import Path

from where import DATA, EXAMPLES, ROOT

from chainroute import ChainRouteError, Problem
from chainroute.formats import FORMATS, SOLUTION_FORMATS, parse, parse_solution, write, write_solution
from chainroute.plan.check import check

FINDS = Path(__file__).parent / "finds"
MOST_SECONDS = 5.0  # of processor time for one file of at most some kilobytes
MOST_BYTES = 20_000  # of a file to begin with
WORDS = (
    *(
        b"1e308",
        b"1e-320",
        b"-1",
        b"nan",
        b"inf",
        b"null",
        b"true",
        b"[]",
        b"{}",
        b'""',
        b"99999999999999999999",
    ),
    *(
        b"9999-12-31",
        b"0001-01-01",
        b"08:00-07:00",
        b"1,5",
        b"1.234,5",
        b"\xc3\xa4",
        b"\xff",
        b"\x00",
        b"\r\n",
    ),
    *(
        b"depot",
        b"=1+1",
        b"EOF",
        b"-1 0",
        b";",
        b"\t",
        b"#",
        b"1" * 400,
        b" " * 300,
        b"'",
        b'"',
        b"\xe2\x88\x9e",
    ),
)


def corpus():
    files = [*DATA.iterdir(), *EXAMPLES.iterdir(), *FINDS.iterdir()]
    return sorted(f for f in files if f.is_file() and f.stat().st_size < MOST_BYTES)


def mutated(data, others, rng):
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4, 8))):
        place, length = rng.randrange(len(data) + 1), rng.randrange(1, 40)
        kind = rng.randrange(7)
        if kind == 0 and data:
            data[rng.randrange(len(data))] = rng.randrange(256)
        elif kind == 1:
            del data[place : place + length]
        elif kind == 2:
            data[place:place] = rng.choice(WORDS)
        elif kind == 3:
            data[place : place + length] = rng.choice(WORDS)
        elif kind == 4:
            lines = bytes(data).split(b"\n")
            rng.shuffle(lines) if rng.random() < 0.3 else lines.insert(
                rng.randrange(len(lines)), rng.choice(lines)
            )
            data = bytearray(b"\n".join(lines))
        elif kind == 5:
            other = rng.choice(others)
            begin = rng.randrange(len(other) + 1)
            data[place:place] = other[begin : begin + length]
        else:
            data[place:place] = data[place : place + length] * rng.randrange(1, 5)
    return bytes(data)


class TooLong(Exception):
    pass


def _end(*_):
    raise TooLong


def tried(data, folder):
    """Reads the data as whatever it is; writes what it is in every format, and reads that again."""
    signal.signal(signal.SIGPROF, _end)
    signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)
    try:
        with suppress(ChainRouteError):
            parse_solution(data, SMALL, "x")
        with suppress(ChainRouteError):
            for problem in parse(data, "x")[:2]:
                _written(problem, folder)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _written(problem, folder):
    solution = None
    if problem.num_customers < 50:
        from chainroute import Solution

        solution = Solution.of(problem, [(0, [c]) for c in problem.customers])
        check(problem, solution)
    for format in FORMATS:
        with suppress(ChainRouteError):
            write(problem, folder / "it", format)
            (again,) = parse((folder / "it").read_bytes(), "x")
            assert again.num_locations == problem.num_locations
    for format in SOLUTION_FORMATS if solution else ():
        with suppress(ChainRouteError):
            write_solution(solution, folder / "it", format)


SMALL = Problem(capacity=9, delivery=[1, 1], coords=[(0, 0), (1, 1), (2, 2)], names=["depot", "A", "B"])


def mutations(seed):
    """Mutated files for ever, by the seed."""
    rng, files = random.Random(seed), [file.read_bytes() for file in corpus()]
    while True:
        yield mutated(rng.choice(files), files, rng)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    out = ROOT / "out" / "fuzz"
    out.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    end, count, finds = time.monotonic() + given.seconds, 0, set()
    for count, data in enumerate(mutations(given.seed), 1):  # noqa: B007
        try:
            tried(data, out)
        except Exception as error:
            at = traceback.extract_tb(error.__traceback__)[-1]
            mark = f"{type(error).__name__}-{Path(at.filename).stem}-{at.lineno}"
            if mark not in finds:
                finds.add(mark)
                (out / f"{mark}.bin").write_bytes(data)
                (out / f"{mark}.txt").write_text(traceback.format_exc())
                print(mark, flush=True)
        if time.monotonic() > end:
            break
    (out / "it").unlink(missing_ok=True)
    print(f"{count:,} files, {len(finds)} finds" + f", in {out}" * bool(finds))
    return bool(finds)


if __name__ == "__main__":
    sys.exit(main())
