"""The peers of the benchmark against exact planning, plain formulas, each other, and jaxbandit's
own engines.

Statistical tests compare means over seeds by |z| < 4.5, a false-alarm rate of 7e-6 each (normal
approximation), with fixed seeds.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from peers_compared import LIMIT, engine_regret, z_score

import jaxbandit as jb
from jaxbandit.planning import gaps, regret

pytest.importorskip("numba")

from jaxbandit.experiments.bench import peers, peers_expref, peers_numpy


def with_level_zero(choice):
    """Probabilities of levels 1..k with those of level 0, which plays action 0."""
    full = np.pad(choice, ((0, 0), (1, 0), (0, 0)))
    full[:, 0, 0] = 1
    return jnp.asarray(full, jnp.float32)


def full_policy(policy):
    """A peer's policy [H, k] as the MDP's, int32 [H, k+1]: level 0 plays action 0."""
    return jnp.asarray(np.pad(policy, ((0, 0), (1, 0))), jnp.int32)


def random_choice(shape, seed):
    return np.random.default_rng(seed).dirichlet(np.full(shape[2], 0.3), shape[:2])


def test_gaps(mdp, instance):
    np.testing.assert_allclose(instance.gap, gaps(mdp)[:, 1:], atol=1e-6)
    assert instance.start == int(mdp.start) - 1
    assert (instance.cumulative[..., -1] == 1).all()


def test_regret_of_policies_is_that_of_planning(mdp, instance):
    work = np.zeros((instance.gap.shape[0] + 1, instance.gap.shape[1]))
    for seed in range(5):
        policy = np.random.default_rng(seed).integers(0, mdp.num_actions, instance.gap.shape[:2])
        exact = float(regret(mdp, full_policy(policy)))
        assert peers.policy_regret(instance, policy, work) == pytest.approx(exact, abs=1e-6)
        assert peers_numpy.policy_regret(instance, policy) == pytest.approx(exact, abs=1e-6)
        choice = random_choice(instance.gap.shape, seed)
        exact = float(regret(mdp, with_level_zero(choice)))
        assert peers_expref.mixed_regret(instance, choice, work) == pytest.approx(exact, abs=1e-6)
        assert peers_numpy.mixed_regret(instance, choice) == pytest.approx(exact, abs=1e-6)


def test_plan_follows_the_formulas():
    """Q = min(1, mean reward + mean next V + bonus / sqrt(N)), Q = 1 where unvisited; scripted
    visits."""
    horizon, width, num_actions, bonus = 3, 2, 2, 0.3
    rng = np.random.default_rng(0)
    where = rng.integers([horizon, width, num_actions], size=(40, 3)).tolist()
    visits = [(*state, rng.random(), int(rng.integers(-1, width))) for state in where]
    model = peers.new_model(horizon, width, num_actions)
    for visit in visits:
        peers.observe(model, *visit, bonus)
    policy = np.zeros((horizon, width), np.int64)
    value = np.zeros((horizon + 1, width))
    peers.plan(model, policy, value)
    tail = np.zeros(width)
    for i in reversed(range(horizon)):
        q = np.ones((width, num_actions))
        for level, a in np.ndindex(width, num_actions):
            seen = [(r, s) for j, at, b, r, s in visits if (j, at, b) == (i, level, a)]
            if seen:
                following = np.mean([tail[s] if s >= 0 else 0.0 for _, s in seen])
                q[level, a] = min(
                    1, np.mean([r for r, _ in seen]) + following + bonus / math.sqrt(len(seen))
                )
        tail = q.max(-1)
        np.testing.assert_allclose(value[i], tail, rtol=1e-12)
        np.testing.assert_array_equal(policy[i], q.argmax(-1))
    assert 0 < value.min(where=value > 0, initial=1) < 1


def test_ucbvi_charges_the_exact_regret_of_each_policy(mdp, instance):
    """A replay of the same random numbers step by step, with planning's regret in place of the
    peer's."""
    num_episodes, seed = 80, 5
    model = peers.new_model(*instance.gap.shape)
    policy = np.zeros(instance.gap.shape[:2], np.int64)
    value = np.zeros((policy.shape[0] + 1, policy.shape[1]))
    random = peers_expref.first_state(np.uint64(seed))
    bonus = 0.2 * math.sqrt(peers.log_term(instance, num_episodes))
    charged = []
    exact = jax.jit(regret)
    for _ in range(num_episodes):
        peers.plan(model, policy, value)
        charged.append(float(exact(mdp, full_policy(policy))))
        peers.episode(instance, model, policy, bonus, random)
    found = peers.ucbvi(instance, num_episodes, [30, 80], [seed], bonus_scale=0.2)
    np.testing.assert_allclose(found[0], [sum(charged[:30]), sum(charged)], atol=1e-4)
    assert len(set(charged)) > 1


def test_episodes_have_the_exact_mean(mdp, instance):
    """The mean total reward of simulated episodes is the policy's value, in both simulators."""
    choice = random_choice(instance.gap.shape, 1)
    exact = float(jb.evaluate(mdp, with_level_zero(choice)))
    outcomes = peers_expref.new_outcomes(*choice.shape[:2], instance.reward[0, 0].size)
    for i, level in np.ndindex(choice.shape[:2]):
        peers_expref.merge(instance, choice, i, level, outcomes)
    random = peers_expref.first_state(np.uint64(9))
    rng = np.random.default_rng(9)
    compiled = [peers_expref.play(outcomes, instance.start, 500, random) / 500 for _ in range(100)]
    plain = [peers_numpy.play(instance, choice, 500, rng) / 500 for _ in range(100)]
    assert z_score(compiled, exact) < LIMIT
    assert z_score(plain, exact) < LIMIT
    assert np.std(compiled) == pytest.approx(
        np.std(plain), rel=0.4
    )  # 100 draws: 5.6 s.e. of the ratio


@pytest.mark.parametrize("bonus_scale", [0.1, 1.0])
def test_jaxbandit_ucbvi_agrees(mdp, instance, bonus_scale):
    points = [100, 2_000]
    learner = jb.make_learner("ucbvi", bonus_scale=bonus_scale)
    ours = engine_regret("episodes", learner, mdp, 2_000, points, 64)
    theirs = peers.ucbvi(instance, 2_000, points, np.arange(1_000), bonus_scale=bonus_scale)
    assert z_score(ours[:, 0], theirs[:, 0]) < LIMIT
    assert z_score(ours[:, 1], theirs[:, 1]) < LIMIT
