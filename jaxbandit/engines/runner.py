"""What the runners of both engines share: lanes in tiles, initial states, compilation, reports and metrics.

A runner drives the runs of one learner on G groups (an MDP with parameter values each) x S seeds, a chunk at a time:

    carry = runner.start()
    while runner.episodes_done(carry) < num_episodes:
        carry = runner.step(carry)
    arrays = runner.result(carry)

Lanes run in *tiles* of a fixed number of lanes, each lane with its own MDP and parameters; what is left of the last
tile are copies of its first lane. A program runs one tile on one device. Its shapes depend on the learner, the sizes
of the MDP and the kind of device, and on nothing else, so a lane is computed by the same instructions whatever runs
beside it: that is why its bits do not depend on its neighbours, on T, on chunks or on devices. Several sizes of MDPs are
several programs.

Constants are evaluated on the host, exactly, for each lane alone: a program cannot change them, so their digits do not
depend on XLA. Initial states are computed in 64 bits by one program for all lanes; an engine that runs in 32 bits rounds
their reals once and refuses whole numbers that do not fit.

A metric (`jaxbandit.metrics`) is evaluated on the device, lane by lane, on the learner's state *after* a recorded episode
and the policy that it would play next. Between two blocks of a block learner the state does not change, so there a
recorded episode inside a block shows the state before it.

`lower_functions` gives what the functions of a learner lower to, each for one lane: its identity at given sizes. Engines
vectorise these functions over lanes, so two learners whose functions lower to the same texts are one program. Constants are
arguments of the program: their bytes are no part of it, their shapes are.

The carry is a tree of arrays and nothing else, so it can be saved after any step and restored to the same bits.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.engines.blocks.loop import check_shapes
from jaxbandit.engines.tables import metric_worlds, optimal_policy, unstacked
from jaxbandit.errors import LearnerError
from jaxbandit.feedback import Trajectory, observe
from jaxbandit.learner import (
    REAL,
    Learner,
    Problem,
    check_contract,
    check_first_state,
    check_report,
    check_steps,
    described,
    make_constants,
    named,
)
from jaxbandit.mdp import MDP
from jaxbandit.metrics import Metric, World, dims_of
from jaxbandit.types import Array
from jaxbandit.xla.compat import settled, x64
from jaxbandit.xla.platforms import platform_of, tracing_for
from jaxbandit.xla.programs import PROGRAMS, Lowered, lower

Carry = dict[str, Any]

KEY_ROLE = 3
"""``init`` gets fold_in(key, KEY_ROLE) of its lane's key. Environments fold in 0 (episodes) and 2 (blocks), ``act`` 1."""


class TileArrays(NamedTuple):
    """W lanes that run together; leaves are numpy arrays with a leading axis [W]."""

    mdps: MDP
    params: dict[str, np.ndarray]
    keys: np.ndarray
    """uint32 [W, 2]: the words of each lane's key."""
    used: int
    """Lanes that count; the others are copies."""
    device: Any


