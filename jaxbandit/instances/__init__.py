"""Instances by name: prophet, pricing, knapsack, lower bounds, bandits, random MDPs, standard problems; families of one kind in one file.

A new one is a public function of a file here that returns an MDP, or a constructor of your own for `register_instance`.
From outside: the names below. May import: the model (`jaxbandit.mdp`), planning and theory.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from typing import Any

from jaxbandit.mdp import MDP
from jaxbandit.registry import Registry

__all__ = ["INSTANCES", "make_instance", "register_instance"]

INSTANCES = Registry("instance")


def _families() -> Iterator[tuple[str, Callable[..., MDP]]]:
    """Every public function of a family's module that returns an MDP, by its name."""
    for each in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{each.name}")
        for name, function in vars(module).items():
            own = inspect.isfunction(function) and function.__module__ == module.__name__
            if own and name[0] != "_" and function.__annotations__.get("return") == "MDP":
                yield name.replace("_", "-"), function


for _name, _constructor in _families():
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
