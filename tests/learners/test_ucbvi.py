"""UCB-VI against plain Python, its lanes, its optimism, and counts beyond what float32 can hold."""

import math
from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from episodes_by_hand import begin

import jaxbandit as jb
from jaxbandit.feedback import SemiBanditFeedback, observe
from jaxbandit.learner import make_constants
from jaxbandit.learners import Problem
from jaxbandit.learners.ucbvi import optimistic_q, ucbvi, ucbvi_doubling
from jaxbandit.testing import play_episode

BERNSTEIN = [ucbvi(bonus="bernstein", monotone=monotone).update for monotone in (False, True)]
VARIANTS = [(bonus, monotone) for bonus in ("hoeffding", "bernstein") for monotone in (False, True)]

# Five episodes at H=2, k=2, A=2, one (level, action, reward, next level) per stage.
SCRIPT = [
    [(2, 0, 0.0, 2), (2, 1, 0.0, 1)],
    [(2, 0, 0.25, 1), (1, 0, 0.5, 0)],
    [(2, 1, 0.0, 2), (2, 1, 0.75, 1)],
    [(2, 0, 0.0, 2), (2, 0, 0.0, 2)],
    [(2, 1, 0.5, 0), (0, 1, 0.0, 0)],
]
EPISODES = 100


def reference_q(script, horizon, width, num_actions, num_episodes, scale, bonus, monotone):
    """Q as a dictionary (i, level, a) -> value, from the formulas of the module, one number at a
    time."""
    L = math.log(5 * width * num_actions * horizon * num_episodes**2)
    keys = [
        (i, level, a)
        for i in range(horizon)
        for level in range(1, width + 1)
        for a in range(num_actions)
    ]
    q = dict.fromkeys(keys, 1.0)
    for t in range(1, len(script) + 1):
        tail = [0.0] * (width + 1)
        new = {}
        for i in reversed(range(horizon)):
            for level, a in [
                (level, a) for level in range(1, width + 1) for a in range(num_actions)
            ]:
                seen = [e[i] for e in script[:t] if e[i][:2] == (level, a)]
                n = len(seen)
                if n == 0:
                    new[i, level, a] = 1.0
                    continue
                mean = sum(r for _, _, r, _ in seen) / n
                value = sum(tail[s] for *_, s in seen) / n
                if bonus == "hoeffding":
                    extra = math.sqrt(L / n)
                else:
                    variance = sum((tail[s] - value) ** 2 for *_, s in seen) / n
                    doubt = 0.0
                    for *_, s in seen:
                        if i + 1 < horizon and s > 0:
                            arrivals = max(sum(e[i + 1][0] == s for e in script[:t]), 1)
                            doubt += (
                                min(1e4 * horizon * width**2 * num_actions * L**2 / arrivals, 1) / n
                            )
                    extra = (
                        math.sqrt(8 * L * variance / n)
                        + math.sqrt(8 * L * mean * (1 - mean) / n)
                        + 14 * L / (3 * n)
                        + math.sqrt(8 * doubt / n)
                    )
                new[i, level, a] = min(1.0, mean + value + scale * extra)
                if monotone:
                    new[i, level, a] = min(new[i, level, a], q[i, level, a])
            tail = [0.0] + [
                max(new[i, level, a] for a in range(num_actions)) for level in range(1, width + 1)
            ]
        q = new
    return q


def feedback_of(episode):
    levels, actions, rewards, following = (np.array(x) for x in zip(*episode, strict=True))
    ints = [jnp.asarray(x, jnp.int32) for x in (levels, actions, following)]
    return SemiBanditFeedback(ints[0], ints[1], jnp.asarray(rewards, jnp.float32), ints[2])


def play(learner, script, horizon=2, width=2, num_actions=2):
    state, given = begin(learner, Problem(horizon, width, num_actions, EPISODES))
    for episode in script:
        state = learner.update(state, learner.act(state, None, given), feedback_of(episode), given)
    bernstein = learner.update in BERNSTEIN
    return state, optimistic_q(state, given, bernstein) if state.q is None else state.q


@pytest.mark.parametrize(("bonus", "monotone"), VARIANTS)
def test_five_scripted_episodes(bonus, monotone):
    """Q, V and the greedy actions after each episode."""
    scale = 0.05 if bonus == "hoeffding" else 0.004
    # A variance is a difference of float32 numbers near 1, wrong by 2^-23 at most, and the bonus takes its root.
    error = 0 if bonus == "hoeffding" else scale * math.sqrt(8 * 13 * 2**-23)
    close = partial(pytest.approx, rel=2e-6, abs=error)
    for length in range(1, len(SCRIPT) + 1):
        state, q = play(ucbvi(scale, monotone, bonus), SCRIPT[:length])
        expected = reference_q(SCRIPT[:length], 2, 2, 2, EPISODES, scale, bonus, monotone)
        for (i, level, a), value in expected.items():
            assert float(q[i, level - 1, a]) == close(value), (i, level, a)
        for i, level in [(i, level) for i in range(2) for level in (1, 2)]:
            both = [expected[i, level, a] for a in range(2)]
            assert float(state.values[i, level - 1]) == close(max(both))
            assert int(state.policy[i, level]) == int(both[1] > both[0])
    assert min(expected.values()) < 0.7  # the clipping at 1 leaves something to compare


