"""Exact planning against brute force and nested loops."""

import chex
import families
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb

NAMES = sorted(families.PARAMETERS)
PLANNED = ["bandit", "hard-ordered", "knapsack", "prophet", "random-general"]
"""One of each kind: one stage, an order, moves by several levels, joint outcomes, moves anywhere."""


def test_every_family_has_a_tiny_instance():
    """But those made from arrays, whose values are in units of their own: see instances/test_standard."""
    made = set(jb.INSTANCES.names()) - set(NAMES)
    assert all(jb.labels_of(jb.make_instance(name)).offsets for name in made), made


@pytest.mark.parametrize("name", PLANNED)
def test_planners_are_nested_loops(name):
    """The best of all deterministic policies, tail values of every state, losses; all by plain Python."""
    mdp = families.tiny(name)
    start, policies = int(mdp.start), families.all_policies(mdp)
    values = [families.tails(mdp, policy)[0, start] for policy in policies]
    best, optimal = jb.optimal(mdp)
    assert best.dtype == mdp.prob.dtype
    assert optimal.dtype == jnp.int32
    np.testing.assert_allclose(best, max(values), rtol=1e-6)
    np.testing.assert_allclose(families.tails(mdp, optimal)[0, start], max(values), rtol=1e-6)
    np.testing.assert_allclose(jb.optimal_values(mdp)[0], families.tails(mdp), rtol=1e-6)
    for j in np.random.default_rng(0).choice(len(policies), 10):
        np.testing.assert_allclose(jb.evaluate(mdp, policies[j]), values[j], rtol=1e-6, atol=1e-9)
    assert float(jb.regret(mdp, optimal)) == 0  # exactly
    assert (np.asarray(jb.gaps(mdp)) >= 0).all()
    for seed in range(3):
        policy = families.random_policy(mdp, seed)
        tails = jb.policy_values(mdp, policy)
        np.testing.assert_allclose(tails, families.tails(mdp, policy), rtol=1e-6, atol=1e-9)
        value = jb.evaluate(mdp, policy)
        np.testing.assert_allclose(value, tails[0, start], rtol=1e-6)
        np.testing.assert_allclose(jb.regret(mdp, policy), best - value, rtol=1e-5, atol=1e-7)
        visits = families.visits(mdp, policy)
        np.testing.assert_allclose(jb.visitation(mdp, policy), visits, rtol=1e-5, atol=1e-7)


def test_ties_go_to_the_first_action():
    assert not jb.optimal(jb.make_instance("hard-general", theta=[1, 1], num_actions=2, gap=0.0))[
        1
    ].any()


def test_instances_of_one_shape_compile_once():
    chex.clear_trace_counter()

    @jax.jit
    @jax.vmap
    @chex.assert_max_traces(n=1)
    def many(mdp):
        return jb.optimal(mdp)

    mdp = families.tiny("prophet")
    scales = np.random.default_rng(0).random((2, 100)).astype(np.float32)
    copies = jax.tree.map(lambda x: np.stack([np.asarray(x)] * 100), mdp)
    stacks = [
        copies._replace(reward=copies.reward * each[:, None, None, None, None]) for each in scales
    ]
    assert (stacks[0].horizon, stacks[0].width, stacks[0].num_outcomes) == (2, 2, 3)
    values = [many(stack)[0] for stack in stacks]
    assert values[0].shape == (100,)
    assert (values[0] != values[1]).all()
    for j in (0, 99):
        one = jax.tree.map(lambda leaf, j=j: leaf[j], stacks[1])
        np.testing.assert_allclose(jb.optimal(jb.validate(one))[0], values[1][j], rtol=1e-6)


@pytest.fixture
def x64():
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", False)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", ["knapsack"])
def test_double_precision_under_x64(name):
    mdp = families.tiny(name)
    value, policy = jb.optimal(mdp)
    assert value.dtype == jnp.float64
    start, expected = int(mdp.start), families.tails(mdp, policy)
    np.testing.assert_allclose(value, expected[0, start], rtol=1e-13)
    randomised = families.random_policy(mdp, 0).astype(np.float64)
    expected = families.tails(mdp, randomised)[0, start]
    np.testing.assert_allclose(jb.evaluate(mdp, randomised), expected, rtol=1e-13)
    assert jb.visitation(mdp, policy).dtype == jnp.float64


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", NAMES)
def test_every_family_is_double_precision_under_x64(name):
    mdp = families.tiny(name)
    assert mdp.prob.dtype == mdp.reward.dtype == jnp.float64
    assert mdp.next_level.dtype == mdp.start.dtype == jnp.int32
    assert mdp.rank is None or mdp.rank.dtype == jnp.int32
    jb.validate(mdp)


