"""The neural solver for the verbs: its policy, and its options under the names that the command has."""

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from chainroute.errors import ChainRouteError, Fault, fail

if TYPE_CHECKING:
    from chainroute.policy import Policy
    from chainroute.problem import Problem
    from chainroute.solution import Solution

FIELDS = {"--starts": "num_starts", "--augment": "augmentations", "--samples": "samples"}  # of DecodeOptions
SIZE = 50  # customers, where none are known
NAMES = {"device": "--device", "seed": "--seed", **{field: name for name, field in FIELDS.items()}}


def solver(
    weights: str | None, device: str | None, options: Mapping[str, int | None]
) -> Callable[["Problem", int], "Solution"]:
    """A function of the problem and the seed."""
    suited = cache(partial(policy, weights))
    suited(SIZE if weights is None else None)  # what is wrong with the weights is told before any work
    from chainroute.decode import DecodeOptions, decode

    given: dict[str, Any] = {FIELDS[name]: value for name, value in options.items() if value is not None}
    _named(lambda: DecodeOptions(**given))

    def run(problem: "Problem", seed: int) -> "Solution":
        the_policy = suited(problem.num_customers if weights is None else None)
        found: Solution = _named(
            lambda: decode(the_policy, [problem], DecodeOptions(**given, seed=seed), device)[0]
        )
        return found

    return run


def refuse(options: Mapping[str, object], solver: str) -> None:
    """Tells which of the given options are for that solver, and not for the one that was chosen."""
    given = [name for name, value in options.items() if value is not None]
    if given:
        raise ChainRouteError(Fault("bad-option", f"is for --solver {solver}.", name) for name in given)


def policy(weights: str | None, customers: int | None = None) -> "Policy":
    """The policy at that path, a random one, or by default the one shipped for problems of that size."""
    try:
        from chainroute.policy.store import load_policy, random_policy, shipped_policy
    except ModuleNotFoundError as error:
        message = f"a policy needs {error.name}: pip install 'chainroute[neural]'."
        raise fail("missing-extra", message) from None
    if weights is None:
        return shipped_policy(customers or SIZE)
    return random_policy() if weights == "random" else load_policy(weights)


def _named(call: Callable[[], Any]) -> Any:
    """What the call returns; its faults name the options of the command."""
    try:
        return call()
    except ChainRouteError as error:
        faults = [Fault(f.code, f.message, NAMES.get(f.where, f.where)) for f in error.faults]
        raise ChainRouteError(faults) from None
