"""One lane in many surroundings: its bits are the same, because the compiled programs are the same objects."""

import json
import pathlib
import subprocess
import sys

import jax
import numpy as np
import pytest
from sweep_program import SIZES, configuration

import jaxbandit as jb
from jaxbandit.mdp import digest
from jaxbandit.sweeps import loop as running
from jaxbandit.sweeps.lanes import choose_devices
from jaxbandit.xla.programs import PROGRAMS

PROGRAM = pathlib.Path(__file__).parent.parent / "sweep_program.py"
NUM_EPISODES = 3000
LEARNERS = ("UCB-VI", "ExpRef", "ExpRef by episodes")
"""The episode engine, the block engine, and the learner that runs on both."""
WORKERS = choose_devices(None)[1]


@pytest.fixture(scope="module", autouse=True)
def all_programs_are_kept():
    """Else those of other tests in this process would push out what is compared here."""
    from jaxbandit.xla import programs

    kept, programs.KEPT = programs.KEPT, 10**6
    yield
    programs.KEPT = kept


def arguments(learner, **changes):
    """One learner on I1, one seed."""
    name = learner.split()[0]
    plain = configuration(only=name, num_episodes=NUM_EPISODES, num_seeds=1)
    plain["instances"] = {"I1": plain["instances"]["I1"]}
    plain["engine"] = "episodes" if "by episodes" in learner else "auto"
    return plain | changes


def bits(dataset, learner):
    """All that a sweep says of the lane (learner, I1, first parameter point, seed 0)."""
    lane = dataset.sel(learner=learner.split()[0], instance="I1", seed=0)
    if "parameter" in lane.dims:
        lane = lane.isel(parameter=0)
    first = {"stage": slice(0, SIZES["horizon"]), "level": slice(0, SIZES["capacity"] + 1)}
    policy = lane["final_policy"].isel(first)
    return [np.asarray(x).tobytes() for x in (lane["regret"], lane["final_gap"], policy)]


@pytest.fixture(scope="module")
def alone():
    return {learner: bits(jb.sweep(**arguments(learner)), learner) for learner in LEARNERS}


def executables():
    return dict(PROGRAMS.compiled)


def draws(count, seed):
    return jb.family("prophet-random", count=count, key=jax.random.key(seed), **SIZES)


def beside(learner):
    """Other instances of the same size, and other parameters of the same learner: no new programs."""
    mine = arguments(learner)
    (name, own), *_ = mine["learners"].items()
    other = {"bonus_scale": 0.9} if name == "UCB-VI" else {"threshold": 0.3}
    params = {**own.params, **{k: np.asarray(v, own.params[k].dtype) for k, v in other.items()}}
    return {
        "instances": {"before": draws(3, 5), **mine["instances"], "after": draws(2, 6)},
        "learners": {"other": own._replace(params=params), **mine["learners"]},
    }


SURROUNDINGS = {
    "1 neighbour": {"num_seeds": 2},
    "7 neighbours": {"num_seeds": 8},
    "63 neighbours": {"num_seeds": 64},
    "64 neighbours": {"num_seeds": 65},
    "65 neighbours": {"num_seeds": 66},
    "one worker": {"num_seeds": 40, "devices": 1},
    "two workers": {"num_seeds": 40, "devices": min(2, WORKERS)},
    "chunks of 1,000": {"chunk_size": 1000},
    "chunks of 97": {"chunk_size": 97, "num_seeds": 3},
    "chunks beyond the end": {"chunk_size": 10**6},
    "few bytes": {"max_bytes": 1, "num_seeds": 20},
}


@pytest.mark.parametrize("surrounding", [*SURROUNDINGS, "instances and parameters beside it"])
@pytest.mark.parametrize("learner", LEARNERS)
def test_same_programs_and_same_bits(alone, learner, surrounding):
    changes = SURROUNDINGS.get(surrounding) or beside(learner)
    before = executables()
    dataset = jb.sweep(**arguments(learner, **changes))
    after = executables()
    # Not one program more, and those that ran are the very objects that ran the lane alone.
    assert after.keys() == before.keys()
    assert all(after[name] is before[name] for name in before)
    assert bits(dataset, learner) == alone[learner]


def test_300_neighbours(alone):
    before = executables()
    dataset = jb.sweep(**arguments("UCB-VI", num_seeds=301))
    assert executables().keys() == before.keys()
    assert bits(dataset, "UCB-VI") == alone["UCB-VI"]


def test_other_learners_and_sizes_beside_it(alone):
    """They have programs of their own; those of the lane stay what they are."""
    both = configuration(num_episodes=NUM_EPISODES)
    both["learners"] |= {"uniform": jb.make_learner("uniform")}
    wide = jb.make_instance("prophet-uniform", horizon=4, capacity=2, num_values=3)
    before = executables()
    dataset = jb.sweep(**both | {"instances": {"wide": wide, **both["instances"]}, "num_seeds": 5})
    after = executables()
    assert all(after[name] is before[name] for name in before if name in after)
    for learner in ("UCB-VI", "ExpRef"):
        assert bits(dataset, learner) == alone[learner]


