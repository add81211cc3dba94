"""The places where jax releases differ."""

from __future__ import annotations

from typing import Any

import jax


def x64(on: bool = True) -> Any:
    """A context in which 64-bit types exist (or do not), whatever the process-wide setting."""
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(on)
    from jax.experimental import disable_x64, enable_x64  # type: ignore[attr-defined]

    return enable_x64() if on else disable_x64()


SETTINGS = (
    "enable_x64", "threefry_partitionable", "default_prng_impl", "random_seed_offset", "default_matmul_precision",
)  # fmt: skip
"""Stricter rules of promotion are none: they refuse, or give the same."""


def settings() -> dict[str, str]:
    """What jax may be told that changes what a function means; None where a release does not know it.

    Example:
        >>> settings()["default_prng_impl"]
        'threefry2x32'
    """
    return {name: str(getattr(jax.config, f"jax_{name}", None)) for name in SETTINGS}
