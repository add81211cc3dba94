"""The paper's lemmas as properties of random instances, with random active sets.

Lemmas that divide by a visitation probability are read multiplied by it, with 0/0 = 0.
"""

import functools

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxbandit as jb
from jaxbandit import theory

HORIZON, WIDTH, ACTIONS = 4, 3, 3
SIZES = {"horizon": HORIZON, "width": WIDTH, "num_actions": ACTIONS}
SELECTION = {"horizon": HORIZON, "capacity": WIDTH, "num_values": ACTIONS}
ORDERED = {
    "random-ordered": SIZES,
    "prophet-random": SELECTION,
    "posted-pricing-random": SELECTION,
    "knapsack-random": {"horizon": HORIZON, "budget": WIDTH - 1},
    "hard-ordered": {
        "horizon": HORIZON,
        "num_actions": ACTIONS - 1,
        "num_downs": WIDTH - 2,
        "gap": 0.2,
    },
}
GENERAL = {
    "random-general": SIZES,
    "hard-general": {"horizon": HORIZON, "num_actions": ACTIONS, "gap": 0.2},
    **ORDERED,
}
SEEDS = st.integers(0, 2**31 - 1)
SLACK = 1e-4  # float32 visitation probabilities, and their ratios


@functools.cache
def maker(name):
    return jax.jit(lambda key: jb.make_instance(name, **GENERAL[name], key=key))


def draw(name, seed):
    """An instance, its kernel [H, k+1, A, k+1], random non-empty active sets [H, k+1, A], a
    generator."""
    mdp = maker(name)(jax.random.key(seed))
    rng = np.random.default_rng(seed)
    shape = mdp.prob.shape[:3]
    active = rng.random(shape) < 0.6
    np.put_along_axis(active, rng.integers(shape[2], size=(*shape[:2], 1)), True, axis=2)
    return mdp, np.asarray(jb.transition_kernel(mdp), np.float64), active, rng


def uniform_exploration(active):
    return (active / active.sum(-1, keepdims=True)).astype(np.float32)


def ordered_exploration(mdp, active):
    """Uniform over the active set with probability k/(2H), else the active action of largest
    rank."""
    best = np.argmax(np.where(active, np.asarray(mdp.rank), -1), axis=-1)
    chance = mdp.width / (2 * mdp.horizon)
    maximal = np.eye(mdp.num_actions, dtype=np.float32)[best]
    return (chance * uniform_exploration(active) + (1 - chance) * maximal).astype(np.float32)


def check_visits(mdp, kernel, active, q, ordered):
    """Lemma 3.2: Q_{s,i+1} >= Q_{l,i} p_i(s | l, a) / A for every active a. Lemma 3.12: factor k/(2HA) for every s, and
    1 - k/(2H) >= exp(-k/H) for staying."""
    share = mdp.width / (2 * mdp.horizon) if ordered else 1.0
    flow = np.where(active[..., None], q[:, :, None, None] * kernel, 0)
    least = share / mdp.num_actions * flow[:-1] * (1 - SLACK)
    assert (q[1:, None, None, :] >= least).all()
    if ordered:
        staying = np.diagonal(flow, axis1=1, axis2=3).max(axis=1)  # [H, k+1]
        assert (q[1:] >= (1 - share) * staying[:-1] * (1 - SLACK)).all()
        assert 1 - share >= np.exp(-mdp.width / mdp.horizon)


def check_induction(mdp, kernel, active, q, ordered):
    """Lemmas 3.3 and 3.13, the latter with the first form of the constants:
    1 + sum_s p_i(s | l, a) C_{s,i+1} Q_{l,i} / Q_{s,i+1} <= C_{l,i} where Q_{l,i} > 0 and a is active."""
    constants = theory.thresholds(mdp.horizon, mdp.width, mdp.num_actions, ordered=ordered)
    after = np.concatenate([constants[1:], np.zeros((1, mdp.width + 1))])[:, 1:]
    q_after = np.concatenate([q[1:], np.ones((1, mdp.width + 1))])[:, 1:]
    for i, level, a in np.argwhere(active):
        if level == 0 or q[i, level] == 0:
            continue
        p = kernel[i, level, a, 1:]
        reached = p > 0
        assert (q_after[i][reached] > 0).all()
        total = 1 + (p[reached] * after[i][reached] * q[i, level] / q_after[i][reached]).sum()
        assert total <= constants[i, level] * (1 + SLACK)


def check_phi(mdp, explore, q, rng):
    """Lemma 3.5: Phi_{l,i}(a) - Phi_{l,i}(b) = Q_{l,i} (V_{l,i}(a, tail) - V_{l,i}(b, tail))."""
    unit = np.eye(mdp.num_actions, dtype=np.float32)
    tail = unit[rng.integers(mdp.num_actions, size=explore.shape[:2])]
    i, level = rng.integers(mdp.horizon), rng.integers(1, mdp.width + 1)
    later = (np.arange(mdp.horizon) > i)[:, None, None]
    phi, value = [], []
    for action in rng.integers(mdp.num_actions, size=2):
        policy = np.where(later, tail, explore)
        policy[i, level] = unit[action]
        tails = jb.policy_values(mdp, policy)
        phi.append(float(tails[0, mdp.start]))
        value.append(float(tails[i, level]))
    np.testing.assert_allclose(phi[0] - phi[1], q[i, level] * (value[0] - value[1]), atol=1e-6)


@pytest.mark.parametrize("name", GENERAL)
def test_lemmas(name):
    """With uniform exploration on all MDPs, with ordered exploration on ordered ones."""

    @settings(max_examples=15, deadline=None, derandomize=True)
    @given(SEEDS)
    def check(seed):
        mdp, kernel, active, rng = draw(name, seed)
        for ordered in (False, True)[: 1 + (name in ORDERED)]:
            explore = ordered_exploration(mdp, active) if ordered else uniform_exploration(active)
            q = np.asarray(jb.visitation(mdp, explore), np.float64)
            check_visits(mdp, kernel, active, q, ordered)
            check_induction(mdp, kernel, active, q, ordered)
            check_phi(mdp, explore, q, rng)

    check()
