"""Sweeps: learners x instances x parameters x seeds, dealt into tiles, run by the host loop, kept
in checkpoints.

`options` are what a user may choose, `arguments` and `identity` say what is run, `lanes` what runs together, `loop`
runs it, `checkpoint` keeps it, `shards` divides it between machines, `job` is `jb.sweep`.
From outside: the names below. May import: everything above it in the README's picture, up to the
results. `options` starts no jax, so names are loaded when they are first used.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jaxbandit.sweeps.arguments import LearnerGrid as LearnerGrid
    from jaxbandit.sweeps.arguments import family as family
    from jaxbandit.sweeps.arguments import grid as grid
    from jaxbandit.sweeps.arguments import points as points
    from jaxbandit.sweeps.forecast import Plan as Plan
    from jaxbandit.sweeps.job import plan as plan
    from jaxbandit.sweeps.job import sweep as sweep
    from jaxbandit.sweeps.shards import merge as merge

_HOME = {
    **dict.fromkeys(("LearnerGrid", "family", "grid", "points"), "arguments"),
    "Plan": "forecast",
    **dict.fromkeys(("plan", "sweep"), "job"),
    "merge": "shards",
}
__all__ = sorted(_HOME)  # noqa: PLE0605

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in _HOME:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        import importlib

        return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
