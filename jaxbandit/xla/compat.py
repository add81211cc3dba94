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
    "enable_x64", "threefry_partitionable", "default_prng_impl", "random_seed_offset", "numpy_dtype_promotion",
    "numpy_rank_promotion", "default_matmul_precision",
)  # fmt: skip


def settings() -> dict[str, str]:
    """What jax may be told that changes what a function means; None where a release does not know it.

    Example:
        >>> settings()["numpy_dtype_promotion"]
        'standard'
    """
    return {name: str(getattr(jax.config, f"jax_{name}", None)) for name in SETTINGS}
