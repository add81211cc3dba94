"""Running an experiment: joined results, folders, tables."""

from pathlib import Path

import numpy as np
import pytest
from jaxbandit.experiments import prophet
from made_up_results import POINTS, make_up
from sweep_program import assert_same_bits

import jaxbandit as jb
from jaxbandit.experiment import Experiment, Options
from jaxbandit.experiment.driver import check_folder, for_terminal, join, run
from jaxbandit.sweeps.shards import merge


def test_join_keeps_every_seed():
    plans = prophet.sweeps(Options(full=True, instances=2))
    parts = [make_up(plans[kind]) for kind in ("I1", "I2")]
    both = join(*parts)
    assert both.sizes["seed"] == 32
    for part in parts:
        names, seeds = part["instance"].values, part["seed"].values
        assert np.array_equal(
            both["regret"].sel(instance=names, seed=seeds).values, part["regret"].values
        )
    assert int(both["regret"].isnull().sum()) == 30 * 12 * 7 * POINTS  # I2: 2 of 32 seeds


def test_joined_results_keep_their_instances(tmp_path):
    sizes = {"I1": (3, 1, 3), "I2": (4, 2, 2)}
    mdps = {
        name: jb.make_instance("prophet-uniform", horizon=h, capacity=k, num_values=a)
        for name, (h, k, a) in sizes.items()
    }
    parts = [
        jb.sweep(
            {"uniform": jb.make_learner("uniform")}, {name: mdp}, 20, num_seeds=2, progress=False
        )
        for name, mdp in mdps.items()
    ]
    both = join(*parts)
    assert jb.load(jb.save(both, tmp_path / "both.nc")).equals(both)
    for name, mdp in mdps.items():
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


def test_wide_tables_are_left_to_the_file():
    text = f"| short |\n\n{'a note ' * 30}\n\n| {'x' * 200} |\n| {'y' * 200} |"
    shown = for_terminal(text, Path("out/verdict.md")).split("\n\n")
    assert shown[0] == "| short |"
    assert all(len(line) <= 100 for line in shown[1].split("\n"))
    assert shown[2] == "(a wide table: see out/verdict.md)"


def test_shards_that_ran_leave_nothing_to_run(tmp_path, capsys):
    """With their results merged or not: the checkpoints of all shards are that of the whole."""
    mdp = jb.make_instance("prophet-uniform", horizon=3, capacity=2, num_values=3)
    sweep = {"learners": {"U": jb.make_learner("uniform")}, "instances": {"I1": mdp}}
    sizes = {"num_episodes": 50, "num_seeds": 5, "record": jb.record.linear(2)}
    experiment = Experiment("mine", "", lambda options: {"all": sweep | sizes})
    how = {"out": str(tmp_path), "progress": "always"}
    for shard in ("1/3", "2/3", "3/3"):
        run(experiment, Options(**how, shard=shard))
    assert "nothing is left to run" not in capsys.readouterr().err
    outcome = run(experiment, Options(**how, resume=True))
    assert "nothing is left to run" in capsys.readouterr().err
    merged = merge([jb.load(file) for file in sorted(tmp_path.glob("shards/*.nc"))])
    assert_same_bits(outcome.datasets["all"], merged)
