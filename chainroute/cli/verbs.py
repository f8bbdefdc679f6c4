"""The smaller verbs. Each returns its exit code; `show.guarded` makes a message of what goes wrong."""

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from itertools import chain, product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from chainroute.cli import declared, show
from chainroute.cli.app import File, Plot, ReadingOptions, TrustCode, app
from chainroute.errors import ChainRouteError, fail
from chainroute.neural.command import train
from chainroute.runtime.shell import INFEASIBLE, Json

if TYPE_CHECKING:
    from chainroute.plan.solution import Solution
    from chainroute.problem import Problem
    from chainroute.problem.fleet import Vehicle, VehicleType
    from chainroute.problem.variants import Variant


@app.command()
@show.guarded
@declared.translated
def check(
    file: File,
    routes: Annotated[
        Path, typer.Argument(help="Its routes: .sol, .res, .csv, .xlsx or JSON.", metavar="SOLUTION")
    ],
    reading: ReadingOptions = {},  # noqa: B006 never changed
    as_json: Json = False,
    plot: Plot = None,
) -> int:
    """Judge a solution: its cost, and every rule it breaks."""
    from chainroute.cli.files import ProblemReader, plots, solution
    from chainroute.formats.plot import draw
    from chainroute.plan.check import check

    reader = ProblemReader(reading)
    the_problem = reader.problem(file)
    the_solution = solution(routes, the_problem)
    (picture,) = plots(plot, [the_problem], keep=[*reader.companions(file), routes])
    verdict = check(the_problem, the_solution)
    if picture:
        draw(the_problem, picture, the_solution)
    stated = _misstated(the_solution)
    if as_json:
        show.line({**verdict.as_dict(), "stated_cost": the_solution.stated_cost, "notes": stated})
    else:
        print(verdict)
        show.left_out(the_solution)
        for note in stated:
            print(note)
    return 0 if verdict.feasible else INFEASIBLE


@app.command()
@show.guarded
def generate(
    names: Annotated[
        list[str] | None, typer.Argument(help="Variants by name, or all, seen, zero-shot.", metavar="VARIANT")
    ] = None,
    n: Annotated[int | None, typer.Option("-n", help="Customers.  [default: 50]")] = None,
    count: Annotated[int | None, typer.Option(help="Problems of each variant.  [default: 1]")] = None,
    seed: Annotated[int, typer.Option(help="Same seed, same problems.")] = 0,
    law: Annotated[
        str, typer.Option(help="paper: as in the paper; wide: places, windows, roads, fleets of many kinds.")
    ] = "paper",
    output: Annotated[str | None, typer.Option("--output", "-o", help="A folder or a file.")] = None,
    benchmark: Annotated[bool, typer.Option("--benchmark", help="Write the public test sets.")] = False,
) -> int:
    """Draw random problems, or the public benchmark.

    Without an ending, --output is a folder for one JSON file per problem. With one, it is the file to write;
    {name} in it stands for the variant (.npz holds all its problems) or for the problem (other formats).

    With --benchmark, --output is a folder for the .npz files of the published test and validation sets, bit
    for bit: of all variants, with 50 and 100 customers, in full, unless you say otherwise.
    """
    from chainroute.cli.files import write_all
    from chainroute.generate import LAWS, generate

    if law not in LAWS:
        raise fail("unknown-value", f"'{law}' is not one of {', '.join(LAWS)}.", "--law")
    if benchmark and law != "paper":
        raise fail("bad-option", "the benchmark follows the paper's law.", "--law", "Leave it out.")
    variants = _variants(names or (["all"] if benchmark else []))
    if not variants:
        raise fail("bad-option", "name a variant, or all.", "VARIANT", "`chainroute variants` lists them.")
    if output is None:
        raise fail("bad-option", "say where to write to.", "--output", "Give a folder, or a file.")
    if benchmark:
        return _benchmark(variants, [50, 100] if n is None else [n], count, Path(output))
    n, count = 50 if n is None else n, 1 if count is None else count
    write_all({v.name: generate(v, n, count, seed, law) for v in variants}, output, None, "--output")
    return 0


