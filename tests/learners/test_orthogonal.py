"""Orthogonal arrays: any two factors meet evenly, whatever the numbers of choices."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbandit.learners.expref_shared import design, largest_prime


def by_hand(sizes, largest):
    found = jax.jit(design, static_argnames="largest")(jnp.asarray(sizes, jnp.int32), largest)
    return np.asarray(found.choice)[np.asarray(found.used)], int(found.least)


@pytest.mark.parametrize("sizes", list(itertools.product([1, 2, 3, 5], repeat=3)))
def test_pairs_are_independent_and_every_choice_is_frequent(sizes):
    """The number of experiments with choices (x, y) is the product of the two frequencies."""
    arms, least = by_hand(sizes, 5)
    for one, two in itertools.combinations(range(3), 2):
        together = np.zeros((sizes[one], sizes[two]))
        np.add.at(together, (arms[:, one], arms[:, two]), 1)
        product = np.outer(together.sum(1), together.sum(0)) / len(arms)
        np.testing.assert_allclose(together, product)
    rarest = min(np.bincount(arms[:, f], minlength=n).min() for f, n in enumerate(sizes))
    assert rarest == least
    assert len(arms) == {1: 4, 2: 4, 3: 9, 5: 25}[max(sizes)] or max(sizes) == 1


def test_as_many_factors_as_fit():
    """p + 1 factors of p choices: every pair of choices meets exactly once."""
    arms, least = by_hand([3] * 4, largest_prime(4, 3))
    assert (len(arms), least) == (9, 3)
    for one, two in itertools.combinations(range(4), 2):
        assert len({(x[one], x[two]) for x in arms.tolist()}) == 9


def test_many_factors_need_a_larger_prime():
    assert largest_prime(7, 3) == 7
    arms, least = by_hand([2, 1, 2, 2, 2, 1, 2], 7)  # five open factors: 2 and 3 have no room
    assert (len(arms), least) == (49, 21)  # 5 has, but 25 experiments have 10 of the rarest choice
    arms, least = by_hand([2, 1, 2, 1, 1, 1, 2], 7)
    assert (len(arms), least) == (4, 2)
