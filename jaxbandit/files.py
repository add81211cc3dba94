"""Files that are whole or absent, that two writers cannot both claim, and that are read only if they are regular.

A file is written under a temporary name in the folder of its target, flushed to disk and renamed (or linked, where
nothing may be replaced). The writer holds a lock on the temporary file; the next write to the folder removes those whose
writer is gone. Nothing else in a folder is touched.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import stat
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

try:
    import fcntl
except ImportError:  # not on this system
    fcntl: Any = None  # type: ignore[no-redef]

LEFTOVER = re.compile(r"\.jaxbandit-[0-9a-f]{16}\.unfinished")
"""Temporary names. They do not contain the target's name, which may be as long as the system allows."""


def read_file(path: Path, *, follow: bool = False, limit: int | None = None) -> bytes:
    """The content of a regular file; OSError for links (unless ``follow``), pipes, devices and files beyond ``limit`` bytes.

    Without ``limit``, half of the memory of this machine.

    Example:
        >>> read_file(Path("/dev/zero"))
        Traceback (most recent call last):
        ...
        OSError: [Errno 22] not a regular file: '/dev/zero'
    """
    # without O_NONBLOCK a pipe that nobody writes to would be waited for
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    if not follow:
        flags |= getattr(os, "O_NOFOLLOW", 0)
    try:
        descriptor = os.open(path, flags)
    except OSError as error:
        if error.errno == errno.ELOOP and not follow:
            raise OSError(errno.ELOOP, "a link, not a regular file", str(path)) from None
        raise
    try:
        seen = os.fstat(descriptor)
        if not stat.S_ISREG(seen.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        most = half_of_memory() if limit is None else limit
        if seen.st_size > most:
            raise OSError(
                errno.EFBIG, f"{seen.st_size:,} bytes; at most {most:,} are read", str(path)
            )
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(most + 1)
    finally:
        os.close(descriptor)


def half_of_memory() -> int:
    """Half of this machine's memory in bytes; 4 GB where the system does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (AttributeError, ValueError, OSError):
        return 2**32


def regular_files(folder: Path, *patterns: str) -> list[Path]:
    """The regular files of a folder that match a pattern, sorted; links, pipes and devices are named on stderr."""
    found = sorted({path for pattern in patterns for path in folder.glob(pattern)})
    regular = [path for path in found if stat.S_ISREG(path.lstat().st_mode)]
    for path in found:
        if path not in regular:
            print(f"jaxbandit: {path} is not read: not a regular file", file=sys.stderr)
    return regular


def write_atomically(path: Path, content: bytes, *, overwrite: bool = True) -> None:
    """Writes a whole file or nothing; an OSError leaves the old file and no temporary one.

    A link is followed and its target written; a file that is replaced keeps its mode. Without ``overwrite``, a file that
    exists is a FileExistsError; of several writers that claim a new name at once, one succeeds.

    Example:
        >>> import tempfile
        >>> target = Path(tempfile.mkdtemp()) / "result"
        >>> write_atomically(target, b"first", overwrite=False)
        >>> write_atomically(target, b"second", overwrite=False)
        Traceback (most recent call last):
        ...
        FileExistsError: [Errno 17] File exists: ...
    """
    if path.is_symlink():
        path = Path(os.path.realpath(path))
    _remove_leftovers(path.parent)
    with _temporary_file(path.parent) as (descriptor, unfinished):
        with open(descriptor, "wb", closefd=False) as file:
            file.write(content)
        with contextlib.suppress(FileNotFoundError):
            os.chmod(unfinished, stat.S_IMODE(path.stat().st_mode))
        os.fsync(descriptor)
        if overwrite:
            os.replace(unfinished, path)
        else:
            _claim(unfinished, path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _claim(unfinished: Path, path: Path) -> None:
    """Gives a file a name that nobody has."""
    try:
        os.link(unfinished, path)
    except FileExistsError:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from None
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK):
            raise
        # a file system without links: the name is claimed by an empty file
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
        os.replace(unfinished, path)


@contextlib.contextmanager
def _temporary_file(folder: Path) -> Iterator[tuple[int, Path]]:
    """A new file whose lock says that its writer lives; its name is gone afterwards."""
    while True:
        path = folder / f".jaxbandit-{secrets.token_hex(8)}.unfinished"
        binary = getattr(os, "O_BINARY", 0)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | binary, 0o666)
        _lock(descriptor, wait=True)  # for another writer that takes it for a leftover
        if os.fstat(descriptor).st_nlink:  # else that one has removed it
            break
        os.close(descriptor)
    try:
        yield descriptor, path
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)


def _remove_leftovers(folder: Path) -> None:
    """Removes the temporary files of writers that are gone."""
    if fcntl is None:
        return
    with os.scandir(folder) as entries:
        names = [entry.name for entry in entries if LEFTOVER.fullmatch(entry.name)]
    for name in names:
        with contextlib.suppress(OSError):  # another process removes it, or it is not ours
            descriptor = os.open(folder / name, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                if _lock(descriptor):
                    os.unlink(folder / name)
            finally:
                os.close(descriptor)


def _lock(descriptor: int, wait: bool = False) -> bool:
    """Locks the file for this descriptor until it is closed in any way; False where the system has no locks.

    Without ``wait``, BlockingIOError if another descriptor has the lock.
    """
    if fcntl is None:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        raise
    except OSError:  # a file system without locks
        return False
    return True


class FolderLock:
    """A lock that is held until `close`, the end of this object, or the end of the process in any way."""

    def __init__(self, file: int):
        """``file``: an open file descriptor that has the lock."""
        self.close = weakref.finalize(self, os.close, file)
        """Lets go; more than once is fine."""


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
    if fcntl is None:
        return FolderLock(os.open(os.devnull, os.O_RDONLY))
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
    path = folder / "lock"
    file = os.open(path, flags, 0o666)
    held = FolderLock(file)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    try:
        _lock(file)
    except BlockingIOError:
        reason = "another sweep is using this directory now; wait for it, or give another one"
        raise OSError(errno.EBUSY, reason) from None
    return held
