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

The carry is a tree of arrays and nothing else, so it can be saved after any step and restored to the same bits.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypedDict

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.engines.tables import metric_worlds, optimal_policy
from jaxbandit.errors import LearnerError
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
from jaxbandit.xla.lowering import Lowered
from jaxbandit.xla.platforms import platform_of
from jaxbandit.xla.programs import PROGRAMS

Carry = dict[str, Any]

KEY_ROLE = 3
"""``init`` gets fold_in(key, KEY_ROLE) of its lane's key. Environments fold in 0 (episodes) and 2 (blocks), ``act`` 1."""


class RunnerOptions(TypedDict, total=False):
    """How a runner runs.

    Fields:
        chunk_size: episodes (or, for blocks, stages of a phase) per step; any value gives the same
            numbers.
        devices: jax devices, which take tiles of lanes in turn.
        workers: tiles that run at the same time (on a CPU, one per core).
        platform: "cpu" or "gpu" forces the choices of that kind of device (`jaxbandit.xla.platforms`).
        metrics: name -> function of state and world (`jaxbandit.metrics`), evaluated at the points.
        functions: what the learner's functions lower to, if that is known (`engines.functions`).
    """

    chunk_size: int | None
    devices: Sequence[Any] | None
    workers: int
    platform: str | None
    metrics: Mapping[str, Metric] | None
    functions: Mapping[str, Lowered] | None


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
        """See `jaxbandit.engines.make_runner`."""
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
        from jaxbandit.engines.functions import lower_functions

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
            function, args = self._initial_states(tile.mdps, tile.params, tile.keys)
            name = ("initial states", self.key("init"), self.sizes, self.width)
            first = self.execute(name, function, args, tile.device, small=True)
            return args[-1], jax.tree.map(np.asarray, first)

    def _initial_states(
        self, mdps: MDP, params: dict[str, np.ndarray], keys: np.ndarray
    ) -> tuple[Callable, tuple]:
        given = (self.rules.requires, mdps, params, keys, self.num_episodes, self.name)
        return initial_states(self.form, *given)

    def first_lanes(self, count: int) -> tuple[Callable, tuple]:
        """The function that makes the initial states of the first MDPs and parameters, and its arguments; the last are the
        constants. Nothing is run. Needs x64."""
        mdps, params = jax.tree.map(lambda x: x[:count], (self.mdps, self.params))
        return self._initial_states(mdps, params, np.zeros((count, 2), np.uint32))

    def lane_shapes(self) -> tuple[Any, Any]:
        """Shapes of the constants and the initial state of one lane; nothing is run."""
        with x64():
            function, args = self.first_lanes(1)
            shapes = (args[-1], jax.eval_shape(function, *args))
        return jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), shapes)

    def learner_bytes(self) -> int:
        """Bytes of what `initial_states` gives for one lane; nothing is run."""
        return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(self.lane_shapes()))

    def reported(self) -> dict[str, int]:
        """The names of what the learner reports, with their numbers of axes; nothing is run."""
        if self.form.report is None:
            return {}
        found = check_report(self.rules._replace(report=self.form.report), self.lane_shapes()[1])
        return {name: len(value.shape) for name, value in found.items()}

    def check_reports(self, state: Any) -> None:
        """Refuses a report that would take another's name, before anything runs; ``state`` [W, ...] has the types."""
        lane = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), state)
        for name in check_report(self.rules._replace(report=self.form.report), lane):
            if name in self.metrics:
                raise ValueError(
                    f"learner {self.name!r}: report: {name!r}; accepted: names other than those "
                    f"of the metrics, {', '.join(self.metrics)}"
                )

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
        world = metric_worlds(tile.mdps, policy, (), real)
        args = (state, world, constants)
        function = evaluate_metrics(self.metrics)
        found = self.execute(name, function, args, tile.device, small=True)
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
        try:
            program = PROGRAMS.get(name, function, args, device, self.platform, words, donate)
        except Exception as error:
            self._blame_functions(error)
            raise
        if not small:
            self.engine_text = program.digest
        self.compile_seconds += program.seconds
        began = time.perf_counter()
        with settled():
            result = jax.block_until_ready(program.call(*jax.device_put(args, device)))
        self.run_seconds += time.perf_counter() - began
        return result

    def _blame_functions(self, error: Exception) -> None:
        """Where a program cannot be made because the learner's functions do not fit together, says so in its words."""
        if self.engine != "episodes":  # block forms have been checked
            return
        try:
            constants, state = self.lane_shapes()
            with x64(False):
                check_steps(self.rules, self.sizes, constants, state)
        except LearnerError as found:
            raise found from error
        except Exception as again:  # it is the user's own: shown as it came, with where it was
            for note in getattr(again, "__notes__", ()):
                error.add_note(note)


def initial_states(
    rules: Any,
    requires: tuple[str, ...],
    mdps: MDP,
    params: dict[str, np.ndarray],
    keys: np.ndarray,
    num_episodes: int,
    name: str = "learner",
) -> tuple[Callable, tuple]:
    """The function that makes the first states of W lanes, and its arguments; the last are the constants. Needs x64.

    Args:
        rules: a learner or a block form.
        requires: what the learner asks for beyond sizes and T.
        mdps: leaves [W, ...].
        params: the learner's parameters, leaves [W, ...].
        keys: uint32 [W, 2], the words of each lane's key.
        num_episodes: T.
        name: the learner's, for errors.
    """
    rank = mdps.rank if "rank" in requires else None
    best = optimal_policies(mdps) if "optimal_policy" in requires else None
    sizes, width = (mdps.horizon, mdps.width, mdps.num_actions), len(mdps.prob)

    def one(num_episodes, words, rank, best, constants):
        problem = Problem(*sizes, num_episodes=num_episodes, rank=rank, optimal_policy=best)
        key = jax.random.wrap_key_data(words, impl="threefry2x32")
        with named(name, "init"):
            first = rules.init(problem, constants, jax.random.fold_in(key, KEY_ROLE))
            return check_first_state(first)

    def lanes(num_episodes, words, rank, best, constants):
        each = (None if x is None else 0 for x in (rank, best))
        every = (num_episodes, words, rank, best, constants)
        return jax.vmap(one, (None, 0, *each, 0), axis_size=width)(*every)

    constants = _lane_constants(rules, params, num_episodes, sizes, (rank, best), width, name)
    return lanes, (jnp.asarray(num_episodes, jnp.float64), keys, rank, best, constants)


