"""What is going to run is checked before anything runs."""

import pytest

import jaxbandit as jb
from jaxbandit.experiment import Experiment, Options
from jaxbandit.experiment.plans import check_resumable, decide, holds_run, plan

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
