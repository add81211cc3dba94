"""Where XLA may fuse and where it may not.

XLA on CPU fuses element-wise code into its consumers and computes it again for each of them: a value [H] that
is compared with every entry of an array [H, A, k] is recomputed A k times, and a chain with several outputs
as many times as there are outputs. ``optimization_barrier`` does not stop it; a call that is not inlined
does. On GPUs there is no such call (`jaxbandit.xla.platforms`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import jax
from jax.experimental.xla_metadata import set_xla_metadata

from jaxbandit.xla.platforms import active

Function = TypeVar("Function", bound=Callable[..., Any])


def separate(function: Function) -> Function:
    """``function`` compiled as a unit where the platform wants it: its arguments and results are arrays in memory.

    The values are those of ``function``; only the program's cost changes. Wrap functions once, at module
    level or in a cached factory, so that they are traced once.

    Example:
        >>> import jax.numpy as jnp
        >>> double = separate(lambda x: 2 * x)
        >>> double(jnp.float32(3)).item()
        6.0
    """

    @jax.jit
    @wraps(function)
    def compiled(*arguments):
        with set_xla_metadata(inlineable="true"):  # the calls inside, of jnp.where and the like
            return function(*arguments)

    @wraps(function)
    def call(*arguments):
        if not active().barriers:
            return function(*arguments)
        with set_xla_metadata(inlineable="false"):
            return compiled(*arguments)

    return call  # type: ignore[return-value]
