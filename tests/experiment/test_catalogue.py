"""Experiments by name."""

import importlib
from pathlib import Path

import pytest

from jaxbandit.experiment import catalogue, load_experiment
from jaxbandit.experiment import Options


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