def test_first_policy_and_ties():
    learner = ucbvi()
    state, given = begin(learner, Problem(3, 2, 4, 10))
    chex.assert_trees_all_equal(learner.act(state, None, given), jnp.zeros((3, 3), jnp.int32))
    state, q = play(learner, SCRIPT)
    expected = np.argmax(np.asarray(q), axis=-1)
    policy = learner.act(state, None, given)
    np.testing.assert_array_equal(policy[:, 1:], expected)
    np.testing.assert_array_equal(policy[:, 0], 0)


@pytest.mark.parametrize("bonus", ["hoeffding", "bernstein"])
def test_optimism_on_the_good_event(bonus):
    """With c = 1 the optimistic value stays above the optimum in 20 runs of 300 episodes.

    By Hoeffding one mean over N visits deviates by sqrt(L / N) with probability at most exp(-2 L),
    and there
    are H k A T of them in a run: the false-alarm rate is below 1e-8. The Bernstein bonus is larger
    here, and the monotone Q, being the smallest so far, is the hardest case.
    """
    mdp = jb.make_instance("prophet-uniform", horizon=3, capacity=2, num_values=3)

    def slack(state, world):
        return jnp.min(state.values - world.optimal_values[:-1, 1:])

    def least(state, world):
        return jnp.min(state.values)

    ds = jb.sweep(
        ucbvi(1.0, True, bonus),
        mdp,
        num_episodes=300,
        num_seeds=20,
        record=jb.record.linear(300),
        metrics={"slack": slack, "least": least},
        progress=False,
    )
    assert (ds["slack"] >= -1e-5).all()
    if bonus == "hoeffding":
        assert ds["least"].min() < 1  # the bound says something


@pytest.mark.parametrize("monotone", [False, True])
def test_bernstein_optimism_where_the_bonus_is_small(monotone):
    """After 100,000 episodes of 8 runs the optimistic values of the start are below 1, and none is
    below the optimum.

    A Bernstein bound fails with probability at most 2 exp(-L), L = ln(5 H k A T^2) = 26, for each
    of H k A means in 8 runs: the false-alarm rate at the end is below 1e-9.
    """
    mdp = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=3)
    optimum = np.asarray(jb.optimal_values(mdp)[0])[:-1, 1:]
    keys = jax.random.split(jax.random.key(9), (1, 8))
    _, state = jb.testing.run_lanes(
        "episodes", [ucbvi(1.0, monotone, "bernstein")], [mdp], keys, 100_000
    )
    assert (state.values[0] >= optimum - 1e-6).all()
    assert (state.values[0, :, 0] < 1).all()  # the bound says something


