"""Conformance of learners, for the project's own and for yours: what every learner must do, checked in one call.

A learner that passes `check_learner` can be swept: its lanes do not disturb each other, chunks and checkpoints do not
change its numbers, and new parameter values do not compile anew. That it sees nothing but its feedback needs no check:
``update`` is given a tuple with the declared fields and nothing else. `LearnerTests` is a test case of chex for test
suites; `run_lanes` runs a few lanes on an engine.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.engines import make_runner
from jaxbandit.engines.runner import Runner
from jaxbandit.errors import LearnerError
from jaxbandit.feedback import Trajectory, observe
from jaxbandit.instances import make_instance
from jaxbandit.learner import (
    REQUIRES,
    Learner,
    Problem,
    check_contract,
    check_report,
    make_constants,
)
from jaxbandit.learner.fitting import check_policy
from jaxbandit.mdp import MDP
from jaxbandit.planning import optimal, sample_episode
from jaxbandit.status import spinner
from jaxbandit.tabular import Table
from jaxbandit.types import Array
from jaxbandit.xla.compat import x64
from jaxbandit.xla.programs import PROGRAMS, Lowered

__all__ = ["LearnerTests", "Summary", "check_learner", "run_lanes"]

EPISODES = 8
"""Episodes that are played on the host, step by step."""
LONG = 2000
"""Episodes of a longer run in which every policy is checked."""
COPIES = 32
"""Runs side by side, at least: as many as most tiles have places on a CPU, on either engine."""
COIN = np.uint32(2**31)
"""The random bits of feedback that draws."""


HEAD = ("property", "what was compared", "result")


class Property(NamedTuple):
    """One row of the summary."""

    name: str
    """What must hold, such as "jit = eager"."""
    compared: str
    """What was looked at."""
    result: str
    """What was seen: "holds", or why it was not tried."""


@dataclass(frozen=True)
class Summary:
    """The properties that a learner has shown; prints as a table.

    Example:
        >>> Summary("mine", (Property("jit = eager", "act in 2 episodes", "holds"),))
        learner 'mine' keeps the contract
        property     what was compared  result
        -----------  -----------------  ------
        jit = eager  act in 2 episodes  holds
    """

    learner: str
    properties: tuple[Property, ...]

    def __repr__(self) -> str:
        """The table as text."""
        return str(self.table)

    @property
    def table(self) -> Table:
        """A row per property."""
        title = f"learner {self.learner!r} keeps the contract"
        return Table(HEAD, self.properties, rule=True, title=title)

    def _repr_html_(self) -> str:
        return self.table.to("html")


class Notes:
    """Collects what holds, printing it if asked to, and raises what does not."""

    def __init__(self, learner: str, verbose: bool | None = False):
        """Of the learner called ``learner``; ``verbose`` prints every line, None in terminals."""
        self.learner = learner
        self.verbose = sys.stderr.isatty() if verbose is None else verbose
        self.properties: list[Property] = []

    def holds(self, name: str, compared: str, result: str = "holds") -> None:
        """Notes a property that was seen to hold."""
        self.properties.append(Property(name, compared, result))
        if self.verbose:
            line = f"{name}: {compared}: {result}"
            # in terminals a clock stands at the beginning of the line
            print(f"\r{line:50}" if sys.stderr.isatty() else line, file=sys.stderr, flush=True)

    def require(self, holds: Any, broken: str) -> None:
        """Raises AssertionError, naming the learner, unless ``holds``."""
        if not holds:
            raise AssertionError(f"learner {self.learner!r}: {broken}")

    def summary(self) -> Summary:
        """All that was noted."""
        return Summary(self.learner, tuple(self.properties))


def run_lanes(
    engine: str,
    learners: Sequence[Learner],
    mdps: Sequence[MDP],
    keys: Array,
    num_episodes: int,
    points: Array | None = None,
    chunk_size: int | None = None,
    platform: str | None = None,
    functions: Mapping[str, Lowered] | None = None,
) -> tuple[dict[str, np.ndarray], Any]:
    """Runs learners of one program, each on its own MDP, with the typed keys [groups, seeds].

    Returns the results of the runner and the learners' last states: leaves [groups, seeds, ...], or [..., groups, seeds]
    where the engine has lanes last.

    Example:
        >>> import jax, jaxbandit as jb
        >>> mdp = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=3)
        >>> keys = jax.random.split(jax.random.key(0), (1, 4))
        >>> results, state = run_lanes("episodes", [jb.make_learner("oracle")], [mdp], keys, num_episodes=8)
        >>> results["regret"].tolist()
        [[[0.0], [0.0], [0.0], [0.0]]]
    """
    how = {"chunk_size": chunk_size, "platform": platform, "functions": functions}
    runner = make_lane_runner(engine, learners, mdps, keys, num_episodes, points, **how)
    carry = runner.start()
    while runner.episodes_done(carry) < num_episodes:
        carry = runner.step(carry)
    return runner.result(carry), last_states(runner, carry)


def make_lane_runner(
    engine: str,
    learners: Sequence[Learner],
    mdps: Sequence[MDP],
    keys: Array,
    num_episodes: int,
    points: Array | None = None,
    **how: Any,
) -> Runner:
    """The runner of `run_lanes`."""
    params = {
        name: np.stack([np.asarray(one.params[name]) for one in learners])
        for name in learners[0].params
    }
    stacked = jax.tree.map(lambda *x: np.stack([np.asarray(leaf) for leaf in x]), *mdps)
    points = np.asarray([num_episodes] if points is None else points, np.int64)
    made = learners[0]._replace(params=params)
    return make_runner(engine, made, stacked, keys, num_episodes, points, **how)


def play_episode(mdp: MDP, policy: np.ndarray, random: np.random.Generator) -> Trajectory:
    """One episode of a policy, int [H, k+1] or float [H, k+1, A], simulated on the host.

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance("hard-general", theta=[1, 0], num_actions=2, gap=0.25)
        >>> play_episode(mdp, np.zeros((2, 3), int), np.random.default_rng(0)).actions.tolist()
        [0, 0]
    """
    levels, actions, _, rewards, next_levels = sample_episode(
        mdp, policy, random.random((mdp.horizon, 2))
    )
    whole = (jnp.asarray(x, jnp.int32) for x in (levels, actions, next_levels))
    visited, done, following = whole
    return Trajectory(visited, done, jnp.asarray(rewards, jnp.result_type(float)), following)


def last_states(runner: Runner, carry: Any) -> Any:
    """The learners' states in a carry, as `run_lanes` gives them.

    Example:
        >>> import jax, jaxbandit as jb
        >>> mdp = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=3)
        >>> stacked = jax.tree.map(lambda x: np.asarray(x)[None], mdp)
        >>> learner = jb.make_learner("ucbvi", bonus_scale=1.0)
        >>> learner = learner._replace(params={"bonus_scale": np.ones(1, np.float32)})
        >>> keys = jax.random.split(jax.random.key(0), (1, 4))
        >>> runner = make_runner("episodes", learner, stacked, keys, 8, np.asarray([8]))
        >>> last_states(runner, runner.start()).policy.shape      # groups, seeds, H, k+1
        (1, 4, 2, 2)
    """
    place = np.argsort(np.concatenate(runner.lanes_of_tiles()))
    used = [tile.used for tile in runner.tiles]

    def joined(*leaves: Any) -> np.ndarray:
        first = [np.asarray(x)[:n] for x, n in zip(leaves, used, strict=True)]
        lanes = np.concatenate(first)[place]
        return lanes.reshape(runner.groups, runner.seeds, *lanes.shape[1:])

    return jax.tree.map(joined, *(each["state"] for each in carry["tiles"]))


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
    names are free. Checked on every engine, bit for bit: a lane in any place of a tile, in chunks, beside other seeds and
    parameter values = the lane alone in one go. And: new keys, parameter values and instances
    compile nothing, and regret is never negative.

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
        declarations                feedback bandit, requires, functions, parameters ...known
        ...
        chunked = whole (episodes)  chunks of 16, and one run ...bit for bit
        all places (episodes)       32 runs side by side ...bit for bit
        ...
        >>> greedy = jb.make_learner("uniform")._replace(act=lambda state, key, counts: counts)
        >>> jb.testing.check_learner(greedy)
        Traceback (most recent call last):
        ...
        AssertionError: learner 'uniform', episode 1, stage 1, level 1: action 2; accepted: 0..1
    """
    if mdp is None:
        mdp = make_instance(
            "random-ordered", key=jax.random.key(0), horizon=3, width=2, num_actions=2
        )
    other = _scaled(learner) if other is None else other
    notes = Notes(str(learner.name), verbose)
    available = ("episodes",) if learner.blocks is None else ("episodes", "blocks")
    with spinner(f"checking learner {notes.learner!r}") if notes.verbose else nullcontext():
        _check_declarations(notes, learner, other)
        _check_functions(notes, learner, mdp, num_episodes, seed)
        for engine in available if engines is None else engines:
            how = {"num_episodes": num_episodes, "num_seeds": num_seeds, "seed": seed}
            _check_engine(notes, engine, learner, other, mdp, **how)
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


