"""What both engines' runners share: lanes in tiles, compilation, and what learners report.

A runner drives the runs of one learner on G groups (an MDP with parameter values each) x S seeds, a chunk at a time:

    carry = runner.start()
    while runner.episodes_done(carry) < num_episodes:
        carry = runner.step(carry)
    arrays = runner.result(carry)

Lanes run in *tiles* of a fixed number of lanes, each lane with its own MDP and parameters; what is left of the last
tile are copies of its first lane. A program runs one tile on one device. Its shapes depend on the learner, the sizes
of the MDP and the kind of device, and on nothing else, so a lane is computed by the same instructions whatever runs
beside it: that is why its bits do not depend on its neighbours, on T, on chunks or on devices. Where MDPs are padded
(`engines.padding`), ``sizes`` are those of the program and ``own`` those of the MDPs.

The carry is a tree of arrays and nothing else, so it can be saved after any step and restored to the same bits.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypedDict

import jax
import numpy as np

from jaxbandit.engines.lanewise import Lanewise, TileArrays
from jaxbandit.engines.padding import Own, joined
from jaxbandit.errors import LearnerError
from jaxbandit.learner import Learner, check_contract
from jaxbandit.mdp import MDP
from jaxbandit.metrics import Metric
from jaxbandit.types import Array
from jaxbandit.xla.compat import settled
from jaxbandit.xla.platforms import platform_of
from jaxbandit.xla.programs import PROGRAMS

Carry = dict[str, Any]


class RunnerOptions(TypedDict, total=False):
    """How a runner runs.

    Fields:
        chunk_size: episodes (or, for blocks, stages of a phase) per step; any value gives the same
            numbers.
        devices: jax devices, which take tiles of lanes in turn.
        workers: tiles that run at the same time (on a CPU, one per core).
        platform: "cpu" or "gpu" forces the choices of that kind of device (`jaxbandit.xla.platforms`).
        metrics: name -> function of state and world (`jaxbandit.metrics`), evaluated at the points.
        own: if the MDPs are padded (`jaxbandit.engines.padding.grown`), the H and k of each group's itself. The
            episode engine alone takes it, and learners that can be padded.
    """

    chunk_size: int | None
    devices: Sequence[Any] | None
    workers: int
    platform: str | None
    metrics: Mapping[str, Metric] | None
    own: Sequence[Own] | None


class Runner(Lanewise):
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
        own: Sequence[Own] | None = None,
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
        self.padded = own is not None
        self.own = tuple(own) if own is not None else (self.sizes[:2],) * self.groups
        self.own_shapes = {}
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
                    own=tuple(self.own[g] for g in which),
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

    @property
    def moved_per_lane(self) -> int:
        """Estimated bytes that a step moves for a lane; 0: not estimated."""
        return 0

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
        """Curves and diagnostics, leaves [G, S, ...]."""
        found = [self.tile_result(*pair) for pair in zip(self.tiles, carry["tiles"], strict=True)]
        parts = zip(self.lanes_of_tiles(), found, strict=True)
        return {
            name: value.reshape(self.groups, self.seeds, *value.shape[1:])
            for name, value in joined(dict(enumerate(parts)), self.groups * self.seeds).items()
        }

    @abstractmethod
    def tile_curves(self, carry: Carry) -> np.ndarray:
        """The curves of a tile so far, [W, points]; nan where they have not come yet."""

    def so_far(self, carry: Carry) -> np.ndarray:
        """All curves so far, [G, S, points]."""
        parts = [
            self.tile_curves(each)[: tile.used]
            for tile, each in zip(self.tiles, carry["tiles"], strict=True)
        ]
        place = np.argsort(np.concatenate(self.lanes_of_tiles()))
        return np.concatenate(parts)[place].reshape(self.groups, self.seeds, -1)

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
            program, seconds = PROGRAMS.get(
                name, function, args, device, self.platform, words, donate
            )
        except Exception as error:
            self._blame_functions(error)
            raise
        self.compile_seconds += seconds
        began = time.perf_counter()
        with settled():
            result = jax.block_until_ready(program(*jax.device_put(args, device)))
        self.run_seconds += time.perf_counter() - began
        return result

    def _blame_functions(self, error: Exception) -> None:
        """Where a program cannot be made because the learner's functions do not fit together, says so in its words."""
        if self.engine != "episodes":  # block forms have been checked
            return
        try:
            self.check_fit()
        except LearnerError as found:
            raise found from error
        except Exception as again:  # it is the user's own: shown as it came, with where it was
            for note in getattr(again, "__notes__", ()):
                error.add_note(note)


def one_hot_actions(policy: np.ndarray) -> np.ndarray:
    """Actions float [..., k+1] of a randomised policy [..., k+1, A]; nan where it is truly random."""
    sure = policy.max(-1) > 1 - 1e-6
    return np.where(sure, policy.argmax(-1).astype(np.float64), np.nan)
