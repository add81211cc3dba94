"""Running an experiment: what is going to run is checked first; folders, tables, shards."""

from pathlib import Path

import numpy as np
import pytest
from jaxbandit.experiments import prophet
from made_up_results import POINTS, make_up
from sweep_program import assert_same_bits

import jaxbandit as jb
from jaxbandit.cli.driver import (
    check_folder,
    check_resumable,
    decide,
    for_terminal,
    holds_run,
    plan,
    run,
)
from jaxbandit.experiment import Experiment, Options, join
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


MDP = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=2)
GOOD = {
    "learners": {"uniform": jb.make_learner("uniform")},
    "instances": {"I1": MDP},
    "num_episodes": 5,
}
LEARNERS = 'import jaxbandit as jb\nLEARNERS = {"NAME": jb.make_learner("uniform")}\n'


def experiment(**changes):
    return Experiment("mine", "Mine.", lambda options: {"a": {**GOOD, **changes}})


def test_learners_of_a_file_join_every_sweep(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(LEARNERS.replace("NAME", "other"))
    plans = plan(experiment(), Options(learners=file))
    assert list(plans["a"]["learners"]) == ["uniform", "other"]
    assert list(GOOD["learners"]) == ["uniform"]
    file.write_text(LEARNERS.replace("NAME", "uniform"))
    with pytest.raises(ValueError, match="'uniform' is in sweep 'a' already"):
        plan(experiment(), Options(learners=file))
    for wrong in ("LEARNERS = {}", "LEARNERS = {'a': 3}", "x = 1"):
        file.write_text(wrong)
        with pytest.raises(ValueError, match="LEARNERS = "):
            plan(experiment(), Options(learners=file))


def test_plans_that_depend_on_results():
    later = Experiment("mine", "Mine.", lambda options: {"a": lambda datasets: {"learners": {}}})
    arguments = plan(later, Options())["a"]
    with pytest.raises(ValueError, match="sweep 'a': no 'instances', 'num_episodes'"):
        decide("a", arguments, {})


def test_resuming_what_is_not_there(tmp_path, capsys):
    run = tmp_path / "results" / "full"
    (run / "checkpoints" / "a").mkdir(parents=True)
    assert holds_run(run, ["a"])
    check_resumable(run, ["a"])
    for misspelt in (run.with_name("fulll"), tmp_path / "result" / "full"):
        with pytest.raises(ValueError, match=r"did you mean '.*results/full'"):
            check_resumable(misspelt, ["a"])
    assert capsys.readouterr().err == ""
    for other in ("something-else", "full-2", "full_3"):
        check_resumable(run.with_name(other), ["a"])
        assert "starts anew" in capsys.readouterr().err
