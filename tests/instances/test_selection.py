"""Prophet, posted pricing and knapsack: against the unrestricted problem, the plain recursion and counts by hand."""

import families
import jax
import numpy as np
import pytest

import jaxbandit as jb

make = jb.make_instance


def probability_of_staying(mdp, level):
    return np.asarray(jb.transition_kernel(mdp))[:, level, :, level]


def unrestricted_prophet(values, probabilities, capacity):
    """Opt / k of the prophet problem in which any set of values may be taken, by dynamic
    programming."""
    best = np.zeros(capacity + 1)
    for value, p in zip(values[::-1], probabilities[::-1], strict=True):
        take = value[None, :] + best[:-1, None]
        best[1:] = (p[None, :] * np.maximum(take, best[1:, None])).sum(1)
    return best[-1] / capacity


@pytest.mark.parametrize(("horizon", "capacity", "num_values"), [(15, 2, 5), (20, 4, 5), (6, 3, 4)])
def test_thresholds_lose_nothing_on_uniform_values(horizon, capacity, num_values):
    """0 is in the support of I1, so that thresholds can accept everything of value."""
    mdp = make("prophet-uniform", horizon=horizon, capacity=capacity, num_values=num_values)
    values = np.tile(np.linspace(0, 1, num_values), (horizon, 1))
    expected = unrestricted_prophet(values, np.full_like(values, 1 / num_values), capacity)
    np.testing.assert_allclose(jb.optimal(mdp)[0], expected, rtol=1e-6)


def test_prophet_thresholds_are_strict_and_sorted():
    """Unsorted rows; action a is the a-th smallest value, and only larger ones are selected."""
    mdp = make("prophet", values=families.VALUES, probabilities=families.PROBABILITIES, capacity=2)
    # Stage 1 sorted: 0.2 (0.5), 0.5 (0.3), 0.9 (0.2); stage 2 sorted: 0 (0.25), 0.4 (0.5), 1
    # (0.25).
    np.testing.assert_allclose(
        probability_of_staying(mdp, 2), [[0.5, 0.8, 1.0], [0.25, 0.75, 1.0]], rtol=1e-6
    )
    np.testing.assert_allclose(
        jb.mean_reward(mdp)[:, 2] * 2,
        [[0.5 * 0.3 + 0.9 * 0.2, 0.9 * 0.2, 0], [0.2 + 0.25, 0.25, 0]],
        rtol=1e-6,
    )
    assert int(mdp.start) == mdp.width == 2
    assert (np.diff(np.asarray(mdp.rank), axis=-1) == 1).all()
    taken = np.asarray(mdp.reward[:, 1:] > 0)
    levels = np.arange(1, 3)[None, :, None, None]
    np.testing.assert_array_equal(np.asarray(mdp.next_level)[:, 1:], levels - taken)


def test_customers_buy_at_their_valuation_and_pay_the_price():
    mdp = make(
        "posted-pricing", values=families.VALUES, probabilities=families.PROBABILITIES, capacity=2
    )
    sells = [[1, 0.5, 0.2], [1, 0.75, 0.25]]
    np.testing.assert_allclose(probability_of_staying(mdp, 2), 1 - np.array(sells), atol=1e-6)
    prices = np.sort(families.VALUES, axis=1)
    np.testing.assert_allclose(jb.mean_reward(mdp)[:, 1] * 2, prices * sells, rtol=1e-6)


@pytest.mark.parametrize("name", ["prophet", "posted-pricing"])
def test_value_scale(name):
    one = {"probabilities": [[0.5, 0.5]], "capacity": 2}
    assert make(name, values=[[0, 0.5]], **one).reward.max() == 0.25  # values within [0, 1]: X / k
    assert make(name, values=[[0, 5]], **one).reward.max() == 0.5  # else X / (k * largest)
    assert make(name, values=[[0, 5]], value_scale=10, **one).reward.max() == 0.25
    assert make(name, values=[[0, 0]], **one).reward.max() == 0


@pytest.mark.parametrize("name", ["prophet", "posted-pricing"])
def test_smaller_supports_are_padded_with_probability_zero(name):
    """Repeating the last value with probability 0 adds an action that does what the last value
    does."""
    short = make(name, values=[[0.2, 0.7]] * 3, probabilities=[[0.4, 0.6]] * 3, capacity=2)
    padded = jb.validate(
        make(name, values=[[0.2, 0.7, 0.7]] * 3, probabilities=[[0.4, 0.6, 0.0]] * 3, capacity=2)
    )
    np.testing.assert_allclose(jb.optimal(padded)[0], jb.optimal(short)[0], rtol=1e-6)
    for array in (jb.transition_kernel(padded), jb.mean_reward(padded)):
        np.testing.assert_array_equal(array[:, :, 1], array[:, :, 2])


def test_capacity_beyond_the_horizon_is_accepted():
    jb.validate(make("prophet-uniform", horizon=2, capacity=5, num_values=3))


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
    mdp = make("knapsack-random", key=jax.random.key(11), horizon=4, budget=2, largest_cost=1)
    costs = np.arange(4)[:, None] - np.asarray(mdp.next_level[:, :, 1])
    assert set(costs[:, 1:].ravel().tolist()) == {0, 1}
