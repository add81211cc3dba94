"""What is done lane by lane beside the episodes: first states, reports and metrics.

Each is computed in the sizes of the lane's own MDP. Where MDPs are padded (`engines.padding`) a tile has lanes of several
sizes: they are taken size by size, by programs of the tile's width, and what is found is put together again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxbandit.engines.beginnings import beginning
from jaxbandit.engines.measuring import measure_lanes, worlds
from jaxbandit.engines.padding import (
    Own,
    alike,
    cut,
    filled,
    joined,
    placed,
    shrunk,
    whole_tile,
    without_lanes,
)
from jaxbandit.learner import Learner, check_report
from jaxbandit.learner.fitting import check_steps
from jaxbandit.mdp import MDP
from jaxbandit.metrics import Metric
from jaxbandit.xla.compat import x64


class TileArrays(NamedTuple):
    """W lanes that run together; leaves are numpy arrays with a leading axis [W]."""

    mdps: MDP
    params: dict[str, np.ndarray]
    keys: np.ndarray
    """uint32 [W, 2]: the words of each lane's key."""
    used: int
    """Lanes that count; the others are copies."""
    device: Any
    own: tuple[Own, ...]
    """H and k of each lane's MDP: those of the arrays, or less where it is padded."""


class Lanewise(ABC):
    """Base of `jaxbandit.engines.runner.Runner`, which sets these."""

    rules: Learner
    """The learner's program."""
    form: Any
    """The functions that the engine calls: those of the learner, or of its block form."""
    num_episodes: int
    """T."""
    sizes: tuple[int, int, int]
    """H, k and A of the program."""
    padded: bool
    """Whether they may be larger than the MDPs' own."""
    mdps: MDP
    """Leaves [G, ...], in the sizes of the program."""
    params: dict[str, np.ndarray]
    """Leaves [G, ...]."""
    metrics: dict[str, Metric]
    own_shapes: dict[Own, Any]
    """Shapes of constants and state of one lane, by its own sizes; known after `beginnings`."""

    @property
    @abstractmethod
    def width(self) -> int:
        """W, the lanes of a tile: from the learner, the sizes and the platform alone."""

    @abstractmethod
    def execute(
        self,
        name: Any,
        function: Callable,
        args: tuple,
        device: Any,
        donate: tuple[int, ...] = (),
        small: bool = False,
    ) -> Any:
        """``function(*args)`` on a device, compiled once per name and shape."""

    def beginnings(self, tile: TileArrays, rules: Any) -> tuple[Any, Any]:
        """The constants and first states of the lanes of a tile, numpy leaves [W, ...]; see `engines.beginnings`.

        ``rules`` are a learner or a block form.
        """
        with x64():
            parts: dict[Own, tuple[np.ndarray, Any]] = {}
            for own, lanes in alike(tile.own).items():
                chosen = whole_tile(lanes, self.width)
                function, args = self._beginning(
                    rules, tile.mdps, tile.params, tile.keys, own, chosen
                )
                name = ("begin", rules.init, own, self.sizes[2], self.width)
                first = self.execute(name, function, args, tile.device, small=True)
                begun = (args[-1], jax.tree.map(np.asarray, first))
                self.own_shapes[own] = without_lanes(begun)
                if not self.padded:
                    return begun
                constants, state = filled(begun, self._program_shapes(rules))
                label = ("pad", rules.pad, self.sizes, self.width)
                args = (state, constants)
                state = self.execute(label, jax.vmap(rules.pad), args, tile.device, small=True)
                parts[own] = (lanes, (constants, state))
            return placed(parts, self.width)

    def _program_shapes(self, rules: Any) -> tuple[Any, Any]:
        """Shapes of constants and state of a lane in the sizes of the program; nothing is run. Needs x64."""
        lanes, room = np.zeros(1, np.int32), self.sizes[:2]
        keys = np.zeros((1, 2), np.uint32)
        function, args = self._beginning(rules, self.mdps, self.params, keys, room, lanes)
        return without_lanes((args[-1], jax.eval_shape(function, *args)))

    def learner_bytes(self, rules: Any) -> int:
        """Bytes of what `beginnings` gives for one lane; nothing is run."""
        with x64():
            leaves = jax.tree.leaves(self._program_shapes(rules))
        return sum(leaf.size * leaf.dtype.itemsize for leaf in leaves)

    def _beginning(
        self,
        rules: Any,
        mdps: MDP,
        params: dict[str, np.ndarray],
        keys: np.ndarray,
        own: Own,
        lanes: np.ndarray,
    ) -> tuple[Callable, tuple]:
        mdps = shrunk(jax.tree.map(lambda x: x[lanes], mdps), own)
        params = {name: value[lanes] for name, value in params.items()}
        fixed = (self.rules.requires, mdps, params, keys[lanes], self.num_episodes, self.rules.name)
        return beginning(rules, *fixed)

    def check_fit(self) -> None:
        """Refuses a learner whose functions do not fit together; nothing is run."""
        with x64(False):
            for own, (constants, state) in self.own_shapes.items():
                check_steps(self.rules, (*own, self.sizes[2]), constants, state)

    def reported(self) -> dict[str, int]:
        """The names of what the learner reports, with their numbers of axes; nothing is run."""
        if self.form.report is None:
            return {}
        with x64():
            _, state = self._program_shapes(self.form)
        found = check_report(self.rules._replace(report=self.form.report), state)
        return {name: len(value.shape) for name, value in found.items()}

    def check_reports(self, report: Any, state: Any) -> None:
        """Refuses a report that would take another's name, before anything runs; ``state`` has the types."""
        for _, small in self.own_shapes.values():
            lane = jax.tree.map(
                lambda own, leaf: jax.ShapeDtypeStruct(own.shape, leaf.dtype), small, state
            )
            for name in check_report(self.rules._replace(report=report), lane):
                if name in self.metrics:
                    raise ValueError(
                        f"learner {self.rules.name!r}: report: {name!r}; accepted: names other than those "
                        f"of the metrics, {', '.join(self.metrics)}"
                    )

    def reports(
        self, tile: TileArrays, report: Any, state: Any, axis: int = 0
    ) -> dict[str, np.ndarray]:
        """What the learner reports of each lane, leaves [W, ...]."""
        if report is None:
            return {}

        def lanes(state, rest):
            del rest
            return jax.vmap(report, axis, axis_size=self.width)(state[0])

        shapes = {own: (state,) for own, (_, state) in self.own_shapes.items()}
        return self._told(tile, ("report", report), lanes, (state,), shapes, lambda *_: (), axis)

    def measure(
        self,
        tile: TileArrays,
        state: Any,
        policy: np.ndarray,
        constants: Any,
        real: Any,
        axis: int = 0,
    ) -> dict[str, np.ndarray]:
        """All metrics of all lanes, [W, ...]; ``policy`` has its lanes in front, the others theirs on ``axis``."""
        measured = measure_lanes(self.metrics, axis)

        def lanes(begun, world):
            return measured(begun[1], world, begun[0])

        def rest(own: Own, lanes: np.ndarray) -> Any:
            mdps = shrunk(jax.tree.map(lambda x: x[lanes], tile.mdps), own)
            return worlds(mdps, policy[lanes, : own[0], : own[1] + 1], (), real)

        name = ("metrics", tuple(self.metrics.items()), self.rules, axis)
        begun = (constants, state)
        return self._told(tile, name, lanes, begun, self.own_shapes, rest, axis)

    def _told(
        self,
        tile: TileArrays,
        name: tuple,
        function: Callable,
        begun: tuple,
        shapes: Mapping[Own, Any],
        rest: Callable[[Own, np.ndarray], Any],
        axis: int,
    ) -> dict[str, np.ndarray]:
        """``function(begun, rest)`` of W lanes, where each has the sizes of its own MDP; nan beyond them."""
        parts = {}
        for own, lanes in alike(tile.own).items():
            chosen = whole_tile(lanes, self.width)
            small = shapes[own] if self.padded else None

            def looked(begun, chosen, rest, small=small):
                return function(begun if small is None else cut(begun, small, chosen, axis), rest)

            args = (begun, chosen, rest(own, chosen))
            found = self.execute((*name, own, self.sizes), looked, args, tile.device, small=True)
            parts[own] = (lanes, dict(found))
        return joined(parts, self.width)
