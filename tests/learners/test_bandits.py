"""Learners for K-armed bandits against plain numpy loops that share no code with them."""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from episodes_by_hand import begin
from scipy import optimize, stats

import jaxbandit as jb
from jaxbandit.feedback import BanditFeedback
from jaxbandit.learner import make_constants
from jaxbandit.learners import bandits
from jaxbandit.learners.bandits import draw_beta, ucb_policies
from jaxbandit.xla.compat import x64
from jaxbandit.xla.threefry import key_words

EVERY = (
    "ucb1", "kl-ucb", "thompson", "imed", "moss", "epsilon-greedy", "exp3", "explore-then-commit",
    "elimination", "kl-ucb-epochs",
)  # fmt: skip
T, K = 600, 4
MEANS = np.array([0.2, 0.5, 0.8, 0.75])


def play(learner, rewards, key):
    """The arms int [T] that a learner plays when arm a pays rewards[t, a] in episode t."""
    keys = jax.random.split(key, len(rewards) + 1)
    first, constants = begin(learner, jb.Problem(1, 1, rewards.shape[1], len(rewards)), keys[-1])

    def step(state, x):
        key, row = x
        policy = learner.act(state, key, constants)
        arm = jnp.argmax(policy[0, 1]) if policy.ndim == 3 else policy[0, 1]
        return learner.update(state, policy, BanditFeedback(row[arm]), constants), arm

    return jax.lax.scan(step, first, (keys[:-1], rewards))[1]


def arms_played(name, rewards, **options):
    learner = jb.make_learner(name, **options)
    return jax.jit(partial(play, learner))(rewards, jax.random.key(0)).tolist()


def fixed_rewards(kind):
    rng = np.random.default_rng(7)
    flips = (rng.random((T, K)) < MEANS).astype(np.float32)
    return (
        flips if kind == "0 or 1" else (flips * rng.integers(1, 9, (T, K)) / 8).astype(np.float32)
    )


def kl(p, q):
    one = 0.0 if p == 0 else p * math.log(p / q)
    return one + (0.0 if p == 1 else math.inf if q == 1 else (1 - p) * math.log((1 - p) / (1 - q)))


def largest_q(p, level):
    if p == 1 or level == 0:
        return p
    top = 1 - 1e-15
    return (
        1.0
        if kl(p, top) <= level
        else optimize.brentq(lambda q: kl(p, q) - level, p, top, xtol=1e-14)
    )


def by_hand(name, t, n, s, c):
    """The index of an arm with n plays and sum s after t episodes; best: the largest mean of all arms."""
    m = s / n
    return {
        "ucb1": lambda best: m + c * math.sqrt(2 * math.log(t) / n),
        "moss": lambda best: m + c * math.sqrt(max(0.0, math.log(T / (K * n))) / n),
        "kl-ucb": lambda best: largest_q(m, c * math.log(t) / n),
        "imed": lambda best: -(n * kl(m, best) + math.log(n)),
    }[name]


@pytest.mark.parametrize("kind", ["0 or 1", "eighths"])
@pytest.mark.parametrize(
    ("name", "c"), [("ucb1", 1.0), ("ucb1", 0.3), ("moss", 1.0), ("kl-ucb", 1.0), ("imed", 1.0)]
)
def test_index_policies_play_as_a_plain_loop(name, c, kind):
    rewards = fixed_rewards(kind)
    plays, sums, expected = [0] * K, [0.0] * K, []
    for t in range(T):
        if 0 in plays:
            arm = plays.index(0)
        else:
            best = max(s / n for s, n in zip(sums, plays, strict=True))
            index = [by_hand(name, t, n, s, c)(best) for n, s in zip(plays, sums, strict=True)]
            arm = index.index(max(index))
        expected.append(arm)
        plays[arm] += 1
        sums[arm] += float(rewards[t, arm])
    options = {} if name == "imed" else {"bonus_scale": c}
    assert arms_played(name, rewards, **options) == expected
    assert len(set(expected[-100:])) > 1 or name != "ucb1"  # it does not only repeat one arm


