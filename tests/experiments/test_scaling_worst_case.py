"""The worst case over gaps has the slope that it was given."""

import numpy as np
from jaxbandit.experiments import scaling


def fake_sweep(exponent, seeds=8):
    """A worst case of known slope: regret T^exponent at the gap 1/2^j that belongs to T, less
    elsewhere."""
    import xarray

    horizons = scaling.horizons_of(10**9)
    gaps = 2.0 ** -np.arange(1, 8)
    rng = np.random.default_rng(0)
    size = (1, gaps.size, horizons.size, seeds, horizons.size)
    noise = 1 + 0.01 * rng.standard_normal(size)
    worst = np.clip(np.arange(horizons.size) - 2, 0, gaps.size - 1)
    shape = np.where(np.arange(gaps.size)[:, None] == worst[None, :], 1.0, 0.3)
    values = shape[None, :, :, None, None] * horizons.astype(float) ** exponent * noise
    names = [f"{gap:.9g}" for gap in gaps]
    dims = ("learner", "instance", "parameter", "seed", "episode")
    coords = {"learner": ["ExpRef"], "instance": [scaling.FIXED, *names], "episode": horizons}
    return xarray.Dataset(
        {"regret": (dims, np.concatenate([values[:, :1], values], axis=1))}, coords
    )


def test_worst_case_finds_slope_gap_and_interval():
    case = scaling.worst_case(fake_sweep(0.7), "ExpRef")
    assert abs(case.slope - 0.7) < 0.01
    assert case.seeds[0] < 0.7 < case.seeds[1]
    assert (
        case.fitted.sum() == case.horizons.size - 3
    )  # the first worst gaps are the largest of the family
    assert (np.diff(case.gap) <= 0).all()


def test_recorded_horizons():
    assert scaling.horizons_of(10**13)[[0, -1]].tolist() == [10**4, 10**13]
