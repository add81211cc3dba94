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


PATH = {"levels": [2, 2, 1], "actions": [0, 3, 1]}


@pytest.mark.parametrize(
    ("kind", "fields", "shown"),
    [
        ("one-bit", feedback.OneBitFeedback, {"total": 1.0}),
        ("bandit", feedback.BanditFeedback, {"total": 0.75}),
        ("trajectory", feedback.TrajectoryFeedback, {**PATH, "total": 0.75}),
        ("segments:1", feedback.SegmentsFeedback, {**PATH, "totals": [0.75]}),
        ("segments:2", feedback.SegmentsFeedback, {**PATH, "totals": [0.25, 0.5]}),
        ("segments:3", feedback.SegmentsFeedback, {**PATH, "totals": [0.25, 0, 0.5]}),
        ("semi-bandit", feedback.SemiBanditFeedback, EPISODE._asdict()),
    ],
)
def test_what_a_kind_shows(kind, fields, shown):
    seen = feedback.observe(kind, EPISODE, jnp.uint32(0))
    assert type(seen) is fields
    assert seen._fields == tuple(shown)
    for one, other in zip(seen, shown.values(), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("total", "word", "bit"),
    [
        *[(0.75, word, 1) for word in (0, 3 * 2**30 - 1)],
        *[(0.75, word, 0) for word in (3 * 2**30, 2**32 - 1)],
        *[(total, word, total) for total in (0, 1) for word in (0, 2**32 - 1)],
    ],
)
def test_one_bit_is_a_coin_of_the_total(total, word, bit):
    """The bit is 1 for exactly that share of the words."""
    episode = EPISODE._replace(rewards=jnp.asarray([0, total, 0], jnp.float32))
    found = feedback.observe("one-bit", episode, jnp.uint32(word)).total
    assert (found.dtype, float(found)) == (jnp.float32, bit)


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
