"""Q-learning against the reference's update written as a loop, and against its fixed point."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.feedback import observe
from jaxbandit.learner import Problem, make_constants
from jaxbandit.learners.q_learning import q_learning
from jaxbandit.testing import play_episode

MDP = jb.make_instance("prophet-uniform", horizon=3, capacity=2, num_values=3)


@pytest.mark.parametrize("stationary", [False, True])
def test_updates_are_those_of_a_loop(stationary):
    """40 episodes; the loop goes through the stages one by one, as Algorithm 1 does; with ``stationary`` each visit
    counts for all stages."""
    H, k, A, T, c = 3, 2, 3, 500, 0.3
    learner = q_learning(bonus_scale=c, stationary=stationary)
    problem = Problem(H, k, A, T)
    state = learner.init(problem, None, None)
    assert state.visits.shape == (1 if stationary else H, k, A)
    given = make_constants(learner, problem, learner.params)
    log_term = np.log(k * A * H * T**2)
    q, visits = np.ones((H + 1, k + 1, A)), np.zeros((H, k + 1, A))
    q[H], q[:, 0] = 0, 0
    random = np.random.default_rng(1)
    for _ in range(40):
        policy = learner.act(state, None, given)
        np.testing.assert_array_equal(policy[:, 1:], q[:H, 1:].argmax(-1))
        episode = play_episode(MDP, np.asarray(policy), random)
        state = learner.update(state, policy, observe("semi-bandit", episode), given)
        rows = zip(*(np.asarray(x) for x in episode), strict=True)
        before = np.minimum(q.max(-1), 1)
        for i, (level, a, reward, following) in enumerate(rows):
            if level == 0:
                continue
            visits[0 if stationary else i, level, a] += 1
            n = visits[0 if stationary else i, level, a]
            alpha = (H + 1) / (H + n)
            for j in range(H) if stationary else [i]:
                goal = reward + before[j + 1, following] + c * np.sqrt(H * log_term / n)
                q[j, level, a] = (1 - alpha) * q[j, level, a] + alpha * goal
        np.testing.assert_allclose(state.q, q[:H, 1:], rtol=2e-5)
        np.testing.assert_array_equal(state.visits, visits[: len(state.visits), 1:])


def test_without_bonus_the_last_stage_converges_to_the_mean():
    """One state, one action: the weights (H+1)/(H+n) with H = 1 average the rewards, the recent ones
    more; a constant reward is found exactly."""
    learner = q_learning(bonus_scale=0)
    problem = Problem(1, 1, 1, 100)
    state = learner.init(problem, None, None)
    given = make_constants(learner, problem, learner.params)
    one = jnp.ones(1, jnp.int32)
    shown = jb.feedback.SemiBanditFeedback(one, one * 0, jnp.full(1, 0.25, jnp.float32), one * 0)
    state = learner.update(state, None, shown, given)
    assert float(state.q[0, 0, 0]) == 0.25  # alpha_1 = 1
    state = learner.update(state, None, shown, given)
    assert float(state.q[0, 0, 0]) == 0.25


def test_pooled_counts_learn_a_stationary_problem_faster():
    """RiverSwim, 2,000 episodes, 4 seeds: half the regret at most."""
    mdp = jb.make_instance("riverswim", horizon=8)
    keys = jax.random.split(jax.random.key(0), (1, 4))
    options = {"q-learning": {"bonus_scale": 0.03}, "psrl": {}}
    for name, how in options.items():
        one, pooled = (
            jb.testing.run_lanes(
                "episodes", [jb.make_learner(name, stationary=each, **how)], [mdp], keys, 2000
            )
            for each in (False, True)
        )
        assert pooled[0]["regret"].mean() < one[0]["regret"].mean() / 2, name


def test_it_learns():
    """20,000 episodes: the regret of the second half is below a quarter of uniform play's (8 seeds
    on average; it is about a tenth)."""
    keys = jax.random.split(jax.random.key(0), (1, 8))
    points = [10_000, 20_000]
    regret = {}
    for learner in (q_learning(bonus_scale=0.03), jb.make_learner("uniform")):
        results, _ = jb.testing.run_lanes("episodes", [learner], [MDP], keys, 20_000, points)
        regret[learner.name] = np.diff(results["regret"][0], axis=-1).mean()
    assert regret["q-learning"] < regret["uniform"] / 4
