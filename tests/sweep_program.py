"""A small sweep, run by tests in this process or as a program in others:

python sweep_program.py '{"result": "run.nc", "devices": 2, "sweep": {"num_seeds": 8}}'
"""

import contextlib
import json
import pathlib
import subprocess
import sys
import time

SIZES = {"horizon": 3, "capacity": 2, "num_values": 3}
NUM_EPISODES = 16_000
TIMES = ["compile_seconds", "run_seconds", "episodes_per_second"]


def configuration(only=None, **changes):
    """Arguments of jb.sweep; ``only`` names the one learner that is wanted."""
    import jax

    import jaxbandit as jb

    learners = {
        "UCB-VI": jb.make_learner("ucbvi", bonus_scale=0.5),
        "ExpRef": jb.make_learner("expref", preset="practical"),
    }
    plain = {
        "learners": {name: learner for name, learner in learners.items() if only in (None, name)},
        "instances": {
            "I1": jb.make_instance("prophet-uniform", **SIZES),
            "I2": jb.family("prophet-random", count=2, key=jax.random.key(1), **SIZES),
        },
        "num_episodes": NUM_EPISODES,
        "num_seeds": 8,
        "seed": 3,
        "record": jb.record.log(9),
        "progress": False,
    }
    return plain | changes


def assert_same_bits(one, other):
    """Everything but the seconds."""
    one, other = one.drop_vars(TIMES), other.drop_vars(TIMES)
    assert set(one.variables) == set(other.variables)
    for name in one.variables:
        assert one[name].dims == other[name].dims
        assert one[name].dtype == other[name].dtype
        assert one[name].values.tobytes() == other[name].values.tobytes(), name


def start(**options):
    """The program with these options, in a process of its own."""
    command = [sys.executable, __file__, json.dumps(options)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def wait_for(process, folder, pattern, since=0):
    """Until a file of that name is newer (in nanoseconds), or the process has ended."""
    while process.poll() is None:
        for path in folder.glob(pattern):
            with contextlib.suppress(FileNotFoundError):  # files come and go while we look
                if path.stat().st_mtime_ns > since:
                    return
        time.sleep(0.005)


def main(options):
    import jax

    import jaxbandit as jb
    from jaxbandit import distributed

    cache = pathlib.Path(__file__).parent.parent / ".jax_cache"
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_compilation_cache_dir", str(cache))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    if "devices" in options:
        distributed.use_cpu_devices(options["devices"])
    if "processes" in options:
        distributed.initialize(*options["processes"])
    dataset = jb.sweep(**configuration(**options["sweep"]))
    jb.save(dataset, options["result"])


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
