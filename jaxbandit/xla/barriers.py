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
import jax.numpy as jnp
from jax.experimental.xla_metadata import set_xla_metadata

from jaxbandit.xla.platforms import active, tracing

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


def together(function: Function) -> Function:
    """``function`` as one kernel where the platform wants it, whatever loops and `separate` calls are inside.

    XLA on CPU runs a program as a list of kernels, and starting one costs more than the arithmetic of a few lanes. It
    has an attribute for calls that it compiles as one function instead; an XLA that does not know it runs the call as
    any other. Only in the programs of `jaxbandit.xla.programs`, and only for functions of our own: they hold arithmetic,
    look-ups, slices and loops, but no sort, no scatter and no linear algebra. XLA ends the process at a parameter that is
    not used, so arguments that are not are left out.

    Example:
        >>> import jax.numpy as jnp
        >>> steps = together(lambda x: jax.lax.fori_loop(0, 3, lambda i, x: 2 * x, x))
        >>> steps(jnp.ones(2)).tolist()
        [8.0, 8.0]
    """

    @wraps(function)
    def call(*arguments):
        if not (tracing() and active().barriers):
            return function(*arguments)
        leaves, tree = jax.tree.flatten(arguments)
        used = _used(lambda *leaves: function(*jax.tree.unflatten(tree, leaves)), leaves)

        @jax.jit
        @wraps(function)
        def compiled(*given):
            rest = iter(given)
            blank = [
                next(rest) if one else jnp.zeros_like(x)
                for x, one in zip(leaves, used, strict=True)
            ]
            with set_xla_metadata(inlineable="true", xla_cpu_small_call="false"):
                return function(*jax.tree.unflatten(tree, blank))

        with set_xla_metadata(inlineable="false", xla_cpu_small_call="true"):
            return compiled(*(x for x, one in zip(leaves, used, strict=True) if one))

    return call  # type: ignore[return-value]


def _used(function: Callable, leaves: list[Any]) -> list[bool]:
    """Which of its arguments a function uses."""
    inner = jax.make_jaxpr(function)(*leaves).jaxpr
    found = {id(x) for equation in inner.eqns for x in equation.invars}
    found |= {id(x) for x in inner.outvars}
    return [id(x) in found for x in inner.invars]
