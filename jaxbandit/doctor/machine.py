"""What numbers and speed depend on: versions, wheels, flags and devices. Nothing here names a person, host or folder."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Mapping
from importlib import metadata
from typing import Any

PACKAGES = (
    "jaxbandit",
    "jax",
    "jaxlib",
    "numpy",
    "scipy",
    "xarray",
    "h5netcdf",
    "h5py",
    "chex",
    "optax",
)
FLAGS = re.compile(
    r"^(JAX_|XLA_|JAXBANDIT_|CUDA_VISIBLE_DEVICES$|NVIDIA_VISIBLE_DEVICES$|TF_GPU_ALLOCATOR$)"
)
PRIVATE = re.compile(r"DIR|PATH|FILE|ADDRESS|TOKEN|KEY")
"""Variables whose values name folders or hosts: only that they are set is said."""
PLUGINS = re.compile(r"^(jax-(cuda|rocm)\d*-(plugin|pjrt)|libtpu)$")
LIBRARIES = re.compile(r"^nvidia-")


def versions() -> dict[str, str]:
    """Python, the system, and the packages that take part; those of a GPU where they are installed."""
    found = {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
    }
    installed = {_plain(each.name): each.version for each in metadata.distributions() if each.name}
    found |= {name: installed[name] for name in PACKAGES if name in installed}
    extra = sorted(name for name in installed if PLUGINS.match(name) or LIBRARIES.match(name))
    return found | {name: installed[name] for name in extra}


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def wheel_problems(found: Mapping[str, str]) -> list[str]:
    """What does not fit together among jax, jaxlib and their plugins.

    Example:
        >>> wheel_problems({"jax": "0.10.2", "jaxlib": "0.10.2", "jax-cuda12-plugin": "0.10.2", "jax-cuda12-pjrt": "0.10.2"})
        []
        >>> wheel_problems({"jax": "0.12.0", "jaxlib": "0.12.0", "jax-cuda12-plugin": "0.10.2", "jax-cuda12-pjrt": "0.12.0"})
        ["jax-cuda12-plugin is 0.10.2; accepted: 0.12.0, the version of jaxlib (pip install -U 'jax[cuda12]==0.12.0')"]
    """
    jax, jaxlib = found.get("jax"), found.get("jaxlib")
    if jax is None or jaxlib is None:
        return [f"jax is {jax} and jaxlib is {jaxlib}; accepted: both installed"]
    problems = []
    if jax.split(".")[:2] != jaxlib.split(".")[:2]:
        problems.append(
            f"jaxlib is {jaxlib}; accepted: that of jax {jax} (pip install -U jaxlib=={jax})"
        )
    for name, version in found.items():
        kind = PLUGINS.match(name)
        if kind is None or name == "libtpu":
            continue
        extra = name.split("-")[1]
        if version != jaxlib:
            problems.append(
                f"{name} is {version}; accepted: {jaxlib}, the version of jaxlib "
                f"(pip install -U 'jax[{extra}]=={jax}')"
            )
        other = f"jax-{extra}-{'pjrt' if name.endswith('plugin') else 'plugin'}"
        if other not in found:
            problems.append(f"{name} is installed without {other}; accepted: both")
    return problems


def flags(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment variables that change what jax or jaxbandit does.

    Example:
        >>> flags({"XLA_FLAGS": "--x=1", "HOME": "/somewhere", "JAX_COMPILATION_CACHE_DIR": "/somewhere"})
        {'JAX_COMPILATION_CACHE_DIR': '(set)', 'XLA_FLAGS': '--x=1'}
    """
    given = os.environ if environment is None else environment
    return {
        name: "(set)" if PRIVATE.search(name) else given[name]
        for name in sorted(given)
        if FLAGS.match(name)
    }


def devices() -> list[dict[str, Any]]:
    """jax's local devices, each with the choices that jaxbandit makes for it, or why it makes none."""
    import jax

    from jaxbandit.xla.platforms import memory_of, platform_of

    found = []
    for device in jax.local_devices():
        try:
            choices, problem = platform_of(device).name, None
        except ValueError as error:
            choices, problem = None, str(error)
        found.append(
            {
                "platform": device.platform,
                "kind": device.device_kind,
                "memory_bytes": memory_of(device),
                "choices": choices,
                "problem": problem,
            }
        )
    return found


def settings() -> dict[str, Any]:
    """jax's settings that numbers or memory depend on, and the cores of this process."""
    import jax

    config: Any = jax.config
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "x64": bool(config.jax_enable_x64),
        "threefry_partitionable": bool(config.jax_threefry_partitionable),
        "compilation_cache": bool(config.jax_compilation_cache_dir),
        "cores": cores,
    }


def notes(found: Mapping[str, str], seen: list[dict[str, Any]]) -> list[str]:
    """What a user may want to know, though it is no mistake.

    Example:
        >>> notes({"jax-cuda12-plugin": "0.10.2"}, [{"platform": "cpu"}])
        ['a CUDA plugin is installed, but jax sees no GPU: no card, no driver, or JAX_PLATFORMS=cpu']
    """
    kinds = {each["platform"] for each in seen}
    told = []
    if any("cuda" in name for name in found if PLUGINS.match(name)) and kinds == {"cpu"}:
        told.append(
            "a CUDA plugin is installed, but jax sees no GPU: no card, no driver, or JAX_PLATFORMS=cpu"
        )
    if kinds & {"gpu", "cuda", "rocm"} and "XLA_PYTHON_CLIENT_PREALLOCATE" not in flags():
        told.append(
            "jax takes three quarters of the card at once; XLA_PYTHON_CLIENT_PREALLOCATE=false takes what is used"
        )
    return told
