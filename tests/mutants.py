"""Do the tests notice faults? Small ones are put into core modules, one at a time, and the tests run.

    python tests/mutants.py                              a sample of each module, as `make mutants` does
    python tests/mutants.py --seed 3 --count 60          another sample, a larger one
    python tests/mutants.py chainroute/plan/check.py --all    every mutant of a module

A mutant that no test notices has survived: it is printed, and wants a test. Mutants that change nothing that
anybody could notice are in mutants.toml, each with its reason. Of the others, 95 % must be killed.

A mutant is tried in a copy of the checkout by a process forked from this one, which has loaded the libraries
but nothing of the package: so each costs little more than its tests.
"""

from __future__ import annotations

import argparse
import ast
import copy
import gc
import importlib
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path

ROOT = Path(__file__).parents[1]
ACCEPTED = Path(__file__).with_suffix(".toml")
ENOUGH = 0.95  # of the mutants must be killed

TESTS = {  # what pytest is given for each module
    "chainroute/search/solvers/pyvrp_search.py": ["tests/search/test_search.py"],
    "chainroute/search/solvers/scaling.py": ["tests/search/test_scaling.py", "tests/problem/test_roads.py"],
    "chainroute/neural/assembly/recombine.py": ["tests/neural/test_assembly_recombine.py"],
    "chainroute/neural/assembly/routes.py": ["tests/neural/test_assembly_routes.py"],
    "chainroute/problem/servable.py": [
        "tests/problem/test_validate.py",
        "tests/problem/test_problem.py",
        "tests/problem/test_roads.py",
    ],
    "chainroute/service/jobs.py": [
        "tests/service/test_jobs.py",
        "tests/service/test_attack.py::test_the_queue_is_bounded_in_bytes",
        "tests/service/test_service.py",
    ],
    "chainroute/neural/train/objective.py": ["tests/neural/test_train_objective.py"],
    "chainroute/neural/train/snapshot.py": ["tests/neural/test_train_snapshot.py"],
    "chainroute/problem/validate.py": [
        "tests/problem/test_validate.py",
        "tests/problem/test_problem.py",
        "tests/problem/test_roads.py",
    ],
}


# -- the faults


@dataclass(frozen=True)
class Mutant:
    module: str
    place: str  # the function
    line: int
    before: str  # the statement, or the head of a compound one
    after: str
    source: str  # of the whole module

    @property
    def key(self) -> tuple[str, str, str, str]:
        return self.module, self.place, self.before, self.after

    def __str__(self) -> str:
        return f"{self.module}:{self.line} {self.place}\n  - {self.before}\n  + {self.after}"


SWAPS: dict[type, list[type]] = {
    ast.Lt: [ast.LtE, ast.Gt],
    ast.LtE: [ast.Lt, ast.GtE],
    ast.Gt: [ast.GtE, ast.Lt],
    ast.GtE: [ast.Gt, ast.LtE],
    ast.Eq: [ast.NotEq],
    ast.NotEq: [ast.Eq],
    ast.Is: [ast.IsNot],
    ast.IsNot: [ast.Is],
    ast.In: [ast.NotIn],
    ast.NotIn: [ast.In],
    ast.Add: [ast.Sub],
    ast.Sub: [ast.Add],
    ast.Mult: [ast.Div],
    ast.Div: [ast.Mult],
    ast.FloorDiv: [ast.Mult],
    ast.Mod: [ast.Mult],
    ast.Pow: [ast.Mult],
    ast.BitAnd: [ast.BitOr],
    ast.BitOr: [ast.BitAnd],
    ast.LShift: [ast.RShift],
    ast.And: [ast.Or],
    ast.Or: [ast.And],
}
_PAIRS = (
    "min max|any all|floor ceil|minimum maximum|argmin argmax|zeros ones|zeros_like ones_like|append extend"
)
NAMES = {a: b for pair in _PAIRS.split("|") for x, y in [pair.split()] for a, b in [(x, y), (y, x)]}