def test_the_index_of_kl_ucb_is_exact_in_both_precisions():
    p = np.concatenate([[0.0, 1.0, 1e-6], np.linspace(0.01, 0.99, 15)])
    level = np.concatenate([[0.0], np.logspace(-7, 2, 30)])
    p, level = (x.ravel() for x in np.meshgrid(p, level))
    expected = np.array([largest_q(a, b) for a, b in zip(p, level, strict=True)])
    found = bandits.upper_bound(jnp.asarray(p, jnp.float32), jnp.asarray(level, jnp.float32))
    np.testing.assert_allclose(found, expected, atol=1e-6)
    with x64():
        found = bandits.upper_bound(jnp.asarray(p), jnp.asarray(level))
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_explore_then_commit_and_elimination_and_epochs_play_as_plain_loops():
    rewards = fixed_rewards("0 or 1")

    def total(arm, start, count):
        return float(rewards[start : start + count, arm].sum())

    m, expected, means = 37, [], []
    for arm in range(K):
        means.append(total(arm, len(expected), m) / m)
        expected += [arm] * m
    expected += [int(np.argmax(means))] * (T - len(expected))
    assert arms_played("explore-then-commit", rewards, plays=m) == expected

    left, expected, plays, sums = set(range(K)), [], [0] * K, [0.0] * K
    scale = 0.25  # so that phases end within T
    for r in range(int(math.log2(T / math.e) / 2) + 1):
        log = math.log(max(T / 4**r, 2))
        n = max(math.ceil(2 * scale * log * 4**r), 1)
        for arm in sorted(left):
            sums[arm] += total(arm, len(expected), n - plays[arm])
            expected += [arm] * (n - plays[arm])
            plays[arm] = n
        width = math.sqrt(log / (2 * n))
        top = max(sums[arm] / n for arm in left) - width
        left = {arm for arm in left if sums[arm] / n + width >= top}
        if len(left) == 1 or len(expected) >= T:
            break
    expected += [max(sorted(left), key=lambda arm: sums[arm] / plays[arm])] * T
    assert arms_played("elimination", rewards, plays_scale=scale) == expected[:T]

    expected, plays, sums = [], [0] * K, [0.0] * K
    while len(expected) < T:
        t = len(expected)
        index = [
            math.inf if n == 0 else largest_q(s / n, math.log(t) / n)
            for s, n in zip(sums, plays, strict=True)
        ]
        arm = index.index(max(index))
        count = max(math.ceil(0.5 * plays[arm]), 1)
        sums[arm] += total(arm, t, count)
        plays[arm] += count
        expected += [arm] * count
    assert arms_played("kl-ucb-epochs", rewards, growth=0.5) == expected[:T]


@pytest.mark.parametrize(("a", "b"), [(1, 1), (1, 4), (30, 7), (2000, 500), (0.4, 0.7), (0.1, 3)])
def test_beta_draws_have_the_right_law(a, b):
    """Kolmogorov-Smirnov on 40,000 draws; false-alarm rate 1e-4 each."""
    keys = key_words(jax.random.split(jax.random.key(3), 20_000))
    draw = jax.jit(jax.vmap(draw_beta, (0, None, None)))
    drawn = np.asarray(draw(keys, jnp.full(2, a, jnp.float32), jnp.full(2, b, jnp.float32)))
    assert ((drawn >= 0) & (drawn <= 1)).all()
    assert stats.kstest(drawn.ravel(), stats.beta(a, b).cdf).pvalue > 1e-4
    assert abs(np.corrcoef(drawn.T)[0, 1]) < 4.5 / math.sqrt(20_000)


def plain_thompson(rng, draw_reward, runs, episodes):
    """Mean number of plays of every arm, with standard errors."""
    wins, losses = np.ones((runs, K)), np.ones((runs, K))
    every = np.arange(runs)
    for _ in range(episodes):
        arm = rng.beta(wins, losses).argmax(axis=1)
        won = rng.random(runs) < draw_reward(rng, arm)
        wins[every, arm] += won
        losses[every, arm] += ~won
    return wins + losses - 2