@app.command()
@show.guarded
@declared.translated
def convert(
    file: File,
    target: Annotated[str, typer.Argument(help="The file to write.", metavar="TARGET")],
    reading: ReadingOptions = {},  # noqa: B006 never changed
    format: Annotated[
        str | None,
        typer.Option(help="vrplib, lkh, solomon, cordeau, json, npz, csv or xlsx; else by ending."),
    ] = None,
) -> int:
    """Write a problem in another format.

    The problems of an .npz go to one file each where {name} is in TARGET, or, as JSON, to a folder.
    """
    from chainroute.cli.files import ProblemReader, write_all

    reader = ProblemReader(reading)
    every = {file.stem: reader.problems(file)}
    write_all(every, target, format, "TARGET", keep=reader.companions(file))
    return 0


@app.command()
@show.guarded
@declared.translated
def info(
    file: Annotated[Path | None, typer.Argument(help="A problem, in any format.", metavar="FILE")] = None,
    reading: ReadingOptions = {},  # noqa: B006 never changed
    as_json: Json = False,
    plot: Plot = None,
    policy: Annotated[
        bool, typer.Option("--policy", help="FILE is a policy; without it, the shipped one.")
    ] = False,
    trust_code: TrustCode = False,
) -> int:
    """Say what is in a file, or how many parameters a policy has."""
    from chainroute.cli.files import ProblemReader, plots
    from chainroute.formats.plot import draw

    if policy:
        return _parameters(None if file is None else str(file), as_json, trust_code)
    if file is None:
        raise fail("bad-option", "name a file.", "FILE", "Give the path of a problem.")
    reader = ProblemReader(reading)
    every = reader.problems(file)
    for problem, picture in zip(every, plots(plot, every, keep=reader.companions(file)), strict=True):
        if picture:
            draw(problem, picture)
    facts = [_facts(problem) for problem in every]
    if as_json:
        for each in facts:
            show.line(each)
    elif len(facts) == 1:
        _tell(every[0], facts[0])
    else:
        keys = ("name", "variant", "customers", "depots", "capacity", "delivery", "pickup")
        show.table(keys, [[each[key] for key in keys] for each in facts], numbers=keys[2:])
    return 0


@app.command()
@show.guarded
def template(
    folder: Annotated[Path, typer.Argument(help="Where to write it.", metavar="FOLDER")] = Path(),
    xlsx: Annotated[bool, typer.Option("--xlsx", help="One Excel workbook in place of CSV files.")] = False,
) -> int:
    """Write tables to fill in: stops.csv and vehicles.csv, an example that solves as it is.

    Nothing is written over.
    """
    from chainroute.formats.tables.grids import write_csv, write_workbook
    from chainroute.formats.tables.template import SHEETS
    from chainroute.runtime.files import folder as made
    from chainroute.runtime.files import save

    if xlsx:
        contents = {"stops.xlsx": write_workbook(SHEETS)}
    else:
        contents = {f"{sheet.name}.csv": write_csv([sheet]) for sheet in SHEETS}
    made(folder)
    if there := [name for name in contents if (folder / name).exists()]:
        raise fail("bad-option", f"there is a {there[0]}, which is not written over.", str(folder))
    for name, content in contents.items():
        save(folder / name, content)
    print(f"Wrote {' and '.join(str(folder / name) for name in contents)}")
    print(f"Fill in your own, then: chainroute solve {folder / next(iter(contents))}")
    return 0


declared.add(app, train)


@app.command()
@show.guarded
@declared.translated
def variants(as_json: Json = False) -> int:
    """List the 48 variants."""
    from chainroute.problem.variants import VARIANTS

    if as_json:
        for v in VARIANTS:
            show.line({"name": v.name, **vars(v), "seen": v.seen})
        return 0
    show.table(
        ("variant", "depots", "open", "backhaul", "limit", "time windows", "in training"),
        [
            (
                v.name,
                "several" if v.multi_depot else "one",
                v.open,
                v.backhaul,
                v.limit,
                v.time_windows,
                v.seen,
            )
            for v in VARIANTS
        ],
    )
    return 0


