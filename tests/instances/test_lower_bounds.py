"""The hard families of Section 4: one needle, everything else is worth one half."""

import itertools

import families
import jax
import numpy as np
import pytest

import jaxbandit as jb

make = jb.make_instance


KEY = jax.random.key(11)


values_of_policies = jax.vmap(jb.evaluate, in_axes=(None, 0))


def test_every_policy_that_misses_theta_has_value_one_half():
    horizon, num_actions, gap = 3, 2, 0.25
    optimal_sets = []
    for theta in itertools.product(range(num_actions), repeat=horizon):
        mdp = make("hard-general", theta=theta, num_actions=num_actions, gap=gap)
        policies = families.all_policies(mdp)
        values = np.asarray(values_of_policies(mdp, policies))
        follows = (policies[:, :, 1] == theta).all(axis=1)
        np.testing.assert_array_equal(values, np.where(follows, 0.5 + gap, 0.5))
        assert follows.sum() == num_actions**horizon  # level 2 is free
        assert int(mdp.start) == 1
        optimal_sets.append(values > 0.5)
    assert (np.sum(optimal_sets, axis=0) <= 1).all()


def follows_path(policies, horizon, stages, actions):
    """Whether policies [N, H, k+3] play the path's actions through the stages 1..H-1 (H is
    free)."""
    level, follows = len(stages) + 2, np.ones(len(policies), bool)
    for i in range(1, horizon):
        action = actions[stages.index(i)] if i in stages else 0
        follows &= policies[:, i - 1, level] == action
        level -= i in stages
    assert level == 2
    return follows


@pytest.mark.parametrize(("horizon", "num_downs", "num_actions"), [(3, 1, 2), (4, 2, 1)])
def test_every_policy_that_leaves_the_path_has_value_one_half(horizon, num_downs, num_actions):
    optimal_sets = []
    for stages in itertools.combinations(range(1, horizon), num_downs):
        for actions in itertools.product(range(1, num_actions + 1), repeat=num_downs):
            mdp = jb.validate(
                make(
                    "hard-ordered", horizon=horizon, down_stages=stages, down_actions=actions,
                    num_actions=num_actions, gap=0.25,
                )
            )  # fmt: skip
            policies = families.all_policies(mdp)
            values = np.asarray(values_of_policies(mdp, policies))
            follows = follows_path(policies, horizon, stages, actions)
            np.testing.assert_array_equal(values, np.where(follows, 0.75, 0.5))
            optimal_sets.append(follows)
    assert (np.sum(optimal_sets, axis=0) <= 1).all()


def test_the_example_of_the_papers_figure():
    """k = 2, H = 6, down at stages 2 and 4; the paper's level l is stored as l + 1."""
    mdp = make(
        "hard-ordered", horizon=6, down_stages=[2, 4], down_actions=[2, 1], num_actions=3, gap=0.25
    )
    nxt = np.asarray(mdp.next_level[..., 0]) - 1
    assert (mdp.width, mdp.num_actions, int(mdp.start)) == (4, 4, 4)
    assert nxt[1, 4].tolist() == [
        3,
        3,
        2,
        0,
    ]  # the down state (3, 2): actions 0, 1 stay, 2 goes down, 3 falls
    assert nxt[3, 3].tolist() == [2, 1, 0, 0]  # the down state (2, 4)
    assert nxt[0, 4].tolist() == [3, 0, 0, 0]  # on the path
    assert nxt[4, 2].tolist() == [1, 0, 0, 0]  # on the path, after both downs
    assert nxt[4, 4].tolist() == [3, 3, 3, 3]  # above it
    assert nxt[0, 3].tolist() == [0, 0, 0, 0]  # below it
    chance = np.asarray(jb.mean_reward(mdp))
    assert chance[-1].tolist() == [[0] * 4, [0.5] * 4, [0.75] * 4, [0.5] * 4, [0.5] * 4]
    assert not chance[:-1].any()
    assert (np.diff(np.asarray(mdp.rank), axis=-1) == -1).all()  # action 0 is maximal


def test_paths_are_drawn_uniformly():
    """Chi-square over the 6 x 4 instances of H = 5, k = 2, A = 2; 49.7 has a false-alarm rate of
    1e-3."""
    keys = jax.random.split(KEY, 2400)
    sizes = {"horizon": 5, "num_actions": 2, "num_downs": 2, "gap": 0.25}
    stack = jax.jit(jax.vmap(lambda key: make("hard-ordered", key=key, **sizes)))(keys)
    _, counts = np.unique(
        np.asarray(stack.next_level).reshape(2400, -1), axis=0, return_counts=True
    )
    assert len(counts) == 24
    assert ((counts - 100) ** 2 / 100).sum() < 49.7


def test_one_of_stages_and_actions_may_be_drawn():
    common = {"horizon": 5, "num_actions": 3, "gap": 0.25, "key": KEY}
    mdp = make("hard-ordered", down_stages=[1, 4], **common)
    assert int(jb.validate(mdp).start) == 4
    assert (
        float(jb.optimal(make("hard-ordered", down_actions=[3, 1], num_downs=2, **common))[0])
        == 0.75
    )


def test_a_gap_of_zero_is_the_uniform_instance():
    assert float(jb.optimal(make("hard-general", theta=[0, 1], num_actions=2, gap=0))[0]) == 0.5
