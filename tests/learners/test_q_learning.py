"""Q-learning against the reference's update written as a loop, and against its fixed point."""

import jax.numpy as jnp
import numpy as np
import pytest
from episodes_by_hand import begin

import jaxbandit as jb
from jaxbandit.feedback import observe
from jaxbandit.learner import Problem
from jaxbandit.learners.q_learning import q_learning
from jaxbandit.testing import play_episode

MDP = jb.make_instance("prophet-uniform", horizon=3, capacity=2, num_values=3)


@pytest.mark.parametrize("stationary", [False, True])
def test_updates_are_those_of_a_loop(stationary):
    """40 episodes; the loop goes through the stages one by one, as Algorithm 1 does; with ``stationary`` each visit
    counts for all stages."""
    H, k, A, T, c = 3, 2, 3, 500, 0.3
    learner = q_learning(bonus_scale=c, stationary=stationary)
    state, given = begin(learner, Problem(H, k, A, T))
    assert state.visits.shape == (1 if stationary else H, k, A)
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
    state, given = begin(learner, Problem(1, 1, 1, 100))
    one = jnp.ones(1, jnp.int32)
    shown = jb.feedback.SemiBanditFeedback(one, one * 0, jnp.full(1, 0.25, jnp.float32), one * 0)
    for _ in range(2):
        state = learner.update(state, None, shown, given)
        assert float(state.q[0, 0, 0]) == 0.25  # alpha_1 = 1