def _misstated(solution: "Solution") -> list[str]:
    """What is wrong with the cost that the file states, and with which rounding it would be right."""
    from chainroute.plan.solution import Solution
    from chainroute.problem.measure import Rounding

    if not solution.misstated:
        return []
    p, given = solution.problem, solution.stated_cost
    notes = [f"The file states a cost of {given!r}; its routes cost {solution.cost!r}."]
    for rounding in Rounding if p.distance_matrix is None else ():
        with suppress(ChainRouteError):  # rounded otherwise, some customer may be out of reach
            if not Solution(p.replace(rounding=rounding), solution.routes, given).misstated:
                return [*notes, f"With --rounding {rounding} they would cost what it states."]
    return notes


def _parameters(weights: str | None, as_json: bool, trust_code: bool) -> int:
    from chainroute.cli import policies

    the_policy = policies.policy(weights, trust_code)
    from chainroute.neural.decode.engine import engine
    from chainroute.neural.policy.store import describe

    counts, way = describe(the_policy), engine(the_policy)
    if as_json:
        show.line({"parameters": counts, "engine": way, "config": the_policy.config.as_dict()})
    else:
        show.table(("part", "parameters"), list(counts.items()), numbers=("parameters",))
        print(f"decoding: {way}")
    return 0


def _benchmark(variants: Sequence["Variant"], sizes: Sequence[int], count: int | None, to: Path) -> int:
    import io

    import numpy as np

    from chainroute.generate import benchmark
    from chainroute.runtime.files import folder, save

    folder(to)
    splits: tuple[Literal["test", "val"], ...] = ("test", "val")
    sets = list(product(variants, sizes, splits))
    for i, (variant, n, split) in enumerate(sets, 1):
        path = to / f"{variant}-n{n}-{split}.npz"
        with show.working(f"{i}/{len(sets)} {path}"):
            arrays: dict[str, Any] = benchmark(variant, n, split, count)
            file = io.BytesIO()
            np.savez(file, **arrays)
            save(path, file.getvalue())
    print(f"Wrote {len(sets)} files to {to}")
    return 0


# -- what there is


def _variants(names: Sequence[str]) -> list["Variant"]:
    """Variants by name or group, each once, in the order given."""
    from chainroute.cli.files import together
    from chainroute.problem.variants import SEEN, VARIANTS, ZERO_SHOT, variant

    groups = {"all": VARIANTS, "seen": SEEN, "zero-shot": ZERO_SHOT}

    def named(name: str) -> Sequence["Variant"]:
        return groups.get(name.lower()) or [variant(name)]

    return list(dict.fromkeys(chain(*together(*(partial(named, name) for name in names)))))


def _facts(p: "Problem") -> dict[str, Any]:
    """What `info` tells."""
    import math

    import numpy as np

    loads = (float(p.delivery.sum()), float(p.pickup.sum()))
    required = p.required
    needed = max(float(p.delivery[required].sum()), float(p.pickup[required].sum()))
    room = max(vehicle.largest_load for vehicle in p.types)
    ends = p.windows[np.isfinite(p.windows)]
    return {
        "name": p.name,
        "variant": p.kind,
        "customers": p.num_customers,
        "depots": p.num_depots,
        "capacity": p.capacity,
        "delivery": loads[0],
        "pickup": loads[1],
        "vehicles_needed": math.ceil(needed / room * (1 - p.load_slack)),
        "vehicles_per_depot": p.fleet,
        "open": p.open,
        "backhaul": str(p.backhaul),
        "time_windows": p.time_windows is not None,
        "day": p.day,
        "first_opening": float(ends.min()) if p.time_windows is not None else None,
        "last_closing": float(ends.max()) if p.time_windows is not None else None,
        "service": float(p.service.sum()),
        "distance_limit": p.distance_limit,
        "limit_counts_service": p.limit_counts_service,
        "distances": str(p.metric) if p.distance_matrix is None else "matrix",
        "durations": "distances" if p.duration_matrix is None else "matrix",
        "missing_roads": int(np.isinf(p.distances).sum()) if not p.has_all_roads else 0,
        "rounding": str(p.rounding),
        **_wishes(p),
        "vehicles": [
            _vehicle_facts(p, *pair) for pair in zip(p.vehicle_types, p.types, strict=bool(p.vehicle_types))
        ],
    }


