"""Sweeps: numbers that depend on nothing but the configuration, the Dataset's schema, errors, resuming."""

import json
import os
import signal

import jax
import numpy as np
import pytest
import xarray
from sweep_program import NUM_EPISODES, SIZES, TIMES, assert_same_bits, configuration

import jaxbandit as jb
from jaxbandit import running
from jaxbandit.engines import runner as engine_runner
from jaxbandit.progress import Interruption, SweepInterrupted


@pytest.fixture(scope="module")
def whole():
    return jb.sweep(**configuration(chunk_size=NUM_EPISODES))


def test_chunk_size_changes_no_bit(whole):
    for chunk_size in (1000, 7919):
        assert_same_bits(jb.sweep(**configuration(chunk_size=chunk_size)), whole)


def test_lane_batches_change_no_bit(whole):
    for max_lanes in (3, 16):
        assert_same_bits(jb.sweep(**configuration(max_lanes=max_lanes)), whole)


def test_eight_seeds_alone_are_the_first_of_thirty_two_and_other_lanes_do_not_matter(whole):
    alone = {"I1": jb.make_instance("prophet-uniform", **SIZES)}
    many = jb.sweep(**configuration(instances=alone, num_seeds=32, max_lanes=3))
    for name in ("regret", "final_gap", "final_policy"):
        eight = whole[name].sel(instance=["I1"])
        assert eight.values.tobytes() == many[name].isel(seed=slice(0, 8)).values.tobytes()


def test_the_schema(whole):
    assert whole["regret"].dims == ("learner", "instance", "seed", "episode")
    assert whole["regret"].dtype == np.float64
    assert whole["regret"].shape == (2, 3, 8, whole.sizes["episode"])
    assert whole["episode"].values[-1] == NUM_EPISODES
    assert whole["instance"].values.tolist() == ["I1", "I2/0", "I2/1"]
    assert whole["family"].values.tolist() == ["I1", "I2", "I2"]
    assert whole["stage"].values.tolist() == [1, 2, 3]
    assert whole["level"].values.tolist() == [0, 1, 2]
    lanes = ("learner", "instance", "seed")
    assert whole["final_gap"].dims == lanes
    assert whole["final_policy"].dims == (*lanes, "stage", "level")
    assert whole["phase_end"].dims == (*lanes, "phase")
    assert whole["active_actions"].dims == (*lanes, "phase", "stage", "level")
    assert np.isnan(whole["phase_end"].sel(learner="UCB-VI")).all()
    assert whole["phase_end"].sel(learner="ExpRef", phase=1).notnull().all()
    for name in TIMES:
        assert whole[name].dims == ("learner", "instance")
        # what was compiled before in this process is not compiled again
        assert (whole[name] >= 0 if name == "compile_seconds" else whole[name] > 0).all()
    value, policy = jb.optimal(configuration()["instances"]["I1"])
    np.testing.assert_allclose(whole["optimal_value"].sel(instance="I1"), value, rtol=1e-6)
    np.testing.assert_array_equal(whole["optimal_policy"].sel(instance="I1"), policy)
    assert (np.diff(whole["regret"], axis=-1) >= 0).all()


def test_attributes_tell_how_it_was_made(whole, tmp_path):
    config = json.loads(whole.attrs["config"])
    assert config["num_episodes"] == NUM_EPISODES
    assert config["num_seeds"] == 8
    assert config["seed"] == 3
    assert config["learners"]["UCB-VI"]["params"] == {"bonus_scale": [0.5]}
    assert config["learners"]["UCB-VI"]["engine"] == "episodes"
    assert config["learners"]["ExpRef"]["engine"] == "blocks"
    assert config["record"] == {"kind": "log", "count": 9, "first": 1}
    assert set(json.loads(whole.attrs["versions"])) >= {
        "jaxbandit",
        "python",
        "jax",
        "jaxlib",
        "numpy",
        "xarray",
        "device",
    }
    assert whole.attrs["jaxbandit_version"] == jb.__version__
    xarray.testing.assert_identical(jb.load(jb.save(whole, tmp_path / "run.nc")), whole)


