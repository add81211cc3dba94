"""The plain reference: its mean is the exact value, its draws have that mean, and the count machine has its law.

Statistical tests have fixed keys and say their false-alarm rate.
"""

import jax.numpy as jnp
import numpy as np
import pytest
from arms import arms, compose, general, moments, random_rows, totals
from scipy import stats

import jaxbandit as jb
from jaxbandit.engines.tables import normalised_prob
from jaxbandit.learner import Blocks
from jaxbandit.mdp import MDP
from jaxbandit.xla.compat import x64


def push_policy(mdp: MDP, policy: np.ndarray, episodes: int, random: np.random.Generator) -> float:
    """The sum of the total rewards of n episodes of a randomised policy float [H, k+1, A]: one binomial draw per split."""
    prob, reward = normalised_prob(mdp), np.asarray(mdp.reward, np.float64)
    next_level = np.asarray(mdp.next_level)
    here, total = np.zeros(mdp.width + 1, np.int64), 0.0
    here[int(mdp.start)] = episodes
    for i in range(mdp.horizon):
        there = np.zeros_like(here)
        for level in range(1, mdp.width + 1):
            weight = (policy[i, level, :, None] * prob[i, level]).ravel()
            rest = weight[::-1].cumsum()[::-1]  # of this outcome and all after it
            left = here[level]
            for j in np.flatnonzero(weight):
                # Of those that saw none of the outcomes before, so many see this one.
                count = random.binomial(left, min(weight[j] / rest[j], 1.0))
                total += count * reward[i, level].flat[j]
                there[next_level[i, level].flat[j]] += count
                left -= count
        here = there
    return float(total)


def mean_reward(mdp: MDP, policy: np.ndarray) -> float:
    """The exact mean of one episode: the same splits, with shares in place of draws."""
    prob, reward = normalised_prob(mdp), np.asarray(mdp.reward, np.float64)
    here, total = np.eye(mdp.width + 1)[int(mdp.start)], 0.0
    for i in range(mdp.horizon):
        share = here[:, None, None] * np.asarray(policy[i])[..., None] * prob[i]
        share[0] = 0
        total += float((share * reward[i]).sum())
        here = np.bincount(np.ravel(mdp.next_level[i]), share.ravel(), mdp.width + 1)
    return total


def prophet():
    """Values of one distribution in all stages but the third: pools stand, merge and change."""
    values, chances = np.array([[0.0, 1.0, 3.0]] * 4), np.array([[0.25, 0.25, 0.5]] * 4)
    chances[2] = [0.5, 0.25, 0.25]
    return jb.make_instance("prophet", values=values, probabilities=chances, capacity=2)


@pytest.mark.parametrize("make", [general, prophet])
def test_the_mean_is_the_value_of_planning(make):
    mdp = make()
    policy = random_rows((mdp.horizon, mdp.width + 1, mdp.num_actions), 2)
    assert mean_reward(mdp, policy) == pytest.approx(moments(mdp, policy)[0], rel=1e-14)
    with x64():
        exact = mdp._replace(
            prob=jnp.asarray(np.asarray(mdp.prob, np.float64)),
            reward=jnp.asarray(np.asarray(mdp.reward, np.float64)),
        )
        value = float(jb.evaluate(exact, jnp.asarray(policy)))
    assert mean_reward(mdp, policy) == pytest.approx(value, abs=1e-6)


@pytest.mark.parametrize("n", [1, 7, 10**5])
@pytest.mark.parametrize("which", ["general", "prophet"])
def test_the_machine_has_the_law_of_the_reference(which, n):
    """Two-sample Kolmogorov-Smirnov tests at p = 1e-6 and z-tests of the reference's mean at 5 standard errors.

    3 n x 3 arms and 3 n x 1 arm: false-alarm rate 2e-5 in all.
    """
    if which == "general":
        mdp, block = general(), arms(3, 3, 2)
    else:
        mdp, rows = prophet(), random_rows((4, 1, 3), 5).repeat(3, 1)
        block = Blocks(rows, np.int32(1), rows[1][None].repeat(3, 0), np.ones(3))
    outcomes = 6 if which == "general" else 3
    ours = totals(mdp, block, n, seed=n % 71, num_outcomes=outcomes)
    random = np.random.default_rng(n)
    for b in range(3 if which == "general" else 1):
        policy = compose(block, b)
        plain = np.array([push_policy(mdp, policy, n, random) for _ in range(1000)])
        mean, variance = moments(mdp, policy)
        assert abs(plain.mean() - n * mean) < 5 * np.sqrt(n * variance / plain.size)
        sums = ours[:, b] if which == "general" else ours.ravel()
        # Rounded, because the same sums are added in another order.
        one, two = np.round(sums, 6), np.round(plain, 6)
        assert stats.ks_2samp(one, two, method="asymp").pvalue > 1e-6


def test_every_episode_is_counted_once():
    """Each pays exactly 1, so the sum is n: no split loses or invents anybody."""
    mdp = general()
    reward = np.zeros(mdp.prob.shape)
    reward[0, 1:] = 1
    policy = random_rows((3, 3, 2), 0)
    paid = push_policy(mdp._replace(reward=reward), policy, 10**9, np.random.default_rng(1))
    assert paid == 10**9
