"""The MDP pytree, its derived arrays, and a message for every kind of bad input."""

import families
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.mdp import largest_total


@pytest.fixture(scope="module")
def ordered():
    """A valid ordered MDP in NumPy, H=3, k=2, A=2, M=3, for tests to spoil."""
    return jax.tree.map(np.array, families.tiny("random-ordered"))


def spoiled(mdp, field, index, value):
    array = np.array(getattr(mdp, field))
    array[index] = value
    return mdp._replace(**{field: array})


@pytest.mark.parametrize("name", ["knapsack", "random-general"])
def test_kernel_and_mean_rewards_are_sums_over_outcomes(name):
    mdp = families.tiny(name)
    prob, reward, next_level = (np.asarray(x) for x in (mdp.prob, mdp.reward, mdp.next_level))
    kernel, mean = np.zeros((*prob.shape[:3], mdp.width + 1)), np.zeros(prob.shape[:3])
    for i, level, a, m in np.ndindex(prob.shape):
        kernel[i, level, a, next_level[i, level, a, m]] += prob[i, level, a, m]
        mean[i, level, a] += prob[i, level, a, m] * reward[i, level, a, m]
    np.testing.assert_allclose(jb.transition_kernel(mdp), kernel, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(jb.mean_reward(mdp), mean, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(kernel.sum(-1), 1, rtol=1e-6)


@pytest.mark.parametrize("name", sorted(families.PARAMETERS))
def test_every_family_is_valid_and_returned_as_it_is(name):
    mdp = families.tiny(name)
    assert jb.validate(mdp) is mdp
    general = ("bandit", "bandit-random", "hard-general", "random-general")
    assert (mdp.rank is None) == (name in general)


# fmt: off
BAD_ENTRIES = [  # field, index, value, message
    ("prob", (1, 2, 1, 0), -0.25, "MDP.prob: -0.25 at stage 2, level 2, action 1, outcome 0; accepted: probabilities"),
    ("prob", (2, 1, 0, 2), np.nan, "MDP.prob: nan at stage 3, level 1, action 0, outcome 2; accepted: probabilities"),
    ("prob", (0, 2, 1), [0.5, 0.25, 0.125], "MDP.prob: probabilities at stage 1, level 2, action 1 sum to 0.875; they"),
    ("reward", (0, 1, 1, 2), 1.5, r"MDP.reward: 1.5 at stage 1, level 1, action 1, outcome 2; accepted: 0 to 1"),
    ("reward", (0, 1, 1, 2), -0.5, r"MDP.reward: -0.5 at stage 1, level 1, action 1, outcome 2; accepted: 0 to 1"),
    ("reward", (0, 1, 1, 2), np.nan, "MDP.reward: nan at stage 1, level 1, action 1, outcome 2; accepted: finite"),
    ("next_level", (1, 1, 0, 1), 3, "MDP.next_level: 3 at stage 2, level 1, action 0, outcome 1; accepted: 0..2"),
    ("next_level", (1, 1, 0, 1), -1, "MDP.next_level: -1 at stage 2, level 1, action 0, outcome 1; accepted: 0..2"),
    ("next_level", (1, 0, 1, 0), 1, "MDP.next_level: 1 at stage 2, level 0, action 1, outcome 0; accepted: 0, as level 0 is absorbing"),
    ("reward", (2, 0, 1, 1), 0.1, "MDP.reward: 0.1 at stage 3, level 0, action 1, outcome 1; accepted: 0, as level 0 is"),
    ("next_level", (0, 1, 0, 1), 2, r"MDP.next_level: 2 at stage 1, level 1, action 0, outcome 1; accepted: no upward move .*Assumption 3.1\)"),
    ("rank", (1, 2), [1, 1], r"MDP.rank: actions tie at stage 2, level 2: \[1, 1\]; accepted: a total order, all ranks different"),
]
BAD_SHAPES = [  # what is replaced, message
    (lambda m: {"prob": m.prob[0]}, r"MDP.prob: shape \(3, 2, 3\); accepted: \[H, k\+1, A, M\]"),
    (lambda m: {"prob": m.prob[:, :1]}, r"MDP.prob: shape \(3, 1, 2, 3\); accepted: \[H, k\+1, A, M\] with"),
    (lambda m: {"reward": m.reward[1:]}, r"MDP.reward: shape \(2, .*; accepted: that of prob, \(3, 3, 2, 3\)"),
    (lambda m: {"next_level": m.next_level[..., :1]}, "MDP.next_level: shape .*; accepted: that of prob"),
    (lambda m: {"next_level": m.next_level * 1.0}, "MDP.next_level: dtype float64; accepted: integers"),
    (lambda m: {"rank": m.rank[0]}, r"MDP.rank: shape \(3, 2\); accepted: \[H, k\+1, A\] = \(3, 3, 2\) or None"),
    (lambda m: {"start": np.array([1, 2])}, r"MDP.start: array\(\[1, 2\]\); accepted: a single level"),
    (lambda m: {"start": 1.5}, "MDP.start: 1.5; accepted: a single level, an integer"),
    (lambda m: {"start": np.int32(0)}, "MDP.start: level 0; accepted: 1..2"),
    (lambda m: {"start": np.int32(3)}, "MDP.start: level 3; accepted: 1..2"),
    (lambda m: {"prob": m.prob.astype(np.float16)}, "MDP.prob: probabilities .* they must sum to 1"),
    (lambda m: {"next_level": m.next_level.astype(np.int64) + 2**32}, r"MDP.next_level: 429496729\d; accepted: integers of 32"),
    (lambda m: {"rank": m.rank * np.nan}, "MDP.rank: not finite"),
    (lambda m: {"rank": m.rank * 0.0}, "MDP.rank: actions tie at stage 1, level 1"),
    (lambda m: {"reward": m.reward.astype(np.float64) * 1e45}, "MDP.reward: inf at stage 1|MDP.reward: .*e.*accepted: finite"),
]
# fmt: on


@pytest.mark.parametrize(("field", "index", "value", "message"), BAD_ENTRIES)
def test_a_bad_entry_is_named_and_located(ordered, field, index, value, message):
    with pytest.raises(ValueError, match=message):
        jb.validate(spoiled(ordered, field, index, value))


@pytest.mark.parametrize(("change", "message"), BAD_SHAPES)
def test_a_bad_table_is_named(ordered, change, message):
    with pytest.raises(ValueError, match=message):
        jb.validate(ordered._replace(**change(ordered)))


@pytest.mark.parametrize("field", ["prob", "reward", "next_level", "rank", "start"])
def test_arrays_of_something_else_are_refused(ordered, field):
    for dtype in (bool, complex, object, str):
        with pytest.raises(ValueError, match=rf"MDP.{field}: .*; accepted: "):
            jb.validate(ordered._replace(**{field: getattr(ordered, field).astype(dtype)}))
    with pytest.raises(ValueError, match=rf"MDP\.{field}: cannot be made an array .*; accepted: "):
        jb.validate(ordered._replace(**{field: [[1], [1, 2]]}))


@pytest.mark.parametrize("wrong", [None, 3, (1, 2, 3, 4, 5)])
def test_what_is_no_mdp(wrong):
    for function in (jb.validate, jb.optimal, jb.gaps, jb.mean_reward, jb.transition_kernel):
        with pytest.raises(TypeError, match=r"mdp: \w+; accepted: an MDP"):
            function(wrong)


def test_a_rank_that_contradicts_the_staying_probabilities(ordered):
    rank = ordered.rank[0, 2]
    low, high = np.argsort(rank).tolist()
    message = (
        rf"MDP.rank: at stage 1, level 2 action {low} is ranked above action {high}, "
        r"but stays with probability 0\.\d+ < 0\.\d+ \(Assumption 3.2\)"
    )
    with pytest.raises(ValueError, match=message):
        jb.validate(spoiled(ordered, "rank", (0, 2), rank[::-1]))


def test_actions_that_stay_equally_often_may_be_ranked_either_way():
    mdp = jax.tree.map(np.array, families.tiny("hard-ordered"))
    bottom = np.arange(4)[None, :, None] == 1  # every action stays there
    assert jb.validate(mdp._replace(rank=np.where(bottom, mdp.rank[..., ::-1], mdp.rank)))


def test_upward_moves_are_fine_without_an_order(ordered):
    assert jb.validate(spoiled(ordered, "next_level", (0, 1, 0, 1), 2)._replace(rank=None))


def test_a_run_that_can_collect_more_than_one():
    """Every reward is within [0, 1], and only one path of probability 1/8 collects too much."""
    mdp = jax.tree.map(
        np.array, jb.make_instance("prophet-uniform", horizon=3, capacity=2, num_values=2)
    )
    mdp = mdp._replace(reward=mdp.reward * 1.5)
    assert largest_total(mdp) == 1.5
    with pytest.raises(
        ValueError, match=r"MDP.reward: a run can collect 1.5 in total; accepted: at most 1"
    ):
        jb.validate(mdp)
    assert largest_total(mdp._replace(start=np.int32(1))) == 0.75
    impossible = mdp._replace(
        prob=np.where(mdp.reward > 0, 0, np.where(mdp.prob > 0, 1, 0)).astype(np.float32)
    )
    assert largest_total(impossible) == 0


def brute_force_largest_total(mdp, level, stage=0):
    if stage == mdp.horizon:
        return 0.0
    next_level = mdp.next_level[stage, level]
    return max(
        float(mdp.reward[stage, level, a, m])
        + brute_force_largest_total(mdp, next_level[a, m], stage + 1)
        for a in range(mdp.num_actions)
        for m in range(mdp.num_outcomes)
        if mdp.prob[stage, level, a, m] > 0
    )


@pytest.mark.parametrize("name", sorted(families.PARAMETERS))
def test_largest_total_is_the_best_of_all_runs(name):
    mdp = jax.tree.map(np.array, families.tiny(name))
    expected = brute_force_largest_total(mdp, int(mdp.start))
    np.testing.assert_allclose(largest_total(mdp), expected, rtol=1e-12)
    assert expected <= 1 + 1e-6


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint16, np.uint64])
def test_other_integers_are_the_same_levels(ordered, dtype):
    mdp = ordered
    other = jb.validate(
        mdp._replace(next_level=mdp.next_level.astype(dtype), start=dtype(mdp.start))
    )
    assert other.next_level.dtype == other.start.dtype == np.int32
    np.testing.assert_array_equal(other.next_level, mdp.next_level)


