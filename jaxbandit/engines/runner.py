"""What both engines' runners share: lanes, devices, compilation and the learner's first state.

A runner drives the runs of one learner on G groups x S seeds, a chunk at a time:

    carry = runner.start()
    while runner.episodes_done(carry) < num_episodes:
        carry = runner.step(carry)
    arrays = runner.result(carry)

The carry is a dict of arrays and nothing else, so it can be saved after any step and restored to the same bits.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec

from jaxbandit import planning
from jaxbandit.engines.compat import shard_map, x64
from jaxbandit.learners.base import Learner, Problem
from jaxbandit.mdp import MDP

Array = Any
Carry = dict[str, Any]

KEPT = 12
"""Programs that are kept: those of finished batches would fill the memory of a long sweep."""
_COMPILED: OrderedDict[Any, Any] = OrderedDict()
_DROPPED: list[Any] = []
"""Names of programs that were let go, of which jax still holds traces."""


def release_memory() -> None:
    """Lets jax forget its traces if programs were let go since the last call.

    For whoever owns the process: all functions that jax compiled in it will be compiled anew at their next call.
    """
    if _DROPPED:
        _DROPPED.clear()
        jax.clear_caches()


class Runner(ABC):
    """Base of the two engines' runners; see the module's docstring for the protocol."""

    def __init__(
        self,
        learner: Learner,
        mdps: MDP,
        keys: Array,
        num_episodes: int,
        points: np.ndarray,
        chunk_size: int | None = None,
        devices: Sequence[Any] | None = None,
    ):
        """See `jaxbandit.engines.make_runner`."""
        self.rules = learner.rules
        self.params = dict(learner.params)
        self.mdps = mdps
        self.keys = keys
        self.num_episodes = int(num_episodes)
        self.points = np.asarray(points, np.int64)
        self.chunk_size = chunk_size
        self.devices = tuple(devices) if devices else (jax.devices()[0],)
        self.groups, self.seeds = keys.shape
        if self.seeds % len(self.devices):
            raise ValueError(f"keys: {self.seeds} seeds; accepted: a multiple of the {len(self.devices)} devices")
        self.best = _optimal_policies(mdps) if "optimal_policy" in self.rules.needs else None
        self.compile_seconds = 0.0
        self.run_seconds = 0.0

    @abstractmethod
    def start(self) -> Carry:
        """The carry before the first episode."""

    @abstractmethod
    def step(self, carry: Carry) -> Carry:
        """The carry one chunk later."""

    @abstractmethod
    def episodes_done(self, carry: Carry) -> int:
        """Episodes finished in every lane."""

    @abstractmethod
    def result(self, carry: Carry) -> dict[str, np.ndarray]:
        """Curves and diagnostics, lanes first."""

    @property
    @abstractmethod
    def bytes_per_lane(self) -> int:
        """Estimated memory of a lane."""

    def first_state(self) -> Any:
        """The learner's state before the first episode, leaves [G, ...], without seeds."""
        needs = self.rules.needs
        mdps = self.mdps
        rank = mdps.rank if "rank" in needs else None
        if "rank" in needs and rank is None:
            raise ValueError(f"learner {self.rules.name!r} needs an ordered MDP (one with a rank); this one has none")
        real = jnp.result_type(float)
        params = {name: _leaf(value, real) for name, value in self.params.items()}
        sizes = (mdps.horizon, mdps.width, mdps.num_actions)
        return _first_states(
            self.rules.init, sizes, self.groups, jnp.asarray(self.num_episodes, real), params, rank, self.best
        )

    def execute(self, name: Any, function: Callable, args: tuple, in_lanes: tuple, out_lanes: Any) -> Any:
        """Runs ``function(*args)`` compiled once per shape, on all devices, and keeps the time.

        ``in_lanes`` and ``out_lanes`` say, per argument and result, where the seeds' axis is: an axis number (negative
        from the end) for all leaves, or None for what every device gets whole.
        """
        leaves, tree = jax.tree.flatten(args)
        identity = (name, tuple((np.shape(x), jnp.result_type(x)) for x in leaves), tree, self.devices)
        if identity not in _COMPILED:
            began = time.perf_counter()
            _COMPILED[identity] = self._compile(function, args, in_lanes, out_lanes)
            self.compile_seconds += time.perf_counter() - began
        _COMPILED.move_to_end(identity)
        while len(_COMPILED) > KEPT:
            _DROPPED.append(_COMPILED.popitem(last=False)[0])
        began = time.perf_counter()
        result = jax.block_until_ready(_COMPILED[identity](*args))
        self.run_seconds += time.perf_counter() - began
        return result

    def _compile(self, function: Callable, args: tuple, in_lanes: tuple, out_lanes: Any) -> Callable:
        if len(self.devices) == 1:
            with jax.default_device(self.devices[0]):
                program = jax.jit(function)
                compiled = program.lower(*args).compile()
            return compiled
        mesh = Mesh(np.array(self.devices), ("lanes",))

        def specs(value, axis):
            def spec(leaf):
                return PartitionSpec(*[None] * (axis % np.ndim(leaf)), "lanes")

            return PartitionSpec() if axis is None else jax.tree.map(spec, value)

        inputs = tuple(specs(value, axis) for value, axis in zip(args, in_lanes, strict=True))
        if all(axis >= 0 for axis in out_lanes):  # saves a trace: no shapes are needed
            outputs = tuple(PartitionSpec(*[None] * axis, "lanes") for axis in out_lanes)
        else:
            shapes = jax.eval_shape(function, *args)
            outputs = tuple(specs(value, axis) for value, axis in zip(shapes, out_lanes, strict=True))
        program = jax.jit(shard_map(function, mesh, inputs, outputs))
        return program.lower(*args).compile()


def _optimal_policies(mdps: MDP) -> np.ndarray:
    """Optimal policies int32 [G, H, k+1], found in float64 like the gaps, so that their regret is exactly 0 at near ties."""
    with x64():
        prob, reward = (jnp.asarray(np.asarray(x, np.float64)) for x in (mdps.prob, mdps.reward))
        return np.asarray(_optimal(mdps._replace(prob=prob, reward=reward))[1])


_optimal = jax.jit(jax.vmap(planning.optimal))


def _leaf(value: Array, real: Any) -> jax.Array:
    """A hyper-parameter as an array: reals in the precision of the engine, whole numbers (a table of actions) kept."""
    return jnp.asarray(value, jnp.int32 if jnp.issubdtype(np.asarray(value).dtype, jnp.integer) else real)


@partial(jax.jit, static_argnames=("init", "sizes", "groups"))
def _first_states(init, sizes: tuple[int, int, int], groups: int, num_episodes, params, rank, best):
    """The learner's first state for every group; compiled once per learner and shape, not once per runner."""

    def one(params, rank, best):
        return init(Problem(*sizes, num_episodes, rank, best), params)

    axes = ({name: 0 for name in params}, None if rank is None else 0, None if best is None else 0)
    return jax.vmap(one, axes, axis_size=groups)(params, rank, best)


def one_hot_actions(policy: np.ndarray) -> np.ndarray:
    """Actions float [..., k+1] of a randomised policy [..., k+1, A]; nan where it is truly random."""
    sure = policy.max(-1) > 1 - 1e-6
    return np.where(sure, policy.argmax(-1).astype(np.float64), np.nan)
