"""``jaxbandit doctor``: what this machine is, whether jax's wheels fit together, and whether numbers come out right.

`examine` looks at versions, flags and devices, tests bits and laws, measures the speed a little, and puts all of it into
one JSON object for a bug report; `format_report` is its text. Nothing in it names a person, host or folder.

Statistical checks have fixed keys: on one kind of device they give the same answer every time. Their threshold is 5
standard errors, which a right program passes on a new kind of device but for 6 chances in 10 million.
"""

from __future__ import annotations

import contextlib
import math
import os
import platform
import re
import time
from collections.abc import Callable, Mapping
from functools import partial
from importlib import metadata
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxbandit as jb
from jaxbandit.status import spinner
from jaxbandit.xla.compat import x64
from jaxbandit.xla.platforms import FLOAT32_EPSILON, memory_of, num_cores, platform_of
from jaxbandit.xla.threefry import key_words, threefry

PACKAGES = re.compile(
    r"(jax|jaxlib|jaxbandit|numpy|scipy|xarray|h5netcdf|h5py|chex|optax|libtpu|nvidia-.+)$"
    r"|jax-(cuda|rocm)\d*-(plugin|pjrt)$"
)
PLUGIN = re.compile(r"jax-(\w+)-(plugin|pjrt)$")
FLAGS = re.compile(r"(JAX|XLA|JAXBANDIT)_|((CUDA|NVIDIA)_VISIBLE_DEVICES|TF_GPU_ALLOCATOR)$")
PRIVATE = re.compile(r"DIR|PATH|FILE|ADDRESS|TOKEN|KEY")
"""Variables whose values name folders or hosts: only that they are set is said."""
PREALLOCATE = "XLA_PYTHON_CLIENT_PREALLOCATE"
SMALL = {"horizon": 5, "capacity": 2, "num_values": 4}
SIZES = {"horizon": 15, "capacity": 2, "num_values": 5}
EPISODES = 2048
"""Of a measurement of speed, on an instance of those sizes."""
MOST_TIMES = 64
"""So many times as long a measurement of speed may get."""
MAX_ERRORS = 5.0


def examine(self_test: bool = True) -> dict[str, Any]:
    """Looks at the machine and, with ``self_test``, tests it; ``ok`` says whether nothing is wrong.

    In a terminal every step is named while it runs.
    """
    config: Any = jax.config
    with spinner("versions, flags and devices", elsewhere=False):
        installed, seen = versions(), devices()
        found: dict[str, Any] = {
            "versions": installed,
            "wheels": wheel_problems(installed),
            "flags": flags(),
            "settings": {
                "x64": bool(config.jax_enable_x64),
                "threefry_partitionable": bool(config.jax_threefry_partitionable),
                "compilation_cache": bool(config.jax_compilation_cache_dir),
                "cores": num_cores(),
            },
            "devices": seen,
            "notes": notes(installed, seen),
        }
    problems = [*found["wheels"], *(each["problem"] for each in seen if each["problem"])]
    if self_test and seen[0]["problem"] is None:
        found["self_test"] = _test(jax.local_devices()[0])
        failed = [each for each in found["self_test"]["checks"] if not each["passed"]]
        problems += [f"self-test: {each['name']}: {each['seen']}" for each in failed]
    return found | {"problems": problems, "ok": not problems}


def _test(device: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"checks": [run_check(*named, device) for named in CHECKS.items()]}
    compared = [device]
    if device.platform != "cpu":
        with contextlib.suppress(RuntimeError):  # JAX_PLATFORMS leaves the CPU out
            compared.append(jax.local_devices(backend="cpu")[0])
    found["speed"] = []
    for each in compared:
        with spinner(f"speed of {each.platform}: {each.device_kind}", elsewhere=False):
            found["speed"].append(measure(each))
    if device.platform != "cpu":
        found["break_even_lanes"] = break_even(*found["speed"]) if len(compared) == 2 else None
    return found


