"""When a sweep writes down the regret: a `Recording` is a value, the same for all learners.

Cumulative regret is recorded *after* each of its episodes, called points, and every recording ends
with the last episode T. Memory and files grow with the number of points, never with T.

    linear(200)           200 points, T/200 apart
    log(100)              100 points, the same ratio apart (fewer where two would be one episode)
    explicit([10, 1000])  these episodes, and T
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxbandit.checks import MOST_EPISODES, whole

MOST_POINTS = 10**7
POINTS = "a whole number of points"


@dataclass(frozen=True)
class Recording:
    """Which episodes are recorded; made by `linear`, `log` or `explicit`."""

    kind: str
    """"linear", "log" or "explicit"."""
    count: int
    """How many points are asked for."""
    first: int = 1
    """The first point of a "log" recording."""
    episodes: tuple[int, ...] = ()
    """The points of an "explicit" recording."""

    def points(self, num_episodes: int) -> np.ndarray:
        """The recorded episodes, int64, increasing, within 1..T and ending with T.

        Example:
            >>> import jaxbandit as jb
            >>> jb.record.linear(4).points(10).tolist()
            [3, 5, 8, 10]
        """
        total = whole("num_episodes", num_episodes, at_most=MOST_EPISODES)
        found: Any = self.episodes
        if self.kind == "linear":
            # Python integers: total * j may pass 2^63
            found = [-(-total * j // self.count) for j in range(1, self.count + 1)]
        elif self.kind == "log":
            found = np.rint(np.geomspace(min(self.first, total), total, self.count))
        elif found and found[-1] > total:
            raise ValueError(f"record: episode {found[-1]}; accepted: 1..{total} (num_episodes)")
        inside = np.clip(np.asarray(found, np.int64), 1, total)
        return np.unique(np.append(inside, np.int64(total)))

    def describe(self) -> dict[str, Any]:
        """The recording as plain data, for configurations."""
        found: dict[str, Any] = {"kind": self.kind, "count": self.count}
        if self.kind == "log":
            found["first"] = self.first
        elif self.kind == "explicit":
            found["episodes"] = list(self.episodes)
        return found


def linear(count: int = 200) -> Recording:
    """Evenly spaced: the episodes ceil(j T / count), j = 1..count (all episodes if T < count).

    Example:
        >>> import jaxbandit as jb
        >>> jb.record.linear(5).points(1000).tolist()
        [200, 400, 600, 800, 1000]
    """
    return Recording("linear", whole("count", count, at_most=MOST_POINTS, what=POINTS))


def log(count: int = 100, first: int = 1) -> Recording:
    """Log-spaced from ``first`` to T; points that round to the same episode are merged.

    Example:
        >>> import jaxbandit as jb
        >>> jb.record.log(4).points(1000).tolist()
        [1, 10, 100, 1000]
    """
    start = whole("first", first, at_most=MOST_EPISODES, what="an episode")
    return Recording("log", whole("count", count, at_most=MOST_POINTS, what=POINTS), first=start)


def explicit(episodes: Iterable[int]) -> Recording:
    """Exactly these episodes, and T.

    Example:
        >>> import jaxbandit as jb
        >>> jb.record.explicit([5, 50]).points(100).tolist()
        [5, 50, 100]
    """
    several = isinstance(episodes, Iterable) and getattr(episodes, "ndim", 1) > 0
    given = list(episodes) if several else [episodes]
    listed = [whole("episodes", e, at_most=MOST_EPISODES, what="whole numbers") for e in given]
    if any(b <= a for a, b in itertools.pairwise(listed)):
        raise ValueError(f"episodes: {given}; accepted: whole numbers, strictly increasing")
    return Recording("explicit", len(listed), episodes=tuple(listed))