def test_final_gap_is_that_of_the_final_policy(whole):
    mdp = configuration()["instances"]["I1"]
    lane = whole.sel(learner="UCB-VI", instance="I1", seed=5)
    policy = lane["final_policy"].values.astype(np.int32)
    np.testing.assert_allclose(lane["final_gap"], jb.regret(mdp, policy), atol=1e-6)


def test_parameter_grid_and_pairing():
    learners = {
        "c": jb.grid(jb.make_learner("ucbvi"), bonus_scale=[0.1, 0.5, 1.0]),
        "0.5": jb.make_learner("ucbvi", bonus_scale=0.5),
        "ExpRef": jb.make_learner("expref", preset="practical"),
    }
    alone = {"I1": jb.make_instance("prophet-uniform", **SIZES)}
    dataset = jb.sweep(**configuration(learners=learners, instances=alone, num_seeds=3, max_lanes=3))
    assert dataset["regret"].dims == ("learner", "instance", "parameter", "seed", "episode")
    np.testing.assert_allclose(dataset["bonus_scale"], [[0.1, 0.5, 1.0], [0.5, np.nan, np.nan], [np.nan] * 3], rtol=1e-6)
    # the same program with the same keys: parameter point 1 of the grid is the single learner, bit for bit
    point = dataset["regret"].sel(learner="c", parameter=1).values
    assert point.tobytes() == dataset["regret"].sel(learner="0.5", parameter=0).values.tobytes()
    assert np.isnan(dataset["regret"].sel(learner="0.5", parameter=[1, 2])).all()


def test_shapes_are_mixed_and_padded():
    instances = {
        "small": jb.make_instance("prophet-uniform", **SIZES),
        "large": jb.make_instance("prophet-uniform", horizon=4, capacity=3, num_values=3),
    }
    ucbvi = {"U": jb.make_learner("ucbvi")}
    dataset = jb.sweep(**configuration(learners=ucbvi, instances=instances, num_seeds=3, max_lanes=3))
    assert dataset["regret"].notnull().all()
    policy = dataset["final_policy"]
    assert dict(policy.sizes) == {"learner": 1, "instance": 2, "seed": 3, "stage": 4, "level": 4}
    assert policy.sel(instance="large").notnull().all()
    assert policy.sel(instance="small", stage=[1, 2, 3], level=[0, 1, 2]).notnull().all()
    assert policy.sel(instance="small", stage=4).isnull().all()
    assert policy.sel(instance="small", level=3).isnull().all()


def test_a_parameter_sweep_compiles_once_per_learner():
    """20 bonus scales x 10 instances x 16 seeds; then another 20 x 10 x 16 without any compilation."""

    def run(scales, key):
        draws = jb.family("prophet-random", count=10, key=jax.random.key(key), **SIZES)
        learners = {name: jb.grid(jb.make_learner("ucbvi", monotone=name == "m"), bonus_scale=scales) for name in "hm"}
        return jb.sweep(learners, {"I2": draws}, 64, num_seeds=16, record=jb.record.linear(4), progress=False)

    before = set(engine_runner._COMPILED)
    dataset = run(np.linspace(0.1, 2, 20), 1)
    assert dict(dataset["final_gap"].sizes) == {"learner": 2, "instance": 10, "parameter": 20, "seed": 16}
    assert len(set(engine_runner._COMPILED) - before) == 2
    run(np.linspace(0.2, 3, 20), 2)
    assert len(set(engine_runner._COMPILED) - before) == 2


class KilledError(Exception):
    """In place of a kill, at a chosen moment."""


def stop_after(monkeypatch, chunks):
    """The host loop dies after so many chunks."""
    count = iter(range(10**6))
    original = running.make_batch_runner

    def make(*args):
        runner = original(*args)
        step = runner.step

        def counted(carry):
            if next(count) == chunks:
                raise KilledError
            return step(carry)

        runner.step = counted
        return runner

    monkeypatch.setattr(running, "make_batch_runner", make)


