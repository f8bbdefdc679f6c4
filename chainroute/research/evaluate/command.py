"""The commands of `evaluate`: run, show, compare, report, pack, reference."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from chainroute.errors import USE_LISTED, fail
from chainroute.options import Argument, DecodeOptions, Effort, Group, Option, Seed
from chainroute.options.declare import refuse
from chainroute.research.evaluate import REFERENCES, RESULTS
from chainroute.runtime.extras import loading
from chainroute.runtime.files import identity, paths, save
from chainroute.runtime.shell import Command, Json, Output

if TYPE_CHECKING:
    from chainroute.research.evaluate.results import Results
    from chainroute.research.evaluate.suites import Evaluation
    from chainroute.runtime.table import Table

DECODING = (
    "update_rates",
    "rates_in_turn",
    "drawn_steps",
    "augmentations",
    "samples",
    "recombine",
    "rounds",
    "sector",
)
STORED_RESULTS = Path("docs/results")  # the project's own
PAGES = [Path("README.md"), *(Path("docs") / f"{name}.md" for name in ("results", "paper", "comparison"))]

Suites = Annotated[list[str], Option("seen, zero-shot or real; may be repeated.", ("--suite",))]
Sizes = Annotated[
    list[int], Option("Customers: 50 or 100, or 10 (not in the paper); may be repeated.", ("--n",))
]
Tasks = Annotated[list[str] | None, Option("Only this task: a variant, or a real set; may be repeated.")]
Limit = Annotated[int | None, Option("The first instances of each task; all on a GPU, else 16 (real: 4).")]
References = Annotated[Path, Option("Folder of `evaluate reference`, beside the references shipped.")]
TableFile = Annotated[Path | None, Option("Write the tables: .md, .csv or .json.")]


def run(
    suite: Suites = ["seen"],  # noqa: B006 never changed
    n: Sizes = [50],  # noqa: B006
    task: Tasks = None,
    limit: Limit = None,
    solver: Annotated[str, Option("neural, solve, pyvrp, ortools, vroom, milp or lkh.")] = "neural",
    time_limit: Annotated[
        float | None, Option("Not neural: seconds for each instance; the paper's 10 (20 with 100 customers).")
    ] = None,
    runs: Annotated[
        int | None, Option("Not neural: the best of so many runs, with seeds one after the other.")
    ] = None,
    seed: Seed = 0,
    rules: Annotated[list[str] | None, Option("neural: exact or published; zero-shot: both.")] = None,
    policy: Annotated[dict[str, Any], Group(Effort, ("weights", "device", "trust_code"), "neural: ")] = {},  # noqa: B006
    decoding: Annotated[dict[str, Any], Group(DecodeOptions, DECODING, "neural: ")] = {},  # noqa: B006
    data: Annotated[
        Path | None, Option("real: folder of the instances, or the file that `evaluate pack` made.")
    ] = None,
    label: Annotated[str | None, Option("What tables call the solver.")] = None,
    out: Annotated[Path, Option("Folder of result files.", ("--out", "-o"))] = RESULTS,
    references: References = REFERENCES,
    as_json: Json = False,
) -> Output:
    """Solve the benchmark, and show costs and gaps beside the paper's.

    What is done is kept in --out: a second call goes on where the first was stopped.
    """
    _require_torch()
    from chainroute.research.evaluate.suites import Evaluation

    job = Evaluation(tuple(suite), tuple(n), tuple(task or ()), limit, data, out, label)
    if solver == "neural":
        refuse({"time_limit": time_limit, "runs": runs}, "solve, pyvrp, ...")
        results = _neural(job, DecodeOptions(**decoding, seed=seed), rules, **policy)
    else:
        refuse({**decoding, **policy, "rules": rules}, "neural")
        results = _classical(job, solver, time_limit, seed, runs=1 if runs is None else runs)
    return _shown(results, references)


def show(
    files: Annotated[list[Path], Argument("Result files, or folders of them.")] = [RESULTS],  # noqa: B006
    networks: Annotated[
        bool, Option("One row for each network, as recipes/ablation.py trains and evaluates them.")
    ] = False,
    limit: Annotated[
        int | None, Option("Only the first instances of each task, so that all rows are of the same.")
    ] = None,
    references: References = REFERENCES,
    table: TableFile = None,
    plot: Annotated[Path | None, Option("Draw a picture: .png, .svg or .pdf.")] = None,
    picture: Annotated[str, Option("bars, trade-off, update-rates or seeds.")] = "bars",
    as_json: Json = False,
) -> Output:
    """Show stored results beside the paper's, as tables or as a picture."""
    from chainroute.research.evaluate.network_tables import ablation_table
    from chainroute.research.evaluate.results import first, read_all, read_references

    _look_at(table, plot, [*files, references])
    if missing := [file for file in files if not file.exists()]:
        raise fail("file-not-found", "there are no such results; `evaluate run` makes them.", missing[0])
    results = read_all(files)
    if limit is not None:
        results = [first(r, limit) for r in results]
    if networks:
        output = Output([ablation_table(results, read_references(references))])
    else:
        output = _shown(results, references)
    if plot:
        _draw(picture, results, read_references(references), plot)
    _write(output.tables, table, () if networks else results, references)
    return output


