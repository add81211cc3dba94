"""Settings that the command line makes before jax starts: threads of XLA, and that compilations are kept."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from jaxbandit.xla.compilations import default_cache, keep_compilations

XLA_FLAGS = (
    "--xla_cpu_multi_thread_eigen=false",
    "intra_op_parallelism_threads=1",  # last: XLA reads nothing after what has no dashes
)


def start_jax(cache: str | Path | None = None) -> None:
    """Prepares jax; call it before anything else touches jax. Whatever the user has set stays.

    ``cache`` is a folder for compilations, "none", or None for what the environment says.

    A tile of lanes runs in one thread, and there are as many workers as cores: for these small operations that is
    faster than threads inside an operation.
    """
    _set_xla_flags()
    keep_compilations(cache)


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
