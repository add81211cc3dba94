"""Learners by name, each beside its kind; a new one is a public function of a file here that returns a `Learner`.

The simplest are in `simple`; `expref` is the paper's algorithm with its phases and presets; `from_blocks` runs block
learners episode by episode. Your own is a constructor for `register_learner`. Every learner's constructor is a name of
this package, such as ``jaxbandit.learners.ucbvi``. From outside: these and the names below. May import: the contract
(`jaxbandit.learner`), feedback, theory, `specs`, `checks`, `xla`.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from typing import Any

from jaxbandit.learner import BlockForm, Blocks, Learner, Problem
from jaxbandit.learners.from_blocks import from_blocks, one_bit
from jaxbandit.registry import Registry

__all__ = [
    "LEARNERS",
    "BlockForm",
    "Blocks",
    "Learner",
    "Problem",
    "from_blocks",
    "make_learner",
    "one_bit",
    "register_learner",
]

LEARNERS = Registry("learner")
OTHERS = ("from_blocks", "make_phased", "one_bit")
"""Public functions that make a learner of something else than its parameters."""


def _constructors() -> Iterator[Callable[..., Learner]]:
    """Every other public function of a module here that returns a Learner."""
    for each in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{each.name}")
        for function in vars(module).values():
            own = inspect.isfunction(function) and function.__module__ == module.__name__
            makes = own and function.__annotations__.get("return") == "Learner"
            if makes and function.__name__[0] != "_" and function.__name__ not in OTHERS:
                yield function


for _constructor in _constructors():
    LEARNERS.register(_constructor.__name__.replace("_", "-"), _constructor)
    globals()[_constructor.__name__] = _constructor
    __all__ += [_constructor.__name__]  # noqa: PLE0604


def make_learner(name: str, **parameters: Any) -> Learner:
    """A registered learner by name; ``jaxbandit.describe(name)`` tells its parameters.

    Under bandit feedback "expref", "ordered-expref", "expref-shared", "policy-gradient",
    "prophet-bandit", "ucb-policies"; with the trajectory or segments "aggregate-po",
    "trajectory-ts"; under semi-bandit feedback "ucbvi", "ucbvi-doubling", "psrl", "q-learning",
    "prophet-optimism"; for K-armed bandits "ucb1", "kl-ucb", "thompson", "imed", "moss",
    "epsilon-greedy", "exp3", "explore-then-commit", "elimination", "kl-ucb-epochs"; yardsticks "uniform", "oracle", "fixed"; or your own.

    Example:
        >>> import jaxbandit as jb
        >>> jb.make_learner("ucbvi", bonus_scale=0.5).feedback
        'semi-bandit'
    """
    return LEARNERS.make(name, **parameters)


def register_learner(name: str, constructor: Callable[..., Learner]) -> Callable[..., Learner]:
    """Makes ``make_learner(name, ...)`` call your constructor.

    Example:
        >>> import jaxbandit as jb
        >>> def eager():
        ...     return jb.make_learner("ucbvi", bonus_scale=0.05)
        >>> _ = jb.register_learner("eager", eager)
        >>> jb.make_learner("eager").name
        'ucbvi'
        >>> _ = jb.LEARNERS.constructors.pop("eager")      # only to leave the registry as it was
    """
    return LEARNERS.register(name, constructor)