def changed(node: ast.AST) -> Iterator[ast.AST | None]:
    """The faults that a programmer might have made here; None leaves a statement out."""
    match node:
        case ast.Compare(ops=[op]) | ast.BinOp(op=op) | ast.BoolOp(op=op) | ast.AugAssign(op=op):
            for swap in SWAPS.get(type(op), []):
                other = copy.copy(node)
                setattr(other, *(("ops", [swap()]) if isinstance(node, ast.Compare) else ("op", swap())))
                yield other
        case ast.UnaryOp(operand=operand):
            yield operand
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value)):
            yield ast.Constant(value + 1)
        case ast.Constant(value=float(value)):
            yield ast.Constant(value * 2 or 1.0)
        case ast.Constant(value=str(value)) if value and " " not in value:  # a name or a code, not a sentence
            yield ast.Constant(f"{value}X")
        case ast.Name(id=name) if name in NAMES:
            yield ast.Name(NAMES[name], ast.Load())
        case ast.Attribute(value=owner, attr=name) if name in NAMES:
            yield ast.Attribute(owner, NAMES[name], ast.Load())
        case ast.Slice(lower=lower, upper=upper) if lower or upper:
            yield ast.Slice()
    match node:
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
            other = copy.copy(node)
            other.test = ast.UnaryOp(ast.Not(), test)
            yield other
        case ast.comprehension(ifs=[_, *_]):
            other = copy.copy(node)
            other.ifs = []
            yield other
        case ast.Call(keywords=keywords):
            for keyword in keywords:
                if keyword.arg != "strict":  # of zip: an assertion
                    other = copy.copy(node)
                    other.keywords = [k for k in keywords if k is not keyword]
                    yield other
        case ast.Return(value=value) if value is not None and not isinstance(value, ast.Constant):
            yield ast.Return(ast.Constant(None))
    match node:
        case ast.Expr(value=ast.Constant()):  # a docstring
            pass
        case ast.Expr() | ast.AugAssign() | ast.Raise() | ast.Break() | ast.Continue():
            yield None
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript(), *_]):
            yield None
        case ast.If(orelse=[]):
            yield None


def head(statement: ast.stmt) -> str:
    """A statement on one line, without what is nested in it."""
    bare = copy.copy(statement)
    for name in ("body", "orelse", "finalbody", "handlers"):
        if getattr(bare, name, None):
            setattr(bare, name, [])
    return " ".join(ast.unparse(bare).split())


def mutants(module: str, source: str) -> list[Mutant]:
    """All of them, in the order of the source."""
    tree = ast.parse(source)
    found: list[Mutant] = []

    def walk(owner: ast.AST, place: str, statement: ast.stmt) -> None:
        for field, value in ast.iter_fields(owner):
            if field in ("annotation", "returns", "decorator_list"):
                continue
            nodes = value if isinstance(value, list) else [value]
            for at, node in enumerate(nodes):
                if not isinstance(node, ast.AST) or isinstance(node, ast.JoinedStr):  # a message
                    continue
                if isinstance(node, ast.keyword) and node.arg == "strict":
                    continue
                inner = node if isinstance(node, ast.stmt) else statement
                before = head(inner)
                for new in changed(node):
                    nodes[at] = ast.Pass() if new is None else new
                    setattr(owner, field, nodes if nodes is value else nodes[0])
                    after = head(nodes[at] if node is inner else inner)
                    text = ast.unparse(ast.fix_missing_locations(tree))
                    found.append(Mutant(module, place, inner.lineno, before, after, text))
                nodes[at] = node
                setattr(owner, field, value)
                named = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
                walk(node, f"{place}.{node.name}" if named else place, inner)

    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):  # constants of the module are choices
            walk(node, node.name, node)
    return found


# -- trying them


