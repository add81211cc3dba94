"""Conformance: what every learner must do, checked in one call, for the project's learners and for yours.

A learner that passes `check_learner` can be swept: its lanes do not disturb each other, chunks and checkpoints do
not change its numbers, new parameter values do not compile anew, and it sees nothing but the feedback it declares.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.engines import make_runner
from jaxbandit.feedback import KINDS, observe
from jaxbandit.instances import make_instance
from jaxbandit.learners.base import Learner, Problem
from jaxbandit.lookalikes import play_episode, twin_episode, twin_mdps
from jaxbandit.mdp import MDP
from jaxbandit.planning import optimal

Array = Any
NEEDS = ("rank", "optimal_policy")


def check_learner(
    learner: Learner,
    mdp: MDP | None = None,
    *,
    other: Learner | None = None,
    num_episodes: int = 48,
    num_seeds: int = 2,
    seed: int = 0,
    engines: Sequence[str] | None = None,
) -> None:
    """Raises AssertionError, naming the property that is broken, unless the learner keeps the contract.

    Checked of the functions: policies are valid; the state keeps its structure, shapes and dtypes; jit = eager;
    two episodes that show the same and hide different things lead to the same state. Checked on every engine, bit
    for bit: all seeds and parameter values in one call = one lane at a time in chunks; MDPs that the feedback
    cannot tell apart lead to the same states. And: new keys, parameter values and instances cause no new trace,
    and regret is never negative.

    Args:
        learner: with parameters such that something happens in ``num_episodes`` episodes.
        mdp: where to run it; by default an ordered MDP of 3 stages, 2 levels and 2 actions.
        other: the same learner with other parameter values; by default every real scalar times 3/4.
        num_episodes: T.
        num_seeds: seeds run side by side.
        seed: of all random numbers.
        engines: "episodes", "blocks"; by default all that can run the learner.

    Example:
        >>> import jaxbandit as jb
        >>> jb.testing.check_learner(jb.make_learner("uniform"))
        >>> forgetful = jb.make_learner("uniform")._replace(act=lambda state, key: state.num_actions)
        >>> jb.testing.check_learner(forgetful)
        Traceback (most recent call last):
        ...
        AssertionError: learner 'uniform': policy: actions 2..2; accepted: 0..1
    """
    if mdp is None:
        mdp = make_instance("random-ordered", key=jax.random.key(0), horizon=3, width=2, num_actions=2)
    other = _scaled(learner) if other is None else other
    _check_declarations(learner, other)
    _check_functions(learner, mdp, num_episodes, seed)
    available = ("episodes",) if learner.blocks is None else ("episodes", "blocks")
    for engine in available if engines is None else engines:
        _check_engine(engine, learner, other, mdp, num_episodes, num_seeds, seed)


def run_lanes(
    engine: str,
    learners: Sequence[Learner],
    mdps: Sequence[MDP],
    keys: Array,
    num_episodes: int,
    points: Array | None = None,
    chunk_size: int | None = None,
) -> tuple[dict[str, np.ndarray], Any]:
    """Runs learners of one program, each on its own MDP, with the typed keys [groups, seeds].

    Returns the results of the runner and the learners' last states.

    Example:
        >>> import jax, jaxbandit as jb
        >>> mdp = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=3)
        >>> keys = jax.random.split(jax.random.key(0), (1, 4))
        >>> results, state = run_lanes("episodes", [jb.make_learner("oracle")], [mdp], keys, num_episodes=8)
        >>> results["regret"].tolist()
        [[[0.0], [0.0], [0.0], [0.0]]]
    """
    params = {
        name: np.stack([np.asarray(one.params[name]) for one in learners]) for name in learners[0].params
    }
    stacked = jax.tree.map(lambda *x: jnp.stack([jnp.asarray(leaf) for leaf in x]), *mdps)
    points = np.asarray([num_episodes] if points is None else points, np.int64)
    runner = make_runner(
        engine, learners[0]._replace(params=params), stacked, keys, num_episodes, points, chunk_size
    )
    carry = runner.start()
    while runner.episodes_done(carry) < num_episodes:
        carry = runner.step(carry)
    return runner.result(carry), jax.tree.map(np.asarray, carry["state"])


def _require(holds: Any, learner: Learner, broken: str) -> None:
    if not holds:
        raise AssertionError(f"learner {learner.name!r}: {broken}")


def _scaled(learner: Learner) -> Learner:
    """The learner with every finite real scalar among its parameters times 3/4."""

    def scaled(value: Array) -> Array:
        array = np.asarray(value)
        real = np.issubdtype(array.dtype, np.floating) and array.ndim == 0 and np.isfinite(array)
        return (array * 0.75).astype(array.dtype) if real else value

    return learner._replace(params={name: scaled(value) for name, value in learner.params.items()})


def _check_declarations(learner: Learner, other: Learner) -> None:
    accepted = f"; accepted: {', '.join(KINDS)}"
    _require(learner.feedback in KINDS, learner, f"feedback: {learner.feedback!r}{accepted}")
    unknown = set(learner.needs) - set(NEEDS)
    _require(not unknown, learner, f"needs: {sorted(unknown)}; accepted: {', '.join(NEEDS)}")
    for name, value in learner.params.items():
        numeric = np.asarray(value).dtype.kind in "fiu"
        _require(numeric, learner, f"params: {name} = {value!r}; accepted: numbers and arrays of numbers")
    _require(
        learner.rules == other.rules,
        learner,
        "one trace: the learner with other parameter values has other functions; make them once per program "
        "(at module level, or with functools.lru_cache)",
    )


def _check_functions(learner: Learner, mdp: MDP, num_episodes: int, seed: int) -> None:
    """The three functions by themselves, through a few episodes of one run."""
    problem = Problem(
        mdp.horizon,
        mdp.width,
        mdp.num_actions,
        jnp.asarray(num_episodes, jnp.result_type(float)),
        mdp.rank if "rank" in learner.needs else None,
        optimal(mdp)[1] if "optimal_policy" in learner.needs else None,
    )
    params = {name: jnp.asarray(np.asarray(value)) for name, value in learner.params.items()}
    init, act, update = jax.jit(learner.init), jax.jit(learner.act), jax.jit(learner.update)
    key, random = jax.random.key(seed), np.random.default_rng(seed)
    state = init(problem, params)
    _require_close(learner, "init", state, learner.init(problem, params))
    for t in range(8):
        policy = act(state, jax.random.fold_in(key, t))
        _check_policy(learner, mdp, policy)
        episode = play_episode(mdp, np.asarray(policy), random)
        shown = observe(learner.feedback, episode)
        try:
            following = update(state, policy, shown)
        except AttributeError as error:
            message = f"no leak: update asks {learner.feedback} feedback for more than it shows: {error}"
            raise AssertionError(f"learner {learner.name!r}: {message}") from error
        _require_same_form(learner, state, following)
        hidden = observe(learner.feedback, twin_episode(learner.feedback, episode, mdp))
        seen = _differing(following, update(state, policy, hidden))
        told = "no leak: episodes with the same feedback lead to different states"
        _require(seen is None, learner, f"{told}, in {seen}")
        if t < 2:
            _require_close(learner, "act", policy, learner.act(state, jax.random.fold_in(key, t)))
            _require_close(learner, "update", following, learner.update(state, policy, shown))
        state = following


def _check_policy(learner: Learner, mdp: MDP, policy: Array) -> None:
    states, A = (mdp.horizon, mdp.width + 1), mdp.num_actions
    table = np.asarray(policy)
    randomised = np.issubdtype(table.dtype, np.floating)
    shape = (*states, A) if randomised else states
    _require(table.shape == shape, learner, f"policy: {table.dtype} {table.shape}; accepted: {shape}")
    if not randomised:
        low, high = table.min(), table.max()
        _require(low >= 0 and high < A, learner, f"policy: actions {low}..{high}; accepted: 0..{A - 1}")
        return
    sums = table.sum(-1)
    good = (table >= 0).all() and np.abs(sums - 1).max() < 1e-5
    seen = f"probabilities from {table.min():.6g}, sums {sums.min():.6g}..{sums.max():.6g}"
    _require(good, learner, f"policy: {seen}; accepted: probabilities >= 0 that sum to 1")


def _check_engine(
    engine: str, learner: Learner, other: Learner, mdp: MDP, num_episodes: int, num_seeds: int, seed: int
) -> None:
    """All lanes in one call against one lane at a time, traces, regret, and MDPs that look the same."""
    traces: list[None] = []
    learner = _counted(learner, traces)
    pair = [learner, learner._replace(params=other.params)]
    keys = jax.random.split(jax.random.key(seed), (2, num_seeds))
    points = np.arange(1, num_episodes + 1)
    whole = run_lanes(engine, pair, [mdp, mdp], keys, num_episodes, points)
    steps = np.diff(whole[0]["regret"], prepend=0)
    _require((steps >= 0).all(), learner, f"regret: {steps.min()} in an episode on engine {engine!r}")

    # The block engine passes sums alone and compiles for the outcomes that differ, so it gets an MDP of the same outcomes.
    traced = len(traces)
    new = twin_mdps(learner.feedback, mdp) if engine == "episodes" else [_reweighted(mdp)] * 2
    paired = jnp.stack([jax.random.split(jax.random.key(seed + 1), num_seeds)] * 2)
    _, state = run_lanes(engine, pair[1:] * 2, new, paired, num_episodes, points)
    traced = len(traces) - traced
    _require(traced == 0, learner, f"one trace: new keys, parameters and MDPs cause {traced} more on {engine!r}")
    lanes = _lanes_of(engine, learner, state)
    seen = _differing(lanes(0, slice(None)), lanes(1, slice(None)))
    told = "no leak: MDPs that the feedback cannot tell apart lead to different states"
    _require(seen is None, learner, f"{told}, in {seen} on engine {engine!r}")

    chunk = 2 if engine == "blocks" else max(num_episodes // 3, 1)
    for g, s in np.ndindex(2, num_seeds):
        lane = (engine, pair[g : g + 1], [mdp], keys[g : g + 1, s : s + 1], num_episodes, points)
        where = _differing_lane(engine, learner, whole, g, s, run_lanes(*lane, chunk))
        if where is None:
            continue
        alone = _differing_lane(engine, learner, whole, g, s, run_lanes(*lane))
        what = "lanes = loop" if alone is not None else f"chunked = whole (chunks of {chunk})"
        _require(False, learner, f"{what}: parameters {g}, seed {s} differ in {where} on engine {engine!r}")


def _counted(learner: Learner, traces: list[None]) -> Learner:
    """The learner, noting every trace of the functions that only the engines' compiled steps call."""

    def noting(function: Callable) -> Callable:
        def noted(*args):
            traces.append(None)
            return function(*args)

        return noted

    blocks = learner.blocks
    return learner._replace(
        update=noting(learner.update),
        blocks=None if blocks is None else blocks._replace(absorb=noting(blocks.absorb)),
    )


