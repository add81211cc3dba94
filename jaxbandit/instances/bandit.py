"""K-armed bandits: one stage, one level, an action for every arm (Robbins 1952).

Arm a pays ``values[a, m]`` with probability ``probabilities[a, m]``; a Bernoulli arm pays 1 with probability
``means[a]``, else 0. As an MDP: H = 1, k = 1, A = K, and no order of the arms is known.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.instances import checks
from jaxbandit.mdp import MDP
from jaxbandit.mdp.labels import Labels, remember, short


@checks.single_precision
def bandit(means: Any = None, values: Any = None, probabilities: Any = None) -> MDP:
    """A K-armed bandit: Bernoulli arms with these means, or arms with any finite number of values.

    Learners for it: "ucb1", "kl-ucb", "thompson", "imed", "moss", "epsilon-greedy", "exp3", and in long blocks
    "explore-then-commit", "elimination", "kl-ucb-epochs". All learners for MDPs run on it, too.

    Args:
        means: [K], each in [0, 1]: Bernoulli arms. Or
        values: rewards, [M] for all arms or [K, M]. Values above 1 are divided by the largest; if there are negative
            ones all are mapped to [0, 1], and planning and `jaxbandit.in_units` answer in your numbers. And
        probabilities: [K, M], rows sum to 1.

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance("bandit", means=[0.1, 0.5, 0.9])
        >>> mdp, float(jb.optimal(mdp)[0])
        (MDP(H=1, k=1, A=3, general), 0.8999999761581421)
        >>> dice = jb.make_instance("bandit", values=range(1, 7), probabilities=[[1 / 6] * 6, [0, 0, 0.5, 0.5, 0, 0]])
        >>> dice.reward.shape
        (1, 2, 2, 6)
    """
    if (means is None) == (probabilities is None) or (values is None) != (probabilities is None):
        given = [
            n
            for n, x in (("means", means), ("values", values), ("probabilities", probabilities))
            if x is not None
        ]
        raise ValueError(
            f"means: given are {', '.join(given) or 'none'} of means, values and probabilities; "
            "accepted: means alone, or values and probabilities"
        )
    if means is not None:
        table = checks.matrix("means", _row("means", means, "[K]"), "[K]")
        checks.nonnegative("means", table)
        _at_most_one("means", table)
        p = jnp.asarray(table, checks.float_dtype())[0]
        return _named(
            _arms(jnp.stack([1 - p, p], axis=-1), jnp.asarray([[0.0, 1.0]], p.dtype)), table[0], 1.0
        )
    chances = checks.matrix("probabilities", probabilities, "[K, M]")
    checks.distributions("probabilities", chances)
    pays = values if np.ndim(values) == 2 else _row("values", values, "[M] or [K, M]")
    pays = checks.matrix("values", pays, "[M] or [K, M]")
    if pays.shape not in (chances.shape, (1, chances.shape[1])):
        raise ValueError(
            f"values: shape {list(np.shape(values))}; accepted: [M] or [K, M] = {list(chances.shape)}, as probabilities"
        )
    checks.magnitudes("values", pays)
    low, high = jnp.minimum(jnp.min(pays), 0), jnp.maximum(jnp.max(pays), 0)
    scale = jnp.where((low < 0) | (high > 1), high - low, 1)
    dtype = checks.float_dtype()
    mdp = _arms(jnp.asarray(chances, dtype), jnp.asarray((pays - low) / scale, dtype))
    if not checks.is_concrete(pays, chances):
        return mdp
    means = np.sum(np.asarray(chances) * np.asarray(pays), axis=1)
    return _named(mdp, means, float(scale), (float(low),) if low < 0 else ())


@checks.single_precision
def bandit_random(key: Any, num_arms: int, low: float = 0.0, high: float = 1.0) -> MDP:
    """A Bernoulli bandit whose means are drawn uniformly from [low, high].

    Args:
        key: a typed key, as jax.random.key(0) gives it; the means are drawn from it.
        num_arms: K >= 1.
        low: of the means, in [0, 1].
        high: of the means, at least ``low``, at most 1.

    Example:
        >>> import jax, jaxbandit as jb
        >>> many = jb.family("bandit-random", count=8, key=jax.random.key(0), num_arms=10)
        >>> many.prob.shape
        (8, 1, 2, 10, 2)
    """
    key = checks.single_key(key)
    size = checks.whole("num_arms", num_arms)
    checks.table(("num_arms", size))
    low = checks.number("low", low, low=0, high=1)
    high = checks.number("high", high, low=low, high=1)
    return bandit(means=jax.random.uniform(key, (size,), checks.float_dtype(), low, high))


def _arms(chances: Any, pays: Any) -> MDP:
    """The MDP of outcomes [K, M] and rewards [K or 1, M]; at level 0 nothing is paid."""
    there = jnp.asarray([0, 1], chances.dtype)[None, :, None, None]
    shape = (1, 2, *chances.shape)
    return MDP(
        prob=jnp.broadcast_to(chances, shape),
        reward=there * jnp.broadcast_to(pays, shape),
        next_level=jnp.zeros(shape, jnp.int32),
        rank=None,
        start=jnp.int32(1),
    )


def _named(mdp: MDP, means: Any, scale: float, offsets: tuple[float, ...] = ()) -> MDP:
    """The MDP with arms as names; while it is traced, without."""
    if not checks.is_concrete(means, mdp.prob):
        return mdp
    arms = tuple(f"arm {a} ({short(float(mean))})" for a, mean in enumerate(np.asarray(means)))
    return remember(mdp, Labels(scale=scale, actions=(arms,), offsets=offsets))


def _row(name: str, given: Any, axes: str) -> Any:
    """``given`` [n] as [1, n]."""
    if not hasattr(given, "dtype"):
        given = checks.real_array(
            name, list(given) if isinstance(given, range) else given, f"numbers of shape {axes}"
        )
    if np.ndim(given) != 1:
        raise ValueError(
            f"{name}: shape {list(np.shape(given))}; accepted: numbers of shape {axes}"
        )
    return given[None]


def _at_most_one(name: str, table: Any) -> None:
    if checks.is_concrete(table) and (bad := np.argwhere(np.asarray(table) > 1)).size:
        raise ValueError(
            f"{name}: {table[tuple(bad[0])]} at {bad[0, 1]}; accepted: numbers in [0, 1]"
        )
