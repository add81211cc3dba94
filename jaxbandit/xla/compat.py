"""The places where jax releases differ, and the settings of a process that must not reach our numbers."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import jax
from jax._src import core


def x64(on: bool = True) -> Any:
    """A context in which 64-bit types exist (or do not), whatever the process-wide setting."""
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(on)
    from jax.experimental import disable_x64, enable_x64  # type: ignore[attr-defined]

    return enable_x64() if on else disable_x64()


@contextlib.contextmanager
def on_host(name: str) -> Iterator[None]:
    """A context for ``name``, which runs programs from Python: no transformation of jax may be tracing it.

    Transfers between host and devices are explicit parts of it, so guards against them are off.

    Example:
        >>> with on_host("sweep"):
        ...     pass  # compiled programs are called; inside jit it is a RuntimeError
    """
    clean = getattr(core, "trace_state_clean", lambda: True)
    if not clean():
        raise RuntimeError(
            f"{name}: called while jax traces a function; accepted: a call outside of jit, vmap, grad and scan"
        )
    with jax.transfer_guard("allow"):
        yield


@contextlib.contextmanager
def settled() -> Iterator[None]:
    """A context in which programs are compiled and run, whatever the process-wide settings for debugging and random bits.

    nan is how an engine says "no policy" and "not yet recorded", and checks it itself: jax is not to stop there. Random
    bits are drawn in one of jax's two ways. Without jit there is no program.
    """
    with (
        jax.transfer_guard("allow"),
        jax.threefry_partitionable(True),
        jax.debug_nans(False),
        jax.debug_infs(False),
        jax.disable_jit(False),
    ):
        yield


@contextlib.contextmanager
def drawing() -> Iterator[None]:
    """`settled`, and in 32 bits: a key gives the same draws in every process."""
    with settled(), x64(False):
        yield


SETTINGS = ("default_prng_impl", "random_seed_offset", "default_matmul_precision")
"""Stricter rules of promotion are none: they refuse, or give the same."""


def settings() -> dict[str, str]:
    """What jax may be told that changes a learner's numbers and is not `settled`; None where a release does not know it.

    Example:
        >>> settings()["default_prng_impl"]
        'threefry2x32'
    """
    return {name: str(getattr(jax.config, f"jax_{name}", None)) for name in SETTINGS}
