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


def as_lists(mdp):
    return [np.asarray(x, np.float64).tolist() for x in (mdp.prob, mdp.reward)] + [
        mdp.next_level.tolist()
    ]


def expectation(tables, policy, level, stage=0):
    """The expected reward from a state on: nested loops over actions and outcomes, no array
    operations."""
    prob, reward, next_level = tables
    if stage == len(prob):
        return 0.0
    chosen = policy[stage][level]
    choices = [(1.0, chosen)] if isinstance(chosen, int) else [(w, a) for a, w in enumerate(chosen)]
    total = 0.0
    for weight, a in choices:
        rows = (table[stage][level][a] for table in (prob, reward, next_level))
        for p, r, s in zip(*rows, strict=True):
            if weight * p > 0:
                total += weight * p * (r + expectation(tables, policy, s, stage + 1))
    return total


def visits(mdp, policy):
    """The probability of visiting every state, path by path."""
    prob, _, next_level = as_lists(mdp)
    found = np.zeros((mdp.horizon, mdp.width + 1))

    def walk(stage, level, weight):
        if stage == mdp.horizon or not weight:
            return
        found[stage, level] += weight
        chosen = policy[stage][level]
        choices = {int(chosen): 1.0} if np.ndim(chosen) == 0 else dict(enumerate(chosen))
        for a, share in choices.items():
            for p, s in zip(prob[stage][level][a], next_level[stage][level][a], strict=True):
                walk(stage + 1, s, weight * float(share) * p)

    walk(0, int(mdp.start), 1.0)
    return found