def _wishes(p: "Problem") -> dict[str, int]:
    """How many customers have each attribute that most problems lack."""
    from chainroute.problem import Problem
    from chainroute.problem.attributes import attributes

    def having(values: Sequence[Any], missing: Any) -> int:
        return sum(bool(value != missing) for value in values)

    those = [a for a in attributes(Problem, "customer") if a.beyond and len(getattr(p, a.name))]
    return {f"customers_with_{a.key}": having(getattr(p, a.name), a.missing) for a in those}


def _vehicle_facts(p: "Problem", given: "VehicleType", vehicle: "Vehicle") -> dict[str, Any]:
    """What `info` prints of a type, null where there is no bound."""
    from chainroute.problem import VehicleType
    from chainroute.problem.attributes import Kind, attributes

    facts: dict[str, Any] = {}
    for a in attributes(VehicleType):
        value = getattr(vehicle, a.name, getattr(given, a.name))
        match a.kind:
            case Kind.MATRIX:
                continue
            case Kind.WINDOW:
                facts |= {f"{a.key}_start": _bound(value[0]), f"{a.key}_end": _bound(value[1])}
            case Kind.DEPOTS:
                facts[a.key] = [p.names[depot] for depot in value]
            case Kind.DEPOT if a.name == "depot":
                facts["depots"] = [p.names[depot] for depot in vehicle.depots]
            case Kind.DEPOT:
                facts[a.key] = None if value is None else p.names[value]
            case Kind.TEXTS:
                facts[a.key] = sorted(value)
            case Kind.WHOLE:
                facts[a.key] = None if _bound(value) is None else int(value)
            case Kind.NUMBER | Kind.POSITIVE:
                facts[a.key] = _bound(value)
            case _:
                facts[a.key] = value
    return facts


def _bound(value: float | None) -> float | None:
    return None if value in (None, float("inf"), -float("inf")) else value


def _tell(p: "Problem", facts: dict[str, Any]) -> None:
    """Prints the facts, times as people write them, and a row for each vehicle type."""
    from chainroute.problem import Problem, VehicleType
    from chainroute.problem.attributes import Kind, attributes

    timed = [a for a in (*attributes(Problem), *attributes(VehicleType)) if a.unit == "time"]
    moments = {f"{a.key}_{end}" for a in timed if a.kind is Kind.WINDOW for end in ("start", "end")}
    moments |= {"first_opening", "last_closing"}
    spans = {a.key for a in timed if a.kind is not Kind.WINDOW}

    def words(key: str, value: Any) -> object:
        if isinstance(value, list):
            return ", ".join(value) or None
        told = p.moment if key in moments else p.span if key in spans else None
        return value if value is None or told is None else told(value)

    types = facts.pop("vehicles")
    show.table(("", ""), [(key.replace("_", " "), words(key, value)) for key, value in facts.items()])
    if types:
        keys = [
            key
            for key in types[0]
            if any(each[key] not in (None, []) and each[key] is not False for each in types)
        ]
        print()
        rows = [[words(key, each[key]) for key in keys] for each in types]
        numbers = [key.replace("_", " ") for key in keys if isinstance(types[0][key], int | float)]
        show.table([key.replace("_", " ") for key in keys], rows, numbers)
