"""A checkpoint directory through anything: the sweep that ends is the sweep that nothing happened to."""

import shutil
import tempfile
import warnings
from pathlib import Path

import jax.numpy as jnp
import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

import jaxbandit as jb
from jaxbandit.sweeps import loop

SMALL = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=3)
SEEDS = 18  # two tiles
COUNTS = st.sampled_from([1, 5, SEEDS])
VERSIONS = (1, 2)


class KilledError(Exception):
    """In place of a kill."""


def learners(version):
    """One that plays an action of its own, which an edit changes, and one in block form."""

    def init(problem, constants, key):
        return jnp.zeros((problem.horizon, problem.width + 1))

    def act(state, key, constants):
        return jnp.full(state.shape, version, jnp.int32)

    def update(state, policy, feedback, constants):
        return state + feedback.total

    mine = jb.Learner(init, act, update, name="mine")
    return {"M": mine, "E": jb.make_learner("expref", preset="practical")}


def sweep(version, folder=None, **options):
    how = {"num_seeds": SEEDS, "record": jb.record.linear(3), "progress": False, "devices": 1}
    saving = {} if folder is None else {"checkpoint": folder, "checkpoint_seconds": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of what is set aside; other tests read these
        return jb.sweep(
            learners(version), {"I": SMALL}, 60, **how | saving | options
        )["regret"].values  # fmt: skip


class Directory(RuleBasedStateMachine):
    """Save, kill, edit, damage, lose, copy, resume."""

    expected: dict

    @initialize()
    def begin(self):
        self.folder, self.version = Path(tempfile.mkdtemp()), 1

    def teardown(self):
        self.resume(SEEDS, 60)
        make = loop.make_tile_runner
        loop.make_tile_runner = None  # nothing is left to run
        try:
            np.testing.assert_array_equal(
                sweep(self.version, self.folder), self.expected[self.version]
            )
        finally:
            loop.make_tile_runner = make
            shutil.rmtree(self.folder)

    @rule(seeds=COUNTS, chunk=st.sampled_from([1, 7, 60]))
    def resume(self, seeds, chunk):
        found = sweep(self.version, self.folder, num_seeds=seeds, chunk_size=chunk)
        np.testing.assert_array_equal(found, self.expected[self.version][:, :, :seeds])
        assert not list(self.folder.glob("carry-*")) or seeds < SEEDS

    @rule(steps=st.integers(0, 12), seeds=COUNTS, chunk=st.sampled_from([1, 7, 30]))
    def kill(self, steps, seeds, chunk):
        make, left = loop.make_tile_runner, iter(range(steps, -1, -1))

        def counted(*args):
            runner = make(*args)
            step = runner.step

            def once(carry):
                if next(left, 0) == 0:
                    raise KilledError
                return step(carry)

            runner.step = once
            return runner

        loop.make_tile_runner = counted
        try:
            sweep(self.version, self.folder, num_seeds=seeds, chunk_size=chunk)
        except KilledError:
            pass
        finally:
            loop.make_tile_runner = make

    @rule()
    def edit(self):
        self.version = 3 - self.version

    @rule(data=st.data(), how=st.sampled_from(["flip", "cut", "empty"]))
    def damage(self, data, how):
        files = sorted(
            path for path in self.folder.glob("*.jbk") if not path.name.startswith("stale")
        )
        if files:
            path = data.draw(st.sampled_from(files))
            content = bytearray(path.read_bytes())
            content[len(content) // 2] ^= 1
            path.write_bytes({"flip": content, "cut": content[:-9], "empty": b""}[how])

    @rule(content=st.sampled_from([None, b"", b"{ damaged"]))
    def lose_the_configuration(self, content):
        path = self.folder / "config.json"
        if content is not None and path.exists():
            path.write_bytes(content)
        path.unlink(missing_ok=True)

    @rule(index=st.integers(1, 3))
    def copy_a_shard(self, index):
        with tempfile.TemporaryDirectory() as apart:
            part = sweep(self.version, apart, shard=(index, 3))
            whole = self.expected[self.version]
            np.testing.assert_array_equal(part, whole[:, :, index - 1 :: 3])
            for path in Path(apart).glob("done-*.jbk"):
                shutil.copy(path, self.folder)


def test_whatever_happens_to_a_directory_the_sweep_ends_the_same():
    Directory.expected = {version: sweep(version) for version in VERSIONS}
    assert not np.array_equal(*Directory.expected.values())
    rules = settings(
        max_examples=6, stateful_step_count=5, deadline=None, derandomize=True, database=None
    )
    run_state_machine_as_test(Directory, settings=rules)
