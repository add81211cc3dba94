"""What the host loop shows and listens to: progress, as a line and for hooks, and signals that wait for the end of a chunk.

Both live outside traced code: nothing is called back from a compiled loop.
"""

from __future__ import annotations

import importlib.util
import signal
import sys
import threading
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from jaxbandit.xla.programs import PROGRAMS


@dataclass(frozen=True)
class Progress:
    """Where a sweep stands, for ``on_chunk``."""

    episodes: int
    """Episodes played, of all lanes together."""
    total: int
    """Episodes to play."""
    dataset: Callable[[], Any]
    """dataset() -> the Dataset so far; nan where nothing has come yet."""


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
        >>> forecast.ends("UCB-VI")  # after 5 s
        >>> forecast.plays("UCB-VI", 500, seconds=1.0)
        >>> forecast.left()  # 1 s for 500 episodes, then another compilation (5 s) and 1,000 (2 s)
        8.0
    """

    episodes: Mapping[Hashable, int]
    """Group -> episodes to play."""
    workers: int = 1
    clock: Callable[[], float] = time.monotonic
    work: dict[Hashable, _Work] = field(init=False)

    def __post_init__(self) -> None:
        """Nothing is known yet."""
        self.work = {group: _Work(episodes) for group, episodes in self.episodes.items()}

    def begins(self, group: Hashable) -> None:
        """A compilation of the group begins."""
        self.work[group].compiling = self.clock()

    def ends(self, group: Hashable) -> None:
        """It ends."""
        work = self.work[group]
        # the small program at the end of a run is no measure of the large one
        if work.compiling is not None and work.compiled is None:
            work.compiled = self.clock() - work.compiling
        work.compiling = None

    def plays(self, group: Hashable, episodes: int, seconds: float) -> None:
        """Episodes were played in so many seconds of a worker."""
        work = self.work[group]
        work.played += episodes
        work.seconds += seconds
        if work.compiled is None and work.compiling is None:
            work.compiled = 0.0

    def waiting(self) -> int:
        """Groups whose compilation has not begun, and whose program may not be there."""
        return sum(w.compiled is None and w.compiling is None for w in self.work.values())

    def left(self) -> float | None:
        """Seconds until the end; None while nothing can be said."""
        works = self.work.values()
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


class Display:
    """The progress line: episodes done and their rate, the time left, and what is compiled or run.

    Workers report to it from their threads; the main thread keeps its clock running.
    """

    def __init__(
        self,
        tiles: Sequence[Any],
        num_episodes: int,
        show: bool | str,
        workers: int,
        programs: Mapping[Any, str],
        *,
        done: int = 0,
        begun: int = 0,
    ):
        """For ``tiles`` (with a ``group`` and ``lanes``) of ``num_episodes`` episodes a lane.

        ``show``: True in terminals and notebooks, "always" elsewhere too, False never. ``programs`` says what a group is
        called, ``done`` how many episodes a checkpoint has of lanes that are in no tile, ``begun`` how many of those
        that are.
        """
        work: dict[Any, int] = {}
        for tile in tiles:
            work[tile.group] = work.get(tile.group, 0) + num_episodes * len(tile.lanes)
        self._forecast = Forecast(work, workers)
        total = done + sum(work.values())
        if done + begun:
            share = f"{(done + begun) / total:.0%}".replace("%", " %")
            log(show, f"going on from the checkpoint: {share} of the episodes were played already")
        self._bar = _bar(total, done + begun, show, self._forecast)
        self._begun = begun
        # Elsewhere every refresh would be a new line.
        self._alive = not self._bar.disable and (_in_notebook() or sys.stderr.isatty())
        self._programs = programs
        self._numbers: dict[Any, int] = {}
        self._compiling: list[Any] = []
        self._tiles: dict[int, Any] = {}
        self._said = ""
        self._lock = threading.Lock()

    def __enter__(self) -> Display:
        """Starts to show."""
        PROGRAMS.listeners.append(self._note)
        return self

    def __exit__(self, *exception: object) -> None:
        """The line stays, the listening ends."""
        PROGRAMS.listeners.remove(self._note)
        self._bar.close()

    def begin(self, tile: Any) -> None:
        """This thread runs the tile from now on."""
        with self._lock:
            self._tiles[threading.get_ident()] = tile

    def _note(self, text: str, begins: bool) -> None:
        """A compilation of this thread begins or ends."""
        with self._lock:
            tile = self._tiles.get(threading.get_ident())
            if tile is None:
                return
            if begins:
                self._numbers.setdefault(tile.group, len(self._numbers) + 1)
                self._compiling.append(tile.group)
                self._forecast.begins(tile.group)
            else:
                self._compiling.remove(tile.group)
                self._forecast.ends(tile.group)
            self._say()

    def _say(self, what: str = "") -> None:
        if self._compiling:
            group = self._compiling[0]
            count = len(self._numbers) + self._forecast.waiting()
            what = f"compiling {self._programs[group]} ({self._numbers[group]} of {count})"
            if len(self._compiling) > 1:
                what += f" and {len(self._compiling) - 1} more"
        if what != self._said:
            self._said = what
            self._bar.set_postfix_str(what, refresh=self._alive or bool(self._compiling))

    def skip(self, episodes: int, tile: Any) -> None:
        """Episodes of a tile that a checkpoint has already."""
        with self._lock:
            self._forecast.work[tile.group].episodes -= episodes
            known = min(episodes, self._begun)  # the bar began with these
            self._begun -= known
            if not self._bar.disable:
                self._bar.initial += episodes - known  # the rate is that of what is run now
                self._bar.update(episodes - known)

    def advance(self, episodes: int, tile: Any, seconds: float) -> None:
        """Episodes of a tile that were played in so many seconds."""
        with self._lock:
            self._forecast.plays(tile.group, episodes, seconds)
            learner, instance, *_ = tile.lanes[0]
            self._say(f"{learner} on {instance}")
            self._bar.update(episodes)

    def refresh(self) -> None:
        """Lets the clock go on."""
        if self._alive:
            with self._lock:
                self._bar.refresh()


def log(show: bool | str, text: str) -> None:
    """Prints a line above the bar, where there is one."""
    if _is_visible(show):
        print(text, file=sys.stderr)


def _is_visible(show: bool | str) -> bool:
    return show == "always" or (bool(show) and (_in_notebook() or sys.stderr.isatty()))


def _bar(total: int, done: int, show: bool | str, forecast: Forecast) -> Any:
    visible = _is_visible(show)
    options: dict[str, Any] = {
        "total": total,
        "initial": done,
        "unit": "",
        "unit_scale": True,
        "disable": not visible,
        "bar_format": "{percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} episodes [{elapsed}<{left}, {rate_fmt}]{postfix}",
    }
    # without ipywidgets, tqdm's notebook bar warns and fails
    if visible and _in_notebook() and importlib.util.find_spec("ipywidgets") is not None:
        from tqdm.notebook import tqdm as bar
    else:
        from tqdm import tqdm as bar

        options |= {"file": sys.stderr, "dynamic_ncols": True}

    class Bar(bar):
        """A bar that knows of compilations to come."""

        @property
        def format_dict(self) -> dict[str, Any]:
            """With the time left."""
            found = super().format_dict
            left = forecast.left()
            return found | {"left": "?" if left is None else bar.format_interval(left)}

    return Bar(**options)


def _in_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and "IPKernelApp" in getattr(shell, "config", {})


class Interruption:
    """While open, the first signal to stop only sets ``requested``; a second Ctrl-C interrupts at once.

    Ctrl-C, and what schedulers and closing terminals send before they kill: SIGTERM, SIGHUP, SIGUSR1. A signal that is
    ignored stays so (nohup, background jobs), and SIGHUP and SIGUSR1 stay with whoever handles them (faulthandler). Signals
    can be caught in the main thread only; in another one this does nothing.
    """

    def __init__(self) -> None:
        """Not requested yet."""
        self.requested = False
        self.cause = "Ctrl-C"
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> Interruption:
        """Starts listening."""
        if threading.current_thread() is threading.main_thread():
            for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1"):
                number = getattr(signal, name, None)  # not all systems have all
                if number is not None and _is_free(number):
                    self._previous[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *exception: object) -> None:
        """Restores what was there before."""
        for number, previous in self._previous.items():
            signal.signal(number, previous)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGINT and self.requested:
            raise KeyboardInterrupt
        if number != signal.SIGINT:
            self.cause = signal.Signals(number).name
        self.requested = True
        print("stopping after this chunk (press Ctrl-C again to stop at once)", file=sys.stderr)


def _is_free(number: int) -> bool:
    """Whether a sweep may handle the signal while it runs."""
    handler = signal.getsignal(number)
    if handler in (signal.SIG_IGN, None):
        return False
    if number in (signal.SIGINT, signal.SIGTERM):
        return True
    return handler is signal.SIG_DFL and not _caught_outside_python(number)


def _caught_outside_python(number: int) -> bool:
    """Whether C code has a handler, of which Python knows nothing; False where the system does not say."""
    try:
        with open("/proc/self/status", encoding="ascii") as file:
            caught = next(line.split()[1] for line in file if line.startswith("SigCgt"))
    except (OSError, StopIteration):
        return False
    return bool(int(caught, 16) >> (number - 1) & 1)
