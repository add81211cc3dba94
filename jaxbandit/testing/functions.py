"""Checks of a learner's functions by themselves, without an engine."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.feedback import observe
from jaxbandit.learner import (
    REQUIRES,
    Learner,
    Problem,
    check_contract,
    check_report,
    make_constants,
)
from jaxbandit.mdp import MDP
from jaxbandit.planning import optimal
from jaxbandit.testing.longrun import first_wrong_policy
from jaxbandit.testing.lookalikes import WORD, play_episode, twin_episode
from jaxbandit.testing.summary import Notes
from jaxbandit.testing.trees import apart, differing, reshaped
from jaxbandit.types import Array
from jaxbandit.xla.compat import x64

EPISODES = 8
"""Episodes that are played on the host, step by step."""
LONG = 2000
"""Episodes of the longer run in which every policy is looked at."""


def check_declarations(notes: Notes, learner: Learner, other: Learner) -> None:
    """The fields of the learner, and that other parameter values are the same program."""
    try:
        check_contract(learner)
    except (ValueError, TypeError) as error:
        # The message names the learner already.
        raise AssertionError(str(error)) from error
    fields = f"feedback {learner.feedback}, requires, functions, parameters"
    notes.holds("declarations", fields, "known")
    if learner.check is not None:
        for one in (learner, other):
            try:
                learner.check(one.params)
            except ValueError as error:
                notes.require(False, f"check: refuses the learner's own parameters: {error}")
        notes.holds("check", "its own parameters, and other values", "accepted")
    notes.require(
        learner.rules == other.rules,
        "one trace: the learner with other parameter values has other functions; make them once per program "
        "(at module level, or with functools.lru_cache)",
    )
    notes.holds("one program", "the functions, and those with other parameter values", "the same")


def problem_of(learner: Learner, mdp: MDP, num_episodes: int, told: tuple[str, ...]) -> Problem:
    """What the learner is told on the host, where T is a Python int."""
    return Problem(
        horizon=mdp.horizon,
        width=mdp.width,
        num_actions=mdp.num_actions,
        num_episodes=num_episodes,
        rank=None if "rank" not in told or mdp.rank is None else np.asarray(mdp.rank),
        optimal_policy=np.asarray(optimal(mdp)[1]) if "optimal_policy" in told else None,
    )


def begin(notes: Notes, learner: Learner, mdp: MDP, num_episodes: int) -> tuple[Any, Any, Callable]:
    """The first state, the constants, and ``init`` as an engine calls it."""

    def start(told: tuple[str, ...]) -> tuple[Any, Any, Callable]:
        problem = problem_of(learner, mdp, num_episodes, told)
        constants = make_constants(learner, problem, learner.params)
        again = make_constants(learner, problem, learner.params)
        changed = differing(constants, again)
        notes.require(changed is None, f"constants: two calls differ, in {changed}")
        real = jnp.result_type(float)
        handed = jax.tree.map(
            jnp.asarray,
            Problem(
                problem.horizon, problem.width, problem.num_actions,
                num_episodes=jnp.asarray(num_episodes, real),
                rank=problem.rank, optimal_policy=problem.optimal_policy,
            ),
        )  # fmt: skip
        given = jax.tree.map(jnp.asarray, constants)

        def init(function: Callable) -> Any:
            return function(handed, given, jax.random.key(0))

        return init(jax.jit(learner.init)), given, init

    try:
        return start(tuple(learner.requires))
    except Exception as error:
        hidden = tuple(field for field in REQUIRES if field not in learner.requires)
        if not hidden:
            raise
        try:
            start(REQUIRES)
        except Exception:
            raise error from None
        notes.require(
            False,
            f"requires: {list(learner.requires)}, but init or constants fail without {' and '.join(hidden)} "
            f"({type(error).__name__}: {str(error).splitlines()[0]}); accepted: requires={REQUIRES}, or fewer",
        )
        raise


def check_functions(notes: Notes, learner: Learner, mdp: MDP, num_episodes: int, seed: int) -> None:
    """init, act and update through a few episodes of one run, then through many."""
    plain = learner.rules
    state, constants, init = begin(notes, learner, mdp, num_episodes)
    told = ", ".join(["sizes", f"T = {num_episodes}", *learner.requires])
    notes.holds("requires", f"init and constants, told {told}", "enough")
    if learner.constants is not None:
        notes.holds("constants", "evaluated twice on the host", "the same")
    _require_close(notes, "init", state, init(learner.init))
    state = _strong(state)

    act, update = traced_once(plain.act, "act"), traced_once(plain.update, "update")
    key, random = jax.random.key(seed), np.random.default_rng(seed)
    hides = False
    for t in range(EPISODES):
        episode_key = jax.random.fold_in(key, t)
        policy = act(state, episode_key, constants)
        check_policy(notes, mdp, policy)
        episode = play_episode(mdp, np.asarray(policy), random)
        shown = observe(learner.feedback, episode, WORD)
        following = _updated(learner, update, state, policy, shown, constants)
        form = reshaped(state, following)
        notes.require(form is None, f"stable state: {form} in update")
        twin = twin_episode(learner.feedback, episode, mdp)
        hides |= differing(twin, episode) is not None
        hidden = observe(learner.feedback, twin, WORD)
        seen = differing(following, update(state, policy, hidden, constants))
        leak = "no leak: episodes with the same feedback lead to different states"
        notes.require(seen is None, f"{leak}, in {seen}")
        if t < 2:
            eager = plain.act(state, episode_key, constants)
            _require_close(notes, "act", policy, eager)
            eager = plain.update(state, policy, shown, constants)
            _require_close(notes, "update", following, eager)
        state = _strong(following)
    notes.holds("stable state", f"structure, shapes and dtypes over {EPISODES} episodes")
    notes.holds("jit = eager", "init, act and update in 2 episodes, to 1e-5")
    notes.holds("one trace", f"act and update over {EPISODES} episodes", "one each")
    twins = "holds" if hides else "all is shown"
    notes.holds("no leak", f"{EPISODES} episodes that show the same and hide other things", twins)

    # A run of its own: what a learner does after the T that it was told is nobody's business.
    long = max(LONG, num_episodes)
    first, given, _ = begin(notes, learner, mdp, long)
    wrong = first_wrong_policy(learner, mdp, _strong(first), given, key, long)
    notes.require(wrong is None, str(wrong))
    notes.holds("policies", f"actions or probabilities of {long} episodes", "valid")
    _check_report(notes, learner, state)


def _check_report(notes: Notes, learner: Learner, state: Any) -> None:
    """Names and shapes of the report; its values are compared on the engines."""
    if learner.report is None:
        return
    shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct(jnp.shape(x), x.dtype), state)
    try:
        found = check_report(learner, shapes)
    except ValueError as error:
        raise AssertionError(str(error)) from error
    with x64():
        _require_close(notes, "report", jax.jit(learner.report)(state), learner.report(state))
    notes.holds("report", ", ".join(found) or "nothing", "names and shapes are free")


def traced_once(function: Callable, name: str) -> Callable:
    """``function`` compiled; a second trace is an AssertionError.

    Example:
        >>> twice = traced_once(lambda x: 2 * x, "twice")
        >>> int(twice(jnp.int32(1))), int(twice(jnp.int32(2)))
        (2, 4)
    """

    def once(*arguments):
        return function(*arguments)

    # chex knows a function by its name and source, which all learners share here.
    once.__name__ = f"{name}{next(_NUMBERS)}"
    return jax.jit(chex.assert_max_traces(once, n=1))


_NUMBERS = itertools.count()


def _strong(tree: Any) -> Any:
    """The tree as engines hold it between chunks: no weak types."""
    return jax.tree.map(lambda x: jnp.asarray(np.asarray(x)), tree)


def _updated(learner: Learner, update: Callable, *arguments: Any) -> Any:
    """update, with an error that says so if it asks the feedback for more."""
    try:
        return update(*arguments)
    except AttributeError as error:
        message = (
            f"no leak: update asks {learner.feedback} feedback for more than it shows: {error}"
        )
        raise AssertionError(f"learner {learner.name!r}: {message}") from error


def check_policy(notes: Notes, mdp: MDP, policy: Array) -> None:
    """Shape, and range or sums, of one policy."""
    states, A = (mdp.horizon, mdp.width + 1), mdp.num_actions
    table = np.asarray(policy)
    randomised = np.issubdtype(table.dtype, np.floating)
    shape = (*states, A) if randomised else states
    notes.require(
        table.shape == shape and table.dtype.kind in "fiu",
        f"policy: {table.dtype} {table.shape}; accepted: {shape}",
    )
    if not randomised:
        low, high = table.min(), table.max()
        notes.require(low >= 0 and high < A, f"policy: actions {low}..{high}; accepted: 0..{A - 1}")
        return
    sums = table.sum(-1)
    good = (table >= 0).all() and (np.abs(sums - 1) < 1e-5).all()
    seen = f"probabilities from {table.min():.6g}, sums {sums.min():.6g}..{sums.max():.6g}"
    notes.require(good, f"policy: {seen}; accepted: probabilities >= 0 that sum to 1")


def _require_close(notes: Notes, name: str, jitted: Any, eager: Any) -> None:
    """Compiled and eager code may round differently, so reals are compared to 1e-5 and everything
    else exactly."""
    leaf = apart(jitted, eager)
    notes.require(leaf is None, f"jit = eager: {leaf} of {name}")
