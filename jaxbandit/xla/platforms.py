"""The one place that knows the kind of device: everything that is good on one and ruin on the other is chosen here.

XLA on CPU computes a value again for each of its uses unless a call that is not inlined stands between; inside such
a call XLA on GPU fuses nothing, so there every operation is a launch. A loop over stages is free on a CPU; on a GPU it
is a launch per turn and breaks the graph of launches that the driver replays. And so on: see `Platform`.

    with use("gpu"): ...      # forces the choices of a GPU, also on a CPU: the law and all integers are the same

The environment variable ``JAXBANDIT_PLATFORM`` does the same for a whole process (for tools that compile for a card
which is not there).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import Any


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
    """Choices for one kind of device."""

    name: str
    """ "cpu" or "gpu"."""
    barriers: bool
    """Whether `separate` keeps XLA from fusing across it."""
    branches: bool
    """Whether a condition of all lanes is a real branch; else both sides are computed, without a word to the host."""
    straight: bool
    """Whether the body of an episode is straight-line code: loops over stages are unrolled."""
    lanes: int
    """The width of a tile of the episode engine, at most."""
    tile_bytes: int | None
    """What such a tile may take: it is halved until it does not take more. None: no width is too large."""
    cache_bytes: int | None
    """What the learner's tables of a tile may take where it has no kernel: beyond it lanes side by side are slower."""
    block_lanes: int
    """The width of a tile of the block engine."""
    workers: int
    """Arms that the count machine pushes side by side, at most."""
    steps: int
    """Steps of the count machine between two looks for finished arms."""
    sums_on_device: bool
    """Whether regrets are summed where they are made; else the host sums them."""
    donates: bool
    """Whether a program takes over the memory of the state that it is given."""
    chunk: int
    """Episodes that one call of a program plays at most."""


CPU = Platform(
    name="cpu",
    barriers=True,
    branches=True,
    straight=False,
    lanes=16,
    tile_bytes=None,
    cache_bytes=2**19,
    block_lanes=32,
    workers=160,
    steps=16,
    sums_on_device=False,
    donates=False,
    chunk=2048,
)
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

_FORCED: ContextVar[Platform | None] = ContextVar("platform", default=None)
_ACTIVE: ContextVar[Platform | None] = ContextVar("active", default=None)


def num_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def platform_of(device: Any, forced: str | None = None) -> Platform:
    """The choices for a jax device: those forced by an argument, by `use`, by the environment, or its own.

    Example:
        >>> import jax
        >>> platform_of(jax.devices("cpu")[0]).name, platform_of(jax.devices("cpu")[0], "gpu").name
        ('cpu', 'gpu')
    """
    name = forced or os.environ.get(VARIABLE)
    if name is None:
        inner = _FORCED.get()
        if inner is not None:
            return inner
        name = device.platform
    if name not in KNOWN:
        raise ValueError(
            f"platform: {name!r}; accepted: cpu, gpu. {TPU}"
            if name == "tpu"
            else f"platform: {name!r}; accepted: cpu, gpu"
        )
    return KNOWN[name]


@contextlib.contextmanager
def use(name: str) -> Iterator[Platform]:
    """Forces the choices of a kind of device on whatever is run inside.

    Example:
        >>> import jax
        >>> with use("gpu"):
        ...     platform_of(jax.devices("cpu")[0]).name
        'gpu'
    """
    token = _FORCED.set(platform_of(None, name))
    try:
        yield KNOWN[name]
    finally:
        _FORCED.reset(token)


@contextlib.contextmanager
def tracing_for(platform: Platform) -> Iterator[None]:
    """While a program is traced: what `active` answers."""
    token = _ACTIVE.set(platform)
    try:
        yield
    finally:
        _ACTIVE.reset(token)


def memory_of(device: Any) -> int | None:
    """Bytes that jax may use on a device; None if it does not say (as on CPUs)."""
    stats = device.memory_stats() if hasattr(device, "memory_stats") else None
    return int(stats["bytes_limit"]) if stats and "bytes_limit" in stats else None


def active() -> Platform:
    """The kind of device that the program being traced is for; a CPU where none of ours is being traced."""
    return _ACTIVE.get() or CPU


def tracing() -> bool:
    """Whether a program of ours is being traced, which is compiled with our options (`jaxbandit.xla.programs`)."""
    return _ACTIVE.get() is not None