@pytest.mark.parametrize(("learner", "chunk_size", "chunks"), [("UCB-VI", 1000, 0), ("UCB-VI", 1000, 5), ("ExpRef", 1, 4)])
def test_resumed_is_uninterrupted(whole, tmp_path, monkeypatch, learner, chunk_size, chunks):
    learners = {learner: configuration()["learners"][learner]}
    options = configuration(learners=learners, chunk_size=chunk_size, checkpoint=tmp_path / "run", checkpoint_seconds=0)
    stop_after(monkeypatch, chunks)
    with pytest.raises(KilledError):
        jb.sweep(**options)
    monkeypatch.undo()
    resumed = jb.sweep(**options)
    for name in ("regret", "final_gap", "final_policy"):
        assert resumed[name].values.tobytes() == whole[name].sel(learner=[learner]).values.tobytes()
    assert not list((tmp_path / "run").glob("carry-*"))
    assert not list((tmp_path / "run").glob("*.unfinished"))


def steps_of(monkeypatch, **options):
    """The result and how many (cells, seeds) batches were run."""
    made = []
    original = running.make_batch_runner

    def make(settings, group, cells, seeds):
        made.append((len(cells), tuple(seeds)))
        return original(settings, group, cells, seeds)

    monkeypatch.setattr(running, "make_batch_runner", make)
    result = jb.sweep(**options)
    monkeypatch.undo()
    return result, made


def test_more_seeds_run_only_the_new_ones(whole, tmp_path, monkeypatch):
    options = configuration(checkpoint=tmp_path / "run", max_lanes=3)
    few, made = steps_of(monkeypatch, **options | {"num_seeds": 3})
    assert made == [(1, (0, 1, 2))] * 6
    more, made = steps_of(monkeypatch, **options)
    assert made == [(1, (3, 4, 5)), (1, (6, 7, 8))] * 6  # seed 8 is padding
    assert_same_bits(more, whole)
    again, made = steps_of(monkeypatch, **options)
    assert made == []
    xarray.testing.assert_equal(again, more)  # seconds too: they are those of the runs that were made
    fewer, made = steps_of(monkeypatch, **options | {"num_seeds": 3})
    assert made == []
    assert fewer["regret"].values.tobytes() == few["regret"].values.tobytes()


def test_damaged_checkpoints_never_change_a_result(whole, tmp_path, monkeypatch):
    options = configuration(chunk_size=1000, checkpoint=tmp_path / "run", checkpoint_seconds=0)
    stop_after(monkeypatch, 7)
    with pytest.raises(KilledError):
        jb.sweep(**options)
    monkeypatch.undo()
    carries = sorted((tmp_path / "run").glob("carry-*"), key=lambda p: p.stat().st_mtime_ns)
    assert len(carries) == 2
    carries[-1].write_bytes(carries[-1].read_bytes()[:1000])
    with pytest.warns(UserWarning, match="goes back to the checkpoint before it"):
        assert_same_bits(jb.sweep(**options), whole)
    next((tmp_path / "run").glob("done-*")).write_bytes(b"")
    with pytest.warns(UserWarning, match="is not used"):
        assert_same_bits(jb.sweep(**options), whole)


def test_a_checkpoint_of_another_sweep_is_refused(tmp_path):
    options = configuration(num_seeds=3, max_lanes=3, checkpoint=tmp_path / "run")
    jb.sweep(**options)
    wanted = {
        "num_episodes: 16000 in the checkpoint, 16001 now": {"num_episodes": 16_001},
        "seed: 3 in the checkpoint, 4 now": {"seed": 4},
        "record.count: 9 in the checkpoint, 8 now": {"record": jb.record.log(8)},
        "instances.I1.sha256": {"instances": {"I1": unordered()}},
        "learners.UCB-VI.program": {"learners": {"UCB-VI": jb.make_learner("ucbvi", bonus_scale=0.5, monotone=True)}},
        "learners.UCB-VI.params.bonus_scale": {"learners": {"UCB-VI": jb.make_learner("ucbvi", bonus_scale=0.6)}},
        "learners.ExpRef.engine": {"engine": "episodes"},
    }
    for message, change in wanted.items():
        with pytest.raises(jb.checkpoint.CheckpointError, match="belongs to another configuration") as error:
            jb.sweep(**options | change)
        assert message in str(error.value)
    jb.sweep(**options | {"seed": 4, "resume": False})