def _check_declarations(notes: Notes, learner: Learner, other: Learner) -> None:
    try:
        check_contract(learner)
    except (ValueError, TypeError) as error:
        raise AssertionError(str(error)) from error  # the message names the learner already
    fields = f"feedback {learner.feedback}, requires, functions, parameters"
    notes.holds("declarations", fields, "known")
    if learner.check is not None:
        for one in (learner, other):
            try:
                learner.check(one.params)
            except ValueError as error:
                notes.require(False, f"check: refuses the learner's own parameters: {error}")
        notes.holds("check", "its own parameters, and other values", "accepted")


def begin(notes: Notes, learner: Learner, mdp: MDP, num_episodes: int) -> tuple[Any, Any, Callable]:
    """The first state, the constants, and ``init`` as an engine calls it."""

    def start(given: tuple[str, ...]) -> tuple[Any, Any, Callable]:
        problem = Problem(
            horizon=mdp.horizon,
            width=mdp.width,
            num_actions=mdp.num_actions,
            num_episodes=num_episodes,
            rank=None if "rank" not in given or mdp.rank is None else np.asarray(mdp.rank),
            optimal_policy=np.asarray(optimal(mdp)[1]) if "optimal_policy" in given else None,
        )
        constants = make_constants(learner, problem, learner.params)
        again = make_constants(learner, problem, learner.params)
        changed = differing(constants, again)
        notes.require(changed is None, f"constants: two calls differ, in {changed}")
        known = jax.tree.map(jnp.asarray, (problem.rank, problem.optimal_policy, constants))
        traced = Problem(
            *(problem.horizon, problem.width, problem.num_actions),
            num_episodes=jnp.asarray(num_episodes, jnp.result_type(float)),
            rank=known[0],
            optimal_policy=known[1],
        )

        def init(function: Callable) -> Any:
            return function(traced, known[2], jax.random.key(0))

        return init(jax.jit(learner.init)), known[2], init

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


