"""The two places where jax releases differ: switching x64 on locally, and mapping a function over devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
from jax.sharding import Mesh


def x64():
    """A context in which 64-bit types exist, whatever the process-wide setting."""
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(True)
    from jax.experimental import enable_x64  # type: ignore[attr-defined]

    return enable_x64()


def shard_map(function: Callable, mesh: Mesh, in_specs: Any, out_specs: Any) -> Callable:
    """``function`` on every device's share of the lanes; the shares never talk to each other."""
    if hasattr(jax, "shard_map"):
        return jax.shard_map(function, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=False)
    from jax.experimental.shard_map import shard_map as old

    return old(function, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_rep=False)
