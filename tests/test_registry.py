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


def test_an_unknown_name_is_answered_with_near_matches(shapes):
    with pytest.raises(ValueError, match="unknown shape 'cirle'; did you mean 'circle'"):
        shapes.make("cirle", radius=2)
    with pytest.raises(ValueError, match=r"unknown shape 'zzz'; accepted: circle, square$"):
        shapes.make("zzz")


def test_an_unknown_parameter_is_answered_with_a_near_match(shapes):
    with pytest.raises(
        ValueError, match="shape 'circle' has no parameter 'radios'; did you mean 'radius'"
    ):
        shapes.make("circle", radios=2)
    with pytest.raises(ValueError, match=r"no parameter 'zzz'; accepted: radius, centre$"):
        shapes.make("circle", radius=1, zzz=2)


def test_a_missing_parameter_is_named(shapes):
    with pytest.raises(
        ValueError, match=r"shape 'circle' needs the parameter 'radius'; it takes circle"
    ):
        shapes.make("circle")


def test_names_are_taken_once_and_are_words(shapes):
    with pytest.raises(ValueError, match="shape 'circle' is registered already"):
        shapes.register("circle", dict)
    for name in ("", None):
        with pytest.raises(ValueError, match="accepted: a non-empty string"):
            shapes.register(name, dict)


def test_unknown_instances():
    with pytest.raises(
        ValueError, match="unknown instance 'profet-uniform'; did you mean 'prophet-uniform'"
    ):
        jb.make_instance("profet-uniform", horizon=3, capacity=1, num_values=2)
    with pytest.raises(
        ValueError, match="'prophet-uniform' has no parameter 'horizn'; did you mean 'horizon'"
    ):
        jb.make_instance("prophet-uniform", horizn=3, capacity=1, num_values=2)
    with pytest.raises(ValueError, match="instance 'prophet-random' needs the parameter 'key'"):
        jb.make_instance("prophet-random", horizon=3, capacity=1, num_values=2)


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
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert "did you mean the instance 'bandit'" in found.stderr
