"""What the host loop shows and listens to: a progress line, and signals that wait for the end of the chunk.

Both live outside traced code: nothing is called back from a compiled loop.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

from jaxbandit.xla.programs import PROGRAMS


class Display:
    """The progress line: episodes done and their rate, the time left, and what is being compiled.

    Workers report to it from their threads; the main thread keeps its clock running.
    """

    def __init__(
        self,
        total: int,
        show: bool | str,
        programs: int = 0,
        label: Callable[[Any], str] | None = None,
    ):
        """``show``: True in terminals and notebooks, "always" elsewhere too, False never.

        ``programs`` is how many compilations are expected at most; ``label`` says what a tile runs.
        """
        self._bar = _bar(total, show)
        # Elsewhere every refresh would be a new line.
        self._alive = not self._bar.disable and (_in_notebook() or sys.stderr.isatty())
        self._label = label
        self._programs = programs
        self._compiling: list[str] = []
        self._compiled = 0
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

    def _note(self, words: str, begins: bool) -> None:
        with self._lock:
            if begins:
                self._compiling.append(words)
            else:
                self._compiling.remove(words)
                self._compiled += 1
            self._say()

    def _say(self, what: str = "") -> None:
        if self._compiling:
            number = self._compiled + 1
            what = f"compiling {self._compiling[0]} ({number} of {max(self._programs, number)})"
        if what != self._said:
            self._said = what
            self._bar.set_postfix_str(what, refresh=self._alive)

    def skip(self, episodes: int) -> None:
        """Episodes that a checkpoint has already: rate and time left are those of what is run now."""
        with self._lock:
            self._bar.total -= episodes

    def advance(self, episodes: int, tile: Any = None) -> None:
        """Episodes that were played."""
        with self._lock:
            if self._label is not None and tile is not None and not self._bar.disable:
                self._say(self._label(tile))
            self._bar.update(episodes)

    def refresh(self) -> None:
        """Lets the clock go on."""
        if self._alive:
            with self._lock:
                self._bar.refresh()


def _bar(total: int, show: bool | str) -> Any:
    notebook = _in_notebook()
    visible = show == "always" or (bool(show) and (notebook or sys.stderr.isatty()))
    options = {
        "total": total,
        "unit": " episodes",
        "unit_scale": True,
        "disable": not visible,
    }
    if visible and notebook and _has_widgets():
        from tqdm.notebook import tqdm as widget_bar

        return widget_bar(**options)
    from tqdm import tqdm

    return tqdm(file=sys.stderr, dynamic_ncols=True, **options)


def _in_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and "IPKernelApp" in getattr(shell, "config", {})


def _has_widgets() -> bool:
    """tqdm's notebook bar warns and fails without ipywidgets."""
    import importlib.util

    return importlib.util.find_spec("ipywidgets") is not None


class Interruption:
    """While open, the first signal to stop only sets ``requested``; a second Ctrl-C interrupts at once.

    Ctrl-C, and what schedulers and closing terminals send before they kill: SIGTERM, SIGHUP, SIGUSR1. Signals can be
    caught in the main thread only; in another one this does nothing.
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
                if number is not None:
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
