"""ExpRef as straight-line code walks the same path as the block form: every number of its state, episode by episode."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.feedback import BanditFeedback
from jaxbandit.learner import make_constants

LANES = 6
SHORT = {"episodes_scale": 0.01, "epsilons": [0.8, 0.6, 0.5], "last_epsilon": 0.1, "threshold": 0.4}


def begun(name, horizon, width, num_actions):
    """A learner, its constants and its first state, in lanes."""
    learner = jb.make_learner(name, **SHORT)
    rank = None
    if name == "ordered-expref":
        drawn = np.random.default_rng(0).random((horizon, width + 1, num_actions))
        rank = np.argsort(drawn, axis=-1).astype(np.int32)
    problem = jb.Problem(horizon, width, num_actions, 400, rank=rank)

    def single(x):
        x = np.asarray(x)
        return jnp.asarray(x, jnp.float32 if x.dtype.kind == "f" else x.dtype)

    constants = make_constants(learner, problem, learner.params)
    constants = jax.tree.map(single, constants)
    constants = jax.tree.map(
        lambda x: x.astype(jnp.int32) if x.dtype == jnp.int64 else x, constants
    )
    problem = jb.Problem(horizon, width, num_actions, 400, rank=rank, constants=constants)
    state = learner.init(problem, None, None)

    def spread(tree):
        return jax.tree.map(lambda x: jnp.repeat(jnp.asarray(x)[..., None], LANES, axis=-1), tree)

    return learner, spread(constants), spread(state)


@pytest.mark.parametrize("name", ["expref", "ordered-expref"])
@pytest.mark.parametrize("sizes", [(3, 2, 3), (1, 1, 2), (2, 1, 33)])
def test_every_episode_gives_the_state_of_the_block_form(name, sizes):
    """400 episodes of made-up totals, through several phases to the end of the schedule; (2, 1, 33) has two words of arms."""
    learner, constants, state = begun(name, *sizes)
    form = learner.straight
    update = jax.jit(learner.update)
    straight = jax.jit(form.update)
    leave = jax.jit(form.leave)
    inner = form.enter(state, None, constants)
    random = np.random.default_rng(1)
    for episode in range(400):
        policy = jax.jit(form.act)(inner, None, constants)
        np.testing.assert_allclose(policy, state.policy, rtol=1e-6, atol=1e-7)
        seen = BanditFeedback(jnp.asarray(random.random(LANES), jnp.float32))
        state = update(state, policy, seen, constants)
        idle = straight(inner, policy, seen, constants, jnp.bool_(False))
        jax.tree.map(np.testing.assert_array_equal, idle, inner)
        inner = straight(inner, policy, seen, constants, jnp.bool_(True))
        if episode % 97 == 0:  # a call ends and another begins
            inner = form.enter(leave(inner, constants), None, constants)
        if episode % 7 == 0 or episode > 390:
            found = leave(inner, constants)
            for one, other in zip(*map(jax.tree.leaves, (found, state)), strict=True):
                assert one.dtype == other.dtype
                np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-7)
    assert np.all(state.inner.phase >= (1 if sizes[2] == 33 else 2))
    assert np.any(state.inner.active_actions[0] < sizes[2])