def compare(
    a: Annotated[Path, Argument("A result file.")],
    b: Annotated[Path, Argument("Another, of the same suite and size.")],
    table: TableFile = None,
    as_json: Json = False,
) -> Output:
    """Compare two results instance by instance: paired t-tests, 95 % intervals."""
    from chainroute.research.evaluate.results import read_references, read_results
    from chainroute.research.evaluate.statistics import comparison_table

    _look_at(table, None, [a, b])
    tables = [comparison_table(read_results(a), read_results(b), read_references())]
    _write(tables, table)
    return Output(tables)


def report(
    pages: Annotated[
        list[Path], Argument("The pages; only what stands between their marks is changed.")
    ] = PAGES,
    results: Annotated[Path, Option("Folder of the stored results.")] = STORED_RESULTS,
    runs: Annotated[Path, Option("Folder of training runs, for their curves.")] = Path("runs"),
) -> Output:
    """Write the tables, pictures and figures of pages again, from stored results."""
    from chainroute.research.evaluate.report import report as renew

    made = renew(pages, results, runs)
    return Output(lines=[f"Renewed in {', '.join(map(str, pages))}: {', '.join(made)}"])


def pack(
    folder: Annotated[Path, Argument("Folder of the sets from libraries.")],
    target: Annotated[Path, Argument("The file that is made, such as out/real.zip.")],
) -> Output:
    """Pack instances from libraries into one file, for a machine that does not have them."""
    from chainroute.research.evaluate.real import pack as packed

    return Output(lines=[f"Packed {packed(folder, target)} instances into {target}"])


def reference(
    suite: Suites = ["seen"],  # noqa: B006
    n: Sizes = [50],  # noqa: B006
    task: Tasks = None,
    limit: Limit = None,
    time_limit: Annotated[float, Option("Seconds of PyVRP for each instance.")] = 5.0,
    seed: Annotated[int, Option("Seed of the search.")] = 0,
    jobs: Annotated[int, Option("Instances at a time, each on a core of its own.")] = 1,
    out: Annotated[Path, Option("Where references are kept.", ("--out", "-o"))] = REFERENCES,
    as_json: Json = False,
) -> Output:
    """Solve the first instances of each task by PyVRP, as references for gaps.

    What is done is kept: a second call goes on where the first was stopped. Of several runs, with other
    limits or seeds, the best cost of each instance counts.
    """
    _require_torch()
    from chainroute.research.evaluate.suites import Evaluation
    from chainroute.research.evaluate.tables import cost_table

    job = Evaluation(tuple(suite), tuple(n), tuple(task or ()), limit, None, out)
    results = _classical(job, "pyvrp", time_limit, seed, jobs)
    documents = [{**r.head(), "tasks": [t.as_dict() for t in r.tasks.values()]} for r in results]
    return Output([cost_table(results)], documents=documents)


