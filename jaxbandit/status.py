"""A status line with a running clock, for what takes seconds and has no progress bar."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator

TICK = 0.5
"""Seconds between two looks at the clock."""


@contextlib.contextmanager
def spinner(text: str, *, elsewhere: bool = True) -> Iterator[None]:
    """Prints ``text`` while a block runs, in a terminal with the seconds that have passed.

    Without a terminal the line is printed once, or with ``elsewhere=False`` not at all.

    Example:
        >>> import contextlib, io
        >>> with contextlib.redirect_stderr(io.StringIO()) as said, spinner("drawing"):
        ...     pass
        >>> said.getvalue()  # no terminal, no clock
        'drawing\\n'
    """
    stream = sys.stderr
    if not stream.isatty():
        if elsewhere:
            print(text, file=stream, flush=True)
        yield
        return
    done = threading.Event()
    began = time.monotonic()

    def show() -> None:
        while not done.wait(TICK):
            print(f"\r{text} {time.monotonic() - began:.0f} s", end="", file=stream, flush=True)

    print(text, end="", file=stream, flush=True)
    clock = threading.Thread(target=show, daemon=True)
    clock.start()
    try:
        yield
    finally:
        done.set()
        clock.join()
        print(file=stream, flush=True)