SETTINGS = {
    "jax_enable_x64": True,
    "jax_debug_nans": True,
    "jax_debug_infs": True,
    "jax_disable_jit": True,
    "jax_threefry_partitionable": False,
    "jax_default_prng_impl": "rbg",
    "jax_random_seed_offset": 7,
}


def test_settings_of_jax_change_no_bit():
    """All at once, with programs compiled anew: instances, sweeps on both engines, single runs and episodes are the same."""

    key = jax.random.key(4, impl="threefry2x32")  # a key of the user's own has the offset in it
    thirds = {"values": [[0, 1 / 3, 1]] * 2, "probabilities": [[0.1, 0.2, 0.7]] * 2}

    def numbers():
        drawn = [
            jb.make_instance("prophet-random", key=key, **SIZES),
            jb.make_instance("knapsack-random", key=key, horizon=4, budget=2),
            jb.make_instance("random-ordered", key=key, horizon=4, width=2, num_actions=3),
            jb.make_instance("hard-general", key=key, horizon=9, num_actions=3, gap=0.125),
            jb.make_instance("hard-ordered", key=key, horizon=9, num_downs=3, num_actions=3, gap=0.1),
            jb.make_instance("prophet-uniform", horizon=4, capacity=1, num_values=4),
            jb.make_instance("posted-pricing", **thirds, capacity=1),
            jb.make_instance("knapsack", **{"rewards" if n == "values" else n: v for n, v in thirds.items()},
                             costs=[[1, 0, 2]] * 2, budget=2),
        ]  # fmt: skip
        names = ("expref", "policy-gradient")
        made = {name: jb.make_learner(name) for name in names}
        dataset = jb.sweep(made, {"I2": drawn[0]}, 200, 2, progress=False)
        once = jb.run(made["policy-gradient"], drawn[0], 100, key, progress=False)
        episode = jb.trace(drawn[0], once.policies[-1], key)
        leaves = jax.tree.leaves([mdp._replace(start=np.int32(mdp.start)) for mdp in drawn])
        found = [*leaves, dataset["regret"], once.regret, once.policies, episode.rewards]
        return [digest(mdp) for mdp in drawn], [np.asarray(x, np.float64).tolist() for x in found]

    plain = numbers()
    before = {name: getattr(jax.config, name) for name in SETTINGS}
    kept = executables()
    PROGRAMS.compiled.clear()
    try:
        for name, value in SETTINGS.items():
            jax.config.update(name, value)
        assert numbers() == plain
    finally:
        for name, value in before.items():
            jax.config.update(name, value)
        PROGRAMS.compiled.clear()
        PROGRAMS.compiled.update(kept)


class KilledError(Exception):
    """In place of a kill."""


@pytest.mark.parametrize("learner", LEARNERS)
def test_resumed_at_random_points(alone, tmp_path, monkeypatch, learner):
    """Killed up to five times, each time resumed with another chunk length and another number of seeds."""
    rng = np.random.default_rng(7)
    original = running.make_tile_runner
    left = [0]

    def make(*args):
        runner = original(*args)
        step = runner.step

        def counted(carry):
            left[0] -= 1
            if left[0] < 0:
                raise KilledError
            return step(carry)

        runner.step = counted
        return runner

    monkeypatch.setattr(running, "make_tile_runner", make)
    saving = {"checkpoint": tmp_path / "run", "checkpoint_seconds": 0, "devices": 1}
    kills = 0
    for _ in range(5):
        left[0] = int(rng.integers(1, 3))
        length = 1 if learner == "ExpRef" else int(rng.integers(100, 400))
        try:
            jb.sweep(**arguments(learner, chunk_size=length, num_seeds=2, **saving))
        except KilledError:
            kills += 1
    assert kills >= (1 if learner == "ExpRef" else 3)  # blocks are few
    left[0] = 10**9
    dataset = jb.sweep(**arguments(learner, num_seeds=4, **saving))
    assert bits(dataset, learner) == alone[learner]


def test_two_devices_in_another_process(alone, tmp_path):
    """Tiles on both devices: 40 seeds of UCB-VI fill three."""
    options = {
        "result": str(tmp_path / "two.nc"),
        "devices": 2,
        "sweep": {"num_episodes": NUM_EPISODES, "num_seeds": 40},
    }
    subprocess.run(
        [sys.executable, str(PROGRAM), json.dumps(options)], check=True, capture_output=True
    )
    dataset = jb.load(tmp_path / "two.nc")
    assert json.loads(dataset.attrs["config"])["devices"] == 2
    for learner in ("UCB-VI", "ExpRef"):
        assert bits(dataset, learner) == alone[learner]
