"""Tables of a policy: chains of splits, pools of one law, pools that stand."""

import jax
import jax.numpy as jnp
import numpy as np

import jaxbandit as jb
from jaxbandit.engines.blocks import machine
from jaxbandit.engines.blocks.machine import merge_outcomes
from jaxbandit.learner import Blocks
from jaxbandit.xla.compat import x64


def test_pools_stand_where_the_law_does():
    """Shared rows: stages 1 to 3 pay alike, but the arms' own is the second; the arm's row: only
    its second pool goes on."""
    values, chances = np.array([[0.0, 1.0, 3.0]] * 4), np.array([[0.25, 0.25, 0.5]] * 4)
    chances[3] = [0.5, 0.2, 0.3]
    mdp = jb.make_instance("prophet", values=values, probabilities=chances, capacity=2)
    policy = np.broadcast_to(np.eye(3)[0], (4, 3, 3)).copy()
    own = policy[1].copy()
    own[1] = np.eye(3)[1]
    with x64():
        merged = jax.tree.map(lambda x: jnp.asarray(x)[None], merge_outcomes(mdp))
        block = Blocks(policy, np.int32(1), own[None], np.ones(1))
        tables = machine.make_tables(merged, jax.tree.map(lambda x: jnp.asarray(x)[None], block))
        bits = np.asarray(machine.STANDING.read(tables.code)).reshape(5, -1)
    assert (bits == bits[:, :1]).all()
    assert bits[:, 0].tolist()[:3] == [
        0,
        3,
        0,
    ]  # before the arms' own: none; then both; then the law changes
    assert bits[4, 0] == 2


def test_splits():
    weights = np.array([[0.2, 0.3, 0.0, 0.5], [0.0, 1.0, 0.0, 0.0], [0.1, 0.65, 0.0, 0.25]])
    with x64():
        chance, following, certain = machine.splits(jnp.asarray(weights))
    np.testing.assert_allclose(chance, [[0.2, 0.375, 0, 1], [0, 1, 0, 0], [0.1, 0.65 / 0.9, 0, 1]])
    assert (np.asarray(chance)[[0, 1, 2], [3, 1, 3]] == 1).all()  # exactly: nothing is left over
    assert np.asarray(following)[0, :3].tolist() == [1, 3, 3]
    assert np.asarray(following)[1, 0] == 1
    assert certain.tolist() == [
        [False, True, True, False],
        [True, False, False, False],
        [False, True, True, False],
    ]


def test_pools_of_one_law_are_one():
    chance = np.array([[0.5, 1.0], [0.5, 1.0], [0.25, 1.0], [0.5, 1.0]])
    with x64():
        first = machine.merge_pools(jnp.asarray(chance), jnp.asarray([0, 0, 0, 1], jnp.int32))
    assert first.tolist() == [1, 1, 3, 4]
