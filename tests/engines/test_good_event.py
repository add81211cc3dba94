"""Lemmas 3.6 and 3.8 and Corollary 3.7 on the sums that the block engine draws, with the constants
of the theorems."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.engines.blocks.machine import merge_outcomes, push_arms
from jaxbandit.learner import make_constants
from jaxbandit.learners import Problem
from jaxbandit.theory import thresholds
from jaxbandit.xla.compat import x64
from jaxbandit.xla.threefry import key_words

H, K, A = 3, 2, 2
SEEDS, T, EPSILON = 400, 1000.0, 0.5


@functools.cache
def functions():
    lanes = functools.partial(jax.vmap, in_axes=0)
    composed = jax.vmap(lambda policy, stage, row: policy.at[stage].set(row), (None, None, 0))
    values = jax.vmap(jax.vmap(jb.evaluate, (None, 0)), (None, 0))
    return jax.jit(lanes(composed)), jax.jit(values), jax.jit(push_arms)


@pytest.mark.parametrize(
    ("name", "kind"), [("expref", "random-general"), ("ordered-expref", "random-ordered")]
)
def test_good_event(name, kind):
    """One phase, 400 runs. An arm leaves the good event with probability at most 2 T^-6:
    false-alarm rate 1e-14."""
    mdp = jb.make_instance(kind, key=jax.random.key(3), horizon=H, width=K, num_actions=A)
    form = jb.make_learner(name, epsilons=[EPSILON]).blocks
    compose, evaluate, push = functions()
    with x64():
        exact = mdp._replace(
            prob=jnp.asarray(mdp.prob, jnp.float64), reward=jnp.asarray(mdp.reward, jnp.float64)
        )
        world = jax.tree.map(lambda x: np.broadcast_to(x, (SEEDS, *x.shape)), merge_outcomes(mdp))
        params = jb.make_learner(name, epsilons=[EPSILON]).params
        fixed = make_constants(form, Problem(H, K, A, T, mdp.rank), params)
        constants = jax.tree.map(jnp.asarray, fixed)
        first = form.init(Problem(H, K, A, T, mdp.rank), constants, None)
        state = jax.tree.map(lambda x: jnp.broadcast_to(x, (SEEDS, *x.shape)), first)
        explore = jb.visitation(
            exact, form.next_block(first, constants).policy
        )  # of stages before the current one
        words = key_words(jax.random.split(jax.random.key(4), (H, SEEDS)))
        largest = 0.0
        for step in range(H):
            block = jax.vmap(form.next_block, (0, None))(state, constants)
            block = block._replace(episodes=block.episodes.astype(jnp.float64))
            totals = push(world, block, block.episodes, tuple(word[step] for word in words))
            phi = np.asarray(evaluate(exact, compose(block.policy, block.stage, block.rows)))
            error = np.abs(phi - np.asarray(totals / block.episodes))
            assert error.max() <= EPSILON / 2  # Lemma 3.6
            largest = max(largest, error.max())
            state = jax.vmap(form.absorb, (0, 0, 0, None))(state, block.episodes, totals, constants)
            stage = H - 1 - step
            by_level = phi.reshape(SEEDS, K, A)[
                :, ::-1
            ]  # levels 1..k; Phi differences are Q times those of V
            best = np.asarray(state.best)[:, stage, 1:, None]
            lost = by_level.max(-1) - np.take_along_axis(by_level, best, -1)[..., 0]
            assert lost.max() <= EPSILON  # Corollary 3.7
        values = jax.vmap(lambda best: jb.policy_values(exact, best))(state.best)
        optimum = jb.optimal_values(exact)[0]
        gap = np.asarray(optimum)[None, :-1, 1:] - np.asarray(values)[:, :-1, 1:]
        bound = np.asarray(thresholds(H, K, A, name != "expref"))[:, 1:] * EPSILON
        visits = np.asarray(explore)[:H, 1:]
        assert (visits[None] * gap <= bound[None] + 1e-12).all()  # Lemma 3.8, times Q
    assert largest > 0  # sums are drawn, not computed
