"""Posterior sampling: its draws have the law of the posterior, and with data it plays optimally."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import jaxbandit as jb
from jaxbandit.feedback import SemiBanditFeedback
from jaxbandit.learner import Problem, make_constants
from jaxbandit.learners.model import Model
from jaxbandit.learners.psrl import draw_model, gamma, psrl
from jaxbandit.xla.threefry import key_words

MDP = jb.make_instance("prophet-uniform", horizon=3, capacity=2, num_values=3)


@pytest.mark.parametrize("shape", [1 / 17, 0.3, 1.0, 2.5, 40.0, 1e5])
def test_gamma_variates(shape):
    """30,000 draws against scipy's law: Kolmogorov's distance below 0.0166, of which 0.0156 is chance
    (false-alarm rate 1e-6 for exact draws) and 0.001 is left to the draws' own error (0.007 at 1/17, where variates
    below 1e-38 are one number in float32)."""
    count = 30_000
    drawn = np.asarray(gamma(key_words(jax.random.key(0)), jnp.full(count, shape, jnp.float32)))
    found = stats.kstest(drawn.astype(float), stats.gamma(shape).cdf).statistic
    own = 0.007 if shape < 0.1 else 0.001
    assert found < np.sqrt(np.log(2 / 1e-6) / (2 * count)) + own
    assert abs(np.corrcoef(drawn[1:], drawn[:-1])[0, 1]) < 5 / np.sqrt(count)


@pytest.mark.parametrize("prior", [None, 1.0])
def test_posterior_by_hand(prior):
    """One state, 10 visits of which 7 went on, rewards adding up to 4: means and variances of the
    Beta and Dirichlet posteriors. 20,000 draws, false-alarm rate about 1e-6 each (5 standard errors;
    variances are allowed 5 %)."""
    model = Model(
        jnp.full((1, 1, 1), 10, jnp.int32),
        jnp.full((1, 1, 1, 1), 7, jnp.int32),
        jnp.asarray([4, 0], jnp.int32).reshape(2, 1, 1, 1),
    )
    count, own = 20_000, prior or 0.5
    keys = jax.random.split(jax.random.key(1), count)
    for scale in (1.0, 3.0):
        learner = psrl(concentration=scale, prior=prior)
        given = jax.tree.map(jnp.asarray, learner.constants(Problem(1, 1, 1, 9), learner.params))
        reward, onward = jax.jit(jax.vmap(lambda key, c=given: draw_model(model, key, c)))(keys)
        laws = (
            (reward, stats.beta(own + 4 * scale, own + 6 * scale)),
            (onward, stats.beta(own + 7 * scale, own + 3 * scale)),
        )
        for drawn, law in laws:
            values = np.asarray(drawn, float).ravel()
            assert abs(values.mean() - law.mean()) < 5 * law.std() / np.sqrt(count)
            assert abs(values.var() / law.var() - 1) < 0.05


def test_stationary_draws_one_model_for_all_stages():
    """Counts of all stages are in one table, and stage H is greedy in the drawn mean rewards."""
    learner = psrl(stationary=True)
    problem = Problem(3, 2, 3, 100)
    given = jax.tree.map(jnp.asarray, learner.constants(problem, learner.params))
    state = learner.init(problem, given, None)
    levels, actions, following = (
        jnp.asarray(x, jnp.int32) for x in ([2, 2, 1], [0, 0, 2], [2, 1, 0])
    )
    rewards = jnp.asarray([0.25, 0.5, 0.25], jnp.float32)
    seen = SemiBanditFeedback(levels, actions, rewards, following)
    state = learner.update(state, None, seen, given)
    assert np.argwhere(state.model.visits).tolist() == [[0, 0, 2], [0, 1, 0]]
    assert state.model.visits[0, 1, 0] == 2
    assert float(state.model.reward[0, 1, 0]) == 0.75
    key = jax.random.key(5)
    reward, _ = draw_model(state.model, key, given)
    np.testing.assert_array_equal(learner.act(state, key, given)[-1, 1:], reward[0].argmax(-1))


def test_with_much_data_it_plays_the_optimal_policy():
    """10^6 visits of every state and action, distributed as the MDP says: the drawn policies have no
    regret worth the name."""
    many = 1e6
    visits = jnp.full((3, 2, 3), many).astype(jnp.int32)
    moves = jnp.round(many * jb.transition_kernel(MDP)[:, 1:, :, 1:]).astype(jnp.int32)
    reward = jnp.round(many * jb.mean_reward(MDP)[:, 1:]).astype(jnp.int32)
    learner = psrl()
    problem = Problem(3, 2, 3, 10**7)
    state = learner.init(problem, None, None)
    given = make_constants(learner, problem, learner.params)
    state = state._replace(model=Model(visits, moves, jnp.stack([reward, jnp.zeros_like(reward)])))
    value = float(jb.optimal(MDP)[0])
    for seed in range(5):
        policy = learner.act(state, jax.random.key(seed), given)
        assert value - float(jb.evaluate(MDP, policy)) < 0.005


def test_it_learns():
    """2,000 episodes, 4 seeds: regret far below uniform play's."""
    keys = jax.random.split(jax.random.key(0), (1, 4))
    final = {}
    for learner in (psrl(), jb.make_learner("uniform")):
        results, _ = jb.testing.run_lanes("episodes", [learner], [MDP], keys, 2000)
        final[learner.name] = results["regret"].mean()
    assert final["psrl"] < final["uniform"] / 5
