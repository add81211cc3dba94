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
from importlib import metadata
from typing import Any

import numpy as np

from jaxbandit.status import spinner
from jaxbandit.tabular import write_table
from jaxbandit.xla.platforms import FLOAT32_EPSILON, num_cores


def examine(self_test: bool = True) -> dict[str, Any]:
    """Looks at the machine and, with ``self_test``, tests it; ``ok`` says whether nothing is wrong.

    In a terminal every step is named while it runs.
    """
    with spinner("versions, flags and devices", elsewhere=False):
        import jax

        installed, seen = versions(), devices()
        found: dict[str, Any] = {
            "versions": installed,
            "wheels": wheel_problems(installed),
            "flags": flags(),
            "settings": settings(),
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
    import jax

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
    versions = [(name, v) for name, v in found["versions"].items() if not LIBRARIES.match(name)]
    lines = [
        ("versions", ", ".join(f"{name} {version}" for name, version in versions)),
        ("wheels", "match" if not found["wheels"] else "do not match"),
        ("flags", "  ".join(f"{name}={value}" for name, value in found["flags"].items()) or "none"),
        ("settings", ", ".join(f"{name} {value}" for name, value in found["settings"].items())),
    ]
    for each in found["devices"]:
        memory = f", {each['memory_bytes'] / 1e9:.1f} GB" if each["memory_bytes"] else ""
        choices = f", choices of a {each['choices']}" if each["choices"] else ""
        lines.append(("device", f"{each['platform']}: {each['kind']}{memory}{choices}"))
    lines += [("note", note) for note in found["notes"]]
    if "self_test" in found:
        lines += _tested(found["self_test"])
    lines += [("PROBLEM", problem) for problem in found["problems"]]
    lines.append(("result", "nothing is wrong" if found["ok"] else "something is wrong"))
    return "\n".join(f"{name:9} {text}" for name, text in lines)


def _tested(found: Mapping[str, Any]) -> list[tuple[str, str]]:
    lines = []
    for each in found["checks"]:
        verdict = "passed" if each["passed"] else "FAILED"
        lines.append(
            ("test", f"{verdict}  {each['name']} ({each['seconds']:.1f} s): {each['seen']}")
        )
    head = [
        "device",
        "lanes",
        "us per episode of all lanes",
        "us per episode and lane",
        "first time s",
    ]
    body = [
        [row["device"], f"{row['lanes']}", f"{row['us_per_step']:.1f}", f"{row['us_per_lane']:.3f}", f"{row['first_seconds']:.1f}"]
        for row in found["speed"]
    ]  # fmt: skip
    lines += [("speed", line) for line in write_table(head, body, right=range(1, 5)).splitlines()]
    if "break_even_lanes" in found:
        lanes = found["break_even_lanes"]
        unknown = "not known: JAX_PLATFORMS leaves the CPU out"
        lines.append(("lanes", f"the device pays from {lanes} lanes on" if lanes else unknown))
    return lines


PACKAGES = ("jaxbandit", "jax", "jaxlib", "numpy", "scipy", "xarray", "h5netcdf", "h5py", "chex", "optax")  # fmt: skip
FLAGS = re.compile(r"^((JAX|XLA|JAXBANDIT)_|(CUDA|NVIDIA)_VISIBLE_DEVICES$|TF_GPU_ALLOCATOR$)")
PRIVATE = re.compile(r"DIR|PATH|FILE|ADDRESS|TOKEN|KEY")
"""Variables whose values name folders or hosts: only that they are set is said."""
PLUGINS = re.compile(r"^(jax-(cuda|rocm)\d*-(plugin|pjrt)|libtpu)$")
LIBRARIES = re.compile(r"^nvidia-")


def versions() -> dict[str, str]:
    """Python, the system, and the packages that take part; those of a GPU where they are installed."""
    named = [(re.sub(r"[-_.]+", "-", each.name).lower(), each.version) for each in metadata.distributions() if each.name]  # fmt: skip
    installed = dict(named)
    extra = sorted(name for name in installed if PLUGINS.match(name) or LIBRARIES.match(name))
    system = f"{platform.system()} {platform.machine()}"
    found = {"python": platform.python_version(), "system": system}
    return found | {name: installed[name] for name in (*PACKAGES, *extra) if name in installed}


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
        cure = f"pip install -U jaxlib=={jax}"
        problems.append(f"jaxlib is {jaxlib}; accepted: that of jax {jax} ({cure})")
    for name, version in found.items():
        if not PLUGINS.match(name) or name == "libtpu":
            continue
        _, extra, kind = name.split("-")
        if version != jaxlib:
            cure = f"pip install -U 'jax[{extra}]=={jax}'"
            problems.append(
                f"{name} is {version}; accepted: {jaxlib}, the version of jaxlib ({cure})"
            )
        other = f"jax-{extra}-{'pjrt' if kind == 'plugin' else 'plugin'}"
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
    named = sorted(filter(FLAGS.match, given))
    return {name: "(set)" if PRIVATE.search(name) else given[name] for name in named}


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
        seen = {"platform": device.platform, "kind": device.device_kind}
        seen |= {"memory_bytes": memory_of(device), "choices": choices, "problem": problem}
        found.append(seen)
    return found


def settings() -> dict[str, Any]:
    """jax's settings that numbers or memory depend on, and the cores of this process."""
    import jax

    config: Any = jax.config
    return {
        "x64": bool(config.jax_enable_x64),
        "threefry_partitionable": bool(config.jax_threefry_partitionable),
        "compilation_cache": bool(config.jax_compilation_cache_dir),
        "cores": num_cores(),
    }


def notes(found: Mapping[str, str], seen: list[dict[str, Any]]) -> list[str]:
    """What a user may want to know, though it is no mistake.

    Example:
        >>> notes({"jax-cuda12-plugin": "0.10.2"}, [{"platform": "cpu"}])
        ['a CUDA plugin is installed, but jax sees no GPU: no card, no driver, or JAX_PLATFORMS=cpu']
    """
    kinds = {each["platform"] for each in seen}
    text = []
    if any("cuda" in name for name in filter(PLUGINS.match, found)) and kinds == {"cpu"}:
        why = "no card, no driver, or JAX_PLATFORMS=cpu"
        text.append(f"a CUDA plugin is installed, but jax sees no GPU: {why}")
    variable = "XLA_PYTHON_CLIENT_PREALLOCATE"
    if kinds & {"gpu", "cuda", "rocm"} and variable not in flags():
        cure = f"{variable}=false takes what is used"
        text.append(f"jax takes three quarters of the card at once; {cure}")
    return text


SMALL = {"horizon": 5, "capacity": 2, "num_values": 4}
MAX_ERRORS = 5.0


def run_check(name: str, check: Callable[[Any], tuple[bool, str]], device: Any) -> dict[str, Any]:
    """One check; an error is a failure with its text."""
    began = time.perf_counter()
    try:
        with spinner(f"checking {name}", elsewhere=False):
            passed, seen = check(device)
    except Exception as error:  # whatever goes wrong on a strange machine belongs into the report
        passed, seen = False, f"{type(error).__name__}: {error}"
    return {"name": name, "passed": passed, "seen": seen, "seconds": time.perf_counter() - began}


def random_bits(device: Any) -> tuple[bool, str]:
    """Our Threefry gives the bits of jax's."""
    import jax
    import jax.numpy as jnp

    from jaxbandit.xla.threefry import key_words, threefry

    with jax.default_device(device):
        key = jax.random.key(7, impl="threefry2x32")
        folded = jax.random.key_data(jax.random.fold_in(key, 12345))
        ours = jnp.stack(jax.jit(threefry)(key_words(key), (jnp.uint32(0), jnp.uint32(12345))))
    same = np.array_equal(np.asarray(ours), np.asarray(folded))
    return same, "jax.random.fold_in and ours agree" if same else f"{ours} instead of {folded}"


def doubles(device: Any) -> tuple[bool, str]:
    """float64 adds whole numbers up to 2^53 exactly, and in order."""
    import jax
    import jax.numpy as jnp

    from jaxbandit.xla.compat import x64

    with x64(), jax.default_device(device):
        terms = jnp.asarray([2.0**53 - 4, 1.0, 1.0, 1.0, 1.0], jnp.float64)
        total = jax.jit(lambda x: x[0] + x[1] + x[2] + x[3] + x[4])(terms)
    found = float(total)
    return found == 2.0**53, f"2^53 - 4 + 1 + 1 + 1 + 1 = {found:.0f}"


def _regrets(device: Any, learner: Any, **how: Any) -> np.ndarray:
    """The final regrets of a sweep on a small instance, one for each seed."""
    import jaxbandit as jb

    how = {"record": jb.record.linear(1), "progress": False, "devices": [device], **how}
    mdp = jb.make_instance("prophet-uniform", **SMALL)
    return jb.sweep({"tested": learner}, {"I1": mdp}, **how)["regret"].values.ravel()


def lane_bits(learner: str, engine: str, num_episodes: int) -> Callable[[Any], tuple[bool, str]]:
    """A lane alone and in a batch, cut into other chunks, has the same bits."""

    def check(device: Any) -> tuple[bool, str]:
        import jaxbandit as jb

        made = jb.make_learner(learner, preset="practical")
        how = {"num_episodes": num_episodes, "engine": engine, "record": jb.record.linear(20)}
        alone = _regrets(device, made, num_seeds=1, **how)
        batch = _regrets(device, made, num_seeds=37, chunk_size=77, **how)[: alone.size]
        text = f"regret {alone[-1]} alone, {batch[-1]} beside 36 others"
        return alone.tobytes() == batch.tobytes(), text

    return check


def exact_regret(device: Any) -> tuple[bool, str]:
    """The regret of a fixed policy is T times its own, found by other code in float64."""
    import jaxbandit as jb

    mdp = jb.make_instance("prophet-uniform", **SMALL)
    policy = np.ones((mdp.horizon, mdp.width + 1), np.int32)
    fixed = jb.make_learner("fixed", policy=policy)
    found = float(_regrets(device, fixed, num_episodes=1000, num_seeds=1)[0])
    wanted = 1000 * float(jb.regret(mdp, policy))
    # All terms are positive. A stage rounds 2 k + 1 table entries and as many sums and products, the sum over episodes
    # (in float64) nothing that counts; jb.regret itself, in float32 or better, errs by as much.
    bound = 2 * mdp.horizon * (4 * mdp.width + 2) * FLOAT32_EPSILON
    return abs(found / wanted - 1) <= bound, f"{found} of {wanted}, bound {bound:.1e} of it"


def engines(device: Any) -> tuple[bool, str]:
    """ExpRef block by block and episode by episode has one mean regret."""
    import jaxbandit as jb

    made = jb.make_learner("expref", episodes_scale=0.01, last_epsilon=0.1, threshold=0.2)
    one, two = (
        _regrets(device, made, num_episodes=4000, num_seeds=128, engine=engine)
        for engine in ("blocks", "episodes")
    )
    spread = float(np.sqrt((one.var(ddof=1) + two.var(ddof=1)) / one.size))
    errors = float(abs(one.mean() - two.mean()) / spread)
    seen = f"mean regret {one.mean():.2f} and {two.mean():.2f}, {errors:.1f} standard errors apart"
    return errors <= MAX_ERRORS, seen


CHECKS: dict[str, Callable[[Any], tuple[bool, str]]] = {
    "random bits": random_bits,
    "float64": doubles,
    "bits, episodes": lane_bits("ucbvi", "episodes", 1500),
    "bits, blocks": lane_bits("expref", "blocks", 10**6),
    "exact regret": exact_regret,
    "law of the engines": engines,
}


SIZES = {"horizon": 15, "capacity": 2, "num_values": 5}
EPISODES = 2048


def measure(device: Any, num_episodes: int = EPISODES) -> dict[str, Any]:
    """UCB-VI: microseconds per episode of a full load, and per episode and lane.

    One tile for every worker of a device (on a CPU, a tile for each core), timed after it has been compiled.
    """
    import jaxbandit as jb
    from jaxbandit.xla.platforms import platform_of

    workers = num_cores() if device.platform == "cpu" else 1
    lanes = platform_of(device).lanes * workers
    mdp = jb.make_instance("prophet-uniform", **SIZES)

    def play(count: int) -> float:
        began = time.perf_counter()
        jb.sweep(
            {"UCB-VI": jb.make_learner("ucbvi", preset="practical")}, {"I1": mdp}, num_episodes=count,
            num_seeds=lanes, record=jb.record.linear(1), progress=False, devices=[device] * workers,
        )  # fmt: skip
        return time.perf_counter() - began

    first = play(num_episodes)
    short, full = play(1), play(num_episodes)  # what a sweep takes whatever its length is taken off
    step = max(full - short, 0.0) / num_episodes * 1e6
    return {
        "device": f"{device.platform}: {device.device_kind}",
        "learner": "ucbvi",
        **SIZES,
        "lanes": lanes,
        "us_per_step": step,
        "us_per_lane": step / lanes,
        "first_seconds": first,
    }


def break_even(device: Mapping[str, Any], cpu: Mapping[str, Any]) -> int:
    """Lanes from which a device is faster than the CPU: a step of the device takes what it takes with any number up to
    its tile's, one of the CPU is paid lane by lane.

    Example:
        >>> break_even({"us_per_step": 40.0}, {"us_per_lane": 0.25})
        160
    """
    return math.ceil(device["us_per_step"] / max(cpu["us_per_lane"], 1e-9))
