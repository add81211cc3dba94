"""The map of claims without its runs: made-up regrets with known answers."""

import numpy as np
import pytest
import xarray as xr
from jaxbandit.experiments import claims_map
from jaxbandit.experiments.claims_map import BONUS_SCALES, EXPLORATIONS, THRESHOLDS, maps
from scipy import stats
from synthetic_sweep import clipped_texts, texts

from jaxbandit.experiment import Options
from jaxbandit.sweeps.arguments import expand_instances, expand_learners


def make_up(arguments, level):
    """Final regret level(learner, parameters) with 1 % noise that all learners share."""
    grids, mdps = expand_learners(arguments["learners"]), expand_instances(arguments["instances"])
    points = max(grid.size for grid in grids.values())
    shape = (len(grids), len(mdps), points, arguments["num_seeds"], 2)
    random = np.random.default_rng(0)
    noise = 1 + 0.01 * random.standard_normal((shape[1], shape[3], 1))
    own = 0.001 * random.standard_normal(shape)
    regret = np.full(shape, np.nan)
    for row, (label, grid) in enumerate(grids.items()):
        for point in range(grid.size):
            params = {name: float(grid.learner.params[name][point]) for name in grid.names}
            base = level(label, params)
            regret[row, :, point] = base * (noise + own[row, :, point]) * np.array([0.7, 1])
    return xr.Dataset(
        {"regret": (("learner", "instance", "parameter", "seed", "episode"), regret)},
        {
            "learner": list(grids),
            "instance": list(mdps),
            "seed": np.arange(shape[3]),
            "episode": [10_000, 20_000],
            "family": ("instance", [name.split("/")[0] for name in mdps]),
        },
    )


def level(label, params):
    """UCB-VI is lowest up to a bonus scale of 1/8; OrderedExpRef below ExpRef from c = 2.5 on."""
    if label == "UCB-VI":
        return 10.0 if params["bonus_scale"] <= 1 / 8 else 1000.0
    if label == "ExpRef":
        return 100.0
    return 50.0 if params["exploration_scale"] >= 2.5 else 200.0


@pytest.fixture(scope="module")
def made():
    plans = claims_map.sweeps(Options(seeds=4))
    return {name: make_up(arguments, level) for name, arguments in plans.items()}


def test_claims_are_decided_at_every_combination(made):
    claims = claims_map.decide(made)
    scales, explorations = np.asarray(claims_map.BONUS_SCALES), np.asarray(claims_map.EXPLORATIONS)
    shape = (4, len(scales), len(claims_map.THRESHOLDS), len(explorations))
    lowest = (scales <= 1 / 8)[:, None, None]
    below = explorations >= 2.5
    for found, expected in zip(claims, (lowest, below, ~lowest | below), strict=True):
        np.testing.assert_array_equal(found, np.broadcast_to(expected, shape))
    np.testing.assert_array_equal(
        claims.together, np.broadcast_to(lowest & below, shape[1:]).astype(float)
    )


def test_intervals_are_joint_over_the_panels():
    """With noise alone no claim is made: a difference of 0 is inside all intervals (false-alarm rate
    5 % jointly for one pair of settings; the key is fixed)."""
    plans = claims_map.sweeps(Options(seeds=4))
    same = {name: make_up(arguments, lambda *_: 100.0) for name, arguments in plans.items()}
    pairs = claims_map.differences(same, "UCB-VI", "ExpRef")
    assert len(pairs) == 4
    assert all((low[0, 0] < 0) & (high[0, 0] > 0) for low, high in pairs)


def test_an_interval_by_hand():
    """Three replicates with differences 1, 2, 3 on each of two panels: mean 2, error 1 / sqrt(3)."""
    regret = np.zeros((2, 1, 1, 3, 1))
    regret[0, 0, 0, :, 0] = [11, 22, 33]
    regret[1, 0, 0, :, 0] = [5, 10, 15]
    ds = xr.Dataset(
        {"regret": (("learner", "instance", "parameter", "seed", "episode"), regret)},
        {"learner": ["a", "b"], "instance": ["x"], "family": ("instance", ["x"])},
    )
    (low, high), _ = claims_map.differences({"one": ds, "two": ds}, "a", "b", factor=2.0)
    quantile = stats.t.ppf(1 - 0.05 / (2 * 2 * 4), 2)
    np.testing.assert_allclose(low, 2 - quantile / np.sqrt(3))
    np.testing.assert_allclose(high, 2 + quantile / np.sqrt(3))


def test_figure_and_table(made):
    for drawn in claims_map.figures(made, Options()).values():
        assert not clipped_texts(drawn.figure)
    text = claims_map.tables(made, Options())["claims_map.md"]
    assert "All three claims hold on all 4 panels at 48 of 168 combinations" in text
    assert "with the paper's exploration (c = 1/2) at 0 of 42" in text


def test_cells_with_all_panels_have_a_dot():
    shares = np.full((len(BONUS_SCALES), len(THRESHOLDS), len(EXPLORATIONS)), 0.5)
    shares[1, 2, 0] = 1
    drawn = maps({"a claim": shares}, "title")
    dots = [len(ax.lines) for ax in drawn.axes]
    assert dots == [1] + [0] * (len(EXPLORATIONS) - 1)
    assert "title" in texts(drawn.figure)