@pytest.mark.parametrize("kind", ["0 or 1", "any"])
def test_thompson_plays_each_arm_as_often_as_a_plain_loop(kind):
    """Mean plays of each arm over 2,000 runs, two-sample z; 8 comparisons, false-alarm rate 5e-5."""
    runs, episodes = 2000, 120
    rng = np.random.default_rng(0)

    def reward(rng, arm):
        mean = MEANS[arm]
        return mean if kind == "any" else (rng.random(arm.shape) < mean).astype(float)

    theirs = plain_thompson(rng, reward, runs, episodes)
    rewards = (
        np.broadcast_to(MEANS, (runs, episodes, K))
        if kind == "any"
        else rng.random((runs, episodes, K)) < MEANS
    )
    keys = jax.random.split(jax.random.key(1), runs)
    arms = jax.jit(jax.vmap(partial(play, jb.make_learner("thompson"))))(
        rewards.astype(np.float32), keys
    )
    ours = np.stack([np.sum(np.asarray(arms) == arm, axis=1) for arm in range(K)], axis=1)
    assert (ours.sum(axis=1) == episodes).all()
    error = np.sqrt((ours.var(axis=0) + theirs.var(axis=0)) / runs)
    assert (np.abs(ours.mean(axis=0) - theirs.mean(axis=0)) < 4.5 * error).all()


def test_warmup_plays_every_arm_first():
    played = arms_played("thompson", fixed_rewards("0 or 1"), warmup=2)
    assert played[: 2 * K] == [0, 1, 2, 3, 0, 1, 2, 3]


def test_exp3_by_hand():
    """Its probabilities after fixed losses, and the frequencies of 40,000 draws (chi-square, false-alarm rate 1e-4)."""
    learner = jb.make_learner("exp3", rate_scale=30.0)
    problem = jb.Problem(horizon=1, width=1, num_actions=K, num_episodes=T)
    constants = learner.constants(problem, learner.params)
    eta = 30 * math.sqrt(math.log(K) / (T * K))
    state, losses = learner.init(problem, constants, jax.random.key(0)), np.zeros(K)
    for arm, reward in [(0, 0.0), (1, 0.5), (0, 0.25), (3, 1.0), (2, 0.0)]:
        weights = np.exp(-eta * losses)
        losses[arm] += (1 - reward) / (weights[arm] / weights.sum())
        state = learner.update(
            state, jnp.full((1, 2), arm), BanditFeedback(jnp.float32(reward)), constants
        )
    chances = np.exp(-eta * losses) / np.exp(-eta * losses).sum()
    np.testing.assert_allclose(jax.nn.softmax(state), chances, rtol=1e-5)
    keys = jax.random.split(jax.random.key(2), 40_000)
    drawn = np.asarray(jax.vmap(learner.act, (None, 0, None))(state, keys, constants))[:, 0, 1]
    assert stats.chisquare(np.bincount(drawn, minlength=K), chances * len(keys)).pvalue > 1e-4


def test_epsilon_greedy_and_random_ties_have_the_right_law():
    """Frequencies of 40,000 draws at a fixed state (chi-square, false-alarm rate 1e-4 each)."""
    state = bandits.Arms(
        jnp.asarray([4, 2, 4, 6]), jnp.asarray([2.0, 1.0, 1.0, 3.0]), jnp.zeros(4), jnp.int32(16)
    )
    problem = jb.Problem(horizon=1, width=1, num_actions=K, num_episodes=T)
    keys = jax.random.split(jax.random.key(5), 40_000)
    cases = [
        (
            jb.make_learner("epsilon-greedy", epsilon=0.2, ties="random"),
            np.array([4, 4, 0, 4]) / 15 + 0.05,
        ),
        (jb.make_learner("epsilon-greedy", epsilon=0.2), np.array([0.85, 0.05, 0.05, 0.05])),
        (
            jb.make_learner("epsilon-greedy", epsilon=1.0, decay=True),
            np.array([0.75, 0, 0, 0]) + 1 / 16,
        ),
        (jb.make_learner("ucb1", bonus_scale=0.0, ties="random"), np.array([1, 1, 0, 1]) / 3),
    ]
    for learner, chances in cases:
        constants = learner.constants(problem, learner.params)
        drawn = np.asarray(jax.vmap(learner.act, (None, 0, None))(state, keys, constants))[:, 0, 1]
        found = np.bincount(drawn, minlength=K)
        assert (found[chances == 0] == 0).all()
        possible = chances > 0
        assert stats.chisquare(found[possible], chances[possible] * len(keys)).pvalue > 1e-4


