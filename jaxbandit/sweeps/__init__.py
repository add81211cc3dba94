"""Sweeps: learners x instances x parameters x seeds, dealt into tiles, run by the host loop, kept
in checkpoints.

`axes` and `identity` say what is run, `tiles` and `processes` who runs it, `loop` runs it,
`dataset` labels it, `merging` joins the parts of a sweep that ran on several machines.
From outside: the names below. May import: everything above it in the README's picture, up to the
engines.
"""

from jaxbandit.sweeps.axes import LearnerGrid, family, grid, points
from jaxbandit.sweeps.merging import merge
from jaxbandit.sweeps.sweeping import sweep
from jaxbandit.sweeps.tiles import Plan

__all__ = ["LearnerGrid", "Plan", "family", "grid", "merge", "points", "sweep"]
