"""Thresholds, schedule and bounds against direct formulas."""

import itertools
import math

import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit import theory

PAPER = [
    (15, 2, 8.91e6),
    (15, 3, 1.34e7),
    (15, 4, 1.78e7),
    (20, 2, 1.19e7),
    (20, 3, 1.78e7),
    (20, 4, 2.38e7),
]
"""H, k, and the length of the whole schedule."""


def test_general_thresholds_are_the_formula():
    table = theory.thresholds(horizon=5, width=3, num_actions=4, ordered=False)
    assert table.shape == (5, 4)
    for i in range(1, 6):
        np.testing.assert_allclose(table[i - 1, 1:], (5 - i + 1) * 12 ** (5 - i), rtol=1e-12)


def test_ordered_thresholds_are_the_first_form():
    H, k, A = 5, 3, 4
    table = theory.thresholds(horizon=H, width=k, num_actions=A, ordered=True)
    for i, level in itertools.product(range(1, H + 1), range(1, k + 1)):
        factors = (2 * A * H / k) ** (level - 1) * (H - i + 1) ** level
        expected = math.exp((H - i) * k / H) * factors
        np.testing.assert_allclose(table[i - 1, level], expected, rtol=1e-12)
    assert table[0, k] <= (2 * math.e * A * H**2 / k) ** k  # C_{k,1}, as stated below equation (8)


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("sizes", [(40, 8, 10), (1000, 300, 50), (1, 1, 1)])
def test_thresholds_are_finite_even_in_single_precision(ordered, sizes):
    table = theory.thresholds(*sizes, ordered=ordered)
    assert np.isfinite(table).all()
    assert np.isfinite(table.astype(np.float32)).all()
    assert table.max() <= theory.LARGEST_THRESHOLD
    assert (table >= 1 - 1e-12).all()
    assert (table[:, 0] == theory.LARGEST_THRESHOLD).all()


@pytest.mark.parametrize(("H", "k", "length"), PAPER)
def test_schedule_of_the_papers_configurations(H, k, length):
    """At T = 2e6 five phases are scheduled: three complete, the fourth is cut; all would need >=
    3.9 T."""
    T = 2_000_000
    phases = theory.schedule(H, k, 5, T)
    assert phases.epsilons.tolist() == [1, 1 / 2, 1 / 4, 1 / 8, 1 / 16]
    smallest = math.sqrt(H * k * 5 * math.log(T) / T)
    assert phases.epsilons[-1] > smallest >= phases.epsilons[-1] / 2
    assert phases.episodes_per_arm.tolist() == [
        math.ceil(12 * math.log(T) * 4**r) for r in range(len(phases.epsilons))
    ]
    np.testing.assert_array_equal(phases.episodes_per_phase, H * k * 5 * phases.episodes_per_arm)
    np.testing.assert_array_equal(phases.last_episode, np.cumsum(phases.episodes_per_phase))
    assert phases.last_episode[-1] == pytest.approx(length, rel=5e-3)
    assert phases.phase_cut == 3
    assert phases.last_episode[2] <= T < phases.last_episode[3]


def test_schedule_with_practical_parameters():
    practical = {"episodes_scale": 1 / 12, "first_epsilon": 0.2, "ratio": 0.5**0.5, "max_phases": 4}
    phases = theory.schedule(15, 2, 5, 2_000_000, **practical)
    np.testing.assert_allclose(phases.epsilons, 0.2 * 0.5 ** (np.arange(4) / 2))
    np.testing.assert_array_equal(
        phases.episodes_per_arm, np.ceil(np.log(2e6) / phases.epsilons**2)
    )
    assert phases.phase_cut is None or phases.last_episode[phases.phase_cut] > 2e6
    assert theory.schedule(2, 1, 2, 10**6, episodes_scale=1e-3).phase_cut is None


@pytest.mark.parametrize("T", [2, 100, 500])
def test_schedule_is_empty_when_there_are_too_few_episodes(T):
    phases = theory.schedule(15, 2, 5, T)
    assert all(array.shape == (0,) for array in phases[:4])
    assert phases.phase_cut is None


def test_bounds_are_the_theorems_expressions():
    H, k, A = 4, 3, 2
    T = np.array([100.0, 1e5, 1e12])
    root = np.sqrt(T * np.log(T))
    np.testing.assert_allclose(
        theory.upper_bound_general(H, k, A, T),
        H**2 * (A * k) ** H * math.sqrt(H * k * A) * root,
        rtol=1e-12,
    )
    np.testing.assert_allclose(
        theory.upper_bound_ordered(H, k, A, T),
        (2 * math.e * H**2 * A / k) ** k * math.sqrt(k**3 * H / A) * root,
        rtol=1e-12,
    )
    np.testing.assert_allclose(
        theory.lower_bound_general(H, A, T), np.minimum(np.sqrt(A**H * T), T), rtol=1e-12
    )
    arms = math.comb(H - 1, k) * A**k
    np.testing.assert_allclose(
        theory.lower_bound_ordered(H, k, A, T), np.minimum(np.sqrt(arms * T), T), rtol=1e-12
    )
    assert (theory.lower_bound_general(H, A, T) <= theory.upper_bound_general(H, 2, A, T)).all()