class Trial:
    """A process that runs the tests of a module in a copy of the checkout."""

    def __init__(self, tree: Path, mutant: Mutant, seconds: float):
        self.tree, self.mutant = tree, mutant
        path = tree / mutant.module
        path.write_text(mutant.source)
        stamp = random.SystemRandom().randrange(10**9)  # another one than any cached bytecode has
        os.utime(path, (stamp, stamp))
        self.begin = time.monotonic()
        self.end = self.begin + seconds
        self.pid = os.fork()
        if not self.pid:
            _test(tree, TESTS[mutant.module])

    def verdict(self) -> str | None:
        """How it ended; None while it runs. Hanging is as noticeable as failing."""
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if not pid:
            if time.monotonic() < self.end:
                return None
            os.killpg(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            return "killed"
        return "survived" if status == 0 else "killed"


def _test(tree: Path, tests: list[str]) -> None:
    """In the forked process: runs the tests and exits with their verdict."""
    import pytest

    os.setsid()
    quiet = os.open(tree / "output", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(quiet, stream)
    os.chdir(tree)
    sys.path[0] = str(tree)
    os.environ["PYTHONPATH"] = str(tree)
    os._exit(pytest.main(["-x", "-q", "-p", "no:cacheprovider", "--hypothesis-profile=mutants", *tests]))


def planted(folder: Path) -> Path:
    """A copy of the package and its tests; the rest of the checkout is linked."""
    for item in ROOT.iterdir():
        if item.name in ("chainroute", "tests"):
            shutil.copytree(item, folder / item.name, ignore=shutil.ignore_patterns("__pycache__"))
        elif item.name not in (".git", ".hypothesis"):
            (folder / item.name).symlink_to(item)
    return folder


def tried(todo: list[Mutant], jobs: int, limits: dict[str, float]) -> Iterator[tuple[Mutant, str, float]]:
    """Each mutant with its verdict and the seconds it took, as they are ready."""
    with tempfile.TemporaryDirectory() as folder:
        trees = []
        for job in range(jobs):
            (Path(folder) / str(job)).mkdir()
            trees.append(planted(Path(folder) / str(job)))
        waiting, running = list(reversed(todo)), []
        while waiting or running:
            while waiting and trees:
                mutant = waiting.pop()
                running.append(Trial(trees.pop(), mutant, limits.get(mutant.module, 600)))
            for trial in list(running):
                if (verdict := trial.verdict()) is not None:
                    running.remove(trial)
                    shutil.copy(ROOT / trial.mutant.module, trial.tree / trial.mutant.module)
                    trees.append(trial.tree)
                    yield trial.mutant, verdict, time.monotonic() - trial.begin
            time.sleep(0.02)


def load_libraries() -> None:
    """All that takes long to load, and nothing that is tested."""
    import hypothesis

    for name in ("fastapi", "httpx", "numpy", "pyvrp", "torch", "uvicorn"):
        importlib.import_module(name)
    for plugin in entry_points(group="pytest11"):
        plugin.load()
    hypothesis.settings.register_profile(  # no search for the smallest example: any will do
        "mutants",
        derandomize=True,
        deadline=None,
        max_examples=50,
        phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
    )
    gc.freeze()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("modules", nargs="*", default=list(TESTS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=20, help="mutants of each module")
    parser.add_argument("--all", action="store_true", help="every mutant")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    args = parser.parse_args()
    load_libraries()
    accepted = {
        (entry["module"], entry["place"], entry["before"], entry["after"])
        for entry in tomllib.loads(ACCEPTED.read_text()).get("equivalent", [])
    }

    every = {module: mutants(module, (ROOT / module).read_text()) for module in args.modules}
    keys = {m.key for some in every.values() for m in some}
    stale = sorted(key for key in accepted - keys if key[0] in every)
    whole = [Mutant(m, "", 0, "", "", ast.unparse(ast.parse((ROOT / m).read_text()))) for m in args.modules]
    limits = {}
    for sound, verdict, seconds in tried(whole, args.jobs, {}):
        limits[sound.module] = 20 + 5 * seconds
        if verdict != "survived":
            print(f"{sound.module}: its tests fail without any mutant.")
            return 2

    todo = []
    for module, some in every.items():
        fresh = [m for m in some if m.key not in accepted]
        chosen = random.Random(f"{args.seed} {module}").sample(range(len(fresh)), min(args.count, len(fresh)))
        todo += fresh if args.all else [fresh[i] for i in sorted(chosen)]
    killed = dict.fromkeys(args.modules, 0)
    survivors = []
    for mutant, verdict, _ in tried(todo, args.jobs, limits):
        if verdict == "killed":
            killed[mutant.module] += 1
        else:
            survivors.append(mutant)
            print(mutant, flush=True)
    for module in args.modules:
        tested = sum(m.module == module for m in todo)
        print(f"{module}: {killed[module]} of {tested} killed, of {len(every[module])} that there are")
    for key in stale:
        print("No longer a mutant, to be removed from mutants.toml:", *key)
    share = 1 - len(survivors) / max(1, len(todo))
    print(f"{share:.1%} of {len(todo)} mutants killed; {len(accepted)} are accepted as equivalent.")
    return int(share < ENOUGH or bool(stale))


if __name__ == "__main__":
    sys.exit(main())
