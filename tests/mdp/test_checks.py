"""Tables of an MDP: types are made those that run, exactly, or refused by name."""

import families
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.mdp import canonical, checks


@pytest.fixture
def mdp():
    return jax.tree.map(np.array, families.tiny("random-ordered"))


def test_an_mdp_in_the_right_types_is_left_alone(mdp):
    assert canonical(mdp) is mdp
    assert jb.validate(mdp) is mdp


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint16, np.uint64])
def test_other_integers_are_the_same_levels(mdp, dtype):
    other = jb.validate(
        mdp._replace(next_level=mdp.next_level.astype(dtype), start=dtype(mdp.start))
    )
    assert other.next_level.dtype == other.start.dtype == np.int32
    np.testing.assert_array_equal(other.next_level, mdp.next_level)


def test_levels_that_would_wrap_around_are_refused(mdp):
    far = mdp.next_level.astype(np.int64)
    far[0, 1, 0, 0] += 2**32
    with pytest.raises(ValueError, match=r"MDP.next_level: 429496729\d; accepted: integers of 32"):
        jb.validate(mdp._replace(next_level=far))


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


def test_probabilities_that_float16_cannot_hold_are_refused(mdp):
    with pytest.raises(ValueError, match=r"MDP.prob: probabilities .* they must sum to 1"):
        jb.validate(mdp._replace(prob=mdp.prob.astype(np.float16)))


@pytest.mark.parametrize("field", ["prob", "reward", "next_level", "rank"])
@pytest.mark.parametrize("dtype", [bool, complex, object, str])
def test_arrays_of_something_else_are_refused(mdp, field, dtype):
    with pytest.raises(ValueError, match=rf"MDP.{field}: dtype .*; accepted: "):
        jb.validate(mdp._replace(**{field: getattr(mdp, field).astype(dtype)}))


@pytest.mark.parametrize(
    "change",
    [
        lambda r: r / 7 - 3.5,
        lambda r: r - 10**9,
        lambda r: np.int64(r) << 40,
        lambda r: np.exp(50.0 * r),
    ],
)
def test_ranks_mean_their_order(mdp, change):
    np.testing.assert_array_equal(jb.validate(mdp._replace(rank=change(mdp.rank))).rank, mdp.rank)


def test_ranks_beyond_float64_keep_their_order(mdp):
    """2^53 and 2^53 + 1 are one float: the order must be read from the integers."""
    rank = np.int64(2**53) + mdp.rank.astype(np.int64)
    np.testing.assert_array_equal(checks.ranks(rank), mdp.rank)


@pytest.mark.parametrize("field", ["prob", "reward", "next_level", "rank", "start"])
def test_ragged_lists_are_named(mdp, field):
    with pytest.raises(ValueError, match=rf"MDP\.{field}: cannot be made an array .*; accepted: "):
        jb.validate(mdp._replace(**{field: [[1], [1, 2]]}))


def test_ranks_that_are_no_order(mdp):
    for bad, message in ((np.nan, "not finite"), (0.0, "actions tie at stage 1, level 1")):
        with pytest.raises(ValueError, match=f"MDP.rank: {message}"):
            jb.validate(mdp._replace(rank=np.full(mdp.rank.shape, bad)))


def test_rewards_beyond_float32(mdp):
    reward = mdp.reward.astype(np.float64)
    reward[0, 1, 0, 0] = 1e39
    with pytest.raises(ValueError, match=r"MDP.reward: reward is not finite at stage 1, level 1"):
        jb.optimal(mdp._replace(reward=reward))


@pytest.mark.parametrize("wrong", [None, 3, (1, 2, 3, 4, 5)])
def test_what_is_no_mdp(wrong):
    for function in (jb.validate, jb.optimal, jb.gaps, jb.mean_reward, jb.transition_kernel):
        with pytest.raises(TypeError, match=r"mdp: \w+; accepted: an MDP"):
            function(wrong)
