"""Exact binomial draws: the hat covers, the ratio is accurate, the draws have the right law from n
= 1 to 10^12."""

import itertools
import math

import jax
import numpy as np
import pytest
from scipy import stats

from jaxbandit.engines.blocks import binomial
from jaxbandit.xla.compat import x64

attempt = jax.jit(binomial.attempt)
log_ratio = jax.jit(binomial.log_ratio)


# Every call has one of these shapes, so that each function compiles once.
SIZE = 200_000
POINTS = 4_000


def draws(n, p, seed):
    """The accepted draws out of SIZE attempts."""
    random = np.random.default_rng(seed)
    u, v = 1 - random.random((2, SIZE))
    with x64():
        accepted, x = attempt(np.full(SIZE, float(n)), np.full(SIZE, float(p)), u, v)
    return np.asarray(x)[np.asarray(accepted)]


def ratios(n, p, x, m):
    """log P(X = x) - log P(X = m); broadcasts, and pads to POINTS."""
    n, p, x, m = (np.asarray(value, np.float64) for value in np.broadcast_arrays(n, p, x, m))
    with x64():
        padded = (np.resize(value, POINTS) for value in (n, p, x, m))
        return np.asarray(log_ratio(*padded))[: x.size]


def exact_log_ratio(n, p, x, m):
    """log P(X = x) - log P(X = m) as a sum of |x - m| logarithms in extended precision."""
    low, high = sorted((x, m))
    j = np.arange(low, high, dtype=np.longdouble)
    ratio = (np.longdouble(n) - j) * np.longdouble(p) / ((j + 1) * (1 - np.longdouble(p)))
    return float(np.sum(np.log(ratio)) * (1 if x > m else -1))


def test_the_flat_tail_covers():
    """While n p < 10: J P(X = x) is at most the tail's mass for all x >= K, and almost nothing lies
    beyond K + J - 1."""
    K, J = binomial._LISTED, binomial._TAIL
    for mean, p in itertools.product(
        [0.1, 1, 5, 9, 9.99], [1e-11, 1e-6, 1e-3, 0.1, 0.25, 0.4, 0.5]
    ):
        n = math.floor(mean / p)
        assert J * stats.binom.pmf(np.arange(K, K + J), n, p).max() <= binomial._TAIL_MASS
        assert stats.binom.sf(K + J - 1, n, p) < 1e-21


