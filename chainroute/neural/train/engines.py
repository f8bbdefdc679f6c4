"""The engine by name: the fast one where it can run, else the plain one, and why."""

from __future__ import annotations

import torch

from chainroute.errors import ChainRouteError, fail
from chainroute.neural.fast.support import device_obstacle, kernel_obstacle, obstacle
from chainroute.neural.train.engine import Engine, PlainEngine
from chainroute.neural.train.fast import Fast
from chainroute.neural.train.learner import Learner
from chainroute.neural.train.ranks import Ranks

ENGINES = ("auto", "plain", "fast")


def make_engine(name: str, learner: Learner, ranks: Ranks) -> tuple[Engine, str]:
    """The engine of that name, and which it is in words; "auto" is the fast one where it can run."""
    if name not in ENGINES:
        raise fail("unknown-value", f"'{name}' is not one of {', '.join(ENGINES)}.", "engine")
    if name == "plain":
        return PlainEngine(learner, ranks), "plain (as asked)"
    reason = _obstacle(learner)
    anywhere = ranks.most(torch.tensor(float(bool(reason)), device=ranks.device)).item()
    if anywhere and not reason:
        reason = "cannot run on every rank"  # and all must do the same
    if not reason:
        engine: Engine = Fast(learner, ranks)
        if name == "fast" or ranks.grouped:  # a rank that gave up alone would leave the others waiting
            return engine, "fast"
        reason = _failure(engine, learner)
        if not reason:
            return engine, "fast"
    if name == "fast":
        raise fail("bad-option", f"the fast engine {reason}.", "engine", "Choose auto or plain.")
    return PlainEngine(learner, ranks), f"plain (the fast engine {reason})"


def _failure(engine: Engine, learner: Learner) -> str:
    """Why the engine cannot prepare an update of this network, such as a block of somebody's own that waits
    for the device; empty if it can. A lack of memory is raised: no other engine has more."""
    try:
        engine.prepare()
    except ChainRouteError:
        raise
    except Exception as error:
        if lacks_memory(error):
            raise
        engine.close()
        learner.policy.zero_grad(set_to_none=False)
        line = next(iter(str(error).strip().splitlines()), "").rstrip(".")
        return f"failed to capture an update, {type(error).__name__}: {line}"
    return ""


def lacks_memory(error: BaseException | None) -> bool:
    """Whether that is what failed first: a graph under capture then fails with an error of its own."""
    while error is not None:
        if isinstance(error, MemoryError | torch.OutOfMemoryError) or "allocate memory" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False


def _obstacle(learner: Learner) -> str:
    """Why the fast engine cannot run here; empty if it can."""
    return (
        device_obstacle(learner.device)
        or obstacle(learner.policy)
        or kernel_obstacle(learner.config.policy, max(learner.config.sizes))
    )
