"""The policy for the verbs: how hard to try, under the names that the command has, and weights to look at."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chainroute.errors import ChainRouteError, Fault
from chainroute.runtime.extras import loading

if TYPE_CHECKING:
    from chainroute.policy import Policy
    from chainroute.solve import Effort

FIELDS = {  # of Effort
    "--iterations": "iterations",
    "--starts": "starts",
    "--augment": "augmentations",
    "--samples": "samples",
    "--update-rate": "update_rates",
    "--recombine": "recombine",
    "--rounds": "rounds",
    "--weights": "weights",
    "--device": "device",
}
SIZE = 50  # customers, where none are known
NAMES = {
    "time_limit": "--time-limit",
    "seed": "--seed",
    "initial": "--initial",
    **{field: name for name, field in FIELDS.items()},
}


def effort(polish: bool, options: Mapping[str, Any]) -> "Effort":
    """From what the command was given, by the names of its options."""
    from chainroute.solve import Effort

    given = {FIELDS[name]: value for name, value in options.items() if value is not None}
    chosen: Effort = named(lambda: Effort(polish=polish, **given))
    return chosen


def ready(effort: "Effort", customers: int) -> None:
    """Starts PyVRP's process, so that the time limit is all for solving; and loads the policy where the user
    chose one, so that what is wrong with it is told before any work."""
    from chainroute.classical import pyvrp
    from chainroute.solve import neural

    if effort.polish and pyvrp.installed():
        with suppress(ChainRouteError):  # where it cannot be started, notes say so: the policy may go on
            pyvrp.warm_up()
    if not effort.polish or effort.weights is not None or effort.device is not None:
        named(lambda: neural.warm_up(effort, customers))


def refuse(options: Mapping[str, object], solvers: Sequence[str]) -> None:
    """Tells which of the given options are for other solvers than the one that was chosen."""
    given = [name for name, value in options.items() if value is not None]
    if given:
        message = f"is for --solver {' or '.join(solvers)}."
        raise ChainRouteError(Fault("bad-option", message, name) for name in given)


def files(weights: str | None) -> list[Path]:
    """Those of the policy that the user chose."""
    if weights is None or weights == "random":
        return []
    try:
        from chainroute.policy.store import policy_files
    except (ImportError, OSError):  # which is told when the policy is to be used
        return []
    return list(policy_files(weights))


def policy(weights: str | None, customers: int | None = None) -> "Policy":
    """The policy at that path, a random one, or by default the one shipped for problems of that size."""
    with loading("a policy", "neural"):
        from chainroute.policy.store import load_policy, random_policy

    return random_policy() if weights == "random" else load_policy(weights or customers or SIZE)


def named(call: Callable[[], Any]) -> Any:
    """What the call returns; its faults name the options of the command."""
    try:
        return call()
    except ChainRouteError as error:
        raise renamed(error) from None


def renamed(error: ChainRouteError) -> ChainRouteError:
    return ChainRouteError(Fault(f.code, f.message, NAMES.get(f.where, f.where)) for f in error.faults)
