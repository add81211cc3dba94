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
from jaxbandit.specs import Probability, Values, Whole, takes
from jaxbandit.xla.threefry import single_key


@checks.single_precision
@takes(
    means=Values("K", low=0, high=1),
    values=checks.amounts("M or K M", low=-checks.LARGEST),
    probabilities=Values("K M", low=0),
)
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
    arrays = {"means": means, "values": values, "probabilities": probabilities}
    given = [name for name, array in arrays.items() if array is not None]
    if given not in (["means"], ["values", "probabilities"]):
        raise ValueError(
            f"means: given are {', '.join(given) or 'none'} of means, values and probabilities; "
            "accepted: means alone, or values and probabilities"
        )
    if means is not None:
        p = jnp.asarray(means, jnp.float32)
        mdp = _arms(jnp.stack([1 - p, p], axis=-1), jnp.asarray([[0.0, 1.0]], p.dtype))
        return _named(mdp, means, 1.0)
    checks.distributions("probabilities", probabilities, "arm, outcome")
    if values.shape not in (probabilities.shape, probabilities.shape[1:]):
        raise ValueError(
            f"values: shape {list(values.shape)}; accepted: [M] or [K, M] = {list(probabilities.shape)}, as probabilities"
        )
    low, high = jnp.minimum(jnp.min(values), 0), jnp.maximum(jnp.max(values), 0)
    scale = jnp.where((low < 0) | (high > 1), high - low, 1)
    pays = jnp.atleast_2d(jnp.asarray((values - low) / scale, jnp.float32))
    mdp = _arms(jnp.asarray(probabilities, jnp.float32), pays)
    if not checks.is_concrete(values, probabilities):
        return mdp
    means = np.sum(probabilities * values, axis=1)
    return _named(mdp, means, float(scale), (float(low),) if low < 0 else ())


@checks.single_precision
@takes(num_arms=Whole(1), low=Probability(), high=Probability())
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
    checks.table({"num_arms": num_arms})
    if high < low:
        raise ValueError(f"high: {high!r}; accepted: a number from low = {low:g} to 1")
    return bandit(means=jax.random.uniform(single_key(key), (num_arms,), jnp.float32, low, high))


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
