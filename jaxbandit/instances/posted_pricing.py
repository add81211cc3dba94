"""Sequential posted pricing (Section 3.3 of the paper).

H customers with independent valuations X_1, ..., X_H arrive in this order; at most k of them can be
served. Action a at stage i is a price, the a-th smallest value of the support of X_i: the customer
buys iff X_i >= price, and the reward is the price / (k * value_scale). Level l is the capacity
left. The higher the price, the more likely to stay.

There is no "do not sell" action: the highest price still sells when X_i takes its largest value.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from jaxbandit.instances import checks
from jaxbandit.instances.selection import Support, named, random_support, selection_mdp, support
from jaxbandit.mdp import MDP
from jaxbandit.mdp.labels import value_names


@checks.single_precision
def posted_pricing(
    values: Any, probabilities: Any, capacity: int, value_scale: float | None = None
) -> MDP:
    """The pricing problem of a user's own valuations.

    Customer i has valuation ``values[i, m]`` with probability ``probabilities[i, m]``, both [H, A],
    in any order within a row. If supports differ in size, pad the smaller ones by repeating the
    last value with probability 0.

    Args:
        values: valuations, which are also the prices, >= 0, [H, A].
        probabilities: rows sum to 1, [H, A].
        capacity: k >= 1, the number of customers that can be served.
        value_scale: rewards are price / (k * value_scale); by default 1 if no value exceeds 1, else
            the largest value.

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance("posted-pricing", values=[[2, 5]], probabilities=[[0.5, 0.5]], capacity=1)
        >>> [round(float(jb.evaluate(mdp, [[0, a]])), 4) for a in (0, 1)]   # 2 surely, or 5 half the time
        [0.4, 0.5]
    """
    return _named_mdp(
        support(values, probabilities, value_scale), checks.whole("capacity", capacity)
    )


@checks.single_precision
def posted_pricing_random(key: Any, horizon: int, capacity: int, num_values: int) -> MDP:
    """Valuations uniform on [0, 1], their probabilities uniform on the simplex (as I2 of the
    prophets).

    Args:
        key: a typed key, as jax.random.key(0) gives it; the instance is drawn from it.
        horizon: H, the number of customers.
        capacity: k, the number of items for sale.
        num_values: A, the valuations that a customer may have; these are the prices, too.

    Example:
        >>> import jax, jaxbandit as jb
        >>> key = jax.random.key(0)
        >>> jb.make_instance("posted-pricing-random", key=key, horizon=6, capacity=2, num_values=3).prob.shape
        (6, 3, 3, 3)
    """
    return _named_mdp(random_support(key, horizon, num_values), checks.whole("capacity", capacity))


def _named_mdp(x: Support, capacity: int) -> MDP:
    return named(_price_mdp(x, capacity), x, capacity, partial(value_names, before="price "))


@partial(jax.jit, static_argnames="capacity")
def _price_mdp(x: Support, capacity: int) -> MDP:
    buys = x.values[:, None, :] >= x.values[:, :, None]
    pay = jnp.broadcast_to(x.values[:, :, None], buys.shape)
    return selection_mdp(x, buys, pay, capacity)