def test_visits_beyond_float32():
    """From 2^24 visits on float32 counts and running means stand still or drift; integers do
    not."""
    learner = ucbvi(1.0)
    state, given = begin(learner, Problem(1, 1, 1, 10**9))
    start, more = 2**24 + 3, 5000
    model = state.model
    model = model._replace(
        visits=jnp.full_like(model.visits, start),
        moves=jnp.full_like(model.moves, start),
        rewards=model.rewards.at[0].set(start // 10),
    )
    state = state._replace(model=model)
    reward = np.float32(0.7)
    ones = jnp.ones(1, jnp.int32)
    feedback = SemiBanditFeedback(ones, jnp.zeros(1, jnp.int32), jnp.full(1, reward), ones)

    def one(_, state):
        return learner.update(state, None, feedback, given)

    state = jax.jit(lambda state: jax.lax.fori_loop(0, more, one, state))(state)
    assert (state.visits.item(), state.model.moves.item()) == (start + more, start + more)
    whole, fraction = state.model.rewards.ravel().tolist()
    total = whole + fraction / 2**30
    assert total == pytest.approx(start // 10 + more * float(reward), abs=more * 2**-31)
    L = math.log(5) + 2 * math.log(1e9)
    mean = total / (start + more)
    assert state.values[0, 0].item() == pytest.approx(
        mean + math.sqrt(L / (start + more)), rel=1e-6
    )


def test_largest_reward_carries():
    """A fraction of 2^30 - 1 and a reward of 1 fill an int32 exactly."""
    learner = ucbvi(0.0)
    state, given = begin(learner, Problem(1, 1, 1, 10))
    model = state.model._replace(rewards=state.model.rewards.at[1].set(2**30 - 1))
    state = state._replace(model=model)
    ones = jnp.ones(1, jnp.int32)
    seen = SemiBanditFeedback(ones, ones - 1, jnp.ones(1), ones - 1)
    state = learner.update(state, None, seen, given)
    assert state.model.rewards.ravel().tolist() == [1, 2**30 - 1]


def test_level_zero_is_ignored():
    learner = ucbvi()
    state, given = begin(learner, Problem(2, 2, 2, 10))
    zeros = jnp.zeros(2, jnp.int32)
    seen = SemiBanditFeedback(zeros, zeros + 1, jnp.zeros(2), zeros)
    chex.assert_trees_all_equal(learner.update(state, None, seen, given), state)


def test_equal_variants_are_one_program():
    assert ucbvi(0.1).rules == ucbvi(0.9, preset="theory").rules
    assert hash(ucbvi(0.1).rules) == hash(ucbvi(0.9).rules)
    assert ucbvi(monotone=True).rules != ucbvi().rules


def test_huge_number_of_episodes():
    """T^2 overflows float32; the logarithm does not."""
    given = make_constants(ucbvi(), Problem(2, 3, 4, 10**30), ucbvi().params)
    expected = math.log(5 * 2 * 3 * 4) + 60 * math.log(10)
    assert float(given.log_term) == pytest.approx(expected, rel=1e-6)


def test_presets():
    assert float(ucbvi().params["bonus_scale"]) == 1.0
    assert float(ucbvi(preset="practical").params["bonus_scale"]) == 2**-5
    assert float(ucbvi(0.5, preset="practical").params["bonus_scale"]) == 0.5
    other = ucbvi(preset="practical-bernstein")
    assert float(other.params["bonus_scale"]) == 2**-8
    assert other.rules == ucbvi(bonus="bernstein").rules
    assert ucbvi(preset="practical-bernstein", bonus="hoeffding").rules == ucbvi().rules


def test_doubling_plans_when_a_count_doubles():
    """100 episodes: counts are those of `ucbvi`, the policy is greedy in its Q right after a count has reached a power of
    two, and unchanged otherwise; one lane or two side by side."""
    mdp = jb.make_instance("prophet-uniform", horizon=3, capacity=2, num_values=3)
    problem = Problem(3, 2, 3, 1000)
    learner, other = ucbvi_doubling(bonus_scale=0.1), ucbvi(bonus_scale=0.1)
    (state, given), (twin, its) = begin(learner, problem), begin(other, problem)
    update, follow = jax.jit(learner.update), jax.jit(other.update)
    pair = jax.jit(jax.vmap(learner.update, (0, None, 0, None)))
    both = jax.tree.map(lambda x: jnp.stack([x, x]), state)
    random = np.random.default_rng(0)
    plans = 0
    for t in range(100):
        policy = np.asarray(learner.act(state, None, given))
        shown = observe("semi-bandit", play_episode(mdp, policy, random))
        before = state
        state, twin = update(state, policy, shown, given), follow(twin, policy, shown, its)
        now, then = np.asarray(state.visits), np.asarray(before.visits)
        doubled = bool(((now != then) & (now & (now - 1) == 0)).any())
        expected = twin.policy if doubled else before.policy
        np.testing.assert_array_equal(state.policy, expected)
        np.testing.assert_array_equal(state.visits, twin.visits)
        plans += doubled
        nothing = jax.tree.map(jnp.zeros_like, shown)
        seen = jax.tree.map(lambda x, y: jnp.stack([x, y]), shown, shown if t < 50 else nothing)
        both = pair(both, policy, seen, given)
    chex.assert_trees_all_close(jax.tree.map(lambda x: x[0], both), state, rtol=1e-6)
    assert int(both.plans[1]) < int(learner.report(state)["plans"]) == plans < 100


def test_stationary_counts_are_pooled():
    """Every visit counts for all stages; Q is that of backward induction with one model, by hand."""
    learner = ucbvi(0.05, stationary=True)
    state, given = begin(learner, Problem(2, 2, 2, EPISODES))
    for episode in SCRIPT:
        state = learner.update(state, None, feedback_of(episode), given)
    pooled = [[stage] for episode in SCRIPT for stage in episode]
    L = math.log(5 * 2 * 2 * 2 * EPISODES**2)
    tail = [0.0] * 3
    for i in (1, 0):
        q = {}
        for level, a in [(level, a) for level in (1, 2) for a in (0, 1)]:
            seen = [e[0] for e in pooled if e[0][:2] == (level, a)]
            n = len(seen)
            assert state.visits[0, level - 1, a] == n
            mean = sum(r for _, _, r, _ in seen) / max(n, 1)
            value = sum(tail[s] for *_, s in seen) / max(n, 1)
            q[level, a] = min(1, mean + value + 0.05 * math.sqrt(L / n)) if n else 1.0
        tail = [0.0, *(max(q[level, a] for a in (0, 1)) for level in (1, 2))]
        np.testing.assert_allclose(state.values[i], tail[1:], rtol=2e-6)
        assert i == 0 or min(tail[1:]) < 1
