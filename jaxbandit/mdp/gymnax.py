"""An MDP as an environment with the interface of gymnax: pure functions reset and step. Nothing of gymnax is imported."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.mdp.labels import labels_of
from jaxbandit.mdp.model import MDP, checked, single
from jaxbandit.types import Array


class EnvState(NamedTuple):
    """Where an episode is."""

    level: Array
    """int32 []: the level; state s is level s + 1."""
    time: Array
    """int32 []: the stages that are over."""


class EnvParams(NamedTuple):
    """The MDP as leaves, so that environments of one shape stack and vmap."""

    mdp: MDP
    """Its rewards are in the unit of the labels."""
    max_steps_in_episode: Array
    """int32 []: H."""


class Discrete(NamedTuple):
    """The whole numbers 0..n-1."""

    n: int
    shape: tuple[int, ...] = ()
    dtype: Any = jnp.int32

    def sample(self, key: Array) -> jax.Array:
        """One of them, uniformly."""
        return jax.random.randint(key, (), 0, self.n, jnp.int32)

    def contains(self, x: Any) -> jax.Array:
        """Whether x is one of them."""
        return jnp.logical_and(x >= 0, x < self.n)


class Environment:
    """What `to_gymnax` returns; ``params`` may be left out everywhere."""

    def __init__(self, params: EnvParams, drawn: int, terminated: bool):
        """``drawn``: how many stages of the MDP draw the start; ``terminated``: the form of a step."""
        self.default_params = params
        self._drawn = drawn
        self._terminated = terminated

    @property
    def name(self) -> str:
        """Of the environment."""
        return repr(self.default_params.mdp)

    @property
    def num_actions(self) -> int:
        """A."""
        return self.default_params.mdp.num_actions

    def action_space(self, params: EnvParams | None = None) -> Discrete:
        """Actions 0..A-1."""
        return Discrete(self.num_actions)

    def observation_space(self, params: EnvParams | None = None) -> Discrete:
        """States 0..S-1, and S after the end."""
        return Discrete(self.default_params.mdp.num_states + 1)

    def get_obs(
        self, state: EnvState, params: EnvParams | None = None, key: Any = None
    ) -> jax.Array:
        """The state s, int32 []; S if the episode is over."""
        return jnp.where(state.level > 0, state.level - 1, self.default_params.mdp.num_states)

    def is_terminal(self, state: EnvState, params: EnvParams | None = None) -> jax.Array:
        """Whether the episode is over: at level 0, or after H stages."""
        last = (params or self.default_params).max_steps_in_episode
        return jnp.logical_or(state.level == 0, state.time >= last)

    @partial(jax.jit, static_argnums=0)
    def reset(self, key: Array, params: EnvParams | None = None) -> tuple[jax.Array, EnvState]:
        """(observation, state) of a new episode."""
        return self.reset_env(key, params or self.default_params)

    @partial(jax.jit, static_argnums=0)
    def step(self, key: Array, state: EnvState, action: Array, params: EnvParams | None = None) -> tuple[Any, ...]:  # fmt: skip
        """One stage, and a new episode where this one is over.

        (observation, state, reward, done, info), or (observation, state, reward, terminated, truncated, info); the
        last observation of an episode is ``info["final_observation"]``.
        """
        params = params or self.default_params
        key, other = jax.random.split(key)
        seen, after, reward, done, info = self.step_env(key, state, action, params)
        first, fresh = self.reset_env(other, params)
        terminated = after.level == 0
        truncated = jnp.logical_and(done, ~terminated)
        info = {**info, "terminated": terminated, "truncated": truncated, "final_observation": seen}
        state = jax.tree.map(lambda new, old: jnp.where(done, new, old), fresh, after)
        ended = (terminated, truncated) if self._terminated else (done,)
        return jnp.where(done, first, seen), state, reward, *ended, info

    def reset_env(self, key: Array, params: EnvParams) -> tuple[jax.Array, EnvState]:
        """`reset`, not jitted."""
        level = jnp.asarray(params.mdp.start, jnp.int32)
        for stage in range(self._drawn):
            level = self._outcome(jax.random.fold_in(key, stage), params, stage, level, 0)[1]
        state = EnvState(level, jnp.zeros((), jnp.int32))
        return self.get_obs(state, params), state

    def step_env(self, key: Array, state: EnvState, action: Array, params: EnvParams) -> tuple[Any, ...]:  # fmt: skip
        """One stage, without a new episode after it: (observation, state, reward, done, info)."""
        reward, level = self._outcome(key, params, state.time + self._drawn, state.level, action)
        after = EnvState(level, state.time + 1)
        done = self.is_terminal(after, params)
        discount = jnp.where(level == 0, 0.0, 1.0)
        return self.get_obs(after, params), after, reward, done, {"discount": discount}

    def _outcome(self, key: Array, params: EnvParams, stage: Any, level: Any, action: Any) -> tuple[jax.Array, jax.Array]:  # fmt: skip
        """A reward and the next level."""
        prob, reward, next_level = params.mdp[:3]
        outcome = jax.random.categorical(key, jnp.log(prob[stage, level, action]))
        place = (stage, level, action, outcome)
        return reward[place], next_level[place]


def to_gymnax(mdp: MDP, terminated: bool = False) -> Environment:
    """An environment with gymnax's ``reset(key, params)`` and ``step(key, state, action, params)``.

    Observations are states 0..S-1, int32 []; rewards are in the unit of the MDP's labels if `from_arrays` made it. Like
    gymnax, ``step`` begins a new episode where one is over.

    Args:
        mdp: a single MDP.
        terminated: whether a step is (observation, state, reward, terminated, truncated, info), as since gymnax 1.0, or
            (observation, state, reward, done, info), as before. An episode is truncated after H stages.

    Example:
        >>> import jax, jaxbandit as jb
        >>> env = jb.to_gymnax(jb.make_instance("prophet-uniform", horizon=3, capacity=2, num_values=4))
        >>> key, params = jax.random.key(0), env.default_params
        >>> obs, state = env.reset(key, params)
        >>> obs, state, reward, done, info = env.step(key, state, 0, params)
        >>> int(state.time), bool(done)
        (1, False)
    """
    words = labels_of(single(mdp))
    mdp = checked(mdp)
    drawn = 0 if words.arrays is None else words.arrays.drawn
    reward = np.array(mdp.reward)
    if words.offsets:
        going = np.asarray(mdp.next_level) > 0
        for i, paid in enumerate(reward):
            units = [words.paid(i, paid, level) for level in (0, 1)]
            reward[i] = np.where(going[i], units[1], units[0])
        reward[:, 0] = 0
    tables = jax.tree.map(jnp.asarray, mdp._replace(reward=reward, rank=None))
    steps = jnp.asarray(mdp.horizon - drawn, jnp.int32)
    return Environment(EnvParams(tables, steps), drawn, terminated)
