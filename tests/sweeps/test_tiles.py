"""Tiles: every lane once, only the missing ones, in tiles of the engine's width; the plan's text."""

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxbandit as jb
from jaxbandit.sweeps.arguments import expand_learners
from jaxbandit.sweeps.forecast import Plan
from jaxbandit.sweeps.lanes import Group, Tile, format_bytes, lanes_of, make_tiles


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


def test_only_missing_lanes_are_planned():
    groups = [group(width=16)]
    finished = set(all_lanes(groups, 8))
    assert make_tiles(groups, finished, range(8)) == []
    more = make_tiles(groups, finished, range(10))
    assert [len(tile.lanes) for tile in more] == [12]
    assert {seed for tile in more for *_, seed in tile.lanes} == {8, 9}
    hole = ("U", "I1", 1, 3)
    assert make_tiles(groups, finished - {hole}, range(8)) == [Tile(0, (hole,))]


def test_the_first_tiles_of_all_groups_come_first():
    """So that the programs of all groups are compiled side by side."""
    tiles = make_tiles([group("U"), group("V")], (), range(2))
    assert [tile.group for tile in tiles] == [0, 1, 0, 0, 1, 1]
    assert [lane[3] for lane in tiles[0].lanes] == [0, 1, 0, 1]  # a cell's seeds are neighbours


def test_a_tile_is_plain_data_and_back():
    tile = Tile(0, (("U", "I0", 0, 3), ("U", "I1", 1, 7)))
    assert lanes_of(tile.header()) == list(tile.lanes)
    assert Tile(5, tile.lanes).name() == tile.name()  # a group's place in the plan may change
    assert Tile(0, tile.lanes[:1]).name() != tile.name()


def test_peak_memory_is_that_of_the_largest_tiles_at_one_time():
    groups = (group("U", width=4, bytes_per_lane=1000), group("V", width=2, bytes_per_lane=9000))
    tiles = tuple(make_tiles(groups, (), range(1)))
    assert Plan(groups, tiles, 10, workers=1).peak_bytes == 18_000
    assert Plan(groups, tiles, 10, workers=4).peak_bytes == 3 * 18_000 + 4_000


def small_sweep(**options):
    sizes = {"horizon": 3, "capacity": 1, "num_values": 3}
    return jb.plan(
        learners={
            "U": jb.make_learner("ucbvi"),
            "G": jb.grid(jb.make_learner("ucbvi"), bonus_scale=[0.1, 1.0]),
            "E": jb.make_learner("expref"),
        },
        instances={
            "I1": jb.make_instance("prophet-uniform", **sizes),
            "I2": jb.family("prophet-random", count=3, key=jax.random.key(1), **sizes),
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


def test_every_learner_becomes_a_grid():
    expanded = expand_learners({"U": jb.make_learner("ucbvi", bonus_scale=0.5)})
    assert expanded["U"].size == 1
    assert float(expanded["U"].learner.params["bonus_scale"][0]) == 0.5


@pytest.mark.parametrize(
    ("count", "text"), [(12, "12 bytes"), (1234, "1.2 kB"), (3.2e6, "3.2 MB"), (7e12, "7.0 TB")]
)
def test_format_bytes(count, text):
    assert format_bytes(count) == text
