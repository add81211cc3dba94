"""Sweeps: learners x instances x parameters x seeds, dealt into tiles, run by the host loop, kept
in checkpoints.

`parameters`, `families` and `identity` say what is run, `groups` and `tiles` what runs together,
`processes` where, `loop` runs it, `dataset` labels it, `shards` joins the parts of several machines.
From outside: the names below. May import: everything above it in the README's picture, up to the
engines.
"""

from jaxbandit.sweeps.families import family
from jaxbandit.sweeps.parameters import LearnerGrid, grid, points
from jaxbandit.sweeps.shards import merge
from jaxbandit.sweeps.sweeping import plan, sweep
from jaxbandit.sweeps.tiles import Plan

__all__ = ["LearnerGrid", "Plan", "family", "grid", "merge", "plan", "points", "sweep"]
