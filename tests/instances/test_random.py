"""Random instances: every draw is valid, under vmap too, and has the law that it says."""

import functools

import families
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb

make = jb.make_instance


KEY = jax.random.key(11)


DRAWN = {
    "prophet-random": {"horizon": 4, "capacity": 2, "num_values": 3},
    "posted-pricing-random": {"horizon": 4, "capacity": 2, "num_values": 3},
    "knapsack-random": {"horizon": 4, "budget": 2, "largest_cost": 1},
    "hard-general": {"horizon": 4, "num_actions": 3, "gap": 0.1},
    "hard-ordered": {"horizon": 5, "num_actions": 3, "num_downs": 2, "num_episodes": 1000},
    "random-general": {"horizon": 4, "width": 2, "num_actions": 3},
    "random-ordered": {"horizon": 4, "width": 2, "num_actions": 3},
}


@pytest.mark.parametrize("name", DRAWN)
def test_a_stack_is_drawn_by_vmap_and_every_draw_is_valid(name):
    keys = jax.random.split(KEY, 20)
    draw = functools.partial(make, name, **DRAWN[name])
    stack = jax.jit(jax.vmap(lambda key: draw(key=key)))(keys)
    mdps = [jax.tree.map(lambda leaf, j=j: np.asarray(leaf[j]), stack) for j in range(len(keys))]
    for mdp in mdps:
        jb.validate(mdp)
        assert mdp.prob.dtype == mdp.reward.dtype == np.float32
        assert mdp.next_level.dtype == mdp.start.dtype == np.int32
    for one, other in zip(
        jax.tree.leaves(draw(key=keys[3])), jax.tree.leaves(mdps[3]), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-6)
    assert len({mdp.reward.tobytes() + mdp.next_level.tobytes() for mdp in mdps}) > 1


def test_random_values_and_probabilities_are_uniform():
    """Means over 20000 draws, within 5 standard errors (false-alarm rate 6e-7 per comparison, seed
    fixed)."""
    keys = jax.random.split(KEY, 5000)
    stack = jax.jit(
        jax.vmap(lambda key: make("prophet-random", key=key, horizon=4, capacity=1, num_values=3))
    )(keys)
    probabilities = np.asarray(stack.prob[:, :, 1, 0]).reshape(-1, 3)
    # Uniform on the simplex of 3: every entry has mean 1/3, variance 1/18, whatever the order of
    # the values.
    assert (np.abs(probabilities.mean(0) - 1 / 3) < 5 * np.sqrt(1 / 18 / len(probabilities))).all()
    assert np.abs((probabilities**2).mean() - 1 / 6) < 5 * np.sqrt(1 / 15 / probabilities.size)
    # The largest of 3 uniforms, which threshold 0 selects: mean 3/4, variance 3/80.
    largest = np.asarray(stack.reward[:, :, 1, 0, 2])
    assert np.abs(largest.mean() - 3 / 4) < 5 * np.sqrt(3 / 80 / largest.size)


def test_arrays_and_scales_can_be_traced():
    """A sweep over value scales and distributions is a vmap: checks step aside for traced
    values."""
    values, probabilities = (jnp.asarray(x) for x in (families.VALUES, families.PROBABILITIES))

    def value(scale):
        mdp = make(
            "prophet", values=values, probabilities=probabilities, capacity=1, value_scale=scale
        )
        return jb.optimal(mdp)[0]

    one, two = jax.jit(jax.vmap(value))(jnp.asarray([1.0, 2.0]))
    np.testing.assert_allclose(one, 2 * two, rtol=1e-6)
    gaps = jnp.asarray([0.1, 0.2])
    best = jax.vmap(
        lambda gap: jb.optimal(make("hard-general", theta=[0, 1], num_actions=2, gap=gap))[0]
    )(gaps)
    np.testing.assert_allclose(best, [0.6, 0.7], rtol=1e-6)
