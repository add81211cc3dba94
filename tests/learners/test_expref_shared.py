"""ExpRef with shared episodes: its estimates against exact values, by hand, and its orthogonal
arrays, in which any two factors meet evenly."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from arms import moments
from scipy import stats

import jaxbandit as jb
from jaxbandit.learner import Problem, make_constants
from jaxbandit.learners.expref import exploration
from jaxbandit.learners.expref_shared import (
    absorb,
    design,
    estimates,
    expref_shared,
    largest_prime,
    next_block,
    residuals,
)
from jaxbandit.xla.compat import x64

MDP = jb.make_instance("prophet-uniform", horizon=3, capacity=2, num_values=3)


def begun(learner, *sizes):
    """The first state and the constants of a run: H, k, A and T."""
    problem, form = Problem(*sizes), learner.blocks
    constants = jax.tree.map(jnp.asarray, make_constants(form, problem, learner.params))
    return form.init(problem, None, None), constants


def some_state(seed, stage):
    """A state in the middle of a phase: some actions are gone, and the tail is fixed; and constants."""
    state, constants = begun(expref_shared(preset="practical"), 3, 2, 3, 10**6)
    random = np.random.default_rng(seed)
    active = random.random((3, 3, 3)) < 0.7
    active[..., random.integers(3)] = True
    active[stage, 1:] |= np.arange(3) < 2  # at least two actions at the stage
    best = random.integers(0, 3, (3, 3))
    inner = state.inner._replace(
        active=jnp.asarray(active), best=jnp.asarray(best, jnp.int32), stage=jnp.int32(stage)
    )
    return state._replace(inner=inner), constants


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
        state, constants = some_state(seed, stage)
        blocks = next_block(state, constants)
        totals = np.zeros(blocks.episodes.size)
        for b, policy in arm_policies(blocks):
            totals[b] = float(blocks.episodes[b]) * moments(MDP, policy)[0]
        phi = np.asarray(estimates(state.inner, blocks.episodes, jnp.asarray(totals)))
        for level in (1, 2):
            actions = np.flatnonzero(state.inner.active[stage, level])
            values = []
            for a in actions:
                policy = np.asarray(blocks.policy).copy()
                policy[stage] = 1 / 3
                policy[stage, level] = np.eye(3)[a]
                values.append(moments(MDP, policy)[0])
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
        blocks = next_block(*begun(learner, 3, 2, 3, 2000))
        mean, variance = np.zeros((2, 3)), np.zeros((2, 3))
        count = np.zeros((2, 3))
        for b, policy in arm_policies(blocks):
            one, spread = moments(MDP, policy)
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


@pytest.mark.parametrize(("seed", "stage"), list(itertools.product(range(4), (0, 2))))
def test_residuals_are_the_noise_of_least_squares(seed, stage):
    """Exact means leave no residual (the arms are additive). Of made-up sums the squares and degrees of
    freedom are those of least squares on indicators of the actions. And with sigma_b^2 enumerated, the
    mean of the squares, sum_b (1 - h_b) sigma_b^2, is between the smallest and the largest variance of an
    arm for each degree of freedom. Tolerance: float64 rounding."""
    with x64():
        state, constants = some_state(seed, stage)
        blocks = next_block(state, constants)
        arms = [b for b, _ in arm_policies(blocks)]
        laws = np.array([moments(MDP, policy) for _, policy in arm_policies(blocks)])
        n = float(blocks.episodes[arms[0]])
        totals = np.zeros(blocks.episodes.size)
        totals[arms] = n * laws[:, 0]
        squares, freedom = residuals(state.inner, blocks.episodes, jnp.asarray(totals))
        assert abs(float(squares)) < 1e-12 * n
        rows = np.asarray(blocks.rows)[arms]
        told = np.concatenate([np.ones((len(arms), 1)), rows[:, 1], rows[:, 2]], axis=1)
        hat = told @ np.linalg.pinv(told)
        assert float(freedom) == len(arms) - np.linalg.matrix_rank(told)
        totals[arms] = n * np.random.default_rng(seed).random(len(arms))
        squares, _ = residuals(state.inner, blocks.episodes, jnp.asarray(totals))
        left = (np.eye(len(arms)) - hat) @ (totals[arms] / n)
        np.testing.assert_allclose(float(squares), n * left @ left, rtol=1e-10)
        expected = np.sum((1 - np.diag(hat)) * laws[:, 1])
        assert laws[:, 1].min() <= expected / float(freedom) <= laws[:, 1].max()


def test_slack_in_standard_errors_by_hand():
    """H = 1, k = 2, A = 2: four arms of 20 episodes and one degree of freedom. Effects of 0.2 and 0.1, and an
    interaction of 0.04 that is no effect, so its square is noise. Tolerance: float64 rounding."""
    learner = expref_shared(
        episodes_scale=1 / 12, first_epsilon=0.5, ratio=0.5, deviations=1.5, num_phases=2
    )
    with x64():
        state, constants = begun(learner, 1, 2, 2, 22026)
        blocks = next_block(state, constants)
        first, second = (np.asarray(blocks.rows[:, level]).argmax(-1) for level in (1, 2))
        odd = np.where(first == second, 0.04, -0.04)
        sums = jnp.asarray(20 * (0.3 + 0.2 * (first == 1) + 0.1 * (second == 0) + odd))
        state = absorb(state, blocks.episodes, sums, constants)
        np.testing.assert_allclose(state.squares, 20 * 4 * 0.04**2, atol=1e-12)
        assert float(state.freedom) == 1
        # s^2 = (0.128 + 0.45 * 0.55) / 2 = 0.18775; slack 1.5 sqrt(2 s^2 / 40) = 0.1453
        assert state.inner.active[0, 1:].tolist() == [[False, True], [True, True]]


def recorded_estimates(engine, learner, length, runs):
    """Phi-hat [runs, 2, 3] of the first block, which the learner is made to remember."""
    form = learner.blocks

    def init(problem, constants, key):
        return form.init(problem, constants, key), jnp.zeros((2, 3), jnp.result_type(float))

    def remember(state, episodes, totals, constants):
        shared, _ = state
        found = estimates(shared.inner, episodes, totals)
        return form.absorb(shared, episodes, totals, constants), found

    remembering = form._replace(
        init=init,
        next_block=lambda state, constants: form.next_block(state[0], constants),
        absorb=remember,
        report=None,
        constants=lambda problem, params: form.constants(Problem(3, 2, 3, 2000), params),
    )
    made = jb.from_blocks(remembering, name="remembering", params=learner.params)
    keys = jax.random.split(jax.random.key(11), (1, runs))
    _, state = jb.testing.run_lanes(engine, [made], [MDP], keys, length)
    return np.asarray((state.inner if engine == "episodes" else state)[1])[0]


def test_a_phase_by_hand():
    """H = 1, k = 2, A = 2: four arms; level 1 prefers action 1 by 0.2, level 2 action 0 by 0.1."""
    learner = expref_shared(
        episodes_scale=1 / 12, first_epsilon=0.5, ratio=0.5, threshold=0.3, num_phases=2
    )
    with x64():
        state, constants = begun(learner, 1, 2, 2, 22026)  # ln T is just below 10
        blocks = next_block(state, constants)
        np.testing.assert_array_equal(blocks.episodes, [20] * 4)  # n = ceil(10 / 0.25) = 40, twice
        first, second = (np.asarray(blocks.rows[:, level]).argmax(-1) for level in (1, 2))
        assert sorted(zip(first.tolist(), second.tolist(), strict=True)) == [
            (0, 0), (0, 1), (1, 0), (1, 1),
        ]  # fmt: skip
        means = 0.3 + 0.2 * (first == 1) + 0.1 * (second == 0)
        phi = estimates(state.inner, blocks.episodes, jnp.asarray(20 * means))
        np.testing.assert_allclose(phi, [[0.35, 0.55], [0.5, 0.4]], atol=1e-12)
        state = absorb(state, blocks.episodes, jnp.asarray(20 * means), constants)
        # slack 0.3 * 0.5 = 0.15: level 1 is settled, level 2 is not
        assert state.inner.active[0, 1:].tolist() == [[False, True], [True, True]]
        assert state.inner.committed[0].tolist() == [0, 1, 0]
        blocks = next_block(state, constants)
        np.testing.assert_array_equal(
            blocks.episodes, [80] * 4
        )  # n = 160; p = 2, each action twice
        assert (np.asarray(blocks.rows[:, 1]) == [0, 1]).all()
        second = np.asarray(blocks.rows[:, 2]).argmax(-1)
        sums = jnp.asarray(80 * (0.5 + 0.1 * (second == 0)))
        state = absorb(state, blocks.episodes, sums, constants)
        assert int(state.inner.stage) == -1  # slack 0.075: all is settled
        blocks = next_block(state, constants)
        assert int(blocks.episodes[0]) == 22027
        assert state.inner.phase_end[:3].tolist() == [80, 400, -1]
        assert np.argmax(blocks.policy[0], -1).tolist() == [0, 1, 0]


def test_a_stage_costs_one_level():
    """H = 2, k = 4, A = 5: 25 arms of n / 5 episodes instead of 20 of n."""
    learner = expref_shared(preset="practical", first_epsilon=0.1)
    with x64():
        blocks = next_block(*begun(learner, 2, 4, 5, 10**6))
        n = np.ceil(np.log(1e6) / 0.1**2)
        assert int(blocks.episodes.sum()) == 25 * np.ceil(n / 5)


def test_exploration_by_hand():
    """Two of three actions are active; g = 0.8 on alpha-hat of the phase before, but not in the
    first phase. Tolerance: float64 rounding."""
    with x64():
        state, constants = some_state(0, 2)
        state = state.inner._replace(
            active=jnp.broadcast_to(jnp.asarray([True, False, True]), (3, 3, 3)),
            committed=jnp.full((3, 3), 2, jnp.int32),
        )
        constants = constants._replace(greedy_share=jnp.float64(0.8))
        phases = [state._replace(phase=jnp.int32(r)) for r in (0, 1)]
        first, second = (exploration(phase, constants)[1, 1] for phase in phases)
        np.testing.assert_allclose(first, [0.5, 0, 0.5], atol=1e-15)
        np.testing.assert_allclose(second, [0.1, 0, 0.9], atol=1e-15)
        constants = constants._replace(
            uniform_share=jnp.float64(0.4),
            rank=jnp.broadcast_to(jnp.asarray([5, 9, 1], jnp.int32), (3, 3, 3)),
        )
        first, second = (exploration(phase, constants)[1, 1] for phase in phases)
        np.testing.assert_allclose(first, [0.8, 0, 0.2], atol=1e-15)
        np.testing.assert_allclose(second, [0.16, 0, 0.84], atol=1e-15)


def test_what_is_repeated_is_active():
    """alpha-hat of a finished phase is in the sets of the next: 40 phases of made-up sums."""
    learner = expref_shared(preset="practical")
    random = np.random.default_rng(3)
    first, constants = begun(learner, 3, 2, 3, 10**6)

    @jax.jit
    def step(state, sums):
        return absorb(state, next_block(state, constants).episodes, sums, constants)

    for _ in range(10):
        state = first
        while int(state.inner.phase) < 4 and int(state.inner.stage) >= 0:
            episodes = np.asarray(next_block(state, constants).episodes)
            state = step(state, jnp.asarray(episodes * random.random(episodes.shape), jnp.float32))
            kept = np.take_along_axis(
                np.asarray(state.inner.active)[:, 1:],
                np.asarray(state.inner.committed)[:, 1:, None],
                -1,
            )
            assert int(state.inner.phase) == 0 or kept.all()


def test_it_finds_the_optimal_policy_on_a_long_run():
    """10^8 episodes on the block engine, 8 seeds: the last policy is optimal in every one.

    The threshold is six standard errors of an estimate or more (n = ln T / eps^2, variance at most
    1/4), so the false-alarm rate over all seeds, phases and states is below 1e-6."""
    learner = expref_shared(preset="practical", ordered=True, threshold=0.6)
    keys = jax.random.split(jax.random.key(5), (1, 8))
    mdp = jb.make_instance("prophet-uniform", horizon=3, capacity=1, num_values=3)
    results, _ = jb.testing.run_lanes("blocks", [learner], [mdp], keys, 10**8)
    assert results["final_gap"].max() < 1e-12


def test_the_slack_is_set_in_one_way():
    """What is given replaces the preset's way; both at once are refused, in grids as well."""
    given = expref_shared(preset="practical", threshold=0.3).params
    assert float(given["threshold"]) == 0.3
    assert np.isnan(given["deviations"])
    given = expref_shared(preset="practical", deviations=2.0).params
    assert np.isnan(given["threshold"])
    with pytest.raises(ValueError, match=r"threshold: 0.3 with deviations: 2.0; accepted: one of"):
        expref_shared(threshold=0.3, deviations=2)
    with pytest.raises(ValueError, match=r"threshold: 0.1 with deviations: 2.0; accepted: one of"):
        jb.grid(expref_shared(deviations=2), threshold=[0.1, 0.2])


