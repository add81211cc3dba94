"""A tiny instance of every family, small enough for brute force, and plain Python oracles."""

import functools
import itertools

import jax
import numpy as np

import jaxbandit as jb

VALUES = [[0.2, 0.9, 0.5], [1.0, 0.0, 0.4]]
PROBABILITIES = [[0.5, 0.2, 0.3], [0.25, 0.25, 0.5]]
ITEMS = {
    "probabilities": [[0.5, 0.3, 0.2], [0.1, 0.9, 0.0], [0.4, 0.4, 0.2]],
    "rewards": [[3, 1, 5], [2, 4, 9], [0, 6, 1]],
    "costs": [[1, 0, 2], [0, 1, 5], [0, 1, 1]],
}
KEY = jax.random.key(7)

PARAMETERS = {
    "prophet-uniform": {"horizon": 3, "capacity": 2, "num_values": 2},
    "prophet-random": {"key": KEY, "horizon": 2, "capacity": 2, "num_values": 3},
    "prophet": {"values": VALUES, "probabilities": PROBABILITIES, "capacity": 2},
    "posted-pricing": {"values": VALUES, "probabilities": PROBABILITIES, "capacity": 2},
    "posted-pricing-random": {"key": KEY, "horizon": 3, "capacity": 2, "num_values": 2},
    "knapsack": {**ITEMS, "budget": 1},
    "knapsack-random": {"key": KEY, "horizon": 3, "budget": 2},
    "hard-general": {"theta": [1, 0, 1], "num_actions": 2, "gap": 0.25},
    "hard-ordered": {
        "horizon": 3,
        "down_stages": [2],
        "down_actions": [1],
        "num_actions": 1,
        "gap": 0.25,
    },
    "bandit": {"values": [1, 2, 5], "probabilities": [[0.2, 0.3, 0.5], [0, 1, 0]]},
    "bandit-random": {"key": KEY, "num_arms": 4},
    "random-general": {"key": KEY, "horizon": 2, "width": 2, "num_actions": 3},
    "random-ordered": {"key": KEY, "horizon": 3, "width": 2, "num_actions": 2},
}


def tiny(name):
    return _made(name, jax.config.jax_enable_x64)


@functools.cache
def _made(name, x64):
    return jb.make_instance(name, **PARAMETERS[name])


def all_policies(mdp):
    """Every deterministic policy, int32 [N, H, k+1]; level 0, where nothing matters, plays action
    0."""
    states = mdp.horizon * mdp.width
    choices = np.array(list(itertools.product(range(mdp.num_actions), repeat=states)), np.int32)
    choices = choices.reshape(-1, mdp.horizon, mdp.width)
    return np.pad(choices, ((0, 0), (0, 0), (1, 0)))


def random_policy(mdp, seed):
    """A randomised Markov policy, float32 [H, k+1, A]."""
    shape = (mdp.horizon, mdp.width + 1, mdp.num_actions)
    weights = np.random.default_rng(seed).exponential(size=shape)
    return (weights / weights.sum(-1, keepdims=True)).astype(np.float32)


def tails(mdp, policy=None):
    """The values [H+1, k+1] of a policy from every state on, or of the best actions; in nested loops, outcome by outcome."""
    found = np.zeros((mdp.horizon + 1, mdp.width + 1))
    for i, level in reversed([*np.ndindex(mdp.horizon, mdp.width + 1)]):
        prob, reward, next_level = (np.asarray(x)[i, level].tolist() for x in mdp[:3])
        actions = [
            sum(p * (r + found[i + 1, s]) for p, r, s in zip(*rows, strict=True) if p > 0)
            for rows in zip(prob, reward, next_level, strict=True)
        ]
        chosen = None if policy is None else policy[i][level]
        if chosen is None:
            found[i, level] = max(actions)
        else:
            found[i, level] = np.dot(chosen, actions) if np.ndim(chosen) else actions[chosen]
    return found


def visits(mdp, policy):
    """The probability of visiting every state [H, k+1], outcome by outcome."""
    prob, _, next_level = (np.asarray(x) for x in mdp[:3])
    found = np.zeros((mdp.horizon + 1, mdp.width + 1))
    found[0, int(mdp.start)] = 1
    for place in np.ndindex(prob.shape):
        i, level, action, _ = place
        chosen = policy[i][level]
        share = chosen[action] if np.ndim(chosen) else chosen == action
        found[i + 1, next_level[place]] += found[i, level] * share * prob[place]
    return found[:-1]
