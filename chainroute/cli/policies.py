"""The policy for the verbs: started before any clock runs, and weights to look at."""

from pathlib import Path
from typing import TYPE_CHECKING

from chainroute.runtime.extras import loading

if TYPE_CHECKING:
    from chainroute.neural.policy import Policy
    from chainroute.solve import Effort


def ready(effort: "Effort") -> None:
    """Loads the policy where the user chose one, so that what is wrong with it is told before any work."""
    from chainroute.solve import policy_process

    if not effort.polish or effort.weights is not None or effort.device is not None:
        policy_process.warm_up(effort)


def files(weights: str | None) -> list[Path]:
    """The files of the policy that the user chose."""
    if weights is None or weights == "random":
        return []
    try:
        from chainroute.neural.policy.store import policy_files
    except (ImportError, OSError):  # which is told when the policy is to be used
        return []
    return list(policy_files(weights))


def policy(weights: str | None, trust_code: bool = False) -> "Policy":
    """The policy at that path, a random one, or by default the one that is shipped."""
    with loading("a policy", "neural"):
        from chainroute.neural.policy.store import DEFAULT, load_policy, random_policy

    return random_policy() if weights == "random" else load_policy(weights or DEFAULT, trust_code=trust_code)
