"""ExpRef with shared episodes: its estimates against exact values, by hand, and on both engines."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import jaxbandit as jb
from jaxbandit.learner import Problem
from jaxbandit.learners.expref_shared import (
    _absorb,
    _next_block,
    estimates,
    exploration,
    expref_shared,
)
from jaxbandit.xla.compat import x64

MDP = jb.make_instance("prophet-uniform", horizon=3, capacity=2, num_values=3)


def exact_total_law(mdp, policy):
    """Mean and variance of the total reward of a randomised policy, by enumeration of all paths."""
    prob, reward, target = (np.asarray(x, float) for x in (mdp.prob, mdp.reward, mdp.next_level))
    paths = {(int(mdp.start), 0.0): 1.0}
    for i in range(mdp.horizon):
        onward: dict = {}
        for (level, total), chance in paths.items():
            for a, m in itertools.product(range(mdp.num_actions), range(mdp.num_outcomes)):
                p = chance * policy[i, level, a] * prob[i, level, a, m]
                if p > 0:
                    key = (int(target[i, level, a, m]), total + reward[i, level, a, m])
                    onward[key] = onward.get(key, 0) + p
        paths = onward
    totals = np.array([total for _, total in paths])
    chances = np.array(list(paths.values()))
    mean = chances @ totals
    return mean, chances @ (totals - mean) ** 2


def some_state(seed, stage):
    """A state in the middle of a phase: some actions are gone, and the tail is fixed."""
    learner = expref_shared(preset="practical")
    state = learner.blocks.init(Problem(3, 2, 3, jnp.float64(1e6)), learner.params)
    random = np.random.default_rng(seed)
    active = random.random((3, 3, 3)) < 0.7
    active[..., random.integers(3)] = True
    active[stage, 1:] |= np.arange(3) < 2  # at least two actions at the stage
    best = random.integers(0, 3, (3, 3))
    return state._replace(
        active=jnp.asarray(active), best=jnp.asarray(best, jnp.int32), stage=jnp.int32(stage)
    )


def arm_policies(blocks):
    for b in np.flatnonzero(np.asarray(blocks.episodes) > 0):
        policy = np.asarray(blocks.policy).copy()
        policy[int(blocks.stage)] = np.asarray(blocks.rows[b])
        yield b, policy


@pytest.mark.parametrize(("seed", "stage"), list(itertools.product(range(4), range(3))))
def test_differences_of_the_estimates_are_exact_in_the_mean(seed, stage):
    """Fed with the exact means of its arms, Phi-hat(a) - Phi-hat(b) is Q (V(a) - V(b)): the
    difference of the values of the policies that play a or b at one level and, say, explore
    elsewhere. Tolerance: float64 rounding."""
    with x64():
        state = some_state(seed, stage)
        blocks = _next_block(state)
        totals = np.zeros(blocks.episodes.size)
        for b, policy in arm_policies(blocks):
            totals[b] = float(blocks.episodes[b]) * exact_total_law(MDP, policy)[0]
        phi = np.asarray(estimates(state, blocks.episodes, jnp.asarray(totals)))
        for level in (1, 2):
            actions = np.flatnonzero(state.active[stage, level])
            values = []
            for a in actions:
                policy = np.asarray(blocks.policy).copy()
                policy[stage] = 1 / 3
                policy[stage, level] = np.eye(3)[a]
                values.append(exact_total_law(MDP, policy)[0])
            found = phi[level - 1][actions]
            np.testing.assert_allclose(found - found[0], np.subtract(values, values[0]), atol=1e-12)
            assert np.isneginf(np.delete(phi[level - 1], actions)).all()


@pytest.mark.parametrize("engine", ["blocks", "episodes"])
def test_variance_of_the_estimates_is_exact(engine):
    """The variance of Phi-hat(a) is the mean of its arms' variances over their number of episodes.

    300 runs of the first block; false-alarm rate 1e-5 for each of the 6 variances (chi-squared,
    nearly: the sums of 33 or more episodes are close to normal) and 1e-6 for each mean.
    """
    runs = 300
    learner = expref_shared(episodes_scale=1 / 12, first_epsilon=0.4, threshold=1e-6, num_phases=1)
    with x64():
        problem = Problem(3, 2, 3, jnp.float64(2000))
        state = learner.blocks.init(problem, learner.params)
        blocks = _next_block(state)
        mean, variance = np.zeros((2, 3)), np.zeros((2, 3))
        count = np.zeros((2, 3))
        for b, policy in arm_policies(blocks):
            one, spread = exact_total_law(MDP, policy)
            for level in (1, 2):
                a = int(np.argmax(blocks.rows[b, level]))
                mean[level - 1, a] += one
                variance[level - 1, a] += spread
                count[level - 1, a] += 1
        mean, variance = mean / count, variance / count / (count * float(blocks.episodes[0]))
    length = int(np.asarray(blocks.episodes).sum())
    recorded = recorded_estimates(engine, learner, length, runs)
    errors = np.abs(recorded.mean(0) - mean) / np.sqrt(variance / runs)
    assert errors.max() < stats.norm.isf(0.5e-6)
    ratio = recorded.var(0, ddof=1) / variance * (runs - 1)
    low, high = stats.chi2.ppf([0.5e-5, 1 - 0.5e-5], runs - 1)
    assert ((ratio > low) & (ratio < high)).all()


def recorded_estimates(engine, learner, length, runs):
    """Phi-hat [runs, 2, 3] of the first block, which the learner is made to remember."""
    form = learner.blocks

    def init(problem, params):
        inner = form.init(Problem(3, 2, 3, jnp.full_like(problem.num_episodes, 2000)), params)
        return inner, jnp.zeros((2, 3), inner.epsilons.dtype)

    def absorb(state, episodes, totals):
        inner, _ = state
        return form.absorb(inner, episodes, totals), estimates(inner, episodes, totals)

    remembering = form._replace(
        init=init, next_block=lambda state: form.next_block(state[0]), absorb=absorb
    )
    made = jb.from_blocks(remembering, name="remembering", params=learner.params)
    keys = jax.random.split(jax.random.key(11), (1, runs))
    _, state = jb.testing.run_lanes(engine, [made], [MDP], keys, length)
    if engine == "episodes":
        return np.moveaxis(np.asarray(state.inner[1])[..., 0, :], -1, 0)
    return np.asarray(state[1])[0]


def test_a_phase_by_hand():
    """H = 1, k = 2, A = 2: four arms; level 1 prefers action 1 by 0.2, level 2 action 0 by 0.1."""
    learner = expref_shared(
        episodes_scale=1 / 12, first_epsilon=0.5, ratio=0.5, threshold=0.3, num_phases=2
    )
    with x64():
        state = learner.blocks.init(Problem(1, 2, 2, jnp.exp(jnp.float64(10))), learner.params)
        blocks = _next_block(state)
        np.testing.assert_array_equal(blocks.episodes, [20] * 4)  # n = ceil(10 / 0.25) = 40, twice
        first, second = (np.asarray(blocks.rows[:, level]).argmax(-1) for level in (1, 2))
        assert sorted(zip(first.tolist(), second.tolist(), strict=True)) == [
            (0, 0), (0, 1), (1, 0), (1, 1),
        ]  # fmt: skip
        means = 0.3 + 0.2 * (first == 1) + 0.1 * (second == 0)
        phi = estimates(state, blocks.episodes, jnp.asarray(20 * means))
        np.testing.assert_allclose(phi, [[0.35, 0.55], [0.5, 0.4]], atol=1e-12)
        state = _absorb(state, blocks.episodes, jnp.asarray(20 * means))
        # slack 0.3 * 0.5 = 0.15: level 1 is settled, level 2 is not
        assert state.active[0, 1:].tolist() == [[False, True], [True, True]]
        assert state.committed[0].tolist() == [0, 1, 0]
        blocks = _next_block(state)
        np.testing.assert_array_equal(
            blocks.episodes, [80] * 4
        )  # n = 160; p = 2, each action twice
        assert (np.asarray(blocks.rows[:, 1]) == [0, 1]).all()
        second = np.asarray(blocks.rows[:, 2]).argmax(-1)
        state = _absorb(state, blocks.episodes, jnp.asarray(80 * (0.5 + 0.1 * (second == 0))))
        assert int(state.stage) == -1  # slack 0.075: all is settled
        blocks = _next_block(state)
        assert float(blocks.episodes[0]) > float(state.num_episodes)
        assert np.argmax(blocks.policy[0], -1).tolist() == [0, 1, 0]


def test_a_stage_costs_one_level():
    """H = 2, k = 4, A = 5: 25 arms of n / 5 episodes instead of 20 of n."""
    learner = expref_shared(preset="practical", first_epsilon=0.1)
    with x64():
        state = learner.blocks.init(Problem(2, 4, 5, jnp.float64(1e6)), learner.params)
        blocks = _next_block(state)
        n = float(state.least_episodes[0])
        assert float(blocks.episodes.sum()) == 25 * np.ceil(n / 5)


def test_exploration_by_hand():
    """Two of three actions are active; g = 0.8 on alpha-hat of the phase before, but not in the
    first phase. Tolerance: float64 rounding."""
    with x64():
        state = some_state(0, 2)._replace(
            active=jnp.broadcast_to(jnp.asarray([True, False, True]), (3, 3, 3)),
            committed=jnp.full((3, 3), 2, jnp.int32),
            greedy_share=jnp.float64(0.8),
        )
        first, second = (exploration(state._replace(phase=jnp.int32(r)))[1, 1] for r in (0, 1))
        np.testing.assert_allclose(first, [0.5, 0, 0.5], atol=1e-15)
        np.testing.assert_allclose(second, [0.1, 0, 0.9], atol=1e-15)
        ordered = state._replace(
            uniform=jnp.float64(0.4),
            rank=jnp.broadcast_to(jnp.asarray([5, 9, 1], jnp.int32), (3, 3, 3)),
        )
        first, second = (exploration(ordered._replace(phase=jnp.int32(r)))[1, 1] for r in (0, 1))
        np.testing.assert_allclose(first, [0.8, 0, 0.2], atol=1e-15)
        np.testing.assert_allclose(second, [0.16, 0, 0.84], atol=1e-15)


def test_what_is_repeated_is_active():
    """alpha-hat of a finished phase is in the sets of the next: 40 phases of made-up sums."""
    learner = expref_shared(preset="practical")
    random = np.random.default_rng(3)
    step = jax.jit(lambda state, sums: _absorb(state, _next_block(state).episodes, sums))
    for _ in range(10):
        state = learner.blocks.init(Problem(3, 2, 3, jnp.float32(1e6)), learner.params)
        while int(state.phase) < 4 and int(state.stage) >= 0:
            episodes = np.asarray(_next_block(state).episodes)
            state = step(state, jnp.asarray(episodes * random.random(episodes.shape), jnp.float32))
            kept = np.take_along_axis(
                np.asarray(state.active)[:, 1:], np.asarray(state.committed)[:, 1:, None], -1
            )
            assert int(state.phase) == 0 or kept.all()


@pytest.mark.parametrize("ordered", [False, True])
def test_conformance(ordered):
    short = {"episodes_scale": 0.004, "last_epsilon": 0.1, "threshold": 0.2}
    jb.testing.check_learner(expref_shared(ordered=ordered, **short))


def test_it_finds_the_optimal_policy_on_a_long_run():
    """10^8 episodes on the block engine, 8 seeds: the last policy is optimal in every one.

    The threshold is six standard errors of an estimate or more (n = ln T / eps^2, variance at most
    1/4), so the false-alarm rate over all seeds, phases and states is below 1e-6."""
    learner = expref_shared(preset="practical", ordered=True, threshold=0.6)
    keys = jax.random.split(jax.random.key(5), (1, 8))
    mdp = jb.make_instance("prophet-uniform", horizon=3, capacity=1, num_values=3)
    results, _ = jb.testing.run_lanes("blocks", [learner], [mdp], keys, 10**8)
    assert results["final_gap"].max() < 1e-12


def test_parameters_are_checked():
    with pytest.raises(ValueError, match=r"ratio: 1; accepted: a finite number > 0 and <= 0.99"):
        expref_shared(ratio=1)
    with pytest.raises(ValueError, match=r"num_phases: 2.5; accepted: whole numbers, 1\.\.32"):
        expref_shared(num_phases=2.5)
    with pytest.raises(ValueError, match="exploration_scale: 1; accepted: only with ordered=True"):
        expref_shared(exploration_scale=1)
    with pytest.raises(ValueError, match=r"greedy_share: 1.5; accepted: a finite number >= 0 and"):
        expref_shared(greedy_share=1.5)
    learner = expref_shared(preset="practical")
    learner.check(learner.params)
    with pytest.raises(ValueError, match=r"threshold: -0.5; accepted: a finite number > 0"):
        learner.check({**learner.params, "threshold": np.asarray([0.1, -0.5])})


def test_both_engines_agree_in_law():
    """300 runs of 700 episodes on each engine, regret at two points: Kolmogorov and Smirnov's test,
    false-alarm rate 1e-6 each."""
    learner = expref_shared(
        episodes_scale=1 / 12, first_epsilon=0.8, ratio=0.7, threshold=0.25, num_phases=3
    )
    regrets = {}
    for seed, engine in enumerate(("episodes", "blocks")):
        keys = jax.random.split(jax.random.key(seed), (1, 300))
        results, _ = jb.testing.run_lanes(engine, [learner], [MDP], keys, 700, [300, 700])
        regrets[engine] = np.round(results["regret"][0], 2)
    for w in range(2):
        one, two = (regrets[engine][:, w] for engine in ("episodes", "blocks"))
        assert stats.ks_2samp(one, two, method="asymp").pvalue > 1e-6
    assert np.unique(regrets["blocks"][:, 1]).size > 5
