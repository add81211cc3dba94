"""The registry's answers to typos, and the public names of instances."""

import subprocess
import sys

import pytest

import jaxbandit as jb
from jaxbandit.registry import Registry


@pytest.fixture
def shapes():
    registry = Registry("shape")
    registry.register("circle", lambda radius, centre=0: ("circle", radius, centre))
    registry.register("square", lambda side, **style: ("square", side, style))
    return registry


def test_make_calls_the_constructor(shapes):
    assert shapes.make("circle", radius=2) == ("circle", 2, 0)
    assert shapes.make("square", side=1, colour="red") == ("square", 1, {"colour": "red"})
    assert shapes.names() == ["circle", "square"]


@pytest.mark.parametrize(
    ("name", "parameters", "saying"),
    [
        ("cirle", {"radius": 2}, "unknown shape 'cirle'; did you mean 'circle'"),
        ("zzz", {}, "unknown shape 'zzz'; accepted: circle, square$"),
        (
            "circle",
            {"radios": 2},
            "shape 'circle' has no parameter 'radios'; did you mean 'radius'",
        ),
        ("circle", {"radius": 1, "zzz": 2}, "no parameter 'zzz'; accepted: radius, centre$"),
        ("circle", {}, "shape 'circle' needs the parameter 'radius'; it takes circle"),
    ],
)
def test_mistakes_are_answered_with_what_is_near(shapes, name, parameters, saying):
    with pytest.raises(ValueError, match=saying):
        shapes.make(name, **parameters)


def test_names_are_taken_once_and_are_words(shapes):
    with pytest.raises(ValueError, match="shape 'circle' is registered already"):
        shapes.register("circle", dict)
    for name in ("", None):
        with pytest.raises(ValueError, match="accepted: a non-empty string"):
            shapes.register(name, dict)


def test_a_users_own_instance_is_made_by_its_name():
    def two_coins(capacity):
        return jb.make_instance("prophet-uniform", horizon=2, capacity=capacity, num_values=2)

    assert jb.register_instance("two-coins", two_coins) is two_coins
    try:
        assert jb.make_instance("two-coins", capacity=1).horizon == 2
        assert "two-coins" in jb.INSTANCES.names()
        with pytest.raises(ValueError, match="instance 'two-coins' is registered already"):
            jb.register_instance("two-coins", two_coins)
    finally:
        del jb.INSTANCES.constructors["two-coins"]


def test_a_name_of_the_other_registry_is_found_though_it_is_not_loaded():
    code = "import jaxbandit as jb; jb.make_learner('bernoulli')"
    command = [sys.executable, "-c", code]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "did you mean the instance 'bandit'" in found.stderr
