"""What each family promises: its conventions, its proofs' properties, its input checks."""

import functools
import itertools

import families
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb

make = jb.make_instance
KEY = jax.random.key(11)
values_of_policies = jax.vmap(jb.evaluate, in_axes=(None, 0))


def probability_of_staying(mdp, level):
    return np.asarray(jb.transition_kernel(mdp))[:, level, :, level]


# --- drawing from a key ---

DRAWN = {
    "prophet-random": {"horizon": 4, "capacity": 2, "num_values": 3},
    "posted-pricing-random": {"horizon": 4, "capacity": 2, "num_values": 3},
    "knapsack-random": {"horizon": 4, "budget": 2, "largest_cost": 1},
    "hard-general": {"horizon": 4, "num_actions": 3, "gap": 0.1},
    "hard-ordered": {"horizon": 5, "num_actions": 3, "num_downs": 2, "num_episodes": 1000},
    "random-general": {"horizon": 4, "width": 2, "num_actions": 3},
    "random-ordered": {"horizon": 4, "width": 2, "num_actions": 3},
}


@pytest.mark.parametrize("name", DRAWN)
def test_a_stack_is_drawn_by_vmap_and_every_draw_is_valid(name):
    keys = jax.random.split(KEY, 20)
    draw = functools.partial(make, name, **DRAWN[name])
    stack = jax.jit(jax.vmap(lambda key: draw(key=key)))(keys)
    mdps = [jax.tree.map(lambda leaf, j=j: np.asarray(leaf[j]), stack) for j in range(len(keys))]
    for mdp in mdps:
        jb.validate(mdp)
        assert mdp.prob.dtype == mdp.reward.dtype == np.float32
        assert mdp.next_level.dtype == mdp.start.dtype == np.int32
    for one, other in zip(
        jax.tree.leaves(draw(key=keys[3])), jax.tree.leaves(mdps[3]), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-6)
    assert len({mdp.reward.tobytes() + mdp.next_level.tobytes() for mdp in mdps}) > 1


def test_random_values_and_probabilities_are_uniform():
    """Means over 20000 draws, within 5 standard errors (false-alarm rate 6e-7 per comparison, seed
    fixed)."""
    keys = jax.random.split(KEY, 5000)
    stack = jax.jit(
        jax.vmap(lambda key: make("prophet-random", key=key, horizon=4, capacity=1, num_values=3))
    )(keys)
    probabilities = np.asarray(stack.prob[:, :, 1, 0]).reshape(-1, 3)
    # Uniform on the simplex of 3: every entry has mean 1/3, variance 1/18, whatever the order of
    # the values.
    assert (np.abs(probabilities.mean(0) - 1 / 3) < 5 * np.sqrt(1 / 18 / len(probabilities))).all()
    assert np.abs((probabilities**2).mean() - 1 / 6) < 5 * np.sqrt(1 / 15 / probabilities.size)
    # The largest of 3 uniforms, which threshold 0 selects: mean 3/4, variance 3/80.
    largest = np.asarray(stack.reward[:, :, 1, 0, 2])
    assert np.abs(largest.mean() - 3 / 4) < 5 * np.sqrt(3 / 80 / largest.size)


# --- prophet inequality ---


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


# --- posted pricing ---


def test_customers_buy_at_their_valuation_and_pay_the_price():
    mdp = make(
        "posted-pricing", values=families.VALUES, probabilities=families.PROBABILITIES, capacity=2
    )
    sells = [[1, 0.5, 0.2], [1, 0.75, 0.25]]
    np.testing.assert_allclose(probability_of_staying(mdp, 2), 1 - np.array(sells), atol=1e-6)
    prices = np.sort(families.VALUES, axis=1)
    np.testing.assert_allclose(jb.mean_reward(mdp)[:, 1] * 2, prices * sells, rtol=1e-6)


# --- knapsack ---


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
    mdp = make("knapsack-random", key=KEY, **DRAWN["knapsack-random"])
    costs = np.arange(4)[:, None] - np.asarray(mdp.next_level[:, :, 1])
    assert set(costs[:, 1:].ravel().tolist()) == {0, 1}


# --- lower bounds ---


def test_every_policy_that_misses_theta_has_value_one_half():
    horizon, num_actions, gap = 3, 2, 0.25
    optimal_sets = []
    for theta in itertools.product(range(num_actions), repeat=horizon):
        mdp = make("hard-general", theta=theta, num_actions=num_actions, gap=gap)
        policies = families.all_policies(mdp)
        values = np.asarray(values_of_policies(mdp, policies))
        follows = (policies[:, :, 1] == theta).all(axis=1)
        np.testing.assert_array_equal(values, np.where(follows, 0.5 + gap, 0.5))
        assert follows.sum() == num_actions**horizon  # level 2 is free
        assert int(mdp.start) == 1
        optimal_sets.append(values > 0.5)
    assert (np.sum(optimal_sets, axis=0) <= 1).all()