@pytest.mark.parametrize("with_checkpoint", [True, False])
def test_ctrl_c_finishes_the_chunk_and_saves(whole, tmp_path, monkeypatch, capsys, with_checkpoint):
    path = tmp_path / "run"
    options = configuration(chunk_size=1000, checkpoint=path if with_checkpoint else None, checkpoint_seconds=1e6)
    original = running.make_batch_runner
    seen = []

    def make(*args):
        runner = original(*args)
        step = runner.step

        def pressed(carry):
            if runner.episodes_done(carry) == 4000:
                os.kill(os.getpid(), signal.SIGINT)
            seen.append(runner.episodes_done(carry))
            return step(carry)

        runner.step = pressed
        return runner

    monkeypatch.setattr(running, "make_batch_runner", make)
    before = signal.getsignal(signal.SIGINT)
    saying = (
        "what is done is saved: call it again with checkpoint=.*run' to continue" if with_checkpoint else "nothing was saved"
    )
    with pytest.raises(SweepInterrupted, match=saying):
        jb.sweep(**options)
    assert signal.getsignal(signal.SIGINT) is before
    assert seen[-1] == 4000
    monkeypatch.undo()
    if with_checkpoint:
        (carry,) = path.glob("carry-*")
        assert jb.checkpoint.decode(carry.read_bytes()).header["episodes"] == 5000
        assert_same_bits(jb.sweep(**options | {"progress": "always"}), whole)
        assert "100%" in capsys.readouterr().err


def test_a_second_ctrl_c_stops_at_once():
    with Interruption() as interruption:
        os.kill(os.getpid(), signal.SIGINT)
        assert interruption.requested
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize(("show", "visible"), [(True, False), ("always", True), (False, False)])
def test_progress_is_silent_without_a_terminal_unless_asked(capsys, show, visible):
    ucbvi = {"U": jb.make_learner("ucbvi")}
    jb.sweep(**configuration(learners=ucbvi, num_seeds=3, max_lanes=3, progress=show))
    text = capsys.readouterr().err
    assert ("episodes/s" in text) == visible


def test_a_full_disk_is_told_and_the_sweep_can_go_on(whole, tmp_path, monkeypatch):
    options = configuration(chunk_size=1000, checkpoint=tmp_path / "run", checkpoint_seconds=0)
    replace, count = os.replace, iter(range(100))

    def full(*args):
        if next(count) == 4:
            raise OSError(28, "No space left on device")
        replace(*args)

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(jb.checkpoint.CheckpointError, match=r"No space left on device.*is intact.*run again"):
        jb.sweep(**options)
    monkeypatch.undo()
    assert len(list((tmp_path / "run").glob("carry-*"))) == 2
    assert_same_bits(jb.sweep(**options), whole)