def _reweighted(mdp: MDP) -> MDP:
    """An MDP with the same outcomes of other probabilities."""
    prob = np.sqrt(np.asarray(mdp.prob, np.float64))
    return mdp._replace(prob=(prob / prob.sum(-1, keepdims=True)).astype(np.asarray(mdp.prob).dtype))


def _lanes_of(engine: str, learner: Learner, state: Any) -> Callable[[Any, Any], Any]:
    """lanes(g, s): that part of a runner's state."""
    last = engine == "episodes" and learner.lanes_last
    return lambda g, s: jax.tree.map(lambda x: x[..., g, s] if last else x[g, s], state)


def _differing_lane(engine: str, learner: Learner, whole: tuple, g: int, s: int, single: tuple) -> str | None:
    """Where lane (g, s) of a run differs from a run of that lane alone; None if nowhere."""
    results = {name: value[g, s] for name, value in whole[0].items()}
    alone = {name: value[0, 0] for name, value in single[0].items()}
    here, there = (_lanes_of(engine, learner, run[1]) for run in (whole, single))
    return _differing(results, alone) or _differing(here(g, s), there(0, 0))


def _differing(one: Any, two: Any) -> str | None:
    """The path of the first leaf in which two trees of arrays differ in any bit (nan = nan); None if there is none."""
    for name, a, b in _leaf_pairs(one, two):
        if not np.array_equal(a, b, equal_nan=np.issubdtype(a.dtype, np.floating)):
            return name
    return None


