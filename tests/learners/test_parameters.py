"""Parameters of learners: constructors and `Learner.check` refuse by one spec, presets are values over the paper's."""

import inspect
import re

import jax
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.learner import Problem, describe_params, make_constants
from jaxbandit.learners.expref import DEFAULTS, MAX_PHASES, PAPER, PRESETS, constants
from jaxbandit.theory import schedule

NEEDED = {"prophet-optimism": {"values": [[0, 0.5, 1]] * 2}}
SPECIAL = {  # parameters whose check has another home, and others that a parameter needs
    ("expref-shared", "exploration_scale"): {"ordered": True},
    ("epsilon-greedy", "epsilon"): {"decay": True},
}
SPECS = [
    (name, parameter, spec)
    for name, constructor in jb.LEARNERS.constructors.items()
    for parameter, spec in getattr(constructor, "specs", {}).items()
]


def test_every_parameter_of_a_constructor_has_a_spec():
    """But those that are no numbers: tables, policies, optimizers and functions."""
    own = {"policy", "values", "reachable", "optimizer", "learning_rate"}
    for name, constructor in jb.LEARNERS.constructors.items():
        taken = set(inspect.signature(constructor).parameters) - own
        assert taken <= set(getattr(constructor, "specs", {})), name


@pytest.mark.parametrize(("name", "parameter", "spec"), SPECS, ids=lambda x: str(x)[:24])
def test_good_values_make_a_learner_and_odd_ones_are_refused_by_name(name, parameter, spec):
    others = {**NEEDED.get(name, {}), **SPECIAL.get((name, parameter), {})}
    usual = inspect.signature(jb.LEARNERS.constructors[name]).parameters[parameter].default
    for value in spec.good():
        learner = jb.make_learner(name, **others, **{parameter: value})
        learner.check(learner.params)
    learner = jb.make_learner(name, **others)
    for value in spec.odd():
        if value is usual:
            continue
        with pytest.raises(ValueError, match=f"^{parameter}: .*; accepted: "):
            jb.make_learner(name, **others, **{parameter: value})
        if parameter in learner.params and isinstance(value, float) and np.isfinite(value):
            with pytest.raises(ValueError, match=f"^{parameter}: .*; accepted: "):
                learner.check({**learner.params, parameter: np.float64(value)})


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("expref", {"preset": ["theory"]}),
        ("expref", {"epsilons": 10**400}),
        ("expref", {"threshold": 10**400}),
        ("expref-shared", {"exploration_scale": 1.0}),
        ("expref-shared", {"threshold": 0.1, "deviations": 2.0}),
        ("policy-gradient", {"learning_rate": 0}),
        ("policy-gradient", {"learning_rate": "fast"}),
        ("policy-gradient", {"learning_rate": 0.1, "optimizer": 3}),
        ("policy-gradient", {"optimizer": 3}),
        ("prophet-bandit", {"episodes_scale": 10**400}),
        ("prophet-optimism", {"values": "x"}),
        ("prophet-optimism", {"values": 1j}),
        ("prophet-optimism", {"values": [[1, 0]]}),
        ("fixed", {"policy": np.full((2, 20, 4), 0.3)}),
        ("fixed", {"policy": [[0], [1, 2]]}),
        ("fixed", {"policy": [[0, -1]]}),
        ("ucb-policies", {"reachable": [[0, 1]]}),
    ],
)
def test_strange_values_are_refused_by_the_name_of_the_parameter(name, wrong):
    with pytest.raises(ValueError, match=f"{next(iter(wrong))}: .*accepted: "):
        jb.make_learner(name, **wrong)


def test_numbers_beyond_the_integers_of_the_machine():
    assert jb.make_learner("expref", threshold=2**100).params["threshold"] == 2.0**100


def test_theory_is_the_paper_and_given_values_come_first():
    ours = jb.make_learner("expref", preset="theory").params
    assert list(ours) == list(DEFAULTS["expref"])
    for key, value in jb.make_learner("expref").params.items():
        np.testing.assert_array_equal(ours[key], value)
    for name, presets in PRESETS.items():
        for preset, values in presets.items():
            learner = jb.make_learner(name, preset=preset)
            assert {key: float(learner.params[key]) for key in values} == values
            said = "" if preset == "theory" else f", preset {preset}"
            assert repr(learner) == f"Learner('{name}', bandit{said})"
    with pytest.raises(ValueError, match="no parameter 'treshold'"):
        jb.make_learner("expref", treshold=0.1)
    overruled = jb.make_learner("expref", preset="practical", threshold=0.1).params
    assert float(overruled["threshold"]) == 0.1
    assert float(overruled["first_epsilon"]) == 0.3
    shared = jb.make_learner("expref-shared", preset="practical", threshold=0.1).params
    assert np.isnan(
        shared["deviations"]
    )  # what is given replaces the preset's way to set the slack


def test_descriptions():
    for ordered in (False, True):
        learner = jb.make_learner("expref-shared", ordered=ordered, preset="practical")
        assert repr(learner) == "Learner('expref-shared', bandit, preset practical)"
    practical = jb.make_learner("expref", preset="practical")
    changed = jb.make_learner("expref", preset="practical", num_phases=3, epsilons=[0.5])
    assert repr(changed).endswith("preset practical, num_phases 3, epsilons of 1 phases)")
    paper = {**practical.params, "threshold": np.float64(np.nan)}
    assert describe_params("expref", paper) == "preset practical, threshold as in the paper"
    many = jax.tree.map(lambda x: np.stack([x, x]), practical.params)
    assert describe_params("expref", many) == "preset practical"


@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("num_episodes", [1, 50, 10**6, 10**15])
def test_phases_are_those_of_the_theory(width, num_episodes):
    found = constants(False, Problem(5, 3, 2, num_episodes), PAPER, width)
    wanted = schedule(5, width, 2, num_episodes=max(num_episodes, 2))
    count = wanted.epsilons.size
    assert found.epsilons.shape == found.episodes_per_arm.shape == (MAX_PHASES,)
    np.testing.assert_array_equal(found.epsilons[:count], wanted.epsilons)
    np.testing.assert_array_equal(found.episodes_per_arm[:count], wanted.episodes_per_arm)
    assert not found.epsilons[count:].any()
    assert int(found.forever) == num_episodes + 1


def test_parameters_of_the_phases():
    problem = Problem(2, 2, 2, 2_000_000)
    with pytest.raises(ValueError, match=r"ratio: 0.99, more than 32 phases at T = 2000000; acc"):
        constants(False, problem, {"ratio": 0.99})
    practical = jb.make_learner("expref", preset="practical")
    found = make_constants(practical, problem, practical.params)
    np.testing.assert_allclose(found.epsilons[:5], [0.3, 0.2121, 0.15, 0.1061, 0.075], atol=1e-4)
    assert found.episodes_per_arm[:6].tolist() == [162, 323, 645, 1290, 2580, 0]
    # arms longer than the run still fit the engines' integers
    long = constants(False, Problem(2, 2, 2, 1000), {"last_epsilon": 1e-5, "num_phases": 17})
    assert long.episodes_per_arm.max() == 2**31 - 1


def test_docstrings_of_constructors_name_every_parameter():
    for name, constructor in jb.LEARNERS.constructors.items():
        for parameter in inspect.signature(constructor).parameters:
            assert re.search(rf"^        {parameter}: ", constructor.__doc__, re.MULTILINE), name
