"""What a terminal sees: a status line with a running clock, and output that outlives its reader.

A job goes on when `head` has seen enough, or the terminal is gone.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

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


UNSAFE = re.compile(
    "[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f-\\x9f\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069\\ud800-\\udfff]"
)
"""Characters that a terminal obeys, or that cannot be written; names of files may have them."""


def visible(text: str) -> str:
    """The text with such characters spelt out; line ends and tabs stay.

    Example:
        >>> print(visible("results/\\x1b[31mred"))
        results/\\x1b[31mred
    """
    return UNSAFE.sub(lambda found: ascii(found[0])[1:-1], text)


class Lasting:
    """A stream whose reader may go: from then on it writes to nobody. What terminals would obey is spelt out, and so is
    what the stream's encoding (ASCII, say) does not have."""

    def __init__(self, stream: Any):
        """``stream``: an open text stream."""
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        """What the stream has."""
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Writes, or forgets it."""
        encoding = getattr(self._stream, "encoding", None) or "utf-8"
        shown = visible(text).encode(encoding, "backslashreplace").decode(encoding)
        with self._reader_may_go():
            return self._stream.write(shown)
        return len(text)

    def flush(self) -> None:
        """Flushes, or forgets it."""
        with self._reader_may_go():
            self._stream.flush()

    @contextlib.contextmanager
    def _reader_may_go(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            with open(os.devnull, "wb") as nobody:
                os.dup2(nobody.fileno(), self._stream.fileno())


@contextlib.contextmanager
def lasting_output() -> Iterator[None]:
    """Standard output and errors that no closed pipe ends; those that were never open go to nobody.

    A file that is opened when descriptor 1 or 2 is free would get that number, and all that XLA prints.

    Example:
        >>> with lasting_output():
        ...     print("seen by whoever is there")
        seen by whoever is there
    """
    with contextlib.ExitStack() as opened:
        kept = sys.stdout, sys.stderr
        for number in range(3):
            try:
                os.fstat(number)
            except OSError:
                os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
        nobody: Any = opened.enter_context(open(os.devnull, "w", encoding="utf-8"))
        out, err = (Lasting(nobody if stream is None else stream) for stream in kept)
        sys.stdout, sys.stderr = out, err
        try:
            yield
        finally:
            out.flush()
            err.flush()
            sys.stdout, sys.stderr = kept