def _leaf_pairs(one: Any, two: Any) -> list[tuple[str, np.ndarray, np.ndarray]]:
    """Name and values of the leaves of two trees of one structure."""
    leaves, others = jax.tree_util.tree_leaves_with_path(one), jax.tree.leaves(two)
    return [
        (jax.tree_util.keystr(path) or "the value", np.asarray(a), np.asarray(b))
        for (path, a), b in zip(leaves, others, strict=True)
    ]


def _require_same_form(learner: Learner, state: Any, following: Any) -> None:
    same = bool(jax.tree.structure(state) == jax.tree.structure(following))  # type: ignore[operator]
    _require(same, learner, "stable state: update changes the structure of the state")
    for name, a, b in _leaf_pairs(state, following):
        seen = f"{a.dtype}{list(a.shape)} becomes {b.dtype}{list(b.shape)}"
        same = (a.shape, a.dtype) == (b.shape, b.dtype)
        _require(same, learner, f"stable state: {name}: {seen} in update")


def _require_close(learner: Learner, name: str, jitted: Any, eager: Any) -> None:
    """Compiled and eager code may round differently, so reals are compared to 1e-5 and everything else exactly."""
    for leaf, a, b in _leaf_pairs(jitted, eager):
        real = np.issubdtype(a.dtype, np.floating)
        same = np.allclose(a, b, rtol=1e-5, atol=1e-5, equal_nan=True) if real else np.array_equal(a, b)
        _require(same, learner, f"jit = eager: {leaf} of {name}")
