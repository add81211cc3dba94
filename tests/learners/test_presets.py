"""Presets are values over the paper's, and reprs name them."""

import jax
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.learner import make_constants
from jaxbandit.learner.presets import describe_params
from jaxbandit.learners.presets import DEFAULTS, PRESETS, expref, schedule_params


def test_theory_is_the_paper_and_given_values_come_first():
    ours = jb.make_learner("expref", preset="theory").params
    for key, value in jb.make_learner("expref").params.items():
        np.testing.assert_array_equal(ours[key], value)
    for name, presets in PRESETS.items():
        for preset, values in presets.items():
            shared = {"ordered": True} if name == "ordered-expref-shared" else {}
            learner = "expref-shared" if shared else name
            params = jb.make_learner(learner, preset=preset, **shared).params
            assert {key: float(params[key]) for key in values} == values
            assert list(params) == list(DEFAULTS[name])
    with pytest.raises(TypeError, match="unexpected keyword argument 'treshold'"):
        expref(treshold=0.1)
    overruled = jb.make_learner("expref", preset="practical", threshold=0.1).params
    assert float(overruled["threshold"]) == 0.1
    assert float(overruled["first_epsilon"]) == 0.3


def test_the_schedule_of_the_practical_preset():
    learner = jb.make_learner("expref", preset="practical")
    found = make_constants(learner, jb.Problem(2, 2, 2, 2_000_000), learner.params)
    epsilons = [0.3, 0.2121, 0.15, 0.1061, 0.075]
    np.testing.assert_allclose(found.epsilons[:6], [*epsilons, 0], atol=1e-4)
    assert found.episodes_per_arm[:6].tolist() == [162, 323, 645, 1290, 2580, 0]


def test_descriptions():
    for name, presets in PRESETS.items():
        for preset in presets:
            said = describe_params(
                name.replace("ordered-expref-", "expref-"), schedule_params(name, preset, {})
            )
            assert said == ("" if preset == "theory" else f"preset {preset}")
    changed = schedule_params("expref", "practical", {"num_phases": 3, "epsilons": [0.5]})
    assert (
        describe_params("expref", changed) == "preset practical, num_phases 3, epsilons of 1 phases"
    )
    paper = schedule_params("expref", "practical", {}) | {"threshold": np.float64(np.nan)}
    assert describe_params("expref", paper) == "preset practical, threshold as in the paper"
    many = jax.tree.map(lambda x: np.stack([x, x]), schedule_params("expref", "practical", {}))
    assert describe_params("expref", many) == "preset practical"


def test_a_threshold_beyond_all_integers_of_the_machine():
    assert schedule_params("expref", None, {"threshold": 2**100})["threshold"] == 2.0**100
    with pytest.raises(ValueError, match="threshold: 1000000"):
        schedule_params("expref", None, {"threshold": 10**400})
