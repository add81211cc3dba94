"""Regrets on the device are those of planning, and what is no policy has the regret nan."""

from contextlib import nullcontext
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from lanes_by_hand import general, sizes_of, stack

import jaxbandit as jb
from jaxbandit.engines.episodes.environment import make_episode_world, regrets
from jaxbandit.xla.platforms import GPU, tracing_for

EPISODES = 16


def pair():
    ordered = jb.make_instance(
        "random-ordered", key=jax.random.key(5), horizon=3, width=2, num_actions=2
    )
    return [general()._replace(rank=None), ordered._replace(rank=None, start=np.int32(1))]


def compiled(world, policies, straight=False):
    """Traced for a CPU, or straight-line as for a GPU."""
    with tracing_for(GPU) if straight else nullcontext():
        return np.asarray(jax.jit(partial(regrets, sizes_of(general())))(world, policies))


def by_episode(policies):
    """Policies [H, k+1, E, W] as the engine keeps them, [E, k, H, W]."""
    return jnp.asarray(np.ascontiguousarray(policies.transpose(2, 1, 0, 3)[:, 1:]))


@pytest.mark.parametrize("straight", [False, True])
def test_of_actions(straight):
    """Two MDPs that start at different levels; optimal policies have no regret at all."""
    mdps = pair()
    world = make_episode_world(stack(*mdps))
    choices = np.random.default_rng(0).integers(0, 2, (3, 3, EPISODES, 2)).astype(np.int32)
    ours = compiled(world, by_episode(choices), straight=straight)
    assert ours.shape == (EPISODES, 2)
    for lane, mdp in enumerate(mdps):
        for e in range(EPISODES):
            theirs = float(jb.planning.regret(mdp, jnp.asarray(choices[:, :, e, lane])))
            assert ours[e, lane] == pytest.approx(theirs, abs=1e-6)
    best = np.stack([np.asarray(jb.optimal(mdp)[1]) for mdp in mdps], axis=-1)[:, :, None]
    assert (compiled(world, by_episode(best), straight=straight) == 0).all()


@pytest.mark.parametrize("straight", [False, True])
def test_of_probabilities(straight):
    mdps = pair()
    world = make_episode_world(stack(*mdps))
    mixed = np.random.default_rng(1).exponential(size=(3, 3, 2, 2)).astype(np.float32)
    mixed /= mixed.sum(2, keepdims=True)
    (ours,) = compiled(world, jnp.asarray(mixed[:, 1:]), straight=straight)
    for lane, mdp in enumerate(mdps):
        theirs = float(jb.planning.regret(mdp, jnp.asarray(mixed[..., lane])))
        assert ours[lane] == pytest.approx(theirs, abs=1e-6)


@pytest.mark.parametrize("straight", [False, True])
@pytest.mark.parametrize("action", [-1, 2])
def test_actions_out_of_range_are_nan_wherever_they_are(action, straight):
    """Also at states that are never visited; level 0 does not matter. Neighbours keep their numbers."""
    mdp = pair()[0]
    world = make_episode_world(stack(mdp, mdp))
    places = [(i, level) for i in range(3) for level in range(3)]
    policies = np.zeros((3, 3, len(places), 2), np.int8)
    for e, (i, level) in enumerate(places):
        policies[i, level, e, 0] = action
    found = compiled(world, by_episode(policies), straight=straight)
    wrong = np.asarray([level > 0 for _, level in places])
    sound = float(jb.planning.regret(mdp, jnp.zeros((3, 3), jnp.int32)))
    np.testing.assert_allclose(found[:, 1], sound, atol=1e-6)
    assert np.isnan(found[wrong, 0]).all()
    np.testing.assert_allclose(found[~wrong, 0], sound, atol=1e-6)


@pytest.mark.parametrize("row", [[0, 0], [1.5, -0.5], [2.5, 2.5], [np.nan, 1], [np.inf, 0]])
def test_what_are_no_probabilities_is_nan(row):
    mdp = pair()[0]
    world = make_episode_world(stack(mdp, mdp))
    for level in range(3):
        policy = np.full((3, 3, 2, 2), 0.5, np.float32)
        policy[2, level, :, 0] = row
        for straight in (False, True):
            (found,) = compiled(world, jnp.asarray(policy[:, 1:]), straight=straight)
            assert np.isnan(found[0]) == (level > 0)
            assert np.isfinite(found[1])
