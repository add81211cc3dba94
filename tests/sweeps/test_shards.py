"""Merging: any cut of a sweep into shards, put together, is the sweep."""

import json
import shutil

import numpy as np
import pytest
from sweep_program import assert_same_bits, configuration

import jaxbandit as jb
from jaxbandit.sweeps.identity import Identity
from jaxbandit.sweeps.shards import (
    CheckpointState,
    assign,
    begun_episodes,
    check_shard,
    checkpoint_state,
    exchange,
    merge,
    seeds_of,
)

UNTIMED = ["compile_seconds", "run_seconds", "episodes_per_second"]


@pytest.fixture(scope="module")
def whole():
    learners = {
        "ExpRef": jb.make_learner("expref", preset="practical"),
        "UCB-VI": jb.grid(jb.make_learner("ucbvi"), bonus_scale=[0.1, 1.0]),
    }
    mdp = jb.make_instance("prophet-uniform", horizon=3, capacity=1, num_values=3)
    other = jb.make_instance("prophet-uniform", horizon=2, capacity=2, num_values=3)
    return jb.sweep(
        learners, {"I1": mdp, "other": other}, 3000, num_seeds=7, record=jb.record.linear(5), progress=False
    )  # fmt: skip


def cut(ds, count):
    """The shards of a sweep as their machines would have returned them."""
    parts = []
    for index in range(1, count + 1):
        seeds = seeds_of((index, count), ds.sizes["seed"])
        if not seeds:
            continue
        part = ds.sel(seed=seeds)
        own = {"shard": [index, count], "devices": index, "workers": index}
        config = json.loads(ds.attrs["config"]) | own
        part = part.assign_attrs(config=json.dumps(config), created=f"2026-01-0{index}")
        ended = np.isfinite(part["phase_end"].values).any(
            axis=tuple(range(part["phase_end"].ndim - 1))
        )
        last = max(1, int(ended.sum()))
        part = part.isel(phase=slice(0, last))  # a shard has the phases that its own runs finished
        share = len(seeds) / ds.sizes["seed"]
        for name in UNTIMED[:2]:
            part[name] = part[name] * share
        parts.append(part)
    return parts


@pytest.mark.parametrize("count", [1, 2, 3, 7, 9])
def test_the_merged_shards_are_the_single_run_bit_for_bit(whole, count):
    merged = merge(reversed(cut(whole, count)))
    assert list(merged.data_vars) == list(whole.data_vars)
    for name in whole.data_vars:
        assert merged[name].dims == whole[name].dims, name
        assert merged[name].dtype == whole[name].dtype, name
        if name not in UNTIMED:
            np.testing.assert_array_equal(merged[name].values, whole[name].values, err_msg=name)
            assert merged[name].values.tobytes() == whole[name].values.tobytes(), name
    assert set(merged.coords) == set(whole.coords)
    for name in whole.coords:
        assert merged[name].dims == whole[name].dims
        assert merged[name].dtype == whole[name].dtype
        np.testing.assert_array_equal(merged[name].values, whole[name].values)
    for name in UNTIMED:
        np.testing.assert_allclose(merged[name].values, whole[name].values)
    config = json.loads(merged.attrs["config"])
    assert "shard" not in config
    assert config["num_seeds"] == 7


def test_merged_results_are_saved_and_drawn_like_any(whole, tmp_path):
    merged = merge(cut(whole, 2))
    assert jb.load(jb.save(merged, tmp_path / "merged.nc"))["regret"].identical(merged["regret"])
    assert jb.stats.final_table(merged) == jb.stats.final_table(whole)
    back = [jb.load(jb.save(p, tmp_path / f"{j}.nc")) for j, p in enumerate(cut(whole, 3))]
    np.testing.assert_array_equal(merge(back)["regret"].values, whole["regret"].values)


def test_phases_that_shards_cut_differently_are_padded(whole):
    first, second = cut(whole, 2)
    second = second.isel(phase=slice(0, 1))
    merged = merge([first, second])
    assert merged.sizes["phase"] == first.sizes["phase"]


