"""Shards on disk: written by machines that do not know of each other, merged once all are there."""

import json

import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.cli.shards import find_shards, merge_folder, parse_shard, shard_path
from jaxbandit.sweeps.shards import seeds_of


@pytest.fixture(scope="module")
def whole():
    mdp = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=2)
    return jb.sweep({"U": jb.make_learner("uniform")}, {"I1": mdp}, 30, 5, record=jb.record.linear(3), progress=False)  # fmt: skip


def write(folder, whole, label, shard):
    config = json.loads(whole.attrs["config"]) | {"shard": list(shard)}
    part = whole.sel(seed=seeds_of(shard, whole.sizes["seed"]))
    jb.save(part.assign_attrs(config=json.dumps(config)), shard_path(folder, label, shard))


def test_a_folder_is_merged_once_it_is_complete(whole, tmp_path):
    for label in ("I1", "I2"):
        for index in (2, 1):
            write(tmp_path, whole, label, (index, 3))
    write(tmp_path, whole, "I1", (3, 3))
    assert {label: len(files) for label, files in find_shards(tmp_path).items()} == {
        "I1": 3,
        "I2": 2,
    }
    with pytest.raises(ValueError, match="I2: shards: 3/3 missing of 3"):
        merge_folder(tmp_path)
    assert not list(tmp_path.glob("*.nc"))
    write(tmp_path, whole, "I2", (3, 3))
    files = merge_folder(tmp_path)
    assert sorted(file.name for file in files.values()) == ["I1.nc", "I2.nc"]
    np.testing.assert_array_equal(jb.load(files["I2"])["regret"].values, whole["regret"].values)
    with pytest.raises(FileExistsError, match=r"holds I1.nc, I2.nc already; --overwrite"):
        merge_folder(tmp_path)
    merge_folder(tmp_path, overwrite=True)


@pytest.mark.parametrize("text", ["3", "a/b", "0/2", "3/2", "1/2/3", ""])
def test_shards_are_read_from_the_command_line(text):
    assert parse_shard(" 2/7 ") == (2, 7)
    with pytest.raises(ValueError, match=r"shard: .*; accepted: "):
        parse_shard(text)
