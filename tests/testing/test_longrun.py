"""Learners that go wrong late are found, at the place; the simulation has the law of the MDP."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.testing.longrun import _simulate, first_wrong_policy


def late(act):
    """A learner whose state is the number of episodes so far."""
    return jb.Learner(
        lambda problem, constants, key: jnp.int32(0),
        act,
        lambda state, policy, feedback, constants: state + 1,
        name="late",
    )


def deterministic(value):
    def act(state, key, constants):
        return jnp.zeros((3, 3), jnp.int32).at[1, 2].set(jnp.where(state >= 1500, value, 1))

    return late(act)


def randomised(row):
    def act(state, key, constants):
        even = jnp.full((3, 3, 2), 0.5)
        return jnp.where(state >= 1500, even.at[2, 1].set(jnp.asarray(row)), even)

    return late(act)


CASES = {
    "episode 1501, stage 2, level 2: action 2; accepted: 0..1": deterministic(2),
    "episode 1501, stage 2, level 2: action -1; accepted: 0..1": deterministic(-1),
    r"episode 1501, stage 3, level 1: \[0.0, 0.0\]; accepted: probabilities": randomised(
        [0.0, 0.0]
    ),
    r"episode 1501, stage 3, level 1: \[2.0, 3.0\]; accepted": randomised([2.0, 3.0]),
    r"episode 1501, stage 3, level 1: \[-0.5, 1.5\]; accepted": randomised([-0.5, 1.5]),
    r"episode 1501, stage 3, level 1: \[nan, 1.0\]; accepted": randomised([np.nan, 1.0]),
}


@pytest.mark.parametrize("message", CASES)
def test_wrong_from_episode_1501_on(message):
    with pytest.raises(AssertionError, match=f"learner 'late': policy: {message}"):
        jb.testing.check_learner(CASES[message])


def test_later_than_it_looks_is_not_seen():
    mdp = jb.make_instance(
        "random-ordered", key=jax.random.key(0), horizon=3, width=2, num_actions=2
    )
    assert (
        first_wrong_policy(deterministic(2), mdp, jnp.int32(0), (), jax.random.key(0), 1500) is None
    )


@pytest.mark.parametrize("kind", ["deterministic", "randomised"])
def test_the_simulation_earns_the_value_of_the_policy(kind):
    """20,000 episodes of total reward in [0, 1]: 5 standard errors, a false-alarm rate of 6e-7."""
    mdp = jb.make_instance(
        "random-ordered", key=jax.random.key(3), horizon=4, width=2, num_actions=3
    )
    random = np.random.default_rng(0)
    policy = (
        random.integers(0, 3, (4, 3)).astype(np.int32)
        if kind == "deterministic"
        else random.dirichlet(np.ones(3), (4, 3)).astype(np.float32)
    )
    tables = tuple(jnp.asarray(x) for x in (mdp.prob, mdp.reward, mdp.next_level, mdp.start))
    keys = jax.random.split(jax.random.key(1), 20_000)
    episodes = jax.jit(jax.vmap(lambda key: _simulate(tables, jnp.asarray(policy), key)))(keys)
    totals = np.asarray(episodes.rewards.sum(-1), np.float64)
    value = float(jb.evaluate(mdp, jnp.asarray(policy)))
    assert abs(totals.mean() - value) <= 5 * totals.std() / np.sqrt(totals.size)