class Runner(ABC):
    """Base of the two engines' runners; see the module's docstring for the protocol."""

    engine: str
    """Its name."""

    def __init__(
        self,
        learner: Learner,
        mdps: MDP,
        keys: Array,
        num_episodes: int,
        points: np.ndarray,
        chunk_size: int | None = None,
        devices: Sequence[Any] | None = None,
        workers: int = 1,
        platform: str | None = None,
        metrics: Mapping[str, Metric] | None = None,
        functions: Mapping[str, Lowered] | None = None,
    ):
        """Arguments as of `jaxbandit.engines.make_runner`, and how it is run.

        Args:
            learner: its params' leaves have a leading axis [G].
            mdps: leaves stacked [G, ...].
            keys: typed keys [G, S], or their words.
            num_episodes: T.
            points: int64 [W].
            chunk_size: episodes (or, for blocks, stages of a phase) per step; any value gives the same
                numbers.
            devices: jax devices, which take tiles of lanes in turn.
            workers: tiles that run at the same time (on a CPU, one per core).
            platform: "cpu" or "gpu" forces the choices of that kind of device (`jaxbandit.xla.platforms`).
            metrics: name -> function of state and world (`jaxbandit.metrics`), evaluated at the points.
            functions: what `lower_functions` gives, if that is known.
        """
        self.name = learner.name
        self.rules = check_contract(learner).rules
        self.num_episodes = int(num_episodes)
        self.points = np.asarray(points, np.int64)
        self.chunk_size = chunk_size
        self.devices = tuple(devices) if devices else (jax.local_devices()[0],)
        self.workers = workers
        self.metrics = dict(metrics or {})
        self.platform = platform_of(self.devices[0], platform)
        words = keys if isinstance(keys, np.ndarray) else np.asarray(jax.random.key_data(keys))
        self.groups, self.seeds, _ = words.shape
        self.mdps = jax.tree.map(np.asarray, mdps)
        if "rank" in self.rules.requires and self.mdps.rank is None:
            raise ValueError(
                f"learner {self.name!r} needs an ordered MDP (one with a rank); this one has none"
            )
        self.sizes = (mdps.horizon, mdps.width, mdps.num_actions)
        self._functions = functions
        self.engine_text: str | None = None
        """The digest of the program that plays episodes, once it is compiled."""
        self.compile_seconds = 0.0
        self.run_seconds = 0.0
        self.params = {name: np.asarray(value) for name, value in learner.params.items()}
        self.tiles = self._cut(words.reshape(-1, 2))

    def _cut(self, words: np.ndarray) -> list[TileArrays]:
        group = np.repeat(np.arange(self.groups), self.seeds)
        tiles: list[TileArrays] = []
        for counted in self.lanes_of_tiles():
            count = len(counted)
            lanes = np.concatenate([counted, np.full(self.width - count, counted[0])])
            which = group[lanes]
            tiles.append(
                TileArrays(
                    mdps=jax.tree.map(lambda x, which=which: x[which], self.mdps),
                    params={name: value[which] for name, value in self.params.items()},
                    keys=words[lanes],
                    used=count,
                    device=self.devices[len(tiles) % len(self.devices)],
                )
            )
        return tiles

    @classmethod
    def table_sizes(cls, mdp: MDP) -> tuple[int, ...]:
        """What the engine's tables of an instance are sized by, beyond H, k, A and M."""
        del mdp
        return ()

    def lanes_of_tiles(self) -> list[np.ndarray]:
        """The numbers of the lanes (group by group) in each tile; every lane is in one."""
        lanes = np.arange(self.groups * self.seeds)
        return [lanes[first : first + self.width] for first in range(0, len(lanes), self.width)]

    @property
    def functions(self) -> Mapping[str, Lowered]:
        """What the learner's functions lower to: its identity at these sizes."""
        if not self._functions:
            self._functions = lower_functions(self)
        return self._functions

    def key(self, *names: str) -> tuple[str, ...]:
        """The digests of these functions, which name compiled programs."""
        return tuple(self.functions[name].digest for name in names)

    @abstractmethod
    def engine_digest(self) -> str:
        """The digest of the program that plays episodes; it is lowered if need be, and not compiled."""

    @property
    @abstractmethod
    def form(self) -> Any:
        """The functions that the engine calls: those of the learner, or of its block form."""

    @property
    @abstractmethod
    def width(self) -> int:
        """W, the lanes of a tile: from the learner, the sizes and the platform alone."""

    @abstractmethod
    def start_tile(self, tile: TileArrays) -> Carry:
        """The carry of a tile before the first episode."""

    @abstractmethod
    def step_tile(self, tile: TileArrays, carry: Carry) -> Carry:
        """The carry of a tile one chunk later."""

    @abstractmethod
    def tile_episodes(self, carry: Carry) -> int:
        """Episodes finished in every lane of a tile."""

    @abstractmethod
    def tile_result(self, tile: TileArrays, carry: Carry) -> dict[str, np.ndarray]:
        """Curves and diagnostics of a tile, leaves [W, ...]."""

    @property
    @abstractmethod
    def bytes_per_lane(self) -> int:
        """Estimated memory of a lane."""

    def start(self) -> Carry:
        """The carry before the first episode."""
        return {"tiles": [self.start_tile(tile) for tile in self.tiles]}

    def step(self, carry: Carry) -> Carry:
        """The carry one chunk later."""
        pairs = list(zip(self.tiles, carry["tiles"], strict=True))
        if self.workers == 1 or len(pairs) == 1:
            return {"tiles": [self.step_tile(*pair) for pair in pairs]}
        with ThreadPoolExecutor(self.workers) as pool:
            return {"tiles": list(pool.map(lambda pair: self.step_tile(*pair), pairs))}

    def episodes_done(self, carry: Carry) -> int:
        """Episodes finished in every lane."""
        return min(self.tile_episodes(tile) for tile in carry["tiles"])

    def result(self, carry: Carry) -> dict[str, np.ndarray]:
        """Curves and diagnostics, float64 [G, S, ...]."""
        found = [self.tile_result(*pair) for pair in zip(self.tiles, carry["tiles"], strict=True)]
        return {name: self._by_lane([each[name] for each in found]) for name in found[0]}

    def _by_lane(self, parts: Sequence[Any]) -> np.ndarray:
        """Arrays [W, ...] of every tile as one float64 [G, S, ...]."""
        used = [
            np.asarray(part, np.float64)[: tile.used]
            for tile, part in zip(self.tiles, parts, strict=True)
        ]
        place = np.argsort(np.concatenate(self.lanes_of_tiles()))
        found = np.concatenate(used)[place]
        return found.reshape(self.groups, self.seeds, *found.shape[1:])

    @abstractmethod
    def tile_curves(self, carry: Carry) -> np.ndarray:
        """The curves of a tile so far, [W, points]; nan where they have not come yet."""

    def so_far(self, carry: Carry) -> np.ndarray:
        """All curves so far, [G, S, points]."""
        return self._by_lane([self.tile_curves(each) for each in carry["tiles"]])

    def initial_states(self, tile: TileArrays) -> tuple[Any, Any]:
        """The constants and initial states of the lanes of a tile, numpy leaves [W, ...]."""
        with x64():
            function, args = self._beginning(tile.mdps, tile.params, tile.keys)
            name = ("initial states", self.key("init"), self.sizes, self.width)
            first = self.execute(name, function, args, tile.device, small=True)
            return args[-1], jax.tree.map(np.asarray, first)

    def first_lanes(self, count: int) -> tuple[Callable, tuple]:
        """The function that makes the initial states of the first MDPs and parameters, and its arguments; the last are the
        constants. Nothing is run. Needs x64."""
        mdps, params = jax.tree.map(lambda x: x[:count], (self.mdps, self.params))
        return self._beginning(mdps, params, np.zeros((count, 2), np.uint32))

    def _beginning(
        self, mdps: MDP, params: dict[str, np.ndarray], keys: np.ndarray
    ) -> tuple[Callable, tuple]:
        """The same of lanes with these MDPs, parameters and words of keys, leaves [W, ...]."""
        rank = best = None
        if "rank" in self.rules.requires:
            rank = mdps.rank
        if "optimal_policy" in self.rules.requires:
            best = np.stack([optimal_policy(mdp) for mdp in unstacked(mdps)])
        problem: Any = partial(Problem, *self.sizes)

        def one(num_episodes, words, rank, best, constants):
            given = problem(num_episodes=num_episodes, rank=rank, optimal_policy=best)
            key = jax.random.wrap_key_data(words, impl="threefry2x32")
            with named(self.name, "init"):
                first = self.form.init(given, constants, jax.random.fold_in(key, KEY_ROLE))
                return check_first_state(first)

        made: dict[Any, Any] = {}  # lanes with the same problem and parameters share them
        found = []
        for lane in range(len(keys)):
            own = jax.tree.map(lambda x, lane=lane: x[lane], (rank, best, params))
            same = tuple(leaf.tobytes() for leaf in jax.tree.leaves(own))
            if same not in made:
                given = problem(num_episodes=self.num_episodes, rank=own[0], optimal_policy=own[1])
                with named(self.name, "constants"):
                    made[same] = make_constants(self.form, given, own[2])
            found.append(made[same])
        kinds = dict.fromkeys(described(values) for values in made.values())
        if len(kinds) > 1:
            raise LearnerError(
                f"learner {self.name!r}: constants gives {' and '.join(kinds)}; accepted: arrays of the same "
                "shapes and types for all parameter values of one sweep"
            )
        constants = jax.tree.map(lambda *leaves: np.stack(leaves), *found)
        function = jax.vmap(one, (None, 0, 0, 0, 0), axis_size=len(keys))
        return function, (jnp.asarray(self.num_episodes, jnp.float64), keys, rank, best, constants)

    @cached_property
    def lane_shapes(self) -> tuple[Any, Any]:
        """Shapes of the constants and the initial state of one lane; nothing is run."""
        with x64():
            function, args = self.first_lanes(1)
            shapes = (args[-1], jax.eval_shape(function, *args))
        return jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), shapes)

    def learner_bytes(self) -> int:
        """Bytes of what `initial_states` gives for one lane; nothing is run."""
        return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(self.lane_shapes))

    def reported(self) -> dict[str, int]:
        """The names of what the learner reports, with their numbers of axes; nothing is run."""
        if self.form.report is None:
            return {}
        found = check_report(self.rules._replace(report=self.form.report), self.lane_shapes[1])
        for name in found:
            if name in self.metrics:
                raise ValueError(
                    f"learner {self.name!r}: report: {name!r}; accepted: names other than those "
                    f"of the metrics, {', '.join(self.metrics)}"
                )
        return {name: len(value.shape) for name, value in found.items()}

    def reports(self, tile: TileArrays, state: Any) -> dict[str, np.ndarray]:
        """What the learner reports of each lane, leaves [W, ...]."""
        report = self.form.report
        if report is None:
            return {}
        function = jax.vmap(lambda state: dict(report(state)), axis_size=self.width)
        found = self.execute(
            ("report", self.key("report"), self.sizes), function, (state,), tile.device, small=True
        )
        return jax.tree.map(np.asarray, found)

    def evaluate_metrics(
        self,
        tile: TileArrays,
        state: Any,
        policy: np.ndarray,
        constants: Any,
        real: Any,
    ) -> dict[str, np.ndarray]:
        """All metrics of all lanes, [W, ...]."""
        key = self.key(*(f"metric {each}" for each in self.metrics))
        name = ("metrics", tuple(self.metrics), key, self.sizes)
        checked = {name: checked_metric(name, metric) for name, metric in self.metrics.items()}

        def one(state, world):
            return {name: metric(state, world) for name, metric in checked.items()}

        args = (state, metric_worlds(tile.mdps, policy, constants, real))
        found = self.execute(name, jax.vmap(one), args, tile.device, small=True)
        return {name: np.asarray(value, np.float64) for name, value in found.items()}

    def execute(
        self,
        name: Any,
        function: Callable,
        args: tuple,
        device: Any,
        donate: tuple[int, ...] = (),
        small: bool = False,
    ) -> Any:
        """``function(*args)`` on a device, compiled once per name and shape; keeps the time.

        ``small`` programs are those that nobody waits for.
        """
        H, k, A = self.sizes
        words = None if small else f"{self.name}, H={H} k={k} A={A}"
        program = PROGRAMS.get(name, function, args, device, self.platform, words, donate)
        if not small:
            self.engine_text = program.digest
        self.compile_seconds += program.seconds
        began = time.perf_counter()
        with settled():
            result = jax.block_until_ready(program.call(*jax.device_put(args, device)))
        self.run_seconds += time.perf_counter() - began
        return result


