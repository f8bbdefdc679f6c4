"""Short names of modules that lie deeper: `import chainroute.train` is `chainroute.neural.train`.

A name below an alias is found below what it stands for, as in `chainroute.policy.store`. An alias is the
module itself, never a second copy, and `python -m` runs it too.
"""

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, spec_from_file_location
from types import ModuleType
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from importlib.abc import Loader

ALIASES = {
    "chainroute.check": "chainroute.plan.check",
    "chainroute.classical": "chainroute.search",
    "chainroute.classical.pyvrp": "chainroute.search.solvers.pyvrp",
    "chainroute.client": "chainroute.service.client",
    "chainroute.decode": "chainroute.neural.decode",
    "chainroute.env": "chainroute.neural.env",
    "chainroute.evaluate": "chainroute.research.evaluate",
    "chainroute.fleet": "chainroute.problem.fleet",
    "chainroute.measure": "chainroute.problem.measure",
    "chainroute.plot": "chainroute.formats.plot",
    "chainroute.policy": "chainroute.neural.policy",
    "chainroute.policy.rivals": "chainroute.research.rivals",
    "chainroute.road_server": "chainroute.formats.road_server",
    "chainroute.scheduling": "chainroute.research.scheduling",
    "chainroute.search.pyvrp": "chainroute.search.solvers.pyvrp",  # from chainroute.classical import pyvrp
    "chainroute.solution": "chainroute.plan.solution",
    "chainroute.train": "chainroute.neural.train",
    "chainroute.variants": "chainroute.problem.variants",
}


def resolved(name: str) -> str | None:
    """Returns the full name of the module that an alias, or a name below one, stands for."""
    head, tail = name, ""
    while head:
        if head in ALIASES:
            return ALIASES[head] + tail
        head, _, last = head.rpartition(".")
        tail = f".{last}{tail}"
    return None


class _Loader:
    """Hands on the module that an alias stands for."""

    def __init__(self, target: str):
        self.target = target

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(self.target)
        self.own = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self.own  # the import system has just replaced it by the alias's


class _Finder:
    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        full = resolved(name)
        found = find_spec(full) if full else None
        if full is None or found is None:
            return None
        if name.endswith(".__main__"):  # run by `python -m`, which reads the code of the file
            return spec_from_file_location(name, found.origin)
        package = found.submodule_search_locations is not None
        loader = cast("Loader", _Loader(full))  # by its methods: importing the class takes a while
        return ModuleSpec(name, loader, origin=found.origin, is_package=package)


def install() -> None:
    """Makes the import system look for aliases first: a folder left over from before would hide them."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
