"""What both runners share: every lane in one tile, padding that does not count, results in the lanes' order."""

import jax
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.engines import make_runner
from jaxbandit.engines.runner import one_hot_actions


def runner_of(name, engine, groups, seeds):
    mdp = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=2)
    learner = jb.make_learner(name)
    params = {key: np.stack([np.asarray(x)] * groups) for key, x in learner.params.items()}
    stacked = jax.tree.map(lambda x: np.stack([np.asarray(x)] * groups), mdp)
    keys = jax.random.split(jax.random.key(0), (groups, seeds))
    learner = learner._replace(params=params)
    return make_runner(engine, learner, stacked, keys, 20, np.asarray([5, 20]))


@pytest.mark.parametrize(("name", "engine"), [("uniform", "episodes"), ("expref", "blocks")])
def test_lanes_are_cut_into_tiles_of_one_width(name, engine):
    runner = runner_of(name, engine, 3, 15)
    lanes = np.concatenate(runner.lanes_of_tiles())
    assert sorted(lanes.tolist()) == list(range(45))
    assert {len(tile.keys) for tile in runner.tiles} == {runner.width}
    assert sum(tile.used for tile in runner.tiles) == 45
    last = runner.tiles[-1]
    np.testing.assert_array_equal(  # padding repeats the first lane of the tile
        last.keys[last.used :], np.broadcast_to(last.keys[0], last.keys[last.used :].shape)
    )
    carry = runner.start()
    while runner.episodes_done(carry) < 20:
        carry = runner.step(carry)
    regret = runner.result(carry)["regret"]
    assert regret.shape == (3, 15, 2)
    np.testing.assert_array_equal(runner.so_far(carry), regret)


def test_actions_of_randomised_policies():
    policy = np.array([[0.0, 1.0], [0.5, 0.5]])
    np.testing.assert_array_equal(one_hot_actions(policy), [1.0, np.nan])
