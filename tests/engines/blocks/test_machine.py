"""Pieces of the count machine: draws never exceed what there is, and counts are neither made nor lost."""

import jax
import jax.numpy as jnp
import numpy as np
from arms import arms, general, push

from jaxbandit.engines.blocks.machine import draw
from jaxbandit.xla.compat import x64
from jaxbandit.xla.threefry import key_words


def test_draws_are_whole_numbers_between_nothing_and_everything():
    with x64():
        keys = key_words(jax.random.split(jax.random.key(0), 400))
        left = jnp.asarray(np.tile([0.0, 1.0, 1000.0, 1e12], 100))
        chance = jnp.asarray(np.repeat([0.0, 0.3, 0.999, 1.0], 100))
        drawn = np.asarray(draw(keys, jnp.zeros(400, jnp.uint32), left, chance))
    assert (drawn == np.floor(drawn)).all()
    refused = drawn == -1  # an attempt that is made again with the next counter
    assert refused.mean() < 0.5
    assert (refused | ((drawn >= 0) & (drawn <= np.asarray(left)))).all()
    assert (drawn[:100] == 0).all()
    assert (drawn[300:] == np.asarray(left)[300:]).all()


def test_rewards_of_one_are_counted_to_the_last_episode():
    """Every episode pays 1 at the last stage, so sums are counts: none is lost among 2^40."""
    mdp = general()
    reward = np.zeros(mdp.prob.shape)
    reward[-1, 1:] = 1
    stays = np.broadcast_to(np.arange(3)[None, :, None, None], mdp.prob.shape)
    mdp = mdp._replace(reward=reward, next_level=np.ascontiguousarray(stays))
    counts = np.array([[1.0, 7.0, 2.0**40]])
    sums = push(mdp, arms(3, 3, 2), np.broadcast_to(counts, (4, 3)))
    np.testing.assert_array_equal(sums, np.broadcast_to(counts, (4, 3)))