def _check_functions(
    notes: Notes, learner: Learner, mdp: MDP, num_episodes: int, seed: int
) -> None:
    """init, act and update through a few episodes on the host."""
    state, constants, init = begin(notes, learner, mdp, num_episodes)
    given = ", ".join(["sizes", f"T = {num_episodes}", *learner.requires])
    notes.holds("requires", f"init and constants, given {given}", "enough")
    if learner.constants is not None:
        notes.holds("constants", "evaluated twice on the host", "the same")
    _require_close(notes, "init", state, init(learner.init))
    state = strong(state)
    act, update = traced_once(learner.act, "act"), traced_once(learner.update, "update")
    key, random = jax.random.key(seed), np.random.default_rng(seed)
    for t in range(EPISODES):
        episode_key = jax.random.fold_in(key, t)
        policy = act(state, episode_key, constants)
        try:
            check_policy(learner.name, (mdp.horizon, mdp.width, mdp.num_actions), policy, t + 1)
        except LearnerError as error:
            raise AssertionError(str(error)) from error
        shown = observe(learner.feedback, play_episode(mdp, np.asarray(policy), random), COIN)
        try:
            following = update(state, policy, shown, constants)
        except AttributeError as error:
            asks = f"no leak: update asks {learner.feedback} feedback for more than it shows"
            raise AssertionError(f"learner {learner.name!r}: {asks}: {error}") from error
        form = reshaped(state, following)
        notes.require(form is None, f"stable state: {form} in update")
        if t < 2:
            _require_close(notes, "act", policy, learner.act(state, episode_key, constants))
            eager = learner.update(state, policy, shown, constants)
            _require_close(notes, "update", following, eager)
        state = strong(following)
    notes.holds("stable state", f"structure, shapes and dtypes over {EPISODES} episodes")
    notes.holds("jit = eager", "init, act and update in 2 episodes, to 1e-5")
    notes.holds("one trace", f"act and update over {EPISODES} episodes", "one each")
    if learner.report is not None:
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


