"""What the host loop shows and listens to: a progress bar, and Ctrl-C that waits for the end of the chunk.

Both live outside traced code: nothing is called back from a compiled loop.
"""

from __future__ import annotations

import signal
import sys
import threading
from types import FrameType
from typing import Any


class SweepInterrupted(KeyboardInterrupt):
    """Ctrl-C during a sweep; the message says what was saved and how to continue."""


def progress_bar(total: int, show: bool | str) -> Any:
    """A tqdm bar that counts episodes (lanes x episodes), with their rate and the time left.

    ``show``: True shows it in terminals and notebooks and is silent elsewhere; "always" also elsewhere (text
    on standard error); False never.
    """
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
    """While open, the first Ctrl-C only sets ``requested``; a second one interrupts at once.

    Signals can be caught in the main thread only; in another one this does nothing.
    """

    def __init__(self) -> None:
        """Not requested yet."""
        self.requested = False
        self._previous: Any = None

    def __enter__(self) -> Interruption:
        """Starts listening."""
        if threading.current_thread() is threading.main_thread():
            self._previous = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *exception: object) -> None:
        """Restores what was there before."""
        if self._previous is not None:
            signal.signal(signal.SIGINT, self._previous)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True
        print("stopping after this chunk (press Ctrl-C again to stop at once)", file=sys.stderr)
