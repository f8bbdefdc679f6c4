"""`python -m chainroute.evaluate`: the policy on a suite, with little more installed than PyTorch.

    python3 -m chainroute.evaluate --suite seen zero-shot --n 50 --out DIR

The result files in DIR are read by `chainroute evaluate --show DIR` elsewhere. Called again, it goes on.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from chainroute.decode import DecodeOptions
from chainroute.env import Rules
from chainroute.errors import ChainRouteError
from chainroute.evaluate.gaps import alarms
from chainroute.evaluate.neural import JUDGED
from chainroute.evaluate.results import read_references
from chainroute.evaluate.suites import Job, run_neural
from chainroute.evaluate.tables import tables
from chainroute.evaluate.tasks import SUITES
from chainroute.runtime.progress import Progress

OUR_FAULT = 70  # as in chainroute.cli.show


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("chainroute.evaluate", description="Solve a suite by a policy.")
    parser.add_argument("--suite", nargs="+", choices=(*SUITES, "real"), default=["seen"])
    parser.add_argument("--n", type=int, nargs="+", default=[50], help="customers: 50, 100 or both")
    parser.add_argument("--task", nargs="+", default=[], help="only these tasks (variants, or real sets)")
    parser.add_argument("--limit", type=int, help="instances of each task; on a CPU 16, else all")
    parser.add_argument("--rules", nargs="+", choices=tuple(Rules), help="zero-shot: both unless given")
    parser.add_argument("--weights", help="a policy's path; the shipped one unless given")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--label", help="what tables call it; the name of the weights unless given")
    parser.add_argument("--update-rate", type=float, nargs="+", help="P_ts; several are an ensemble")
    parser.add_argument("--augment", type=int, default=8, help="turned and mirrored maps, 1 to 8")
    parser.add_argument("--samples", type=int, default=0, help="per start and map; 0 is greedy")
    parser.add_argument("--recombine", action="store_true", help="the best plan of all routes met")
    parser.add_argument("--rounds", type=int, default=0, help="in which neighbouring routes are solved anew")
    parser.add_argument("--sector", type=int, help="customers above which problems are cut into sectors")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--judged", type=int, default=JUDGED, help="plans of each task shown to the judge")
    parser.add_argument("--data", type=Path, help="real: folder of the instances, or their packed form")
    parser.add_argument("--out", type=Path, required=True, help="folder of the result files")
    options = parser.parse_args(arguments)
    job = Job(
        suites=tuple(options.suite),
        sizes=tuple(options.n),
        only=tuple(options.task),
        limit=options.limit,
        data=options.data,
        out=options.out,
        label=options.label,
    )
    try:
        results = run_neural(
            job,
            Progress(),
            weights=options.weights,
            device=options.device,
            options=DecodeOptions(
                update_rates=tuple(options.update_rate) if options.update_rate else None,
                augmentations=options.augment,
                samples=options.samples,
                recombine=options.recombine,
                rounds=options.rounds,
                sector=options.sector,
                seed=options.seed,
            ),
            rules=[Rules(rule) for rule in options.rules or ()] or None,
            judged=options.judged,
        )
        for table in tables(results, read_references()):
            print(table.markdown())
    except ChainRouteError as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("Stopped; call it again to go on.", file=sys.stderr)
        return 130
    for alarm in alarms(results):
        print(alarm, file=sys.stderr)
    return OUR_FAULT if alarms(results) else 0


if __name__ == "__main__":
    sys.exit(main())
