"""Small MDPs in the episode engine's tables, for the tests of its parts."""

import functools

import jax
import numpy as np

import jaxbandit as jb
from jaxbandit.engines.episodes.environment import Sizes, make_episode_world


def stack(*mdps):
    return jax.tree.map(lambda *x: np.stack([np.asarray(leaf) for leaf in x]), *mdps)


def sizes_of(mdp):
    return Sizes(mdp.horizon, mdp.width, mdp.num_actions, mdp.num_outcomes)


@functools.cache
def general(width=2):
    return jb.make_instance(
        "random-general", key=jax.random.key(3), horizon=3, width=width, num_actions=2
    )


def copies(mdp, lanes):
    """The world of many lanes with one MDP, as far as simulation reads it."""
    world = make_episode_world(stack(mdp))
    return world._replace(
        start=np.repeat(world.start, lanes), row=np.repeat(world.row, lanes, axis=1)
    )


def some_policy(mdp, seed=0, randomised=True):
    """Probabilities float32 [H, k+1, A], some of them 0 and 1; or actions int32 [H, k+1]."""
    weights = np.random.default_rng(seed).exponential(
        size=(mdp.horizon, mdp.width + 1, mdp.num_actions)
    )
    weights[0, 1] = np.eye(mdp.num_actions)[0]
    weights[1, 2] = np.eye(mdp.num_actions)[1]
    chances = (weights / weights.sum(-1, keepdims=True)).astype(np.float32)
    return chances if randomised else chances.argmax(-1).astype(np.int32)
