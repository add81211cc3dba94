"""Planning as straight-line code gives the values of the other way."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.feedback import SemiBanditFeedback
from jaxbandit.learners import ucbvi_straight
from jaxbandit.learners.ucbvi_planning import greedy, optimistic_values, values_by_stages
from jaxbandit.learners.ucbvi_straight import look_up, packed, plan_by_lanes, put_back, unpacked
from jaxbandit.learners.ucbvi_values import PlanTables, UCBVIConstants


@pytest.mark.parametrize("terms", [10, 500])
@pytest.mark.parametrize("bernstein", [False, True])
def test_both_ways_of_planning_agree(bernstein, terms, monkeypatch):
    """Values are at most 1 and add up five stages: equal to a few units in the last place of float32."""
    random = np.random.default_rng(0)
    model = jnp.asarray(random.random((3 + bernstein, 2, 2, 5, 3)) / 3, jnp.float32)
    doubts = jnp.asarray(random.random((2, 5, 3)) / 100, jnp.float32) if bernstein else None
    ceiling = jnp.asarray(random.random((2, 2, 5, 3)), jnp.float32)
    plan = PlanTables(model, doubts, ceiling)
    constants = UCBVIConstants(
        scale=jnp.tile(jnp.float32([0.1, 0.5, 1.0]), (5, 1)),
        log_term=jnp.tile(jnp.float32([2.0, 2.0, 3.0]), (5, 1)),
    )
    values = optimistic_values(plan, constants, jnp.zeros((2, 6, 3), jnp.float32))
    monkeypatch.setattr(ucbvi_straight, "TERMS", terms)
    straight, words = plan_by_lanes(plan, constants)
    np.testing.assert_allclose(straight, values[:, :5], rtol=1e-5)
    np.testing.assert_allclose(values_by_stages(plan, constants), values[:, :5], rtol=1e-5)
    actions, _ = greedy(plan, values, constants)
    np.testing.assert_array_equal(unpacked(words, 2, 5), actions)


@pytest.mark.parametrize("num_actions", [1, 2, 5, 16, 17, 300])
def test_packed_policies_are_unpacked_to_themselves(num_actions):
    policy = np.random.default_rng(1).integers(0, num_actions, (3, 33, 4)).astype(np.int32)
    policy[0], policy[1] = 0, num_actions - 1
    words = packed(jnp.asarray(policy), num_actions)
    np.testing.assert_array_equal(unpacked(words, num_actions, 33), policy)


def test_fields_are_read_and_put_back_where_an_episode_was():
    """The table by numpy, entry by entry; entry -1 is nowhere."""
    random = np.random.default_rng(2)
    table = random.integers(0, 100, (4, 3, 2, 5, 2)).astype(np.int32)  # F, A, k, H, lanes
    entry = random.integers(-1, 6, 10).astype(np.int32)
    entry[:2] = -1
    fields = random.integers(100, 200, (4, 10)).astype(np.int32)
    wanted, found = table.copy(), look_up(jnp.asarray(table), jnp.asarray(entry), 3)
    for j, e in enumerate(entry):
        if e >= 0:
            place = (slice(None), e // 2, e % 2, j // 2, j % 2)
            np.testing.assert_array_equal(found[:, j], table[place][:3])
            wanted[place] = fields[:, j]
    after = put_back(jnp.asarray(table), jnp.asarray(entry), jnp.asarray(fields))
    np.testing.assert_array_equal(after, wanted)


@pytest.mark.parametrize("variant", [{}, {"monotone": True}, {"bonus": "bernstein"}])
def test_an_episode_that_is_not_live_changes_nothing(variant):
    """Nor does entering and leaving; from the first state, and after five episodes."""
    learner = jb.make_learner("ucbvi", bonus_scale=0.1, **variant)
    problem = jb.Problem(horizon=4, width=2, num_actions=3, num_episodes=100)
    lanes = jax.vmap(lambda _: learner.init(problem, None, None), out_axes=-1)
    constants = jax.vmap(lambda _: learner.constants(problem, learner.params), out_axes=-1)(
        jnp.arange(6)
    )
    form, random = learner.straight, np.random.default_rng(3)

    def episode(inner, live):
        whole = {"levels": 3, "actions": 3, "next_levels": 3}
        drawn = {name: random.integers(0, n, (4, 6)).astype(np.int32) for name, n in whole.items()}
        seen = SemiBanditFeedback(rewards=jnp.asarray(random.random((4, 6)), jnp.float32), **drawn)
        return jax.jit(form.update)(inner, None, seen, constants, jnp.bool_(live))

    state = lanes(jnp.arange(6))
    for _ in range(2):
        inner = form.enter(state, None, constants)
        left = form.leave(inner, constants)
        jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-6), left, state)
        for one, other in zip(*map(jax.tree.leaves, (episode(inner, False), inner)), strict=True):
            np.testing.assert_array_equal(one, other)
        for _ in range(5):
            inner = episode(inner, True)
        assert np.any(form.leave(inner, constants).counts != state.counts)
        state = form.leave(inner, constants)
