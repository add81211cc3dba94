"""What the tests of ExpRef and of the two engines' laws share: two tiny MDPs, one shape, and a
learner that remembers.

All runs have the same lanes and the same number of recorded points, so each learner compiles once
per engine.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxbandit as jb
from jaxbandit.learners import BlockForm, from_blocks
from jaxbandit.testing import run_lanes

NUM_SEEDS = 2048
PHASES = 2
"""Phases of which every Phi is remembered."""


def coins():
    """Two stages, two levels, two actions; rewards on a lattice, outcomes of probability 0 and 1
    among them."""
    prob, reward, next_level = np.zeros((3, 2, 3, 2, 3))
    prob[:, 0, :, 0] = 1
    prob[0, 2] = [[0.5, 0.5, 0], [0, 1, 0]]
    reward[0, 2] = [[0.5, 0, 0.5], [0.5, 0, 0.5]]
    next_level[0, 2] = [[1, 2, 0], [1, 2, 0]]
    prob[0, 1] = [[0.75, 0.25, 0], [0, 0, 1]]
    reward[0, 1] = [[0.25, 0, 0], [0.25, 0, 0]]
    next_level[0, 1] = [[0, 1, 1], [0, 1, 1]]
    prob[1, 2] = [[0.5, 0, 0.5], [0.25, 0.25, 0.5]]
    reward[1, 2] = [[0.5, 0.25, 0], [0.5, 0.25, 0]]
    prob[1, 1] = [[0, 1, 0], [0.5, 0.5, 0]]
    reward[1, 1] = [[0.5, 0.25, 0], [0.5, 0.25, 0]]
    next_level[1] = np.arange(3)[:, None, None]
    rank = jnp.broadcast_to(jnp.arange(2, dtype=jnp.int32), (2, 3, 2))
    tables = (
        jnp.asarray(prob, jnp.float32),
        jnp.asarray(reward, jnp.float32),
        jnp.asarray(next_level, jnp.int32),
    )
    return jb.validate(jb.MDP(*tables, rank, jnp.asarray(2, jnp.int32)))


@functools.cache
def mdps():
    drawn = jb.make_instance(
        "random-ordered", key=jax.random.key(1), horizon=2, width=2, num_actions=2
    )
    return [coins(), drawn]


class Recorded(NamedTuple):
    inner: Any
    phi: Any
    """float [PHASES, H, arms]: nan where an arm was not played, or not yet."""


def recording(learner):
    """The learner, remembering every Phi of its first phases."""
    functions = _recording(learner.blocks)._replace(report=report)
    made = from_blocks(
        functions, name=learner.name, params=learner.params, requires=learner.requires
    )
    return made._replace(feedback=learner.feedback)


def report(state):
    return {"phi": state.phi, "active": state.inner.active, "phases_done": state.inner.phase}


@functools.cache
def _recording(form):
    def init(problem, constants, key):
        shape = (PHASES, problem.horizon, problem.width * problem.num_actions)
        return Recorded(
            form.init(problem, constants, key), jnp.full(shape, jnp.nan, jnp.result_type(float))
        )

    def next_block(state, constants):
        return form.next_block(state.inner, constants)

    def absorb(state, episodes, totals, constants):
        phases, horizon, _ = state.phi.shape
        here = (jnp.arange(phases, dtype=jnp.int32) == state.inner.phase)[:, None, None]
        here = here & (jnp.arange(horizon, dtype=jnp.int32) == state.inner.stage)[None, :, None]
        count = episodes.astype(totals.dtype)
        phi = jnp.where(count > 0, totals / jnp.maximum(count, 1), jnp.nan)
        phi = jnp.where(here, phi[None, None], state.phi)
        return Recorded(form.absorb(state.inner, episodes, totals, constants), phi)

    return BlockForm(init, next_block, absorb, constants=form.constants)


def run(engine, learner, num_episodes, points=None, seed=0, chunk_size=None):
    """Results of a learner on both MDPs, NUM_SEEDS seeds each; always three recorded points."""
    keys = jax.random.split(jax.random.key(seed), (2, NUM_SEEDS))
    points = [num_episodes - 2, num_episodes - 1, num_episodes] if points is None else points
    pair = [recording(learner)] * 2
    return run_lanes(engine, pair, mdps(), keys, num_episodes, points, chunk_size=chunk_size)[0]


def played(blocks):
    """The arms of a block that are played: policies [H, k, A] and episodes, in order."""
    for row, episodes in zip(np.asarray(blocks.rows), np.asarray(blocks.episodes), strict=True):
        if episodes > 0:
            policy = np.asarray(blocks.policy).copy()
            policy[int(blocks.stage)] = row
            yield policy[:, 1:], episodes
