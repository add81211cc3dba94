"""Checks of a learner on an engine: lanes, chunks, traces, regret, and MDPs that look the same."""

from __future__ import annotations

from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.learner import Learner
from jaxbandit.mdp import MDP
from jaxbandit.testing.lanes import run_lanes
from jaxbandit.testing.lookalikes import twin_mdps
from jaxbandit.testing.summary import Notes
from jaxbandit.testing.trees import differing
from jaxbandit.xla.programs import PROGRAMS

COPIES = 32
"""As many as a tile has places on a CPU, on either engine."""


def check_engine(
    notes: Notes,
    engine: str,
    learner: Learner,
    other: Learner,
    mdp: MDP,
    *,
    num_episodes: int,
    num_seeds: int,
    seed: int,
) -> None:
    """All lanes in one call against one lane at a time, traces, regret, and MDPs that look the
    same."""
    pair = [learner, learner._replace(params=other.params)]
    keys = jax.random.split(jax.random.key(seed), (2, num_seeds))
    points = np.arange(1, num_episodes + 1)
    whole = run_lanes(engine, pair, [mdp, mdp], keys, num_episodes, points)
    steps = np.diff(whole[0]["regret"], prepend=0)
    notes.require((steps >= 0).all(), f"regret: {steps.min()} in an episode on engine {engine!r}")
    try:
        chex.assert_tree_all_finite((whole[0]["regret"], whole[0]["final_gap"]))
    except AssertionError:
        notes.require(False, f"regret: not finite on engine {engine!r}")
    notes.holds(f"regret ({engine})", f"{num_episodes} episodes of {2 * num_seeds} lanes", ">= 0")

    # The block engine passes sums alone and compiles for the outcomes that differ, so it gets an
    # MDP of the same outcomes.
    compiled = PROGRAMS.count
    new = twin_mdps(mdp) if engine == "episodes" else [_reweighted(mdp)] * 2
    paired = jnp.stack([jax.random.split(jax.random.key(seed + 1), num_seeds)] * 2)
    _, state = run_lanes(engine, pair[1:] * 2, new, paired, num_episodes, points)
    compiled = PROGRAMS.count - compiled
    notes.require(
        compiled == 0,
        f"one trace: new keys, parameters and MDPs compile {compiled} more programs on {engine!r}",
    )
    notes.holds(f"one trace ({engine})", "new keys, parameter values and MDPs", "no new one")
    seen = differing(_lane_of(state, 0, slice(None)), _lane_of(state, 1, slice(None)))
    told = "no leak: MDPs that the feedback cannot tell apart lead to different states"
    notes.require(seen is None, f"{told}, in {seen} on engine {engine!r}")
    if engine == "episodes":
        notes.holds(f"no leak ({engine})", "states in two MDPs that look the same")

    chunk = 2 if engine == "blocks" else max(num_episodes // 3, 1)
    for g, s in np.ndindex(2, num_seeds):
        lane = (engine, pair[g : g + 1], [mdp], keys[g : g + 1, s : s + 1], num_episodes, points)
        where = _differing_lane(engine, learner, (whole, g, s), (run_lanes(*lane, chunk), 0, 0))
        if where is None:
            continue
        alone = _differing_lane(engine, learner, (whole, g, s), (run_lanes(*lane), 0, 0))
        what = "lanes = loop" if alone is not None else f"chunked = whole (chunks of {chunk})"
        message = f"{what}: parameters {g}, seed {s} differ in {where} on engine {engine!r}"
        notes.require(False, message)
    seeds = f"{num_seeds} seeds x 2 parameter values"
    notes.holds(f"lanes = loop ({engine})", f"{seeds} at once, and one by one", "bit for bit")
    notes.holds(f"chunked = whole ({engine})", f"chunks of {chunk}, and one run", "bit for bit")

    copies = jnp.broadcast_to(keys[0, 0], (1, COPIES))
    same = run_lanes(engine, pair[:1], [mdp], copies, num_episodes, points)
    for place in range(COPIES):
        where = _differing_lane(engine, learner, (whole, 0, 0), (same, 0, place))
        message = f"one run in all places of a tile: place {place} differs in {where}"
        notes.require(where is None, f"{message} on engine {engine!r}")
    notes.holds(f"all places ({engine})", f"{COPIES} copies of a run side by side", "bit for bit")


def _reweighted(mdp: MDP) -> MDP:
    """An MDP with the same outcomes of other probabilities."""
    prob = np.sqrt(np.asarray(mdp.prob, np.float64))
    return mdp._replace(
        prob=(prob / prob.sum(-1, keepdims=True)).astype(np.asarray(mdp.prob).dtype)
    )


def _lane_of(state: Any, g: Any, s: Any) -> Any:
    """A part of a runner's state."""
    return jax.tree.map(lambda x: x[g, s], state)


def _differing_lane(
    engine: str, learner: Learner, one: tuple[Any, int, int], two: tuple[Any, int, int]
) -> str | None:
    """Where two lanes, each (run, g, s), differ in results or states; None if nowhere."""
    results = [{name: x[g, s] for name, x in run[0].items()} for run, g, s in (one, two)]
    states = [_lane_of(run[1], g, s) for run, g, s in (one, two)]
    return differing(*results) or differing(*states)
