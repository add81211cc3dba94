"""Knapsack against the plain recursion."""

import families
import jax
import numpy as np
import pytest

import jaxbandit as jb

make = jb.make_instance


KEY = jax.random.key(11)


def plain_knapsack(probabilities, rewards, costs, left, item=0):
    """The optimal expected total reward, recursively from the problem's statement."""
    if item == len(rewards) or left < 0:
        return 0.0
    accept = sum(
        p * (r + plain_knapsack(probabilities, rewards, costs, left - c, item + 1))
        for p, r, c in zip(probabilities[item], rewards[item], costs[item], strict=True)
        if c <= left
    )
    return max(accept, plain_knapsack(probabilities, rewards, costs, left, item + 1))


@pytest.mark.parametrize("budget", [0, 1, 2, 3])
def test_knapsack_is_the_plain_recursion(budget):
    mdp = jb.validate(make("knapsack", **families.ITEMS, budget=budget, reward_scale=100))
    assert int(mdp.start) == mdp.width == budget + 1
    expected = plain_knapsack(*families.ITEMS.values(), budget) / 100
    np.testing.assert_allclose(jb.optimal(mdp)[0], expected, rtol=1e-6)


def test_knapsack_levels_costs_and_order():
    mdp = make("knapsack", **families.ITEMS, budget=1)
    assert mdp.next_level[0, :, 0].tolist() == [[0, 0, 0], [1, 1, 1], [2, 2, 2]]  # rejecting stays
    assert mdp.next_level[0, :, 1].tolist() == [[0, 0, 0], [0, 1, 0], [1, 2, 0]]  # costs 1, 0, 2
    paid = np.asarray(mdp.reward[0, :, 1] > 0)
    assert paid.tolist() == [[False] * 3, [False, True, False], [True, True, False]]
    assert np.asarray(mdp.rank).reshape(-1, 2).tolist() == [[1, 0]] * 9


def test_knapsack_scale_is_the_largest_total():
    """Budget 1: reward 3 (cost 1), then 2 (cost 0; 4 costs 1, 9 is impossible), or 1 + 2 + 6: 9 in
    all."""
    mdp = make("knapsack", **families.ITEMS, budget=1)
    np.testing.assert_allclose(jb.mdp.largest_total(mdp), 1, rtol=1e-6)
    np.testing.assert_allclose(mdp.reward[0, 2, 1, 0] * 9, 3, rtol=1e-6)


def test_knapsack_in_which_nothing_fits_pays_nothing():
    mdp = make("knapsack", probabilities=[[1]], rewards=[[5]], costs=[[10**12]], budget=2)
    assert float(jb.optimal(jb.validate(mdp))[0]) == 0


def test_knapsack_costs_of_random_items():
    mdp = make("knapsack-random", key=KEY, horizon=4, budget=2, largest_cost=1)
    costs = np.arange(4)[:, None] - np.asarray(mdp.next_level[:, :, 1])
    assert set(costs[:, 1:].ravel().tolist()) == {0, 1}
