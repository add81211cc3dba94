"""What the tests of the count engine share: a small MDP, arms on it, their sums, and the exact moments of those."""

import jax
import numpy as np

import jaxbandit as jb
from jaxbandit.engines.blocks import machine
from jaxbandit.engines.blocks.machine import merge_outcomes
from jaxbandit.learner import Blocks
from jaxbandit.xla.compat import x64
from jaxbandit.xla.threefry import key_words

push_arms = jax.jit(machine.push_arms)
NUMBERS = [10, 10**4, 10**9, 10**12]
SEEDS = 1000


def general(seed=3):
    return jb.make_instance(
        "random-general", key=jax.random.key(seed), horizon=3, width=2, num_actions=2
    )


def random_rows(shape, seed):
    rows = np.random.default_rng(seed).exponential(size=shape)
    return rows / rows.sum(-1, keepdims=True)


def arms(horizon, levels, num_actions, seed=0):
    """A policy and three arms: a random row, a deterministic one, and the policy's own. Some
    probabilities are 0 or 1."""
    policy = random_rows((horizon, levels, num_actions), seed)
    policy[0, 1] = np.eye(num_actions)[0]
    stage = horizon // 2
    sure = np.eye(num_actions)[np.arange(levels) % num_actions]
    rows = np.stack([random_rows((levels, num_actions), seed + 1), sure, policy[stage]])
    return Blocks(policy, np.int32(stage), rows, np.ones(3))


def compose(block, b):
    policy = np.array(block.policy)
    policy[int(block.stage)] = block.rows[b]
    return policy


def push(mdp, block, episodes, seed=0, num_outcomes=6):
    """Sums of the total rewards, [seeds, arms]; tables padded to ``num_outcomes`` outcomes to have one shape."""
    episodes = np.asarray(episodes, np.float64)
    seeds = episodes.shape[0]
    merged = merge_outcomes(mdp)
    missing = [(0, 0)] * 2 + [(0, num_outcomes - merged.reward.shape[-1])]
    merged = merged._replace(
        prob=np.pad(merged.prob, [(0, 0), *missing]),
        reward=np.pad(merged.reward, missing),
        next_level=np.pad(merged.next_level, missing),
        pool=np.pad(merged.pool, missing),
    )
    with x64():
        tables, lanes = jax.tree.map(
            lambda x: np.broadcast_to(x, (seeds, *np.shape(x))), (merged, block)
        )
        words = key_words(jax.random.split(jax.random.key(seed), seeds))
        return np.asarray(push_arms(tables, lanes, episodes, words))


def totals(mdp, block, n, seeds=SEEDS, seed=0, num_outcomes=6):
    return push(mdp, block, np.full((seeds, block.episodes.size), n), seed, num_outcomes)


def moments(mdp, policy):
    """Mean and variance of an episode's total reward, by backward induction on the first two
    moments, in float64."""
    prob, reward = np.asarray(mdp.prob, np.float64), np.asarray(mdp.reward, np.float64)
    prob = prob / prob.sum(-1, keepdims=True)
    first = second = np.zeros(mdp.width + 1)
    for i in reversed(range(mdp.horizon)):
        tail, square = first[mdp.next_level[i]], second[mdp.next_level[i]]
        weight = policy[i][..., None] * prob[i]
        second = np.sum(weight * (reward[i] ** 2 + 2 * reward[i] * tail + square), axis=(1, 2))
        first = np.sum(weight * (reward[i] + tail), axis=(1, 2))
    mean = first[int(mdp.start)]
    return mean, second[int(mdp.start)] - mean**2