def lower_functions(runner: Runner) -> dict[str, Lowered]:
    """The functions that a runner calls, by name: init, feedback, act, update (or next_block, absorb), report, "metric ...".

    An error where they do not fit together.
    """
    rules, form, blocks = runner.rules, runner.form, runner.engine == "blocks"
    found: dict[str, Lowered] = {}

    def add(name: str, function: Callable, *args: Any) -> Any:
        with named(runner.name, name):
            found[name] = lower(function, *args)
        return found[name].out

    def first(tree: Any) -> Any:
        return jax.tree.map(lambda x: _shape(x.shape[1:], x.dtype), tree)

    with settled(), tracing_for(runner.platform):
        with x64():
            function, args = runner.first_lanes(1)
            found["init"] = lower(function, *args)
            constants, state = first((args[-1], found["init"].out))
        with x64(False):
            stages = runner.sizes[:1]
            whole, real = _shape(stages, jnp.int32), _shape(stages, jnp.float32)
            episode = Trajectory(levels=whole, actions=whole, rewards=real, next_levels=whole)
            seen = add(
                "feedback", partial(observe, rules.feedback), episode, _shape((), jnp.uint32)
            )
        with x64(blocks):
            if blocks:
                check_shapes(runner.name, form, state, constants, runner.sizes)
                block = add("next_block", form.next_block, state, constants)
                policy, episodes = block.policy, block.episodes
                totals = _shape(episodes.shape, jnp.float64)
                add("absorb", form.absorb, state, episodes, totals, constants)
            else:
                state, constants = jax.tree.map(
                    lambda x: _shape(x.shape, jax.dtypes.canonicalize_dtype(x.dtype)),
                    (state, constants),
                )
                check_steps(rules, runner.sizes, constants, state)
                key = jax.eval_shape(lambda: jax.random.key(0))
                policy = add("act", rules.act, state, key, constants)
                add("update", rules.update, state, policy, seen, constants)
            if runner.metrics:
                mdps = jax.tree.map(lambda x: x[:1], runner.mdps)
                blank = np.zeros((1, *policy.shape), policy.dtype)
                kind = np.float64 if blocks else np.float32
                world = first(metric_worlds(mdps, blank, (), kind))._replace(constants=constants)
            for name, metric in runner.metrics.items():
                found[f"metric {name}"] = lower(checked_metric(name, metric), state, world)
        if form.report is not None:
            with x64():
                add("report", form.report, state)
    return found


