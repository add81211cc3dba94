"""The MDP pytree, its derived arrays, and a message for every kind of bad input."""

import families
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.mdp import largest_total


@pytest.fixture(scope="module")
def ordered():
    """A valid ordered MDP in NumPy, H=3, k=2, A=2, M=3, for tests to spoil."""
    return jax.tree.map(np.array, families.tiny("random-ordered"))


def spoiled(mdp, field, index, value):
    array = np.array(getattr(mdp, field))
    array[index] = value
    return mdp._replace(**{field: array})


def test_sizes(ordered):
    assert (ordered.horizon, ordered.width, ordered.num_actions, ordered.num_outcomes) == (
        3,
        2,
        2,
        3,
    )


@pytest.mark.parametrize("name", sorted(families.PARAMETERS))
def test_kernel_and_mean_rewards_are_sums_over_outcomes(name):
    mdp = families.tiny(name)
    prob, reward, next_level = (np.asarray(x) for x in (mdp.prob, mdp.reward, mdp.next_level))
    kernel, mean = np.zeros((*prob.shape[:3], mdp.width + 1)), np.zeros(prob.shape[:3])
    for i, level, a, m in np.ndindex(prob.shape):
        kernel[i, level, a, next_level[i, level, a, m]] += prob[i, level, a, m]
        mean[i, level, a] += prob[i, level, a, m] * reward[i, level, a, m]
    np.testing.assert_allclose(jb.transition_kernel(mdp), kernel, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(jb.mean_reward(mdp), mean, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(kernel.sum(-1), 1, rtol=1e-6)


def test_instances_of_one_shape_stack_and_vmap():
    keys = jax.random.split(jax.random.key(3), 4)
    sizes = {"horizon": 3, "width": 2, "num_actions": 2}
    mdps = [jb.make_instance("random-ordered", key=key, **sizes) for key in keys]
    stack = jax.tree.map(lambda *leaves: jnp.stack(leaves), *mdps)
    assert (stack.horizon, stack.width, stack.num_actions, stack.num_outcomes) == (3, 2, 2, 3)
    values, policies = jax.vmap(jb.optimal)(stack)
    assert policies.shape == (4, 3, 3)
    for mdp, value in zip(mdps, values, strict=True):
        np.testing.assert_allclose(jb.optimal(mdp)[0], value, rtol=1e-6)


@pytest.mark.parametrize("name", sorted(families.PARAMETERS))
def test_every_family_is_valid_and_returned_as_it_is(name):
    mdp = families.tiny(name)
    assert jb.validate(mdp) is mdp
    assert (mdp.rank is None) == (name in ("hard-general", "random-general"))


BAD_ENTRIES = {
    "negative": (
        "prob",
        (1, 2, 1, 0),
        -0.25,
        r"MDP.prob: probability is negative at stage 2, level 2, action 1, outcome 0: -0.25",
    ),
    "nan": (
        "prob",
        (2, 1, 0, 2),
        np.nan,
        r"MDP.prob: probability is not finite at stage 3, level 1, action 0, outcome 2: nan",
    ),
    "sum": (
        "prob",
        (0, 2, 1),
        [0.5, 0.25, 0.125],
        r"MDP.prob: probabilities at stage 1, level 2, action 1 sum to 0.875; they",
    ),
    "reward above": (
        "reward",
        (0, 1, 1, 2),
        1.5,
        r"MDP.reward: reward is outside \[0, 1\] at stage 1, level 1, action 1, outcome 2: 1.5",
    ),
    "reward below": (
        "reward",
        (0, 1, 1, 2),
        -0.5,
        r"MDP.reward: reward is outside \[0, 1\] at stage 1, level 1, action 1, outcome 2: -0.5",
    ),
    "reward nan": (
        "reward",
        (0, 1, 1, 2),
        np.nan,
        r"MDP.reward: reward is not finite at stage 1, level 1, action 1, outcome 2",
    ),
    "level above": (
        "next_level",
        (1, 1, 0, 1),
        3,
        r"MDP.next_level: next level is outside 0..2 at stage 2, level 1, action 0, outcome 1: 3",
    ),
    "level below": (
        "next_level",
        (1, 1, 0, 1),
        -1,
        r"MDP.next_level: next level is outside 0..2 at stage 2, level 1, action 0, outcome 1: -1",
    ),
    "level 0 left": (
        "next_level",
        (1, 0, 1, 0),
        1,
        r"MDP.next_level: leaves level 0, which must be absorbing, at stage 2, level 0, action 1, outcome 0",
    ),
    "level 0 pays": (
        "reward",
        (2, 0, 1, 1),
        0.1,
        r"MDP.reward: pays at level 0, which must pay nothing, at stage 3, level 0, action 1, outcome 1",
    ),
    "upward": (
        "next_level",
        (0, 1, 0, 1),
        2,
        r"upward move in an ordered MDP .*Assumption 3.1\) at stage 1, level 1, action 0, outcome 1: 2",
    ),
    "tied rank": (
        "rank",
        (1, 2),
        [1, 1],
        r"MDP.rank: actions tie at stage 2, level 2: \[1, 1\]; accepted: a total order, all ranks different",
    ),
}


@pytest.mark.parametrize("case", BAD_ENTRIES)
def test_a_bad_entry_is_named_and_located(ordered, case):
    field, index, value, message = BAD_ENTRIES[case]
    with pytest.raises(ValueError, match=message):
        jb.validate(spoiled(ordered, field, index, value))


def test_a_rank_that_contradicts_the_staying_probabilities(ordered):
    rank = ordered.rank[0, 2]
    low, high = np.argsort(rank).tolist()
    message = (
        rf"MDP.rank: at stage 1, level 2 action {low} is ranked above action {high}, "
        r"but stays with probability 0\.\d+ < 0\.\d+ \(Assumption 3.2\)"
    )
    with pytest.raises(ValueError, match=message):
        jb.validate(spoiled(ordered, "rank", (0, 2), rank[::-1]))


def test_actions_that_stay_equally_often_may_be_ranked_either_way():
    mdp = jax.tree.map(np.array, families.tiny("hard-ordered"))
    bottom = np.arange(4)[None, :, None] == 1  # every action stays there
    assert jb.validate(mdp._replace(rank=np.where(bottom, mdp.rank[..., ::-1], mdp.rank)))


def test_upward_moves_are_fine_without_an_order(ordered):
    assert jb.validate(spoiled(ordered, "next_level", (0, 1, 0, 1), 2)._replace(rank=None))


def test_a_run_that_can_collect_more_than_one():
    """Every reward is within [0, 1], and only one path of probability 1/8 collects too much."""
    mdp = jax.tree.map(
        np.array, jb.make_instance("prophet-uniform", horizon=3, capacity=2, num_values=2)
    )
    mdp = mdp._replace(reward=mdp.reward * 1.5)
    assert largest_total(mdp) == 1.5
    with pytest.raises(
        ValueError, match=r"MDP.reward: a run can collect 1.5 in total; accepted: at most 1"
    ):
        jb.validate(mdp)
    assert largest_total(mdp._replace(start=np.int32(1))) == 0.75
    impossible = mdp._replace(
        prob=np.where(mdp.reward > 0, 0, np.where(mdp.prob > 0, 1, 0)).astype(np.float32)
    )
    assert largest_total(impossible) == 0


def brute_force_largest_total(mdp, level, stage=0):
    if stage == mdp.horizon:
        return 0.0
    next_level = mdp.next_level[stage, level]
    return max(
        float(mdp.reward[stage, level, a, m])
        + brute_force_largest_total(mdp, next_level[a, m], stage + 1)
        for a in range(mdp.num_actions)
        for m in range(mdp.num_outcomes)
        if mdp.prob[stage, level, a, m] > 0
    )


@pytest.mark.parametrize("name", sorted(families.PARAMETERS))
def test_largest_total_is_the_best_of_all_runs(name):
    mdp = jax.tree.map(np.array, families.tiny(name))
    expected = brute_force_largest_total(mdp, int(mdp.start))
    np.testing.assert_allclose(largest_total(mdp), expected, rtol=1e-12)
    assert expected <= 1 + 1e-6


BAD_SHAPES = {
    "not four axes": (
        lambda m: m._replace(prob=m.prob[0]),
        r"MDP.prob: shape \(3, 2, 3\); accepted: \[H, k\+1, A, M\]",
    ),
    "only level 0": (
        lambda m: m._replace(prob=m.prob[:, :1]),
        r"MDP.prob: shape \(3, 1, 2, 3\); accepted: \[H, k\+1, A, M\] with",
    ),
    "reward": (
        lambda m: m._replace(reward=m.reward[1:]),
        r"MDP.reward: shape \(2, .*; accepted: that of prob, \(3, 3, 2, 3\)",
    ),
    "next level": (
        lambda m: m._replace(next_level=m.next_level[..., :1]),
        r"MDP.next_level: shape .*; accepted: that of prob",
    ),
    "float levels": (
        lambda m: m._replace(next_level=m.next_level * 1.0),
        r"MDP.next_level: dtype float64; accepted: integers",
    ),
    "rank": (
        lambda m: m._replace(rank=m.rank[0]),
        r"MDP.rank: shape \(3, 2\); accepted: \[H, k\+1, A\] = \(3, 3, 2\) or None",
    ),
    "start axis": (
        lambda m: m._replace(start=np.array([1, 2])),
        r"MDP.start: array\(\[1, 2\]\); accepted: a single level",
    ),
    "start float": (
        lambda m: m._replace(start=1.5),
        r"MDP.start: 1.5; accepted: a single level, an integer",
    ),
    "start 0": (lambda m: m._replace(start=np.int32(0)), r"MDP.start: level 0; accepted: 1..2"),
    "start above": (lambda m: m._replace(start=np.int32(3)), r"MDP.start: level 3; accepted: 1..2"),
}


@pytest.mark.parametrize("case", BAD_SHAPES)
def test_a_bad_shape_is_named(ordered, case):
    spoil, message = BAD_SHAPES[case]
    with pytest.raises(ValueError, match=message):
        jb.validate(spoil(ordered))