def follows_path(policies, horizon, stages, actions):
    """Whether policies [N, H, k+3] play the path's actions through the stages 1..H-1 (H is
    free)."""
    level, follows = len(stages) + 2, np.ones(len(policies), bool)
    for i in range(1, horizon):
        action = actions[stages.index(i)] if i in stages else 0
        follows &= policies[:, i - 1, level] == action
        level -= i in stages
    assert level == 2
    return follows


@pytest.mark.parametrize(("horizon", "num_downs", "num_actions"), [(3, 1, 2), (4, 2, 1)])
def test_every_policy_that_leaves_the_path_has_value_one_half(horizon, num_downs, num_actions):
    optimal_sets = []
    for stages in itertools.combinations(range(1, horizon), num_downs):
        for actions in itertools.product(range(1, num_actions + 1), repeat=num_downs):
            mdp = jb.validate(
                make(
                    "hard-ordered", horizon=horizon, down_stages=stages, down_actions=actions,
                    num_actions=num_actions, gap=0.25,
                )
            )  # fmt: skip
            policies = families.all_policies(mdp)
            values = np.asarray(values_of_policies(mdp, policies))
            follows = follows_path(policies, horizon, stages, actions)
            np.testing.assert_array_equal(values, np.where(follows, 0.75, 0.5))
            optimal_sets.append(follows)
    assert (np.sum(optimal_sets, axis=0) <= 1).all()


def test_the_example_of_the_papers_figure():
    """k = 2, H = 6, down at stages 2 and 4; the paper's level l is stored as l + 1."""
    mdp = make(
        "hard-ordered", horizon=6, down_stages=[2, 4], down_actions=[2, 1], num_actions=3, gap=0.25
    )
    nxt = np.asarray(mdp.next_level[..., 0]) - 1
    assert (mdp.width, mdp.num_actions, int(mdp.start)) == (4, 4, 4)
    assert nxt[1, 4].tolist() == [
        3,
        3,
        2,
        0,
    ]  # the down state (3, 2): actions 0, 1 stay, 2 goes down, 3 falls
    assert nxt[3, 3].tolist() == [2, 1, 0, 0]  # the down state (2, 4)
    assert nxt[0, 4].tolist() == [3, 0, 0, 0]  # on the path
    assert nxt[4, 2].tolist() == [1, 0, 0, 0]  # on the path, after both downs
    assert nxt[4, 4].tolist() == [3, 3, 3, 3]  # above it
    assert nxt[0, 3].tolist() == [0, 0, 0, 0]  # below it
    chance = np.asarray(jb.mean_reward(mdp))
    assert chance[-1].tolist() == [[0] * 4, [0.5] * 4, [0.75] * 4, [0.5] * 4, [0.5] * 4]
    assert not chance[:-1].any()
    assert (np.diff(np.asarray(mdp.rank), axis=-1) == -1).all()  # action 0 is maximal


def test_paths_are_drawn_uniformly():
    """Chi-square over the 6 x 4 instances of H = 5, k = 2, A = 2; 49.7 has a false-alarm rate of
    1e-3."""
    keys = jax.random.split(KEY, 2400)
    sizes = {"horizon": 5, "num_actions": 2, "num_downs": 2, "gap": 0.25}
    stack = jax.jit(jax.vmap(lambda key: make("hard-ordered", key=key, **sizes)))(keys)
    _, counts = np.unique(
        np.asarray(stack.next_level).reshape(2400, -1), axis=0, return_counts=True
    )
    assert len(counts) == 24
    assert ((counts - 100) ** 2 / 100).sum() < 49.7


def test_one_of_stages_and_actions_may_be_drawn():
    common = {"horizon": 5, "num_actions": 3, "gap": 0.25, "key": KEY}
    mdp = make("hard-ordered", down_stages=[1, 4], **common)
    assert int(jb.validate(mdp).start) == 4
    assert (
        float(jb.optimal(make("hard-ordered", down_actions=[3, 1], num_downs=2, **common))[0])
        == 0.75
    )


def test_a_gap_of_zero_is_the_uniform_instance():
    assert float(jb.optimal(make("hard-general", theta=[0, 1], num_actions=2, gap=0))[0]) == 0.5


# --- tracing ---


def test_arrays_and_scales_can_be_traced():
    """A sweep over value scales and distributions is a vmap: checks step aside for traced
    values."""
    values, probabilities = (jnp.asarray(x) for x in (families.VALUES, families.PROBABILITIES))

    def value(scale):
        mdp = make(
            "prophet", values=values, probabilities=probabilities, capacity=1, value_scale=scale
        )
        return jb.optimal(mdp)[0]

    one, two = jax.jit(jax.vmap(value))(jnp.asarray([1.0, 2.0]))
    np.testing.assert_allclose(one, 2 * two, rtol=1e-6)
    gaps = jnp.asarray([0.1, 0.2])
    best = jax.vmap(
        lambda gap: jb.optimal(make("hard-general", theta=[0, 1], num_actions=2, gap=gap))[0]
    )(gaps)
    np.testing.assert_allclose(best, [0.6, 0.7], rtol=1e-6)