_shape = jax.ShapeDtypeStruct


def to_32_bits(name: str, tree: Any) -> Any:
    """Arrays as a 32-bit engine has them: reals rounded, whole numbers checked."""

    smaller: dict[str, Any] = {"float64": np.float32, "int64": np.int32, "uint64": np.uint32}

    def cast(leaf: np.ndarray) -> np.ndarray:
        if leaf.dtype.name not in smaller:
            return leaf
        with np.errstate(over="ignore"):
            small = leaf.astype(smaller[leaf.dtype.name])
        if leaf.dtype.kind == "f":
            lost = leaf[np.isfinite(leaf) & ~np.isfinite(small)]
            what, accepted = "{:g}", "numbers that float32 holds, or inf"
        else:
            lost, limits = leaf[small != leaf], np.iinfo(small.dtype)
            what, accepted = "the whole number {}", f"{limits.min}..{limits.max}"
        if lost.size:
            raise ValueError(
                f"learner {name!r}: init gives {what.format(lost[0])}; accepted on the episode engine: {accepted}"
            )
        return small

    return jax.tree.map(cast, tree)


def checked_metric(name: str, metric: Metric) -> Callable[[Any, World], jax.Array]:
    """The metric, of one run, with `check_metric`; errors say which one it is."""

    def call(state: Any, world: World) -> jax.Array:
        try:
            return check_metric(name, metric, metric(state, world), world)
        except Exception as error:
            error.add_note(f"in metrics[{name!r}]")
            raise

    return call


