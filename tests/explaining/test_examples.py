"""A small instance of every family: valid, and with the parameters that were given."""

import pytest

import jaxbandit as jb
from jaxbandit.explaining.examples import small_instance


@pytest.mark.parametrize("name", jb.INSTANCES.names())
def test_every_family_has_a_small_instance(name):
    mdp, parameters = small_instance(name)
    jb.validate(mdp)
    assert mdp.prob.size < 10_000
    assert parameters


def test_what_is_given_is_taken():
    mdp, parameters = small_instance("hard-general", {"theta": [0, 1, 2], "gap": 0.1})
    assert mdp.horizon == 3
    assert parameters["gap"] == "0.1"
    assert "key" not in parameters
    with pytest.raises(ValueError, match="did you mean 'knapsack'"):
        small_instance("knapsak")
