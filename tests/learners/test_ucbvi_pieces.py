"""UCB-VI in pieces of stages: it counts, plans and plays as the plain one does, whatever H and k."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.feedback import SemiBanditFeedback
from jaxbandit.learner import Problem
from jaxbandit.learners.ucbvi_pieces import Pieces, read, write

LANES, A = 3, 3


def played(problem, episodes):
    """Feedback [episodes, H, LANES] of paths that lead nowhere in particular."""
    shape, random = (episodes, problem.horizon, LANES), np.random.default_rng(0)
    return SemiBanditFeedback(
        levels=jnp.asarray(random.integers(0, problem.width + 1, shape), jnp.int32),
        actions=jnp.asarray(random.integers(0, A, shape), jnp.int32),
        rewards=jnp.asarray(random.random(shape), jnp.float32),
        next_levels=jnp.asarray(random.integers(0, problem.width + 1, shape), jnp.int32),
    )


def begun(problem):
    """Learner, constants and state of all lanes."""
    learner = jb.make_learner("ucbvi", bonus_scale=0.05)
    made = (
        learner.constants(problem, learner.params),
        learner.init(problem, None, None),
    )
    repeated = jax.tree.map(lambda x: jnp.repeat(jnp.asarray(x)[..., None], LANES, -1), made)
    return learner, *repeated


@pytest.mark.parametrize(("horizon", "width"), [(10, 4), (11, 5), (3, 4), (6, 2)])
def test_the_numbers_are_those_of_the_plain_learner(horizon, width):
    problem = Problem(horizon=horizon, width=width, num_actions=A, num_episodes=100)
    learner, constants, state = begun(problem)
    form = learner.staged
    inner = form.enter(state, None, constants)
    assert isinstance(inner, Pieces) == (width >= 4)
    feedback = played(problem, 60)

    def both(carry, seen):
        state, inner = carry
        policy = form.act(inner, None, constants)
        return (
            learner.update(state, policy, seen, constants),
            form.update(inner, policy, seen, constants, None),
        ), (learner.act(state, None, constants), policy)

    run = jax.jit(lambda carry: jax.lax.scan(both, carry, feedback))
    (state, inner), (plain, policies) = run((state, inner))
    left = form.leave(inner, constants)
    chex.assert_trees_all_equal_shapes_and_dtypes(left, state)
    chex.assert_trees_all_equal((left.counts, left.rewards), (state.counts, state.rewards))
    chex.assert_trees_all_close((left.model, left.values), (state.model, state.values), atol=1e-6)
    np.testing.assert_array_equal(policies, plain)
    assert len(np.unique(np.asarray(policies), axis=0)) > 5


def test_a_call_of_no_episodes_leaves_the_state_as_it_was():
    learner, constants, state = begun(Problem(horizon=12, width=4, num_actions=A, num_episodes=100))
    form = learner.staged
    left = form.leave(form.enter(state, None, constants), constants)
    chex.assert_trees_all_equal(left, state)


def test_only_the_visited_entries_of_one_piece_are_read_and_written():
    table = jnp.arange(2 * 3 * 6 * 4, dtype=jnp.int32).reshape(2, 3, 6, 4)
    entry = jnp.asarray([5, 5, 5, 5, 0, 5, -1, 2], jnp.int32)
    fields = read(table, entry, jnp.int32(1))
    own = np.asarray(entry)[4:]
    expected = np.where(own >= 0, np.asarray(table)[1][:, np.maximum(own, 0), np.arange(4)], 0)
    np.testing.assert_array_equal(fields, expected)
    changed = np.asarray(write(table, entry, fields + 100, jnp.int32(1))) - np.asarray(table)
    assert sorted(np.unique(changed)) == [0, 100]
    assert (changed == 100).sum() == 9
    assert not changed[0].any()


@pytest.mark.parametrize("more", [{"monotone": True}, {"bonus": "bernstein"}])
def test_variants_that_look_further_than_a_stage_have_no_pieces(more):
    assert jb.make_learner("ucbvi", **more).staged is None


def test_a_learner_with_another_update_is_not_run_in_pieces():
    learner = jb.make_learner("ucbvi")
    assert learner.rules.staged is not None
    other = learner._replace(update=lambda state, policy, feedback, constants: state)
    assert other.rules.staged is None
