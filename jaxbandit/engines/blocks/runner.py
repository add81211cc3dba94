"""Drives the block engine: tiles of lanes in float64, with x64 switched on for these calls only.

Curves are made on the host. The regret of a lane after episode t is that of all arms before the one that t falls in,
plus t's share of that one. Sums are carried in float64 and made arm after arm, so they are the same additions however
blocks are cut into calls."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

import jax
import numpy as np

from jaxbandit.engines.blocks import loop
from jaxbandit.engines.blocks.loop import check_shapes, complaint
from jaxbandit.engines.blocks.machine import block_sizes, merge_outcomes
from jaxbandit.engines.runner import Carry, Runner, TileArrays, empty_curves, one_hot_actions
from jaxbandit.engines.tables import exact_tables, optimal_value
from jaxbandit.mdp import MDP
from jaxbandit.xla.compat import x64
from jaxbandit.xla.programs import PROGRAMS


class BlockRunner(Runner):
    """Runs a learner that has a block form."""

    engine = "blocks"

    def __init__(self, *args: Any, **kwargs: Any):
        """See `jaxbandit.engines.make_runner`."""
        super().__init__(*args, **kwargs)
        if self.rules.blocks is None:
            raise ValueError(
                f"engine: 'blocks'; learner {self.name!r} has no block form and runs on the 'episodes' engine"
            )
        if not 1 <= self.num_episodes <= 2**53:
            raise ValueError(
                f"num_episodes: {self.num_episodes}; accepted on the block engine: 1..2^53"
            )
        self._prepared: dict[int, tuple] = {}

    @property
    def form(self) -> Any:
        """The learner's block form."""
        return self.rules.blocks

    @classmethod
    def table_sizes(cls, mdp: MDP) -> tuple[int, ...]:
        """Pools and outcomes of the count machine."""
        return block_sizes(mdp)

    @property
    def width(self) -> int:
        """W, the lanes of a tile."""
        return self.platform.block_lanes

    @cached_property
    def kinds(self) -> list[tuple[int, int]]:
        """The sizes of each group's tables of outcomes."""
        return [block_sizes(_of_lane(self.mdps, g)) for g in range(self.groups)]

    def lanes_of_tiles(self) -> list[np.ndarray]:
        """Only lanes whose MDPs have tables of one size share tiles."""
        kinds = np.repeat(self.kinds, self.seeds, axis=0)
        alike = [np.flatnonzero((kinds == one).all(-1)) for one in dict.fromkeys(self.kinds)]
        return [
            some[first : first + self.width]
            for some in alike
            for first in range(0, len(some), self.width)
        ]

    @property
    def bytes_per_lane(self) -> int:
        """Estimate: the learner's state, the curve, what a call plays, and the tables and counts of the arms."""
        H, k, A = self.sizes
        P, U = map(max, zip(*self.kinds, strict=True))
        arms, states = k * A, 1 + P + k
        world = H * states * U * (A + 3) + H * (k + 1) * A * (k + 2)
        tables = 3 * (H + arms) * states * U
        counts = arms * (2 * states + 16)
        played = 3 * loop.BLOCKS * arms
        return 3 * self.learner_bytes() + 8 * (self.points.size + played + world + tables + counts)

    def prepare(self, tile: TileArrays) -> tuple[loop.BlockWorld, Any, np.ndarray, Any]:
        """What the lanes of a tile are given: the world, the learner's constants, words of keys, and the first states."""
        if id(tile) not in self._prepared:
            lanes = [_of_lane(tile.mdps, lane) for lane in range(self.width)]
            gap, transition = map(np.stack, zip(*map(exact_tables, lanes), strict=True))
            world = loop.BlockWorld(
                outcomes=jax.tree.map(lambda *x: np.stack(x), *map(merge_outcomes, lanes)),
                gap=gap,
                transition=transition,
                optimum=np.array([optimal_value(mdp) for mdp in lanes]),
            )
            constants, first = self.initial_states(tile)
            with x64():
                one, fixed = _of_lane((first, constants), 0)
                check_shapes(self.name, self.form, one, fixed, self.sizes)
                kept = jax.device_put((world, constants, tile.keys), tile.device)
            self._prepared[id(tile)] = (*kept, first)
        return self._prepared[id(tile)]

    def start_tile(self, tile: TileArrays) -> Carry:
        """The carry of a tile before the first episode; lanes that are padding have nothing left to play."""
        carry = self._first_carry(tile)
        self.reported()
        measured = {}
        if self.metrics:
            measured = self._measure(tile, carry["state"], self._play(tile, carry, 0)[1])
        return {**carry, "metrics": empty_curves(measured, self.points.size), "measured": measured}

    def _first_carry(self, tile: TileArrays) -> Carry:
        padding = np.arange(self.width) >= tile.used
        return {
            "state": self.prepare(tile)[-1],
            "played": np.where(padding, float(self.num_episodes), 0.0),
            "block": np.zeros(self.width, np.uint32),
            "total": np.zeros(self.width),
            "curve": np.zeros((self.width, self.points.size)),
        }

    def step_tile(self, tile: TileArrays, carry: Carry) -> Carry:
        """At most ``chunk_size`` blocks in every lane."""
        left = self.chunk_size or loop.BLOCKS
        most = 1 if self.metrics else loop.BLOCKS  # the state is looked at after every block
        while left > 0 and self.tile_episodes(carry) < self.num_episodes:
            standing, following, played = self._play(tile, carry, min(left, most))
            curve, total = extend(carry["curve"], carry["total"], self.points, *played)
            measured = self._measure(tile, standing.state, following) if self.metrics else {}
            metrics = self._recorded(carry, standing.played, measured)
            carry = {"metrics": metrics, "measured": measured, "total": total, "curve": curve}
            carry |= standing._asdict()
            left -= most
        return carry

    def program(self, tile: TileArrays, carry: Carry, limit: int) -> tuple[Callable, tuple]:
        """The function that plays at most ``limit`` blocks of a tile, and its arguments."""
        *given, _ = self.prepare(tile)
        standing = loop.Standing(carry["state"], carry["played"], carry["block"])
        numbers = np.float64(self.num_episodes), np.int32(limit)
        function = partial(loop.advance, self.form, self.rules.feedback)
        return function, (*given, *numbers, standing)

    def _play(
        self, tile: TileArrays, carry: Carry, limit: int
    ) -> tuple[loop.Standing, tuple[np.ndarray, np.ndarray], loop.PlayedArms]:
        """At most ``limit`` blocks, by the one program: where the lanes stand, the policies [W, H, k+1, A] that they would
        play next with their regrets [W], and what was played."""
        function, args = self.program(tile, carry, limit)
        with x64():
            found = self.execute(self._name, function, args, tile.device)
        standing, wrong, (blocks, regret), arms, count = jax.tree.map(np.asarray, found)
        if np.any(wrong):
            lane = int(np.argmax(wrong))
            played, block = int(standing.played[lane]), int(standing.block[lane]) + 1
            raise complaint(self.name, played, block, _of_lane(blocks, lane))
        lanes, arm = np.arange(self.width), np.argmax(blocks.episodes > 0, axis=-1)
        policy = blocks.policy.copy()
        policy[lanes, blocks.stage] = blocks.rows[lanes, arm]
        following = policy, regret[lanes, arm]
        return standing, following, jax.tree.map(lambda x: x[: int(count)], arms)

    @property
    def _name(self) -> Any:
        return "blocks", self.key("next_block", "absorb"), self.rules.feedback

    def engine_digest(self) -> str:
        """The digest of the program that plays episodes."""
        tile = self.tiles[0]
        function, args = self.program(tile, self._first_carry(tile), 0)
        with x64():
            return PROGRAMS.digest(self._name, function, args, tile.device, self.platform)

    def _measure(self, tile: TileArrays, state: Any, following: tuple) -> dict[str, np.ndarray]:
        """The metrics of a state, and of what is played from it."""
        constants = self.prepare(tile)[1]
        with x64():
            return self.evaluate_metrics(tile, state, following[0], constants, np.float64)

    def _recorded(
        self, carry: Carry, played: np.ndarray, measured: dict[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        """Inside a block the state is that before it; where it ends with a point, that after it."""
        found = {name: values.copy() for name, values in carry["metrics"].items()}
        for lane in range(self.width if self.metrics else 0):
            before, after = carry["played"][lane], played[lane]
            inside = (self.points > before) & (self.points <= after)
            for name, values in found.items():
                values[lane, inside] = carry["measured"][name][lane]
                ends = inside & (self.points == after) & (after < self.num_episodes)
                values[lane, ends] = measured[name][lane]
        return found

    def tile_curves(self, carry: Carry) -> np.ndarray:
        """The curves so far."""
        ahead = self.points[None] > carry["played"][:, None]
        return np.where(ahead, np.nan, carry["curve"])

    def tile_episodes(self, carry: Carry) -> int:
        """Episodes finished in every lane of a tile."""
        return int(np.min(carry["played"]))

    def tile_result(self, tile: TileArrays, carry: Carry) -> dict[str, np.ndarray]:
        """Curves and diagnostics, leaves [W, ...]; what is not yet played has cost nothing."""
        _, (policy, regret), _ = self._play(tile, carry, 0)
        ahead = self.points[None] > carry["played"][:, None]
        found = {
            **carry["metrics"],
            "regret": np.where(ahead, carry["total"][:, None], carry["curve"]),
            "final_gap": regret,
            "final_policy": one_hot_actions(policy),
        }
        with x64():
            return found | self.reports(tile, carry["state"])


def _of_lane(tree: Any, lane: int) -> Any:
    return jax.tree.map(lambda x: x[lane], tree)


def extend(
    curve: np.ndarray,
    total: np.ndarray,
    points: np.ndarray,
    begin: np.ndarray,
    length: np.ndarray,
    regret: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """The curves [L, W] at episodes ``points`` [W] and the totals [L], after the arms [n, L, B] of some blocks.

    Example:
        >>> arms = (np.array([[[0.0, 3.0]]]), np.array([[[3.0, 5.0]]]), np.array([[[0.0, 0.5]]]))
        >>> curve, total = extend(np.zeros((1, 3)), np.zeros(1), np.array([2, 4, 8]), *arms)
        >>> curve.tolist(), total.tolist()
        ([[0.0, 0.5, 2.5]], [2.5])
    """
    curve, total = curve.copy(), total.copy()
    ends = points.astype(np.float64)
    for lane in range(len(total)):
        arms = length[:, lane] > 0
        if not arms.any():
            continue
        start, size, cost = (x[:, lane][arms] for x in (begin, length, regret))
        before = np.cumsum(np.concatenate([total[lane : lane + 1], cost * size]))
        arm = np.searchsorted(start, ends, side="left") - 1
        inside = (arm >= 0) & (ends <= start[-1] + size[-1])
        arm = arm[inside]
        curve[lane, inside] = before[arm] + cost[arm] * (ends[inside] - start[arm])
        total[lane] = before[-1]
    return curve, total
