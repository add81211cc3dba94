"""The host loop: stopped in any way and resumed, it ends as if nothing had happened."""

import json
import os
import signal
import threading
import time

import jax
import jax.numpy as jnp
import pytest
import xarray
from sweep_program import assert_same_bits, configuration

import jaxbandit as jb
from jaxbandit.errors import SweepInterrupted
from jaxbandit.sweeps import checkpoint
from jaxbandit.sweeps import loop as running
from jaxbandit.xla.platforms import use
from jaxbandit.xla.programs import PROGRAMS

CHUNKS = {"UCB-VI": 1000, "ExpRef": 1}


def small(learner="UCB-VI", **changes):
    """One learner on one instance, one tile."""
    options = configuration(only=learner, chunk_size=CHUNKS[learner], **changes)
    return options | {"instances": {"I1": options["instances"]["I1"]}}


@pytest.fixture(scope="module")
def whole():
    return {name: jb.sweep(**small(name)) for name in CHUNKS}


@pytest.fixture
def around_steps(monkeypatch):
    """Calls ``before(number of the step)`` and ``after()`` around every step of the host loop; lists the lanes that run."""
    made, count, original = [], iter(range(10**6)), running.make_tile_runner

    def watch(before=lambda number: None, after=lambda: None):
        def make(settings, group, lanes, device):
            made.extend(lanes)
            runner = original(settings, group, lanes, device)
            step = runner.step

            def watched(carry):
                before(next(count))
                carry = step(carry)
                after()
                return carry

            runner.step = watched
            return runner

        monkeypatch.setattr(running, "make_tile_runner", make)
        return made

    return watch


def test_more_seeds_run_only_the_new_ones(whole, tmp_path, around_steps):
    options, made = small(checkpoint=tmp_path / "run"), around_steps()

    def run(expected, **changes):
        made.clear()
        result = jb.sweep(**options | changes)
        assert sorted(made) == [("UCB-VI", "I1", 0, seed) for seed in expected]
        return result

    few = run(range(3), num_seeds=3)
    more = run(range(3, 8))
    assert_same_bits(more, whole["UCB-VI"])
    xarray.testing.assert_equal(run([]), more)  # seconds too: those of the runs that were made
    assert run([], num_seeds=3)["regret"].values.tobytes() == few["regret"].values.tobytes()


def test_a_checkpoint_of_another_sweep_is_refused(tmp_path):
    options = small(num_episodes=2000, num_seeds=2, checkpoint=tmp_path / "run")
    jb.sweep(**options)
    wanted = {
        "num_episodes: 2000 in the checkpoint, 2001 now": {"num_episodes": 2001},
        "seed: 3 in the checkpoint, 4 now": {"seed": 4},
        "record.count: 9 in the checkpoint, 8 now": {"record": jb.record.log(8)},
        "instances.I1.sha256": {
            "instances": {"I1": options["instances"]["I1"]._replace(rank=None)}
        },
        "learners.UCB-VI.params.bonus_scale": {
            "learners": {"UCB-VI": jb.make_learner("ucbvi", bonus_scale=0.6)}
        },
        "learners.UCB-VI.engine": {
            "learners": {"UCB-VI": jb.make_learner("expref", preset="practical")}
        },
    }
    for message, change in wanted.items():
        with pytest.raises(jb.CheckpointError, match="belongs to another configuration") as error:
            jb.sweep(**options | change)
        assert message in str(error.value)
    jb.sweep(**options | {"seed": 4, "resume": False})


def test_other_bits_are_refused_or_told(tmp_path, monkeypatch):
    options = small(num_episodes=2000, num_seeds=2, checkpoint=tmp_path / "run")
    before = jb.sweep(**options)
    with use("gpu"), pytest.raises(jb.CheckpointError, match=r'tiles: "cpu 16.* now.*allow_'):
        jb.sweep(**options)
    monkeypatch.setattr(jax, "__version__", "99.0")
    with pytest.raises(
        jb.CheckpointError, match=r'jax: ".*" in the checkpoint, "99\.0" now.*allow_'
    ):
        jb.sweep(**options)
    after = jb.sweep(**options | {"allow_backend_change": True, "num_seeds": 3})
    config = json.loads(after.attrs["config"])
    (other,) = config["other_bits"]
    assert config["bits"]["jax"] == "99.0" != other["jax"]
    same = after["regret"].isel(seed=slice(0, 2)).values
    assert same.tobytes() == before["regret"].values.tobytes()


@pytest.mark.parametrize(
    ("name", "learner", "saving"),
    [
        ("SIGINT", "UCB-VI", True),
        ("SIGTERM", "ExpRef", True),
        ("SIGHUP", "UCB-VI", True),
        ("SIGUSR1", "UCB-VI", True),
        ("SIGINT", "UCB-VI", False),
    ],
)
def test_signals_finish_the_chunk_and_save(
    whole, tmp_path, around_steps, monkeypatch, name, learner, saving
):
    path, number = tmp_path / "run", getattr(signal, name)
    options = small(learner, checkpoint=path if saving else None, checkpoint_seconds=1e6)

    def press(step):
        if step == 3:
            os.kill(os.getpid(), number)
            time.sleep(0.3)  # the main thread hears it

    around_steps(press)
    handler = signal.getsignal(number)
    saying = f"stopped by {'Ctrl-C' if name == 'SIGINT' else name}; "
    saying += "what is done is saved: call it again with .*run'" if saving else "nothing was saved"
    with pytest.raises(SweepInterrupted, match=saying) as kept:
        jb.sweep(**options)
    assert signal.getsignal(number) is handler
    monkeypatch.undo()
    if saving:
        (carry,) = path.glob("carry-*")
        done = checkpoint.decode(carry.read_bytes()).header["episodes"]
        assert 0 < done < options["num_episodes"]
        assert_same_bits(jb.sweep(**options), whole[learner])
    assert kept  # the error is still there, as in a notebook, and holds no lock


def test_programs_are_compiled_side_by_side_while_tiles_already_run(around_steps, monkeypatch):
    """Every compilation is held up until what it must not wait for has happened: in a sweep that compiles one after the
    other, or compiles everything before it runs anything, that never comes."""
    monkeypatch.setattr("jaxbandit.xla.platforms.os.sched_getaffinity", lambda _: {0, 1})
    mdp = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=3)

    def learner(low):
        """A program of no other test."""
        return jb.Learner(
            lambda problem, constants, key: jnp.zeros((2, 2), jnp.int32),
            lambda s, k, c: jnp.clip(s, low, 2),
            lambda s, p, f, c: s,
        )

    learners = {name: learner(low) for low, name in enumerate(("one", "two", "three"))}
    begun, ran, in_time = [], threading.Event(), []

    def listen(words, begins):
        if not begins:
            return
        begun.append(words)
        if len(begun) == len(learners):
            in_time.append(ran.wait(60))  # the last one, until a tile of another learner has run
        else:
            until = time.monotonic() + 60
            while len(begun) < 2 and time.monotonic() < until:
                time.sleep(0.01)
            in_time.append(len(begun) >= 2)

    around_steps(after=ran.set)
    monkeypatch.setattr(PROGRAMS, "listeners", [*PROGRAMS.listeners, listen])
    jb.sweep(learners, {"I1": mdp}, 40, 2, progress=False)
    assert in_time == [True] * 3
