"""Thompson sampling on least squares of totals (trajectory feedback, or totals of segments).

After Efroni, Merlis and Mannor (2021), "Reinforcement learning with trajectory feedback". The total
reward of an episode is regressed on what its path visited, one unknown mean reward for each (stage,
level, action, next level). Rewards are drawn jointly with the next level, so with the next level
among the features the mean of the total given the path is linear in them, whatever policies the data
come from. Without it, it is not: the reward of a stage and the path after it are dependent given
(stage, level, action), and the estimate is biased for ever on data of changing policies. (The next
level of the last stage is not shown, and nothing comes after it.) With ridge matrix G and estimate
theta-hat,

    theta ~ Normal(theta-hat, v^2 G^{-1}),
    Q_{l,i}(a) = r_{l,i}(a) + c sqrt(L / max(N, 1)) + 1{N = 0} + sum_{s=1..k} p_i(s | l, a) min(1, max_b Q_{s,i+1}(b)),

with N = N_{l,i}(a) visits, p the empirical next levels (0 where N = 0, and at stage H) and r the mean of
theta_{l,i,a,s} over s = 0..k, weighted by p_i(s | l, a), or evenly where N = 0. The policy is greedy in Q. Only the value
of what follows is clipped at 1; Q is not, and theta is continuous also at actions that were never tried, so for v > 0
there are no ties, and numbering the actions otherwise changes no law. (For v = 0 ties go to the first action.) v is
``noise_scale``, c ``bonus_scale``, L = ln(5 k A H T / delta) and delta = 1/T.

G is the sum over episodes (and segments) of x x^T plus the ridge, x in {0, 1}^d the features that were visited, and
theta-hat = G^{-1} sum x X with X the total. Theta and the policy are drawn before the first episode and after
t = 1, 2, 3, 5, 7, 10, 13, 17, 22, ... episodes: after a draw at t the next is at t + 1 + floor((t + 1) / 4). In
between, the last policy is played.

With ``segments`` = m the totals of m segments of stages are shown, and each is regressed on the part
of the path in its segment.

Deviations from the reference: the features; one draw of theta serves until the number of episodes
has grown by a quarter (lanes stay in step and a solution of d^3 operations, d = H k A (k+1), is shared by many
episodes); the ridge is 1 + 10^-6 H t instead of
1, which keeps single precision sound in directions that no path can tell apart.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.feedback import SegmentsFeedback, TrajectoryFeedback, segment_bounds
from jaxbandit.learner import Learner, Problem
from jaxbandit.learners.model import change_if, greedy, log_term, plan
from jaxbandit.specs import Optional, Real, Whole, as_params, takes
from jaxbandit.types import Array

MOST_FEATURES = 4096


class TrajectoryState(NamedTuple):
    """Moments of the regression."""

    gram: Array
    """int32 [d, d]: how often two features were visited together (in one segment)."""
    target: Array
    """float32 [d]: sums of totals where a feature was visited, and in ``lost`` the rounding."""
    lost: Array
    moves: Array
    """int32 [H, k, A, k+1]: visits by next level; level 0 at the last stage."""
    policy: Array
    """int32 [H, k+1]: what was played last."""
    episodes: Array
    """int32 []: episodes so far."""
    due: Array
    """int32 []: the number of episodes after which to solve again."""

    @property
    def visits(self) -> Array:
        """int32 [H, k, A]: for `jaxbandit.metrics`."""
        return jnp.sum(self.moves, axis=3)


class TrajectoryConstants(NamedTuple):
    """The widths of the posterior and of the bonus."""

    noise: Array
    """float32 []: v."""
    bonus: Array
    """float32 []: c sqrt(L)."""


@takes(noise_scale=Real(low=0), bonus_scale=Real(low=0), segments=Optional(Whole(1)))
def trajectory_ts(
    noise_scale: float = 1.0, bonus_scale: float = 1.0, segments: int | None = None
) -> Learner:
    """Thompson sampling on regressed totals.

    Args:
        noise_scale: v >= 0, the width of the posterior.
        bonus_scale: c >= 0, on the bonus for unknown transitions.
        segments: m, to be shown the totals of m segments; if not given, the total alone.

    Example:
        >>> trajectory_ts().feedback, trajectory_ts(segments=3).feedback
        ('trajectory', 'segments:3')
    """
    specs = trajectory_ts.specs  # type: ignore[attr-defined]
    fields = as_params(specs, noise_scale=noise_scale, bonus_scale=bonus_scale)
    kind = "trajectory" if segments is None else f"segments:{segments}"
    update = _update(segments)
    return Learner(init, act, update, kind, name="trajectory-ts", constants=constants, **fields)


def constants(problem: Problem, params: Any) -> TrajectoryConstants:
    """v, and c sqrt(L) with L = ln(5 k A H T / delta) and delta = 1/T."""
    bonus = float(params["bonus_scale"]) * np.sqrt(log_term(problem, 5 * problem.width))
    return TrajectoryConstants(np.float32(params["noise_scale"]), np.float32(bonus))


def init(problem: Problem, constants: Any, key: Array) -> TrajectoryState:
    """Nothing is known; a policy is due before the first episode."""
    del constants, key
    H, k, A = problem.horizon, problem.width, problem.num_actions
    size = H * k * A * (k + 1)
    if size > MOST_FEATURES:
        raise ValueError(
            f"trajectory-ts: {size} features (H k A (k+1)); accepted: at most {MOST_FEATURES}"
        )
    zeros = jnp.zeros(size, jnp.float32)
    return TrajectoryState(
        gram=jnp.zeros((size, size), jnp.int32),
        target=zeros,
        lost=zeros,
        moves=jnp.zeros((H, k, A, k + 1), jnp.int32),
        policy=jnp.zeros((H, k + 1), jnp.int32),
        episodes=jnp.int32(0),
        due=jnp.int32(0),
    )


def act(state: TrajectoryState, key: Array, constants: TrajectoryConstants) -> Array:
    """The policy of the last draw, or of a new one when that is due."""
    due = state.episodes >= state.due
    return change_if(due, lambda _: drawn_policy(state, key, constants), state.policy)


def drawn_policy(state: TrajectoryState, key: Array, constants: TrajectoryConstants) -> Array:
    """The policy of a draw from the posterior, int32 [H, k+1]."""
    factor, theta = posterior(state)
    spread = jax.random.normal(key, theta.shape, jnp.float32)
    theta = theta + constants.noise * solve(factor, spread, transposed=True)
    visits = jnp.sum(state.moves, axis=-1)
    weight = 1 / jnp.maximum(visits, 1).astype(jnp.float32)
    share = state.moves.astype(jnp.float32) * weight[..., None]
    new = visits == 0
    evenly = jnp.where(new[..., None], 1 / share.shape[-1], share)
    reward = jnp.sum(evenly * theta.reshape(share.shape), axis=-1)
    reward = reward + constants.bonus * jnp.sqrt(weight) + new.astype(jnp.float32)
    return greedy(plan(reward, share[..., 1:], len(reward)))


def posterior(state: TrajectoryState) -> tuple[Array, Array]:
    """The Cholesky factor of G [d, d] and theta-hat [d]."""
    horizon = state.moves.shape[0]
    ridge = 1 + 1e-6 * horizon * state.episodes.astype(jnp.float32)
    gram = state.gram.astype(jnp.float32) + ridge * jnp.eye(state.target.size, dtype=jnp.float32)
    factor = cholesky(gram)
    return factor, solve(factor, solve(factor, state.target), transposed=True)


def cholesky(matrix: Array) -> Array:
    """The lower triangular factor of a positive definite matrix [d, d].

    Written out because XLA:CPU hands factorisations to a library that waits for helpers from a pool
    of threads, and waits for ever where each device has a single thread.

    Example:
        >>> import jax.numpy as jnp
        >>> cholesky(jnp.asarray([[4.0, 2.0], [2.0, 5.0]])).tolist()
        [[2.0, 0.0], [1.0, 2.0]]
    """
    rows = jnp.arange(matrix.shape[0], dtype=jnp.int32)

    def column(j, carry):
        rest, factor = carry
        one = jnp.where(rows >= j, rest[:, j] / jnp.sqrt(rest[j, j]), 0)
        return rest - one[:, None] * one[None], factor.at[:, j].set(one)

    return jax.lax.fori_loop(0, matrix.shape[0], column, (matrix, jnp.zeros_like(matrix)))[1]


def solve(factor: Array, right: Array, *, transposed: bool = False) -> Array:
    """x with L x = right, or with L^T x = right."""
    rows = jnp.arange(right.size, dtype=jnp.int32)

    def step(done, x):
        j = right.size - 1 - done if transposed else done
        column, later = (factor[j], rows < j) if transposed else (factor[:, j], rows > j)
        one = x[j] / factor[j, j]
        return jnp.where(later, x - column * one, x).at[j].set(one)

    return jax.lax.fori_loop(0, right.size, step, right)


def features(levels: Array, actions: Array, width: int, num_actions: int) -> Array:
    """The feature visited at each stage, int32 [H]; at level 0 their number, where writes are dropped."""
    following = jnp.concatenate([levels[1:], jnp.zeros_like(levels[:1])])
    stage = jnp.arange(levels.shape[0], dtype=jnp.int32)
    place = ((stage * width + levels - 1) * num_actions + actions) * (width + 1) + following
    return jnp.where(levels > 0, place, levels.size * width * num_actions * (width + 1))


@cache
def _update(segments: int | None):
    """update for a number of segments; the same object for the same number."""

    def update(
        state: TrajectoryState,
        policy: Array,
        feedback: TrajectoryFeedback | SegmentsFeedback,
        constants: TrajectoryConstants,
    ) -> TrajectoryState:
        del constants
        horizon, width, num_actions = state.moves.shape[:3]
        size = state.target.shape[0]
        chex.assert_shape([feedback.levels, feedback.actions], (horizon,))
        bounds = segment_bounds(horizon, segments or 1)
        segment = np.repeat(np.arange(len(bounds)), [b - a for a, b in bounds])
        shown: Any = feedback
        totals = shown.total[None] if segments is None else shown.totals
        place = features(feedback.levels, feedback.actions, width, num_actions)
        partner = jnp.where(jnp.asarray(segment[:, None] == segment[None]), place[None], size)
        before = state.target.at[place].get(mode="fill", fill_value=0)
        rest = state.lost.at[place].get(mode="fill", fill_value=0)
        term = totals.astype(jnp.float32)[segment] - rest
        after = before + term
        episodes = state.episodes + 1
        drawn = state.episodes >= state.due
        moves = state.moves.reshape(size).at[place].add(1, mode="drop")
        return state._replace(
            gram=state.gram.at[place[:, None], partner].add(1, mode="drop"),
            target=state.target.at[place].set(after, mode="drop"),
            lost=state.lost.at[place].set((after - before) - term, mode="drop"),
            moves=moves.reshape(state.moves.shape),
            policy=policy.astype(jnp.int32),
            episodes=episodes,
            due=jnp.where(drawn, episodes + episodes // 4, state.due),
        )

    return update
