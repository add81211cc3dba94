"""The two engines agree in law: literal simulation and pushed counts, for ExpRef and
OrderedExpRef, and for ExpRef that is shown one bit an episode."""

import functools

import jax
import numpy as np
import pytest
from recording import mdps, recording, run
from scipy import stats

import jaxbandit as jb
from jaxbandit.testing import run_lanes

T = 500
POINTS = [37, 300, T]
"""Inside an arm of the first phase; inside a later one; the end, which cuts the third phase of most
runs short."""

SETTINGS = {
    # n = ceil(ln 500 / eps^2) = 10, 20, 41 episodes an arm: about 80 + 150 + 250 in a phase.
    "several episodes": {"episodes_scale": 1 / 12, "first_epsilon": 0.8, "ratio": 0.7, "num_phases": 3, "threshold": 0.25},
    "one episode": {"episodes_scale": 1e-4, "first_epsilon": 0.8, "ratio": 0.7, "num_phases": 3, "threshold": 0.5},
    # Means of 10 or 20 bits lie on a lattice, on which C eps = 0.2 would be a tie that float32 and float64 break apart.
    "bits": {"episodes_scale": 1 / 12, "first_epsilon": 0.8, "ratio": 0.7, "num_phases": 3, "threshold": 0.26},
}  # fmt: skip

# Sigmas and p-values below: 5 cases x 2 MDPs x (at most 16 Phi x 3 z-tests at 5.5 sigma, 3 curve
# points and 2 tables at p = 1e-6) is a false-alarm rate below 7e-5 in all
# (and the keys are fixed).
SIGMAS, P_VALUE = 5.5, 1e-6


ONE_BIT = "expref, one bit"


def make(name, **parameters):
    if name == ONE_BIT:
        return jb.one_bit(jb.make_learner("expref", **parameters))
    return jb.make_learner(name, **parameters)


@functools.cache
def both(name, setting):
    learner = make(name, **SETTINGS[setting])
    return run("episodes", learner, T, POINTS, seed=1), run("blocks", learner, T, POINTS, seed=2)


CASES = [
    (name, setting)
    for name in ("expref", "ordered-expref")
    for setting in ("several episodes", "one episode")
]
CASES.append((ONE_BIT, "bits"))


@pytest.mark.parametrize(("name", "setting"), CASES)
def test_every_phi_has_the_same_mean_and_variance(name, setting):
    literal, counted = (results["phi"] for results in both(name, setting))
    compared = 0
    for index in np.ndindex(literal.shape[0], *literal.shape[2:]):
        one, two = (phi[(index[0], slice(None), *index[1:])] for phi in (literal, counted))
        # An arm of the second phase is played only if the first kept it, in the same share of the
        # runs.
        played = [np.mean(~np.isnan(x)) for x in (one, two)]
        share = np.mean(played)
        assert (
            abs(played[0] - played[1])
            <= SIGMAS * np.sqrt(2 * share * (1 - share) / one.size) + 1e-12
        )
        one, two = (x[~np.isnan(x)] for x in (one, two))
        if min(one.size, two.size) < 200:
            continue
        compared += 1
        noise = np.sqrt(one.var() / one.size + two.var() / two.size)
        assert abs(one.mean() - two.mean()) <= SIGMAS * noise + 1e-6
        spread = [np.mean((x - x.mean()) ** 4) - x.var() ** 2 for x in (one, two)]
        noise = np.sqrt(spread[0] / one.size + spread[1] / two.size)
        assert abs(one.var() - two.var()) <= SIGMAS * noise + 1e-6
    assert compared >= 24


@pytest.mark.parametrize(("name", "setting"), CASES)
def test_regret_has_the_same_distribution_at_every_recorded_point(name, setting):
    literal, counted = (results["regret"] for results in both(name, setting))
    for g, w in np.ndindex(len(mdps()), len(POINTS)):
        # Rounded, because the engines' float32 and float64 values of one lattice would never tie.
        one, two = (np.round(regret[g, :, w], 2) for regret in (literal, counted))
        assert stats.ks_2samp(one, two, method="asymp").pvalue > P_VALUE
    assert np.unique(np.round(counted[:, :, -1], 2)).size > 10


def table_of_sets(literal, counted, g):
    """How often each collection of active sets came up on MDP g, [2, collections]; rare ones are
    counted as one."""
    powers = 2 ** np.arange(8).reshape(2, 2, 2)
    found = [
        np.sum(results["active"][g, :, :, 1:].astype(np.int64) * powers, axis=(-3, -2, -1))
        for results in (literal, counted)
    ]
    table = np.stack([np.bincount(code, minlength=256) for code in found])
    common = table.sum(0) >= 20
    table = np.concatenate([table[:, common], table[:, ~common].sum(1, keepdims=True)], axis=1)
    return table[:, table.sum(0) > 0]


@pytest.mark.parametrize(("name", "setting"), CASES)
def test_active_sets_have_the_same_distribution(name, setting):
    for g in range(len(mdps())):
        table = table_of_sets(*both(name, setting), g)
        assert table.shape[1] > 2
        assert stats.chi2_contingency(table).pvalue > P_VALUE


@pytest.mark.parametrize(("name", "setting"), CASES)
def test_runs_end_at_the_same_point_of_the_schedule(name, setting):
    literal, counted = (results["phases_done"] for results in both(name, setting))
    table = np.stack(
        [np.bincount(phase.astype(int).ravel(), minlength=4) for phase in (literal, counted)]
    )
    table = table[:, table.sum(0) > 0]
    if setting == "one episode":
        assert table.shape == (2, 1)  # 24 episodes at most, then the commitment
    else:
        # T cuts the third phase in some runs and not in others.
        assert table.shape == (2, 2)
        assert stats.chi2_contingency(table).pvalue > P_VALUE


@pytest.mark.slow
@pytest.mark.parametrize("name", ["expref", "ordered-expref", ONE_BIT])
def test_same_law_at_a_million_episodes(name):
    """The theorems' schedule at T = 10^6, 2 MDPs x 256 seeds, every episode simulated: the same
    regrets and active sets.

    The cutoff is near the noise of the sums, so that runs differ in what they drop. Six tests each:
    false-alarm rate 1.8e-5 in all.
    """
    million = 10**6
    learner = make(name, threshold=0.06)
    keys = jax.random.split(jax.random.key(3), (2, 256))
    literal, counted = (
        run_lanes(
            engine, [recording(learner)] * 2, mdps(), keys, million, [million // 10, million]
        )[0]
        for engine in ("episodes", "blocks")
    )
    for g in range(2):
        for w in range(2):
            one, two = (np.round(results["regret"][g, :, w]) for results in (literal, counted))
            assert np.unique(two).size > 2
            assert stats.ks_2samp(one, two, method="asymp").pvalue > P_VALUE
        table = table_of_sets(literal, counted, g)
        assert table.shape[1] > 2
        assert stats.chi2_contingency(table).pvalue > P_VALUE
