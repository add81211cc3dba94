"""Sweeps: learners x instances x parameters x seeds, dealt into tiles, run by the host loop, kept
in checkpoints.

`options` are what a user may choose, `arguments` and `identity` say what is run, `lanes` what runs together, `loop` is
`jb.sweep` and runs it, `progress` shows it, `checkpoint` keeps it, `shards` divides it between machines.
From outside: the names below. May import: everything above it in the README's picture, up to the
results. `options` starts no jax, so names are loaded when they are first used.
"""

import importlib
from typing import Any

_HOME = {
    **dict.fromkeys(("LearnerGrid", "family", "grid", "points"), "arguments"),
    "Plan": "lanes",
    **dict.fromkeys(("plan", "sweep"), "loop"),
    "merge": "shards",
}
__all__ = sorted(_HOME)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