def test_bounds_take_numbers_and_never_become_nan():
    assert np.ndim(theory.upper_bound_general(3, 2, 2, 1000)) == 0
    assert theory.upper_bound_general(1000, 8, 10, 1000) == np.inf
    assert theory.upper_bound_ordered(1000, 500, 10, 1000) == np.inf
    assert theory.lower_bound_general(1000, 10, 1000) == 1000
    assert theory.lower_bound_ordered(1000, 500, 10, 1000) == 1000


def test_gaps_of_the_proofs():
    np.testing.assert_allclose(
        theory.hard_gap_general(4, 3, [10, 81, 8100]), [1 / 4, 1 / 4, 1 / 40]
    )
    arms = math.comb(5, 2) * 3**2
    np.testing.assert_allclose(
        theory.hard_gap_ordered(6, 2, 3, [10, arms, 100 * arms]), [1 / 8, 1 / 8, 1 / 80]
    )
    assert theory.hard_gap_general(1000, 10, 10) == 1 / 4


@pytest.mark.parametrize("num_arms", [2, 8, 81, 6561])
@pytest.mark.parametrize("T", [2, 50, 10**4, 10**8])
def test_the_general_gap_gives_the_lower_bound(num_arms, T):
    """gap (T - T/N - T/2 sqrt(-(T/N) ln(1 - 4 gap^2))) >= 0.05 min(sqrt(NT), T), as the docstring
    says."""
    gap = theory.hard_gap_general(1, num_arms, T)
    bound = gap * (T - T / num_arms - T / 2 * math.sqrt(-(T / num_arms) * math.log(1 - 4 * gap**2)))
    assert bound >= 0.05 * theory.lower_bound_general(1, num_arms, T)


# fmt: off
BAD = [  # function, arguments, keywords, message
    (theory.thresholds, (0, 2, 2, True), {}, "horizon: 0; accepted: a whole number, at least 1"),
    (theory.thresholds, (2, 2.5, 2, True), {}, "width: 2.5; accepted: a whole number, at least 1"),
    (theory.upper_bound_ordered, (2, 2, True, 10), {}, "num_actions: True; accepted: a whole number"),
    (theory.schedule, (2, 2, 2, 1), {}, "num_episodes: 1; accepted: a finite number >= 2"),
    (theory.upper_bound_general, (2, 2, 2, [10, np.inf]), {}, r"num_episodes: \[10, inf\]; accepted: finite"),
    (theory.lower_bound_general, (2, 2, 0.5), {}, "num_episodes: 0.5; accepted: finite numbers of at least 1"),
    (theory.lower_bound_ordered, (3, 3, 2, 10), {}, "num_downs: 3; accepted: less than the horizon 3"),
    (theory.lower_bound_ordered, (3, 0, 2, 10), {}, "num_downs: 0; accepted: a whole number, at least 1"),
    (theory.schedule, (2, 2, 2, 99), {"ratio": 1}, "ratio: 1; accepted: a finite number > 0 and < 1"),
    (theory.schedule, (2, 2, 2, 99), {"first_epsilon": 0}, "first_epsilon: 0; accepted: a finite number > 0"),
    (theory.schedule, (2, 2, 2, 99), {"episodes_scale": -1}, "episodes_scale: -1; accepted: a finite number > 0"),
    (theory.schedule, (2, 2, 2, 99), {"max_phases": -1}, "max_phases: -1; accepted: a whole number, at least 0 .* or None"),
]
# fmt: on


@pytest.mark.parametrize(("function", "arguments", "keywords", "message"), BAD)
def test_bad_input_is_named(function, arguments, keywords, message):
    with pytest.raises(ValueError, match=message):
        function(*arguments, **keywords)


def test_hard_instances_take_the_gaps_of_the_proofs():
    mdp = jb.make_instance("hard-general", theta=[0, 1, 1], num_actions=3, num_episodes=2700)
    np.testing.assert_allclose(jb.optimal(mdp)[0], 0.5 + 1 / 40, rtol=1e-6)
    downs = {"down_stages": [2, 3], "down_actions": [1, 2]}
    mdp = jb.make_instance("hard-ordered", horizon=6, num_actions=3, num_episodes=9000, **downs)
    np.testing.assert_allclose(jb.optimal(mdp)[0], 0.5 + 1 / 80, rtol=1e-6)
