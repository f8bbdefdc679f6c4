"""Blocks of one's own in place of the paper's: PolicyConfig names the class, as `module:Class`."""

from __future__ import annotations

import importlib
from typing import TypeVar, cast

from torch import nn

from chainroute.errors import ChainRouteError, fail
from chainroute.policy.config import PolicyConfig

T = TypeVar("T", bound=nn.Module)


def make_block(config: PolicyConfig, part: str, ours: type[T]) -> T:
    """The block that the config names for that part of the policy, or ours. It is called as ours is."""
    name = getattr(config, part)
    return cast(T, named_class(name, f"config.{part}")(config)) if name else ours(config)


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
