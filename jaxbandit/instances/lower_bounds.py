"""The two families behind the regret lower bounds (Section 4 of the paper).

In both, transitions are deterministic, only the last stage pays, with Bernoulli(1/2) rewards nearly
everywhere and Bernoulli(1/2 + gap) behind one hidden sequence of actions: every policy that misses
it has value exactly 1/2.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit import theory
from jaxbandit.checks import number
from jaxbandit.instances import checks
from jaxbandit.mdp import MDP
from jaxbandit.specs import Values, Whole, takes
from jaxbandit.types import Array
from jaxbandit.xla.threefry import single_key

STAGES, ACTIONS = 0, 1
"""Roles of the keys folded in."""


@checks.single_precision
@takes(
    num_actions=Whole(1),
    theta=Values("H", low=0, whole=True),
    horizon=Whole(1),
    num_episodes=Whole(1),
)
def hard_general(
    num_actions: int,
    theta: Any = None,
    gap: float | None = None,
    horizon: int | None = None,
    key: Any = None,
    num_episodes: int | None = None,
) -> MDP:
    """M^theta of the general lower bound (Theorem 4.1): k = 2, starting at level 1.

    At level 1 of stage i < H, action theta_i stays and any other action leads to level 2, which is
    never left. At the last stage, action theta_H at level 1 pays Bernoulli(1/2 + gap); all else
    pays Bernoulli(1/2). There are A^H instances; the optimal policies of M^theta are those that
    play theta at level 1 (level 2 is free).

    Args:
        num_actions: A.
        theta: actions 0..A-1, [H]; drawn uniformly from ``key`` if not given.
        gap: in [0, 1/2]; by default that of the proof for ``num_episodes``
        (`theory.hard_gap_general`).
        horizon: H; needed only if theta is drawn.
        key: a typed key; needed only if theta is drawn.
        num_episodes: T; needed only if the gap is not given.

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance("hard-general", theta=[2, 0, 1], num_actions=3, gap=0.25)
        >>> value, policy = jb.optimal(mdp)
        >>> float(value), policy[:, 1].tolist(), float(jb.evaluate(mdp, policy * 0))
        (0.75, [2, 0, 1], 0.5)
    """
    if theta is None:
        if horizon is None or key is None:
            raise ValueError(
                "theta: None; accepted: actions [H], or both horizon and key to draw them"
            )
        _check_size(horizon, 2, num_actions)
        theta = jax.random.randint(single_key(key), (horizon,), 0, num_actions, jnp.int32)
    theta = _integers("theta", theta, 0, num_actions - 1)
    H = theta.shape[0]
    if horizon not in (None, H):
        raise ValueError(f"theta: {H} entries; accepted: horizon = {horizon} entries")
    _check_size(H, 2, num_actions)
    gap = _gap(gap, num_episodes, lambda T: theory.hard_gap_general(H, num_actions, T))
    return _general_mdp(theta, gap, num_actions)


@checks.single_precision
@takes(
    horizon=Whole(2),
    num_actions=Whole(1),
    down_stages=Values("k", low=1, whole=True),
    down_actions=Values("k", low=1, whole=True),
    num_downs=Whole(1),
    num_episodes=Whole(1),
)
def hard_ordered(
    horizon: int,
    num_actions: int,
    down_stages: Any = None,
    down_actions: Any = None,
    gap: float | None = None,
    num_downs: int | None = None,
    key: Any = None,
    num_episodes: int | None = None,
) -> MDP:
    """M_{tau,a} of the ordered lower bound (Theorem 4.2), with actions 0..A of which 0 is maximal.

    The path tau starts at the paper's level k+1 and goes down one level at each of the stages i_1 <
    ... < i_k, ending at level 1 of stage H, the only state that pays Bernoulli(1/2 + gap) instead
    of Bernoulli(1/2). On the path, action a_p goes down at stage i_p (smaller actions stay, larger
    ones fall to the paper's level 0); elsewhere action 0 stays and all others fall. Above the path
    everything stays, below it everything falls. There are binom(H-1, k) A^k instances. The action
    at the last stage does not matter, so the optimal policies are those that follow the path
    through the stages 1..H-1.

    The paper's levels 0..k+1 all pay, so they are stored as levels 1..k+2: width k+2, start k+2.

    Args:
        horizon: H > k.
        num_actions: A, the number of actions besides the maximal one: the MDP has A+1.
        down_stages: i_1 < ... < i_k in 1..H-1, [k]; drawn uniformly from ``key`` if not given.
        down_actions: a_1, ..., a_k in 1..A, [k]; drawn uniformly from ``key`` if not given.
        gap: in [0, 1/2]; by default that of the proof for ``num_episodes``
        (`theory.hard_gap_ordered`).
        num_downs: k; needed only if both stages and actions are drawn.
        key: a typed key; needed only if something is drawn.
        num_episodes: T; needed only if the gap is not given.

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance(
        ...     "hard-ordered", horizon=6, down_stages=[2, 4], down_actions=[1, 3], num_actions=3, gap=0.25)
        >>> value, policy = jb.optimal(mdp)
        >>> float(value), mdp.width, mdp.num_actions, [int(policy[1, 4]), int(policy[3, 3])]
        (0.75, 4, 4, [1, 3])
    """
    _check_size(horizon, 1, num_actions)
    stages, actions = _path(horizon, num_actions, down_stages, down_actions, num_downs, key)
    downs = stages.shape[0]
    _check_size(horizon, downs + 2, num_actions)
    gap = _gap(gap, num_episodes, lambda T: theory.hard_gap_ordered(horizon, downs, num_actions, T))
    return _ordered_mdp(stages, actions, gap, horizon, num_actions)


def _check_size(horizon: int, width: int, num_actions: int) -> None:
    sizes = {"horizon": horizon, "width + 1": width + 1, "num_actions": num_actions}
    checks.table({**sizes, "num_outcomes": 2})


def _path(
    horizon: int, num_actions: int, stages: Any, actions: Any, num_downs: int | None, key: Any
):
    """The given or drawn down stages and down actions, int32 [k] each."""
    sizes = [] if num_downs is None else [num_downs]
    sizes += [x.shape[0] for x in (stages, actions) if x is not None]
    if (stages is None or actions is None) and (key is None or not sizes):
        missing = "down_stages" if stages is None else "down_actions"
        raise ValueError(
            f"{missing}: None; accepted: a list [k], or a key and num_downs to draw it"
        )
    if len(set(sizes)) > 1:
        raise ValueError(
            f"down_stages, down_actions: sizes {sizes} (num_downs first, if given); accepted: all the same"
        )
    downs = sizes[0]
    if downs >= horizon:
        raise ValueError(f"num_downs: {downs}; accepted: less than the horizon {horizon}")
    if stages is None:
        role = jax.random.fold_in(single_key(key), STAGES)
        stages = jnp.sort(jax.random.choice(role, horizon - 1, (downs,), replace=False)) + 1
    if actions is None:
        role = jax.random.fold_in(single_key(key), ACTIONS)
        actions = jax.random.randint(role, (downs,), 1, num_actions + 1, jnp.int32)
    stages = _integers("down_stages", stages, 1, horizon - 1)
    if checks.is_concrete(stages) and (np.diff(np.asarray(stages)) <= 0).any():
        raise ValueError(
            f"down_stages: {np.asarray(stages).tolist()}; accepted: strictly increasing stages"
        )
    return stages, _integers("down_actions", actions, 1, num_actions)


def _integers(name: str, values: Any, low: int, high: int) -> Array:
    """``values`` as int32 [n], all within low..high."""
    if checks.is_concrete(values):
        for x in np.asarray(values).tolist():
            if not low <= x <= high:
                raise ValueError(f"{name}: entry {x:g}; accepted: {low}..{high}")
    return jnp.asarray(values, jnp.int32)


def _gap(gap: Any, num_episodes: int | None, of_the_proof: Callable[[int], float]) -> Array:
    if gap is None:
        if num_episodes is None:
            raise ValueError(
                "gap: None; accepted: a number in [0, 1/2], or num_episodes for the proof's gap"
            )
        gap = of_the_proof(num_episodes)
    if checks.is_concrete(gap):
        gap = number("gap", gap, low=0, high=0.5)
    return jnp.asarray(gap, jnp.float32)


@partial(jax.jit, static_argnames="num_actions")
def _general_mdp(theta: Array, gap: Array, num_actions: int) -> MDP:
    actions = jnp.arange(num_actions, dtype=jnp.int32)
    good = actions[None, :] == theta[:, None]  # [H, A]
    twos = jnp.full(good.shape, 2, jnp.int32)
    next_level = jnp.stack([jnp.zeros_like(twos), jnp.where(good, 1, twos), twos], axis=1)
    hit = jnp.zeros((3, num_actions), bool).at[1].set(good[-1])
    return _bernoulli_mdp(next_level, hit, gap, rank=None, start=1)


@partial(jax.jit, static_argnames=("horizon", "num_actions"))
def _ordered_mdp(stages: Array, actions: Array, gap: Array, horizon: int, num_actions: int) -> MDP:
    downs = stages.shape[0]
    now = jnp.arange(1, horizon + 1, dtype=jnp.int32)[:, None]
    # Level of the path at every stage, and the action that leads it down there (0 if it stays).
    path = (downs + 1 - jnp.sum(stages[None, :] < now, axis=1, dtype=jnp.int32))[:, None, None]
    down_here = stages[None, :] == now
    down_action = jnp.sum(jnp.where(down_here, actions[None, :], 0), axis=1, dtype=jnp.int32)[
        :, None, None
    ]
    level = jnp.arange(downs + 2, dtype=jnp.int32)[None, :, None]
    action = jnp.arange(num_actions + 1, dtype=jnp.int32)[None, None, :]
    # Where the path stays, its action is 0, which keeps the level: one formula serves both kinds of
    # states.
    is_down = (down_action > 0).astype(jnp.int32)
    on_path = jnp.where(
        action < down_action, level, jnp.where(action == down_action, level - is_down, 0)
    )
    # [H, k+2, A+1], in the paper's levels; they are stored one higher, below them the level 0 of
    # every MDP.
    moves = jnp.where(level == path, on_path, jnp.where(level > path, level, 0))
    next_level = jnp.concatenate([jnp.zeros_like(moves[:, :1]), moves + 1], axis=1)
    hit = jnp.broadcast_to((jnp.arange(downs + 3) == 2)[:, None], (downs + 3, num_actions + 1))
    rank = jnp.broadcast_to(num_actions - action, next_level.shape)
    return _bernoulli_mdp(next_level, hit, gap, rank, start=downs + 2)


def _bernoulli_mdp(
    next_level: Array, hit: Array, gap: Array, rank: Array | None, start: int
) -> MDP:
    """The MDP of deterministic moves [H, k+1, A] that ends with Bernoulli(1/2 + gap) where ``hit``
    [k+1, A].

    Outcome 0 pays, outcome 1 does not; before the last stage outcome 0 is certain and pays nothing.
    What the last stage leads to does not matter.
    """
    horizon, num_levels, _ = next_level.shape
    alive = (jnp.arange(num_levels) > 0)[:, None]
    chance = jnp.where(hit, 0.5 + gap, jnp.asarray(0.5, gap.dtype))
    success = jnp.concatenate([jnp.ones((horizon - 1, *hit.shape), gap.dtype), chance[None]])
    last = (jnp.arange(horizon) == horizon - 1)[:, None, None] & alive[None]
    pays = jnp.broadcast_to(last, next_level.shape).astype(gap.dtype)
    return MDP(
        prob=jnp.stack([success, 1 - success], axis=-1),
        reward=jnp.stack([pays, jnp.zeros_like(pays)], axis=-1),
        next_level=jnp.stack([next_level, next_level], axis=-1),
        rank=rank,
        start=jnp.asarray(start, jnp.int32),
    )
