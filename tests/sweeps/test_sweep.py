"""Sweeps: numbers that depend on nothing but the configuration, the Dataset's schema, errors."""

import dataclasses
import inspect
import json

import jax
import numpy as np
import pytest
import xarray
from sweep_program import NUM_EPISODES, SIZES, TIMES, assert_same_bits, configuration

import jaxbandit as jb
from jaxbandit.results.dataset import TEXTS, annotate, store_instances
from jaxbandit.sweeps.options import SweepOptions
from jaxbandit.xla.programs import PROGRAMS


@pytest.fixture(scope="module")
def whole():
    return jb.sweep(**configuration(chunk_size=NUM_EPISODES))


def test_how_it_runs_changes_no_bit_of_the_whole_result(whole):
    """Single lanes: see `test_surroundings`."""
    how = {"chunk_size": 7919, "max_lanes": 1, "devices": 1}
    assert_same_bits(jb.sweep(**configuration(**how)), whole)


def test_the_schema(whole):
    lanes = ("learner", "instance", "seed")
    dims = {
        "regret": (*lanes, "episode"),
        "final_gap": lanes,
        "final_policy": (*lanes, "stage", "level"),
        "phase_end": (*lanes, "phase"),
        "active_actions": (*lanes, "phase", "stage", "level"),
        **dict.fromkeys(TIMES, ("learner", "instance")),
    }
    assert {name: whole[name].dims for name in dims} == dims
    assert whole["regret"].dtype == np.float64
    coordinates = {
        "instance": ["I1", "I2/0", "I2/1"],
        "family": ["I1", "I2", "I2"],
        "seed": list(range(8)),
        "stage": [1, 2, 3],
        "level": [0, 1, 2],
    }
    assert {name: whole[name].values.tolist() for name in coordinates} == coordinates
    assert whole["episode"].values[-1] == NUM_EPISODES
    assert np.isnan(whole["phase_end"].sel(learner="UCB-VI")).all()
    assert whole["phase_end"].sel(learner="ExpRef", phase=1).notnull().all()
    # what was compiled before in this process is not compiled again
    assert (whole[TIMES[1:]].to_dataarray() > 0).all()
    assert (whole["compile_seconds"] >= 0).all()
    value, policy = jb.optimal(configuration()["instances"]["I1"])
    np.testing.assert_allclose(whole["optimal_value"].sel(instance="I1"), value, rtol=1e-6)
    np.testing.assert_array_equal(whole["optimal_policy"].sel(instance="I1"), policy)
    assert (np.diff(whole["regret"], axis=-1) >= 0).all()
    lane = whole.sel(learner="UCB-VI", instance="I1", seed=5)
    policy = lane["final_policy"].values.astype(np.int32)
    gap = jb.regret(configuration()["instances"]["I1"], policy)
    np.testing.assert_allclose(lane["final_gap"], gap, atol=1e-6)


def test_attributes_tell_how_it_was_made(whole, tmp_path):
    config = json.loads(whole.attrs["config"])
    expected = {
        "num_episodes": NUM_EPISODES,
        "num_seeds": 8,
        "seed": 3,
        "record": {"kind": "log", "count": 9, "first": 1},
    }
    assert expected.items() <= config.items()
    engines = {name: learner["engine"] for name, learner in config["learners"].items()}
    assert engines == {"UCB-VI": "episodes", "ExpRef": "blocks"}
    assert config["learners"]["UCB-VI"]["params"] == {"bonus_scale": [0.5]}
    known = {"jaxbandit", "python", "jax", "jaxlib", "numpy", "xarray", "device"}
    assert set(json.loads(whole.attrs["versions"])) >= known
    assert whole.attrs["jaxbandit_version"] == jb.__version__
    xarray.testing.assert_identical(jb.load(jb.save(whole, tmp_path / "run.nc")), whole)