def edited(part, **entries):
    config = json.loads(part.attrs["config"]) | entries
    return part.assign_attrs(config=json.dumps(config))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda p: p[:-1], "shards: 3/3 missing of 3; accepted: all shards"),
        (lambda p: [*p, p[1]], "shards: 2/3 comes twice; accepted: every shard once"),
        (lambda p: [p[0], edited(p[1], num_episodes=5), p[2]], "1 and 2 differ in num_episodes"),
        (lambda p: [p[0], edited(p[1], shard=[2, 4]), p[2]], r"parts of \[3, 4\]; accepted: shards i/n of one n"),
        (lambda p: [p[0], p[1].isel(seed=[0]), p[2]], r"2/3 holds the seed axis \[1\]; accepted: \[1, 4\]"),
        (lambda p: [p[0].assign_attrs(config="{}")], "number 0 is no shard"),
        (lambda p: [p[0], p[1].assign_attrs(versions='{"jax": "0.1"}'), p[2]], r"differ in device \(version\)"),
        (lambda p: [], "shards: none; accepted"),
        # what would otherwise leave holes, or mix what does not belong together
        (lambda p: [p[0], p[1].isel(learner=[0]), p[2]], r'1 and 2 differ in coordinate learner \(\["ExpRef", "UCB-VI"\] and \["ExpRef"\]\); acc'),
        (lambda p: [x.isel(learner=[1]) for x in p], "1/3 holds the learner axis"),
        (lambda p: [x.isel(instance=[0]) for x in p], "1/3 holds the instance axis"),
        (lambda p: [p[0], p[1], p[2].isel(episode=slice(2))], "1 and 3 differ in coordinate episode"),
        (lambda p: [x.isel(episode=slice(1, None)) for x in p], "1/3 holds the episode axis"),
        (lambda p: [p[0], p[1].isel(parameter=[0]), p[2]], "1 and 2 differ in coordinate bonus_scale"),
        (lambda p: [p[0], p[1].isel(level=[0, 1]), p[2]], "1 and 2 differ in coordinate level"),
        (lambda p: [p[0], p[1].assign_coords(learner=["ExpRef", "Mine"]), p[2]], "1 and 2 differ in coordinate learner"),
        (lambda p: [p[0], p[1].assign_coords(learner=["UCB-VI", "ExpRef"]), p[2]], "1 and 2 differ in coordinate learner"),
        (lambda p: [p[0], p[1].isel(instance=[1, 0]), p[2]], "1 and 2 differ in coordinate family"),
        (lambda p: [p[0], p[1].drop_vars("final_gap"), p[2]], "1 and 2 differ in variable final_gap"),
        (lambda p: [p[0], p[1].drop_vars("optimal_value"), p[2]], "1 and 2 differ in variable optimal_value"),
        (lambda p: [x.drop_vars("regret") for x in p], "1/3 has no regret"),
        (lambda p: [p[0], p[1].assign(regret=p[1]["regret"].where(p[1]["seed"] != 4)), p[2]], "regret of seed 4 has nan where others"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(whole, change, message):
    with pytest.raises(ValueError, match=message):
        merge(change(cut(whole, 3)))


def test_the_checkpoints_of_all_shards_in_one_directory_leave_nothing_to_run(tmp_path, capsys):
    how = configuration(num_episodes=300, num_seeds=5)
    parts = []
    for index in (1, 2, 3):
        folder = tmp_path / f"shard-{index}"
        parts.append(jb.sweep(**how, shard=(index, 3), checkpoint=folder))
        shutil.copytree(folder, tmp_path / "whole", dirs_exist_ok=True)
    whole = jb.sweep(**how | {"progress": "always"}, checkpoint=tmp_path / "whole")
    assert "nothing is left to run" in capsys.readouterr().err
    assert_same_bits(whole, merge(parts))


@pytest.mark.parametrize("shard", [(0, 2), (3, 2), (1,), "1/2", (1.5, 2), (True, 2), 3, (1, 0)])
def test_shards_are_whole_numbers_in_range(shard):
    with pytest.raises(ValueError, match=r"shard: .*accepted: "):
        check_shard(shard)


def test_seeds_are_dealt_and_more_seeds_move_none():
    for count in (1, 2, 5):
        dealt = [seeds_of((index, count), 12) for index in range(1, count + 1)]
        assert sorted(seed for seeds in dealt for seed in seeds) == list(range(12))
        assert all(
            seeds_of((index, count), 30)[: len(seeds)] == seeds
            for index, seeds in enumerate(dealt, 1)
        )


def test_a_variable_of_a_users_report_is_merged_too(whole):
    gap = whole["final_gap"]
    more = whole.assign(mine=(gap.dims, np.arange(float(gap.size)).reshape(gap.shape)))
    np.testing.assert_array_equal(merge(cut(more, 4))["mine"].values, more["mine"].values)


MDP = jb.make_instance("prophet-uniform", horizon=3, capacity=1, num_values=3)


def plan():
    return jb.plan({"U": jb.make_learner("uniform")}, {"I": MDP}, 10, 6, measure_seconds=0)


def header(seeds, **more):
    return {"name": str(seeds), "lanes": [["U", "I", 0, seed] for seed in seeds], **more}


def test_without_a_checkpoint_everything_is_new():
    held = checkpoint_state(None)
    assert (held.results, held.finished, held.carries) == ([], [[]], [[]])
    tiles, mine = assign(Identity(None, plan().groups), held, range(6))
    assert tuple(tiles) == plan().tiles
    assert mine == tiles
    assert exchange([]) == []


def test_tiles_in_progress_stay_with_their_state_and_finished_lanes_are_run_by_nobody():
    in_progress = header([2, 3], episodes=4)
    held = CheckpointState([], [[header([0, 1])]], [[in_progress]])
    tiles, mine = assign(Identity(None, plan().groups), held, range(6))
    assert [[seed for *_, seed in tile.lanes] for tile in tiles] == [[2, 3], [4, 5]]
    assert begun_episodes(held, mine) == 8
    fewer, _ = assign(Identity(None, plan().groups), held, range(3))
    assert [[seed for *_, seed in tile.lanes] for tile in fewer] == [[2]]
