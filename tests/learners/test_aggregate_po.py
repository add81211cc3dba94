"""Policy optimisation from totals and paths: unbiased by enumeration, one step by hand."""

import jax
import jax.numpy as jnp
import numpy as np
from episodes_by_hand import as_trajectory, begin, every_episode

import jaxbandit as jb
from jaxbandit.feedback import TrajectoryFeedback, observe
from jaxbandit.learner import Problem
from jaxbandit.learners.aggregate_po import aggregate_po, estimate, occupancy

MDP = jb.make_instance("prophet-uniform", horizon=3, capacity=2, num_values=3)
POLICY = np.random.default_rng(0).dirichlet(np.ones(3), (3, 3))


def test_occupancy_is_the_visitation():
    start = jnp.asarray([0.0, 1.0])
    found = occupancy(
        jnp.asarray(POLICY[:, 1:], jnp.float32), jb.transition_kernel(MDP)[:, 1:, :, 1:], start
    )
    exact = jb.visitation(MDP, jnp.asarray(POLICY, jnp.float32))
    np.testing.assert_allclose(found, exact[:, 1:], atol=1e-6)


def test_estimates_are_unbiased():
    """Summed over all episodes, U-hat(a) - U-hat(b) is Q(a) - Q(b) of the policy, whatever the
    baseline: Q by policy evaluation, with the action forced at one state."""
    visiting = np.asarray(jb.visitation(MDP, jnp.asarray(POLICY, jnp.float32)))[:, 1:]
    baseline = jnp.asarray(np.random.default_rng(1).random((3, 2)), jnp.float32)
    mean = np.zeros((3, 2, 3))
    q = jnp.asarray(np.maximum(visiting, 1e-30), jnp.float32)
    policy = jnp.asarray(POLICY[:, 1:], jnp.float32)
    one = jax.jit(lambda shown: estimate(policy, q, baseline, jnp.float32(0), shown))
    for chance, rows in every_episode(MDP, POLICY):
        mean += chance * np.asarray(one(observe("trajectory", as_trajectory(rows))))
    for i, level in zip(*np.nonzero(visiting > 0), strict=True):
        values = []
        for a in range(3):
            forced = POLICY.copy()
            forced[i, level + 1] = np.eye(3)[a]
            values.append(float(jb.evaluate(MDP, jnp.asarray(forced, jnp.float32))))
        exact = np.subtract(values, values[0]) / visiting[i, level]
        np.testing.assert_allclose(mean[i, level] - mean[i, level, 0], exact, atol=2e-5)


def test_one_step_by_hand():
    """Uniform play, H = 1, k = 1, A = 2: q = 1, so theta moves by eta X / (1/2 + eta) at the action
    played, and the baseline becomes X."""
    learner = aggregate_po(learning_rate=2.0)
    state, given = begin(learner, Problem(1, 1, 2, 50))
    eta = 2 * np.sqrt(np.log(2) / (1 * 2 * 50))
    policy = learner.act(state, None, given)
    np.testing.assert_allclose(policy, [[[1, 0], [0.5, 0.5]]])
    shown = TrajectoryFeedback(jnp.ones(1, jnp.int32), jnp.ones(1, jnp.int32), jnp.float32(0.75))
    state = learner.update(state, policy, shown, given)
    np.testing.assert_allclose(state.theta[0, 0], [0, eta * 0.75 / (0.5 + eta)], rtol=1e-6)
    assert float(state.baseline[0, 0]) == 0.75
    assert int(state.starts[0]) == 1
