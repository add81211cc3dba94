"""Comparisons: pairs, places and words, against counts by hand and against brute force."""

import itertools

import numpy as np
import pytest
import xarray as xr
from synthetic_sweep import synthetic_sweep, with_parameter_grid

from jaxbandit.stats import compare, compare_values, paired_difference
from jaxbandit.stats.decisions import paired_runs
from jaxbandit.stats.replication import curve_names


def dataset(runs, instances):
    """Runs [learner, instance, seed] as a sweep of one recorded episode."""
    return xr.Dataset(
        {"regret": (("learner", "instance", "seed", "episode"), np.asarray(runs)[..., None])},
        coords={
            "learner": [f"L{j}" for j in range(len(runs))],
            "instance": instances,
            "family": ("instance", [name.split("/")[0] for name in instances]),
            "episode": [100],
        },
    )


def test_pairing_removes_what_seeds_share():
    rng = np.random.default_rng(1)
    luck = rng.normal(0.0, 100.0, 16)
    runs = np.stack([luck, luck + 1, luck + 2])[:, None] + rng.normal(0, 0.1, (3, 1, 16))
    found = compare(dataset(runs, ["I1"]))
    assert found.decided
    assert found.ranking() == "1. L0; 2. L1; 3. L2"
    shuffled = runs.copy()
    shuffled[1] = runs[1][:, ::-1]
    shuffled[2] = np.roll(runs[2], 5, axis=-1)
    assert not any(pair.decided for pair in compare(dataset(shuffled, ["I1"])).pairs)


def test_two_learners_have_the_band_of_paired_difference():
    rng = np.random.default_rng(2)
    values = rng.normal([3.0, 5.0], 1.0, (6, 2))
    (pair,) = compare_values(["A", "B"], [values]).pairs
    by_hand = paired_difference(values[:, 1], values[:, 0])
    np.testing.assert_allclose(
        [pair.difference, pair.low, pair.high],
        [by_hand.center[0], by_hand.low[0], by_hand.high[0]],
    )


def test_places_are_those_of_all_orders_that_agree_with_the_decided_pairs():
    rng = np.random.default_rng(3)
    for repetition in range(20):
        means = rng.uniform(0, 3, 5)
        found = compare_values("abcde", [rng.normal(means, 1.0, (12, 5))], key=repetition)
        better = [(p.better, p.worse) for p in found.pairs if p.decided]
        allowed = [
            order
            for order in itertools.permutations("abcde")
            if all(order.index(x) < order.index(y) for x, y in better)
        ]
        for name, (low, high) in found.places.items():
            places = {order.index(name) + 1 for order in allowed}
            assert low <= min(places)
            assert max(places) <= high
            assert low == 1 + sum(y == name for _, y in better)


def test_families_are_strata_and_drawn_instances_are_replicates():
    rng = np.random.default_rng(4)
    runs = rng.normal(0, 1, (2, 11, 3))
    ds = dataset(runs, ["I1", *(f"I2/{j}" for j in range(10))])
    single, drawn = paired_runs(ds, curve_names(ds))
    np.testing.assert_array_equal(single, runs[:, 0].T)
    np.testing.assert_allclose(drawn, runs[:, 1:].mean(axis=2).T)
    both = compare(ds)
    assert both.replicates == "3 seeds of I1, 10 instances of I2"
    assert both.means == pytest.approx(
        sorted((single.mean(axis=0) + drawn.mean(axis=0)) / 2), rel=1e-12
    )
    assert compare(ds, family="I2").replicates == "10 instances of I2"


def test_missing_runs_leave_the_seed_out_for_all():
    runs = np.random.default_rng(5).normal(0, 1, (2, 1, 9))
    runs[1, 0, 4] = np.nan
    (values,) = paired_runs(ds := dataset(runs, ["I1"]), curve_names(ds))
    np.testing.assert_array_equal(values, np.delete(runs[:, 0].T, 4, axis=0))


def test_parameter_points_are_learners_of_their_own():
    found = compare(with_parameter_grid(synthetic_sweep()))
    assert "UCB-VI, bonus_scale = 0.5" in found.learners
    assert len(found.pairs) == 10


def test_words_and_tables():
    found = compare(synthetic_sweep(num_seeds=12))
    text = str(found)
    assert text.startswith("1. UCB-VI; 2. OrderedExpRef; 3. ExpRef\n")
    assert "Student-t, Bonferroni's correction (" in text
    assert "), paired over 12 seeds of I1 H=4 k=2" in text
    assert found.table("markdown").count("\n") == 4
    assert "\\toprule" in found.table("latex")
    assert found.table("csv").split("\n")[1].startswith("UCB-VI,OrderedExpRef,")


def test_errors_name_what_is_accepted():
    ds = synthetic_sweep()
    for call, message in [
        (lambda: compare(ds, ["ExpRef"]), "accepted: at least two to compare"),
        (lambda: compare(ds, family="I9"), "family: 'I9'; accepted"),
        (lambda: compare(ds, variable="final"), "variable: 'final'.*accepted"),
        (lambda: compare(ds, variable="final_policy"), "accepted: one number per run"),
        (lambda: compare(ds.isel(seed=[0])), "1 complete replicates in family"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()
