"""Exact binomial draws by rejection, one attempt at a time and vectorised over lanes.

For X ~ Binomial(n, p) with p <= 1/2 (else count failures) there are two hats:

* n p < 10: inversion. The probabilities of 0, 1, ..., K - 1 follow from each other, and one uniform
  picks among them. The next J numbers have a flat hat; what lies beyond them, less than 1e-21, is
  left out. It accepts more than 99 %.
* n p >= 10: transformed rejection (W. Hörmann, "The generation of binomial random variates", 1993,
  algorithm BTRS), which accepts 73-87 %.

So one attempt serves n = 1 and n = 10^12. The test compares with log P(X = x) - log P(X = m), a
difference of log-factorials. Those of n = 10^12 are about 10^13, whose float64 has no correct digit
after the second decimal, so the difference is taken analytically (log1p of small ratios, Stirling's
corrections apart). Needs x64.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp

from jaxbandit.xla.platforms import active, separate

Attempt = tuple[jax.Array, jax.Array]
"""Whether it is accepted, and the number."""
_LARGE = 10.0
_LISTED = 24
"""K."""
_TAIL, _TAIL_MASS = 32, 2.0**-8
"""J, and the mass of the hat on K, ..., K + J - 1: more than J P(X = K) whenever n p < 10."""
# z mu(z) as a polynomial in 1/z, where mu(z) = log Gamma(z) - (z - 1/2) log z + z - log(2 pi)/2 is
# what Stirling's formula
# leaves out: Chebyshev interpolation on 1 <= z < infinity, error of mu below 2e-12. No table, so
# that the code vectorises.
_CORRECTION = (
    0.0833333333311677, 7.3115100538683167e-10, -0.0027778184802921078, 8.8373620918437923e-07,
    0.00078382094597741528, 6.3220755773408626e-05, -0.00084029913487226892, 0.00054292809865908549,
    0.00040665153822453157, -0.00094957822686648422, 0.00073720380358444819, -0.00028461141047191383,
    4.5731108272263293e-05,
)  # fmt: skip


def attempt(n: jax.Array, p: jax.Array, u: jax.Array, v: jax.Array) -> Attempt:
    """One attempt at Binomial(n, p) for 0 < p < 1 and n >= 1, all float64: (accepted, x).

    u and v are independent uniforms on (0, 1); x is meaningless where not accepted. Where all means are large, which is
    most of the time in long runs, inversion costs nothing on platforms with branches. Either hat is computed by the
    same instructions whatever the other elements need.
    """
    small = jnp.minimum(p, 1 - p)
    large = n * small >= _LARGE
    found = _rejection(n, small, u, v)
    found = _unless(jnp.all(large), _inversion, large, found, n, small, u)
    far = ~large & (u * (1 + _TAIL_MASS) >= 1)
    found = _unless(~jnp.any(far), _tail, ~far, found, n, small, u, v)
    passed, x = found
    return passed, jnp.where(p > 0.5, n - x, x)


def _unless(
    spared: jax.Array, hat: Callable, keep: jax.Array, found: Attempt, *arguments: jax.Array
) -> Attempt:
    """What is found, and where it is not to be kept what the hat gives; branches spare its cost where they can."""

    def both(passed: jax.Array, x: jax.Array) -> Attempt:
        also, y = hat(*arguments)
        return jnp.where(keep, passed, also), jnp.where(keep, x, y)

    if active().branches:
        return jax.lax.cond(spared, lambda *found: found, both, *found)
    return both(*found)


@separate
def _rejection(n: jax.Array, p: jax.Array, u: jax.Array, v: jax.Array) -> Attempt:
    """Transformed rejection, for means from 10 on: v places the proposal, u accepts it."""
    spread = jnp.sqrt(n * p * (1 - p))
    # The numbers are Hörmann's: a hat of this shape covers every binomial with a mean from 10 on.
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * p
    offset = v - 0.5
    edge = 0.5 - jnp.abs(offset)
    proposed = jnp.floor(n * p + 0.5 + (2 * a / edge + b) * offset)
    x = jnp.clip(
        proposed, 0, n
    )  # proposals outside are rejected below; log_ratio must stay finite until then
    # At least this much of P(X = mode) must P(X = x) be.
    density = u * (2.83 + 5.1 / b) * spread / (a / (edge * edge) + b)
    return (x == proposed) & (_log(density) <= log_ratio(n, p, x, jnp.floor((n + 1) * p))), x


@separate
def _inversion(n: jax.Array, p: jax.Array, u: jax.Array) -> Attempt:
    """Inversion, for means below 10: how many of P(X <= 0), ..., P(X <= K - 1) the target reaches."""
    target = u * (1 + _TAIL_MASS)
    odds = p / (1 - p)
    chance = jnp.exp(n * _log1p(-p))
    below, listed = jnp.zeros_like(n), jnp.zeros_like(n)
    for j in range(_LISTED):
        below = below + chance
        # Counting instead of stopping: lanes would stop at different j, and all go on until the last one does.
        listed = listed + jnp.where(target >= below, 1.0, 0.0)
        chance = chance * ((n - j) * (odds * (1 / (j + 1))))
    return listed < _LISTED, listed


@separate
def _tail(n: jax.Array, p: jax.Array, u: jax.Array, v: jax.Array) -> Attempt:
    """Beyond that, where the target is above 1: v places the proposal, and what is left of the target decides."""
    target = u * (1 + _TAIL_MASS)
    proposed = _LISTED + jnp.floor(_TAIL * v)
    x = jnp.minimum(proposed, n)
    bound = _log(jnp.maximum((target - 1) / _TAIL, 1e-300)) - n * _log1p(-p)
    return (x == proposed) & (bound <= log_ratio(n, p, x, jnp.zeros_like(x))), x


def log_ratio(n: jax.Array, p: jax.Array, x: jax.Array, m: jax.Array) -> jax.Array:
    """log P(X = x) - log P(X = m) for X ~ Binomial(n, p), accurate to about 1e-9 even at n =
    10^12."""
    step = x - m
    return (
        step * _log(p * (n - m + 1) / ((1 - p) * (x + 1)))
        - (m + 0.5) * _log1p(step / (m + 1))
        + (n - x + 0.5) * _log1p(step / (n - x + 1))
        + (_correction(m) - _correction(x))
        + (_correction(n - m) - _correction(n - x))
    )


def _log(y: jax.Array) -> jax.Array:
    """log y for y > 0, normal. Unlike jnp.log in float64 it compiles to vector instructions on
    CPUs."""
    exponent, fraction = _split(y)
    return _sum_of_logs(exponent, (fraction - 1) / (fraction + 1))


def _log1p(y: jax.Array) -> jax.Array:
    """log(1 + y) for y > -1, to a few units in the last place.

    The usual trick, log(w) y / (w - 1) with w = 1 + y, does not survive compilation: XLA simplifies
    w - 1 to y, and the error in log f grows to 1e-4 at n = 10^12.
    """
    exponent, fraction = _split(1 + y)
    return _sum_of_logs(
        exponent, jnp.where(exponent == 0, y / (2 + y), (fraction - 1) / (fraction + 1))
    )


def _split(y: jax.Array) -> tuple[jax.Array, jax.Array]:
    """y = fraction 2^exponent with a fraction in [0.7, 1.41)."""
    bits = jax.lax.bitcast_convert_type(y, jnp.int64)
    # 0x95F62 leaves the exponent of fractions from sqrt(2) on one higher.
    raised = bits + (0x95F62 << 32)
    exponent = (raised >> 52).astype(jnp.int32) - 1023
    return exponent, jax.lax.bitcast_convert_type(
        bits - (exponent.astype(jnp.int64) << 52), jnp.float64
    )


def _sum_of_logs(exponent: jax.Array, z: jax.Array) -> jax.Array:
    """exponent log 2 + log((1 + z) / (1 - z)) for |z| < 0.172."""
    square = z * z
    series = jnp.full_like(z, 1 / 21)
    for odd in range(19, 1, -2):
        series = series * square + 1 / odd
    return exponent.astype(z.dtype) * math.log(2) + (2 * z + 2 * z * square * series)


def _correction(x: jax.Array) -> jax.Array:
    """What Stirling's formula for log x! leaves out: mu(x + 1)."""
    inverse = 1 / (x + 1)
    value = jnp.full_like(x, _CORRECTION[-1])
    for coefficient in _CORRECTION[-2::-1]:
        value = value * inverse + coefficient
    return value * inverse
