"""The verbs `evaluate` and `reference`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from chainroute.cli import show
from chainroute.cli.app import Json, app
from chainroute.errors import fail

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from chainroute.evaluate.results import Results
    from chainroute.evaluate.suites import Job
    from chainroute.evaluate.tables import Table

FIELDS = {  # of DecodeOptions
    "--update-rate": "update_rates",
    "--augment": "augmentations",
    "--samples": "samples",
    "--recombine": "recombine",
    "--rounds": "rounds",
    "--sector": "sector",
}
RESULTS, REFERENCES = Path("out/results"), Path("out/reference")

Suites = Annotated[list[str], typer.Option("--suite", help="seen, zero-shot, real; ablation shows results.")]
Sizes = Annotated[list[int], typer.Option("--n", help="Customers: 50 or 100.")]
Tasks = Annotated[list[str] | None, typer.Option("--task", help="Only this task: a variant, or a real set.")]
Limit = Annotated[
    int | None, typer.Option(help="The first instances of each task; all on a GPU, else 16 (real: 4).")
]
Data = Annotated[
    Path | None, typer.Option(help="real: folder of the instances, or the file that --pack made.")
]


@app.command()
@show.guarded
def evaluate(
    suite: Suites = ["seen"],  # noqa: B006 typer copies it
    n: Sizes = [50],  # noqa: B006
    task: Tasks = None,
    limit: Limit = None,
    solver: Annotated[str, typer.Option(help="neural, solve, pyvrp, ortools, vroom, milp, lkh.")] = "neural",
    time_limit: Annotated[
        float | None, typer.Option(help="Not neural: seconds for each; 1 unless given.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Same seed, same figures.")] = 0,
    rules: Annotated[
        list[str] | None, typer.Option(help="neural: exact or published; zero-shot: both.")
    ] = None,
    weights: Annotated[
        str | None, typer.Option(help="neural: a policy's path; else the shipped one.")
    ] = None,
    update_rate: Annotated[
        list[float] | None, typer.Option(help="neural: P_ts; several make an ensemble. Else the policy's.")
    ] = None,
    augment: Annotated[int | None, typer.Option(help="neural: turned and mirrored maps, 1 to 8.")] = None,
    samples: Annotated[
        int | None, typer.Option(help="neural: samples per start and map; 0 is greedy.")
    ] = None,
    recombine: Annotated[
        bool, typer.Option("--recombine", help="neural: the best plan of all routes met.")
    ] = False,
    rounds: Annotated[
        int | None, typer.Option(help="neural: in which neighbouring routes are solved anew.")
    ] = None,
    sector: Annotated[int | None, typer.Option(help="neural: above so many customers, in sectors.")] = None,
    device: Annotated[str | None, typer.Option(help="neural: cpu, cuda, cuda:1, ...")] = None,
    data: Data = None,
    label: Annotated[str | None, typer.Option(help="What tables call the solver.")] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder of result files.")] = RESULTS,
    references: Annotated[
        Path, typer.Option(help="Folder of `chainroute reference`, beside those shipped.")
    ] = REFERENCES,
    stored: Annotated[list[Path] | None, typer.Option("--show", help="Only show stored results.")] = None,
    compare: Annotated[
        tuple[Path, Path] | None, typer.Option(help="Only compare two result files: paired t-tests.")
    ] = None,
    pack: Annotated[
        Path | None, typer.Option(help="Only pack the real sets in this folder into the file --out.")
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="Only renew tables and pictures of a page, from --out.")
    ] = None,
    table: Annotated[Path | None, typer.Option(help="Write the tables: .md, .csv or .json.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw a picture: .png, .svg or .pdf.")] = None,
    picture: Annotated[str, typer.Option(help="bars, trade-off, update-rates or seeds.")] = "bars",
    as_json: Json = False,
) -> int:
    """Solve the benchmark, and show costs and gaps beside the paper's.

    What is done is kept in --out: a second call goes on where the first was stopped.
    """
    from chainroute.cli import neural
    from chainroute.cli.files import paths

    inputs = [*(compare or ()), *neural.files(weights), *([data] if data else [])]
    if table:
        paths(str(table), ["table"], "--table", (".md", ".csv", ".json"), inputs)
        _require_apart(table, [out, references, *(stored or ()), *(compare or ())])
    if plot:
        paths(str(plot), ["plot"], "--plot", (".png", ".svg", ".pdf"), inputs)
    if pack:
        return _pack(pack, out)
    if report:
        return _report(report, out, references)
    if compare:
        return _compare(compare, table, as_json)
    _require_torch()
    from chainroute.evaluate import tables
    from chainroute.evaluate.gaps import alarms
    from chainroute.evaluate.results import read_all, read_references
    from chainroute.evaluate.suites import Job

    own = read_references(references)
    if suite == ["ablation"]:
        return _ablation((stored or [out / "ablation"])[0], own, table, as_json)
    if stored:
        results = read_all(stored)
    else:
        job = Job(tuple(suite), tuple(n), tuple(task or ()), limit, data, out, label)
        how = {
            "--update-rate": tuple(update_rate) if update_rate else None,
            "--augment": augment,
            "--samples": samples,
            "--recombine": recombine or None,
            "--rounds": rounds,
            "--sector": sector,
        }
        where = {"--rules": rules or None, "--weights": weights, "--device": device}
        if solver == "neural":
            neural.refuse({"--time-limit": time_limit}, ["solve", "pyvrp"])
            results = _neural(job, how, where, seed)
        else:
            neural.refuse({**how, **where}, ["neural"])
            results = _classical(job, solver, 1.0 if time_limit is None else time_limit, seed)
    _show(tables.tables(results, own), table, as_json, tables.long_table(results, own))
    if plot:
        _draw(picture, results, own, plot)
    wrong = alarms(results)
    print(*wrong, sep="\n", end="\n" * bool(wrong), file=sys.stderr)
    return show.OUR_FAULT if wrong else 0


@app.command()
@show.guarded
def reference(
    suite: Suites = ["seen"],  # noqa: B006
    n: Sizes = [50],  # noqa: B006
    task: Tasks = None,
    limit: Limit = None,
    time_limit: Annotated[float, typer.Option(help="Seconds of PyVRP for each instance.")] = 5.0,
    seed: Annotated[int, typer.Option(help="Of the search.")] = 0,
    jobs: Annotated[int, typer.Option(help="Instances at a time, each on a core of its own.")] = 1,
    out: Annotated[Path, typer.Option("--out", "-o", help="Where references are kept.")] = REFERENCES,
    as_json: Json = False,
) -> int:
    """Solve the first instances of each task by PyVRP, as references for gaps.

    What is done is kept: a second call goes on where the first was stopped. Of several runs, with other
    limits or seeds, the best cost of each instance counts.
    """
    _require_torch()
    from chainroute.evaluate.suites import Job

    job = Job(tuple(suite), tuple(n), tuple(task or ()), limit, None, out)
    results = _classical(job, "pyvrp", time_limit, seed, jobs)
    if as_json:
        for r in results:
            show.line({**r.head(), "tasks": [t.as_dict() for t in r.tasks.values()]})
        return 0
    rows = [
        (t.task, r.n, t.count, show.plain(t.mean and round(t.mean, 4)), f"{t.seconds:.0f}")
        for r in results
        for t in r.tasks.values()
    ]
    heads = ("task", "n", "problems", "mean cost", "seconds")
    show.table(heads, rows, numbers=heads[1:])
    return 0


# -- parts of evaluate


def _require_torch() -> None:
    try:
        import torch  # noqa: F401
    except ModuleNotFoundError:
        raise fail("missing-extra", "evaluating needs torch: pip install 'chainroute[neural]'.") from None


def _require_apart(table: Path, results: "Sequence[Path]") -> None:
    """Every .json in a folder of results is taken for one, and a later result may get that name."""
    from chainroute.files import identity

    folders = {identity(path.parent if path.suffix in (".json", ".npz") else path) for path in results}
    if table.suffix.lower() == ".json" and identity(table.parent) in folders:
        message = f"'{table.parent}' is a folder of results; choose another for tables."
        raise fail("bad-option", message, "--table")


def _neural(job: "Job", how: "Mapping[str, Any]", where: "Mapping[str, Any]", seed: int) -> "list[Results]":
    """`how` are options of decoding, by their names in the command."""
    from chainroute.cli.neural import named
    from chainroute.decode import DecodeOptions
    from chainroute.env import Rules
    from chainroute.evaluate.suites import run_neural
    from chainroute.runtime.progress import Progress

    unknown = [name for name in where["--rules"] or () if name not in tuple(Rules)]
    if unknown:
        raise fail("bad-option", f"'{unknown[0]}' is not one of {', '.join(Rules)}.", "--rules")
    given = {FIELDS[name]: value for name, value in how.items() if value is not None}
    options = named(lambda: DecodeOptions(**given, seed=seed))
    results: list[Results] = named(
        lambda: run_neural(
            job,
            Progress(),
            weights=where["--weights"],
            device=where["--device"] or "auto",
            options=options,
            rules=[Rules(name) for name in where["--rules"] or ()],
        )
    )
    return results


def _classical(job: "Job", solver: str, time_limit: float, seed: int, jobs: int = 1) -> "list[Results]":
    from chainroute.evaluate.classical import Classical
    from chainroute.evaluate.suites import run_classical
    from chainroute.runtime.progress import Progress

    return run_classical(job, Progress(), Classical(solver, time_limit, seed, jobs))


def _pack(folder: Path, target: Path) -> int:
    from chainroute.evaluate.real import pack

    if target == RESULTS:
        raise fail("bad-option", "say with -o which file the packed sets go to.", "--pack")
    print(f"Packed {pack(folder, target)} instances into {target}")
    return 0


def _report(page: Path, results: Path, references: Path) -> int:
    from chainroute.evaluate.report import report

    made = report(page, results, references, Path("runs"))
    print(f"Renewed in {page}: {', '.join(made)}")
    return 0


def _compare(files: tuple[Path, Path], table: Path | None, as_json: bool) -> int:
    from chainroute.evaluate.results import read_results
    from chainroute.evaluate.statistics import comparison_table

    _show([comparison_table(*map(read_results, files))], table, as_json)
    return 0


def _ablation(folder: Path, references: "Sequence[Results]", table: Path | None, as_json: bool) -> int:
    from chainroute.evaluate.results import read_all
    from chainroute.evaluate.tables import ablation_table

    if not folder.is_dir():
        message = "there are no such results; recipes/ablation.py trains networks and makes them."
        raise fail("file-not-found", message, str(folder))
    _show([ablation_table(read_all([folder]), references)], table, as_json)
    return 0


def _draw(kind: str, results: "Sequence[Results]", references: "Sequence[Results]", path: Path) -> None:
    from chainroute.evaluate.pictures import PICTURES, write

    if kind not in PICTURES:
        raise fail("bad-option", f"'{kind}' is not one of {', '.join(PICTURES)}.", "--picture")
    write(PICTURES[kind](results, references), path)


def _show(tables: "Sequence[Table]", path: Path | None, as_json: bool, long: "Table | None" = None) -> None:
    """On the terminal, or as JSON, and in the file; programs get all figures in one long table."""
    import json

    from chainroute.files import save

    if as_json:
        for table in tables:
            show.line(table.as_dict())
    else:
        for table in tables:
            print(table.title)
            show.table(table.columns, table.texts(), numbers=table.columns[1:])
            print(*table.notes, sep="\n", end="\n\n")
    if path is None:
        return
    if path.suffix == ".csv":
        text = "\n".join(table.csv() for table in ([long] if long else tables))
    elif path.suffix == ".json":
        text = json.dumps([table.as_dict() for table in tables], indent=1) + "\n"
    else:
        text = "\n".join(table.markdown() for table in tables)
    save(path, text.encode())
