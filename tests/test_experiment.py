"""Experiments by name: all of the catalogue can be loaded, and their options choose sizes."""

import pytest

from jaxbandit.experiment import Experiment, Options, catalogue, load_experiment


def test_options_choose_sizes():
    assert Options(episodes=7).choose_episodes(1, full=2) == 7
    assert [Options(full=full).choose_seeds(1, full=2) for full in (False, True)] == [1, 2]
    assert Options(instances=3).choose_instances(1, full=2) == 3
    with pytest.raises(ValueError, match="seeds: 0; accepted"):
        Options(seeds=0)
    with pytest.raises(ValueError, match=r"episodes: 1000000000.*; accepted: a whole"):
        Options(episodes=10**40)
    with pytest.raises(ValueError, match="one of the two"):
        Options(resume=True, overwrite=True)
    assert Experiment("name", "  First\nline.\n\nMore.", dict).summary == "First line."


def test_every_experiment_of_the_catalogue_can_be_loaded():
    found = catalogue()
    for name, summary in found.items():
        experiment = load_experiment(name)
        assert (experiment.name, experiment.summary) == (name, summary)
        assert summary.endswith(".")
    assert {"prophet", "runtimes", "constants", "applications", "tuning", "verdict"} <= set(found)


@pytest.mark.parametrize("name", ["scaling", "price-of-horizon", "lower-bounds", "exploration"])
def test_plans_fit_the_contract(name):
    for arguments in load_experiment(name).sweeps(Options(seeds=2)).values():
        assert {"learners", "instances", "num_episodes", "num_seeds"} <= set(arguments)