@pytest.mark.parametrize("name", EVERY)
def test_bandit_learners_refuse_other_mdps(name):
    learner = jb.make_learner(name)
    with pytest.raises(
        ValueError, match=rf"{name}: an MDP with H = 3 and k = 1; accepted: a K-armed bandit.*ucbvi"
    ):
        make_constants(learner, jb.Problem(3, 1, 2, 10), learner.params)


@pytest.mark.parametrize("name", ["explore-then-commit", "elimination", "kl-ucb-epochs"])
def test_block_forms_reach_ten_to_the_thirteen(name):
    mdp = jb.make_instance("bandit", means=MEANS)
    ds = jb.sweep(
        {"x": jb.make_learner(name)}, {"I": mdp}, num_episodes=10**13, num_seeds=4, progress=False
    )
    regret = ds["regret"].isel(episode=-1).values
    bound = jb.hardness(mdp).lai_robbins * math.log(1e13)
    assert (regret > 0.3 * bound).all()
    assert (
        regret
        < {"explore-then-commit": 1e10, "elimination": 200 * bound, "kl-ucb-epochs": 5 * bound}[
            name
        ]
    ).all()
    assert (ds["final_gap"] == 0).all()


def test_ucb_policies_play_as_ucb1():
    """27 policies on 3 states of 1 level, 400 episodes of made-up totals: the same policies as a
    loop over a table of means; each of the first 27 is new."""
    learner = ucb_policies(bonus_scale=0.7)
    state, given = begin(learner, jb.Problem(3, 1, 3, 400))
    update = jax.jit(learner.update)
    random = np.random.default_rng(0)
    means = random.random(27)
    seen: list[tuple] = []
    totals: dict[tuple, list[float]] = {}
    for t in range(400):
        policy = tuple(np.asarray(learner.act(state, None, given))[:, 1].tolist())
        if t < 27:
            assert policy not in totals
        else:
            bounds = {
                p: np.mean(x) + 0.7 * np.sqrt(2 * np.log(t) / len(x)) for p, x in totals.items()
            }
            assert bounds[policy] >= max(bounds.values()) - 1e-5
        number = policy[0] + 3 * policy[1] + 9 * policy[2]
        total = np.float32(random.random() < means[number])
        totals.setdefault(policy, []).append(float(total))
        seen.append(policy)
        state = update(state, None, BanditFeedback(jnp.asarray(total)), given)
    assert len(set(seen)) == 27
    assert int(state.arms.plays.sum()) == 400


def test_states_that_nobody_reaches_are_left_out():
    mdp = jb.make_instance("prophet-uniform", horizon=3, capacity=2, num_values=2)
    reached = np.asarray(jb.visitation(mdp, jnp.full((3, 3, 2), 0.5))) > 0
    learner = ucb_policies(reachable=reached)
    state, _ = begin(learner, jb.Problem(3, 2, 2, 100))
    assert state.arms.plays.size == 2 ** reached[:, 1:].sum() == 2**5
    jb.testing.check_learner(learner, mdp)


def test_too_many_policies_are_refused():
    learner = ucb_policies()
    with pytest.raises(ValueError, match=r"5\^30 = 931,322,574,615,478,515,625 policies"):
        begin(learner, jb.Problem(15, 2, 5, 100))
    narrow = ucb_policies(reachable=[[False, True]])
    with pytest.raises(ValueError, match=r"reachable: \[1, 2\]; accepted: \[15, 3\] in this MDP"):
        begin(narrow, jb.Problem(15, 2, 5, 100))
    with pytest.raises(ValueError, match=r"reachable: int64 \[1\]; accepted: bool \[H, k\+1\]"):
        ucb_policies(reachable=[1])
