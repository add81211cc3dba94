"""What runs together: groups, devices, tiles that hold every missing lane once, and the plan's text."""

import zlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxbandit as jb
from jaxbandit.sweeps import lanes as lanes_module
from jaxbandit.sweeps.lanes import (
    Group,
    Plan,
    Tile,
    choose_devices,
    lane_keys,
    lanes_of,
    make_tiles,
)
from jaxbandit.xla import platforms

SIZES = {"horizon": 3, "capacity": 1, "num_values": 3}


def test_lane_keys_are_the_documented_ones():
    words = lane_keys(3, [("U", "I1", 0, 0), ("U", "I2/0", 4, 9)])
    name = np.uint32(zlib.crc32(b"I2/0"))
    expected = jax.random.fold_in(jax.random.fold_in(jax.random.key(3), name), 9)
    assert words.shape == (2, 1, 2)
    assert (words[1, 0] == jax.random.key_data(expected)).all()


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
        small, large, heavy = (
            plan(*args).groups[0] for args in [(15, 2), (64, 15), (20, 4, "trajectory-ts")]
        )
    assert small.width == platforms.GPU.lanes
    assert heavy.width == 32
    for demand in (small, large, heavy):
        taken = demand.width * (demand.bytes_per_lane - 16 * 10)  # without ten points of a curve
        assert taken <= platforms.GPU.tile_bytes
        assert demand.width == platforms.GPU.lanes or 2 * taken > platforms.GPU.tile_bytes
    assert plan(20, 4, "trajectory-ts").groups[0].width == 1  # a lane leaves the cache


def test_tiles_in_flight_follow_the_memory_of_the_devices(monkeypatch):
    with platforms.use("gpu"):
        each = plan().groups[0].tile_bytes
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


def group(name="U", num_instances=3, points=2, width=4, bytes_per_lane=1000):
    grid = jb.grid(jb.make_learner("ucbvi"), bonus_scale=np.arange(points) + 1.0)
    mdp = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=2)
    instances = {f"I{j}": mdp for j in range(num_instances)}
    return Group({name: grid}, "episodes", instances, width, bytes_per_lane)


def all_lanes(groups, num_seeds):
    return [(*cell, seed) for each in groups for cell in each.cells for seed in range(num_seeds)]


@settings(deadline=None, derandomize=True, max_examples=100)
@given(
    shapes=st.lists(
        st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 70)), min_size=1, max_size=3
    ),
    num_seeds=st.integers(1, 20),
    data=st.data(),
)
def test_tiles_hold_every_missing_lane_once(shapes, num_seeds, data):
    groups = [group(name, *shape) for name, shape in zip("UVW", shapes, strict=False)]
    lanes = all_lanes(groups, num_seeds)
    finished = data.draw(st.sets(st.sampled_from(lanes), max_size=20))
    tiles = make_tiles(groups, finished, range(num_seeds))
    dealt = [lane for tile in tiles for lane in tile.lanes]
    assert sorted(dealt) == sorted(set(lanes) - finished)
    for index, each in enumerate(groups):
        mine = [tile for tile in tiles if tile.group == index]
        assert {lane[:3] for tile in mine for lane in tile.lanes} <= set(each.cells)
        # Only the last tile of a group is short.
        assert all(len(tile.lanes) == each.width for tile in mine[:-1])
        assert all(1 <= len(tile.lanes) <= each.width for tile in mine)
    assert len({tile.name() for tile in tiles}) == len(tiles)
    for tile in tiles:
        assert lanes_of(tile.header()) == list(tile.lanes)
        assert Tile(5, tile.lanes).name() == tile.name()  # a group's place in the plan may change


def test_the_first_tiles_of_all_groups_come_first():
    """So that the programs of all groups are compiled side by side."""
    tiles = make_tiles([group("U"), group("V")], (), range(2))
    assert [tile.group for tile in tiles] == [0, 1, 0, 0, 1, 1]
    assert [lane[3] for lane in tiles[0].lanes] == [0, 1, 0, 1]  # a cell's seeds are neighbours


def test_peak_memory_is_that_of_the_largest_tiles_at_one_time():
    groups = (group("U", width=4, bytes_per_lane=1000), group("V", width=2, bytes_per_lane=9000))
    tiles = tuple(make_tiles(groups, (), range(1)))
    assert Plan(groups, tiles, 10, workers=1).peak_bytes == 18_000
    assert Plan(groups, tiles, 10, workers=4).peak_bytes == 3 * 18_000 + 4_000


def small_sweep(**options):
    return jb.plan(
        learners={
            "U": jb.make_learner("ucbvi"),
            "G": jb.grid(jb.make_learner("ucbvi"), bonus_scale=[0.1, 1.0]),
            "E": jb.make_learner("expref"),
        },
        instances={
            "I1": jb.make_instance("prophet-uniform", **SIZES),
            "I2": jb.family("prophet-random", count=3, key=jax.random.key(1), **SIZES),
            "wide": jb.make_instance("prophet-uniform", horizon=3, capacity=2, num_values=3),
        },
        num_episodes=1000,
        num_seeds=5,
        measure_seconds=0,
        **options,
    )


def test_a_plan_prints_programs_lanes_tiles_and_bytes_in_80_columns():
    plan = small_sweep(devices=1)
    lines = str(plan).splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].split()[:2] == ["learners", "engine"]
    # U and G are one program of two sizes and share their tiles: 60 lanes and 15 in tiles of 16.
    assert lines[1].startswith("U and 1 more  episodes  2 up to (3, 2, 3)")
    assert " ".join(lines[1].split()[-4:-2]) == "75 5"
    assert lines[-2] == f"100 lanes of 1000 episodes, {len(plan.tiles)} tiles, 1 at a time"
    assert lines[-1].startswith(f"programs to compile: {plan.compilations}; memory: about ")
    assert plan.num_lanes == 100
    widths = {each.engine: each.width for each in plan.groups}
    assert all(len(tile.lanes) <= widths[plan.groups[tile.group].engine] for tile in plan.tiles)


def test_a_plan_estimates_the_time_from_short_runs():
    mdp = jb.make_instance("prophet-uniform", horizon=3, capacity=1, num_values=3)
    few, many = (
        jb.plan(jb.make_learner("uniform"), mdp, T, 2, measure_seconds=0.1) for T in (10**5, 10**7)
    )
    assert 0 < few.seconds < many.seconds
    assert str(many).splitlines()[-1].startswith("time: about ")


def test_budgets_limit_what_runs_at_one_time_and_nothing_else():
    free = small_sweep()
    for limit in ({"max_lanes": 1}, {"max_bytes": 1}):
        tight = small_sweep(**limit)
        assert tight.workers == 1
        assert tight.tiles == free.tiles
