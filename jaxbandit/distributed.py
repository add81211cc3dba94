"""Several processes or hosts, through ``jax.distributed``: each runs its own tiles, all get the
result.

Start the same program once per process and call `initialize` before anything else touches jax:

    from jaxbandit import distributed
    distributed.initialize("host0:7000", num_processes=4, process_id=rank)  # or (), under a
    scheduler dataset = jb.sweep(...)
    if distributed.is_main():
        jb.save(dataset, "run.nc")

Lanes never talk to each other, so the only communication is one gathering of results at the end.
"""

from __future__ import annotations

import jax
import numpy as np

from jaxbandit.errors import LostProcessError

HEARTBEAT = 30
"""Seconds without a sign of life after which a process counts as lost, and the others end."""


def initialize(
    coordinator: str | None = None, num_processes: int | None = None, process_id: int | None = None
) -> None:
    """Joins this process to the others; without arguments, a cluster scheduler is asked (as jax
    does).

    ``coordinator`` is "host:port" of process 0. Give all three arguments or none.
    """
    given = [argument is not None for argument in (coordinator, num_processes, process_id)]
    if any(given) and not all(given):
        raise ValueError(
            f"coordinator={coordinator!r}, num_processes={num_processes!r}, process_id={process_id!r}; "
            "accepted: all three, or none of them under a cluster scheduler"
        )
    if num_processes is not None and process_id is not None and not 0 <= process_id < num_processes:
        raise ValueError(
            f"process_id: {process_id}; accepted: 0..{num_processes - 1} (num_processes is {num_processes})"
        )
    try:
        jax.distributed.initialize(
            coordinator, num_processes, process_id, heartbeat_timeout_seconds=HEARTBEAT
        )
    except ValueError as error:
        raise ValueError(
            f"no cluster scheduler was recognised ({error}); give coordinator, num_processes and process_id"
        ) from error
    except RuntimeError as error:
        raise RuntimeError(
            f"initialize: call it once, before anything else touches jax ({error})"
        ) from error


def is_main() -> bool:
    """True in the process that writes files (process 0), and when there is only one."""
    return jax.process_index() == 0


def use_cpu_devices(count: int) -> None:
    """Makes jax see ``count`` CPU devices (one per core, say), over which lanes are spread.

    Call it before anything else touches jax; afterwards it is too late, which is an error.
    """
    try:
        jax.config.update("jax_num_cpu_devices", int(count))
    except RuntimeError as error:
        raise RuntimeError(
            f"use_cpu_devices({count}): jax has started already; call it first thing ({error})"
        ) from error


def gather(content: bytes) -> list[bytes]:
    """The bytes of all processes, in order of process, in every process. A barrier as well."""
    if jax.process_count() == 1:
        return [content]
    # Collectives take arrays of one shape, so lengths go first and the contents are padded.
    lengths = _all(np.asarray([len(content)], np.int32)).ravel()
    padded = np.zeros(int(lengths.max()), np.uint8)
    padded[: len(content)] = np.frombuffer(content, np.uint8)
    rows = _all(padded).reshape(len(lengths), -1)
    return [row[:length].tobytes() for row, length in zip(rows, lengths, strict=True)]


def _all(mine: np.ndarray) -> np.ndarray:
    """The arrays of all processes on a leading axis, or an error if one of them is lost."""
    from jax.experimental import multihost_utils

    try:
        return np.asarray(multihost_utils.process_allgather(mine))
    except (jax.errors.JaxRuntimeError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise LostProcessError(
            f"another process of this run is lost ({reason}); what each has saved in its checkpoint is "
            "intact: start all of them again to continue"
        ) from error
