"""The learners that learn nothing."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.feedback import BanditFeedback
from jaxbandit.learners import Problem
from jaxbandit.learners.simple import fixed, oracle, uniform

PROBLEM = Problem(3, 2, 4, 100.0)
KEY = jax.random.key(0)


def test_uniform_draws_every_action_equally():
    """20,000 policies; false-alarm rate below 1e-4 over the 36 counts (5 standard errors each)."""
    learner = uniform()
    counts = learner.constants(PROBLEM, learner.params)
    draws = 20_000
    keys = jax.random.split(KEY, draws)
    policies = np.asarray(jax.vmap(lambda key: learner.act((), key, counts))(keys))
    assert policies.shape == (draws, 3, 3)
    assert policies.dtype == np.int32
    seen = np.stack([np.mean(policies == a, axis=0) for a in range(4)])
    assert np.all(np.abs(seen - 0.25) <= 5 * np.sqrt(0.25 * 0.75 / draws))
    assert seen.sum() == pytest.approx(9)


def test_oracle_has_no_regret():
    mdp = jb.make_instance("prophet-uniform", horizon=3, capacity=2, num_values=4)
    problem = Problem(3, 2, 4, 100.0, optimal_policy=jb.optimal(mdp)[1])
    learner = oracle()
    policy = learner.act((), KEY, learner.constants(problem, learner.params))
    assert float(jb.regret(mdp, jnp.asarray(policy))) == 0
    with pytest.raises(ValueError, match="optimal_policy: None; accepted"):
        learner.constants(PROBLEM, learner.params)


@pytest.mark.parametrize("shape", ["deterministic", "randomised"])
def test_fixed_plays_its_policy(shape):
    rng = np.random.default_rng(0)
    deterministic = shape == "deterministic"
    policy = rng.integers(0, 4, (3, 3)) if deterministic else rng.dirichlet(np.ones(4), (3, 3))
    learner = fixed(policy)
    assert learner.init(PROBLEM, None, None) == ()  # nothing changes
    given = learner.constants(PROBLEM, learner.params)
    played = learner.act((), KEY, given)
    np.testing.assert_allclose(played, policy, rtol=1e-6)
    assert learner.update((), played, BanditFeedback(jnp.float32(0.5)), given) == ()


def test_fixed_errors():
    for policy, message in [
        ([[0, -1]], "policy: .*-1.*; accepted: actions >= 0"),
        (np.zeros((0, 2), int), "policy: .*; accepted: actions >= 0"),
        (np.full((1, 2, 2), 0.7), "policy: .*; accepted: action probabilities >= 0 that sum to 1"),
        (np.full((1, 2, 2), np.nan), "policy: .*; accepted: action probabilities >= 0 that sum"),
        (np.zeros((1, 2)), "policy: float64 of shape .1, 2.; accepted: integers"),
        ("all in", "policy: .*; accepted: integers"),
    ]:
        with pytest.raises(ValueError, match=message):
            fixed(policy)
    for policy, message in [
        (np.zeros((3, 2), int), r"policy: shape \(3, 2\); accepted: \(3, 3\) in this MDP"),
        (np.full((3, 3, 2), 0.5), r"policy: shape \(3, 3, 2\); accepted: \(3, 3, 4\) in this MDP"),
        (np.full((3, 3), 4), r"policy: action 4; accepted: 0\.\.3 in this MDP"),
    ]:
        learner = fixed(policy)
        with pytest.raises(ValueError, match=message):
            learner.constants(PROBLEM, learner.params)
