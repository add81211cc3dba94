"""UCB-VI with doubling: it plans when it should, and its plans are UCB-VI's."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.feedback import observe
from jaxbandit.learner import Problem, make_constants
from jaxbandit.learners.ucbvi_doubling import optimistic_q, ucbvi_doubling
from jaxbandit.testing.lookalikes import play_episode

MDP = jb.make_instance("prophet-uniform", horizon=3, capacity=2, num_values=3)
PROBLEM = Problem(3, 2, 3, 1000)


def begin(learner):
    """The first state and the constants."""
    constants = make_constants(learner, PROBLEM, learner.params)
    return learner.init(PROBLEM, None, None), jax.tree.map(jnp.asarray, constants)


def test_values_are_those_of_ucbvi_and_plans_come_when_a_count_doubles():
    """100 episodes: V of the counts equals that of `ucbvi`, which shares no code; the policy is
    greedy in it right after a count has reached a power of two, and unchanged otherwise."""
    learner, other = ucbvi_doubling(bonus_scale=0.1), jb.make_learner("ucbvi", bonus_scale=0.1)
    (state, given), (twin, its) = begin(learner), begin(other)
    update, follow = jax.jit(learner.update), jax.jit(other.update)
    counts = np.zeros((3, 3, 3), int)
    random = np.random.default_rng(0)
    plans = 0
    for _ in range(100):
        policy = np.asarray(learner.act(state, None, given))
        episode = play_episode(MDP, policy, random)
        shown = observe("semi-bandit", episode)
        state, twin = update(state, policy, shown, given), follow(twin, policy, shown, its)
        doubled = False
        for i, (level, a) in enumerate(zip(shown.levels, shown.actions, strict=True)):
            counts[i, level, a] += 1
            n = counts[i, level, a]
            doubled |= int(level) > 0 and bin(n).count("1") == 1
        q = optimistic_q(state.model, given)
        np.testing.assert_allclose(jnp.max(q, axis=-1), twin.values[:, :-1].T, atol=2e-6)
        expected = np.asarray(q).argmax(-1) if doubled else policy[:, 1:]
        np.testing.assert_array_equal(state.policy[:, 1:], expected)
        plans += doubled
    assert int(learner.report(state)["plans"]) == plans < 100


def test_lanes_plan_on_their_own():
    """Two lanes that see different episodes equal two runs of one lane each."""
    learner = ucbvi_doubling(bonus_scale=0.1)
    random = np.random.default_rng(3)
    first, given = begin(learner)
    alone = [first, first]
    lanes = jax.tree.map(lambda x: jnp.stack([x, x], -1), given)
    together = jax.tree.map(lambda *x: jnp.stack(x, -1), *alone)
    for _ in range(30):
        shown = [
            observe("semi-bandit", play_episode(MDP, np.asarray(one.policy), random))
            for one in alone
        ]
        alone = [learner.update(s, s.policy, f, given) for s, f in zip(alone, shown, strict=True)]
        stacked = jax.tree.map(lambda *x: jnp.stack(x, -1), *shown)
        together = learner.update(together, together.policy, stacked, lanes)
    for lane, state in enumerate(alone):
        for one, many in zip(jax.tree.leaves(state), jax.tree.leaves(together), strict=True):
            np.testing.assert_array_equal(one, many[..., lane])


def test_parameters_are_checked():
    with pytest.raises(ValueError, match="bonus_scale: -1; accepted: a finite number >= 0"):
        ucbvi_doubling(bonus_scale=-1)
    with pytest.raises(ValueError, match="bonus_scale: "):
        ucbvi_doubling().check({"bonus_scale": np.asarray([1, -2.0])})