def unordered():
    return jb.make_instance("prophet-uniform", **SIZES)._replace(rank=None)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"engine": "block"}, ValueError, r"engine: 'block'; accepted: auto, episodes, blocks"),
        (
            {"engine": "blocks"},
            ValueError,
            r"learners\['UCB-VI'\] \(ucbvi\), which has no block form; accepted: 'auto' or 'episodes'",
        ),
        ({"num_episodes": 0}, ValueError, "num_episodes: 0; accepted: a whole number, at least 1"),
        ({"num_episodes": 10.5}, ValueError, r"num_episodes: 10\.5; accepted: a whole number, at least 1"),
        ({"num_seeds": -1}, ValueError, "num_seeds: -1; accepted"),
        ({"chunk_size": 0}, ValueError, "chunk_size: 0; accepted"),
        ({"max_lanes": 0}, ValueError, "max_lanes: 0; accepted"),
        ({"max_bytes": 0}, ValueError, "max_bytes: 0; accepted"),
        ({"seed": 0.5}, ValueError, r"seed: 0\.5; accepted: a whole number"),
        ({"devices": 99}, ValueError, r"devices: 99; accepted: 1\.\.1 \(more CPU devices: .*use_cpu_devices"),
        (
            {"progress": "yes"},
            ValueError,
            "progress: 'yes'; accepted: True, False, \"always\"",
        ),
        ({"learners": {}}, ValueError, "learners: {}; accepted: a non-empty dictionary, name -> learner"),
        ({"learners": {"U": "ucbvi"}}, TypeError, r"learners\['U'\]: str; accepted: a Learner"),
        ({"instances": {"I": 3}}, TypeError, r"instances\['I'\]: int; accepted: an MDP"),
        ({"instances": {"": unordered}}, ValueError, "instances: name ''; accepted: a non-empty string"),
        ({"record": [1, 2]}, TypeError, r"record: \[1, 2\]; accepted: a grid"),
        (
            {"record": jb.record.explicit([10**6])},
            ValueError,
            r"record: episode 1000000; accepted: 1\.\.16000 \(num_episodes\)",
        ),
        ({"checkpoint_seconds": -1}, ValueError, "checkpoint_seconds: -1; accepted: 0 or more"),
    ],
)
def test_errors(change, error, message):
    with pytest.raises(error, match=message):
        jb.sweep(**configuration(**change))


def test_errors_about_instances():
    mdp = jb.make_instance("prophet-uniform", **SIZES)
    with pytest.raises(ValueError, match=r"instances\['bad'\]: MDP.prob: .* must sum to 1"):
        jb.sweep(**configuration(instances={"bad": mdp._replace(prob=mdp.prob * 2)}))
    with pytest.raises(ValueError, match=r"instances: 'a/0' is named twice"):
        jb.sweep(**configuration(instances={"a/0": mdp, "a": [mdp]}))
    with pytest.raises(
        ValueError,
        match=r"instances\['I'\] has no order of actions \(rank\), which learners\['Ordered'\] \(.*\) needs",
    ):
        jb.sweep(**configuration(learners={"Ordered": jb.make_learner("ordered-expref")}, instances={"I": unordered()}))


def test_errors_of_grid_and_family():
    with pytest.raises(ValueError, match="grid: learner 'ucbvi' has no array parameter 'bonus'; accepted: bonus_scale"):
        jb.grid(jb.make_learner("ucbvi"), bonus=[1.0])
    with pytest.raises(ValueError, match=r"grid: bonus_scale: 0\.5; accepted: a non-empty list"):
        jb.grid(jb.make_learner("ucbvi"), bonus_scale=0.5)
    with pytest.raises(ValueError, match=r"grid: bonus_scale: \[\]; accepted: a non-empty list"):
        jb.grid(jb.make_learner("ucbvi"), bonus_scale=[])
    with pytest.raises(ValueError, match="count: 0; accepted: a whole number of draws, at least 1"):
        jb.family("prophet-random", count=0, key=jax.random.key(0), **SIZES)


def test_family_draws_do_not_depend_on_the_count():
    few = jb.family("prophet-random", count=2, key=jax.random.key(7), **SIZES)
    many = jb.family("prophet-random", count=4, key=jax.random.key(7), **SIZES)
    np.testing.assert_array_equal(few.prob, many.prob[:2])
    assert not np.array_equal(many.prob[0], many.prob[1])


def test_lane_keys_are_the_documented_ones():
    import zlib

    keys = running.lane_keys(3, [("U", "I1", 0), ("U", "I2/0", 4)], [0, 9])
    name = np.uint32(zlib.crc32(b"I2/0"))
    expected = jax.random.fold_in(jax.random.fold_in(jax.random.key(3), name), 9)
    assert (jax.random.key_data(keys[1, 1]) == jax.random.key_data(expected)).all()