PLANNERS = [jb.evaluate, jb.regret, jb.visitation, jb.policy_values]
TINY = families.tiny("random-ordered")
UNIFORM = np.full((TINY.horizon, TINY.width + 1, TINY.num_actions), 1 / TINY.num_actions)
ZEROS = np.zeros((TINY.horizon, TINY.width + 1), np.int64)


def changed(policy, index, value):
    policy = policy.copy()
    policy[index] = value
    return policy


BAD_POLICIES = {
    "above": (
        changed(ZEROS, (1, 2), 2),
        r"policy: 2 at stage 2, level 2; accepted: actions 0\.\.1",
    ),
    "below": (changed(ZEROS, (0, 0), -1), r"policy: -1 at stage 1, level 0"),
    "wraps around": (changed(ZEROS, (0, 1), 2**32), r"policy: 4294967296 at stage 1"),
    "nan": (changed(UNIFORM, (0, 1, 1), np.nan), r"policy: nan at stage 1, level 1, a"),
    "negative": (changed(UNIFORM, (0, 1), [1.5, -0.5]), r"policy: -0\.5 at stage 1"),
    "sum": (UNIFORM * 5, r"policy: probabilities at stage 1, level 0 sum to 5; they must sum to 1"),
    "sum by 1e-4": (
        UNIFORM * 1.0001,
        r"policy: .* stage 1, level 0 sum to 1\.0001; they must sum to 1",
    ),
    "all 0": (UNIFORM * 0, r"policy: probabilities at stage 1, level 0 sum to 0"),
    "shape": (UNIFORM[1:], r"policy: float64 of shape \(\d+, 3, 2\); accepted: integers"),
    "float actions": (ZEROS * 1.0, r"policy: float64 of shape"),
    "truth values": (ZEROS > 0, r"policy: dtype bool; accepted: integers"),
    "complex": (UNIFORM * 1j, r"policy: dtype complex128; accepted: integers"),
    "ragged": ([[0], [0, 1]], r"policy: cannot be made an array"),
    "text": ("best", r"policy: dtype <U4; accepted"),
    "none": (None, r"policy: dtype object; accepted"),
}


@pytest.mark.parametrize("case", BAD_POLICIES)
def test_policies_that_cannot_be_played_are_refused(case):
    policy, message = BAD_POLICIES[case]
    for planner in PLANNERS:
        with pytest.raises(ValueError, match=message):
            planner(TINY, policy)


@pytest.mark.parametrize("planner", [jb.evaluate, jb.visitation])
def test_planners_stay_pure_where_values_are_not_known(planner):
    policies = jnp.stack([jnp.asarray(ZEROS, jnp.int32), jnp.ones(ZEROS.shape, jnp.int32)])
    one_by_one = jnp.stack([planner(TINY, policy) for policy in policies])
    np.testing.assert_array_equal(jax.vmap(planner, (None, 0))(TINY, policies), one_by_one)
    np.testing.assert_array_equal(jax.jit(planner)(TINY, policies[1]), one_by_one[1])
    np.testing.assert_array_equal(planner(mdp=TINY, policy=policies[1]), one_by_one[1])
    np.testing.assert_array_equal(planner(TINY, np.uint8(ZEROS)), one_by_one[0])


def test_an_mdp_that_means_nothing_is_refused():
    for wrong, message in (
        (TINY._replace(prob=TINY.prob * 5), "MDP.prob: probabilities .* sum to 5"),
        (TINY._replace(start=np.int32(9)), r"MDP.start: level 9; accepted: 1\.\.2"),
        (
            jax.tree.map(lambda x: x[None], TINY),
            r"MDP.prob: shape \(1, .*stacked go through jax.vmap",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            jb.evaluate(wrong, ZEROS)
        if "start" not in message:
            with pytest.raises(ValueError, match=message):
                jb.optimal(wrong)
