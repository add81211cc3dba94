"""Sequential comparisons: the error rate by simulation, the looks and the runs as told."""

import itertools

import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.studies.sequential import Judge, seed_counts, spending

COUNTS = [8, 16, 32, 64]


def bell(rng):
    """Three learners of the same mean; half of the variance is the seed's."""
    return rng.normal(5.0, 1.0, (64, 1)) + rng.normal(0.0, 1.0, (64, 3))


def skewed(rng):
    """Three learners of mean 2: gammas of shapes 1, 2 and 8 (skewness 2, 1.4, 0.7)."""
    shape = np.array([1.0, 2.0, 8.0])
    return 1 + rng.gamma(shape, 1 / shape, (64, 3))


def coins(rng):
    """Three learners whose regret is 0 or 1 alike."""
    return rng.integers(0, 2, (64, 3)).astype(float)


def sequence(values, counts=COUNTS, **how):
    """Looks until all is settled, as `until_decided` takes them."""
    judge = Judge("abc", counts, **how)
    for count in counts:
        judge.look([values[:count]])
        if judge.settled:
            break
    return judge


@pytest.mark.parametrize("first", [2, 8])
@pytest.mark.parametrize("draw", [bell, skewed, coins])
def test_error_rate_over_all_looks_is_held(draw, first):
    """No pair differs, so whatever is decided is wrong. Allowed: 5 % and 4 simulation errors of 1.5 % (false-alarm rate
    3e-5 at exactly 5 %); the union bound over looks is not tight."""
    rng, repetitions, counts = np.random.default_rng(31), 200, seed_counts(first, 64)
    wrong = sum(bool((~sequence(draw(rng), counts).open).any()) for _ in range(repetitions))
    assert wrong / repetitions < 0.05 + 4 * np.sqrt(0.05 * 0.95 / repetitions)


def test_looks_at_too_few_runs_spend_nothing():
    judge = Judge("ab", [2, 4, 8, 16])
    for count in (2, 4, 8, 16):
        judge.look([np.arange(count)[:, None] + [[0.0, 1.0]]])
    assert [look.alpha for look in judge.looks] == pytest.approx([0, 0, 0.025, 0.025])
    assert [look.open_pairs for look in judge.looks] == [1, 1, 0, 0]


def test_clear_differences_stop_early_and_small_ones_late():
    rng = np.random.default_rng(33)
    near = sequence(bell(rng) + np.array([0.0, 20.0, 40.0]))
    # 10 are the fewest at the first alpha
    assert [look.num_seeds for look in near.looks] == [8, 16]
    assert near.comparison().ranking() == "1. a; 2. b; 3. c"
    far = sequence(bell(rng) + np.array([0.0, 1.0, 6.0]))
    assert len(far.looks) > 1
    assert far.looks[0].open_pairs > 0


def test_intervals_only_shrink_and_decided_pairs_stay():
    rng = np.random.default_rng(34)
    values = bell(rng) + np.array([0.0, 0.5, 3.0])
    judge = Judge("abc", COUNTS)
    widths, decided = [], []
    for count in COUNTS:
        judge.look([values[:count]])
        pairs = judge.comparison().pairs
        widths.append({frozenset(p[:2]): p.high - p.low for p in pairs})
        assert all(p.high > p.low for p in pairs)
        decided.append({(p.better, p.worse) for p in pairs if p.decided})
    for before, after in itertools.pairwise(widths):
        assert all(after[pair] <= before[pair] for pair in before)
    for before, after in itertools.pairwise(decided):
        assert before <= after


def test_p_values_agree_with_what_is_decided():
    rng = np.random.default_rng(35)
    for _ in range(20):
        judge = sequence(bell(rng) + np.array([0.0, 0.7, 1.4]))
        for pair in judge.comparison().pairs:
            if abs(pair.p_value - 0.05) > 0.01:
                assert pair.decided == (pair.p_value < 0.05)


def test_indifference_settles_equal_learners():
    values = bell(np.random.default_rng(36))
    assert not sequence(values).settled
    assert sequence(values, indifference=5.0).settled
    assert not any(p.decided for p in sequence(values, indifference=5.0).comparison().pairs)


def test_the_level_is_spent_once():
    assert sum(spending([8, 16, 32, 50], 0.9)) == pytest.approx(0.1)
    assert seed_counts(8, 8) == [8]
    assert seed_counts(4, 16) == [4, 8, 16]


@pytest.fixture(scope="module")
def mdp():
    return jb.make_instance("prophet-uniform", horizon=3, capacity=1, num_values=3)


def test_seeds_are_added_until_all_is_decided(mdp, tmp_path):
    learners = {name: jb.make_learner(name) for name in ("uniform", "oracle")}
    how = {"checkpoint": tmp_path, "progress": False}
    found = jb.until_decided(learners, {"I1": mdp}, 40, max_seeds=16, **how)
    assert found.stopped == "every pair is settled"
    assert found.dataset.sizes["seed"] == 8
    assert "1. oracle; 2. uniform" in str(found)


def test_the_budget_ends_it_and_the_runs_are_those_of_one_sweep(mdp):
    twins = {name: jb.make_learner("ucbvi") for name in ("one", "other")}
    how = {"progress": False, "seed": 4}
    found = jb.until_decided(twins, {"I1": mdp}, 40, max_seeds=6, first_seeds=3, **how)
    assert [look.num_seeds for look in found.looks] == [3, 6]
    assert found.stopped == "1 of 1 pairs are open after the budget of 6 seeds"
    assert [look.alpha for look in found.looks] == pytest.approx([0, 0.05])
    assert found.comparison.ranking() == "1-2. one; 1-2. other"
    whole = jb.sweep(twins, {"I1": mdp}, 40, num_seeds=6, **how)
    np.testing.assert_array_equal(found.dataset["regret"].values, whole["regret"].values)


def test_errors_name_what_is_accepted():
    """The arguments of `until_decided` are in `tests/test_fuzz_studies.py`."""
    with pytest.raises(ValueError, match=r"learners: .*at least two"):
        Judge(["a"], [8])
    with pytest.raises(ValueError, match=r"counts: \[8, 8\]; accepted: increasing"):
        Judge("ab", [8, 8])
    with pytest.raises(ValueError, match=r"first_seeds: 8; accepted: .* at least 2 and at most 4"):
        seed_counts(8, 4)
