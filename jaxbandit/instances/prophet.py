"""k-item prophet inequality (Section 3.3 of the paper; the experiments' I1 and I2 of Section 5).

Independent X_1, ..., X_H arrive in this order and at most k of them may be selected. Action a at
stage i is a threshold, the a-th smallest value of the support of X_i: X_i is selected iff it
*exceeds* the threshold (strictly). Level l is the capacity left; a selection pays X_i / (k *
value_scale) and leads to level l - 1.
The larger the threshold, the more likely to stay: the order of Assumption 3.2 is that of the
values.

Capacities above the horizon are accepted: then some of the capacity can never be used.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.instances import checks
from jaxbandit.instances.selection import Support, named, random_support, selection_mdp, support
from jaxbandit.mdp import MDP
from jaxbandit.mdp.labels import threshold_names


@checks.single_precision
def prophet(
    values: Any, probabilities: Any, capacity: int, value_scale: float | None = None
) -> MDP:
    """The prophet problem of a user's own distributions.

    X_i takes ``values[i, m]`` with probability ``probabilities[i, m]``, both [H, A] and in any
    order within a row (actions are numbered by increasing value). If supports differ in size, pad
    the smaller ones by
    repeating the last value with probability 0: the added thresholds do what that value does.

    Args:
        values: numbers >= 0, [H, A].
        probabilities: rows sum to 1, [H, A].
        capacity: k >= 1, the number of values that may be selected.
        value_scale: rewards are X / (k * value_scale); by default 1 if no value exceeds 1, else the
            largest value.

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance(
        ...     "prophet", values=[[0, 4], [1, 3]], probabilities=[[0.5, 0.5], [0, 1]], capacity=1)
        >>> value, policy = jb.optimal(mdp)      # take a 4, else the 3: (4/2 + 3/2) / 4
        >>> float(value), policy[:, 1].tolist()
        (0.875, [0, 0])
    """
    return _named_mdp(
        support(values, probabilities, value_scale), checks.whole("capacity", capacity)
    )


def prophet_uniform(horizon: int, capacity: int, num_values: int) -> MDP:
    """I1 of the experiments: every X_i is uniform on {0, 1/(A-1), 2/(A-1), ..., 1}.

    Args:
        horizon: H, the number of stages.
        capacity: k, how many values may be taken.
        num_values: A >= 2, the values that a stage may offer; each is a threshold, too.

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance("prophet-uniform", horizon=15, capacity=2, num_values=5)
        >>> mdp.reward[0, 2, 0].tolist()         # action 0 selects all but the value 0, and pays X / k
        [0.0, 0.125, 0.25, 0.375, 0.5]
    """
    shape = (checks.whole("horizon", horizon), checks.whole("num_values", num_values, at_least=2))
    checks.table(("horizon", shape[0]), ("num_values", shape[1]), ("num_values", shape[1]))
    values = np.broadcast_to(np.linspace(0, 1, shape[1]), shape)
    return prophet(values, np.full(shape, 1 / shape[1]), capacity)


@checks.single_precision
def prophet_random(key: Any, horizon: int, capacity: int, num_values: int) -> MDP:
    """I2 of the experiments: A values per stage uniform on [0, 1], probabilities uniform on the
    simplex.

    Args:
        key: a typed key, as jax.random.key(0) gives it; the instance is drawn from it.
        horizon: H, the number of stages.
        capacity: k, how many values may be taken.
        num_values: A, the values that a stage may offer; each is a threshold, too.

    Example:
        >>> import jax, jaxbandit as jb
        >>> keys = jax.random.split(jax.random.key(1), 10)
        >>> sizes = dict(horizon=15, capacity=2, num_values=5)
        >>> draw = lambda key: jb.make_instance("prophet-random", key=key, **sizes)
        >>> jax.vmap(draw)(keys).prob.shape      # ten instances, stacked
        (10, 15, 3, 5, 5)
    """
    return _named_mdp(random_support(key, horizon, num_values), checks.whole("capacity", capacity))


def _named_mdp(x: Support, capacity: int) -> MDP:
    return named(_threshold_mdp(x, capacity), x, capacity, threshold_names)


@partial(jax.jit, static_argnames="capacity")
def _threshold_mdp(x: Support, capacity: int) -> MDP:
    exceeds = x.values[:, None, :] > x.values[:, :, None]
    pay = jnp.broadcast_to(x.values[:, None, :], exceeds.shape)
    return selection_mdp(x, exceeds, pay, capacity)
