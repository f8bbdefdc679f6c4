"""Files as a whole: which format it is, round trips through all of them, safe reading and atomic writing."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from where import DATA, DOCS

from chainroute import Backhaul, ChainRouteError, Metric, Problem, Rounding, Solution, check
from chainroute.formats import (
    FORMATS,
    cordeau,
    read,
    read_many,
    read_solution,
    solomon,
    vrplib,
    write,
    write_solution,
)
from chainroute.formats.tables import stops as tables
from chainroute.problem import arrays as arrays_module
from chainroute.problem.features import FEATURES
from chainroute.problem.measure import ANY_DAY

PROBLEMS = sorted(
    p for p in DATA.iterdir() if p.suffix not in (".sol", ".res", ".csv") and not p.name.endswith(".sol.json")
)
PAIRS = [("five.vrp", "five.sol"), ("depots.vrp", "depots.sol"), ("mdvrp.txt", "mdvrp.res"),
         ("named.json", "named.sol.json")]  # fmt: skip

SUFFIXES = {
    "vrplib": ".vrp",
    "lkh": ".vrpb",
    "solomon": ".txt",
    "cordeau": ".txt",
    "json": ".json",
    "npz": ".npz",
    "csv": ".csv",
    "xlsx": ".xlsx",
}
HOLDS = {
    "vrplib": vrplib.HOLDS,
    "lkh": vrplib.HOLDS,
    "solomon": solomon.HOLDS,
    "cordeau": cordeau.HOLDS,
    "json": set(FEATURES),
    "npz": arrays_module.HOLDS,
    "csv": tables.HOLDS,
    "xlsx": tables.HOLDS,
}
READABLE = {"csv", "xlsx"}  # which hold names that people can read and type
NAMELESS = {"cordeau", "npz"}  # there the name of the file is the name of the problem

quick = settings(
    max_examples=2 * settings.default.max_examples,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def codes(error: ChainRouteError) -> set[str]:
    return {fault.code for fault in error.faults}


# -- round trips


@st.composite
def problems(draw: st.DrawFn, holds: set[str], readable: bool = False) -> Problem:
    """Any servable problem whose features are among the given ones, with nothing in it that means nothing."""

    def may(feature: str) -> bool:
        return feature in holds and draw(st.booleans())

    amount = st.one_of(st.integers(0, 50), st.floats(0, 50))
    m = draw(st.integers(2, 3)) if may("several depots") else 1
    n = draw(st.integers(1, 5))

    def amounts() -> list[float]:
        return draw(st.lists(amount, min_size=n, max_size=n))

    rule = [Backhaul.NONE]
    rule += [Backhaul.LINEHAULS_FIRST] * ("linehauls first" in holds)
    rule += [Backhaul.MIXED] * ("mixed backhauls" in holds)
    backhaul, delivery, pickup = draw(st.sampled_from(rule)), np.array(amounts(), float), np.zeros(n)
    if backhaul is not Backhaul.NONE:
        gives = np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)))
        pickup, delivery = np.where(gives, delivery, 0), np.where(gives, 0, delivery)
    fields: dict[str, object] = {
        "delivery": delivery,
        "pickup": pickup,
        "backhaul": backhaul,
        "num_depots": m,
        "capacity": draw(st.integers(250, 300) | st.floats(250, 300)),
        "open": may("open routes"),
    }
    fields["day"] = draw(st.sampled_from([ANY_DAY, "2026-11-16"])) if may("times of day") else None
    service = np.array(amounts(), float) if may("service times") else np.zeros(n)
    fields["service"] = service
    far = 1e9  # beyond any way here, so that every customer can be served
    windowed = "no time windows" not in holds or may("time windows")
    if windowed:
        never = may("windows that never close")
        openings = draw(st.lists(amount, min_size=m + n, max_size=m + n))
        closing = st.sampled_from([far, np.inf]) if never else st.floats(far, 2 * far)
        fields["time_windows"] = [[a, draw(closing)] for a in openings]
    counting = [False] * (not service.any() or "a limit without service" in holds)
    counting += [True] * (bool(service.any()) and "a limit with service" in holds)
    both = holds is not cordeau.HOLDS  # Cordeau's limit counts waiting where there are windows
    if may("a distance limit") and counting and (both or not windowed):
        fields["distance_limit"] = draw(st.integers(10**9, 10**10) | st.floats(far, 10 * far))
        fields["limit_counts_service"] = draw(st.sampled_from(counting))
    if n > 1 and may("a fleet size"):
        fields["fleet"] = draw(st.integers(1, n - 1))

    def matrix() -> np.ndarray:
        values = np.array(draw(st.lists(amount, min_size=(m + n) ** 2, max_size=(m + n) ** 2)), float)
        values = values.reshape(m + n, m + n)
        np.fill_diagonal(values, 0)
        return values

    if may("a distance matrix"):
        fields["distance_matrix"] = matrix()
    if may("a duration matrix"):
        fields["duration_matrix"] = matrix()
    if "distance_matrix" not in fields or not may("no coordinates"):
        globe = may("longitude and latitude")
        x, y = (
            (st.floats(-180, 180), st.floats(-90, 90))
            if globe
            else (st.integers(-99, 99), st.floats(-1e3, 1e3))
        )
        fields["coords"] = draw(st.lists(st.tuples(x, y), min_size=m + n, max_size=m + n))
        fields["metric"] = Metric.HAVERSINE if globe else Metric.EUCLIDEAN
    if "distance_matrix" not in fields:
        roundings = [Rounding.EXACT]
        roundings += [Rounding.ROUND, Rounding.CEIL, Rounding.TRUNC] * ("rounding to integers" in holds)
        roundings += [Rounding.TRUNC1] * ("rounding to one decimal" in holds)
        fields["rounding"] = draw(st.sampled_from(roundings))
    if may("names"):
        name = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
        if readable:
            name = name.filter(lambda text: text != "" and text.isprintable() and text == text.strip())
        fields["names"] = draw(st.lists(name, min_size=m + n, max_size=m + n, unique=True))
    fields["name"] = draw(st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,9}", fullmatch=True))
    return Problem(**fields)  # type: ignore[arg-type]


TRIED = [format for format in FORMATS if format != "xlsx"]  # which takes long, and has the tables of a CSV


@pytest.mark.parametrize("format", TRIED)
@quick
@given(data=st.data())
def test_what_a_format_holds_comes_back_the_same(format: str, data: st.DataObject, tmp_path: Path) -> None:
    problem = data.draw(problems(HOLDS[format], readable=format in READABLE))
    path = tmp_path / f"file{SUFFIXES[format]}"
    write(problem, path, format)
    back = read(path)
    assert back == (problem.replace(name="file") if format in NAMELESS else problem)


@settings(quick, max_examples=settings.default.max_examples // 2)
@given(problem=problems(tables.HOLDS, readable=True))
def test_a_workbook_holds_what_a_csv_holds(problem: Problem, tmp_path: Path) -> None:
    write(problem, tmp_path / "file.xlsx")
    assert read(tmp_path / "file.xlsx") == problem


@pytest.mark.parametrize("format", TRIED)
@quick
@given(problem=problems(set(FEATURES)))
def test_nothing_is_dropped_on_the_way(format: str, problem: Problem, tmp_path: Path) -> None:
    """Any problem at all either comes back the same or is refused, and then no file is left."""
    path = tmp_path / f"file{SUFFIXES[format]}"
    path.unlink(missing_ok=True)
    try:
        write(problem, path, format)
    except ChainRouteError as error:
        refused = codes(error)
    else:
        refused = set()
    assert refused <= {"cannot-express"}
    assert path.exists() is not bool(refused)
    if not refused:
        assert read(path) == (problem.replace(name="file") if format in NAMELESS else problem)


@pytest.mark.parametrize("path", PROBLEMS, ids=lambda path: path.name)
def test_the_example_files_convert_to_json_and_back(path: Path, tmp_path: Path) -> None:
    problem = read(path)
    write(problem, tmp_path / "copy.json")
    assert read(tmp_path / "copy.json") == problem


# -- which format


def test_the_name_of_a_file_does_not_matter(tmp_path: Path) -> None:
    for path in PROBLEMS:
        disguised = tmp_path / path.stem / "data.xyz"
        disguised.parent.mkdir(exist_ok=True)
        disguised.write_bytes(path.read_bytes())
        assert read(disguised).replace(name="") == read(path).replace(name="")


@pytest.mark.parametrize("path", PROBLEMS, ids=lambda path: path.name)
def test_line_ends_marks_tabs_and_blanks_do_not_matter(path: Path, tmp_path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    copy = tmp_path / path.name
    spaced = text.replace(" ", "\t ").replace("\n", " \t\n\n") if path.suffix != ".json" else text
    for variation in (text.replace("\n", "\r\n"), "\ufeff" + text, text + "\n\n \n", "\n\n" + text, spaced):
        copy.write_bytes(variation.encode())
        assert read(copy) == read(path)


@pytest.mark.parametrize(
    ("suffix", "changes", "kind"),
    [
        (".vrp", {}, "vrplib"),
        (".VRPB", {"backhaul": "linehauls-first"}, "lkh"),
        (".txt", {"time_windows": [[0, 99], [0, 99]]}, "solomon"),
        (".txt", {}, "cordeau"),
        (".json", {}, "json"),
        (".npz", {}, "npz"),
        (".CSV", {}, "csv"),
    ],
)
def test_the_ending_says_what_is_written(
    suffix: str, changes: dict[str, object], kind: str, tmp_path: Path
) -> None:
    problem = Problem(name="it", capacity=9, delivery=[1], coords=[[0, 0], [3, 4]], **changes)  # type: ignore[arg-type]
    write(problem, tmp_path / f"it{suffix}")
    write(problem, tmp_path / "it", kind)
    assert (tmp_path / f"it{suffix}").read_bytes() == (tmp_path / "it").read_bytes()
    assert read(tmp_path / "it") == problem


def test_an_unknown_format_is_a_bad_option(tmp_path: Path) -> None:
    problem = read(DATA / "five.vrp")
    for path, format in (("it.xyz", None), ("it", None), ("it.vrp", "excel")):
        with pytest.raises(ChainRouteError, match="bad-option"):
            write(problem, tmp_path / path, format)
        with pytest.raises(ChainRouteError, match="bad-option"):
            write_solution(Solution.of(problem, [(0, [1])]), tmp_path / path, format)


# -- the documentation


def test_the_documented_table_is_that_of_the_code() -> None:
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in (DOCS / "formats.md").read_text(encoding="utf-8").splitlines()
        if line.startswith("|")
    ]
    head = next(i for i, row in enumerate(rows) if row[0] == "can hold")
    formats, body = [name.lower() for name in rows[head][1:]], rows[head + 2 :]
    assert [row[0] for row in body] == list(FEATURES)
    assert set(formats) == set(FORMATS) - {"lkh"}
    for format, *cells in zip(formats, *(row[1:] for row in body), strict=True):
        held = {feature for feature, cell in zip(FEATURES, cells, strict=True) if cell == "yes"}
        assert held == HOLDS[format]


def test_the_documented_example_works(tmp_path: Path) -> None:
    blocks = (DOCS / "formats.md").read_text(encoding="utf-8").split("```json\n")[1:]
    for name, block in zip(("problem", "solution"), blocks, strict=True):
        (tmp_path / f"{name}.json").write_text(block.split("```")[0], encoding="utf-8")
    problem = read(tmp_path / "problem.json")
    solution = read_solution(tmp_path / "solution.json", problem)
    assert problem.variant.name == "VRPMBLTW"
    assert check(problem, solution).feasible


# -- rounding


@pytest.mark.parametrize("name", ["five.vrp", "depots.vrp", "windows.txt", "mdvrp.txt", "globe.json"])
def test_the_callers_rounding_goes_before_the_files(name: str) -> None:
    for rounding in Rounding:
        assert read(DATA / name, rounding) == read(DATA / name).replace(rounding=rounding)


@pytest.mark.parametrize("name", ["matrix.vrp", "asymmetric.json"])
def test_a_matrix_is_not_rounded(name: str) -> None:
    with pytest.raises(ChainRouteError, match="bad-option"):
        read(DATA / name, Rounding.ROUND)


# -- several problems in one file


def test_one_of_many_is_named_by_its_index(tmp_path: Path) -> None:
    many = [Problem(capacity=c, delivery=[1], coords=[[0, 0], [3, 4]]) for c in (5, 6, 7)]
    path = tmp_path / "many.npz"
    write(many, path)
    assert [p.capacity for p in read_many(path)] == [5, 6, 7]
    assert read(path, index=1).capacity == 6
    assert {p.rounding for p in read_many(path, Rounding.CEIL)} == {Rounding.CEIL}
    for index in (None, 3, -1):
        with pytest.raises(ChainRouteError, match="bad-option"):
            read(path, index=index)


def test_only_an_npz_holds_many(tmp_path: Path) -> None:
    problem = read(DATA / "five.vrp")
    assert read_many(DATA / "five.vrp") == [problem]
    with pytest.raises(ChainRouteError, match="cannot-express"):
        write([problem, problem], tmp_path / "two.vrp")


# -- solutions


@pytest.mark.parametrize(("problem_file", "solution_file"), PAIRS)
def test_solutions_come_back_the_same(problem_file: str, solution_file: str, tmp_path: Path) -> None:
    problem = read(DATA / problem_file)
    solution = read_solution(DATA / solution_file, problem)
    assert check(problem, solution).feasible
    for suffix in (".sol", ".res", ".json", ".csv", ".xlsx"):
        path = tmp_path / f"copy{suffix}"
        write_solution(solution, path)
        assert read_solution(path, problem).routes == solution.routes


@quick
@given(data=st.data())
def test_any_routes_come_back_the_same(data: st.DataObject, tmp_path: Path) -> None:
    """They are of any problem, feasible or not, empty routes included."""
    problem = data.draw(problems(set(FEATURES)))
    route = st.tuples(
        st.sampled_from(problem.depots),
        st.lists(st.sampled_from(problem.customers), max_size=4),
    )
    solution = Solution.of(problem, data.draw(st.lists(route, min_size=1, max_size=4)))
    for suffix in (".sol", ".res", ".json"):
        path = tmp_path / f"file{suffix}"
        if suffix == ".res" and problem.open:
            with pytest.raises(ChainRouteError, match="cannot-express"):
                write_solution(solution, path)
        else:
            write_solution(solution, path)
            assert read_solution(path, problem).routes == solution.routes


def test_a_problem_is_no_solution() -> None:
    with pytest.raises(ChainRouteError, match="unknown-format"):
        read_solution(DATA / "five.vrp", read(DATA / "five.vrp"))


# -- safe reading, atomic writing


def test_paths_that_cannot_be_read(tmp_path: Path) -> None:
    for path, code in ((tmp_path / "none.vrp", "file-not-found"), (tmp_path, "file-unreadable"),
                       (tmp_path / "a\0b", "file-not-found"), (DATA / "five.vrp" / "x", "file-not-found"),
                       (Path("/dev/zero"), "file-too-large")):  # fmt: skip
        with pytest.raises(ChainRouteError) as caught:
            read(path)
        assert codes(caught.value) == {code}


def test_a_folder_is_told_from_a_file(tmp_path: Path) -> None:
    with pytest.raises(ChainRouteError, match="is a folder; name the files in it"):
        read(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_forbidden_file_is_unreadable(tmp_path: Path) -> None:
    path = tmp_path / "secret.vrp"
    path.write_text("x")
    path.chmod(0)
    with pytest.raises(ChainRouteError, match="file-unreadable"):
        read(path)


def test_paths_that_cannot_be_written(tmp_path: Path) -> None:
    problem = read(DATA / "five.vrp")
    (tmp_path / "folder.vrp").mkdir()
    for path in (
        tmp_path / "none" / "x.vrp",
        tmp_path / "folder.vrp",
        tmp_path / "a\0b.vrp",
        tmp_path / ("x" * 300),
    ):
        with pytest.raises(ChainRouteError) as caught:
            write(problem, path, "vrplib")
        assert codes(caught.value) == {"file-unwritable"}
    assert [p.name for p in tmp_path.iterdir()] == ["folder.vrp"]


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "five.vrp"
    path.write_text("the old content")

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(ChainRouteError, match="No space left"):
        write(read(DATA / "five.vrp"), path)
    assert path.read_text() == "the old content"
    assert [p.name for p in tmp_path.iterdir()] == ["five.vrp"]


def test_a_link_is_written_through(tmp_path: Path) -> None:
    (tmp_path / "real.vrp").write_text("old")
    (tmp_path / "link.vrp").symlink_to(tmp_path / "real.vrp")
    write(read(DATA / "five.vrp"), tmp_path / "link.vrp")
    assert (tmp_path / "link.vrp").is_symlink()
    assert read(tmp_path / "real.vrp") == read(DATA / "five.vrp")