def strong(tree: Any) -> Any:
    """The tree as engines hold it between chunks: no weak types."""
    return jax.tree.map(lambda x: jnp.asarray(np.asarray(x)), tree)


def _check_engine(
    notes: Notes,
    engine: str,
    learner: Learner,
    other: Learner,
    mdp: MDP,
    *,
    num_episodes: int,
    num_seeds: int,
    seed: int,
) -> None:
    """Lanes in all places of a tile, in chunks, against lanes alone in one go; compilations, and regret."""
    keys = jax.random.split(jax.random.key(seed), (2, num_seeds))
    lane = (keys[:1, :1], num_episodes)
    first = make_lane_runner(engine, [learner], [mdp], *lane)
    functions, places = first.functions, max(COPIES, min(first.width, 2 * COPIES))
    theirs = make_lane_runner(engine, [other], [mdp], *lane).functions
    changed = [
        name
        for name, each in functions.items()
        if not each.callbacks and each.digest != theirs[name].digest
    ]
    notes.require(
        not changed,
        f"one trace: {' and '.join(changed)} of the learner with other parameter values are other programs; accepted: "
        "functions that read parameters from their constants",
    )
    notes.holds(f"one program ({engine})", "the functions, with other parameter values", "the same")

    def run(learners: Sequence[Learner], keys: Array, mdps: list[MDP], T: int, **how: Any) -> Any:
        points = np.arange(1, num_episodes + 1) if num_episodes == T else None
        return run_lanes(engine, learners, mdps, keys, T, points, functions=functions, **how)

    pair = [learner, learner._replace(params=other.params)]
    chunk = 2 if engine == "blocks" else max(num_episodes // 3, 1)
    copies = jnp.tile(keys, (1, -(-places // num_seeds)))
    crowd = run(pair, copies, [mdp, mdp], num_episodes, chunk_size=chunk)
    steps = np.diff(crowd[0]["regret"], prepend=0)
    notes.require((steps >= 0).all(), f"regret: {steps.min()} in an episode on engine {engine!r}")
    finite = all(np.isfinite(crowd[0][name]).all() for name in ("regret", "final_gap"))
    notes.require(finite, f"regret: not finite on engine {engine!r}")
    lanes = copies.size
    notes.holds(f"regret ({engine})", f"{num_episodes} episodes of {lanes} lanes", ">= 0")

    for g, s in np.ndindex(copies.shape):
        where = _differing_lane((crowd, g, s % num_seeds), (crowd, g, s))
        message = f"one run in all places of a tile: place {s} differs in {where}"
        notes.require(where is None, f"{message} on engine {engine!r}")
    for g, s in [(0, 0), (1, num_seeds - 1)]:
        one = (pair[g : g + 1], keys[g : g + 1, s : s + 1], [mdp], num_episodes)
        where = _differing_lane((crowd, g, s), (run(*one), 0, 0))
        if where is None:
            continue
        cut = _differing_lane((crowd, g, s), (run(*one, chunk_size=chunk), 0, 0))
        what = "lanes = loop" if cut is not None else f"chunked = whole (chunks of {chunk})"
        message = f"{what}: parameters {g}, seed {s} differ in {where} on engine {engine!r}"
        notes.require(False, message)
    bits = "bit for bit"
    notes.holds(f"lanes = loop ({engine})", f"{lanes} lanes at once, and lanes alone", bits)
    notes.holds(f"chunked = whole ({engine})", f"chunks of {chunk}, and one run", bits)
    notes.holds(f"all places ({engine})", f"{len(copies[0])} runs side by side", bits)

    compiled = PROGRAMS.count
    fresh = jax.random.split(jax.random.key(seed + 1), (1, num_seeds))
    long = max(LONG, num_episodes)
    try:  # learners go wrong late
        run(pair[1:], fresh, [_reweighted(mdp)], long)
    except LearnerError as error:
        raise AssertionError(str(error)) from error
    compiled = PROGRAMS.count - compiled
    more = f"new keys, parameters and MDPs compile {compiled} more programs on {engine!r}"
    notes.require(compiled == 0, f"one trace: {more}")
    notes.holds(f"one trace ({engine})", "new keys, parameter values and MDPs", "no new one")
    title = "policies" if engine == "episodes" else f"policies ({engine})"
    notes.holds(title, f"actions or probabilities of {long} episodes", "valid")


def _reweighted(mdp: MDP) -> MDP:
    """An MDP with the same outcomes of other probabilities."""
    prob = np.sqrt(np.asarray(mdp.prob, np.float64))
    return mdp._replace(
        prob=(prob / prob.sum(-1, keepdims=True)).astype(np.asarray(mdp.prob).dtype)
    )


def _differing_lane(one: tuple[Any, int, int], two: tuple[Any, int, int]) -> str | None:
    """Where two lanes, each (run, g, s), differ in results or states; None if nowhere."""
    lanes = [jax.tree.map(lambda x, g=g, s=s: x[g, s], run) for run, g, s in (one, two)]
    return differing(lanes[0][0], lanes[1][0]) or differing(lanes[0][1], lanes[1][1])


def _require_close(notes: Notes, name: str, jitted: Any, eager: Any) -> None:
    """Compiled and eager code may round differently, so reals are compared to 1e-5 and everything
    else exactly."""
    leaf = apart(jitted, eager)
    notes.require(leaf is None, f"jit = eager: {leaf} of {name}")


def differing(one: Any, two: Any, tolerance: float | None = None) -> str | None:
    """The path of the first leaf in which two trees differ in any bit (nan = nan); None if there is
    none. With a ``tolerance``, reals may differ by that much, absolutely and relatively.

    Example:
        >>> differing({"a": np.zeros(2), "b": np.ones(1)}, {"a": np.zeros(2), "b": np.zeros(1)})
        "['b']"
    """
    for name, a, b in _leaf_pairs(one, two):
        real = np.issubdtype(a.dtype, np.floating) or a.dtype.name == "bfloat16"
        if real and tolerance is not None:
            same = np.allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True)
        else:
            same = np.array_equal(a, b, equal_nan=real)
        if not same:
            return name
    return None


def apart(one: Any, two: Any) -> str | None:
    """`differing` by more than 1e-5.

    Example:
        >>> apart(np.float32(1), np.float32(1 + 1e-6)) is None
        True
    """
    return differing(one, two, 1e-5)


def reshaped(before: Any, after: Any) -> str | None:
    """How the form of a state changed: structure, shapes or dtypes; None if it did not.

    Example:
        >>> reshaped((np.zeros(2, np.float32),), (np.zeros(2, np.int32),))
        '[0]: float32[2] becomes int32[2]'
    """
    structures: list[Any] = [jax.tree.structure(tree) for tree in (before, after)]
    if structures[0] != structures[1]:
        return "the structure of the state changes"
    for name, a, b in _leaf_pairs(before, after):
        if (a.shape, a.dtype) != (b.shape, b.dtype):
            return f"{name}: {a.dtype}{list(a.shape)} becomes {b.dtype}{list(b.shape)}"
    return None


def _leaf_pairs(one: Any, two: Any) -> list[tuple[str, np.ndarray, np.ndarray]]:
    """Name and values of the leaves of two trees of one structure."""
    leaves, others = jax.tree_util.tree_leaves_with_path(one), jax.tree.leaves(two)
    return [
        (jax.tree_util.keystr(path) or "the value", np.asarray(a), np.asarray(b))
        for (path, a), b in zip(leaves, others, strict=True)
    ]


class LearnerTests(chex.TestCase):
    """A test case for a learner: subclass it and name the learner; pytest and unittest find its tests.

    `check_learner` checks more, in one call; this shows every variant as a test of its own, and tests of
    yours may stand beside them and use ``@chex.variants`` in the same way.

    Example:
        >>> import unittest
        >>> import jaxbandit as jb
        >>> class TestMine(jb.testing.LearnerTests):
        ...     learner = jb.make_learner("uniform")
        >>> suite = unittest.defaultTestLoader.loadTestsFromTestCase(TestMine)
        >>> result = unittest.TestResult()
        >>> _ = suite.run(result)
        >>> result.testsRun, result.wasSuccessful()
        (4, True)
    """

    learner: ClassVar[Learner | None] = None
    """The learner that is tested; without one, every test is skipped."""
    mdp: ClassVar[MDP | None] = None
    """Where it is run; by default an ordered MDP of 3 stages, 2 levels and 2 actions."""
    num_episodes: ClassVar[int] = 48
    """T that the learner is told; `EPISODES` of them are played."""

    @chex.variants(with_jit=True, without_jit=True, with_device=True)
    def test_act_and_update_agree(self) -> None:
        """The policies and states of a run are those of the functions called as they are, to 1e-5."""
        learner = self._learner()
        plain = learner
        same = self._run(plain.act, plain.update)
        found = self._run(self.variant(plain.act), self.variant(plain.update))
        for t, (one, other) in enumerate(zip(same, found, strict=True)):
            leaf = apart(other, one)
            if leaf is not None:
                raise AssertionError(f"learner {learner.name!r}: {leaf} after episode {t + 1}")

    def test_one_trace_serves_the_run(self) -> None:
        """act and update are traced once, whatever the episode (`chex.assert_max_traces`)."""
        plain = self._learner()
        self._run(traced_once(plain.act, "act"), traced_once(plain.update, "update"))

    def _learner(self) -> Learner:
        if self.learner is None:
            self.skipTest("learner: None; accepted: a jb.Learner, in a subclass")
        return self.learner  # type: ignore[return-value]

    def _run(self, act: Any, update: Any) -> list[Any]:
        """(policy, state) of a few episodes."""
        learner, mdp = self._learner(), self.mdp
        if mdp is None:
            sizes = {"horizon": 3, "width": 2, "num_actions": 2}
            mdp = make_instance("random-ordered", key=jax.random.key(0), **sizes)
        notes = Notes(str(learner.name), verbose=False)
        state, constants, _ = begin(notes, learner, mdp, self.num_episodes)
        key, random = jax.random.key(0), np.random.default_rng(0)
        found = []
        for t in range(EPISODES):
            state = strong(state)
            policy = act(state, jax.random.fold_in(key, t), constants)
            shown = observe(learner.feedback, play_episode(mdp, np.asarray(policy), random), COIN)
            state = update(state, policy, shown, constants)
            found.append((policy, state))
        return found
