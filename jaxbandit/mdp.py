"""The MDP: a table of joint outcomes, as a pytree.

Stages i = 1..H are array indices 0..H-1. Levels l = 0..k are array indices themselves: level 0 is
"exhausted", absorbing and paying nothing, and is never counted in the width k (Section 2 of the paper).

Reward and next level are drawn *jointly*: in state (l, i) under action a, outcome m happens with probability
``prob[i, l, a, m]``, pays ``reward[i, l, a, m]`` and leads to level ``next_level[i, l, a, m]`` of stage i +
1. All arrays are leaves, so instances of one shape stack (``jax.tree.map(lambda *x: jnp.stack(x), ...)``), go
through ``jax.vmap`` and share one compilation.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

Array = Any  # a jax or numpy array


class MDP(NamedTuple):
    """An episodic MDP of horizon H, width k, A actions and at most M outcomes per (state, action).

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance("prophet-uniform", horizon=3, capacity=2, num_values=4)
        >>> mdp.horizon, mdp.width, mdp.num_actions, mdp.num_outcomes
        (3, 2, 4, 4)
    """

    prob: Array
    """float [H, k+1, A, M]: probability of each outcome."""
    reward: Array
    """float [H, k+1, A, M]: reward of each outcome; no run collects more than 1 in total."""
    next_level: Array
    """int32 [H, k+1, A, M]: level of the next stage."""
    rank: Array | None
    """int32 [H, k+1, A]: the known order of Assumption 3.2 (larger = more likely to stay), or None."""
    start: Array
    """int32 []: level of the first stage."""

    @property
    def horizon(self) -> int:
        """H, the number of stages."""
        return self.prob.shape[-4]

    @property
    def width(self) -> int:
        """k, the number of levels, level 0 not counted."""
        return self.prob.shape[-3] - 1

    @property
    def num_actions(self) -> int:
        """A, the number of actions."""
        return self.prob.shape[-2]

    @property
    def num_outcomes(self) -> int:
        """M, the number of outcomes per state and action (some may have probability 0)."""
        return self.prob.shape[-1]


@jax.jit
def transition_kernel(mdp: MDP) -> jax.Array:
    """p_i(s | l, a) as an array [H, k+1, A, k+1]; each row sums to 1.

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=3)
        >>> [f"{x:.3f}" for x in jb.transition_kernel(mdp)[0, 1, :, 1]]      # staying at level 1
        ['0.333', '0.667', '1.000']
    """
    levels = jnp.arange(mdp.width + 1, dtype=jnp.int32)
    hits = mdp.next_level[..., None] == levels[None, None, None, None, :]
    return jnp.sum(jnp.where(hits, mdp.prob[..., None], 0), axis=-2)


@jax.jit
def mean_reward(mdp: MDP) -> jax.Array:
    """r_{l,i}(a) as an array [H, k+1, A].

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=3)
        >>> [f"{x:.3f}" for x in jb.mean_reward(mdp)[0, 1]]
        ['0.500', '0.333', '0.000']
    """
    return jnp.sum(mdp.prob * mdp.reward, axis=-1)


def largest_total(mdp: MDP) -> float:
    """The largest total reward that any run can collect, by backward induction over possible outcomes.

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=3)
        >>> jb.mdp.largest_total(mdp)
        1.0
    """
    prob, reward, nxt = (np.asarray(x) for x in (mdp.prob, mdp.reward, mdp.next_level))
    best = np.zeros(mdp.width + 1)
    for i in reversed(range(mdp.horizon)):
        collected = np.where(prob[i] > 0, reward[i].astype(np.float64) + best[nxt[i]], 0.0)
        best = collected.max(axis=(1, 2))
    return float(best[int(mdp.start)])


def validate(mdp: MDP) -> MDP:
    """Checks every assumption on the host; returns the MDP, or raises ValueError: what is wrong, and where.

    Stages in messages count from 1, as in the paper; levels and actions are array indices.

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance("prophet-uniform", horizon=3, capacity=2, num_values=4)
        >>> jb.validate(mdp) is mdp
        True
        >>> jb.validate(mdp._replace(prob=mdp.prob * 2))
        Traceback (most recent call last):
        ...
        ValueError: MDP.prob: probabilities at stage 1, level 0, action 0 sum to 2; they must sum to 1
    """
    prob, reward, nxt = (np.asarray(x) for x in (mdp.prob, mdp.reward, mdp.next_level))
    _check_shapes(mdp, prob, reward, nxt)
    _check_values(prob, reward, nxt)
    width = prob.shape[1] - 1
    start = int(np.asarray(mdp.start))
    if not 1 <= start <= width:
        raise ValueError(f"MDP.start: level {start}; accepted: 1..{width}")
    possible = prob[:, :1] > 0
    _first("MDP.next_level", (nxt[:, :1] != 0) & possible, "leaves level 0, which must be absorbing,")
    _first("MDP.reward", (reward[:, :1] != 0) & possible, "pays at level 0, which must pay nothing,")
    total = largest_total(mdp)
    if total > 1 + 1e-5:
        raise ValueError(
            f"MDP.reward: a run can collect {total:.6g} in total; accepted: at most 1 in every run"
        )
    if mdp.rank is not None:
        _check_order(prob.astype(np.float64), nxt, np.asarray(mdp.rank))
    return mdp


def _check_shapes(mdp: MDP, prob: np.ndarray, reward: np.ndarray, nxt: np.ndarray) -> None:
    if prob.ndim != 4 or min(prob.shape) < 1 or prob.shape[1] < 2:
        raise ValueError(f"MDP.prob: shape {prob.shape}; accepted: [H, k+1, A, M] with H, k, A, M >= 1")
    for name, array in (("reward", reward), ("next_level", nxt)):
        if array.shape != prob.shape:
            raise ValueError(f"MDP.{name}: shape {array.shape}; accepted: that of prob, {prob.shape}")
    if not np.issubdtype(nxt.dtype, np.integer):
        raise ValueError(f"MDP.next_level: dtype {nxt.dtype}; accepted: integers")
    if mdp.rank is not None and np.shape(mdp.rank) != prob.shape[:3]:
        raise ValueError(
            f"MDP.rank: shape {np.shape(mdp.rank)}; accepted: [H, k+1, A] = {prob.shape[:3]} or None"
        )
    if np.ndim(mdp.start) != 0 or not np.issubdtype(np.asarray(mdp.start).dtype, np.integer):
        raise ValueError(f"MDP.start: {mdp.start!r}; accepted: a single level, an integer")


def _check_values(prob: np.ndarray, reward: np.ndarray, nxt: np.ndarray) -> None:
    width = prob.shape[1] - 1
    _first("MDP.prob", ~np.isfinite(prob), "probability is not finite", prob)
    _first("MDP.prob", prob < 0, "probability is negative", prob)
    sums = prob.sum(axis=-1, dtype=np.float64)
    bad = np.argwhere(np.abs(sums - 1) > 1e-5)
    if bad.size:
        i, level, a = bad[0]
        raise ValueError(
            f"MDP.prob: probabilities at stage {i + 1}, level {level}, action {a} "
            f"sum to {sums[i, level, a]:.7g}; they must sum to 1"
        )
    _first("MDP.reward", ~np.isfinite(reward), "reward is not finite", reward)
    _first("MDP.reward", (reward < 0) | (reward > 1), "reward is outside [0, 1]", reward)
    _first("MDP.next_level", (nxt < 0) | (nxt > width), f"next level is outside 0..{width}", nxt)


def _first(name: str, bad: np.ndarray, what: str, values: np.ndarray | None = None) -> None:
    """Raises for the first True of ``bad`` [H, levels, A, M], where the levels count from 0."""
    where = np.argwhere(bad)
    if not where.size:
        return
    index = tuple(int(j) for j in where[0])
    i, level, a, m = index
    seen = "" if values is None else f": {values[index]}"
    raise ValueError(f"{name}: {what} at stage {i + 1}, level {level}, action {a}, outcome {m}{seen}")


def _check_order(prob: np.ndarray, nxt: np.ndarray, rank: np.ndarray) -> None:
    """Assumption 3.1 (no upward move) and Assumption 3.2 (rank agrees with the staying probabilities)."""
    levels = np.arange(prob.shape[1])[None, :, None, None]
    upward = (nxt > levels) & (prob > 0)
    _first("MDP.next_level", upward, "upward move in an ordered MDP (one with a rank; Assumption 3.1)", nxt)
    staying = np.where(nxt == levels, prob, 0).sum(-1)
    for i, level in np.ndindex(prob.shape[0], prob.shape[1]):
        if level == 0:
            continue
        if len(set(rank[i, level].tolist())) != rank.shape[2]:
            raise ValueError(
                f"MDP.rank: actions tie at stage {i + 1}, level {level}: {rank[i, level].tolist()}; "
                "accepted: a total order, all ranks different"
            )
        order = np.argsort(rank[i, level])
        drop = np.diff(staying[i, level][order])
        if (drop < -1e-6).any():
            j = int(np.argmax(drop < -1e-6))
            a, b = int(order[j]), int(order[j + 1])
            raise ValueError(
                f"MDP.rank: at stage {i + 1}, level {level} action {b} is ranked above action {a}, "
                f"but stays with probability {staying[i, level, b]:.6g} < {staying[i, level, a]:.6g} "
                "(Assumption 3.2)"
            )