def _lane_constants(
    rules: Any,
    params: dict[str, np.ndarray],
    num_episodes: int,
    sizes: tuple[int, int, int],
    known: tuple[Any, Any],
    width: int,
    name: str,
) -> Any:
    """Leaves [W, ...]; lanes with the same problem and parameters share them. ``known`` is (rank, optimal policy)."""
    made: dict[bytes, Any] = {}
    found = []
    for lane in range(width):
        own = [None if x is None else np.ascontiguousarray(x[lane]) for x in known]
        here = {name: np.asarray(value)[lane] for name, value in params.items()}
        parts = [*own, *(here[name] for name in sorted(here))]
        same = b"|".join(b"" if part is None else part.tobytes() for part in parts)
        if same not in made:
            rank, best = own
            problem = Problem(*sizes, num_episodes=num_episodes, rank=rank, optimal_policy=best)
            with named(name, "constants"):
                made[same] = make_constants(rules, problem, here)
        found.append(made[same])
    kinds = dict.fromkeys(described(values) for values in made.values())
    if len(kinds) > 1:
        raise LearnerError(
            f"learner {name!r}: constants gives {' and '.join(kinds)}; accepted: arrays of the same shapes and "
            "types for all parameter values of one sweep"
        )
    return jax.tree.map(lambda *leaves: np.stack(leaves), *found)


def to_32_bits(name: str, tree: Any) -> Any:
    """Arrays as a 32-bit engine has them: reals rounded, whole numbers checked."""

    def cast(leaf: np.ndarray) -> np.ndarray:
        if leaf.dtype == np.float64:
            with np.errstate(over="ignore"):
                small = leaf.astype(np.float32)
            if (lost := leaf[np.isfinite(leaf) & ~np.isfinite(small)]).size:
                raise ValueError(
                    f"learner {name!r}: init gives {lost[0]:g}; accepted on the episode engine: numbers that "
                    "float32 holds, or inf"
                )
            return small
        if leaf.dtype in (np.int64, np.uint64):
            limits = np.iinfo(np.int32 if leaf.dtype == np.int64 else np.uint32)
            if (large := leaf[(leaf < limits.min) | (leaf > limits.max)]).size:
                raise ValueError(
                    f"learner {name!r}: init gives the whole number {large[0]}; "
                    f"accepted on the episode engine: {limits.min}..{limits.max}"
                )
            return leaf.astype(limits.dtype)
        return leaf

    return jax.tree.map(cast, tree)


def optimal_policies(mdps: MDP) -> np.ndarray:
    """Optimal policies int32 [W, H, k+1] of stacked MDPs, each found alone."""
    lanes = range(len(mdps.prob))
    return np.stack([optimal_policy(jax.tree.map(lambda x, j=j: x[j], mdps)) for j in lanes])


def evaluate_metrics(metrics: Mapping[str, Metric]) -> Any:
    """A function of (state, world, constants), leaves [W, ...], that gives all metrics of all lanes, [W, ...]."""

    def one(state, world, constants):
        seen = world._replace(constants=constants)
        found = {}
        for name, metric in metrics.items():
            try:
                found[name] = check_metric(name, metric, metric(state, seen), seen)
            except Exception as error:
                error.add_note(f"in metrics[{name!r}]")
                raise
        return found

    return jax.vmap(one)


def check_metric(name: str, metric: Metric, value: Any, world: World) -> jax.Array:
    """What a metric gave for one run, if it is real numbers with the axes that `dims` named; else an error.

    Example:
        >>> check_metric("mine", len, {"a": 1.0}, None)
        Traceback (most recent call last):
        ...
        ValueError: metrics['mine']: gives dict; accepted: a real number or an array of them
    """
    if not isinstance(value, bool | int | float) and not hasattr(value, "dtype"):
        shown = type(value).__name__
    else:
        dtype = jnp.result_type(value)
        shown = f"{dtype}{list(jnp.shape(value))}"
        if any(jnp.issubdtype(dtype, kind) for kind in REAL):
            shown = ""
    if shown:
        raise ValueError(
            f"metrics[{name!r}]: gives {shown}; accepted: a real number or an array of them"
        )
    named = dims_of(metric)
    known = dict(zip(("stage", "level", "action"), world.gap.shape[-3:], strict=True))
    seen = jnp.shape(value)
    if named is not None and (
        len(named) != len(seen)
        or any(known.get(dim, size) != size for dim, size in zip(named, seen, strict=True))
    ):
        wanted = [f"{dim}{f' ({known[dim]})' if dim in known else ''}" for dim in named]
        raise ValueError(
            f"metrics[{name!r}]: gives {dtype}{list(seen)}; accepted: the axes of its dims, "
            f"{', '.join(wanted) or 'none'}"
        )
    if isinstance(
        value, int | np.ndarray | np.generic
    ):  # jax would wrap a large whole number around
        value = np.asarray(value, np.float64)
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
