"""Runs of a few lanes, from the first episode to the last, with the learners' final states; and single episodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.engines import make_runner
from jaxbandit.engines.runner import Runner
from jaxbandit.feedback import Trajectory
from jaxbandit.learner import Learner
from jaxbandit.mdp import MDP
from jaxbandit.planning import sample_episode
from jaxbandit.types import Array
from jaxbandit.xla.lowering import Lowered


def run_lanes(
    engine: str,
    learners: Sequence[Learner],
    mdps: Sequence[MDP],
    keys: Array,
    num_episodes: int,
    points: Array | None = None,
    chunk_size: int | None = None,
    platform: str | None = None,
    functions: Mapping[str, Lowered] | None = None,
) -> tuple[dict[str, np.ndarray], Any]:
    """Runs learners of one program, each on its own MDP, with the typed keys [groups, seeds].

    Returns the results of the runner and the learners' last states: leaves [groups, seeds, ...], or [..., groups, seeds]
    where the engine has lanes last.

    Example:
        >>> import jax, jaxbandit as jb
        >>> mdp = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=3)
        >>> keys = jax.random.split(jax.random.key(0), (1, 4))
        >>> results, state = run_lanes("episodes", [jb.make_learner("oracle")], [mdp], keys, num_episodes=8)
        >>> results["regret"].tolist()
        [[[0.0], [0.0], [0.0], [0.0]]]
    """
    how = {"chunk_size": chunk_size, "platform": platform, "functions": functions}
    runner = make_lane_runner(engine, learners, mdps, keys, num_episodes, points, **how)
    carry = runner.start()
    while runner.episodes_done(carry) < num_episodes:
        carry = runner.step(carry)
    return runner.result(carry), last_states(runner, carry)


def make_lane_runner(
    engine: str,
    learners: Sequence[Learner],
    mdps: Sequence[MDP],
    keys: Array,
    num_episodes: int,
    points: Array | None = None,
    **how: Any,
) -> Runner:
    """The runner of `run_lanes`."""
    params = {
        name: np.stack([np.asarray(one.params[name]) for one in learners])
        for name in learners[0].params
    }
    stacked = jax.tree.map(lambda *x: np.stack([np.asarray(leaf) for leaf in x]), *mdps)
    points = np.asarray([num_episodes] if points is None else points, np.int64)
    made = learners[0]._replace(params=params)
    return make_runner(engine, made, stacked, keys, num_episodes, points, **how)


def play_episode(mdp: MDP, policy: np.ndarray, random: np.random.Generator) -> Trajectory:
    """One episode of a policy, int [H, k+1] or float [H, k+1, A], simulated on the host.

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance("hard-general", theta=[1, 0], num_actions=2, gap=0.25)
        >>> play_episode(mdp, np.zeros((2, 3), int), np.random.default_rng(0)).actions.tolist()
        [0, 0]
    """
    levels, actions, _, rewards, next_levels = sample_episode(
        mdp, policy, random.random((mdp.horizon, 2))
    )
    whole = (jnp.asarray(x, jnp.int32) for x in (levels, actions, next_levels))
    visited, done, following = whole
    return Trajectory(visited, done, jnp.asarray(rewards, jnp.result_type(float)), following)


def last_states(runner: Runner, carry: Any) -> Any:
    """The learners' states in a carry, as `run_lanes` gives them.

    Example:
        >>> import jax, jaxbandit as jb
        >>> mdp = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=3)
        >>> stacked = jax.tree.map(lambda x: np.asarray(x)[None], mdp)
        >>> learner = jb.make_learner("ucbvi", bonus_scale=1.0)
        >>> learner = learner._replace(params={"bonus_scale": np.ones(1, np.float32)})
        >>> keys = jax.random.split(jax.random.key(0), (1, 4))
        >>> runner = make_runner("episodes", learner, stacked, keys, 8, np.asarray([8]))
        >>> last_states(runner, runner.start()).policy.shape      # groups, seeds, H, k+1
        (1, 4, 2, 2)
    """
    place = np.argsort(np.concatenate(runner.lanes_of_tiles()))
    used = [tile.used for tile in runner.tiles]

    def joined(*leaves: Any) -> np.ndarray:
        first = [np.asarray(x)[:n] for x, n in zip(leaves, used, strict=True)]
        lanes = np.concatenate(first)[place]
        return lanes.reshape(runner.groups, runner.seeds, *lanes.shape[1:])

    return jax.tree.map(joined, *(each["state"] for each in carry["tiles"]))