def experiments(sizes, largest):
    found = jax.jit(design, static_argnames="largest")(jnp.asarray(sizes, jnp.int32), largest)
    return np.asarray(found.choice)[np.asarray(found.used)], int(found.least)


@pytest.mark.parametrize("sizes", list(itertools.product([1, 2, 3, 5], repeat=3)))
def test_pairs_are_independent_and_every_choice_is_frequent(sizes):
    """The number of experiments with choices (x, y) is the product of the two frequencies."""
    arms, least = experiments(sizes, 5)
    for one, two in itertools.combinations(range(3), 2):
        together = np.zeros((sizes[one], sizes[two]))
        np.add.at(together, (arms[:, one], arms[:, two]), 1)
        product = np.outer(together.sum(1), together.sum(0)) / len(arms)
        np.testing.assert_allclose(together, product)
    rarest = min(np.bincount(arms[:, f], minlength=n).min() for f, n in enumerate(sizes))
    assert rarest == least
    assert len(arms) == {1: 4, 2: 4, 3: 9, 5: 25}[max(sizes)] or max(sizes) == 1


def test_as_many_factors_as_fit():
    """p + 1 factors of p choices: every pair of choices meets exactly once."""
    arms, least = experiments([3] * 4, largest_prime(4, 3))
    assert (len(arms), least) == (9, 3)
    for one, two in itertools.combinations(range(4), 2):
        assert len({(x[one], x[two]) for x in arms.tolist()}) == 9


def test_many_factors_need_a_larger_prime():
    assert largest_prime(7, 3) == 7
    arms, least = experiments([2, 1, 2, 2, 2, 1, 2], 7)  # five open factors: 2 and 3 have no room
    assert (len(arms), least) == (49, 21)  # 5 has, but 25 experiments have 10 of the rarest choice
    arms, least = experiments([2, 1, 2, 1, 1, 1, 2], 7)
    assert (len(arms), least) == (4, 2)
