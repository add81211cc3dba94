"""Settings that the command line makes before jax starts: threads of XLA, and where compilations are kept."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

XLA_FLAGS = (
    "--xla_cpu_multi_thread_eigen=false",
    "intra_op_parallelism_threads=1",  # last: XLA reads nothing after what has no dashes
)
CACHE_BYTES = 2**30
"""Compilations that were not used for the longest time are dropped beyond this size."""


def start_jax(cache: str | Path | None = "default") -> None:
    """Prepares jax; call it before anything else touches jax. Whatever the user has set stays.

    A tile of lanes runs in one thread, and there are as many workers as cores: for these small operations that is
    faster than threads inside an operation.
    """
    _set_xla_flags()
    keep_compilations(default_cache() if cache == "default" else cache)


def default_cache() -> Path:
    """The folder of this user in which compilations are kept between runs.

    Example:
        >>> default_cache().name
        'jaxbandit'
    """
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "jaxbandit"


def keep_compilations(folder: str | Path | None) -> None:
    """Keeps compiled programs in a folder, of bounded size; None keeps none. What the user has set stays.

    A folder that cannot be written to is not used, and said so.
    """
    if folder is None or os.environ.get("JAX_COMPILATION_CACHE_DIR"):
        return
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        usable = os.access(folder, os.W_OK)
    except OSError:
        usable = False
    if usable:
        _prune(Path(folder))
    else:
        print(f"jaxbandit: compilations are not kept: cannot write to {folder}", file=sys.stderr)
        return
    import jax

    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def _prune(folder: Path) -> None:
    """Drops the files that were not used for the longest time until the folder is small enough.

    Not left to jax, whose bound needs another package and a lock for every read.
    """
    found = []
    for path in folder.iterdir():
        with contextlib.suppress(OSError):  # another process may be dropping it, too
            found.append((path.stat().st_atime, path.stat().st_size, path))
    excess = sum(size for _, size, _ in found) - CACHE_BYTES
    for _, size, path in sorted(found):
        if excess <= 0:
            return
        with contextlib.suppress(OSError):
            path.unlink()
            excess -= size


def _set_xla_flags() -> None:
    """Sets flags that this XLA knows; it ends the process at one that it does not, so another process is asked once."""
    if "jax" in sys.modules:
        return
    given = os.environ.get("XLA_FLAGS", "")
    mine = [flag for flag in XLA_FLAGS if flag.split("=")[0] not in given]
    wanted = " ".join([*given.split(), *mine])
    if mine and _accepts(wanted):
        os.environ["XLA_FLAGS"] = wanted


def _accepts(flags: str) -> bool:
    """Whether XLA starts with these flags: asked in another process, and remembered per version of jaxlib."""
    from importlib.metadata import version

    note = default_cache() / f"flags-{version('jaxlib')}.txt"
    try:
        known = dict(line.split("\t") for line in note.read_text().splitlines())
        if flags in known:
            return known[flags] == "yes"
    except (OSError, ValueError):
        known = {}
    program = "import jax; jax.devices()"
    asked = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        check=False,
    )
    known[flags] = "yes" if asked.returncode == 0 else "no"
    if asked.returncode != 0:
        print(
            "jaxbandit: this XLA does not know the flags for small programs; runs may be slower",
            file=sys.stderr,
        )
    try:
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text("\n".join(f"{name}\t{answer}" for name, answer in known.items()))
    except OSError:
        pass  # asked again next time
    return asked.returncode == 0
