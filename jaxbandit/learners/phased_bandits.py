"""Learners for K-armed bandits that play an arm many times in a row: explore-then-commit, elimination, KL-UCB in epochs.

They need nothing but the sums of their blocks, so the block engine runs them to T = 10^13. Ties go to the first arm.

    explore-then-commit   Every arm m times, then the arm of the largest mean until T.
    elimination           Auer and Ortner 2010 ("UCB revisited"). In phase r = 0, 1, ..., floor(log2(T / e) / 2) every
                          arm that is left is played until it has n = ceil(2 L 4^r) plays, L = ln(T 4^-r), and left out
                          if its mean + sqrt(L / (2 n)) is below some other arm's mean - sqrt(L / (2 n)). The last arm,
                          or after the last phase the arm of the largest mean, is played until T.
    kl-ucb-epochs         The arm of the largest index of KL-UCB is played ceil(g n) times if it has n plays, once if
                          it has none: about K ln T / ln(1 + g) blocks instead of T decisions.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import chex
import jax.numpy as jnp
import numpy as np

from jaxbandit.learner import BlockForm, Blocks, Learner, Problem
from jaxbandit.learners.bandits import require_bandit, upper_bound
from jaxbandit.learners.from_blocks import from_blocks
from jaxbandit.specs import Optional, Real, Whole, as_params, takes
from jaxbandit.types import Array

MOST_PHASES = 27
"""4^26 is more than any number of episodes that float64 counts."""


class Sums(NamedTuple):
    """What the arms have paid, and which are left."""

    plays: Array
    """int [K]."""
    total: Array
    """float [K]."""
    active: Array
    """bool [K]: arms that are still explored."""
    phase: Array
    """int32 []."""


class Schedule(NamedTuple):
    """How often every active arm has been played after each of R phases; then the best one is played for ever."""

    plays: Array
    """int [R + 1]; a last entry of 0 stands for "commit"."""
    width: Array
    """float [R + 1]: arms whose mean is more than twice this below the largest are left out."""
    forever: Array
    """int []: T + 1, more episodes than there are."""


class Epochs(NamedTuple):
    """The numbers of kl-ucb-epochs."""

    growth: Array
    """float []: g."""
    scale: Array
    """float []: c."""
    forever: Array
    """int []: T + 1, more episodes than there are."""


@takes(plays=Optional(Whole(1)))
def explore_then_commit(plays: int | None = None) -> Learner:
    """Explore-then-commit for K-armed bandits: every arm m times, then the best of them.

    Args:
        plays: m >= 1; by default ceil((T / K)^(2/3) (ln T)^(1/3)), which needs no knowledge of the gaps.

    Example:
        >>> explore_then_commit(100)
        Learner('explore-then-commit', bandit, plays 100)
    """
    form = BlockForm(init, next_arms, absorb_arms, constants=commit_schedule)
    fields = as_params(explore_then_commit.specs, np.float64, plays=plays)  # type: ignore[attr-defined]
    return from_blocks(form, name="explore-then-commit", **fields)


@takes(plays_scale=Real(0, above=True))
def elimination(plays_scale: float = 1.0) -> Learner:
    """Elimination in phases for K-armed bandits (UCB-Improved of Auer and Ortner 2010).

    Args:
        plays_scale: > 0, on the number of plays n of a phase; 1 in the reference.

    Example:
        >>> elimination()
        Learner('elimination', bandit, plays_scale 1)
    """
    form = BlockForm(init, next_arms, absorb_arms, constants=elimination_schedule)
    fields = as_params(elimination.specs, np.float64, plays_scale=plays_scale)  # type: ignore[attr-defined]
    return from_blocks(form, name="elimination", **fields)


@takes(growth=Real(0, above=True), bonus_scale=Real(0, above=True))
def kl_ucb_epochs(growth: float = 0.2, bonus_scale: float = 1.0) -> Learner:
    """KL-UCB in epochs for K-armed bandits: a chosen arm with n plays is played ceil(g n) times more.

    Args:
        growth: g > 0. The smaller, the nearer to KL-UCB and the more blocks.
        bonus_scale: c > 0 in n kl(m, q) <= c ln t.

    Example:
        >>> kl_ucb_epochs()
        Learner('kl-ucb-epochs', bandit, growth 0.2, bonus_scale 1)
    """
    form = BlockForm(init, next_epoch, absorb_epoch, constants=epoch_constants)
    values = {"growth": growth, "bonus_scale": bonus_scale}
    fields = as_params(kl_ucb_epochs.specs, np.float64, **values)  # type: ignore[attr-defined]
    return from_blocks(form, name="kl-ucb-epochs", **fields)


def commit_schedule(problem: Problem, params: Any) -> Schedule:
    """One phase of m plays."""
    require_bandit("explore-then-commit", problem)
    T, K = problem.num_episodes, problem.num_actions
    plays = (T / K) ** (2 / 3) * math.log(max(T, 2)) ** (1 / 3)
    if not np.isnan(params["plays"]):
        plays = float(params["plays"])
    return _schedule(T, [min(math.ceil(plays), T + 1)], [np.inf])


def elimination_schedule(problem: Problem, params: Any) -> Schedule:
    """Auer and Ortner's phases."""
    require_bandit("elimination", problem)
    T, scale = problem.num_episodes, float(params["plays_scale"])
    phases = max(math.floor(math.log2(T / math.e) / 2), 0) + 1 if T > 2 else 1
    logs = [math.log(max(T / 4**r, 2)) for r in range(phases)]
    plays = [min(max(math.ceil(2 * scale * log * 4**r), 1), T + 1) for r, log in enumerate(logs)]
    widths = [math.sqrt(log / (2 * n)) for log, n in zip(logs, plays, strict=True)]
    return _schedule(T, plays, widths)


