"""Drives the block engine: tiles of lanes in float64, with x64 switched on for these calls only.

Curves are made on the host. The regret of a lane after episode t is that of all arms before the one that t falls in,
plus t's share of that one. Sums are carried in float64 and made arm after arm, so they are the same additions however
blocks are cut into calls."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.engines.blocks import loop
from jaxbandit.engines.blocks.loop import check_shapes, complaint
from jaxbandit.engines.blocks.outcomes import block_sizes, merge_outcomes
from jaxbandit.engines.runner import Carry, Runner, TileArrays, empty_curves, one_hot_actions
from jaxbandit.engines.tables import exact_tables, optimal_value
from jaxbandit.mdp import MDP
from jaxbandit.xla.compat import x64
from jaxbandit.xla.programs import PROGRAMS
from jaxbandit.xla.threefry import fold_in

KEY_ROLE = 2
"""Lanes fold this into their key; the episode engine folds in 0 and 1, ``init`` gets 3 on both."""


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
        lanes = np.arange(self.groups * self.seeds)
        kinds = [self.kinds[lane // self.seeds] for lane in lanes]
        alike = [lanes[[kind == one for kind in kinds]] for one in dict.fromkeys(kinds)]
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
        learner = self.learner_bytes()
        world = 8 * H * states * U * (A + 3) + 8 * H * (k + 1) * A * (k + 2)
        tables = 16 * (H + arms) * states * U
        return (
            3 * learner
            + 8 * self.points.size
            + 24 * loop.BLOCKS * arms
            + world
            + tables
            + 8 * arms * (2 * states + 16)
        )

    def prepare(self, tile: TileArrays) -> tuple[loop.BlockWorld, Any, Any, Any]:
        """What the lanes of a tile are given: the world, the learner's constants and first states, and key words."""
        if id(tile) not in self._prepared:
            lanes = [_of_lane(tile.mdps, lane) for lane in range(self.width)]
            known = [merge_outcomes(mdp) for mdp in lanes]
            exact = [exact_tables(mdp) for mdp in lanes]
            world = loop.BlockWorld(
                outcomes=jax.tree.map(lambda *x: np.stack(x), *known),
                gap=np.stack([gap for gap, _ in exact]),
                transition=np.stack([transition for _, transition in exact]),
                optimum=np.array([optimal_value(mdp) for mdp in lanes]),
            )
            constants, first = self.initial_states(tile)
            with x64():
                one, fixed = _of_lane(first, 0), _of_lane(constants, 0)
                check_shapes(self.name, self.form, one, fixed, self.sizes)
                words = self.execute(
                    "block keys", _block_keys, (tile.keys,), tile.device, small=True
                )
                kept = jax.device_put((world, constants, words), tile.device)
            self._prepared[id(tile)] = (kept[0], kept[1], first, kept[2])
        return self._prepared[id(tile)]

    def start_tile(self, tile: TileArrays) -> Carry:
        """The carry of a tile before the first episode; lanes that are padding have nothing left to play."""
        carry = self._first_carry(tile)
        self.reported()
        measured = {}
        if self.metrics:
            measured = self._measure(tile, carry["state"], self._next(tile, carry))
        return {**carry, "metrics": empty_curves(measured, self.points.size), "measured": measured}

    def _first_carry(self, tile: TileArrays) -> Carry:
        _, _, first, _ = self.prepare(tile)
        padding = np.arange(self.width) >= tile.used
        return {
            "state": first,
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
            carry = self._call(tile, carry, min(left, most))
            left -= most
        return carry

    def program(self, tile: TileArrays, carry: Carry, limit: int) -> tuple[Callable, tuple]:
        """The function that plays at most ``limit`` blocks of a tile, and its arguments."""
        world, constants, _, words = self.prepare(tile)
        standing = loop.Standing(
            state=carry["state"],
            played=carry["played"],
            block=carry["block"],
            wrong=np.zeros(self.width, bool),
        )
        numbers = np.float64(self.num_episodes), np.int32(limit)
        function = partial(loop.advance, self.form, self.rules.feedback)
        return function, (world, constants, words, *numbers, standing)

    def _play(
        self, tile: TileArrays, carry: Carry, limit: int
    ) -> tuple[loop.Standing, loop.PlayedArms, loop.NextBlocks]:
        """At most ``limit`` blocks, by the one program: where the lanes stand, what was played, and what is next."""
        function, args = self.program(tile, carry, limit)
        with x64():
            found = self.execute(self._name, function, args, tile.device)
        standing, arms, count, following = jax.tree.map(np.asarray, found)
        if np.any(standing.wrong):
            lane = int(np.argmax(standing.wrong))
            played, block = int(standing.played[lane]), int(standing.block[lane]) + 1
            raise complaint(self.name, played, block, _of_lane(following.blocks, lane))
        return standing, jax.tree.map(lambda x: x[: int(count)], arms), following

    @property
    def _name(self) -> Any:
        return "blocks", self.key("next_block", "absorb"), self.rules.feedback

    def engine_digest(self) -> str:
        """The digest of the program that plays episodes."""
        tile = self.tiles[0]
        function, args = self.program(tile, self._first_carry(tile), 0)
        with x64():
            return PROGRAMS.digest(self._name, function, args, tile.device, self.platform)

    def _next(self, tile: TileArrays, carry: Carry) -> loop.NextBlocks:
        """What the lanes would play next."""
        return self._play(tile, carry, 0)[2]

    def _call(self, tile: TileArrays, carry: Carry, limit: int) -> Carry:
        standing, played, following = self._play(tile, carry, limit)
        curve, total = extend(carry["curve"], carry["total"], self.points, *played)
        measured = self._measure(tile, standing.state, following) if self.metrics else {}
        return {
            "metrics": self._recorded(carry, standing.played, measured),
            "measured": measured,
            "state": standing.state,
            "played": standing.played,
            "block": standing.block,
            "total": total,
            "curve": curve,
        }

    def _measure(
        self, tile: TileArrays, state: Any, following: loop.NextBlocks
    ) -> dict[str, np.ndarray]:
        """The metrics of a state, and of what is played from it."""
        _, constants, _, _ = self.prepare(tile)
        policy, _ = self._next_policies(following)
        with x64():
            return self.evaluate_metrics(tile, state, policy, constants, np.float64)

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

    def _next_policies(self, following: loop.NextBlocks) -> tuple[np.ndarray, np.ndarray]:
        """The policies that would be played next, [W, H, k+1, A], and their regrets [W]."""
        blocks, lanes = following.blocks, np.arange(self.width)
        arm = np.argmax(blocks.episodes > 0, axis=-1)
        policy = blocks.policy.copy()
        policy[lanes, blocks.stage] = blocks.rows[lanes, arm]
        return policy, following.regret[lanes, arm]

    def tile_episodes(self, carry: Carry) -> int:
        """Episodes finished in every lane of a tile."""
        return int(np.min(carry["played"]))

    def tile_result(self, tile: TileArrays, carry: Carry) -> dict[str, np.ndarray]:
        """Curves and diagnostics, leaves [W, ...]; what is not yet played has cost nothing."""
        policy, regret = self._next_policies(self._next(tile, carry))
        ahead = self.points[None] > carry["played"][:, None]
        found = {
            **carry["metrics"],
            "regret": np.where(ahead, carry["total"][:, None], carry["curve"]),
            "final_gap": regret,
            "final_policy": one_hot_actions(policy),
        }
        with x64():
            return found | self.reports(tile, carry["state"])


def _block_keys(words):
    """The words of fold_in(key, KEY_ROLE) of every lane."""
    return fold_in((words[:, 0], words[:, 1]), jnp.full(words.shape[:1], KEY_ROLE, jnp.uint32))


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
        start, size, cost = (x[:, lane].ravel() for x in (begin, length, regret))
        arms = np.flatnonzero(size > 0)
        if not arms.size:
            continue
        start, size, cost = start[arms], size[arms], cost[arms]
        before = np.cumsum(np.concatenate([total[lane : lane + 1], cost * size]))
        last = start[-1] + size[-1]
        inside = slice(*np.searchsorted(ends, [start[0], last], side="right"))
        arm = np.searchsorted(start, ends[inside], side="left") - 1
        curve[lane, inside] = before[arm] + cost[arm] * (ends[inside] - start[arm])
        total[lane] = before[-1]
    return curve, total
