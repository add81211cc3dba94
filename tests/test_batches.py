"""Batches: every lane exactly once, within the budget, in few shapes; the plan's text."""

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxbandit as jb
from jaxbandit.axes import expand_learners
from jaxbandit.batches import DEFAULT_BYTES, Group, Limits, cut, format_bytes, lane_limit, make_batches


def group(num_instances=3, points=2, bytes_per_lane=1000):
    ucbvi = jb.make_learner("ucbvi")
    grid = jb.grid(ucbvi, bonus_scale=np.arange(points) + 1.0)
    mdp = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=2)
    instances = {f"I{j}": mdp for j in range(num_instances)}
    return Group({"U": grid}, "episodes", instances, lambda _: bytes_per_lane)


@settings(deadline=None, derandomize=True, max_examples=200)
@given(
    num_cells=st.integers(1, 12),
    num_seeds=st.integers(1, 40),
    limit=st.integers(1, 200),
    num_devices=st.integers(1, 4),
    num_processes=st.integers(1, 3),
)
def test_batches_cover_every_lane_once_in_one_shape(num_cells, num_seeds, limit, num_devices, num_processes):
    cells = [("U", "I", j) for j in range(num_cells)]
    batches = cut(0, cells, list(range(num_seeds)), limit, num_devices, num_processes)
    lanes = [(c, s) for b in batches for c in b.cells[: b.num_cells] for s in b.seeds[: b.num_seeds]]
    assert sorted(lanes) == sorted((c, s) for c in cells for s in range(num_seeds))
    assert len({(len(b.cells), len(b.seeds)) for b in batches}) == 1
    for batch in batches:
        assert batch.lanes <= max(limit, num_devices)
        assert len(batch.seeds) % min(num_devices, num_seeds) == 0
        assert len(set(batch.seeds)) == len(batch.seeds)
        assert set(batch.cells) <= set(cells)
    if num_cells * num_seeds >= num_devices * num_processes**2:
        assert len(batches) >= num_processes


def test_seeds_fill_a_batch_first():
    batches = cut(0, [("U", "I", j) for j in range(6)], list(range(8)), limit=16)
    assert [(b.num_cells, b.num_seeds) for b in batches] == [(2, 8)] * 3
    batches = cut(0, [("U", "I", 0), ("U", "I", 1)], list(range(10)), limit=4)
    assert [(len(b.cells), len(b.seeds)) for b in batches] == [(1, 4)] * 6


def test_only_missing_lanes_are_planned():
    groups = [group()]
    finished = {(cell, seed) for cell in groups[0].cells for seed in range(8)}
    assert make_batches(groups, finished, 8, Limits()) == []
    (more,) = make_batches(groups, finished, 12, Limits())
    assert more.seeds == (8, 9, 10, 11)
    assert more.num_cells == 6
    one = finished - {(("U", "I1", 1), 3)}
    (single,) = make_batches(groups, one, 8, Limits())
    assert (single.cells, single.seeds) == ((("U", "I1", 1),), (3,))


def test_limits():
    assert lane_limit(group(bytes_per_lane=1000), Limits(max_lanes=7)) == 7
    assert lane_limit(group(bytes_per_lane=1000), Limits(max_bytes=5500)) == 5
    assert lane_limit(group(bytes_per_lane=1000), Limits(max_lanes=3, max_bytes=5500)) == 3
    assert lane_limit(group(bytes_per_lane=1000), Limits(max_bytes=10)) == 1
    assert lane_limit(group(bytes_per_lane=2**20), Limits()) == DEFAULT_BYTES // 2**20


def test_dry_run_lists_shapes_lanes_batches_bytes_and_compilations(capsys):
    sizes = {"horizon": 3, "capacity": 1, "num_values": 3}
    plan = jb.sweep(
        learners={
            "U": jb.make_learner("ucbvi"),
            "G": jb.grid(jb.make_learner("ucbvi"), bonus_scale=[0.1, 1.0]),
        },
        instances={
            "I1": jb.make_instance("prophet-uniform", **sizes),
            "I2": jb.family("prophet-random", count=3, key=jax.random.key(1), **sizes),
            "wide": jb.make_instance("prophet-uniform", horizon=3, capacity=2, num_values=3),
        },
        num_episodes=1000,
        num_seeds=5,
        max_lanes=10,
        dry_run=True,
    )
    lines = str(plan).splitlines()
    assert " ".join(lines[0].split()) == "learners engine H k A instances points lanes batches of memory"
    # U and G are one program and share their batches.
    assert " ".join(lines[1].split()[:12]) == "U + G episodes 3 1 3 4 3 60 6 2x5"
    assert " ".join(lines[2].split()[:12]) == "U + G episodes 3 2 3 1 3 15 2 2x5"
    saying = "75 lanes of 1000 episodes; batches: 8, compilations: 2, devices: 1, largest batch: about "
    assert lines[3].startswith(saying)
    assert plan.num_lanes == 75
    assert plan.peak_bytes == max(b.lanes * plan.groups[b.group].bytes_per_lane for b in plan.batches)


def test_batch_names_differ():
    batches = [
        b for name in "UV" for b in cut(0, [(name, "I", j) for j in range(3)], list(range(9)), limit=4)
    ]
    assert len({b.name() for b in batches}) == len(batches)


def test_every_learner_becomes_a_grid():
    expanded = expand_learners({"U": jb.make_learner("ucbvi", bonus_scale=0.5)})
    assert expanded["U"].size == 1
    assert float(expanded["U"].learner.params["bonus_scale"][0]) == 0.5


@pytest.mark.parametrize(
    ("count", "text"), [(12, "12 bytes"), (1234, "1.2 kB"), (3.2e6, "3.2 MB"), (7e12, "7.0 TB")]
)
def test_format_bytes(count, text):
    assert format_bytes(count) == text
