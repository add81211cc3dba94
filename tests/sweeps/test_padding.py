"""Sweeps over several sizes as on a GPU: one program, the numbers of the own sizes, resumed to the bit, said in the plan."""

import numpy as np
import pytest
from padded_lanes import small_gpu

import jaxbandit as jb
from jaxbandit.errors import CheckpointError
from jaxbandit.sweeps.checkpoint import Store
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
