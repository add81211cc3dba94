"""Settings that the command line makes before jax starts: CPU devices, threads, compilation cache."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

XLA_FLAGS = (
    "--xla_cpu_multi_thread_eigen=false",
    "intra_op_parallelism_threads=1",
    "--xla_cpu_prefer_vector_width=512",
)
TESTED_JAXLIB = ((0, 10), (0, 11))
"""XLA ends the process at a flag it does not know, so flags are set only where they are known to exist."""


def start_jax(devices: int | None, cache: Path | None) -> None:
    """Prepares jax; call it before anything else touches jax.

    One CPU device per core with one thread each: lanes never wait for each other, which for these small
    operations is faster than threads inside an operation. Whatever the user has set stays.
    """
    if devices is not None and devices < 1:
        raise ValueError(f"devices: {devices}; accepted: a whole number, at least 1")
    _set_xla_flags()
    import jax

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if devices is not None or "JAX_NUM_CPU_DEVICES" not in os.environ:
        # if jax has started already (in a notebook, say) or is older than the setting, it stays as it is
        with contextlib.suppress(RuntimeError, AttributeError):
            jax.config.update("jax_num_cpu_devices", devices or cores)
    if cache is not None:
        jax.config.update("jax_compilation_cache_dir", str(cache))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def _set_xla_flags() -> None:
    from importlib.metadata import version

    release = tuple(int(part) for part in version("jaxlib").split(".")[:2])
    if "jax" in sys.modules or not TESTED_JAXLIB[0] <= release < TESTED_JAXLIB[1]:
        return
    given = os.environ.get("XLA_FLAGS", "")
    mine = [flag for flag in XLA_FLAGS if flag.split("=")[0] not in given]
    os.environ["XLA_FLAGS"] = " ".join([*given.split(), *mine])
