"""Files that are whole or absent: written under a temporary name, flushed to disk, renamed."""

from __future__ import annotations

import errno
import os
from pathlib import Path

MARK = ".unfinished"
"""Temporary names end with this; leftovers of a killed process are swept away by the next one."""


def temporary_name(path: Path) -> Path:
    """A name beside ``path`` (so that renaming is atomic) that no other process uses."""
    return path.with_name(f"{path.name}.{os.getpid()}{MARK}")


def replace_file(unfinished: Path, path: Path) -> None:
    """Flushes ``unfinished`` to disk, renames it to ``path`` and flushes the directory."""
    with open(unfinished, "rb+") as file:
        os.fsync(file.fileno())
    os.replace(unfinished, path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def write_atomically(path: Path, content: bytes) -> None:
    """Writes a whole file or nothing; an OSError leaves the old file and no temporary one."""
    unfinished = temporary_name(path)
    try:
        unfinished.write_bytes(content)
        replace_file(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


class FolderLock:
    """A lock that is held until `close`, the end of this object, or the end of the process in any way."""

    def __init__(self, file: int | None):
        """``file``: an open file descriptor that has the lock; None: nothing is held."""
        self._file = file

    def close(self) -> None:
        """Lets go; more than once is fine."""
        file, self._file = self._file, None
        if file is not None:
            os.close(file)

    def __del__(self) -> None:
        """Lets go."""
        self.close()


def lock_folder(folder: Path) -> FolderLock:
    """Holds the folder for whoever has the lock that is returned.

    Raises OSError with the reason if another process, or another sweep of this one, holds it. Where the system has no
    such locks (some network file systems), nothing is held.

    Example:
        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     held = lock_folder(pathlib.Path(folder))
        ...     try:
        ...         lock_folder(pathlib.Path(folder))
        ...     except OSError as error:
        ...         print(error.strerror)
        ...     held.close()
        another sweep is using this directory now; wait for it, or give another one
    """
    try:
        import fcntl
    except ImportError:  # not on this system
        return FolderLock(None)
    file = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        raise OSError(
            errno.EBUSY,
            "another sweep is using this directory now; wait for it, or give another one",
        ) from None
    except OSError:  # a file system without locks
        pass
    return FolderLock(file)