def check_metric(name: str, metric: Metric, value: Any, world: World) -> jax.Array:
    """What a metric gave for one run, if it is real numbers with the axes that `dims` named; else an error.

    Example:
        >>> check_metric("mine", len, {"a": 1.0}, None)
        Traceback (most recent call last):
        ...
        ValueError: metrics['mine']: gives dict; accepted: a real number or an array of them
    """
    accepted, shown, dims = (
        "a real number or an array of them",
        type(value).__name__,
        dims_of(metric),
    )
    if isinstance(value, bool | int | float) or hasattr(value, "dtype"):
        dtype, shape = jnp.result_type(value), jnp.shape(value)
        shown = f"{dtype}{list(shape)}"
        if any(jnp.issubdtype(dtype, kind) for kind in REAL):
            sizes = dict(zip(("stage", "level", "action"), world.gap.shape[-3:], strict=True))
            wanted = [f"{dim}{f' ({sizes[dim]})' if dim in sizes else ''}" for dim in dims or ()]
            accepted = f"the axes of its dims, {', '.join(wanted) or 'none'}"
            if dims is None or (
                len(dims) == len(shape)
                and all(sizes.get(dim, size) == size for dim, size in zip(dims, shape, strict=True))
            ):
                accepted = ""
    if accepted:
        raise ValueError(f"metrics[{name!r}]: gives {shown}; accepted: {accepted}")
    if isinstance(value, int | np.ndarray | np.generic):
        value = np.asarray(value, np.float64)  # jax would wrap a large whole number around
    return jnp.asarray(value)


def empty_curves(values: Mapping[str, np.ndarray], num_points: int) -> dict[str, np.ndarray]:
    """Arrays [W, points, ...] of nan for what `evaluate_metrics` gave."""
    return {
        name: np.full((len(value), num_points, *value.shape[1:]), np.nan)
        for name, value in values.items()
    }


def one_hot_actions(policy: np.ndarray) -> np.ndarray:
    """Actions float [..., k+1] of a randomised policy [..., k+1, A]; nan where it is truly random."""
    sure = policy.max(-1) > 1 - 1e-6
    return np.where(sure, policy.argmax(-1).astype(np.float64), np.nan)
