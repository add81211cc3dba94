"""Compiled programs that are kept between processes, in a folder of the user's and of bounded size.

`JAXBANDIT_COMPILATION_CACHE` says where: a folder, or "none" for nowhere; not set, it is a folder in the user's cache
directory. While a sweep runs, `persistent_cache` points jax's own persistent cache there, and afterwards takes
everything back, so that other programs of the same process are not kept. The command line, whose process is its own, does
so once and for all (`start_jax`). A user who has set where jax keeps compilations (`JAX_COMPILATION_CACHE_DIR`,
or `jax.config`) is obeyed: nothing is set.

jax writes its files in place, so a process that was killed or a full disk leaves parts of them, and another process may
read one that is being written. What cannot be read is compiled silently; broken files are found by the next process
(`tidy`).
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import platform
import shutil
import sys
import threading
import time
import warnings
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jaxbandit.xla import platforms

VARIABLE = "JAXBANDIT_COMPILATION_CACHE"
NOWHERE = "none"
CACHE_BYTES = 2**30
"""Compilations that were not used for the longest time are dropped beyond this size."""
COMPLAINT = "Error (reading|writing) persistent compilation cache"
"""How jax begins to say that it could not use a file; that is not the user's business."""
SETTLED = 60.0
"""Seconds after which nobody writes to a file any more."""
ZSTANDARD = b"\x28\xb5\x2f\xfd"
"""How data begins that jax compressed where zstandard is installed; elsewhere it takes zlib."""
LEAST_FREE = 2**26
"""With less space on the disk nothing is kept: a program that was written in part cannot be read."""
SETTINGS = {
    "jax_persistent_cache_min_compile_time_secs": 0,
    "jax_persistent_cache_min_entry_size_bytes": -1,
}
"""Small programs are kept, too: a sweep needs dozens of them."""


def chosen_cache() -> Path | None:
    """Where compilations are kept: as the environment says, or in this user's cache directory; None for nowhere.

    Example:
        >>> chosen_cache() is None or chosen_cache().is_absolute()
        True
    """
    given = os.environ.get(VARIABLE)
    if given:
        return None if given == NOWHERE else Path(given)
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "jaxbandit"
    except RuntimeError:  # a container's user without a home
        return None


class PersistentCache:
    """Who keeps at the moment; the settings of jax belong to the whole process, so threads are counted."""

    def __init__(self) -> None:
        """Nobody."""
        self.lock = threading.Lock()
        self.holders = 0
        self.undo = contextlib.ExitStack()

    def begin(self) -> None:
        """The first to come sets jax's settings, unless the user has."""
        with self.lock:
            self.holders += 1
            if self.holders == 1:
                self.undo.enter_context(_our_settings())

    def end(self) -> None:
        """The last to go takes them back."""
        with self.lock:
            self.holders -= 1
            if self.holders == 0:
                self.undo.close()


@contextlib.contextmanager
def _our_settings() -> Iterator[None]:
    import jax
    from jax.experimental.compilation_cache import compilation_cache

    config: Any = jax.config
    root = chosen_cache() if config.jax_compilation_cache_dir is None else None
    folder = None if root is None else usable_folder(root)
    if folder is None:
        yield
        return
    ours = SETTINGS | {"jax_compilation_cache_dir": folder}
    before = {name: getattr(config, name) for name in ours}
    warnings.filterwarnings("ignore", message=COMPLAINT)
    silence = warnings.filters[0]
    for name, value in ours.items():
        config.update(name, value)
    yield
    with contextlib.suppress(ValueError):  # the user's filters may have been put back meanwhile
        warnings.filters.remove(silence)  # type: ignore[attr-defined]
    if config.jax_compilation_cache_dir == folder:  # the user has set no other one meanwhile
        for name, value in before.items():
            config.update(name, value)
        compilation_cache.reset_cache()  # jax would go on using the folder that it has opened


PERSISTENT_CACHE = PersistentCache()


@contextlib.contextmanager
def persistent_cache() -> Iterator[None]:
    """What jax compiles meanwhile is kept; afterwards jax's settings are as before.

    Example:
        >>> with persistent_cache():
        ...     pass  # a sweep
    """
    PERSISTENT_CACHE.begin()
    try:
        yield
    finally:
        PERSISTENT_CACHE.end()


def start_jax(folder: str | os.PathLike[str] | None = None) -> None:
    """Settings of a process that is ours alone (the command line): seeds mean what they say, and all compilations are
    kept, in ``folder`` ("none": nowhere) or where the environment says."""
    import jax

    if folder is not None:
        os.environ[VARIABLE] = str(folder)
    jax.config.update("jax_random_seed_offset", 0)
    PERSISTENT_CACHE.begin()


@functools.lru_cache(maxsize=16)
def usable_folder(root: Path) -> str | None:
    """The folder for this kind of processor below ``root``; None, said once, if it cannot be written to."""
    folder = root / f"programs-{processor()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        problem = "" if os.access(folder, os.W_OK) else f"cannot write to {root}"
        if not problem and shutil.disk_usage(folder).free < LEAST_FREE:
            problem = f"less than {LEAST_FREE >> 20} MB are free in {root}"
    except OSError as error:
        problem = f"cannot write to {root} ({error.strerror})"
    if problem:
        print(f"jaxbandit: compilations are not kept: {problem}", file=sys.stderr)
        return None
    tidy(root)
    return str(folder)


def processor() -> str:
    """What this processor can do, as a short word: programs of another one in a shared home may not run here.

    Example:
        >>> processor() == processor(), len(processor())
        (True, 8)
    """
    seen, said = platform.machine(), platforms.processor()
    seen += "".join(said.get(name, "") for name in ("flags", "features", "model name"))
    return hashlib.sha256(seen.encode()).hexdigest()[:8]


def tidy(root: Path) -> None:
    """Drops files that were written in part, and beyond `CACHE_BYTES` those that were not used for the longest time.

    Files that are whole become read-only, so that each is read once for this. Not left to jax:
    `jax_compilation_cache_max_size` raises an error without the package filelock.
    """
    found, total = [], 0
    for path in root.rglob("*-cache"):
        with contextlib.suppress(OSError):  # another process may be dropping it, too
            found.append((path.stat().st_atime, path))
    for _, path in sorted(found, reverse=True):
        with contextlib.suppress(OSError):
            seen = path.stat()
            settled = seen.st_mode & 0o200 and time.time() - seen.st_mtime >= SETTLED
            total += seen.st_size
            if total > CACHE_BYTES or (settled and not is_whole(path.read_bytes())):
                path.unlink()
            elif settled:
                path.chmod(0o444)


def is_whole(data: bytes) -> bool:
    """Whether jax can read a compilation, which it compresses.

    Example:
        >>> is_whole(zlib.compress(b"a program" * 100)[:-1])
        False
    """
    from jax._src import compilation_cache

    try:
        compilation_cache.decompress_executable(data)
    except zlib.error:
        return data.startswith(ZSTANDARD)  # of another jax; this one does not read it
    except Exception:  # whatever else is said of broken data
        return False
    return True
