"""One-item prophets under bandit feedback: the guarantee with adversarial noise, and by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from arms import moments

import jaxbandit as jb
from jaxbandit.learner import Problem, make_constants
from jaxbandit.learners.expref import absorb
from jaxbandit.learners.prophet_bandit import next_block, prophet_bandit
from jaxbandit.xla.compat import x64


def instance(seed, horizon=4, num_values=4):
    key = jax.random.key(seed)
    return jb.make_instance(
        "prophet-random", key=key, horizon=horizon, capacity=1, num_values=num_values
    )


@pytest.mark.parametrize("seed", range(6))
def test_an_optimal_policy_survives_the_worst_noise(seed):
    """Estimates are off by +-eps/2, signs at random: after each of 6 phases some optimal policy is
    active, alpha-hat loses at most H eps, and the active sets are those of a comparison by hand."""
    mdp = instance(seed)
    H, A = 4, 4
    learner = prophet_bandit()
    random = np.random.default_rng(seed)
    optimum = float(jb.optimal(mdp)[0])
    with x64():
        problem = Problem(H, 1, A, 10**12, jnp.asarray(mdp.rank))
        state = learner.blocks.init(problem, None, None)
        constants = make_constants(learner.blocks, problem, learner.params)
        for phase in range(6):
            eps = 0.5**phase
            for _ in range(H):
                blocks = next_block(state, constants)
                totals = np.zeros(A)
                for a in np.flatnonzero(np.asarray(blocks.episodes)):
                    policy = np.asarray(blocks.policy).copy()
                    policy[int(blocks.stage)] = np.asarray(blocks.rows[a])
                    noise = eps / 2 * random.choice([-1, 1])
                    totals[a] = (moments(mdp, policy)[0] + noise) * float(blocks.episodes[a])
                state = absorb(state, blocks.episodes, jnp.asarray(totals), constants)
            assert int(state.phase) == phase + 1
            chosen = np.asarray(state.committed)[:, 1]
            table = np.eye(A)[np.repeat(chosen[:, None], 2, axis=1)]
            assert optimum - moments(mdp, table)[0] <= H * eps + 1e-6
            within = best_active(mdp, np.asarray(state.active)[:, 1])
            assert within == pytest.approx(optimum, abs=1e-6)


def best_active(mdp, active):
    """The best value with active thresholds alone, by backward induction."""
    prob, reward, target = (np.asarray(x, float) for x in (mdp.prob, mdp.reward, mdp.next_level))
    tail = 0.0
    for i in reversed(range(mdp.horizon)):
        q = (prob[i, 1] * (reward[i, 1] + (target[i, 1] == 1) * tail)).sum(-1)
        tail = q[active[i]].max()
    return tail


def test_a_block_by_hand():
    """H = 2, A = 2, one action of stage 1 left: earlier stages play the largest active threshold,
    n = ceil(12 ln T / eps^2), and slack is C eps with C = 2 at the first of two stages."""
    learner = prophet_bandit(threshold_scale=0.1)
    rank = jnp.tile(jnp.arange(2, dtype=jnp.int32), (2, 2, 1))
    with x64():
        problem = Problem(2, 1, 2, 8103, rank)  # ln T is just below 9
        state = learner.blocks.init(problem, None, None)
        constants = make_constants(learner.blocks, problem, learner.params)
        blocks = next_block(state, constants)
        np.testing.assert_array_equal(blocks.episodes, [108, 108])
        assert int(blocks.stage) == 1
        assert np.asarray(blocks.policy[0, 1]).argmax() == 1
        sums = jnp.asarray([108 * 0.5, 108 * 0.39])
        state = absorb(state, blocks.episodes, sums, constants)
        assert state.refined[1, 1].tolist() == [True, False]  # 0.11 below, slack 0.1 * 1
        sums = jnp.asarray([108 * 0.4, 108 * 0.59])
        state = absorb(state, jnp.asarray([108.0, 108]), sums, constants)
        assert state.active[:, 1].tolist() == [[True, True], [True, False]]  # slack 0.1 * 2
        assert state.committed[:, 1].tolist() == [1, 0]
        assert int(state.phase) == 1
        blocks = next_block(state, constants)
        np.testing.assert_array_equal(blocks.episodes, [432, 0])


def test_other_widths_are_refused():
    learner = prophet_bandit()
    with pytest.raises(ValueError, match="an MDP of width k = 2; accepted: k = 1"):
        learner.constants(Problem(3, 2, 2, 10), learner.params)
    with pytest.raises(ValueError, match=r"first_epsilon: 0; accepted: a finite number > 0"):
        prophet_bandit(first_epsilon=0)


def test_metrics_read_its_state():
    """Before the first episode every threshold is active, and the guess is action 0 everywhere."""
    state = prophet_bandit().blocks.init(Problem(4, 1, 4, 10), None, None)
    world = jb.metrics.make_world(instance(0), jnp.zeros((4, 2), jnp.int32))
    assert float(jb.metrics.active_actions(state, world)) == 4
    assert jb.metrics.best_guess_gap(state, world) == jb.metrics.policy_gap(state, world)
