"""What the numbers of a lane depend on: the configuration whose fingerprint a checkpoint
carries."""

from __future__ import annotations

import hashlib
import math
import os
import platform
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

import jaxbandit
from jaxbandit.mdp import MDP
from jaxbandit.programs import Program, follow
from jaxbandit.record import Recording
from jaxbandit.sweeps.loop import Settings
from jaxbandit.sweeps.parameters import LearnerGrid
from jaxbandit.sweeps.tiles import Group
from jaxbandit.xla.compat import settings
from jaxbandit.xla.platforms import platform_of

NUMBERS = 7
"""To be raised with every change of an engine that changes its numbers: checkpoints of the old ones
are refused."""


def identity(
    grids: Mapping[str, LearnerGrid],
    mdps: Mapping[str, MDP],
    groups: list[Group],
    settings: Settings,
    record: Recording,
) -> dict[str, Any]:
    """All that the numbers of a lane depend on: the configuration whose fingerprint a checkpoint
    carries."""
    engines = {name: group.engine for group in groups for name in group.grids}
    return {
        "learners": {
            name: {
                "learner": grid.learner.name,
                "engine": engines[name],
                "varied": list(grid.names),
                "params": {
                    key: _plain(np.asarray(values).tolist())
                    for key, values in grid.learner.params.items()
                },
            }
            for name, grid in grids.items()
        },
        "instances": {
            name: {
                "horizon": mdp.horizon,
                "width": mdp.width,
                "num_actions": mdp.num_actions,
                "num_outcomes": mdp.num_outcomes,
                "sha256": digest(mdp),
            }
            for name, mdp in mdps.items()
        },
        "num_episodes": settings.num_episodes,
        "seed": settings.seed,
        "record": record.describe(),
        "metrics": {name: follow(metric).digest for name, metric in settings.metrics.items()},
        "prng": "threefry2x32",
        "jaxbandit": jaxbandit.__version__,
        "numbers": NUMBERS,
    }


def programs_of(grids: Mapping[str, LearnerGrid]) -> dict[str, Program]:
    """What each learner runs, from now on."""
    return {name: follow(grid.learner) for name, grid in grids.items()}


def bits_of(device: Any) -> dict[str, str]:
    """What the last digits depend on beyond the configuration: the kind of device, its compiler, its programs' shapes."""
    import jaxlib

    choices = platform_of(device)
    return {
        "device": f"{device.platform}: {device.device_kind}",
        "machine": f"{platform.machine()} {_vectors()}".strip() if device.platform == "cpu" else "",
        "tiles": f"{choices.name} {choices.lanes} {choices.block_lanes} {choices.workers}",
        "jax": jax.__version__,
        "jaxlib": jaxlib.__version__,
        "flags": " ".join(sorted(os.environ.get("XLA_FLAGS", "").split())),
        **settings(),
    }


def _vectors() -> str:
    """The widest vectors of the processor, where the system tells: XLA compiles for the processor it runs on."""
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
            words = set(
                next(line for line in file if line.startswith(("flags", "Features"))).split()
            )
    except (OSError, StopIteration):
        return ""
    return next((name for name in ("avx512f", "avx2", "avx", "sve", "asimd") if name in words), "")


def _plain(value: Any) -> Any:
    """Numbers as JSON has them: nan becomes null."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def digest(mdp: MDP) -> str:
    """SHA-256 of an instance's arrays, types and shapes; float64 arrays of float32 numbers (as under x64) count as float32."""
    total = hashlib.sha256()
    for name, leaf in mdp._asdict().items():
        array = None if leaf is None else np.ascontiguousarray(leaf)
        if array is not None and array.dtype == np.float64 and (array == array.astype("f4")).all():
            array = array.astype("f4")
        total.update(
            f"{name} {None if array is None else (array.dtype.str, array.shape)};".encode()
        )
        if array is not None:
            total.update(array.tobytes())
    return total.hexdigest()
