"""The one place that knows the kind of device: everything that is good on one and ruin on the other is chosen here.

XLA on CPU fuses element-wise code into its consumers and computes it again for each of them: a value [H] that is compared
with every entry of an array [H, A, k] is recomputed A k times, and a chain with several outputs as many times as there are
outputs. ``optimization_barrier`` does not stop it; a call that is not inlined does (`separate`). Inside such a call XLA on
GPU fuses nothing, so there every operation is a launch. A loop over stages is free on a CPU; on a GPU it is a launch per
turn and breaks the graph of launches that the driver replays. And so on: see `Platform`.

    with use("gpu"): ...      # forces the choices of a GPU, also on a CPU: the law and all integers are the same

The environment variable ``JAXBANDIT_PLATFORM`` does the same for a whole process (for tools that compile for a card
which is not there).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, wraps
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jax.experimental.xla_metadata import set_xla_metadata

Function = TypeVar("Function", bound=Callable[..., Any])


@cache
def processor() -> dict[str, str]:
    """What the system says of the first processor, by names in small letters; empty where it says nothing.

    Example:
        >>> "flags" in processor() or "features" in processor() or not processor()
        True
    """
    found = {}
    with (
        contextlib.suppress(OSError),
        open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file,
    ):
        for line in file:
            if not line.strip():
                break
            name, _, value = line.partition(":")
            found[name.strip().lower()] = value.strip()
    return found


def masks_stores() -> bool:
    """Whether the processor stores under a mask quickly; AMD's with vectors of 256 bits do not."""
    found = processor()
    return found.get("vendor_id") == "GenuineIntel" or "avx512vl" in found.get("flags", "").split()


@dataclass(frozen=True)
class Platform:
    """Choices for one kind of device; the defaults are those of a CPU."""

    name: str = "cpu"
    """ "cpu" or "gpu"."""
    barriers: bool = True
    """Whether `separate` keeps XLA from fusing across it."""
    branches: bool = True
    """Whether a condition of all lanes is a real branch; else both sides are computed, without a word to the host."""
    straight: bool = False
    """Whether the body of an episode is straight-line code: loops over stages are unrolled."""
    lanes: int = 16
    """The width of a tile of the episode engine, at most."""
    tile_bytes: int | None = None
    """What such a tile may take: it is halved until it does not take more. None: no width is too large."""
    cache_bytes: int | None = 2**19
    """What the learner's tables of a tile may take where it has no kernel: beyond it lanes side by side are slower."""
    block_lanes: int = 32
    """The width of a tile of the block engine."""
    workers: int = 160
    """Arms that the count machine pushes side by side, at most."""
    steps: int = 16
    """Steps of the count machine between two looks for finished arms."""
    sums_on_device: bool = False
    """Whether regrets are summed where they are made; else the host sums them."""
    donates: bool = False
    """Whether a program takes over the memory of the state that it is given."""
    chunk: int = 2048
    """Episodes that one call of a program plays at most."""


CPU = Platform()
GPU = Platform(
    name="gpu",
    barriers=False,
    branches=False,
    straight=True,
    lanes=1024,
    tile_bytes=2**31,
    cache_bytes=None,
    block_lanes=1024,
    workers=2**16,
    steps=64,
    sums_on_device=True,
    donates=True,
    chunk=1024,
)
FLOAT32_EPSILON = 2.0**-24
"""Relative error of one operation in float32, on every platform."""
KNOWN = {"cpu": CPU, "gpu": GPU, "cuda": GPU, "rocm": GPU}
VARIABLE = "JAXBANDIT_PLATFORM"
TPU = (
    "On a TPU nothing of jaxbandit was ever run. The episode engine (every learner) is 32-bit straight-line code, which XLA "
    f"compiles for one: {VARIABLE}=gpu tries it. The block engine needs float64, which a TPU does not have, and does not run "
    "there: engine='episodes'. JAX_PLATFORMS=cpu runs everything on the host's processor"
)

_FORCED: ContextVar[str | None] = ContextVar("forced", default=None)
_ACTIVE: ContextVar[Platform | None] = ContextVar("active", default=None)


def num_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def platform_of(device: Any, forced: str | None = None) -> Platform:
    """The choices for a jax device: those forced by an argument, by the environment, by `use`, or its own.

    Example:
        >>> import jax
        >>> platform_of(jax.devices("cpu")[0]).name, platform_of(jax.devices("cpu")[0], "gpu").name
        ('cpu', 'gpu')
    """
    name = forced or os.environ.get(VARIABLE) or _FORCED.get() or device.platform
    if name not in KNOWN:
        more = f". {TPU}" if name == "tpu" else ""
        raise ValueError(f"platform: {name!r}; accepted: cpu, gpu{more}")
    return KNOWN[name]


def use(name: str) -> AbstractContextManager[None]:
    """Forces the choices of a kind of device on whatever is run inside.

    Example:
        >>> import jax
        >>> with use("gpu"):
        ...     platform_of(jax.devices("cpu")[0]).name
        'gpu'
    """
    return _within(_FORCED, platform_of(None, name).name)


def tracing_for(platform: Platform) -> AbstractContextManager[None]:
    """While a program is traced: what `active` answers."""
    return _within(_ACTIVE, platform)


@contextlib.contextmanager
def _within(variable: ContextVar, value: Any) -> Iterator[None]:
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def memory_of(device: Any) -> int | None:
    """Bytes that jax may use on a device; None if it does not say (as on CPUs)."""
    stats = device.memory_stats() if hasattr(device, "memory_stats") else None
    return int(stats["bytes_limit"]) if stats and "bytes_limit" in stats else None


def active() -> Platform:
    """The kind of device that the program being traced is for; a CPU where none of ours is being traced."""
    return _ACTIVE.get() or CPU


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
        if not (_ACTIVE.get() is not None and active().barriers):
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
