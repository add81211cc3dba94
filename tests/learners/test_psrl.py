"""The empirical model and planning in it, and posterior sampling: draws have its law, and with data it plays optimally."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from episodes_by_hand import begin
from scipy import stats

import jaxbandit as jb
from jaxbandit.feedback import SemiBanditFeedback, observe
from jaxbandit.learner import Problem
from jaxbandit.learners import model
from jaxbandit.learners.model import Model
from jaxbandit.learners.psrl import draw_model, gamma, psrl
from jaxbandit.testing import play_episode
from jaxbandit.xla.threefry import key_words

MDP = jb.make_instance("prophet-uniform", horizon=3, capacity=2, num_values=3)
ORDERED = jb.make_instance(
    "random-ordered", key=jax.random.key(2), horizon=4, width=3, num_actions=2
)


def test_counts_are_those_of_a_loop():
    random = np.random.default_rng(0)
    found = model.empty(Problem(4, 3, 2, 100.0))
    visits, moves, paid = np.zeros((4, 4, 2)), np.zeros((4, 4, 2, 4)), np.zeros((4, 4, 2))
    for _ in range(60):
        policy = random.integers(0, 2, (4, 4))
        episode = play_episode(ORDERED, policy, random)
        found = model.add_episode(found, observe("semi-bandit", episode))
        rows = zip(*(np.asarray(x) for x in episode), strict=True)
        for i, (level, a, reward, following) in enumerate(rows):
            visits[i, level, a] += 1
            moves[i, level, a, following] += 1
            paid[i, level, a] += reward
    np.testing.assert_array_equal(found.visits, visits[:, 1:])
    np.testing.assert_array_equal(found.moves, moves[:, 1:, :, 1:])
    np.testing.assert_allclose(found.reward, paid[:, 1:], rtol=1e-6)


def test_planning_in_the_true_model_is_optimal():
    reward = jb.mean_reward(ORDERED)[:, 1:]
    transition = jb.transition_kernel(ORDERED)[:, 1:, :, 1:]
    q = model.plan(reward, transition, len(reward))
    value, policy = jb.optimal(ORDERED)
    np.testing.assert_allclose(jnp.max(q[0, int(ORDERED.start) - 1]), value, rtol=1e-6)
    np.testing.assert_allclose(jb.evaluate(ORDERED, model.greedy(q)), value, rtol=1e-6)
    assert policy.shape == model.greedy(q).shape


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
    seen = Model(
        jnp.full((1, 1, 1), 10, jnp.int32),
        jnp.full((1, 1, 1, 1), 7, jnp.int32),
        jnp.asarray([4, 0], jnp.int32).reshape(2, 1, 1, 1),
    )
    count, own = 20_000, prior or 0.5
    keys = jax.random.split(jax.random.key(1), count)
    for scale in (1.0, 3.0):
        learner = psrl(concentration=scale, prior=prior)
        _, given = begin(learner, Problem(1, 1, 1, 9))
        reward, onward = jax.jit(jax.vmap(lambda key, c=given: draw_model(seen, key, c)))(keys)
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
    state, given = begin(learner, problem)
    levels, actions, following = (
        jnp.asarray(x, jnp.int32) for x in ([2, 2, 1], [0, 0, 2], [2, 1, 0])
    )
    rewards = jnp.asarray([0.25, 0.5, 0.25], jnp.float32)
    seen = SemiBanditFeedback(levels, actions, rewards, following)
    state = learner.update(state, None, seen, given)
    assert np.argwhere(state.visits).tolist() == [[0, 0, 2], [0, 1, 0]]
    assert state.visits[0, 1, 0] == 2
    assert float(state.reward[0, 1, 0]) == 0.75
    key = jax.random.key(5)
    reward, _ = draw_model(state, key, given)
    np.testing.assert_array_equal(learner.act(state, key, given)[-1, 1:], reward[0].argmax(-1))


def test_with_much_data_it_plays_the_optimal_policy():
    """10^6 visits of every state and action, distributed as the MDP says: the drawn policies have no
    regret worth the name."""
    many = 1e6
    visits = jnp.full((3, 2, 3), many).astype(jnp.int32)
    moves = jnp.round(many * jb.transition_kernel(MDP)[:, 1:, :, 1:]).astype(jnp.int32)
    reward = jnp.round(many * jb.mean_reward(MDP)[:, 1:]).astype(jnp.int32)
    learner = psrl()
    _, given = begin(learner, Problem(3, 2, 3, 10**7))
    state = Model(visits, moves, jnp.stack([reward, jnp.zeros_like(reward)]))
    value = float(jb.optimal(MDP)[0])
    for seed in range(5):
        policy = learner.act(state, jax.random.key(seed), given)
        assert value - float(jb.evaluate(MDP, policy)) < 0.005


def test_rows_are_written_in_one_lane_as_in_several():
    """A loop of stores and a scatter: what is out of bounds is dropped, and what is added twice counts twice."""
    random = np.random.default_rng(0)
    at = [jnp.asarray(random.integers(0, n, 9), jnp.int32) for n in (3, 5, 3)]  # 4 is out of bounds
    tables = jnp.asarray(random.integers(0, 9, (2, 3, 6, 4, 2)), jnp.int32)
    rows = jnp.asarray(random.integers(0, 9, (9, 6)), jnp.int32)
    places = (at[0], None, at[1], jnp.minimum(at[2], 1))
    expected = np.array(tables)
    for j in range(9):
        if at[1][j] < 4:
            expected[:, at[0][j], :, at[1][j], places[3][j]] += np.asarray(rows[j])
    alone = [model.write(table, places, rows, add=True) for table in tables]
    beside = jax.vmap(lambda table: model.write(table, places, rows, add=True))(tables)
    np.testing.assert_array_equal(jnp.stack(alone), expected)
    np.testing.assert_array_equal(beside, expected)
    other = jnp.arange(3, dtype=jnp.int32)
    for add in (False, True):
        once = model.write(tables[0], (other, None, other), 7, add=add)
        np.testing.assert_array_equal(
            once,
            jax.vmap(lambda table, add=add: model.write(table, (other, None, other), 7, add=add))(
                tables
            )[0],
        )