def format_report(found: Mapping[str, Any]) -> str:
    """The report as text, without the libraries that a plugin brings.

    Example:
        >>> print(format_report({"versions": {"jax": "0.10.2"}, "wheels": [], "flags": {}, "settings": {"cores": 2},
        ...     "devices": [{"platform": "cpu", "kind": "cpu", "memory_bytes": None, "choices": "cpu", "problem": None}],
        ...     "notes": [], "problems": [], "ok": True}))
        versions  jax 0.10.2
        wheels    match
        flags     none
        settings  cores 2
        device    cpu: cpu, choices of a cpu
        result    nothing is wrong
    """
    shown = {name: v for name, v in found["versions"].items() if not name.startswith("nvidia-")}
    lines = [
        ("versions", ", ".join(f"{name} {version}" for name, version in shown.items())),
        ("wheels", "match" if not found["wheels"] else "do not match"),
        ("flags", "  ".join(f"{name}={value}" for name, value in found["flags"].items()) or "none"),
        ("settings", ", ".join(f"{name} {value}" for name, value in found["settings"].items())),
    ]
    for each in found["devices"]:
        memory = f", {each['memory_bytes'] / 1e9:.1f} GB" if each["memory_bytes"] else ""
        choices = f", choices of a {each['choices']}" if each["choices"] else ""
        lines.append(("device", f"{each['platform']}: {each['kind']}{memory}{choices}"))
    lines += [("note", note) for note in found["notes"]]
    tested = found.get("self_test", {"checks": (), "speed": ()})
    for each in tested["checks"]:
        verdict = "passed" if each["passed"] else "FAILED"
        lines.append(
            ("test", f"{verdict}  {each['name']} ({each['seconds']:.1f} s): {each['seen']}")
        )
    for row in tested["speed"]:
        step, lane = f"{row['us_per_step']:.1f}", f"{row['us_per_lane']:.3f}"
        text = f"{step} us per episode of {row['lanes']} lanes, {lane} us per episode and lane"
        lines.append(("speed", f"{row['device']}: {text}, first time {row['first_seconds']:.1f} s"))
    if "break_even_lanes" in tested:
        lanes = tested["break_even_lanes"]
        unknown = "not known: JAX_PLATFORMS leaves the CPU out"
        lines.append(("lanes", f"the device pays from {lanes} lanes on" if lanes else unknown))
    lines += [("PROBLEM", problem) for problem in found["problems"]]
    lines.append(("result", "nothing is wrong" if found["ok"] else "something is wrong"))
    return "\n".join(f"{name:9} {text}" for name, text in lines)


def versions() -> dict[str, str]:
    """Python, the system, and the packages that take part; those of a GPU where they are installed."""
    found = {
        re.sub(r"[-_.]+", "-", x.name or "").lower(): x.version for x in metadata.distributions()
    }
    installed = {name: found[name] for name in sorted(filter(PACKAGES.match, found))}
    system = f"{platform.system()} {platform.machine()}"
    return {"python": platform.python_version(), "system": system} | installed


def wheel_problems(found: Mapping[str, str]) -> list[str]:
    """What does not fit together among jax, jaxlib and their plugins.

    Example:
        >>> wheel_problems({"jax": "0.10.2", "jaxlib": "0.10.2", "jax-cuda12-plugin": "0.10.2", "jax-cuda12-pjrt": "0.10.2"})
        []
        >>> wheel_problems({"jax": "0.12.0", "jaxlib": "0.12.0", "jax-cuda12-plugin": "0.10.2", "jax-cuda12-pjrt": "0.12.0"})
        ["jax-cuda12-plugin is 0.10.2; accepted: 0.12.0, the version of jaxlib (pip install -U 'jax[cuda12]==0.12.0')"]
    """
    ours, jaxlib = found.get("jax"), found.get("jaxlib")
    if ours is None or jaxlib is None:
        return [f"jax is {ours} and jaxlib is {jaxlib}; accepted: both installed"]
    problems = []
    if ours.split(".")[:2] != jaxlib.split(".")[:2]:
        cure = f"pip install -U jaxlib=={ours}"
        problems.append(f"jaxlib is {jaxlib}; accepted: that of jax {ours} ({cure})")
    for plugin in filter(None, map(PLUGIN.match, found)):
        name, extra, kind = plugin[0], plugin[1], plugin[2]
        if found[name] != jaxlib:
            cure = f"pip install -U 'jax[{extra}]=={ours}'"
            accepted = f"{jaxlib}, the version of jaxlib ({cure})"
            problems.append(f"{name} is {found[name]}; accepted: {accepted}")
        other = f"jax-{extra}-{'pjrt' if kind == 'plugin' else 'plugin'}"
        if other not in found:
            problems.append(f"{name} is installed without {other}; accepted: both")
    return problems


