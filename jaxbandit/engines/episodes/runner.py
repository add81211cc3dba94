"""Drives the episode engine: chunks of episodes on the devices, sums of regret in float64 on the host or there.

Sums are made strictly in order, so that they do not depend on how episodes were cut into calls. On the host by NumPy, or
on the device, where a turn of a loop adds 32 episodes in one kernel. Both add the same numbers in the same order, so their
bits are equal."""

from __future__ import annotations

from functools import cached_property, partial
from typing import Any, NoReturn

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.engines.episodes import loop
from jaxbandit.engines.episodes.environment import MOST_OUTCOMES, Sizes, make_episode_world
from jaxbandit.engines.episodes.loop import explain
from jaxbandit.engines.runner import (
    Carry,
    Runner,
    TileArrays,
    empty_curves,
    one_hot_actions,
    to_32_bits,
)
from jaxbandit.errors import LearnerError
from jaxbandit.kernels import find_kernel
from jaxbandit.types import Array
from jaxbandit.xla.compat import x64
from jaxbandit.xla.programs import PROGRAMS

MOST_EPISODES = 2**31 - 1


class EpisodeRunner(Runner):
    """Runs any learner episode by episode, in 32 bits whatever the process-wide setting."""

    engine = "episodes"

    def __init__(self, *args: Any, **kwargs: Any):
        """See `jaxbandit.engines.make_runner`."""
        super().__init__(*args, **kwargs)
        if not 1 <= self.num_episodes <= MOST_EPISODES:
            raise ValueError(
                f"num_episodes: {self.num_episodes}; accepted on the episode engine: 1..{MOST_EPISODES} "
                "(the block engine runs longer horizons)"
            )
        outcomes = self.mdps.num_outcomes
        if outcomes > MOST_OUTCOMES:
            raise ValueError(
                f"MDP: {outcomes} outcomes per state and action; accepted on the episode engine: "
                f"at most {MOST_OUTCOMES}"
            )
        self.all_sizes = Sizes(*self.sizes, outcomes)
        self._lanes: dict[int, loop.Lanes] = {}

    @property
    def form(self) -> Any:
        """The learner."""
        return self.rules

    @cached_property
    def kernel(self) -> Any:
        """The fast form of the learner that it runs, if there is one."""
        return find_kernel(self.rules, self.sizes, self.platform.name)

    @cached_property
    def width(self) -> int:
        """The kernel's or the platform's, halved until a tile takes no more than it may there; without a kernel, until the
        learner's tables fit into a cache."""
        width = (self.kernel and self.kernel.lanes) or self.platform.lanes
        most, cache = self.platform.tile_bytes, None if self.kernel else self.platform.cache_bytes
        while width > 1 and (
            (most is not None and width * self.bytes_per_lane > most)
            or (cache is not None and width * self.learner_bytes() > cache)
        ):
            width //= 2
        return width

    @cached_property
    def bytes_per_lane(self) -> int:
        """Estimate: the MDP's tables, the learner's state twice, regrets of a call, words and policies of a stretch."""
        H, k, A = self.sizes
        M = self.mdps.num_outcomes
        tables = 4 * H * (k + 1) * A * (3 * M + k + 1)
        return (
            tables
            + 3 * self.learner_bytes()
            + 16 * self.platform.chunk
            + loop.STRETCH * H * (8 + 4 * (k + 1) * A)
        )

    def _begin(self, tile: TileArrays) -> tuple[Any, Any]:
        return to_32_bits(self.name, self.initial_states(tile))

    def lanes(self, tile: TileArrays) -> loop.Lanes:
        """What the lanes of a tile are, on its device."""
        if id(tile) not in self._lanes:
            constants, _ = self._begin(tile)
            keys = (tile.keys[:, 0], tile.keys[:, 1])
            found = loop.Lanes(make_episode_world(tile.mdps), keys, constants)
            with x64(False):
                self._lanes[id(tile)] = jax.device_put(found, tile.device)
        return self._lanes[id(tile)]

    def start_tile(self, tile: TileArrays) -> Carry:
        """The carry before the first episode."""
        _, state = self._begin(tile)
        self.reported()
        # A wrong first policy is told before anything runs.
        _, _, policy, gap = self._play(tile, state, 0, 0)
        self._refuse(tile, policy, gap, 1)
        return {
            "episode": np.int64(0),
            "state": state,
            "total": np.zeros(self.width),
            "curve": np.full((self.width, self.points.size), np.nan),
            "metrics": empty_curves(self._measure(tile, state, policy), self.points.size),
        }

    def step_tile(self, tile: TileArrays, carry: Carry) -> Carry:
        """At most ``chunk_size`` episodes, in calls of a fixed shape."""
        most = self.chunk_size or self.platform.chunk
        until = min(int(carry["episode"]) + most, self.num_episodes)
        while (done := int(carry["episode"])) < until:
            count = min(until - done, self.platform.chunk)
            if self.metrics:  # a call ends where the state is looked at
                due = self.points[np.searchsorted(self.points, done, side="right")]
                count = min(count, int(due) - done)
            carry = self._call(tile, carry, count)
        return carry

    def _call(self, tile: TileArrays, carry: Carry, count: int) -> Carry:
        done = int(carry["episode"])
        state, regrets, policy, gap = self._play(tile, carry["state"], done, count)
        due = np.flatnonzero((self.points > done) & (self.points <= done + count))
        sums = self._sums(tile, carry["total"], regrets, count)
        total = sums[count - 1].copy()
        if np.isnan(total[: tile.used]).any():
            self._blame(tile, carry, np.asarray(regrets)[:count, : tile.used])
        self._refuse(tile, policy, gap, done + count + 1)
        curve = carry["curve"].copy()
        curve[:, due] = sums[self.points[due] - done - 1].T
        metrics = dict(carry["metrics"])
        if self.metrics and due.size and self.points[due[-1]] == done + count:
            for name, value in self._measure(tile, state, policy).items():
                metrics[name] = metrics[name].copy()
                metrics[name][:, due[-1]] = value
        return {
            "episode": np.int64(done + count),
            "state": state,
            "total": total,
            "curve": curve,
            "metrics": metrics,
        }

    def _sums(self, tile: TileArrays, total: np.ndarray, regrets: Any, count: int) -> np.ndarray:
        """The sums [>= count, W] after each of ``count`` episodes, from the sum before and regrets [chunk, W]."""
        if not self.platform.sums_on_device:
            sums = np.concatenate([total[None], np.asarray(regrets)[:count].astype(np.float64)])
            return np.cumsum(sums, axis=0)[1:]
        with x64():
            args = (total, regrets, np.int32(count))
            return np.asarray(self.execute("sums", device_sums, args, tile.device, small=True))

    def _measure(self, tile: TileArrays, state: Any, policy: Any) -> dict[str, np.ndarray]:
        if not self.metrics:
            return {}
        with x64(False):
            constants = self.lanes(tile).constants
            seen = (first_axis(policy), constants, np.float32)
            return self.evaluate_metrics(tile, state, *seen)

    def tile_curves(self, carry: Carry) -> np.ndarray:
        """The curves so far."""
        return carry["curve"]

    def _play(self, tile: TileArrays, state: Any, done: int, count: int) -> tuple[Any, ...]:
        """``count`` episodes: the state, their regrets [chunk, W], the next policies (lanes last), their regrets [W].

        All but the last are on the device. Where the platform wants it, the state is handed over and not held twice.
        """
        with x64(False):
            name, function, args, donate = self._program(tile, state, done, count)
            found = self.execute(name, function, args, tile.device, donate)
        return (*found[:3], np.asarray(found[3], np.float64))

    def _program(self, tile: TileArrays, state: Any, done: int, count: int) -> tuple[Any, ...]:
        """Name, function and arguments of the program that plays episodes, and which of them it may overwrite."""
        keys = self.key("act", "update", "feedback")
        name = ("episodes", keys, self.kernel is not None, self.all_sizes)
        function = partial(loop.run_chunk, self.rules, self.all_sizes)
        args = (self.lanes(tile), state, jnp.uint32(done), jnp.int32(count))
        return name, function, args, (1,) if self.platform.donates else ()

    def engine_digest(self) -> str:
        """The digest of the program that plays episodes."""
        tile = self.tiles[0]
        _, state = self._begin(tile)
        with x64(False):
            name, function, args, donate = self._program(tile, state, 0, 0)
            return PROGRAMS.digest(name, function, args, tile.device, self.platform, donate=donate)

    def _refuse(self, tile: TileArrays, policy: Any, gap: np.ndarray, episode: int) -> None:
        """What is no policy has the regret nan: it stops the run."""
        lanes = np.isnan(gap[: tile.used])
        if lanes.any():
            lane = int(np.argmax(lanes))
            raise explain(self.name, first_axis(policy)[lane], self.sizes[2], episode)

    def _blame(self, tile: TileArrays, carry: Carry, regrets: np.ndarray) -> NoReturn:
        """Raises what is wrong with the first episode of a call whose regret is nan; always raises."""
        done = int(carry["episode"])
        wrong = done + int(np.argmax(np.isnan(regrets).any(axis=1)))
        state = carry["state"]
        if self.platform.donates:  # the state of then is gone: from the first episode again
            done, state = 0, self._begin(tile)[1]
        while done < wrong:  # up to the wrong episode: then its policy is the next one
            count = min(wrong - done, self.platform.chunk)
            state = self._play(tile, state, done, count)[0]
            done += count
        _, _, policy, gap = self._play(tile, state, done, 0)
        self._refuse(tile, policy, gap, wrong + 1)
        raise LearnerError(
            f"learner {self.name!r}: what it played in episode {wrong + 1} was no policy, and is one when it plays "
            "again; accepted: pure functions, which read their arguments and nothing else"
        )

    def tile_episodes(self, carry: Carry) -> int:
        """Episodes finished in every lane."""
        return int(carry["episode"])

    def tile_result(self, tile: TileArrays, carry: Carry) -> dict[str, np.ndarray]:
        """Curves and diagnostics."""
        carry["state"], _, last, gap = self._play(tile, carry["state"], int(carry["episode"]), 0)
        self._refuse(tile, last, gap, int(carry["episode"]) + 1)
        policy = first_axis(last)
        actions = policy if np.issubdtype(policy.dtype, np.integer) else one_hot_actions(policy)
        found = {
            **carry["metrics"],
            "regret": carry["curve"],
            "final_gap": gap,
            "final_policy": actions,
        }
        with x64():  # as the block engine: what a learner counts may be multiplied there
            return found | self.reports(tile, carry["state"])


def first_axis(policy: Any) -> np.ndarray:
    """Policies with their lanes in front, on the host."""
    return np.moveaxis(np.asarray(policy), -1, 0)


TERMS = 32
"""Episodes that one kernel adds."""


def device_sums(total: Array, regrets: Array, count: Array) -> jax.Array:
    """float64 [chunk, W]: the sums after each episode, from the sum [W] before and regrets [chunk, W]; rows from ``count``
    on repeat the last sum. Needs x64.

    Example:
        >>> with x64():
        ...     device_sums(np.ones(1), np.full((4, 1), 0.5, np.float32), np.int32(2))[:, 0].tolist()
        [1.5, 2.0, 2.0, 2.0]
    """

    def add(total, turn):
        number, regret = turn
        total = total + jnp.where(number < count, regret, 0)
        return total, total

    turns = (jnp.arange(len(regrets), dtype=jnp.int32), jnp.asarray(regrets).astype(jnp.float64))
    return jax.lax.scan(add, jnp.asarray(total), turns, unroll=TERMS)[1]