@pytest.mark.parametrize("dtype", [np.float16, jnp.bfloat16, np.int32, np.float64])
def test_tables_that_fit_are_converted_exactly(dtype):
    mdp = families.tiny("hard-general")._replace(rank=None)
    halves = np.round(np.asarray(mdp.prob) * 2) / 2
    halves[..., 0] = 1 - halves[..., 1]
    whole = np.stack([np.ones(halves.shape[:-1]), np.zeros(halves.shape[:-1])], -1)
    prob = (whole if dtype == np.int32 else halves).astype(dtype)
    other = jb.validate(mdp._replace(prob=prob))
    assert other.prob.dtype in (np.float32, np.float64)
    np.testing.assert_array_equal(other.prob, prob.astype(np.float64))
    plain = jb.optimal(mdp._replace(prob=jnp.asarray(np.float32(prob))))[0]
    assert jb.optimal(mdp._replace(prob=prob))[0] == plain


@pytest.mark.parametrize(
    "change",
    [
        lambda r: r / 7 - 3.5,
        lambda r: r - 10**9,
        lambda r: np.int64(r) << 40,
        lambda r: np.exp(50.0 * r),
        lambda r: np.int64(2**53) + np.int64(r),  # 2^53 and 2^53 + 1 are one float
    ],
)
def test_ranks_mean_their_order(ordered, change):
    mdp = ordered._replace(rank=change(ordered.rank))
    np.testing.assert_array_equal(jb.validate(mdp).rank, ordered.rank)