def flags(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The environment variables that change what jax or jaxbandit does.

    Example:
        >>> flags({"XLA_FLAGS": "--x=1", "HOME": "/somewhere", "JAX_COMPILATION_CACHE_DIR": "/somewhere"})
        {'JAX_COMPILATION_CACHE_DIR': '(set)', 'XLA_FLAGS': '--x=1'}
    """
    named = sorted(filter(FLAGS.match, environment))
    return {name: "(set)" if PRIVATE.search(name) else environment[name] for name in named}


def devices() -> list[dict[str, Any]]:
    """jax's local devices, each with the choices that jaxbandit makes for it, or why it makes none."""
    found = []
    for device in jax.local_devices():
        seen = {"platform": device.platform, "kind": device.device_kind}
        seen |= {"memory_bytes": memory_of(device), "choices": None, "problem": None}
        try:
            seen["choices"] = platform_of(device).name
        except ValueError as error:
            seen["problem"] = str(error)
        found.append(seen)
    return found


def notes(found: Mapping[str, str], seen: list[dict[str, Any]]) -> list[str]:
    """What a user may want to know, though it is no mistake.

    Example:
        >>> notes({"jax-cuda12-plugin": "0.10.2"}, [{"platform": "cpu"}])
        ['a CUDA plugin is installed, but jax sees no GPU: no card, no driver, or JAX_PLATFORMS=cpu']
    """
    kinds = {each["platform"] for each in seen}
    text = []
    if any("cuda" in name for name in filter(PLUGIN.match, found)) and kinds == {"cpu"}:
        why = "no card, no driver, or JAX_PLATFORMS=cpu"
        text.append(f"a CUDA plugin is installed, but jax sees no GPU: {why}")
    if kinds & {"gpu", "cuda", "rocm"} and PREALLOCATE not in os.environ:
        cure = f"{PREALLOCATE}=false takes what is used"
        text.append(f"jax takes three quarters of the card at once; {cure}")
    return text


def run_check(name: str, check: Callable[[Any], tuple[bool, str]], device: Any) -> dict[str, Any]:
    """One check; an error is a failure with its text."""
    began = time.perf_counter()
    try:
        with spinner(f"checking {name}", elsewhere=False), jax.default_device(device):
            passed, seen = check(device)
    except Exception as error:  # whatever goes wrong on a strange machine belongs into the report
        passed, seen = False, f"{type(error).__name__}: {error}"
    return {"name": name, "passed": passed, "seen": seen, "seconds": time.perf_counter() - began}


def random_bits(device: Any) -> tuple[bool, str]:
    """Our Threefry gives the bits of jax's."""
    key = jax.random.key(7, impl="threefry2x32")
    folded = jax.random.key_data(jax.random.fold_in(key, 12345))
    ours = jnp.stack(jax.jit(threefry)(key_words(key), (jnp.uint32(0), jnp.uint32(12345))))
    same = np.array_equal(np.asarray(ours), np.asarray(folded))
    return same, "jax.random.fold_in and ours agree" if same else f"{ours} instead of {folded}"


def doubles(device: Any) -> tuple[bool, str]:
    """float64 adds whole numbers up to 2^53 exactly, and in order."""
    with x64():
        terms = jnp.asarray([2.0**53 - 4, 1.0, 1.0, 1.0, 1.0], jnp.float64)
        found = float(jax.jit(lambda x: x[0] + x[1] + x[2] + x[3] + x[4])(terms))
    return found == 2.0**53, f"2^53 - 4 + 1 + 1 + 1 + 1 = {found:.0f}"


def _sweep(learner: Any, sizes: Mapping[str, int], devices: list[Any], **how: Any) -> np.ndarray:
    """The final regrets of a sweep on one instance, one for each seed."""
    how = {"record": jb.record.linear(1), "progress": False, "devices": devices, **how}
    mdp = jb.make_instance("prophet-uniform", **sizes)
    return jb.sweep({"tested": learner}, {"I1": mdp}, **how)["regret"].values.ravel()


def lane_bits(learner: str, engine: str, num_episodes: int, device: Any) -> tuple[bool, str]:
    """A lane alone and in a batch, cut into other chunks, has the same bits."""
    how = {"num_episodes": num_episodes, "engine": engine, "record": jb.record.linear(20)}
    run = partial(_sweep, jb.make_learner(learner, preset="practical"), SMALL, [device], **how)
    alone = run(num_seeds=1)
    batch = run(num_seeds=37, chunk_size=77)[: alone.size]
    text = f"regret {alone[-1]} alone, {batch[-1]} beside 36 others"
    return alone.tobytes() == batch.tobytes(), text


def exact_regret(device: Any) -> tuple[bool, str]:
    """The regret of a fixed policy is T times its own, found by other code in float64."""
    mdp = jb.make_instance("prophet-uniform", **SMALL)
    policy = np.ones((mdp.horizon, mdp.width + 1), np.int32)
    fixed = jb.make_learner("fixed", policy=policy)
    found = float(_sweep(fixed, SMALL, [device], num_episodes=1000, num_seeds=1)[0])
    wanted = 1000 * float(jb.regret(mdp, policy))
    # All terms are positive. A stage rounds 2 k + 1 table entries and as many sums and products, the sum over episodes
    # (in float64) nothing that counts; jb.regret itself, in float32 or better, errs by as much.
    bound = 2 * mdp.horizon * (4 * mdp.width + 2) * FLOAT32_EPSILON
    return abs(found / wanted - 1) <= bound, f"{found} of {wanted}, bound {bound:.1e} of it"


def engines(device: Any) -> tuple[bool, str]:
    """ExpRef block by block and episode by episode has one mean regret."""
    made = jb.make_learner("expref", episodes_scale=0.01, last_epsilon=0.1, threshold=0.2)
    run = partial(_sweep, made, SMALL, [device], num_episodes=4000, num_seeds=128)
    one, two = run(engine="blocks"), run(engine="episodes")
    spread = float(np.sqrt((one.var(ddof=1) + two.var(ddof=1)) / one.size))
    errors = float(abs(one.mean() - two.mean()) / spread)
    seen = f"mean regret {one.mean():.2f} and {two.mean():.2f}, {errors:.1f} standard errors apart"
    return errors <= MAX_ERRORS, seen


CHECKS: dict[str, Callable[[Any], tuple[bool, str]]] = {
    "random bits": random_bits,
    "float64": doubles,
    "bits, episodes": partial(lane_bits, "ucbvi", "episodes", 1500),
    "bits, blocks": partial(lane_bits, "expref", "blocks", 10**6),
    "exact regret": exact_regret,
    "law of the engines": engines,
}


def measure(device: Any, num_episodes: int = EPISODES) -> dict[str, Any]:
    """UCB-VI: microseconds per episode of a full load, and per episode and lane.

    One tile for every worker of a device (on a CPU, a tile for each core), timed after it has been compiled.
    """
    workers = num_cores() if device.platform == "cpu" else 1
    lanes = platform_of(device).lanes * workers
    learner = jb.make_learner("ucbvi", preset="practical")

    def play(count: int) -> float:
        began = time.perf_counter()
        _sweep(learner, SIZES, [device] * workers, num_episodes=count, num_seeds=lanes)
        return time.perf_counter() - began

    first = play(num_episodes)
    short, full, count = play(1), play(num_episodes), num_episodes
    while (
        full < 2 * short and count < MOST_TIMES * num_episodes
    ):  # too short to be told from a sweep's fixed cost
        count *= 4
        full = play(count)
    step = max(full - short, 0.0) / count * 1e6
    found = {"device": f"{device.platform}: {device.device_kind}", "learner": "ucbvi", **SIZES}
    found |= {"lanes": lanes, "us_per_step": step, "us_per_lane": step / lanes}
    return found | {"first_seconds": first}


def break_even(device: Mapping[str, Any], cpu: Mapping[str, Any]) -> int:
    """Lanes from which a device is faster than the CPU: a step of the device takes what it takes with any number up to
    its tile's, one of the CPU is paid lane by lane.

    Example:
        >>> break_even({"us_per_step": 40.0}, {"us_per_lane": 0.25})
        160
    """
    return math.ceil(device["us_per_step"] / max(cpu["us_per_lane"], 1e-9))
