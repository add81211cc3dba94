"""Running an experiment: what is going to run is checked first; folders, tables, shards."""

import json
from pathlib import Path

import numpy as np
import pytest
from sweep_program import assert_same_bits

import jaxbandit as jb
from jaxbandit.cli import driver
from jaxbandit.cli.driver import check_folder, check_resumable, for_terminal, plan, run
from jaxbandit.experiment import Experiment, Options, join
from jaxbandit.sweeps.shards import seeds_of

SIZES = {"horizon": 3, "capacity": 2, "num_values": 3}
MDP = jb.make_instance("prophet-uniform", **SIZES)
GOOD = {
    "learners": {"uniform": jb.make_learner("uniform")},
    "instances": {"I1": MDP},
    "num_episodes": 50,
    "num_seeds": 5,
    "record": jb.record.linear(2),
}
MINE = Experiment("mine", "Mine.", lambda options: {"all": GOOD})


@pytest.fixture(scope="module")
def whole():
    return jb.sweep(**GOOD, progress=False)


def test_joined_results_keep_their_seeds_and_instances(whole, tmp_path):
    other = jb.make_instance("prophet-uniform", horizon=4, capacity=2, num_values=2)
    part = jb.sweep(**GOOD | {"instances": {"I2": other}, "num_seeds": 2}, progress=False)
    both = join(whole, part)
    for each in (whole, part):
        names, seeds = each["instance"].values, each["seed"].values
        found = both["regret"].sel(instance=names, seed=seeds).values
        assert np.array_equal(found, each["regret"].values)
    assert int(both["regret"].isnull().sum()) == 3 * 2  # I2: 2 of 5 seeds, at 2 points
    assert jb.load(jb.save(both, tmp_path / "both.nc")).equals(both)
    for name, mdp in {"I1": MDP, "I2": other}.items():
        found = jb.instance_of(both, name)
        assert all(np.array_equal(a, b) for a, b in zip(found, mdp, strict=True))
        assert jb.labels_of(found).actions == jb.labels_of(mdp).actions


def test_folders_are_not_replaced_unless_told(tmp_path):
    check_folder(tmp_path / "new", ["a"], Options())
    (tmp_path / "checkpoints" / "a").mkdir(parents=True)
    with pytest.raises(ValueError, match="unfinished run"):
        check_folder(tmp_path, ["a"], Options())
    (tmp_path / "a.nc").touch()
    with pytest.raises(ValueError, match="holds results already"):
        check_folder(tmp_path, ["a"], Options())
    check_folder(tmp_path, ["a"], Options(resume=True))
    check_folder(tmp_path, ["a"], Options(overwrite=True))
    check_folder(tmp_path, ["b"], Options())
    with pytest.raises(ValueError, match="is a file"):
        check_folder(tmp_path / "a.nc", ["a"], Options())


def test_resuming_what_is_not_there(tmp_path, capsys):
    folder = tmp_path / "results" / "full"
    (folder / "checkpoints" / "a").mkdir(parents=True)
    check_resumable(folder, ["a"])
    for misspelt in (folder.with_name("fulll"), tmp_path / "result" / "full"):
        with pytest.raises(ValueError, match=r"did you mean '.*results/full'"):
            check_resumable(misspelt, ["a"])
    assert capsys.readouterr().err == ""
    for other in ("something-else", "full-2", "full_3"):
        check_resumable(folder.with_name(other), ["a"])
        assert "holds nothing to resume, so the run starts anew" in capsys.readouterr().err


def test_wide_tables_are_left_to_the_file():
    text = f"| short |\n\n{'a note ' * 30}\n\n| {'x' * 200} |\n| {'y' * 200} |"
    shown = for_terminal(text, Path("out/verdict.md")).split("\n\n")
    assert shown[0] == "| short |"
    assert all(len(line) <= 100 for line in shown[1].split("\n"))
    assert shown[2] == "(a wide table: see out/verdict.md)"


def test_learners_of_a_file_join_every_sweep(tmp_path):
    file = tmp_path / "mine.py"
    text = 'import jaxbandit as jb\nLEARNERS = {"NAME": jb.make_learner("uniform")}\n'
    file.write_text(text.replace("NAME", "other"))
    assert list(plan(MINE, Options(learners=file))["all"]["learners"]) == ["uniform", "other"]
    assert list(GOOD["learners"]) == ["uniform"]
    file.write_text(text.replace("NAME", "uniform"))
    with pytest.raises(ValueError, match="'uniform' is in sweep 'all' already"):
        plan(MINE, Options(learners=file))
    for wrong in ("LEARNERS = {}", "LEARNERS = {'a': 3}", "x = 1"):
        file.write_text(wrong)
        with pytest.raises(ValueError, match="LEARNERS = "):
            plan(MINE, Options(learners=file))


def test_plans_that_depend_on_results():
    later = Experiment("mine", "Mine.", lambda options: {"a": lambda datasets: {"learners": {}}})
    arguments = plan(later, Options())["a"]
    with pytest.raises(ValueError, match="sweep 'a': no 'instances', 'num_episodes'"):
        driver.decide("a", arguments, {})


def test_shards_that_ran_leave_nothing_to_run(whole, tmp_path, capsys):
    """With their results merged or not: the checkpoints of all shards are that of the whole."""
    how = {"out": tmp_path, "progress": "always"}
    for shard in ("1/3", "2/3", "3/3"):
        run(MINE, Options(**how, shard=shard))
    assert "nothing is left to run" not in capsys.readouterr().err
    outcome = run(MINE, Options(**how, resume=True))
    assert "nothing is left to run" in capsys.readouterr().err
    assert_same_bits(outcome.datasets["all"], whole)


def write(folder, whole, label, shard):
    config = json.loads(whole.attrs["config"]) | {"shard": list(shard)}
    part = whole.sel(seed=seeds_of(shard, whole.sizes["seed"]))
    file = driver.shard_path(folder, label, shard)
    jb.save(part.assign_attrs(config=json.dumps(config)), file)


def test_a_folder_is_merged_once_it_is_complete(whole, tmp_path):
    for label, index in (("I1", 2), ("I1", 1), ("I2", 1)):
        write(tmp_path, whole, label, (index, 2))
    found = driver.find_shards(tmp_path)
    assert {label: len(files) for label, files in found.items()} == {"I1": 2, "I2": 1}
    with pytest.raises(ValueError, match="I2: shards: 2/2 missing of 2"):
        driver.merge_folder(tmp_path)
    assert not list(tmp_path.glob("*.nc"))
    write(tmp_path, whole, "I2", (2, 2))
    files = driver.merge_folder(tmp_path)
    assert sorted(file.name for file in files.values()) == ["I1.nc", "I2.nc"]
    np.testing.assert_array_equal(jb.load(files["I2"])["regret"].values, whole["regret"].values)
    with pytest.raises(FileExistsError, match=r"holds I1.nc, I2.nc already; --overwrite"):
        driver.merge_folder(tmp_path)


def test_shards_are_read_from_the_command_line():
    assert driver.parse_shard(" 2/7 ") == (2, 7)
    for text in ("3", "a/b", "0/2", "3/2", "1/2/3", ""):
        with pytest.raises(ValueError, match=r"shard: .*; accepted: "):
            driver.parse_shard(text)
