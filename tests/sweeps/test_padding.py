"""Sweeps over several sizes as on a GPU: one program, the numbers of the own sizes, resumed to the bit, said in the plan."""

import jax
import numpy as np
import pytest
from padded_lanes import small_gpu

import jaxbandit as jb
from jaxbandit.errors import CheckpointError
from jaxbandit.sweeps.checkpoint import Store
from jaxbandit.sweeps.padding import apart, in_words, step_time, tiles_apart
from jaxbandit.sweeps.tiles import Demand
from jaxbandit.xla.platforms import use
from jaxbandit.xla.programs import PROGRAMS

SIZES = ((3, 2), (3, 3), (4, 2), (4, 4), (5, 3), (5, 4))
LEARNERS = {"UCB-VI": jb.make_learner("ucbvi", preset="practical")}


@pytest.fixture(autouse=True)
def gpu(monkeypatch):
    small_gpu(monkeypatch)
    with use("gpu"):
        yield


def instances(sizes=SIZES, num_values=3):
    return {
        f"H={H} k={k}": jb.make_instance(
            "prophet-uniform", horizon=H, capacity=k, num_values=num_values
        )
        for H, k in sizes
    }


def sweep(sizes=SIZES, num_seeds=2, learners=LEARNERS, num_values=3, **how):
    options = {"record": jb.record.linear(2), "progress": False, "engine": "episodes", **how}
    return jb.sweep(learners, instances(sizes, num_values), 150, num_seeds, **options)


def test_six_sizes_are_one_program_with_the_numbers_of_six():
    how = {"metrics": {"visits": jb.metrics.visits}, "num_values": 4}  # a size of this test alone
    before = PROGRAMS.count
    together = sweep(**how)
    assert PROGRAMS.count == before + 1
    apart = sweep(pad=False, **how)
    assert PROGRAMS.count == before + 7
    assert set(together.variables) == set(apart.variables)
    np.testing.assert_allclose(together["regret"], apart["regret"], rtol=1e-6)
    for name in ("final_policy", "visits"):
        np.testing.assert_array_equal(together[name], apart[name])


def test_bits_of_a_padded_lane_do_not_depend_on_its_company():
    whole = sweep()
    alone = sweep(sizes=SIZES[:1], num_seeds=1)
    first = whole["regret"].sel(instance="H=3 k=2", seed=0)
    assert first.values.tobytes() == alone["regret"].values.tobytes()


def test_a_padded_sweep_goes_on_from_its_checkpoint_to_the_same_bits(tmp_path, monkeypatch):
    class EnoughError(Exception):
        """Ends the first run."""

    save = Store.save_carry

    def save_and_stop(self, name, saved):
        save(self, name, saved)
        raise EnoughError

    whole = sweep()
    monkeypatch.setattr(Store, "save_carry", save_and_stop)
    with pytest.raises(EnoughError):
        sweep(checkpoint=tmp_path, chunk_size=50, checkpoint_seconds=0)
    monkeypatch.setattr(Store, "save_carry", save)
    assert list(tmp_path.glob("carry-*"))
    resumed = sweep(checkpoint=tmp_path, chunk_size=50)
    for name in ("regret", "final_policy"):
        assert resumed[name].values.tobytes() == whole[name].values.tobytes()
    with pytest.raises(CheckpointError, match=r"padding: .*H 5 10 20 40 64, k 1 4 8 15"):
        sweep(checkpoint=tmp_path, pad=False)


def test_the_plan_says_what_is_padded_and_what_it_saves():
    said = str(sweep(dry_run=True))
    assert "run padded, as (5, 4): 1 program and 2 tiles, without padding 6 and 6" in said
    assert "takes about 0.33 of the time (an estimate)" in said
    assert "padded" not in str(sweep(dry_run=True, pad=False))
    blocks = {"ExpRef": jb.make_learner("expref")}
    said = str(sweep(dry_run=True, learners=blocks, engine="auto"))
    assert said.count("ExpRef: every (H, k) runs apart: the block engine pads nothing") == 1
    fixed = {"fixed": jb.make_learner("fixed", policy=np.zeros((3, 3), np.int32))}
    said = str(sweep(SIZES[:1], dry_run=True, learners=fixed))
    assert "fixed: every (H, k) runs apart: the learner or these sizes do not allow it" in said


def test_the_plan_advises_against_padding_where_tiles_are_full_anyway():
    """Tiles of one small size move more bytes when padded, and are as many."""
    (group,) = sweep(SIZES[:1], dry_run=True).groups
    lanes = [("UCB-VI", "H=3 k=2", 0, seed) for seed in range(20)]
    small, large = (Demand(8, 1000, moved) for moved in (10**7, 4 * 10**7))
    object.__setattr__(group, "ask", lambda one: small if one.room is None else large)
    group.__dict__.pop("demand", None)
    assert tiles_apart(group, lanes) == {(3, 2): 3}
    assert step_time(group, 3) == pytest.approx(3 * 8 * 4e7 / 78e6)
    assert step_time(apart(group)[3, 2], 3) == pytest.approx(3 * 8e7 / 78e6)
    assert "pad=False (--no-pad) takes about 0.25 of the time" in in_words(group, lanes)


def test_only_a_switch_is_accepted():
    with pytest.raises(ValueError, match="pad: None; accepted: False, True"):
        sweep(pad=None)


def test_nothing_is_padded_on_a_cpu():
    with use("cpu"):
        plan = sweep(dry_run=True)
    assert len(plan.groups) == 6
    assert "padded" not in str(plan)
    assert {jax.devices()[0].platform} == {"cpu"}
