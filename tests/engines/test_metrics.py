"""What metrics may look at: exact tables of every lane, and blanks of the right shape."""

import jax
import jax.numpy as jnp
import numpy as np

import jaxbandit as jb
from jaxbandit.engines.runner import empty_curves, evaluate_metrics
from jaxbandit.engines.tables import metric_worlds
from jaxbandit.xla.compat import x64


def test_worlds_are_those_of_planning():
    mdp = jb.make_instance(
        "prophet-random", key=jax.random.key(3), horizon=4, capacity=2, num_values=3
    )
    two = jax.tree.map(lambda x: np.stack([np.asarray(x)] * 2), mdp)
    world = metric_worlds(two, np.zeros((2, 4, 3), np.int32), (), np.float64)
    with x64():
        exact = mdp._replace(prob=jnp.asarray(mdp.prob, jnp.float64))
        exact = exact._replace(prob=exact.prob / exact.prob.sum(-1, keepdims=True))
        exact = exact._replace(reward=jnp.asarray(mdp.reward, jnp.float64))
        values, _ = jb.optimal_values(exact)
        gaps = jb.gaps(exact)
    for lane in range(2):
        np.testing.assert_allclose(world.optimal_values[lane], values, atol=1e-12)
        np.testing.assert_allclose(world.gap[lane], gaps, atol=1e-12)


def test_lanes_are_measured_one_by_one_and_blanks_have_their_shapes():
    mdp = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=2)
    three = jax.tree.map(lambda x: np.stack([np.asarray(x)] * 3), mdp)
    world = metric_worlds(three, np.zeros((3, 2, 2), np.int32), (), np.float32)
    metrics = {
        "own": lambda state, world: state,
        "given": lambda state, world: world.constants[None],
    }
    state, constants = jnp.arange(3.0), jnp.arange(3.0) * 2
    found = evaluate_metrics(metrics, 0)(state, world, constants)
    np.testing.assert_array_equal(found["own"], [0, 1, 2])
    np.testing.assert_array_equal(found["given"], [[0], [2], [4]])
    empty = empty_curves({name: np.asarray(value) for name, value in found.items()}, 5)
    assert (empty["own"].shape, empty["given"].shape) == ((3, 5), (3, 5, 1))
    assert all(np.isnan(value).all() for value in empty.values())
