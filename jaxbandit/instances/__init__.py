"""Instances by name: prophet, pricing, knapsack, lower bounds, bandits, random MDPs, standard problems; one file a family.

A new one is a file like `prophet`, or a constructor of your own for `register_instance`.
From outside: the names below. May import: the model (`jaxbandit.mdp`) and theory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jaxbandit.instances.bandit import bandit, bandit_random
from jaxbandit.instances.knapsack import knapsack, knapsack_random
from jaxbandit.instances.lower_bounds import hard_general, hard_ordered
from jaxbandit.instances.operations import base_stock, revenue_management, secretary
from jaxbandit.instances.posted_pricing import posted_pricing, posted_pricing_random
from jaxbandit.instances.prophet import prophet, prophet_random, prophet_uniform
from jaxbandit.instances.random import random_general, random_ordered
from jaxbandit.instances.standard import (
    chain,
    combination_lock,
    deep_sea,
    frozen_lake,
    grid_world,
    riverswim,
    six_arms,
)
from jaxbandit.mdp import MDP
from jaxbandit.registry import Registry

__all__ = ["INSTANCES", "make_instance", "register_instance"]

INSTANCES = Registry("instance")

_FAMILIES: dict[str, Callable[..., MDP]] = {
    "prophet-uniform": prophet_uniform,
    "prophet-random": prophet_random,
    "prophet": prophet,
    "posted-pricing": posted_pricing,
    "posted-pricing-random": posted_pricing_random,
    "knapsack": knapsack,
    "knapsack-random": knapsack_random,
    "hard-general": hard_general,
    "hard-ordered": hard_ordered,
    "bandit": bandit,
    "bandit-random": bandit_random,
    "random-general": random_general,
    "random-ordered": random_ordered,
    "riverswim": riverswim,
    "deep-sea": deep_sea,
    "chain": chain,
    "combination-lock": combination_lock,
    "six-arms": six_arms,
    "frozen-lake": frozen_lake,
    "grid-world": grid_world,
    "secretary": secretary,
    "revenue-management": revenue_management,
    "base-stock": base_stock,
}
for _name, _constructor in _FAMILIES.items():
    INSTANCES.register(_name, _constructor)


def make_instance(name: str, **parameters: Any) -> MDP:
    """A registered instance by name; ``jaxbandit.describe(name)`` tells its parameters.

    From your arrays: "prophet", "posted-pricing", "knapsack". The paper's I1: "prophet-uniform".
    Drawn at random: "prophet-random" (the paper's I2), "posted-pricing-random", "knapsack-random",
    "random-general", "random-ordered". Lower bounds: "hard-general", "hard-ordered". K arms: "bandit",
    "bandit-random". Standard problems: "riverswim",
    "deep-sea", "chain", "combination-lock", "six-arms", "frozen-lake", "grid-world", "secretary",
    "revenue-management", "base-stock". Any other model: `jaxbandit.from_arrays`.

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance("prophet-uniform", horizon=15, capacity=2, num_values=5)
        >>> mdp.prob.shape
        (15, 3, 5, 5)
        >>> jb.make_instance("prophet-unifrom", horizon=15, capacity=2, num_values=5)
        Traceback (most recent call last):
        ...
        ValueError: unknown instance 'prophet-unifrom'; did you mean 'prophet-uniform' or 'prophet-random' ...
    """
    return INSTANCES.make(name, **parameters)


def register_instance(name: str, constructor: Callable[..., MDP]) -> Callable[..., MDP]:
    """Makes ``make_instance(name, ...)`` call your constructor.

    Example:
        >>> import jaxbandit as jb
        >>> def coin(horizon):
        ...     return jb.make_instance("prophet-uniform", horizon=horizon, capacity=1, num_values=2)
        >>> _ = jb.register_instance("coin", coin)
        >>> jb.make_instance("coin", horizon=7).horizon
        7
        >>> _ = jb.INSTANCES.constructors.pop("coin")      # only to leave the registry as it was
    """
    return INSTANCES.register(name, constructor)
