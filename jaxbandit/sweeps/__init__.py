"""Sweeps: learners x instances x parameters x seeds, dealt into tiles, run by the host loop, kept
in checkpoints.

`parameters`, `families` and `identity` say what is run, `groups` and `tiles` what runs together,
`processes` where, `loop` runs it, `dataset` labels it, `shards` joins the parts of several machines.
From outside: the names below. May import: everything above it in the README's picture, up to the
engines. `options` starts no jax, so names are loaded when they are first used.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jaxbandit.sweeps.families import family as family
    from jaxbandit.sweeps.parameters import LearnerGrid as LearnerGrid
    from jaxbandit.sweeps.parameters import grid as grid
    from jaxbandit.sweeps.parameters import points as points
    from jaxbandit.sweeps.shards import merge as merge
    from jaxbandit.sweeps.sweeping import plan as plan
    from jaxbandit.sweeps.sweeping import sweep as sweep
    from jaxbandit.sweeps.tiles import Plan as Plan

_HOME = {
    "family": "families",
    **dict.fromkeys(("LearnerGrid", "grid", "points"), "parameters"),
    "merge": "shards",
    **dict.fromkeys(("plan", "sweep"), "sweeping"),
    "Plan": "tiles",
}
__all__ = sorted(_HOME)  # noqa: PLE0605

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in _HOME:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        import importlib

        return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
