"""Blocks of one's own in place of the paper's: PolicyConfig names the class, as `module:Class`."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from traceback import extract_tb
from typing import TypeVar, cast

from torch import nn

from chainroute.errors import ChainRouteError, fail
from chainroute.neural.policy.config import PolicyConfig

T = TypeVar("T", bound=nn.Module)
ROOMS = ("research.rivals", "rivals", "neural.policy", "policy")  # with classes of our own
OURS = tuple(f"chainroute.{room}." for room in ROOMS)
PARTS = ("encoder", "rgcr", "tsnr", "pointer")  # that may be blocks of one's own


def make_block(config: PolicyConfig, part: str, ours: type[T]) -> T:
    """The block that the config names for that part of the policy, or ours. It is called as ours is."""
    name = getattr(config, part)
    if not name:
        return ours(config)
    made = named_class(name, f"config.{part}")
    with telling(config, part):
        return cast(T, made(config))


def named_blocks(config: PolicyConfig) -> set[str]:
    """The classes that the config names, other than ours: to make a policy of it is to run their code."""
    return {name for part in PARTS if (name := getattr(config, part)) and not name.startswith(OURS)}


@contextmanager
def telling(config: PolicyConfig, *parts: str) -> Iterator[None]:
    """What goes wrong meanwhile is told as a fault of the blocks of one's own among these parts, if any."""
    try:
        yield
    except (ChainRouteError, OSError, MemoryError):
        raise
    except Exception as error:
        own = {part: name for part in parts if (name := getattr(config, part))}
        if not own:
            raise
        at = extract_tb(error.__traceback__)[-1]
        cause = f"{type(error).__name__}: {error} ({Path(at.filename).name}, line {at.lineno})"
        message = f"the network does not run with {' and '.join(own.values())}."
        raise fail("block-failed", message, f"config.{next(iter(own))}", cause=cause) from error


def named_class(name: str, where: str) -> type[nn.Module]:
    """The class of that name; its module is imported, from wherever Python finds modules."""
    module, _, attribute = name.partition(":")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except ChainRouteError:
        raise
    except Exception as error:  # whatever the module itself does wrong is told, too
        cause = f"{type(error).__name__}: {error}"
        raise fail("unknown-block", f"'{name}' cannot be imported.", where, cause=cause) from error
    if not (isinstance(found, type) and issubclass(found, nn.Module)):
        raise fail("unknown-block", f"'{name}' is no class of torch modules.", where)
    return found
