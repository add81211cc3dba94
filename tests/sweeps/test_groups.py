"""What runs together: groups, devices and how many tiles at once."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.sweeps import lanes as lanes_module
from jaxbandit.sweeps.lanes import choose_devices
from jaxbandit.xla import platforms

SIZES = {"horizon": 3, "capacity": 1, "num_values": 3}


def groups(learners, instances, **how):
    plan = jb.plan(learners, instances, 10, 1, measure_seconds=0, **how)
    return [(list(group.grids), group.engine, list(group.instances)) for group in plan.groups]


def test_a_group_is_one_program_on_instances_of_one_size():
    ucbvi = jb.make_learner("ucbvi")
    learners = {"a": ucbvi, "b": jb.grid(ucbvi, bonus_scale=[0.1]), "E": jb.make_learner("expref")}
    instances = {
        "I1": jb.make_instance("prophet-uniform", **SIZES),
        "wide": jb.make_instance("prophet-uniform", **{**SIZES, "capacity": 2}),
        "I2": jb.make_instance("prophet-random", key=jax.random.key(0), **SIZES),
    }
    found = groups(learners, instances)
    assert (["a", "b"], "episodes", ["I1", "I2"]) in found
    assert (["a", "b"], "episodes", ["wide"]) in found
    assert {engine for names, engine, _ in found if names == ["E"]} == {"blocks"}
    assert {engine for _, engine, _ in groups(learners, instances, engine="episodes")} == {
        "episodes"
    }


def test_a_whole_number_stays_one_beside_a_fraction():
    """One learner, once with n = 3 and once with n = 2.5: in one array both would be floats."""

    def init(problem, constants, key):
        return constants["n"]

    def act(state, key, constants):
        return jnp.full((3, 2), 1 if jnp.issubdtype(state.dtype, jnp.integer) else 2, jnp.int32)

    def learner(n):
        return jb.Learner(
            init, act, lambda state, policy, feedback, constants: state, params={"n": n}
        )

    mdp = jb.make_instance("prophet-uniform", **SIZES)
    both = {"a": learner(3), "b": learner(2.5)}
    assert [names for names, _, _ in groups(both, {"I": mdp})] == [["a"], ["b"]]
    how = {"num_episodes": 20, "num_seeds": 1, "progress": False}
    together = jb.sweep(both, {"I": mdp}, **how)["regret"]
    for name, each in both.items():
        alone = jb.sweep({name: each}, {"I": mdp}, **how)["regret"]
        np.testing.assert_array_equal(together.sel(learner=[name]), alone)


@pytest.mark.parametrize(
    ("reports", "saying"),
    [
        ({"bonus_scale": 0.0}, "report: 'bonus_scale'; accepted: names other than those of par"),
        ({"plans": [0.0]}, "report: 'plans' has 1 axes, that of learner 'ucbvi-doubling' 0; acc"),
    ],
)
def test_reports_that_have_no_place_in_the_result_are_told_before_anything_runs(reports, saying):
    doubling = jb.make_learner("ucbvi-doubling")
    theirs = {"D": doubling, "U": jb.grid(jb.make_learner("ucbvi"), bonus_scale=[0.1, 1])}
    given = {name: np.asarray(value) for name, value in reports.items()}
    mine = jb.make_learner("uniform")._replace(name="mine", report=lambda state: given)
    mdp = jb.make_instance("prophet-uniform", **SIZES)
    with pytest.raises(ValueError, match=f"learner 'mine': {saying}"):
        jb.plan({**theirs, "mine": mine}, {"I": mdp}, 10, 1, measure_seconds=0)


def test_devices_of_a_cpu_are_cores():
    local, workers = choose_devices(None)
    assert local == jax.local_devices()
    assert choose_devices(1)[1] == 1
    assert choose_devices(local) == (local, len(local))
    for wrong in (0, workers + 1, True, "2", []):
        with pytest.raises(ValueError, match=r"devices: .*accepted: "):
            choose_devices(wrong)


def plan(horizon=15, capacity=2, learner="ucbvi"):
    mdp = jb.make_instance("prophet-uniform", horizon=horizon, capacity=capacity, num_values=5)
    return jb.plan({"L": jb.make_learner(learner)}, {"I1": mdp}, 10, 5000, measure_seconds=0)


def test_tiles_of_a_gpu_are_halved_until_they_fit_their_budget():
    """The width depends on the learner and the sizes, and on no memory of any device."""
    with platforms.use("gpu"):
        widths = {args: plan(*args).groups[0] for args in [(15, 2), (64, 15)]}
        heavy = plan(20, 4, "trajectory-ts").groups[0]
    assert widths[15, 2].width == platforms.GPU.lanes
    for demand in (*widths.values(), heavy):
        taken = demand.width * (demand.bytes_per_lane - 16 * 10)  # without ten points of a curve
        assert taken <= platforms.GPU.tile_bytes
        assert demand.width == platforms.GPU.lanes or 2 * taken > platforms.GPU.tile_bytes
    assert heavy.width == 32
    assert plan(20, 4, "trajectory-ts").groups[0].width == 1  # a lane leaves the cache


def test_tiles_in_flight_follow_the_memory_of_the_devices(monkeypatch):
    with platforms.use("gpu"):
        demand = plan().groups[0]
        each = demand.width * demand.bytes_per_lane
        for memory, flying in [(each, 1), (2 * each - 1, 1), (2 * each, 2), (100 * each, 2)]:
            monkeypatch.setattr(lanes_module, "memory_of", lambda device, memory=memory: memory)
            found = plan()
            assert found.workers == flying * len(jax.local_devices())
            assert f"{found.workers} at a time" in str(found)
            assert "on devices of " in str(found)
        monkeypatch.setattr(lanes_module, "memory_of", lambda device: each - 1)
        message = r"L, H=15 k=2: a tile of 1024 lanes needs about .*; accepted: at most .*JAX_PLATFORMS=cpu"
        with pytest.raises(ValueError, match=message):
            plan()