def test_parameter_grid_and_pairing():
    learners = {
        "c": jb.grid(jb.make_learner("ucbvi"), bonus_scale=[0.1, 0.5, 1.0]),
        "0.5": jb.make_learner("ucbvi", bonus_scale=0.5),
        "ExpRef": jb.make_learner("expref", preset="practical"),
    }
    alone = {"I1": jb.make_instance("prophet-uniform", **SIZES)}
    dataset = jb.sweep(**configuration(learners=learners, instances=alone, num_seeds=3))
    assert dataset["regret"].dims == ("learner", "instance", "parameter", "seed", "episode")
    np.testing.assert_array_equal(dataset["bonus_scale"], [0.1, 0.5, 1.0])
    assert dataset["varied"].values.tolist() == [True, False, False]
    # the same program with the same keys: parameter point 1 of the grid is the single learner, bit
    # for bit
    point = dataset["regret"].sel(learner="c", parameter=1).values
    assert point.tobytes() == dataset["regret"].sel(learner="0.5", parameter=0).values.tobytes()
    # without a grid it is the same at every point
    single = dataset["regret"].sel(learner="0.5")
    assert (single == single.sel(parameter=0)).all()


def test_a_parameter_sweep_compiles_once_per_learner():
    """Bonus scales x instances x seeds; then others, other numbers of them, and another T, without any compilation."""

    def run(scales, count, num_episodes, num_seeds):
        draws = jb.family("prophet-random", count=count, key=jax.random.key(count), **SIZES)
        learners = {
            name: jb.grid(jb.make_learner("ucbvi", monotone=name == "m"), bonus_scale=scales)
            for name in "hm"
        }
        learners["E"] = jb.make_learner("expref", preset="practical", threshold=scales[0])
        grid = jb.record.linear(4)
        return jb.sweep(
            learners, {"I2": draws}, num_episodes, num_seeds, record=grid, progress=False
        )

    PROGRAMS.compiled.clear()  # another test may have needed one of them
    before = PROGRAMS.count
    dataset = run(np.linspace(0.1, 2, 5), 4, num_episodes=64, num_seeds=6)
    sizes = {"learner": 3, "instance": 4, "parameter": 5, "seed": 6}
    assert dict(dataset["final_gap"].sizes) == sizes
    assert PROGRAMS.count - before == 3
    after = PROGRAMS.count
    run(np.linspace(0.2, 3, 3), 2, num_episodes=1000, num_seeds=1)
    assert PROGRAMS.count == after


def unordered():
    return jb.make_instance("prophet-uniform", **SIZES)._replace(rank=None)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"engine": "block"}, ValueError, r"engine: 'block'; accepted: 'auto', 'episodes', 'blocks'"),
        ({"engine": "blocks"}, ValueError, r"learners\['UCB-VI'\] \(ucbvi\), which has no block form; accepted: 'auto' or 'epi"),
        ({"num_episodes": 0}, ValueError, "num_episodes: 0; accepted: a whole number, at least 1"),
        ({"num_episodes": 10.5}, ValueError, r"num_episodes: 10\.5; accepted: a whole number, at least 1"),
        ({"num_seeds": -1}, ValueError, "num_seeds: -1; accepted"),
        ({"devices": 99}, ValueError, r"devices: 99; accepted: 1\.\.\d+, the cores of this machine"),
        ({"learners": {}}, ValueError, "learners: {}; accepted: a non-empty dictionary, name -> learner"),
        ({"learners": {"U": "ucbvi"}}, TypeError, r"learners\['U'\]: str; accepted: a Learner"),
        ({"instances": {"": unordered}}, ValueError, "instances: name ''; accepted: a non-empty string"),
        ({"record": [1, 2]}, TypeError, r"record: \[1, 2\]; accepted: jb.record"),
        ({"record": jb.record.explicit([10**6])}, ValueError, r"record: episode 1000000; accepted: 1\.\.16000 \(num_episodes\)"),
        ({"checkpoint": 3}, TypeError, "checkpoint: .*; accepted: a .*, or None"),
        ({"on_chunk": 3}, TypeError, "on_chunk: .*; accepted: a .*, or None"),
        ({"learners": {"Ordered": jb.make_learner("ordered-expref")}, "instances": {"I": unordered()}}, ValueError,
         r"instances\['I'\] has no order of actions \(rank\), which learners\['Ordered'\] \(.*\) needs"),
    ],
)  # fmt: skip
def test_errors(change, error, message):
    with pytest.raises(error, match=message):
        jb.sweep(**configuration(**change))


def test_the_signature_of_sweep_and_plan_lists_every_option():
    for function in (jb.sweep, jb.plan):
        shown = inspect.signature(function).parameters
        for each in dataclasses.fields(SweepOptions):
            assert shown[each.name].default == each.default
            assert shown[each.name].kind is inspect.Parameter.KEYWORD_ONLY


