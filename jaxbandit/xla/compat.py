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
