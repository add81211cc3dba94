"""What a sweep will run, and how long it takes: a `Plan` before it starts, a `Forecast` while it runs."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from jaxbandit.sweeps.lanes import Group, Lane, Tile, format_bytes, make_tile_runner
from jaxbandit.sweeps.options import Settings
from jaxbandit.tabular import write_table

LONGEST = 30
"""Letters of a name in the text of a plan."""
ENOUGH = 1.0
"""Seconds of a tile from which its whole length is estimated."""


@dataclass(frozen=True)
class Plan:
    """What a sweep will run; ``print(plan)`` lists it."""

    groups: tuple[Group, ...]
    tiles: tuple[Tile, ...]
    num_episodes: int
    workers: int
    device_bytes: int | None = None
    """Memory of a device that has its own and says so; else None."""
    seconds: float | None = None
    """About how long the sweep takes, compiling included; None if it was not measured."""

    @property
    def num_lanes(self) -> int:
        """Lanes to run (those that are finished already are not counted)."""
        return sum(len(tile.lanes) for tile in self.tiles)

    @property
    def compilations(self) -> int:
        """Programs that are compiled: one for each group that has something to run."""
        return len({tile.group for tile in self.tiles})

    @property
    def peak_bytes(self) -> int:
        """Estimated memory of the tiles that run at the same time."""
        each = sorted((self.groups[tile.group].tile_bytes for tile in self.tiles), reverse=True)
        return sum(each[: self.workers])

    def __str__(self) -> str:
        """A table with a line per learner and engine, then totals."""
        head = ["learners", "engine", "sizes (H, k, A)", "lanes", "tiles", "memory of a tile"]
        rows = []
        for name, engine in dict.fromkeys((group.name, group.engine) for group in self.groups):
            mine = {
                index: group
                for index, group in enumerate(self.groups)
                if (group.name, group.engine) == (name, engine)
            }
            sizes = sorted({group.sizes[:3] for group in mine.values()})
            shown = str(sizes[0]) if len(sizes) == 1 else f"{len(sizes)} up to {sizes[-1]}"
            tiles = [tile for tile in self.tiles if tile.group in mine]
            lanes = sum(len(tile.lanes) for tile in tiles)
            widest = max(group.tile_bytes for group in mine.values())
            short = name if len(name) <= LONGEST else f"{name[: LONGEST - 3]}..."
            row = [short, engine, shown, str(lanes), str(len(tiles)), format_bytes(widest)]
            rows.append(row)
        lines = [write_table(head, rows)]
        own = self.device_bytes
        limit = "" if own is None else f", on devices of {format_bytes(own)} each"
        lines += [
            f"{self.num_lanes} lanes of {self.num_episodes} episodes, {len(self.tiles)} tiles, {self.workers} at a time",
            f"programs to compile: {self.compilations}; memory: about {format_bytes(self.peak_bytes)} and the results{limit}",
        ]
        if self.seconds is not None:
            lines.append(f"time: about {format_seconds(self.seconds)}, from short measured runs")
        return "\n".join(lines)


def format_seconds(seconds: float) -> str:
    """Seconds for people.

    Example:
        >>> format_seconds(3.2), format_seconds(200), format_seconds(1e4)
        ('3 s', '3 min', '2.8 h')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def measure(settings: Settings, plan: Plan, budget: float) -> float:
    """About how many seconds the plan takes, compiling included.

    Runs the first tile of one group per learner, the largest first, then of further groups while
    ``budget`` seconds are not spent. The others are charged in proportion to H k (k+1) A.
    """
    began = time.monotonic()
    tiles: dict[int, list[Tile]] = defaultdict(list)
    for tile in plan.tiles:
        tiles[tile.group].append(tile)
    ranks: dict[str, int] = defaultdict(int)
    order = []
    for index in sorted(tiles, key=lambda index: -work(plan.groups[index])):
        name = plan.groups[index].name
        order.append((ranks[name], index))
        ranks[name] += 1
    known: dict[int, tuple[float, float]] = {}
    seconds = 0.0
    for _, index in sorted(order, key=lambda pair: pair[0]):
        group = plan.groups[index]
        alike = [other for other in known if plan.groups[other].name == group.name]
        if not alike or time.monotonic() - began < budget:
            known[index] = tile_seconds(settings, group, tiles[index][0].lanes)
            compiling, each = known[index]
        else:
            compiling, each = known[alike[0]]
            each *= work(group) / work(plan.groups[alike[0]])
        seconds += compiling + each * len(tiles[index])
    return seconds / min(plan.workers, max(1, len(plan.tiles)))


def work(group: Group) -> float:
    """Grows as the time of a tile does, about: H k (k+1) A."""
    H, k, A, _ = group.sizes
    return H * k * (k + 1) * A


def tile_seconds(settings: Settings, group: Group, lanes: Sequence[Lane]) -> tuple[float, float]:
    """Seconds to compile the program of a group, and to run one tile of it to its end."""
    runner = make_tile_runner(settings, group, lanes)
    carry = runner.start()
    done = 0
    while done < settings.num_episodes and runner.run_seconds < ENOUGH:
        carry = runner.step(carry)
        done = runner.episodes_done(carry)
    return runner.compile_seconds, runner.run_seconds * settings.num_episodes / max(1, done)


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
