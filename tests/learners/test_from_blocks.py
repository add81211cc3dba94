"""Block learners episode by episode: which arm is played when."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.feedback import BanditFeedback
from jaxbandit.learner import make_constants

PROBLEM = jb.Problem(horizon=2, width=1, num_actions=2, num_episodes=100)
ROWS = jnp.asarray([[[1.0, 0.0]] * 2, [[0.0, 1.0]] * 2, [[0.25, 0.75]] * 2], jnp.float32)


def make(lengths):
    """Three arms at stage 2 that differ in their rows; the state is a list of all totals seen."""

    def init(problem, constants, key):
        return jnp.zeros((2, 3), jnp.float32), jnp.int32(0)

    def next_block(state, constants):
        policy = jnp.full((2, 2, 2), 0.5, jnp.float32)
        return jb.Blocks(policy, jnp.int32(1), ROWS, constants["lengths"])

    def absorb(state, episodes, totals, constants):
        seen, number = state
        return seen.at[number].set(totals), number + 1

    def constants(problem, params):
        return {"lengths": np.asarray(lengths)}

    form = jb.BlockForm(init, next_block, absorb, constants=constants)
    return jb.from_blocks(form, name="three", params={})


@pytest.mark.parametrize("lengths", [[2, 0, 3], [2.0, 0.0, 3.0]], ids=["integers", "reals"])
def test_arms_in_order_skipping_those_of_no_episodes(lengths):
    learner = make(np.asarray(lengths, np.result_type(type(lengths[0]))))
    given = jax.tree.map(jnp.asarray, make_constants(learner, PROBLEM, {}))
    state = learner.init(PROBLEM, given, None)
    update = jax.jit(learner.update)
    expected = [0, 0, 2, 2, 2] * 2
    totals = np.arange(10) / 16
    for t, arm in enumerate(expected):
        policy = learner.act(state, None, given)
        np.testing.assert_array_equal(policy[1], ROWS[arm])
        np.testing.assert_array_equal(policy[0], np.full((2, 2), 0.5))
        state = update(state, policy, BanditFeedback(jnp.float32(totals[t])), given)
    seen, number = state.inner
    assert int(number) == 2
    by_hand = [[totals[0:2].sum(), 0, totals[2:5].sum()], [totals[5:7].sum(), 0, totals[7:].sum()]]
    np.testing.assert_allclose(seen, by_hand)


def test_lanes_side_by_side_end_their_arms_at_different_times():
    """Two lanes whose arms have other lengths, against each lane by itself."""
    singles = [make(np.asarray(lengths)) for lengths in ([1, 2, 1], [3, 0, 1])]
    alone = []
    for learner in singles:
        given = jax.tree.map(jnp.asarray, make_constants(learner, PROBLEM, {}))
        state = learner.init(PROBLEM, given, None)
        for t in range(7):
            state = learner.update(state, None, BanditFeedback(jnp.float32(t)), given)
        alone.append(state)
    learner = singles[0]
    given = [jax.tree.map(jnp.asarray, make_constants(one, PROBLEM, {})) for one in singles]
    first = [one.init(PROBLEM, x, None) for one, x in zip(singles, given, strict=True)]
    given, state = (jax.tree.map(lambda *x: jnp.stack(x), *trees) for trees in (given, first))
    update = jax.vmap(learner.update, (0, None, 0, 0))
    for t in range(7):
        state = update(state, None, BanditFeedback(jnp.full(2, t, jnp.float32)), given)
    for lane in range(2):
        here = jax.tree.map(lambda x, lane=lane: np.asarray(x[lane]), state)
        jax.tree.map(np.testing.assert_array_equal, here, jax.tree.map(np.asarray, alone[lane]))


def test_long_sums_do_not_drift():
    """2^20 episodes that pay 0.1 each: compensated summation keeps the float32 mean to 1e-7."""
    learner = make(np.asarray([2**20, 1, 1]))
    given = jax.tree.map(jnp.asarray, make_constants(learner, PROBLEM, {}))
    feedback = BanditFeedback(jnp.float32(0.1))

    def one(state, _):
        return learner.update(state, None, feedback, given), None

    run = jax.jit(lambda state: jax.lax.scan(one, state, length=2**20)[0])
    state = run(learner.init(PROBLEM, given, None))
    exact = float(np.float32(0.1)) * 2**20
    assert abs(float(state.totals[0]) / exact - 1) < 1e-7
