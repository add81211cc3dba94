"""Families that experiments draw: valid, reproducible, and different for every size and root."""

import jax
import numpy as np
import pytest
from jaxbandit.experiments import families

import jaxbandit as jb

SIZE = (3, 1, 4)


def test_random_laws_are_drawn_by_root_and_size():
    one, again, other = (families.random_laws(SIZE, 2, root) for root in (1, 1, 2))
    for mdp, same, different in zip(one, again, other, strict=True):
        jb.validate(mdp)
        np.testing.assert_array_equal(mdp.prob, same.prob)
        assert not np.array_equal(mdp.prob, different.prob)


def test_uniform_laws_are_copies_of_one_instance():
    copies = families.uniform_laws(SIZE, 3)
    one = jb.make_instance("prophet-uniform", horizon=3, capacity=1, num_values=4)
    assert copies.prob.shape == (3, *one.prob.shape)
    assert (np.asarray(copies.prob) == np.asarray(one.prob)).all()


@pytest.mark.parametrize("name", ["prophet-random", "knapsack-random"])
def test_registered_families_by_size(name):
    draws = families.drawn(name, SIZE, 2, 5)
    for j in range(2):
        mdp = jb.validate(jax.tree.map(lambda x, j=j: x[j], draws))
        assert mdp.horizon == 3
