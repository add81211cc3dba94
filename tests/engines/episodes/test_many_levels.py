"""MDPs with many levels: regrets by outcomes are exact, a single lane is what lanes side by side are, tiles get narrow."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from lanes_by_hand import sizes_of, stack

import jaxbandit as jb
from jaxbandit.engines.episodes.environment import make_episode_world, regrets
from jaxbandit.testing import run_lanes

H, K, A, M = 3, 32, 2, 3


def general(seed=0):
    random = np.random.default_rng(seed)
    shape = (H, K + 1, A, M)
    following = random.integers(1, K + 1, shape).astype(np.int32)
    reward = (random.random(shape) / H).astype(np.float32)
    following[:, 0], reward[:, 0] = 0, 0
    prob = random.dirichlet(np.ones(M), shape[:3])
    return jb.MDP(prob=prob, reward=reward, next_level=following, rank=None, start=np.int32(7))


def test_regrets_by_outcomes_are_exact():
    mdps, sizes = [general(0), general(1)], sizes_of(general())
    assert sizes.by_outcomes
    world = jax.tree.map(jnp.asarray, make_episode_world(stack(*mdps)))
    random = np.random.default_rng(2)
    policies = random.integers(0, A, (4, K, H, 2)).astype(np.int8)
    mixed = random.dirichlet(np.ones(A), (2, H, K + 1)).astype(np.float32)
    found = np.asarray(regrets(sizes, world, jnp.asarray(policies)))
    shares = jnp.asarray(np.moveaxis(mixed, 0, -1)[:, 1:])
    (shares,) = np.asarray(regrets(sizes, world, shares))
    for lane, mdp in enumerate(mdps):
        for e in range(4):
            table = np.zeros((H, K + 1), np.int32)
            table[:, 1:] = policies[e, :, :, lane].T
            exact = float(jb.planning.regret(mdp, jnp.asarray(table)))
            assert found[e, lane] == pytest.approx(exact, abs=1e-6)
        exact = float(jb.planning.regret(mdp, jnp.asarray(mixed[lane])))
        assert shares[lane] == pytest.approx(exact, abs=1e-6)
    policies[0, 3, 1, 0] = A
    wrong = np.asarray(regrets(sizes, world, jnp.asarray(policies)))
    assert np.isnan(wrong[0, 0])
    assert np.isfinite(wrong[1:]).all()


@pytest.mark.parametrize("stationary", [False, True])
def test_a_large_table_runs_the_readable_learner(stationary):
    """Regrets of a lane are those of `jb.planning` along its policies: nonnegative, at most T, and the same in any tile."""
    learner = jb.make_learner("ucbvi", bonus_scale=0.1, stationary=stationary)
    keys = jax.random.split(jax.random.key(0), (1, 3))
    points = np.asarray([5, 40])
    whole, state = run_lanes("episodes", [learner], [general()], keys, 40, points)
    one, _ = run_lanes("episodes", [learner], [general()], keys[:, 2:], 40, points)
    np.testing.assert_array_equal(whole["regret"][0, 2], one["regret"][0, 0])
    assert (whole["regret"] >= 0).all()
    visits = np.asarray(state.model.visits)
    assert visits.shape == (1, 3, 1 if stationary else H, K, A)
    assert (visits.sum(axis=(2, 3, 4)) == 40 * H).all()
