"""Experiments by name and by file: what breaks the contract is answered in one line."""

import importlib
from pathlib import Path

import pytest
from users_experiment import MINE

from jaxbandit.cli import main
from jaxbandit.experiment import Experiment, Options, catalogue, load_experiment

pytestmark = pytest.mark.usefixtures("started")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            ("import jaxbandit as jb", "import nowhere_to_be_found"),
            "ModuleNotFoundError: No module named",
        ),
        (("import jaxbandit as jb", "import jaxbandit as jb\n1 / 0"), "line 4: ZeroDivisionError"),
        (("num_episodes=", "episodes="), "'episodes'; did you mean 'num_episodes'?"),
        (("learners=learners, ", ""), "sweep 'regret': no 'learners'; accepted: at least"),
        (("learners=learners", "learners=[1]"), "learners is list; accepted: a dict by name"),
        (("return {", "return None and {"), "sweeps of mine: NoneType; accepted: a dict"),
        (("(options):", "(options):\n    len(3)"), "TypeError: object of type 'int' has no len()"),
    ],
)
def test_broken_experiments_are_answered_in_one_line(change, told, tmp_path, capfd):
    broken = tmp_path / "broken.py"
    broken.write_text(MINE.replace(*change, 1))
    assert main(["run", str(broken), "--out", str(tmp_path / "out")]) == 2
    err = capfd.readouterr().err
    assert told in err
    assert err.count("\n") == 1


def test_options_choose_sizes():
    assert Options(episodes=7).choose_episodes(1, full=2) == 7
    assert [Options(full=full).choose_seeds(1, full=2) for full in (False, True)] == [1, 2]
    assert Options(instances=3).choose_instances(1, full=2) == 3
    with pytest.raises(ValueError, match="seeds: 0; accepted"):
        Options(seeds=0).choose_seeds(1, full=2)
    with pytest.raises(ValueError, match=r"episodes: 1000000000.*; accepted: a whole"):
        Options(episodes=10**40).check()
    with pytest.raises(ValueError, match="one of the two"):
        Options(resume=True, overwrite=True).check()
    assert Experiment("name", "  First\nline.\n\nMore.", dict).summary == "First line."


def test_every_experiment_of_the_catalogue_can_be_loaded():
    for name, summary in catalogue().items():
        experiment = load_experiment(name)
        assert experiment.name == name
        assert experiment.summary == summary
        assert summary.endswith(".")
        module = importlib.import_module(f"jaxbandit.experiments.{name.replace('-', '_')}")
        assert Path(module.__file__).name == f"{name.replace('-', '_')}.py"
    assert {"prophet", "runtimes", "constants", "applications", "tuning", "verdict"} <= set(
        catalogue()
    )


@pytest.mark.parametrize("name", ["scaling", "price-of-horizon", "lower-bounds", "exploration"])
def test_plans_fit_the_contract(name):
    experiment = load_experiment(name)
    assert experiment.summary
    for arguments in experiment.sweeps(Options(seeds=2)).values():
        assert {"learners", "instances", "num_episodes", "num_seeds"} <= set(arguments)
