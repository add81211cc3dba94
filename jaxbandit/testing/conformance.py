"""Conformance: what every learner must do, checked in one call, for the project's learners and for
yours.

A learner that passes `check_learner` can be swept: its lanes do not disturb each other, chunks and
checkpoints do not change its numbers, new parameter values do not compile anew, and it sees nothing
but the feedback it declares.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext

import jax
import numpy as np

from jaxbandit.instances import make_instance
from jaxbandit.learner import Learner
from jaxbandit.mdp import MDP
from jaxbandit.status import spinner
from jaxbandit.testing.functions import check_declarations, check_functions
from jaxbandit.testing.lanes import run_lanes
from jaxbandit.testing.on_engines import check_engine
from jaxbandit.testing.summary import Notes, Summary

__all__ = ["check_learner", "run_lanes"]


def check_learner(
    learner: Learner,
    mdp: MDP | None = None,
    *,
    other: Learner | None = None,
    num_episodes: int = 48,
    num_seeds: int = 2,
    seed: int = 0,
    engines: Sequence[str] | None = None,
    verbose: bool | None = None,
) -> Summary:
    """Raises AssertionError, naming the property that is broken, unless the learner keeps the
    contract; returns a table of what was checked.

    Checked of the functions: what is declared is known; policies are valid, in a long run, too; the
    state keeps its structure, shapes and dtypes; jit = eager; nothing is traced twice; the report's
    names are free; two episodes that show the same and hide different things lead to the same
    state. Checked on every engine, bit for bit: all seeds and parameter values in one call = one
    lane at a time in chunks = in any place of a tile; MDPs that the feedback cannot tell apart lead to the same states. And:
    new keys, parameter values and instances cause no new trace, and regret is never negative.

    Args:
        learner: with parameters such that something happens in ``num_episodes`` episodes.
        mdp: where to run it; by default an ordered MDP of 3 stages, 2 levels and 2 actions.
        other: the same learner with other parameter values; by default every real scalar times 3/4.
        num_episodes: T.
        num_seeds: seeds run side by side.
        seed: of all random numbers.
        engines: "episodes", "blocks"; by default all that can run the learner.
        verbose: print every property as soon as it was checked; by default in terminals.

    Example:
        >>> import jaxbandit as jb
        >>> jb.testing.check_learner(jb.make_learner("uniform"))
        learner 'uniform' keeps the contract
        property                    what was compared ...result
        --------------------------  ...
        declarations                feedback bandit, needs, functions, parameters ...known
        ...
        chunked = whole (episodes)  chunks of 16, and one run ...bit for bit
        all places (episodes)       32 copies of a run side by side ...bit for bit
        >>> greedy = jb.make_learner("uniform")._replace(act=lambda state, key, counts: counts)
        >>> jb.testing.check_learner(greedy)
        Traceback (most recent call last):
        ...
        AssertionError: learner 'uniform': policy: actions 2..2; accepted: 0..1
    """
    if mdp is None:
        mdp = make_instance(
            "random-ordered", key=jax.random.key(0), horizon=3, width=2, num_actions=2
        )
    other = _scaled(learner) if other is None else other
    notes = Notes(str(learner.name), verbose)
    available = ("episodes",) if learner.blocks is None else ("episodes", "blocks")
    with spinner(f"checking learner {notes.learner!r}") if notes.verbose else nullcontext():
        check_declarations(notes, learner, other)
        check_functions(notes, learner, mdp, num_episodes, seed)
        for engine in available if engines is None else engines:
            check_engine(
                notes, engine, learner, other, mdp,
                num_episodes=num_episodes, num_seeds=num_seeds, seed=seed,
            )  # fmt: skip
    return notes.summary()


def _scaled(learner: Learner) -> Learner:
    """The learner with every finite real scalar among its parameters times 3/4, where it takes
    that."""
    params = dict(learner.params)
    for name, value in learner.params.items():
        array = np.asarray(value)
        if array.dtype.kind == "f" and array.ndim == 0 and np.isfinite(array):
            changed = {**params, name: (array * 0.75).astype(array.dtype)}
            try:
                if learner.check is not None:
                    learner.check(changed)
            except ValueError:  # such as a number of phases that must be whole
                continue
            params = changed
    return learner._replace(params=params)