def _schedule(num_episodes: int, plays: list[int], widths: list[float]) -> Schedule:
    padding = (0, MOST_PHASES + 1 - len(plays))
    return Schedule(np.pad(plays, padding), np.pad(widths, padding), np.int64(num_episodes + 1))


def epoch_constants(problem: Problem, params: Any) -> Epochs:
    """g and c."""
    require_bandit("kl-ucb-epochs", problem)
    numbers = np.float64(params["growth"]), np.float64(params["bonus_scale"])
    return Epochs(*numbers, np.int64(problem.num_episodes + 1))


def init(problem: Problem, constants: Any, key: Array) -> Sums:
    """No arm was played; all are active."""
    del key
    K = problem.num_actions
    whole_number = constants[-1].dtype  # int64 on the block engine, int32 on the other
    real = constants[1].dtype
    return Sums(jnp.zeros(K, whole_number), jnp.zeros(K, real), jnp.ones(K, bool), jnp.int32(0))


def next_arms(state: Sums, constants: Schedule) -> Blocks:
    """Every active arm until it has the plays of its phase; or the arm of the largest mean for ever."""
    last = constants.plays.size - 1
    wanted = constants.plays[jnp.minimum(state.phase, last)]
    alone = jnp.sum(state.active) == 1
    commit = (wanted == 0) | alone
    more = jnp.where(state.active, jnp.maximum(wanted - state.plays, 0), 0)
    seen = state.active & (state.plays > 0)
    best = jnp.argmax(jnp.where(seen, _means(state), -jnp.inf)).astype(jnp.int32)
    here = jnp.arange(state.plays.size, dtype=jnp.int32) == best
    forever = jnp.where(here, constants.forever, 0)
    return _arms(jnp.where(commit, forever, more), constants.width.dtype)


def absorb_arms(state: Sums, episodes: Array, totals: Array, constants: Schedule) -> Sums:
    """Adds the sums and leaves out the arms that are too far below the best."""
    state = absorb_epoch(state, episodes, totals, constants)
    mean = _means(state)
    largest = jnp.max(jnp.where(state.active, mean, -jnp.inf))
    width = constants.width[jnp.minimum(state.phase, constants.width.size - 1)]
    return state._replace(
        active=state.active & (mean + width >= largest - width), phase=state.phase + 1
    )


def next_epoch(state: Sums, constants: Epochs) -> Blocks:
    """The arm of the largest index, ceil(g n) times."""
    real = state.total.dtype
    n = jnp.maximum(state.plays, 1).astype(real)
    log_t = jnp.log(jnp.maximum(jnp.sum(state.plays), 1).astype(real))
    index = upper_bound(state.total / n, constants.scale * log_t / n)
    arm = jnp.argmax(jnp.where(state.plays == 0, jnp.inf, index)).astype(jnp.int32)
    here = jnp.arange(state.plays.size, dtype=jnp.int32) == arm
    plays = jnp.ceil(constants.growth * state.plays.astype(real))
    plays = jnp.clip(plays, 1, constants.forever.astype(real))
    return _arms(jnp.where(here, plays, 0).astype(state.plays.dtype), real)


def _means(state: Sums) -> Array:
    return state.total / jnp.maximum(state.plays, 1).astype(state.total.dtype)


def absorb_epoch(state: Sums, episodes: Array, totals: Array, constants: Any) -> Sums:
    """Adds the sums."""
    del constants
    chex.assert_shape([episodes, totals], state.plays.shape)
    return state._replace(
        plays=state.plays + episodes.astype(state.plays.dtype),
        total=state.total + totals.astype(state.total.dtype),
    )


def _arms(episodes: Array, real: Any) -> Blocks:
    """A block with one arm for each of the K, played ``episodes`` [K] times."""
    K = episodes.size
    rows = jnp.broadcast_to(jnp.eye(K, dtype=real)[:, None], (K, 2, K))
    return Blocks(policy=rows[:1], stage=jnp.int32(0), rows=rows, episodes=episodes)
