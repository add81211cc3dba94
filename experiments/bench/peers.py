"""What a good CPU user would write instead: UCB-VI as a Numba loop, and rlberry-scool's if
installed.

The peers of ``jaxbandit bench``, with ExpRef in `peers_expref` and the NumPy versions in
`peers_numpy`. They take the same instance (the outcome tables of an MDP), do the same work and
report the same exact regret as
jaxbandit, by the same conventions, but share no code with it: they also check its numbers
independently. Numba is the optional extra ``bench``.

Everything is float64. The exhausted level is dropped, as any careful user would: level l = 1..k of
the MDP is index l - 1 here, and index -1 is "exhausted".
"""

from __future__ import annotations

import importlib.util
import logging
import math
from typing import Any, NamedTuple

import numpy as np

from jaxbandit.types import Array

from .peers_expref import expref, fast, first_state, over_seeds, policy_regret, uniform
from .peers_numpy import Schedule, Tables, log_term, schedule, tables

__all__ = [
    "Schedule",
    "Tables",
    "expref",
    "has_rlberry",
    "log_term",
    "rlberry_ucbvi",
    "schedule",
    "tables",
    "ucbvi",
]


class Model(NamedTuple):
    """What UCB-VI knows: empirical means per (stage, level, action), kept up to date at visited
    entries."""

    count: Array
    """float [H, k, A]: visits N."""
    reward: Array
    """float [H, k, A]: mean reward."""
    optimistic: Array
    """float [H, k, A]: mean reward + bonus; 1 where unvisited, so that Q = 1 there."""
    moves: Array
    """float [H, k, A, k]: empirical transition probabilities; 0 where unvisited."""


def ucbvi(
    instance: Tables,
    num_episodes: int,
    points: Array,
    seeds: Array,
    *,
    bonus_scale: float = 1.0,
    threads: int = 1,
) -> np.ndarray:
    """UCB-VI with the bonus scale * sqrt(L / N): cumulative exact regret [S, W] at episodes
    ``points`` [W].

    The runs of the ``seeds`` [S] are single-threaded; ``threads`` of them run at once.

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance("prophet-uniform", horizon=3, capacity=2, num_values=4)
        >>> regret = ucbvi(tables(mdp), 200, [100, 200], seeds=[0, 1])
        >>> regret.shape, bool((regret[:, 1] >= regret[:, 0]).all())
        ((2, 2), True)
    """
    bonus = bonus_scale * math.sqrt(log_term(instance, num_episodes))
    return over_seeds(_ucbvi_run, (instance, num_episodes), points, seeds, (bonus,), threads)


@fast
def _ucbvi_run(instance, num_episodes, points, seed, bonus, regret):
    horizon, width, num_actions = instance.gap.shape
    model = new_model(horizon, width, num_actions)
    policy = np.zeros((horizon, width), np.int64)
    value = np.zeros((horizon + 1, width))
    lost = np.zeros((horizon + 1, width))
    random = first_state(seed)
    total, point = 0.0, 0
    for t in range(1, num_episodes + 1):
        plan(model, policy, value)
        total += policy_regret(instance, policy, lost)
        episode(instance, model, policy, bonus, random)
        if t == points[point]:
            regret[point] = total
            point += 1


@fast
def new_model(horizon, width, num_actions):
    """The model before the first episode."""
    shape = (horizon, width, num_actions)
    moves = np.zeros((horizon, width, num_actions, width))
    return Model(np.zeros(shape), np.zeros(shape), np.ones(shape), moves)


@fast
def plan(model, policy, value):
    """Backward induction: Q = min(1, r + P V + bonus), dense over the next levels.

    Writes the greedy ``policy`` [H, k] (the first of equals) and V, ``value`` [H+1, k], whose last
    row is 0.
    """
    horizon, width, num_actions = model.optimistic.shape
    for i in range(horizon - 1, -1, -1):
        for level in range(width):
            best, choice = -1.0, 0
            for a in range(num_actions):
                q = model.optimistic[i, level, a]
                for s in range(width):
                    q += model.moves[i, level, a, s] * value[i + 1, s]
                q = min(q, 1.0)
                if q > best:
                    best, choice = q, a
            value[i, level] = best
            policy[i, level] = choice


@fast
def episode(instance, model, policy, bonus, random):
    """Plays one episode of the policy by the outcome tables and updates the model along its
    path."""
    level = instance.start
    for i in range(policy.shape[0]):
        a = policy[i, level]
        m, u = 0, uniform(random)
        while u >= instance.cumulative[i, level, a, m]:
            m += 1
        next_level = instance.next_level[i, level, a, m]
        observe(model, i, level, a, instance.reward[i, level, a, m], next_level, bonus)
        if next_level < 0:
            break
        level = next_level


@fast
def observe(model, i, level, a, reward, next_level, bonus):
    """One visit of (stage i, level, action a): running means, and the bonus, which is ``bonus /
    sqrt(N)``."""
    model.count[i, level, a] += 1.0
    step = 1.0 / model.count[i, level, a]
    model.reward[i, level, a] += (reward - model.reward[i, level, a]) * step
    model.optimistic[i, level, a] = model.reward[i, level, a] + bonus * math.sqrt(step)
    for s in range(model.moves.shape[3]):
        moved = 1.0 if s == next_level else 0.0
        model.moves[i, level, a, s] += (moved - model.moves[i, level, a, s]) * step


def has_rlberry() -> bool:
    """True if rlberry-scool can be imported."""
    return importlib.util.find_spec("rlberry_scool") is not None


def rlberry_ucbvi(instance: Tables, num_episodes: int, seed: int) -> Any:
    """rlberry-scool's UCBVI after so many episodes: the agent.

    It re-plans every episode, stage-dependent, with a bonus of its own, and evaluates no policy:
    less work than the other peers do.
    """
    import gymnasium
    from rlberry.seeding import Seeder
    from rlberry.spaces import Discrete
    from rlberry_scool.agents import UCBVIAgent

    logging.getLogger("rlberry_logger").setLevel(logging.ERROR)
    horizon, width, num_actions = instance.gap.shape

    class Env(gymnasium.Env):
        """The instance; its last state is "exhausted"."""

        observation_space = Discrete(width + 1)
        action_space = Discrete(num_actions)
        reward_range = (0.0, 1.0)
        uniforms = np.random.default_rng(seed)

        def reset(self, *, seed=None, options=None):
            self.stage, self.level = 0, instance.start
            return self.level, {}

        def step(self, action):
            where = self.stage, self.level, action
            m = np.searchsorted(instance.cumulative[where], self.uniforms.random(), side="right")
            self.stage, self.level = self.stage + 1, instance.next_level[where][m] % (width + 1)
            ended = self.level == width or self.stage == horizon
            return self.level, instance.reward[where][m], ended, False, {}

    agent = UCBVIAgent(Env(), horizon=horizon, stage_dependent=True, seeder=Seeder(seed))
    agent.fit(num_episodes)
    return agent