COMMANDS: dict[str, Command] = {c.__name__: c for c in (run, show, compare, report, pack, reference)}


# -- parts of the commands


def _require_torch() -> None:
    with loading("evaluating", "neural"):
        import torch  # noqa: F401


def _neural(
    job: Evaluation,
    options: DecodeOptions,
    rules: list[str] | None,
    weights: str | None = None,
    device: str = "auto",
    trust_code: bool = False,
) -> list[Results]:
    from chainroute.neural.env import Rules
    from chainroute.research.evaluate.suites import run_neural
    from chainroute.runtime.progress import StatusLine

    unknown = [name for name in rules or () if name not in tuple(Rules)]
    if unknown:
        raise fail("bad-option", f"'{unknown[0]}' is not one of {', '.join(Rules)}.", "rules", USE_LISTED)
    by = [Rules(name) for name in rules or ()]
    policy: dict[str, Any] = {"weights": weights, "device": device, "trust_code": trust_code}
    return run_neural(job, StatusLine(), **policy, options=options, rules=by)


def _classical(
    job: Evaluation, solver: str, time_limit: float | None, seed: int, jobs: int = 1, runs: int = 1
) -> list[Results]:
    from chainroute.research.evaluate.classical import Classical
    from chainroute.research.evaluate.suites import run_classical
    from chainroute.runtime.progress import StatusLine

    return run_classical(job, StatusLine(), Classical(solver, time_limit, seed, jobs, runs))


def _shown(results: Sequence[Results], references: Path) -> Output:
    from chainroute.research.evaluate.gaps import alarms
    from chainroute.research.evaluate.results import read_references
    from chainroute.research.evaluate.tables import tables

    return Output(tables(results, read_references(references)), alarms=alarms(results))


def _look_at(table: Path | None, plot: Path | None, inputs: Sequence[Path]) -> None:
    """Refuses files that cannot be written or would be written over results, before any work."""
    names = [str(path).removesuffix(".json").removesuffix(".npz") for path in inputs]
    keep = [Path(name + ending) for name in names for ending in (".json", ".npz")]
    if table:
        paths(str(table), ["table"], "--table", (".md", ".csv", ".json"), keep)
        folders = {identity(path if path.is_dir() else path.parent) for path in inputs}
        if table.suffix.lower() == ".json" and identity(table.parent) in folders:
            message = f"'{table.parent}' is a folder of results, whose files end in .json; choose another."
            raise fail("bad-option", message, "--table")
    if plot:
        paths(str(plot), ["plot"], "--plot", (".png", ".svg", ".pdf"), keep)


def _draw(kind: str, results: Sequence[Results], references: Sequence[Results], path: Path) -> None:
    from chainroute.research.evaluate.pictures import PICTURES, write

    if kind not in PICTURES:
        raise fail("bad-option", f"'{kind}' is not one of {', '.join(PICTURES)}.", "picture", USE_LISTED)
    write(PICTURES[kind](results, references), path)


def _write(
    tables: Sequence[Table],
    path: Path | None,
    results: Sequence[Results] = (),
    references: Path = REFERENCES,
) -> None:
    """The tables as a file; a .csv of results has all figures in one long table, for programs."""
    from chainroute.research.evaluate.results import read_references
    from chainroute.research.evaluate.tables import long_table

    if path is None:
        return
    ending = path.suffix.lower()
    if ending == ".csv":
        shown = [long_table(results, read_references(references))] if results else tables
        text = "\n".join(table.csv() for table in shown)
    elif ending == ".json":
        text = json.dumps([table.as_dict() for table in tables], indent=1) + "\n"
    else:
        text = "\n".join(table.markdown() for table in tables)
    save(path, text.encode())