@pytest.mark.parametrize("each", dataclasses.fields(SweepOptions), ids=lambda each: each.name)
def test_options_take_good_values_and_refuse_odd_ones_by_name(each):
    spec = each.metadata.get("spec")
    for value in () if spec is None else spec.good():
        SweepOptions(**{each.name: value})
    for value in () if spec is None else spec.odd():
        with pytest.raises(ValueError, match=f"^{each.name}: "):
            SweepOptions(**{each.name: value})


def test_a_bare_learner_and_mdp_are_a_sweep_of_one():
    mdp = jb.make_instance("prophet-uniform", **SIZES)
    learner = jb.make_learner("uniform")
    bare = jb.sweep(learner, mdp, 100, 2)
    named = jb.sweep({"uniform": learner}, {"MDP": mdp}, 100, 2)
    assert bare["regret"].identical(named["regret"])


def test_an_unknown_option_is_refused_with_near_matches_and_an_old_one_warns():
    mdp = jb.make_instance("prophet-uniform", **SIZES)
    learner = jb.make_learner("uniform")
    with pytest.raises(TypeError, match="sweep: option 'chunk_sizes'; did you mean 'chunk_size'"):
        jb.sweep(learner, mdp, 100, 2, chunk_sizes=3)
    with pytest.warns(DeprecationWarning, match="is now 'allow_backend_change'") as seen:
        jb.plan(learner, mdp, 100, 2, measure_seconds=0, allow_other_bits=True)
    assert seen[0].filename == __file__
    with pytest.warns(DeprecationWarning, match=r"give seed=\.\.\. by its name") as seen:
        jb.plan(learner, mdp, 100, 2, 3, measure_seconds=0)
    assert seen[0].filename == __file__
    with pytest.warns(DeprecationWarning, match="is now jb.plan") as seen:
        assert jb.sweep(learner, mdp, 100, 2, dry_run=True).num_lanes == 2
    assert seen[0].filename == __file__


SMALL = jb.make_instance("hard-general", theta=[0, 1], num_actions=2, gap=0.1)
LARGE = jb.make_instance("random-ordered", key=jax.random.key(0), horizon=4, width=3, num_actions=3)


def test_shapes_are_mixed_and_padded():
    instances = {
        "small": jb.make_instance("prophet-uniform", **SIZES),
        "large": jb.make_instance("prophet-uniform", horizon=4, capacity=3, num_values=3),
    }
    ucbvi = {"U": jb.make_learner("ucbvi")}
    dataset = jb.sweep(**configuration(learners=ucbvi, instances=instances, num_seeds=3))
    assert dataset["regret"].notnull().all()
    policy = dataset["final_policy"]
    assert dict(policy.sizes) == {"learner": 1, "instance": 2, "seed": 3, "stage": 4, "level": 4}
    assert policy.sel(instance="large").notnull().all()
    assert policy.sel(instance="small", stage=[1, 2, 3], level=[0, 1, 2]).notnull().all()
    assert policy.sel(instance="small", stage=4).isnull().all()
    assert policy.sel(instance="small", level=3).isnull().all()


def test_padding_is_nan_and_names_are_empty_without_labels():
    ds = store_instances(xarray.Dataset(coords={"instance": ["s", "l"]}), {"s": SMALL, "l": LARGE})
    assert not "".join(ds["action_name"].values.ravel().tolist())
    assert ds["reward_scale"].values.tolist() == [1.0, 1.0]
    assert dict(ds.sizes) == {"instance": 2, "stage": 4, "level": 4, "action": 3, "outcome": 3}
    assert int(ds["mdp_prob"].sel(instance="s").notnull().sum()) == SMALL.prob.size
    assert bool(ds["mdp_rank"].sel(instance="s").isnull().all())
    np.testing.assert_array_equal(ds["mdp_reward"].sel(instance="l").values, LARGE.reward)
    assert ds["mdp_start"].values.tolist() == [1, 3]


def test_texts_of_a_user_stay():
    ds = xarray.Dataset(
        {"regret": ("episode", [1.0], {"units": "$"}), "my_own": ("episode", [1.0])}
    )
    ds = annotate(ds)
    assert ds["regret"].attrs == {"long_name": TEXTS["regret"][0], "units": "$"}
    assert ds["my_own"].attrs == {"long_name": "my own", "units": "1"}
