"""How long a sweep still takes: compilations to come are counted, not only episodes.

Everything is measured in seconds of a worker. A group costs one compilation, unless its program is there already, and
then so much an episode; what is not yet known of a group is taken from the groups that are.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field


@dataclass
class _Work:
    """What is known of a group."""

    episodes: int
    """To play."""
    played: int = 0
    seconds: float = 0.0
    """That they took."""
    compiling: float | None = None
    """When its compilation began, while it goes on."""
    compiled: float | None = None
    """Seconds that the compilation took; 0 if the program was there."""


@dataclass
class Forecast:
    """The time left of a sweep, from what its workers report.

    Example:
        >>> clock = iter([0.0, 5.0, 5.0]).__next__
        >>> forecast = Forecast({"UCB-VI": 1000, "ExpRef": 1000}, workers=1, clock=clock)
        >>> forecast.left() is None  # nothing is known yet
        True
        >>> forecast.begins("UCB-VI")
        >>> forecast.ends("UCB-VI")  # seconds
        5.0
        >>> forecast.plays("UCB-VI", 500, seconds=1.0)
        >>> forecast.left()  # 1 s for 500 episodes, then another compilation (5 s) and 1,000 (2 s)
        8.0
    """

    episodes: Mapping[Hashable, int]
    """Group -> episodes to play."""
    workers: int = 1
    clock: Callable[[], float] = time.monotonic
    _work: dict[Hashable, _Work] = field(init=False)

    def __post_init__(self) -> None:
        """Nothing is known yet."""
        self._work = {group: _Work(episodes) for group, episodes in self.episodes.items()}

    def begins(self, group: Hashable) -> None:
        """A compilation of the group begins."""
        self._work[group].compiling = self.clock()

    def ends(self, group: Hashable) -> float:
        """It ends; returns how long it took."""
        work = self._work[group]
        took = 0.0 if work.compiling is None else self.clock() - work.compiling
        work.compiling = None
        # the small program at the end of a run is no measure of the large one
        work.compiled = took if work.compiled is None else work.compiled
        return took

    def skips(self, group: Hashable, episodes: int) -> None:
        """Episodes that a checkpoint has already."""
        self._work[group].episodes -= episodes

    def plays(self, group: Hashable, episodes: int, seconds: float) -> None:
        """Episodes were played in so many seconds of a worker."""
        work = self._work[group]
        work.played += episodes
        work.seconds += seconds
        if work.compiled is None and work.compiling is None:
            work.compiled = 0.0

    def waiting(self) -> int:
        """Groups whose compilation has not begun, and whose program may not be there."""
        return sum(w.compiled is None and w.compiling is None for w in self._work.values())

    def left(self) -> float | None:
        """Seconds until the end; None while nothing can be said."""
        works = self._work.values()
        rates = [work.seconds / work.played for work in works if work.played]
        compiled = [work.compiled for work in works if work.compiled is not None]
        if not rates or not compiled:
            return None
        usual = sum(rates) / len(rates)
        seconds = 0.0
        for work in works:
            rate = work.seconds / work.played if work.played else usual
            seconds += rate * max(0, work.episodes - work.played)
            if work.compiled is None:
                begun = 0.0 if work.compiling is None else self.clock() - work.compiling
                seconds += max(0.0, sum(compiled) / len(compiled) - begun)
        return seconds / self.workers
