"""Feedback shows exactly what it says, one episode or many lanes at once."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit import feedback
from jaxbandit.errors import LearnerError

TINY = jb.make_instance("prophet-uniform", horizon=3, capacity=1, num_values=3)

EPISODE = feedback.Trajectory(
    levels=jnp.asarray([2, 2, 1], jnp.int32),
    actions=jnp.asarray([0, 3, 1], jnp.int32),
    rewards=jnp.asarray([0.25, 0.0, 0.5], jnp.float32),
    next_levels=jnp.asarray([2, 1, 0], jnp.int32),
)
EVERY_KIND = (
    "one-bit",
    "bandit",
    "trajectory",
    "segments:1",
    "segments:2",
    "segments:3",
    "semi-bandit",
)
WORDS = jnp.asarray([0, 2**32 - 1], jnp.uint32)


def test_one_bit_is_a_coin_of_the_total():
    """The bit is 1 for exactly three quarters of the words, and nothing else is shown."""
    shown = feedback.observe("one-bit", EPISODE, jnp.uint32(0))
    assert type(shown) is feedback.OneBitFeedback
    assert shown._fields == ("total",)
    for word, bit in ((0, 1), (3 * 2**30 - 1, 1), (3 * 2**30, 0), (2**32 - 1, 0)):
        found = feedback.observe("one-bit", EPISODE, jnp.uint32(word)).total
        assert found.dtype == jnp.float32
        assert float(found) == bit


@pytest.mark.parametrize(("total", "bit"), [(0.0, 0), (1.0, 1)])
def test_one_bit_is_sure_at_the_ends(total, bit):
    episode = EPISODE._replace(rewards=jnp.asarray([0, total, 0], jnp.float32))
    for word in WORDS:
        assert float(feedback.observe("one-bit", episode, word).total) == bit


def test_one_bit_has_the_mean_of_the_total():
    """40,000 words. False-alarm rate about 6e-7 (5 standard errors of a mean of 0.75)."""
    words = jax.random.bits(jax.random.key(0), (40_000,), jnp.uint32)
    lanes = feedback.Trajectory(*(jnp.broadcast_to(x[:, None], (3, words.size)) for x in EPISODE))
    bits = np.asarray(feedback.observe("one-bit", lanes, words).total)
    assert set(np.unique(bits)) == {0, 1}
    assert abs(bits.mean() - 0.75) < 5 * np.sqrt(0.75 * 0.25 / words.size)


def test_one_bit_needs_a_word():
    with pytest.raises(ValueError, match="word: None; accepted: a random uint32 per lane"):
        feedback.observe("one-bit", EPISODE)


def test_bandit_shows_the_total_alone():
    shown = feedback.observe("bandit", EPISODE)
    assert type(shown) is feedback.BanditFeedback
    assert shown._fields == ("total",)
    assert float(shown.total) == 0.75


def test_trajectory_shows_states_actions_and_the_total():
    shown = feedback.observe("trajectory", EPISODE)
    assert type(shown) is feedback.TrajectoryFeedback
    assert shown._fields == ("levels", "actions", "total")
    np.testing.assert_array_equal(shown.levels, EPISODE.levels)
    np.testing.assert_array_equal(shown.actions, EPISODE.actions)
    assert float(shown.total) == 0.75


@pytest.mark.parametrize(
    ("kind", "totals"),
    [("segments:1", [0.75]), ("segments:2", [0.25, 0.5]), ("segments:3", [0.25, 0, 0.5])],
)
def test_segments_show_states_actions_and_the_total_of_each(kind, totals):
    shown = feedback.observe(kind, EPISODE)
    assert type(shown) is feedback.SegmentsFeedback
    assert shown._fields == ("levels", "actions", "totals")
    np.testing.assert_array_equal(shown.levels, EPISODE.levels)
    np.testing.assert_array_equal(shown.actions, EPISODE.actions)
    assert shown.totals.tolist() == totals


@pytest.mark.parametrize("horizon", range(1, 9))
def test_segments_cut_the_stages_evenly(horizon):
    for count in range(1, horizon + 1):
        bounds = feedback.segment_bounds(horizon, count)
        stages = [i for a, b in bounds for i in range(a, b)]
        lengths = [b - a for a, b in bounds]
        assert stages == list(range(horizon))
        assert len(bounds) == count
        assert max(lengths) - min(lengths) <= 1
    with pytest.raises(ValueError, match=rf"segments; accepted: 1\.\.{horizon} at this horizon"):
        feedback.segment_bounds(horizon, horizon + 1)


def test_semi_bandit_shows_every_stage():
    shown = feedback.observe("semi-bandit", EPISODE)
    assert type(shown) is feedback.SemiBanditFeedback
    assert shown._fields == ("levels", "actions", "rewards", "next_levels")
    for name in shown._fields:
        np.testing.assert_array_equal(getattr(shown, name), getattr(EPISODE, name))


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_lanes_trail(kind):
    lanes = feedback.Trajectory(*(jnp.stack([x, x[::-1]], -1) for x in EPISODE))
    together = feedback.observe(kind, lanes, WORDS)
    for lane, order in enumerate([slice(None), slice(None, None, -1)]):
        episode = feedback.Trajectory(*(x[order] for x in EPISODE))
        alone = feedback.observe(kind, episode, WORDS[lane])
        for one, many in zip(alone, together, strict=True):
            np.testing.assert_array_equal(one, many[..., lane])


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_what_is_hidden_does_not_move_what_is_shown(kind):
    """Episodes that agree in what a kind names and differ in everything else show the same."""
    hidden = {
        "one-bit": {"rewards": [0.0, 0.625, 0.0], "levels": [1, 1, 1], "actions": [1, 1, 1]},
        "bandit": {"rewards": [0.0, 0.75, 0.0], "levels": [1, 1, 1], "actions": [1, 1, 1]},
        "trajectory": {"rewards": [0.0, 0.75, 0.0]},
        "segments:1": {"rewards": [0.5, 0.25, 0.0]},
        "segments:2": {"rewards": [0.25, 0.5, 0.0]},
    }.get(kind, {})
    changed = {name: jnp.asarray(x, getattr(EPISODE, name).dtype) for name, x in hidden.items()}
    if kind != "semi-bandit":
        changed["next_levels"] = jnp.asarray([1, 1, 1], jnp.int32)
    other = EPISODE._replace(**changed)
    for word in WORDS:
        pair = [feedback.observe(kind, one, word) for one in (EPISODE, other)]
        for one, two in zip(*pair, strict=True):
            np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("kind", ["full", "segments", "segments:0", "segments:m", "segments:-1", 3])
def test_unknown_kind(kind):
    accepted = ", ".join(feedback.kinds())
    with pytest.raises(ValueError, match=f"feedback: {kind!r}; accepted: {accepted}"):
        feedback.observe(kind, EPISODE)
    assert feedback.check_kind("bandit") == "bandit"


def test_a_hidden_field_is_refused_by_name():
    shown = feedback.observe("semi-bandit", EPISODE)
    message = "has levels, actions, rewards, next_levels; 'total' is not among them"
    with pytest.raises(LearnerError, match=f"^semi-bandit feedback {message}$"):
        _ = shown.total
    assert not hasattr(shown, "shape")  # as jax asks of every leaf and tree

    def update(state, policy, seen, constants):
        return state + seen.total

    learner = jb.make_learner("uniform")._replace(
        name="x", feedback="semi-bandit", init=lambda *_: jnp.float32(0), update=update
    )
    with pytest.raises(LearnerError, match=f"^learner 'x': semi-bandit feedback {message}"):
        jb.sweep(learner, TINY, num_episodes=3, num_seeds=1, progress=False)


class RewardsFeedback(NamedTuple):
    """The reward of every stage, without the states.

    Fields:
        rewards: float [H], the reward paid at each stage.
    """

    rewards: Any


@pytest.fixture
def rewards(monkeypatch):
    monkeypatch.setattr(feedback, "FEEDBACKS", dict(feedback.FEEDBACKS))
    kind = feedback.Feedback("rewards", RewardsFeedback, lambda x: RewardsFeedback(x.rewards))
    return feedback.register_feedback(kind).name


def test_a_new_kind_is_one_value(rewards):
    """Registered once, it runs, is described, and learners that see it pass the conformance suite."""

    def init(problem, constants, key):
        return jnp.zeros(problem.horizon, jnp.float32)

    def update(state, policy, seen, constants):
        return state + seen.rewards

    learner = jb.make_learner("uniform")._replace(
        name="mine", feedback=rewards, init=init, update=update, report=lambda s: {"paid": s}
    )
    ds = jb.sweep(learner, TINY, num_episodes=50, num_seeds=2, progress=False)
    assert ds["paid"].values.sum() > 0
    assert "without the states" in str(jb.describe("rewards"))
    jb.testing.check_learner(learner)
    with pytest.raises(LearnerError, match="rewards feedback has rewards; 'levels' is not among"):
        _ = feedback.observe(rewards, EPISODE).levels
    with pytest.raises(ValueError, match="feedback: 'rewards'; accepted: one-bit or bandit in"):
        jb.sweep(
            jb.make_learner("expref")._replace(feedback=rewards),
            TINY,
            num_episodes=3,
            num_seeds=1,
            progress=False,
        )


def test_kinds_are_registered_once():
    bandit = feedback.FEEDBACKS["bandit"]
    with pytest.raises(ValueError, match="feedback 'bandit' is registered already"):
        feedback.register_feedback(bandit)
    with pytest.raises(ValueError, match="sums: 'all'; accepted: None, rewards, coins"):
        feedback.register_feedback(bandit._replace(name="other", sums="all"))