def test_transformed_rejection_covers():
    """f(x) (a / s^2 + b) <= (2.83 + 5.1 / b) sd for every proposal, s the distance of v to the
    nearer end of [0, 1].

    Else the law would be cut off where the acceptance probability exceeds 1. Needed, and used, for
    n p >= 10, p <= 1/2.
    """
    end = np.geomspace(1e-9, 0.5, POINTS // 2)
    for mean, p in itertools.product(
        [10, 10.5, 12, 20, 100, 1e4, 1e9], [1e-6, 0.01, 0.1, 0.25, 0.4, 0.5]
    ):
        n = math.ceil(mean / p)
        sd = math.sqrt(n * p * (1 - p))
        b = 1.15 + 2.53 * sd
        a = -0.0873 + 0.0248 * b + 0.01 * p
        near = np.append(end, end)
        offset = (0.5 - near) * np.repeat([-1, 1], POINTS // 2)
        x = np.floor((2 * a / near + b) * offset + n * p + 0.5)
        inside = (x >= 0) & (x <= n)
        f = np.exp(ratios(n, p, np.clip(x, 0, n), math.floor((n + 1) * p)))
        acceptance = f * (a / near**2 + b) / ((2.83 + 5.1 / b) * sd)
        assert np.max(acceptance[inside]) <= 1, (n, p)


def test_attempts_use_those_hats():
    large, listed, tail = (1e6, 0.3, 0.5, 0.9), (20.0, 0.3, 0.5, 0.9), (100.0, 0.09, 1 - 2e-9, 0.1)
    with x64():
        got = [attempt(*(np.full(SIZE, value) for value in case)) for case in (large, listed, tail)]
    sd = math.sqrt(210_000)
    b = 1.15 + 2.53 * sd
    a = -0.0873 + 0.0248 * b + 0.01 * 0.3
    assert float(got[0][1][0]) == math.floor((2 * a / 0.1 + b) * 0.4 + 300_000.5)
    assert bool(got[1][0][0])
    assert float(got[1][1][0]) == stats.binom.ppf(0.5 * (1 + binomial._TAIL_MASS), 20, 0.3)
    assert float(got[2][1][0]) == binomial._LISTED + math.floor(0.1 * binomial._TAIL)


def test_the_tail_of_small_means_has_the_exact_law():
    """Tail proposals alone: u is uniform where it chooses the tail, so that 24, 25, ... are seen
    often enough to count."""
    n, p = 60, 0.16
    first = 1 / (1 + binomial._TAIL_MASS)
    random = np.random.default_rng(5)
    u, v = first + (1 - first) * random.random(SIZE), random.random(SIZE)
    with x64():
        accepted, x = attempt(np.full(SIZE, float(n)), np.full(SIZE, p), u, v)
    x = np.asarray(x)[np.asarray(accepted)].astype(int)
    K = binomial._LISTED
    # The hat has mass _TAIL_MASS, of which P(X >= K) is accepted.
    share = stats.binom.sf(K - 1, n, p) / binomial._TAIL_MASS
    pmf = stats.binom.pmf(np.arange(K, K + 4), n, p) / stats.binom.sf(K - 1, n, p)
    seen = np.bincount(x - K, minlength=4)[:4]
    # Five z-tests at 5 standard errors: false-alarm rate 3e-6 in all.
    assert abs(x.size - SIZE * share) < 5 * math.sqrt(SIZE * share)
    assert (np.abs(seen - x.size * pmf) < 5 * np.sqrt(x.size * pmf)).all()


def test_logarithms():
    random = np.random.default_rng(0)
    size = 50_000
    near = 1 + random.normal(0, 1e-8, size)
    y = np.concatenate(
        [np.exp(random.uniform(-600, 600, size)), random.uniform(0.5, 2, size), near]
    )
    z = np.concatenate(
        [np.exp(random.uniform(-30, 5, size)), -np.exp(random.uniform(-30, -1e-3, size))]
    )
    with x64():
        log, log1p = np.asarray(jax.jit(binomial._log)(y)), np.asarray(jax.jit(binomial._log1p)(z))
    np.testing.assert_allclose(log, np.log(y), rtol=4e-16, atol=2e-23)
    np.testing.assert_allclose(log1p, np.log1p(z), rtol=8e-16)


def test_log_ratio_at_small_n_is_that_of_lgamma():
    def log_pmf(n, p, x):
        choose = math.lgamma(n + 1) - math.lgamma(x + 1) - math.lgamma(n - x + 1)
        return choose + x * math.log(p) + (n - x) * math.log1p(-p)

    cases = [
        (n, p, x, min(math.floor((n + 1) * p), n))
        for n in (1, 2, 5, 17, 60)
        for p in (1e-9, 0.02, 0.5, 0.83, 1 - 1e-9)
        for x in range(n + 1)
    ]
    ours = ratios(*zip(*cases, strict=True))
    exact = [log_pmf(n, p, x) - log_pmf(n, p, m) for n, p, x, m in cases]
    np.testing.assert_allclose(ours, exact, rtol=1e-10, atol=1e-9)


@pytest.mark.parametrize("n", [10**4, 10**9, 10**12])
def test_log_ratio_at_large_n_is_the_sum_of_logarithms(n):
    cases = []
    for p in (3 / n, 1e-3, 0.5, 0.9):
        m = math.floor((n + 1) * p)
        for z in (-3, -0.5, 0.01, 1, 4):
            x = min(max(m + round(z * math.sqrt(n * p * (1 - p))), 0), n)
            cases.append((n, p, x, m))
    ours = ratios(*zip(*cases, strict=True))
    np.testing.assert_allclose(ours, [exact_log_ratio(*case) for case in cases], rtol=0, atol=1e-8)


LAWS = [
    (1, 0.5),
    (1, 1e-3),
    (1, 0.999),
    (2, 0.3),
    (5, 0.9),
    (10, 0.01),
    (12, 0.5),
    (40, 0.2),
    (40, 0.3),
    (60, 0.8),
    (300, 0.97),
]


@pytest.mark.parametrize(("n", "p"), LAWS)
def test_draws_have_the_exact_law(n, p):
    x = draws(n, p, seed=n)
    pmf = stats.binom.pmf(np.arange(n + 1), n, p)
    counts = np.bincount(x.astype(int), minlength=n + 1)
    assert counts.size == n + 1
    # Cells that expect fewer than 5 draws are taken together.
    rare = pmf * x.size < 5
    expected = np.append(pmf[~rare], pmf[rare].sum()) * x.size
    seen = np.append(counts[~rare], counts[rare].sum())
    keep = expected > 1e-3
    assert seen[~keep].sum() == 0
    statistic = np.sum((seen - expected)[keep] ** 2 / expected[keep])
    # 11 laws at 1e-6 each: false-alarm rate 1e-5 in all (and the seeds are fixed).
    assert stats.chi2.sf(statistic, max(keep.sum() - 1, 1)) > 1e-6


@pytest.mark.parametrize("n", [10, 10**4, 10**9, 10**12])
@pytest.mark.parametrize("p", [0.03, 0.5, 0.8])
def test_moments(n, p):
    x = draws(n, p, seed=1)
    variance = n * p * (1 - p)
    excess = (1 - 6 * p * (1 - p)) / variance
    assert (x == np.floor(x)).all()
    assert x.min() >= 0
    assert x.max() <= n
    assert 0.7 < x.size / SIZE < (0.89 if n * min(p, 1 - p) >= 10 else 1)
    z_mean = (x.mean() - n * p) / math.sqrt(variance / x.size)
    z_variance = (np.mean((x - n * p) ** 2) / variance - 1) / math.sqrt((2 + excess) / x.size)
    # 24 z-tests at 5 standard errors: false-alarm rate 1.4e-5 in all (and the seeds are fixed).
    assert abs(z_mean) < 5
    assert abs(z_variance) < 5
