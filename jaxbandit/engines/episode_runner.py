"""Drives the episode engine: chunks of episodes on the devices, sums of regret in float64 on the host."""

from __future__ import annotations

from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.engines import episodes
from jaxbandit.engines.runner import Carry, Runner, one_hot_actions
from jaxbandit.engines.world import World, make_world

CHUNK_BYTES = 2**24
"""Default chunks hold so many bytes of regrets."""


class EpisodeRunner(Runner):
    """Runs any learner episode by episode."""

    def __init__(self, *args: Any, **kwargs: Any):
        """See `jaxbandit.engines.make_runner`."""
        super().__init__(*args, **kwargs)
        if not 1 <= self.num_episodes < 2**31:
            raise ValueError(
                f"num_episodes: {self.num_episodes}; accepted on the episode engine: 1..{2**31 - 1} "
                "(the block engine runs longer horizons)"
            )
        mdps = self.mdps
        self.sizes = episodes.Sizes(mdps.horizon, mdps.width, mdps.num_actions, mdps.num_outcomes)
        self.chunk = self.chunk_size or self._default_chunk()
        self.state_lanes = -1 if self.rules.lanes_last else 1

    @cached_property
    def world(self) -> World:
        """What the engine knows of the MDPs."""
        return make_world(self.mdps)

    def _default_chunk(self) -> int:
        """Near the budget, and a divisor of T if there is one nearby, so that all chunks share one program."""
        lanes = self.groups * self.seeds
        most = max(episodes.STRETCH, min(self.num_episodes, CHUNK_BYTES // (4 * lanes), 2**16))
        if self.num_episodes <= most:
            return self.num_episodes
        for chunk in range(most, most // 2, -1):
            if self.num_episodes % chunk == 0 and chunk % episodes.STRETCH == 0:
                return chunk
        return most - most % episodes.STRETCH

    @property
    def bytes_per_lane(self) -> int:
        """Estimate: the learner's state twice, the regrets of a chunk, the random words and policies of a stretch."""
        state = jax.eval_shape(self.first_state)
        size = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(state)) // self.groups
        H, k, A, _ = self.sizes
        return 3 * size + 16 * self.chunk + episodes.STRETCH * H * (8 + 4 * (k + 1)) + 8 * H * k * A * (k + 1)

    def start(self) -> Carry:
        """The carry before the first episode."""
        lanes = (self.groups, self.seeds)

        def spread(leaf):
            full = np.broadcast_to(np.asarray(leaf)[:, None], (*lanes, *leaf.shape[1:]))
            return np.ascontiguousarray(np.moveaxis(full, (0, 1), (-2, -1)) if self.rules.lanes_last else full)

        state = jax.tree.map(spread, self.first_state())
        self._check(_next_policy(self.rules, state, self.keys))
        return {
            "episode": np.int64(0),
            "state": state,
            "total": np.zeros(lanes),
            "curve": np.full((*lanes, self.points.size), np.nan),
        }

    def _check(self, policy: Any) -> None:
        """Actions are table indices here: one out of range would read another state's row in silence."""
        if jnp.issubdtype(policy.dtype, jnp.integer):
            actions = np.asarray(policy)
            if actions.min() < 0 or actions.max() >= self.sizes.num_actions:
                raise ValueError(
                    f"learner {self.rules.name!r}: actions {actions.min()}..{actions.max()}; "
                    f"accepted: 0..{self.sizes.num_actions - 1} in this MDP"
                )

    def step(self, carry: Carry) -> Carry:
        """One chunk. The float64 sums are taken strictly in order, so they do not depend on the chunks."""
        done = int(carry["episode"])
        num = min(self.chunk, self.num_episodes - done)
        state, regrets = self.execute(
            ("episodes", self.rules, self.sizes, num),
            partial(episodes.run_chunk, self.rules, self.sizes, num=num),
            (self.world, self.keys, carry["state"], jnp.uint32(done)),
            (None, 1, self.state_lanes, None),
            (self.state_lanes, -1),
        )
        sums = np.concatenate([carry["total"][None], np.asarray(regrets, np.float64)])
        np.cumsum(sums, axis=0, out=sums)
        curve = carry["curve"].copy()
        due = np.flatnonzero((self.points > done) & (self.points <= done + num))
        curve[:, :, due] = np.moveaxis(sums[self.points[due] - done], 0, -1)
        return {"episode": np.int64(done + num), "state": state, "total": sums[-1], "curve": curve}

    def episodes_done(self, carry: Carry) -> int:
        """Episodes finished in every lane."""
        return int(carry["episode"])

    def result(self, carry: Carry) -> dict[str, np.ndarray]:
        """Curves and diagnostics, lanes first."""
        state = jax.tree.map(jnp.asarray, carry["state"])
        policy = _next_policy(self.rules, state, self.keys)
        gap = _next_regret(self.rules, self.world, state, self.keys)
        table = np.moveaxis(np.asarray(policy, np.float64), (-2, -1), (0, 1))
        actions = table if jnp.issubdtype(policy.dtype, jnp.integer) else one_hot_actions(table)
        found = {"regret": carry["curve"], "final_gap": np.asarray(gap, np.float64), "final_policy": actions}
        if self.rules.report is not None:
            if self.rules.lanes_last:
                state = jax.tree.map(lambda x: jnp.moveaxis(x, (-2, -1), (0, 1)), state)
            for name, value in jax.vmap(jax.vmap(self.rules.report))(state).items():
                found[name] = np.asarray(value, np.float64)
        return found


@partial(jax.jit, static_argnames=("rules",))
def _next_policy(rules, state, keys):
    """The policies of the next episode in all lanes; compiled once per learner and shape, not once a runner."""
    policy = episodes.lane_functions(rules)[0](episodes.one_axis(rules, state), keys.reshape(-1))
    return policy.reshape(*policy.shape[:-1], *keys.shape)


@partial(jax.jit, static_argnames=("rules",))
def _next_regret(rules, world, state, keys):
    """The regrets of those policies."""
    policy = _next_policy(rules, state, keys)
    if jnp.issubdtype(policy.dtype, jnp.integer):
        return episodes.deterministic_regret(world, policy[None])[0]
    return episodes.randomised_regret(world, policy)
