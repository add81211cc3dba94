"""One lane in many surroundings: its bits are the same, because the compiled programs are the same objects."""

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sweep_program import SIZES, configuration

import jaxbandit as jb
from jaxbandit.mdp import digest
from jaxbandit.sweeps.lanes import choose_devices
from jaxbandit.xla.programs import PROGRAMS

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


def neighbours(learner):
    """Other instances of the same size, and other parameters of the same learner: no new programs."""
    mine = arguments(learner)
    (name, own), *_ = mine["learners"].items()
    other = {"bonus_scale": 0.9} if name == "UCB-VI" else {"threshold": 0.3}
    params = {**own.params, **{k: np.asarray(v, own.params[k].dtype) for k, v in other.items()}}
    return {
        "instances": {"before": draws(3, 5), **mine["instances"], "after": draws(2, 6)},
        "learners": {"other": own._replace(params=params), **mine["learners"]},
    }


OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "num_seeds": st.sampled_from([2, 7, 8, 15, 16, 17, 33, 64, 65, 66]),
        "chunk_size": st.sampled_from([97, 1000, 10**6]),
        "devices": st.sampled_from([1, min(2, WORKERS)]),
        "max_bytes": st.just(1),
        "max_lanes": st.sampled_from([1, 16, 40]),
        "neighbours": st.just(True),
    },
)


@pytest.mark.parametrize("learner", LEARNERS)
def test_same_programs_and_same_bits(alone, learner):
    """Seeds, chunks, devices, memory, other instances and parameters: any of them together."""

    @settings(deadline=None, derandomize=True, max_examples=8, database=None)
    @given(OPTIONS)
    def check(options):
        beside = neighbours(learner) if options.pop("neighbours", False) else {}
        if beside:
            options["num_seeds"] = min(options.get("num_seeds", 1), 8)
        before = executables()
        dataset = jb.sweep(**arguments(learner, **options, **beside))
        after = executables()
        # Not one program more, and those that ran are the very objects that ran the lane alone.
        assert after.keys() == before.keys()
        assert all(after[name] is before[name] for name in before)
        assert bits(dataset, learner) == alone[learner]

    check()


def test_300_neighbours(alone):
    assert bits(jb.sweep(**arguments("UCB-VI", num_seeds=301)), "UCB-VI") == alone["UCB-VI"]


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
        made = {name: jb.make_learner(name) for name in ("expref", "policy-gradient")}
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
